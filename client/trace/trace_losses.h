/*
 * trace_losses: a session's losses by cause, from the service's TraceStats.
 *
 * Loss marks in single packets are counted by trace_summary.  Pure.
 */
#ifndef CLIENT_TRACE_TRACE_LOSSES_H
#define CLIENT_TRACE_TRACE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Perfetto__Protos__TraceStats;

enum trace_loss_place {
	TRACE_LOSS_IN_SESSION,
	TRACE_LOSS_BY_RELAY,     /* data of `machine`, on its link */
	TRACE_LOSS_BY_COLLECTOR, /* the same, at the collector's end of it */
	TRACE_LOSS_IN_KERNEL,    /* of `machine`, on processors of it */
};
/* Room for "CPUs 0, 1, 2, 3 and 8188 more". */
#define TRACE_LOSS_CPUS_MAX 64u

/* A cause of losses, with their number. */
struct trace_loss {
	uint64_t count;
	const char *unit;  /* "chunk", "packet", "patch", "flush", "event"... */
	const char *cause; /* reads after "3 chunks"; static */
	const char *hint;  /* remedy, or NULL; static */
	int buffer;        /* index in the config; -1: of no buffer */
	uint64_t bytes;    /* 0: not known */
	enum trace_loss_place place;
	uint32_t machine; /* where the place has one; 0: the collector's own */
	char cpus[TRACE_LOSS_CPUS_MAX]; /* "CPU 0", or "" */
	bool how_much_unknown; /* count is 1 then, a placeholder */
	bool at_least;         /* count is a lower bound */
};

/* Most pairs of machine and cause of links; further pairs are left out. */
#define TRACE_LOSSES_LINKS_MAX 64u

/*
 * Stores the causes with a count above 0 in out, up to max, in a fixed order.
 * Returns how many there are, which may be more than max.  The texts are
 * static.
 */
size_t trace_losses_list(const struct Perfetto__Protos__TraceStats *stats,
    struct trace_loss *out, size_t max);

/* Whether it is of a machine's link. */
bool trace_loss_on_link(const struct trace_loss *l);
/* Says where a loss on a link happened: "lost by its relay". */
const char *trace_loss_where(const struct trace_loss *l);

#define TRACE_LOSS_AMOUNT_MAX 64u
/* "3 chunks", "at least 1 packet", "an unknown number of packets".  Returns out. */
char *trace_loss_amount(char out[TRACE_LOSS_AMOUNT_MAX],
    const struct trace_loss *l);

/*
 * "3 chunks (12 KiB) of buffer 0 overwritten in the ring buffer by newer data",
 * "12 packets of machine 7 lost by its relay: spool full",
 * "5 events overwritten unread in the kernel's ftrace buffer, on CPU 0 of
 * machine 7".  Returns out.
 */
char *trace_loss_text(char *out, size_t size, const struct trace_loss *l);

/* Sum of the counts of all causes but flushes, in mixed units. */
uint64_t trace_losses_total(const struct Perfetto__Protos__TraceStats *stats);

#endif /* CLIENT_TRACE_TRACE_LOSSES_H */
