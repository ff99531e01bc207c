#include "client/web/web_source.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/library/control.h"
#include "client/show/top_counts.h"
#include "client/web/web_snapshot.h"
#include "protos/control.pb-c.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

struct web_source {
	struct loop *loop;
	const struct addr *addr;
	const struct dial_options *how;
	void (*published)(void *arg);
	void *arg;
	struct loop_timer *timer; /* while asking */
	struct control *control;  /* owned; NULL: to be connected */
	struct loop_call drop_call;
	bool asking;
	bool proven;              /* control has answered a question before */
	enum web_wish wish;       /* of the question under way */
	struct web_snapshot *next; /* owned; the answer so far */
	struct top_counts sessions, machines, producers;

	pthread_mutex_t lock; /* of what follows */
	struct web_snapshot *newest[WEB_WISHES]; /* a reference each, or NULL */
	bool wanted[WEB_WISHES];
	struct loop_post post;
};

/* ---- copies ---- */

/* NULL: no memory. */
static void *
copy(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(len + 1);
	ProtobufCMessage *out;

	if (bytes == NULL)
		return NULL;
	protobuf_c_message_pack(m, bytes);
	out = protobuf_c_message_unpack(m->descriptor, NULL, len, bytes);
	free(bytes);
	return out;
}

/* The rates of counters since the answer before, in the order of the answer. */
static void
take_rates(struct web_rates *to, struct top_counts *kept,
    const struct top_count *counts, size_t n)
{
	struct top_counts next = { 0 };
	struct top_rates r;
	size_t i;

	if ((to->all = calloc(n + 1, sizeof(*to->all))) == NULL)
		return;
	if (!top_counts_begin(&next, n, loop_now_ms()))
		return;
	for (i = 0; i < n; i++) {
		r = top_counts_note(kept, &next, counts[i]);
		to->all[i] = r.known ? r.bytes : -1;
	}
	to->n = n;
	top_counts_keep(kept, &next);
}

/* ---- questions ---- */

static void ask(struct web_source *s);

static void
drop_cb(void *arg)
{
	struct web_source *s = arg;

	control_free(s->control);
	s->control = NULL;
	ask(s);
}

/* Hands the snapshot over; why NULL: it is complete. */
static void
publish(struct web_source *s, const char *why)
{
	struct web_snapshot *old[WEB_WISHES] = { NULL }, *made = s->next;
	size_t i;

	s->next = NULL;
	s->asking = false;
	s->proven = why == NULL;
	loop_timer_clear(s->timer);
	if (why != NULL) {
		snprintf(made->why, sizeof(made->why), "%s", why);
		/* Its next answers would be those to these questions. */
		loop_defer(s->loop, &s->drop_call, drop_cb, s);
	}
	made->at_ms = loop_now_ms();
	pthread_mutex_lock(&s->lock);
	for (i = 0; i <= (size_t)s->wish; i++) {
		old[i] = s->newest[i];
		s->newest[i] = web_snapshot_ref(made);
	}
	pthread_mutex_unlock(&s->lock);
	for (i = 0; i < WEB_WISHES; i++)
		web_snapshot_unref(old[i]);
	web_snapshot_unref(made);
	s->published(s->arg);
	ask(s);
}

/*
 * The answer is that there is none.  A connection that answered before may be
 * one to a collector that was started again since: the same is asked by a new
 * one then.
 */
static void
fail(struct web_source *s, const char *why)
{
	if (!s->proven) {
		publish(s, why);
		return;
	}
	s->proven = s->asking = false;
	loop_timer_clear(s->timer);
	web_snapshot_unref(s->next);
	s->next = NULL;
	pthread_mutex_lock(&s->lock);
	s->wanted[s->wish] = true;
	pthread_mutex_unlock(&s->lock);
	loop_defer(s->loop, &s->drop_call, drop_cb, s);
}

static void
metrics_cb(void *arg, const Tributary__QueryMetricsReply *r, const char *why)
{
	struct web_source *s = arg;

	if (!s->asking)
		return;
	if (r != NULL)
		s->next->metrics = copy(&r->base);
	/* Older collectors have the rest. */
	if (r == NULL && (s->wish == WEB_WISH_METRICS ||
	    !control_is_foreign(s->control)))
		fail(s, why);
	else if (s->wish == WEB_WISH_METRICS)
		publish(s, NULL);
}

static void
recordings_cb(void *arg, const Tributary__QueryRecordingsReply *r,
    const char *why)
{
	struct web_source *s = arg;

	if (s->asking && r != NULL)
		s->next->recordings = copy(&r->base);
}

static void
producers_cb(void *arg, const Tributary__QueryProducersReply *r,
    const char *why)
{
	struct web_source *s = arg;
	struct top_count *counts;
	size_t i;

	if (!s->asking || r == NULL ||
	    (counts = calloc(r->n_producers + 1, sizeof(*counts))) == NULL)
		return;
	s->next->producers = copy(&r->base);
	for (i = 0; i < r->n_producers; i++) {
		counts[i].id = r->producers[i]->id;
		counts[i].bytes = r->producers[i]->bytes;
	}
	take_rates(&s->next->producer_rates, &s->producers, counts,
	    r->n_producers);
	free(counts);
}

