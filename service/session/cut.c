#include "service/session/cut.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/config/config.h"
#include "service/model/model.h"
#include "service/output/file_writer.h"
#include "service/output/readback.h"
#include "service/packet/event_log.h"
#include "service/session/flush.h"
#include "transport/base/log.h"

typedef Perfetto__Protos__SegmentConfig segment_pb;

enum cut_state {
	CUT_IDLE,
	CUT_RESTING,  /* `next` begins when `rest` fires */
	CUT_DUE,      /* BEGIN comes where a pass has read all */
	CUT_FLUSHING, /* flush_cb(), then the flush's done(); at the end of the */
	              /* session cut_session_stopped() */
	CUT_ENDING,   /* END comes where a pass has read all */
};

/* Why a cut is wanted; strings are owned. */
struct cut_wish {
	enum service_cut_cause cause;
	char *trigger;
	char *producer;
	uint32_t machine;
};

struct cut {
	struct session *session;
	enum cut_state state;
	uint32_t number;      /* of the newest segment that has begun */
	struct cut_wish wish; /* but in IDLE and RESTING */
	struct cut_wish next;
	bool has_next;        /* one follows; not in DUE */
	uint64_t begun_ms;    /* the last BEGIN; 0: none yet */
	struct service_cut mark;
	struct service_unanswered *unanswered; /* mark's; names are owned */
	struct loop_call call;
	struct loop_timer *timer; /* every_ms; NULL: none */
	struct loop_timer *rest;  /* at_trigger; NULL: none */
};

static void
wish_done(struct cut_wish *w)
{
	free(w->trigger);
	free(w->producer);
	memset(w, 0, sizeof(*w));
}

static void
forget_unanswered(struct cut *c)
{
	size_t i;

	for (i = 0; i < c->mark.n_unanswered; i++)
		free((char *)c->unanswered[i].producer);
	free(c->unanswered);
	c->unanswered = NULL;
	c->mark.unanswered = NULL;
	c->mark.n_unanswered = 0;
}

/* A pass at once, where the session's file makes them. */
static void
want_pass(struct cut *c)
{
	if (c->session->file != NULL)
		file_writer_want_pass(c->session->file);
}

static void begun_cb(void *arg);
static void ended_cb(void *arg);

static const struct readback_cut_ops readback_ops = {
	.begun = begun_cb,
	.ended = ended_cb,
};

static void
begin(struct cut *c)
{
	c->state = CUT_DUE;
	c->mark = (struct service_cut){
		.number = c->number + 1,
		.cause = c->wish.cause,
		.trigger = c->wish.trigger,
		.trigger_producer = c->wish.producer,
		.trigger_machine = c->wish.machine,
	};
	readback_want_cut(c->session->readback, &c->mark, &readback_ops, c);
	want_pass(c);
}

/* ---- the way of a cut, from BEGIN to END ---- */

static void
end(struct cut *c)
{
	c->state = CUT_ENDING;
	c->mark.unanswered = c->unanswered;
	readback_want_cut_end(c->session->readback);
	want_pass(c);
}

static void
unanswered_cb(struct session *s, const struct producer *p, void *arg)
{
	struct cut *c = arg;
	struct service_unanswered *grown;
	char *name;

	if (c->mark.n_unanswered == CUT_UNANSWERED_MAX)
		return;
	grown = realloc(c->unanswered, (c->mark.n_unanswered + 1) *
	    sizeof(*grown));
	if (grown == NULL)
		return;
	c->unanswered = grown;
	if ((name = strdup(p->name)) == NULL)
		return;
	grown[c->mark.n_unanswered++] = (struct service_unanswered){
		.producer = name,
		.producer_id = (int32_t)p->id,
		.machine = p->machine->id,
	};
}

static void
flushed_cb(struct session *s, bool success, void *arg)
{
	end(arg);
}

/* ClearIncrementalState comes behind BEGIN, and a flush right behind it. */
static void
flush_cb(void *arg)
{
	struct cut *c = arg;
	struct session *s = c->session;

	flush_start_cut(s, config_flush_timeout_ms(s->config), flushed_cb,
	    unanswered_cb, c);
}

