/*
 * compact_sched: the sched_switch and sched_waking events of a bundle as
 * columns of numbers and a table of names.
 *
 * Pure, but for the memory of the columns, which is kept for the next bundle.
 */
#ifndef CLIENT_FTRACE_EVENTS_COMPACT_SCHED_H
#define CLIENT_FTRACE_EVENTS_COMPACT_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct event_plan;
struct pid_notes;
struct tributary_packet;

/* A power of two. */
#define COMPACT_COMM_SLOTS 256u
/* Names that are told apart; those beyond are written for each event. */
#define COMPACT_COMMS_MAX (COMPACT_COMM_SLOTS / 2)

/* Encoded values; also the table's names, which are a field each. */
struct compact_column {
	uint8_t *data; /* owned */
	size_t len;
	size_t room;
};

enum compact_column_name {
	COMPACT_COMMS,
	COMPACT_SWITCH_TIME,
	COMPACT_SWITCH_STATE,
	COMPACT_SWITCH_PID,
	COMPACT_SWITCH_PRIO,
	COMPACT_SWITCH_COMM,
	COMPACT_WAKING_TIME,
	COMPACT_WAKING_PID,
	COMPACT_WAKING_CPU,
	COMPACT_WAKING_PRIO,
	COMPACT_WAKING_COMM,
	COMPACT_WAKING_FLAGS,
	COMPACT_COLUMNS,
};

struct compact_comm_slot {
	uint64_t comm[2]; /* as comm_text_load() gives it */
	uint32_t index;
	uint32_t round; /* the bundle that it is of */
};

/* Zero-initialised is ready to use. */
struct compact_sched {
	struct compact_column columns[COMPACT_COLUMNS];
	uint64_t switch_time; /* of the last one */
	uint64_t waking_time;
	uint32_t n_comms;  /* in the table */
	uint32_t n_hashed; /* of them in slots */
	uint32_t round;
	struct compact_comm_slot slots[COMPACT_COMM_SLOTS];
};

void compact_sched_done(struct compact_sched *c);

/*
 * Takes a record of plan->size bytes at least, of a plan that is not
 * EVENT_PLAN_PLAIN.  False: no memory; the event is lost.
 */
bool compact_sched_add(struct compact_sched *c, const struct event_plan *plan,
    uint64_t time, const uint8_t *data, struct pid_notes *pids) MUST_CHECK;

/* Appends the columns to the bundle that is open in out, and forgets them. */
void compact_sched_write(struct compact_sched *c, struct tributary_packet *out);

/* So many names that the next events had better be in another bundle. */
static inline bool
compact_sched_is_full(const struct compact_sched *c)
{
	return c->n_comms >= COMPACT_COMMS_MAX / 2;
}

#endif /* CLIENT_FTRACE_EVENTS_COMPACT_SCHED_H */
