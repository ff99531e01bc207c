#include "client/ftrace/events/compact_sched.h"

#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/comm_text.h"
#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/pid_notes.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"

#define COLUMN_ROOM_MIN 1024u
/* Tag, length and text of a name; a number takes less. */
#define ENTRY_MAX (2 + COMM_BYTES)

#define FIELD(name) CompactSched_##name

void
compact_sched_done(struct compact_sched *c)
{
	size_t i;

	for (i = 0; i < COMPACT_COLUMNS; i++)
		free(c->columns[i].data);
	memset(c, 0, sizeof(*c));
}

static bool
grow(struct compact_column *col)
{
	size_t room = col->room == 0 ? COLUMN_ROOM_MIN : col->room * 2;
	uint8_t *data = realloc(col->data, room);

	if (data == NULL)
		return false;
	col->data = data;
	col->room = room;
	return true;
}

/* One more entry in each of these columns.  False: no memory. */
static inline bool
room(struct compact_sched *c, enum compact_column_name first,
    enum compact_column_name last)
{
	struct compact_column *col;

	for (col = &c->columns[first]; col <= &c->columns[last]; col++)
		if (UNLIKELY(col->room - col->len < ENTRY_MAX) && !grow(col))
			return false;
	col = &c->columns[COMPACT_COMMS];
	return LIKELY(col->room - col->len >= ENTRY_MAX) || grow(col);
}

static inline void
put(struct compact_sched *c, enum compact_column_name name, uint64_t v)
{
	struct compact_column *col = &c->columns[name];

	col->len = (size_t)(packet_varint(col->data + col->len, v) -
	    col->data);
}

static uint32_t
append_comm(struct compact_sched *c, const uint64_t comm[2])
{
	struct compact_column *col = &c->columns[COMPACT_COMMS];
	size_t len = comm_text_len((const uint8_t *)comm);
	uint8_t *at = col->data + col->len;

	at = packet_tag(at, FIELD(intern_table), PB_BYTES);
	at = packet_varint(at, len);
	memcpy(at, comm, len);
	col->len = (size_t)(at - col->data) + len;
	return c->n_comms++;
}

/* The index of a task's name in the table. */
static uint32_t
comm_index(struct compact_sched *c, const uint8_t *from)
{
	struct compact_comm_slot *slot;
	uint64_t comm[2], hash;
	uint32_t i;

	comm_text_load(comm, from);
	hash = (comm[0] ^ comm[1] * UINT64_C(0xff51afd7ed558ccd)) *
	    UINT64_C(0x9e3779b97f4a7c15);
	i = (uint32_t)(hash >> 40);
	for (;; i++) {
		slot = &c->slots[i & (COMPACT_COMM_SLOTS - 1)];
		if (slot->round != c->round)
			break;
		if (slot->comm[0] == comm[0] && slot->comm[1] == comm[1])
			return slot->index;
	}
	if (c->n_hashed == COMPACT_COMMS_MAX)
		return append_comm(c, comm);
	c->n_hashed++;
	slot->round = c->round;
	memcpy(slot->comm, comm, sizeof(comm));
	return slot->index = append_comm(c, comm);
}

static inline int64_t
load_i32(const uint8_t *at)
{
	int32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static inline uint64_t
load_state(const struct event_plan *plan, const uint8_t *data)
{
	uint64_t v;

	if (plan->at.state_size == 4)
		return (uint64_t)load_i32(data + plan->at.state);
	memcpy(&v, data + plan->at.state, sizeof(v));
	return v;
}

static bool
add_switch(struct compact_sched *c, const struct event_plan *plan,
    uint64_t time, const uint8_t *data, struct pid_notes *pids)
{
	int64_t pid = load_i32(data + plan->at.pid);

	if (!room(c, COMPACT_SWITCH_TIME, COMPACT_SWITCH_COMM))
		return false;
	pid_notes_add(pids, (int32_t)pid);
	put(c, COMPACT_SWITCH_TIME, time - c->switch_time);
	c->switch_time = time;
	put(c, COMPACT_SWITCH_STATE, load_state(plan, data));
	put(c, COMPACT_SWITCH_PID, (uint64_t)pid);
	put(c, COMPACT_SWITCH_PRIO, (uint64_t)load_i32(data + plan->at.prio));
	put(c, COMPACT_SWITCH_COMM, comm_index(c, data + plan->at.comm));
	return true;
}

static bool
add_waking(struct compact_sched *c, const struct event_plan *plan,
    uint64_t time, const uint8_t *data, struct pid_notes *pids)
{
	int64_t pid = load_i32(data + plan->at.pid);

	if (!room(c, COMPACT_WAKING_TIME, COMPACT_WAKING_FLAGS))
		return false;
	pid_notes_add(pids, (int32_t)pid);
	put(c, COMPACT_WAKING_TIME, time - c->waking_time);
	c->waking_time = time;
	put(c, COMPACT_WAKING_PID, (uint64_t)pid);
	put(c, COMPACT_WAKING_CPU, (uint64_t)load_i32(data + plan->at.cpu));
	put(c, COMPACT_WAKING_PRIO, (uint64_t)load_i32(data + plan->at.prio));
	put(c, COMPACT_WAKING_COMM, comm_index(c, data + plan->at.comm));
	put(c, COMPACT_WAKING_FLAGS, data[plan->at.flags]);
	return true;
}

bool
compact_sched_add(struct compact_sched *c, const struct event_plan *plan,
    uint64_t time, const uint8_t *data, struct pid_notes *pids)
{
	if (UNLIKELY(c->round == 0))
		c->round = 1;
	if (plan->compact == EVENT_PLAN_SWITCH)
		return add_switch(c, plan, time, data, pids);
	return add_waking(c, plan, time, data, pids);
}

void
compact_sched_write(struct compact_sched *c, struct tributary_packet *out)
{
	static const uint32_t fields[COMPACT_COLUMNS] = {
		[COMPACT_SWITCH_TIME] = FIELD(switch_timestamp),
		[COMPACT_SWITCH_STATE] = FIELD(switch_prev_state),
		[COMPACT_SWITCH_PID] = FIELD(switch_next_pid),
		[COMPACT_SWITCH_PRIO] = FIELD(switch_next_prio),
		[COMPACT_SWITCH_COMM] = FIELD(switch_next_comm_index),
		[COMPACT_WAKING_TIME] = FIELD(waking_timestamp),
		[COMPACT_WAKING_PID] = FIELD(waking_pid),
		[COMPACT_WAKING_CPU] = FIELD(waking_target_cpu),
		[COMPACT_WAKING_PRIO] = FIELD(waking_prio),
		[COMPACT_WAKING_COMM] = FIELD(waking_comm_index),
		[COMPACT_WAKING_FLAGS] = FIELD(waking_common_flags),
	};
	struct compact_column *col;
	size_t i;

	if (c->n_comms == 0)
		return;
	packet_begin(out, FtraceEventBundle_compact_sched);
	tributary_put_encoded(out, c->columns[COMPACT_COMMS].data,
	    c->columns[COMPACT_COMMS].len);
	for (i = 0; i < COMPACT_COLUMNS; i++) {
		col = &c->columns[i];
		if (fields[i] != 0 && col->len > 0)
			packet_put_bytes(out, fields[i], col->data, col->len);
		col->len = 0;
	}
	packet_end(out);
	c->switch_time = c->waking_time = 0;
	c->n_comms = c->n_hashed = 0;
	/* Slots of other rounds are free; none is left of 4 billion ago. */
	if (++c->round == 0)
		memset(c->slots, 0, sizeof(c->slots));
}
