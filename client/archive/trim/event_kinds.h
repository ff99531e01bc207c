/*
 * event_kinds: which packets are events, so that a trace without them is as
 * good a trace, and when those of a packet took place.  Untrusted input.  Pure.
 */
#ifndef CLIENT_ARCHIVE_TRIM_EVENT_KINDS_H
#define CLIENT_ARCHIVE_TRIM_EVENT_KINDS_H

#include <stdbool.h>
#include <stdint.h>

struct packet_facts;

/* Whether later packets' values may count from this one's: it has to stay. */
enum event_kind {
	EVENT_NONE,    /* not an event, or a kind that is not known */
	EVENT_COUNTER, /* stays where a track counts up from value to value */
	EVENT_PLAIN,
	EVENT_FTRACE,  /* many events, each with its own time */
};

enum event_kind event_kind_of(const struct packet_facts *f);

/*
 * First and last time of the events in a packet of EVENT_FTRACE, on the boot
 * clock of its machine.  false: not known, or they have other data with them.
 */
bool event_ftrace_span(const struct packet_facts *f, uint64_t *first,
    uint64_t *last);
/* Whether a packet describes a track whose values are increments. */
bool event_is_incremental_track(const struct packet_facts *f);

#endif /* CLIENT_ARCHIVE_TRIM_EVENT_KINDS_H */
