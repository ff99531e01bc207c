/*
 * event_log: queue of the service's own packets for one trace that no output
 * has read yet: clock snapshots and events of the session's life.
 *
 * Packets are encoded when the event happens, with that time.  Two bounded
 * queues keep them: when one is full, every second clock snapshot is dropped
 * (the first is always kept), or the oldest event.  Without memory a packet is
 * left out.
 */
#ifndef SERVICE_PACKET_EVENT_LOG_H
#define SERVICE_PACKET_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/packet/service_packets.h"

struct event_log;
struct pb_writer;

#define EVENT_LOG_SNAPSHOTS_MAX 64u
#define EVENT_LOG_EVENTS_MAX 1024u

/* Packets that stay true for the rest of the session. */
#define EVENT_LOG_LASTING 3u

enum event_queue { EVENT_QUEUE_SNAPSHOTS, EVENT_QUEUE_EVENTS };

/*
 * with_events false (disable_service_events): events are dropped, but for
 * triggers and sessions; with_snapshots false: clock snapshots are.
 * primary_clock: a BuiltinClock.
 */
struct event_log *event_log_new(bool with_events, bool with_snapshots,
    uint32_t primary_clock) MUST_CHECK;
void event_log_free(struct event_log *l);
/* Copies the log with its packets.  NULL: no memory. */
struct event_log *event_log_clone(const struct event_log *l) MUST_CHECK;

/* Takes a snapshot of all clocks. */
void event_log_snapshot(struct event_log *l);
void event_log_event(struct event_log *l, enum service_event event);
void event_log_slow(struct event_log *l, enum service_slow_event event,
    const struct service_slow_source *sources, size_t n);
void event_log_buffer_cloned(struct event_log *l, uint32_t buffer);
void event_log_trigger(struct event_log *l, const struct service_trigger *t);
/* Drops the packets of event_log_trigger() that were not read. */
void event_log_drop_triggers(struct event_log *l);
/* Puts the trigger that made a clone before all other events. */
void event_log_clone_trigger(struct event_log *l,
    const struct service_trigger *t);
void event_log_session(struct event_log *l,
    const struct service_session_event *e);

/*
 * The oldest packet of a queue; NULL: none.  Borrowed until the next call that
 * is not const.  len may be NULL.
 */
const uint8_t *event_log_peek(const struct event_log *l, enum event_queue q,
    size_t *len);
/* Drops the oldest packet; the queue is not empty. */
void event_log_pop(struct event_log *l, enum event_queue q);

/*
 * The i-th packet, of EVENT_LOG_LASTING, that a segment which begins in the
 * midst of the session needs, too, read or not: the trigger that started it,
 * tracing_started, and all_data_sources_started.  NULL: there was none.
 * Borrowed as above.
 */
const uint8_t *event_log_lasting(const struct event_log *l, size_t i,
    size_t *len);
/* Appends a snapshot of all clocks as of now, which the log does not keep. */
void event_log_clocks_now(const struct event_log *l, struct pb_writer *w);

#endif /* SERVICE_PACKET_EVENT_LOG_H */
