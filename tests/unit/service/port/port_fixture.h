/*
 * port_fixture: real producer and consumer ports behind socketpairs, and a
 * client that talks frames to them.
 */
#ifndef TESTS_UNIT_SERVICE_PORT_PORT_FIXTURE_H
#define TESTS_UNIT_SERVICE_PORT_PORT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/collector/service.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct ports {
	struct loop *loop;
	struct settings settings;
	struct service *service;
	struct rpc_service producer_port;
	struct rpc_service consumer_port;
	struct rpc_service control_port;
	struct rpc_service link_port;
	struct rpc_stats stats;
	char dir[64];
};

int ports_setup(void **state);
int ports_teardown(void **state);

enum { PRODUCER = 1, CONSUMER = 2, CONTROL = 3, LINK = 4 };

#define REPLIES_MAX 512

struct reply {
	uint64_t request;
	bool ok;
	bool more;
	int fd;
	uint8_t *msg;
	size_t len;
};

/* A client; replies are noted in the order in which they came. */
struct client {
	struct ports *ports;
	int fd; /* -1: closed */
	uint64_t last_request;
	struct reply replies[REPLIES_MAX];
	size_t n_replies;
	uint8_t *in;
	size_t in_len;
	bool closed; /* the service closed the connection */
	bool deaf;   /* reads nothing */
	/*
	 * A pipe that stands for a slow disk, read a little each turn; 0: none.
	 */
	int disk;
	size_t disk_bytes; /* read from it */
};

/* Connects and binds; port is one of those above. */
void client_open(struct client *c, struct ports *p, int port);
/* The same as somebody else. */
void client_open_as(struct client *c, struct ports *p, int port,
    const struct peer *who);
void client_close(struct client *c);

/* Sends; returns the request's id.  args NULL: empty.  Takes args over. */
uint64_t client_send(struct client *c, uint32_t method, struct pb_writer *args,
    int fd);
void client_send_bytes(struct client *c, const void *data, size_t len);
/* Sends without asking for a reply; args stays the caller's. */
void client_tell(struct client *c, uint32_t method, const void *args,
    size_t len);
/* Turns the loop once and reads what has come. */
void client_turn(struct client *c);
/* The n-th reply to a request (0: the first), waited for. */
const struct reply *client_wait(struct client *c, uint64_t request, size_t n);
/* Sends and waits for the first reply. */
const struct reply *client_call(struct client *c, uint32_t method,
    struct pb_writer *args);
/* How many replies a request has so far. */
size_t client_count(const struct client *c, uint64_t request);
/* Waits until the condition holds; fails after ten seconds. */
void ports_wait(struct client *c, bool (*cond)(void *arg), void *arg);

/* Methods, by their position in wire-format.md. */
enum {
	P_INITIALIZE = 1, P_REGISTER, P_UNREGISTER, P_COMMIT, P_COMMANDS,
	P_REGISTER_WRITER, P_UNREGISTER_WRITER, P_STARTED, P_STOPPED,
	P_TRIGGERS, P_SYNC, P_UPDATE, P_LAST = P_UPDATE,
};
enum {
	C_ENABLE = 1, C_DISABLE, C_READ, C_FREE, C_FLUSH, C_START, C_CHANGE,
	C_DETACH, C_ATTACH, C_STATS, C_OBSERVE, C_STATE, C_CAPABILITIES,
	C_BUGREPORT, C_CLONE, C_LAST = C_CLONE,
};

/* Producer: InitializeConnection. */
void client_initialize(struct client *c, const char *name);
/* Producer: RegisterDataSource. */
void client_register(struct client *c, const char *data_source);
/* Consumer: EnableTracing with a config in protobuf text. */
uint64_t client_enable(struct client *c, const char *config, int fd);
/* Consumer: how often this text is in what ReadBuffers gives. */
size_t client_count_in_trace(struct client *cons, const char *text);
/* One field of a reply's message; false: absent. */
bool reply_field(const struct reply *r, uint32_t number, struct pb_field *f);
/* A string field contains text. */
bool reply_says(const struct reply *r, uint32_t number, const char *text);

/* An args writer with one field, for the shorter calls. */
struct pb_writer *args_uint(uint32_t field, uint64_t v);
struct pb_writer *args_string(uint32_t field, const char *s);

#endif /* TESTS_UNIT_SERVICE_PORT_PORT_FIXTURE_H */
