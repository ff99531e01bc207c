/*
 * fake_service: a tracing service small enough to look into, over the real
 * RPC host: it notes every call of one producer and sends commands.
 */
#ifndef TESTS_UNIT_CLIENT_LIBRARY_FAKE_SERVICE_H
#define TESTS_UNIT_CLIENT_LIBRARY_FAKE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/unit/client/library/fake_memory.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/addr.h"

struct listener;
struct loop;

struct fake_service {
	struct loop *loop;
	struct listener *listener;
	struct rpc_stats stats;
	struct addr addr; /* where it listens */
	char dir[64];

	struct rpc_conn *conn; /* the producer, or NULL */
	int connections;       /* so far */
	struct rpc_call commands; /* GetAsyncCommand */
	bool has_commands;
	bool emulate;
	bool refuse; /* reject InitializeConnection */
	bool refuse_sources; /* and RegisterDataSource */
	bool ignore_commits;
	char name[64]; /* the producer's */
	uint32_t shm_hint, page_hint;
	struct rpc_claimed_identity identity;

	/* Calls in order, as words: "init async reg:x started:1 commit ..." */
	char log[16384];
	struct shm *shm; /* the service's mapping */
	struct fake_memory memory;
};

/* Listens on a UNIX socket, or on TCP (where it emulates). */
void fake_service_init(struct fake_service *s, struct loop *l, bool tcp);
void fake_service_done(struct fake_service *s);
/* Stops and begins to listen at the same address. */
void fake_service_close(struct fake_service *s);
void fake_service_listen(struct fake_service *s);

/* Turns the loop until cond(arg), for at most ten seconds. */
bool fake_service_wait(struct fake_service *s, bool (*cond)(void *arg),
    void *arg);
/* Until the log holds this text. */
bool fake_service_wait_log(struct fake_service *s, const char *text);
bool fake_service_logged(const struct fake_service *s, const char *text);

/* Commands to the producer. */
void fake_service_setup_tracing(struct fake_service *s, size_t size,
    size_t page);
/* which: 6 sets up, 1 starts. config: encoded fields to add, may be NULL. */
void fake_service_data_source(struct fake_service *s, int which, uint64_t id,
    const char *name, uint32_t buffer, const void *config, size_t len);
void fake_service_stop(struct fake_service *s, uint64_t id);
void fake_service_flush(struct fake_service *s, uint64_t request_id,
    uint64_t id);
void fake_service_clear(struct fake_service *s, uint64_t id);
/* Any GetAsyncCommandResponse. */
void fake_service_command(struct fake_service *s, const void *msg, size_t len,
    int fd);

#endif /* TESTS_UNIT_CLIENT_LIBRARY_FAKE_SERVICE_H */
