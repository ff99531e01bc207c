/*
 * event_state: what track events keep for each instance and each sequence, and
 * the packets that a sequence's state begins with.
 */
#ifndef CLIENT_TRACING_EVENT_EVENT_STATE_H
#define CLIENT_TRACING_EVENT_EVENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tracing/event/interning.h"
#include "transport/base/compiler.h"

struct sequence;
struct tributary_packet;
struct tributary_track;

/* Clocks of a sequence of its own (64..127), as Perfetto's library has them. */
#define EVENT_CLOCK_INCREMENTAL 64u
#define EVENT_CLOCK_ABSOLUTE    65u
#define EVENT_CLOCK_BOOTTIME    6u

/* An instance's context: the TrackEventConfig of its session. */
struct event_config {
	/* Events may be written in place: incremental time, nothing added. */
	bool plain;
	bool absolute_time;
	bool no_annotations;
	bool no_dynamic_names;
	bool thread_time;
	uint64_t thread_time_period_ns;
	uint64_t unit_ns; /* of the sequence's clocks */
	uint8_t *encoded; /* the TrackEventConfig, owned */
	size_t len;
};
/* NULL: no memory. */
struct event_config *event_state_config_new(const uint8_t *data_source_config,
    size_t len) MUST_CHECK;
void event_state_config_free(struct event_config *c);

/* A sequence's state. */
struct event_state {
	uint64_t last_ns; /* of the incremental clock */
	uint64_t thread_time_ns, thread_time_at_ns; /* when it was told last */
	struct interning told;
};
void event_state_free(void *state);

/*
 * Begins the sequence's state anew: its clock, its default track, the
 * descriptors of thread and process.  false: dropped.
 */
bool event_state_begin(struct sequence *q, uint64_t now_ns);

/* Writes the descriptors of the track and its parents that are not told yet. */
bool event_state_tell_track(struct sequence *q,
    const struct tributary_track *track, uint64_t now_ns);

/* The packet's timestamp: what passed since the last one, or as configured. */
void event_state_put_time(struct tributary_packet *p,
    const struct event_config *c, struct event_state *st, uint64_t now_ns);

uint64_t thread_time_ns(void);

/* ---- This process's and this thread's tracks ---- */

uint64_t event_thread_uuid(void);
uint64_t event_thread_time_uuid(void);
void event_tracks_after_fork(void);

#endif /* CLIENT_TRACING_EVENT_EVENT_STATE_H */
