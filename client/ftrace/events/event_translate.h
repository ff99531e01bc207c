/*
 * event_translate: a record of the kernel's as a FtraceEvent.
 *
 * Pure: bytes and a plan in, bytes out.  Input is hostile as far as memory
 * goes: a record that is too short, or whose text lies outside of it, is
 * EVENT_BROKEN and leaves the packet as it was.
 */
#ifndef CLIENT_FTRACE_EVENTS_EVENT_TRANSLATE_H
#define CLIENT_FTRACE_EVENTS_EVENT_TRANSLATE_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct event_plan;
struct pid_notes;
struct printk_strings;
struct symbol_index;
struct tributary_packet;

/* Tables that records refer to; all borrowed, none is NULL. */
struct translate_env {
	struct symbol_index *symbols; /* addresses are added */
	const struct printk_strings *strings;
	struct pid_notes *pids; /* threads are added */
};

enum translate_verdict {
	EVENT_DONE,     /* written */
	EVENT_FILTERED, /* not asked for; nothing is written */
	EVENT_BROKEN,   /* no such record; nothing is written */
	/* The packet has failed: no memory, or too long.  It is dropped. */
	EVENT_NO_ROOM,
};

/*
 * Appends the record as a field `event` of the FtraceEventBundle that is open
 * in out.  time is in the units of the bundle's clock; data are the record's
 * len bytes, common_type first, of the event that the plan is for.
 */
enum translate_verdict event_translate(const struct event_plan *plan,
    uint64_t time, const uint8_t *data, size_t len,
    const struct translate_env *env, struct tributary_packet *out) MUST_CHECK;

#endif /* CLIENT_FTRACE_EVENTS_EVENT_TRANSLATE_H */
