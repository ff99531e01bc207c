/*
 * ftrace_bundle: a TracePacket with events of one processor, in the order of
 * time: FtraceEventBundle, and the names of symbols that came up in it.
 *
 * Pure, but for memory that is kept from one bundle to the next.  Knows no
 * pages: its user reads records and says of which event they are.
 */
#ifndef CLIENT_FTRACE_EVENTS_FTRACE_BUNDLE_H
#define CLIENT_FTRACE_EVENTS_FTRACE_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/ftrace/events/compact_sched.h"
#include "client/ftrace/events/event_translate.h"
#include "client/ftrace/events/print_filter.h"
#include "transport/base/compiler.h"

struct event_plan;
struct kernel_symbols;
struct syscall_filter;
struct tributary_packet;

/* Settings of a session, for all of its bundles; all borrowed. */
struct ftrace_bundle_setup {
	struct translate_env env;
	struct print_filter print;
	const struct syscall_filter *syscalls; /* NULL: all are wanted */
	const struct kernel_symbols *symbols;  /* NULL: not asked for */
	bool compact; /* sched_switch and sched_waking as columns */
};

/* Facts about the pages that a bundle is made of. */
struct ftrace_bundle_head {
	uint32_t cpu;
	bool lost; /* the kernel lost events before the bundle's first one */
	/* ftrace_bundle.end of the processor's bundle before; 0: none. */
	uint64_t previous_end;
	uint32_t clock;    /* a FtraceClock; 0: boot */
	/* With another clock than boot, where both are known: readings at one
	 * time, in ns; else 0. */
	uint64_t clock_time;
	uint64_t boot_time;
};

struct ftrace_bundle {
	struct ftrace_bundle_setup setup;
	struct tributary_packet *packet; /* borrowed, between begin and end */
	uint64_t end; /* time of the last event that was taken; see head */
	uint32_t n_events;
	uint32_t n_errors; /* FtraceError in it */
	struct compact_sched sched;
	bool any_described;
	uint8_t described[8192]; /* a bit for each event's id */
};

void ftrace_bundle_init(struct ftrace_bundle *b,
    const struct ftrace_bundle_setup *setup);
void ftrace_bundle_done(struct ftrace_bundle *b);

/*
 * Begins a bundle in a packet in which no message is open; the packet is
 * borrowed up to ftrace_bundle_end().
 */
void ftrace_bundle_begin(struct ftrace_bundle *b,
    struct tributary_packet *packet, const struct ftrace_bundle_head *head);
/*
 * Takes a record of the event that the plan is for, len bytes from common_type
 * on.  A record that is EVENT_BROKEN is told in the bundle.
 */
enum translate_verdict ftrace_bundle_add(struct ftrace_bundle *b,
    const struct event_plan *plan, uint64_t time, const uint8_t *data,
    size_t len) MUST_CHECK;
/* Tells of records that could not be read; status: a FtraceParseStatus. */
void ftrace_bundle_error(struct ftrace_bundle *b, uint64_t time,
    uint32_t status);
/* Ends it, and adds the names of symbols to the packet. */
void ftrace_bundle_end(struct ftrace_bundle *b);

/* Another bundle had better begin before the next page. */
static inline bool
ftrace_bundle_is_full(const struct ftrace_bundle *b)
{
	return b->setup.compact && compact_sched_is_full(&b->sched);
}

#endif /* CLIENT_FTRACE_EVENTS_FTRACE_BUNDLE_H */
