/*
 * device_internal: the parts of a device: its connection (device.c), what it is
 * told to do (device_command.c), and what it writes (device_write.c).
 */
#ifndef TESTS_BENCH_LOAD_DEVICE_INTERNAL_H
#define TESTS_BENCH_LOAD_DEVICE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/chunker.h"
#include "tests/bench/load/device.h"
#include "tests/bench/load/load_ledger.h"

#define DEVICE_INSTANCES_MAX 256u
#define DEVICE_WAITING_MAX   32u /* commits that wait for their reply */
#define DEVICE_PAGE          4096u
/* A frame's worth of chunks, or a block's. */
#define DEVICE_COMMIT_MAX    (80u << 10)

struct device_instance {
	uint64_t id;
	uint32_t buffer;
	uint32_t session;
	bool started;
	bool stopping;
	bool told; /* that it has stopped */
};

struct device_sequence {
	struct chunker chunker;
	uint64_t instance;
	uint32_t buffer;
	uint16_t writer;
	uint32_t key;
	bool committed_all; /* the last ticket covers all */
	uint64_t last_ticket; /* 0: none is waited for */
	uint64_t asked;       /* packets that a ticket covers */
};

struct device_waiting {
	uint64_t ticket;
	uint32_t key;
	uint64_t sure; /* packets, when it is answered */
	uint64_t sent_us;
};

/* A chunk that found no room in shared memory. */
struct device_held {
	struct device_held *next;
	uint32_t key;
	uint32_t buffer;
	uint16_t writer;
	uint32_t chunk;
	uint16_t fragments;
	uint8_t flags;
	size_t len;
	uint8_t payload[CHUNKER_BYTES];
};

/* A command that a slow device acts on later. */
struct device_later {
	struct device_later *next;
	uint64_t due_ms;
	size_t len;
	int fd;
	uint8_t msg[];
};

struct device {
	struct device_shared *shared;
	uint32_t index;
	uint32_t connection;
	enum load_slow slow;
	struct line *line;
	bool up;
	bool ready;
	bool ending; /* cleanly, when all is quiet */
	uint64_t registration; /* ticket */
	struct shm *shm;
	struct loop_timer *timer;
	struct loop_timer *slow_timer;
	bool rests; /* reads slowly, and does not read now */
	struct device_later *later, **later_end;

	struct device_instance *instances; /* owned, as the next */
	size_t n_instances;
	struct device_sequence *sequences;
	size_t n_sequences;
	size_t turn; /* whose it is */
	bool had_sequences;
	uint16_t next_writer;
	uint64_t flush; /* asked for and not answered; 0: none */

	struct device_waiting waiting[DEVICE_WAITING_MAX];
	size_t waiting_at, n_waiting;
	uint32_t unasked; /* commits since the last that asked */
	struct device_held *held, **held_end;

	/* While a commit is being made. */
	struct device_sequence *making;
	uint32_t made; /* chunks in it */

	uint64_t last_ms;
	double owed; /* bytes that the rate allows */
	uint64_t packets, bytes;
};

/* ---- device_write.c ---- */
void device_write_cb(void *arg);
/* Something changed that may let it write, flush, stop or end. */
void device_go_on(struct device *d);
void device_replied(struct device *d, uint64_t ticket, bool ok);
/* Sequences and what they wait for go. */
void device_drop_writing(struct device *d, enum load_end end);
void device_drop_sequence(struct device *d, size_t i, enum load_end end);
/*
 * Commits all that is written of a sequence (NULL: of none) and asks where it
 * was not asked.  Where memory is full, the flush is left for later.
 */
void device_commit_all(struct device *d, struct device_sequence *s,
    uint64_t flush);

/* ---- device_command.c ---- */
/* A GetAsyncCommandResponse; fd >= 0 is the callee's. */
void device_command(struct device *d, const uint8_t *msg, size_t len, int fd);
/* What is to be told when commits were taken. */
void device_settle(struct device *d);
/* Slow devices: its timer, and commands that were not acted on. */
void device_slow_cb(void *arg);
void device_drop_later(struct device *d);

/* ---- device.c ---- */
void device_call_id(struct device *d, enum line_call what, uint64_t id);

#endif /* TESTS_BENCH_LOAD_DEVICE_INTERNAL_H */
