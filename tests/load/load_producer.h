/*
 * load_producer: a producer with one data source, as fast as C makes it.
 *
 * Answers the daemon's commands by itself; the test says what is written when
 * an instance starts, and may write more when it is flushed.
 */
#ifndef TESTS_LOAD_LOAD_PRODUCER_H
#define TESTS_LOAD_LOAD_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/load/load_conn.h"

#define LOAD_INSTANCES 16

struct shm;

struct load_instance {
	uint64_t id;
	uint32_t buffer; /* global id: target_buffer */
	bool started;
	bool stopped;
};

struct load_producer {
	struct load_conn conn;
	uint64_t commands; /* request id of GetAsyncCommand */
	struct shm *shm;   /* NULL: emulation, or not set up yet */
	struct load_instance instances[LOAD_INSTANCES];
	size_t n_instances;
	size_t n_started;
	size_t n_stopped;
	bool ended; /* every instance was stopped */
};

/* shm_size 0: the daemon's default.  Returns when the source is registered. */
void load_producer_open(struct load_producer *p, const char *address,
    const char *name, const char *source, uint32_t shm_size);
void load_producer_close(struct load_producer *p);

/* Serves commands of n producers until each had `count` instances started. */
void load_producers_wait_started(struct load_producer *ps, size_t n,
    size_t count);
/* Serves commands until every instance of each was stopped. */
void load_producers_wait_stopped(struct load_producer *ps, size_t n);
/* A reply that belongs to no call of the test: a command, perhaps. */
void load_producer_handle(struct load_producer *p, const struct load_reply *r);

/*
 * One chunk, header included, that a writer of this producer committed.  Over
 * shared memory it waits for a free chunk; commits are gathered, see
 * load_producer_sync().
 */
void load_producer_chunk(struct load_producer *p, uint32_t buffer,
    uint16_t writer, uint32_t chunk_id, uint16_t fragments, uint8_t flags,
    const uint8_t *payload, size_t len);
/* Commits what was gathered and waits until the daemon has taken it. */
void load_producer_sync(struct load_producer *p);

#endif /* TESTS_LOAD_LOAD_PRODUCER_H */
