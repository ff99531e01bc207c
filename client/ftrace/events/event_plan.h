/*
 * event_plan: how the records of one kernel event become messages, worked out
 * once from the kernel's format and the schema: a step for each field, without
 * names to look up.
 *
 * Pure.  Conversions are those of Perfetto's translation table: a dev_t becomes
 * the one that programs know, a `void *` the index of its symbol, text ends at
 * its first NUL.  Fields that the schema lacks, or that have no counterpart in
 * protobuf (arrays, structs), are left out.
 */
#ifndef CLIENT_FTRACE_EVENTS_EVENT_PLAN_H
#define CLIENT_FTRACE_EVENTS_EVENT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct event_format;

/* Kinds of the bytes that a step reads; what it writes follows from them. */
enum event_step_kind {
	/* Numbers, which become a varint. */
	EVENT_STEP_U8,
	EVENT_STEP_U16,
	EVENT_STEP_U32,
	EVENT_STEP_U64,
	EVENT_STEP_I8,
	EVENT_STEP_I16,
	EVENT_STEP_I32,
	EVENT_STEP_I64,
	EVENT_STEP_PID,   /* as I32; the thread is noted */
	EVENT_STEP_DEV,   /* dev_t of 4 or 8 bytes */
	EVENT_STEP_WORDS, /* array of longs, each a varint of its own */
	EVENT_STEP_SYMBOL, /* address of 4 or 8 bytes: the index of a symbol */
	/* Text. */
	EVENT_STEP_COMM, /* of 16 bytes, as the names of tasks */
	EVENT_STEP_TEXT,
	EVENT_STEP_TEXT_REST,
	EVENT_STEP_DATA_LOC,
	EVENT_STEP_REL_LOC,
	EVENT_STEP_TEXT_POINTER, /* address in printk_formats */
};

struct event_step {
	enum event_step_kind kind;
	uint16_t offset; /* in the record */
	uint16_t size;   /* bytes there */
	uint32_t field;  /* of the message */
	const char *name; /* generic events: of the field; owned by the plan */
};

/* Messages that events are written as. */
enum event_plan_form {
	EVENT_PLAN_TYPED,   /* a message of its own in FtraceEvent */
	EVENT_PLAN_GENERIC, /* GenericFtraceEvent: names in each event */
	/* Generic as well, with a descriptor once in a bundle instead. */
	EVENT_PLAN_DESCRIBED,
	EVENT_PLAN_KPROBE, /* KprobeEvent: the name, and at which end */
};

/* Events that a bundle may write as columns instead (compact_sched.h). */
enum event_plan_compact {
	EVENT_PLAN_PLAIN,
	EVENT_PLAN_SWITCH,
	EVENT_PLAN_WAKING,
};

/* Filter of a session that is asked about each record. */
enum event_plan_filter {
	EVENT_PLAN_UNFILTERED,
	EVENT_PLAN_PRINT,   /* ftrace/print: print_filter */
	EVENT_PLAN_SYSCALL, /* raw_syscalls: syscall_filter */
};

/* Offsets in sched_switch, of the next task, or in sched_waking. */
struct compact_offsets {
	uint16_t comm; /* 16 bytes */
	uint16_t pid;
	uint16_t prio;
	uint16_t state;      /* sched_switch: prev_state, of ... */
	uint16_t state_size; /* ... 4 or 8 bytes */
	uint16_t cpu;        /* sched_waking */
	uint16_t flags;      /* sched_waking: common_flags, 1 byte */
};

struct event_plan {
	uint32_t field; /* of FtraceEvent */
	uint16_t id;    /* common_type of the records */
	uint16_t size;  /* the least bytes of a record */
	uint16_t pid_offset;
	uint32_t room; /* bytes that an event takes, without text of any length */
	uint32_t n_texts; /* steps whose text may be as long as the record */
	enum event_plan_form form;
	enum event_plan_compact compact;
	struct compact_offsets at;
	enum event_plan_filter filter;
	uint32_t kprobe_type;
	const char *group; /* owned */
	const char *name;  /* owned */
	uint8_t *descriptor; /* GenericEventDescriptor, owned; or NULL */
	size_t descriptor_len;
	size_t n_steps;
	struct event_step steps[];
};

/* First field number of described events; the others follow it. */
#define EVENT_PLAN_DESCRIBED_FIRST 65536u

/*
 * The plan for events of that format.  generic says how to write it if it is
 * not well known: EVENT_PLAN_GENERIC or EVENT_PLAN_DESCRIBED, which gets a
 * field of its own, EVENT_PLAN_DESCRIBED_FIRST + the format's id.  NULL: no
 * memory.  The format is not kept.
 */
struct event_plan *event_plan_new(const struct event_format *format,
    enum event_plan_form generic) MUST_CHECK;
/*
 * The plan for a kprobe that was made for the session; name is the function's,
 * type a KprobeEvent.KprobeType.
 */
struct event_plan *event_plan_new_kprobe(const struct event_format *format,
    const char *name, uint32_t type) MUST_CHECK;
void event_plan_free(struct event_plan *p);

#endif /* CLIENT_FTRACE_EVENTS_EVENT_PLAN_H */
