/*
 * local_fixture: local producers behind socketpairs, at a relay without a link:
 * what goes upward is noted.
 */
#ifndef TESTS_UNIT_RELAY_PRODUCERS_LOCAL_FIXTURE_H
#define TESTS_UNIT_RELAY_PRODUCERS_LOCAL_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/producers/producers.h"
#include "relay/producers/upstream.h"
#include "relay/settings/settings.h"
#include "transport/link/link_wire.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define SAID_MAX 8192

/* What was put, or reserved and committed. */
struct said {
	uint32_t channel;
	enum link_up kind;
	uint8_t *data;
	size_t len;
	uint64_t value;
	bool is_data; /* LINK_UP_COMMIT: a chunk */
};

struct locals {
	struct loop *loop;
	struct relay_settings settings;
	struct producers *producers;
	struct rpc_stats stats;
	uint32_t last_channel;
	bool all_has_arrived; /* what has_arrived() says */
	char dir[64];
	int dirfd;

	struct said said[SAID_MAX];
	size_t n_said;
	size_t seen; /* by said_next() */
	/* What the next chunks get; after room_left of them. */
	enum upstream_room room;
	size_t room_left;
	uint8_t *reserved;
	size_t reserved_max;
	bool reserved_data;
	struct link_loss losses[64];
	size_t n_losses;
	size_t puts_unannounced; /* against upstream.h's rules */
};

int locals_setup(void **state);
int locals_teardown(void **state);
/* In a folder that there is. */
struct locals *locals_new(const char *dir);
void locals_start(struct locals *t);
void locals_accept(struct locals *t, int fd);
/* Ends all connections and the producers. */
void locals_stop(struct locals *t);

/* The next thing said upward of this kind, waited for; others are skipped. */
struct client;
const struct said *said_next(struct locals *t, enum link_up kind);
size_t said_count(const struct locals *t, enum link_up kind);
/* How many commits with chunks. */
size_t said_chunks(const struct locals *t);
void said_forget(struct locals *t);

/* A chunk as it went up. */
struct up_chunk {
	uint32_t buffer;
	bool incomplete;
	struct shm_chunk chunk;
};
void said_chunk(const struct said *s, struct up_chunk *out);
/* The id of a flush acknowledgement; 0: it is none. */
uint64_t said_flush(const struct said *s);

#define REPLIES_MAX 512

struct reply {
	uint64_t request;
	bool ok;
	bool more;
	int fd;
	uint8_t *msg;
	size_t len;
};

/* A producer; replies are noted in the order in which they came. */
struct client {
	struct locals *t;
	int fd; /* -1: closed */
	uint64_t last_request;
	uint64_t commands; /* request of GetAsyncCommand */
	size_t taken;      /* commands */
	struct reply replies[REPLIES_MAX];
	size_t n_replies;
	uint8_t *in;
	size_t in_len;
	bool closed;
	struct shm *shm; /* as it came */
};

/* Methods, by their position in wire-format.md. */
enum {
	P_INITIALIZE = 1, P_REGISTER, P_UNREGISTER, P_COMMIT, P_COMMANDS,
	P_REGISTER_WRITER, P_UNREGISTER_WRITER, P_STARTED, P_STOPPED,
	P_TRIGGERS, P_SYNC, P_UPDATE, P_LAST = P_UPDATE,
};

/* Connects and binds.  tcp: where descriptors cannot travel. */
void client_open(struct client *c, struct locals *t, bool tcp);
/* Over a socket that leads to a relay. */
void client_over(struct client *c, struct locals *t, int fd);
/* InitializeConnection, RegisterDataSource "ds", GetAsyncCommand. */
void client_greet(struct client *c, const char *name);
/* Both. */
void client_ready(struct client *c, struct locals *t, const char *name);
void client_close(struct client *c);
void client_turn(struct client *c);
/* NULL, or what passes time in those turns, where a test has its own time. */
extern void (*client_pass_time)(void);
/* args is taken over; NULL: none.  Returns the request's id. */
uint64_t client_send(struct client *c, uint32_t method, struct pb_writer *args,
    int fd);
const struct reply *client_wait(struct client *c, uint64_t request, size_t n);
const struct reply *client_call(struct client *c, uint32_t method,
    struct pb_writer *args);
/* The next command: its field's number, and what is in it. */
uint32_t client_command(struct client *c, struct pb_field *f, int *fd);
/* Whether one is there already, after a Sync. */
bool client_has_command(struct client *c);
void client_sync(struct client *c);
void client_register(struct client *c, const char *name, bool no_flush,
    bool notifies_stop);
/* A field of a message; fails the test when it is absent. */
uint64_t uint_in(const uint8_t *msg, size_t len, uint32_t field);
bool has_field(const uint8_t *msg, size_t len, uint32_t field,
    struct pb_field *f);
const char *error_of(const struct reply *r);

struct pb_writer *args_uint(uint32_t field, uint64_t v);
struct pb_writer *args_string(uint32_t field, const char *s);
struct pb_writer *args_two(uint64_t one, uint64_t two);

/* ---- from upward ---- */

/* SetupDataSource and StartDataSource of "ds" with the collector's ids. */
void up_start(struct locals *t, uint32_t channel, uint64_t instance,
    uint64_t session, uint32_t buffer, const char *name);
/* SetupTracing. */
void up_set_up_tracing(struct locals *t, uint32_t channel, uint64_t page_kb);
void up_stop(struct locals *t, uint32_t channel, uint64_t instance);
void up_flush(struct locals *t, uint32_t channel, uint64_t request,
    const uint64_t *instances, size_t n);

/*
 * The producer takes SetupTracing (attaching the memory the first time),
 * SetupDataSource and StartDataSource.
 */
struct started {
	uint64_t id;
	uint32_t buffer;
};
struct started client_started(struct client *c);

/* A chunk of one packet of these bytes, in its memory. */
struct shm_slot client_chunk(struct client *c, uint16_t writer, uint32_t id,
    const char *packet, bool complete);
void client_commit(struct client *c, const struct shm_slot *slot,
    uint32_t buffer);

#endif /* TESTS_UNIT_RELAY_PRODUCERS_LOCAL_FIXTURE_H */