static void
begun_cb(void *arg)
{
	struct cut *c = arg;
	struct session *s = c->session;

	c->number = c->mark.number;
	c->begun_ms = loop_now_ms();
	s->service->counters.segments[c->mark.cause]++;
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: segment %u begins", (unsigned long long)s->id,
	    (unsigned)c->number);
	c->state = CUT_FLUSHING;
	loop_defer(s->service->loop, &c->call, flush_cb, c);
}

static void
next_cb(void *arg)
{
	struct cut *c = arg;

	c->wish = c->next;
	memset(&c->next, 0, sizeof(c->next));
	c->has_next = false;
	if (c->rest != NULL)
		loop_timer_clear(c->rest);
	begin(c);
}

/*
 * Returns the milliseconds that a cut has to wait: one by a trigger, as every
 * producer may pull triggers at any rate, and each cut repeats a lot.
 */
static uint64_t
rest_of(const struct cut *c, const struct cut_wish *w)
{
	uint64_t since = loop_now_ms() - c->begun_ms;

	return w->cause == SERVICE_CUT_TRIGGER && c->begun_ms != 0 &&
	    c->rest != NULL && since < CUT_REST_MS ? CUT_REST_MS - since : 0;
}

static void
rest(struct cut *c, uint64_t ms)
{
	c->state = CUT_RESTING;
	loop_timer_set(c->rest, ms, 0);
}

static void
ended_cb(void *arg)
{
	struct cut *c = arg;
	uint64_t ms;

	forget_unanswered(c);
	wish_done(&c->wish);
	c->state = CUT_IDLE;
	if (!c->has_next)
		return;
	if ((ms = rest_of(c, &c->next)) > 0)
		rest(c, ms);
	else
		loop_defer(c->session->service->loop, &c->call, next_cb, c);
}

/* ---- what asks for cuts ---- */

/* Merges two wishes: the first counts, but a trigger before all others. */
static void
join(struct cut_wish *w, struct cut_wish *more)
{
	if (w->cause != SERVICE_CUT_TRIGGER &&
	    more->cause == SERVICE_CUT_TRIGGER) {
		wish_done(w);
		*w = *more;
	} else {
		wish_done(more);
	}
}

/* Takes over w. */
static uint32_t
ask(struct session *s, struct cut_wish w)
{
	struct cut *c = s->cut;
	bool waits = w.cause == SERVICE_CUT_TRIGGER;
	uint64_t ms;

	if (s->state != SESSION_STARTED || c == NULL) {
		wish_done(&w);
		return 0;
	}
	if (c->has_next) {
		join(&c->next, &w);
		if (c->state == CUT_RESTING && !waits)
			next_cb(c);
		return c->number + 1;
	}
	switch (c->state) {
	case CUT_IDLE:
		if ((ms = rest_of(c, &w)) > 0) {
			c->next = w;
			c->has_next = true;
			rest(c, ms);
			break;
		}
		c->wish = w;
		begin(c);
		break;
	case CUT_RESTING: /* it has a next one */
		break;
	case CUT_DUE:
		join(&c->wish, &w);
		readback_withdraw_cut(s->readback);
		begin(c);
		break;
	case CUT_FLUSHING:
	case CUT_ENDING:
		c->next = w;
		c->has_next = true;
		break;
	}
	return c->number + 1;
}

uint32_t
cut_ask(struct session *s, enum service_cut_cause cause)
{
	return ask(s, (struct cut_wish){ .cause = cause });
}

void
cut_at_size(struct session *s)
{
	(void)cut_ask(s, SERVICE_CUT_SIZE);
}

static bool
is_cut_at(const struct session *s, const char *trigger)
{
	const segment_pb *pb = s->config->pb->tributary_segments;
	size_t i;

	for (i = 0; pb != NULL && i < pb->n_at_trigger; i++)
		if (strcmp(pb->at_trigger[i], trigger) == 0)
			return true;
	return false;
}

