#include "service/packet/event_log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "transport/clock/clock_snapshot.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

struct item {
	TAILQ_ENTRY(item) link;
	bool is_trigger;
	size_t len;
	uint8_t data[];
};

TAILQ_HEAD(item_list, item);

/* In the order in which they happen. */
enum lasting {
	LASTING_START_TRIGGER,
	LASTING_STARTED,
	LASTING_ALL_STARTED,
};
_Static_assert(LASTING_ALL_STARTED + 1 == EVENT_LOG_LASTING, "all have a place");

struct event_log {
	struct item *lasting[EVENT_LOG_LASTING]; /* copies; NULL: not yet */
	struct item_list queue[2];
	size_t n[2];
	bool with_events;
	bool with_snapshots;
	uint32_t primary_clock;
	int32_t uid;
	struct pb_writer w;
};

struct event_log *
event_log_new(bool with_events, bool with_snapshots, uint32_t primary_clock)
{
	struct event_log *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	TAILQ_INIT(&l->queue[0]);
	TAILQ_INIT(&l->queue[1]);
	l->with_events = with_events;
	l->with_snapshots = with_snapshots;
	l->primary_clock = primary_clock;
	l->uid = (int32_t)getuid();
	pb_writer_init(&l->w);
	return l;
}

void
event_log_free(struct event_log *l)
{
	size_t i;

	if (l == NULL)
		return;
	while (event_log_peek(l, EVENT_QUEUE_SNAPSHOTS, NULL) != NULL)
		event_log_pop(l, EVENT_QUEUE_SNAPSHOTS);
	while (event_log_peek(l, EVENT_QUEUE_EVENTS, NULL) != NULL)
		event_log_pop(l, EVENT_QUEUE_EVENTS);
	for (i = 0; i < EVENT_LOG_LASTING; i++)
		free(l->lasting[i]);
	pb_writer_done(&l->w);
	free(l);
}

static void
remove_item(struct event_log *l, enum event_queue q, struct item *it)
{
	TAILQ_REMOVE(&l->queue[q], it, link);
	l->n[q]--;
	free(it);
}

/*
 * Drops every second packet, but not the first, which anchors the trace: the
 * rest covers the whole time that no output has read yet.
 */
static void
thin_out(struct event_log *l, enum event_queue q)
{
	struct item *it = TAILQ_FIRST(&l->queue[q]), *drop;

	while (it != NULL && (drop = TAILQ_NEXT(it, link)) != NULL) {
		it = TAILQ_NEXT(drop, link);
		remove_item(l, q, drop);
	}
}

/* Copies the packet in l->w; NULL: no memory. */
static struct item *
item_new(const struct event_log *l)
{
	struct item *it;

	if (l->w.failed || (it = malloc(sizeof(*it) + l->w.len)) == NULL)
		return NULL;
	it->is_trigger = false;
	it->len = l->w.len;
	memcpy(it->data, l->w.data, l->w.len);
	return it;
}

static void
keep_lasting(struct event_log *l, enum lasting which)
{
	if (l->lasting[which] == NULL)
		l->lasting[which] = item_new(l);
}

/*
 * Moves the packet in l->w to the end (or front) of a queue.  NULL: no memory.
 */
static struct item *
keep(struct event_log *l, enum event_queue q, bool front)
{
	struct item *it = item_new(l);
	size_t max = q == EVENT_QUEUE_SNAPSHOTS ? EVENT_LOG_SNAPSHOTS_MAX :
	    EVENT_LOG_EVENTS_MAX;

	if (it != NULL) {
		if (l->n[q] >= max && q == EVENT_QUEUE_SNAPSHOTS)
			thin_out(l, q);
		else if (l->n[q] >= max)
			remove_item(l, q, TAILQ_FIRST(&l->queue[q]));
		if (front)
			TAILQ_INSERT_HEAD(&l->queue[q], it, link);
		else
			TAILQ_INSERT_TAIL(&l->queue[q], it, link);
		l->n[q]++;
	}
	pb_writer_done(&l->w);
	pb_writer_init(&l->w);
	return it;
}