/* The last of the answers for WEB_WISH_MACHINES. */
static void
last_machines(struct web_source *s, const Tributary__QueryMachinesReply *r,
    const char *why)
{
	if (r == NULL) {
		fail(s, why);
		return;
	}
	s->next->machines = copy(&r->base);
	publish(s, NULL);
}

static void
machines_cb(void *arg, const Tributary__QueryMachinesReply *r, const char *why)
{
	struct web_source *s = arg;
	struct top_count *counts;
	size_t i;

	if (s->asking && s->wish == WEB_WISH_MACHINES) {
		last_machines(s, r, why);
		return;
	}
	if (!s->asking || r == NULL ||
	    (counts = calloc(r->n_machines + 1, sizeof(*counts))) == NULL)
		return;
	s->next->machines = copy(&r->base);
	for (i = 0; i < r->n_machines; i++) {
		counts[i].id = r->machines[i]->id;
		counts[i].bytes = r->machines[i]->bytes_unpacked;
	}
	take_rates(&s->next->machine_rates, &s->machines, counts,
	    r->n_machines);
	free(counts);
}

static uint64_t
bytes_of(const Tributary__SessionState *s)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		n += s->buffers[i]->bytes_written;
	return n;
}

/* The last of the answers. */
static void
sessions_cb(void *arg, const Tributary__QuerySessionsReply *r, const char *why)
{
	struct web_source *s = arg;
	struct top_count *counts;
	size_t i;

	if (!s->asking)
		return;
	if (r == NULL) {
		fail(s, why);
		return;
	}
	s->next->sessions = copy(&r->base);
	counts = calloc(r->n_sessions + 1, sizeof(*counts));
	for (i = 0; counts != NULL && i < r->n_sessions; i++) {
		counts[i].id = r->sessions[i]->id;
		counts[i].bytes = bytes_of(r->sessions[i]);
	}
	if (counts != NULL)
		take_rates(&s->next->session_rates, &s->sessions, counts,
		    r->n_sessions);
	free(counts);
	publish(s, NULL);
}

static void
late_cb(void *arg)
{
	/* Not fail(): who waits has waited for long enough. */
	publish(arg, "the collector does not answer");
}

static bool
take_wish(struct web_source *s)
{
	bool any = false;
	size_t i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < WEB_WISHES; i++) {
		if (s->wanted[i]) {
			s->wish = (enum web_wish)i;
			any = true;
		}
		s->wanted[i] = false;
	}
	pthread_mutex_unlock(&s->lock);
	return any;
}

/* Asks what is wanted, unless a question is under way: publish() goes on. */
static void
ask(struct web_source *s)
{
	static const struct control_sessions all;
	char err[WEB_WHY_MAX];

	if (s->asking || loop_call_waits(&s->drop_call) || !take_wish(s))
		return;
	if ((s->next = web_snapshot_new()) == NULL)
		return;
	s->asking = true;
	loop_timer_set(s->timer, WEB_ANSWER_MS, 0);
	if (s->control == NULL)
		s->control = control_new(s->loop, s->addr, s->how, err,
		    sizeof(err));
	if (s->control == NULL) {
		publish(s, err);
		return;
	}
	control_query_metrics(s->control, metrics_cb, s);
	if (s->wish == WEB_WISH_MACHINES)
		control_query_machines(s->control, machines_cb, s);
	if (s->wish != WEB_WISH_ALL)
		return;
	control_query_recordings(s->control, recordings_cb, s);
	control_query_producers(s->control, producers_cb, s);
	control_query_machines(s->control, machines_cb, s);
	control_query_sessions(s->control, &all, sessions_cb, s);
}

static void
post_cb(void *arg)
{
	ask(arg);
}

struct web_snapshot *
web_source_get(struct web_source *s, enum web_wish wish, uint64_t since_ms)
{
	struct web_snapshot *found;

	pthread_mutex_lock(&s->lock);
	found = s->newest[wish];
	if (found != NULL && found->at_ms >= since_ms) {
		found = web_snapshot_ref(found);
	} else {
		found = NULL;
		s->wanted[wish] = true;
	}
	pthread_mutex_unlock(&s->lock);
	if (found == NULL)
		loop_post(s->loop, &s->post, post_cb, s);
	return found;
}

/* ---- the source ---- */

struct web_source *
web_source_new(struct loop *l, const struct addr *a,
    const struct dial_options *how, void (*published)(void *arg), void *arg)
{
	struct web_source *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->loop = l;
	s->addr = a;
	s->how = how;
	s->published = published;
	s->arg = arg;
	pthread_mutex_init(&s->lock, NULL);
	if ((s->timer = loop_timer_new(l, late_cb, s)) == NULL) {
		web_source_free(s);
		return NULL;
	}
	return s;
}

void
web_source_free(struct web_source *s)
{
	size_t i;

	if (s == NULL)
		return;
	control_free(s->control);
	loop_cancel(s->loop, s);
	loop_timer_free(s->timer);
	web_snapshot_unref(s->next);
	for (i = 0; i < WEB_WISHES; i++)
		web_snapshot_unref(s->newest[i]);
	top_counts_done(&s->sessions);
	top_counts_done(&s->machines);
	top_counts_done(&s->producers);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