/* Writes the trigger into the trace, unless trigger_config has it do so. */
static void
note_trigger(struct session *s, const struct producer *p, const char *name)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t =
	    s->config->pb->trigger_config;
	size_t i;

	for (i = 0; t != NULL && i < t->n_triggers; i++)
		if (strcmp(t->triggers[i]->name, name) == 0)
			return;
	event_log_trigger(s->events, &(struct service_trigger){
	    .name = name, .producer_name = p->name, .producer_uid = p->uid,
	    .ts = loop_boottime_ns() });
}

void
cut_trigger(struct producer *p, const char *name)
{
	struct cut_wish w;
	struct session *s;

	TAILQ_FOREACH(s, &p->service->sessions, link) {
		if (s->state != SESSION_STARTED || !is_cut_at(s, name))
			continue;
		note_trigger(s, p, name);
		w = (struct cut_wish){
			.cause = SERVICE_CUT_TRIGGER,
			.trigger = strdup(name),
			.producer = strdup(p->name),
			.machine = p->machine->id,
		};
		(void)ask(s, w);
	}
}

/*
 * Arms the timer for the next multiple of every_ms since 1970, so that segments
 * of many collectors begin at the same times: at full minutes, for example.  It
 * is half a period away at least: a timer that fires early, or a clock that is
 * set back a little, makes no tiny segments.
 */
static void
arm(struct cut *c)
{
	uint64_t every, now, next;
	struct timespec t;

	every = c->session->config->pb->tributary_segments->every_ms;
	clock_gettime(CLOCK_REALTIME, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	next = (now + every / 2 + every - 1) / every * every;
	loop_timer_set(c->timer, next - now, 0);
}

static void
timer_cb(void *arg)
{
	struct cut *c = arg;

	(void)cut_ask(c->session, SERVICE_CUT_TIME);
	arm(c);
}

/* ---- with the session's life ---- */

struct cut *
cut_new(struct session *s)
{
	const segment_pb *pb = s->config->pb->tributary_segments;
	struct cut *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->session = s;
	c->number = 1;
	if (pb != NULL && pb->every_ms != 0 && (c->timer =
	    loop_timer_new(s->service->loop, timer_cb, c)) == NULL)
		goto fail;
	if (pb != NULL && pb->n_at_trigger > 0 && (c->rest =
	    loop_timer_new(s->service->loop, next_cb, c)) == NULL)
		goto fail;
	return c;

fail:
	loop_timer_free(c->timer);
	free(c);
	return NULL;
}

void
cut_free(struct cut *c)
{
	if (c == NULL)
		return;
	readback_drop_cut(c->session->readback);
	flush_forget(c->session, c);
	loop_call_cancel(&c->call);
	loop_timer_free(c->timer);
	loop_timer_free(c->rest);
	forget_unanswered(c);
	wish_done(&c->wish);
	wish_done(&c->next);
	free(c);
}

void
cut_session_started(struct session *s)
{
	if (s->cut->timer != NULL)
		arm(s->cut);
}

void
cut_session_ends(struct session *s)
{
	struct cut *c = s->cut;

	if (c->timer != NULL)
		loop_timer_clear(c->timer);
	if (c->rest != NULL)
		loop_timer_clear(c->rest);
	wish_done(&c->next);
	c->has_next = false;
	switch (c->state) {
	case CUT_IDLE: /* the next one was dropped, too */
		loop_call_cancel(&c->call);
		break;
	case CUT_RESTING:
		c->state = CUT_IDLE;
		break;
	case CUT_DUE:
		/* The END before may still be on its way into the stream. */
		(void)readback_withdraw_cut(s->readback);
		wish_done(&c->wish);
		c->state = CUT_IDLE;
		break;
	case CUT_FLUSHING: /* or else the last flush is the cut's */
		loop_call_cancel(&c->call);
		break;
	case CUT_ENDING:
		break;
	}
}

void
cut_session_stopped(struct session *s)
{
	struct cut *c = s->cut;

	if (c->state != CUT_FLUSHING)
		return;
	flush_give_up(s, c);
	end(c);
}

uint32_t
cut_number(const struct session *s)
{
	return s->cut != NULL ? s->cut->number : 1;
}