struct event_log *
event_log_clone(const struct event_log *l)
{
	struct event_log *c;
	const struct item *it;
	struct item *copy;
	int q;

	c = event_log_new(l->with_events, l->with_snapshots, l->primary_clock);
	if (c == NULL)
		return NULL;
	for (q = 0; q < 2; q++)
		TAILQ_FOREACH(it, &l->queue[q], link) {
			pb_put_raw(&c->w, it->data, it->len);
			copy = keep(c, (enum event_queue)q, false);
			if (copy != NULL)
				copy->is_trigger = it->is_trigger;
		}
	return c;
}

void
event_log_clocks_now(const struct event_log *l, struct pb_writer *w)
{
	struct clock_reading clocks[CLOCK_READINGS_MAX];
	struct clock_snapshot now;
	size_t n;

	if (!l->with_snapshots)
		return;
	clock_snapshot_take(&now);
	n = clock_snapshot_list(&now, clocks);
	service_packets_clock_snapshot(w, l->uid, clocks, n, l->primary_clock);
}

void
event_log_snapshot(struct event_log *l)
{
	if (!l->with_snapshots)
		return;
	event_log_clocks_now(l, &l->w);
	keep(l, EVENT_QUEUE_SNAPSHOTS, false);
}

void
event_log_event(struct event_log *l, enum service_event event)
{
	if (!l->with_events)
		return;
	service_packets_event(&l->w, l->uid, loop_boottime_ns(), event);
	if (event == SERVICE_EVENT_TRACING_STARTED)
		keep_lasting(l, LASTING_STARTED);
	else if (event == SERVICE_EVENT_ALL_DATA_SOURCES_STARTED)
		keep_lasting(l, LASTING_ALL_STARTED);
	keep(l, EVENT_QUEUE_EVENTS, false);
}

void
event_log_slow(struct event_log *l, enum service_slow_event event,
    const struct service_slow_source *sources, size_t n)
{
	if (!l->with_events)
		return;
	service_packets_slow_sources(&l->w, l->uid, loop_boottime_ns(), event,
	    sources, n);
	keep(l, EVENT_QUEUE_EVENTS, false);
}

void
event_log_buffer_cloned(struct event_log *l, uint32_t buffer)
{
	if (!l->with_events)
		return;
	service_packets_buffer_cloned(&l->w, l->uid, loop_boottime_ns(),
	    buffer);
	keep(l, EVENT_QUEUE_EVENTS, false);
}

void
event_log_trigger(struct event_log *l, const struct service_trigger *t)
{
	struct item *it;

	service_packets_trigger(&l->w, l->uid, t);
	if (l->lasting[LASTING_STARTED] == NULL)
		keep_lasting(l, LASTING_START_TRIGGER);
	if ((it = keep(l, EVENT_QUEUE_EVENTS, false)) != NULL)
		it->is_trigger = true;
}

void
event_log_drop_triggers(struct event_log *l)
{
	struct item *it = TAILQ_FIRST(&l->queue[EVENT_QUEUE_EVENTS]), *next;

	for (; it != NULL; it = next) {
		next = TAILQ_NEXT(it, link);
		if (it->is_trigger)
			remove_item(l, EVENT_QUEUE_EVENTS, it);
	}
}

void
event_log_clone_trigger(struct event_log *l, const struct service_trigger *t)
{
	service_packets_clone_trigger(&l->w, l->uid, t);
	keep(l, EVENT_QUEUE_EVENTS, true);
}

void
event_log_session(struct event_log *l, const struct service_session_event *e)
{
	service_packets_session_event(&l->w, l->uid, loop_boottime_ns(), e);
	keep(l, EVENT_QUEUE_EVENTS, false);
}

const uint8_t *
event_log_peek(const struct event_log *l, enum event_queue q, size_t *len)
{
	const struct item *it = TAILQ_FIRST(&l->queue[q]);

	if (it == NULL)
		return NULL;
	if (len != NULL)
		*len = it->len;
	return it->data;
}

const uint8_t *
event_log_lasting(const struct event_log *l, size_t i, size_t *len)
{
	if (l->lasting[i] == NULL)
		return NULL;
	*len = l->lasting[i]->len;
	return l->lasting[i]->data;
}

void
event_log_pop(struct event_log *l, enum event_queue q)
{
	remove_item(l, q, TAILQ_FIRST(&l->queue[q]));
}
