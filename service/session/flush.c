#include "service/session/flush.h"

#include <stdlib.h>

#include "protos/link.pb-c.h"
#include "service/ingest/losses.h"
#include "service/ingest/quota.h"
#include "service/model/model.h"
#include "service/model/producer_walk.h"
#include "service/packet/event_log.h"
#include "service/session/instance.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"

#define LINK_LOSS_OF_CUT TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_CUT_AT_END
#define LINK_LOSS_OF_QUOTA TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA
/* Data sources named in one slow-flush event. */
#define SLOW_NAMED_MAX 32u
/*
 * Periodic flushes of one session under way.  Each holds a list of producers,
 * and a config may ask for one every millisecond and for hours of patience.
 * From half of them on, the next begins so long after the last: the oldest of
 * all, which is given up when there are too many, has had five seconds then.
 */
#define PERIODIC_MAX 16u
#define PERIODIC_CROWD (PERIODIC_MAX / 2)
#define PERIODIC_GAP_MS (5000u / PERIODIC_CROWD)

enum place {
	PLACE_AWAITED,
	PLACE_SILENT, /* asked, but not waited for: is_silent() */
	PLACE_ANSWERED,
};

/* The stages of a flush, in their order; it may leave some out. */
enum flush_state {
	FLUSH_AWAITS,    /* timer: its time-out */
	FLUSH_PATIENT,   /* the final one, which relays still hold up; timer:
	                    patience_ms */
	FLUSH_TIMED_OUT, /* ends when it is looked at; no timer, or a due one */
	FLUSH_PUT_ASIDE, /* failed but for relays, and done() was told; no timer */
};

struct flush {
	TAILQ_ENTRY(flush) link;
	struct session *session;
	uint64_t id;
	uint32_t *waiting; /* producer ids, ascending */
	enum place *places; /* by the same index */
	size_t n_waiting;  /* entries */
	size_t n_left;     /* entries that have not answered */
	size_t n_awaited;  /* of them, PLACE_AWAITED */
	struct loop_timer *timer;
	struct producer_walk asking;
	struct loop_call ready_call; /* no producer had to be asked */
	struct loop_call late_call;  /* an answer came while PATIENT */
	uint64_t flags;
	enum flush_state state;
	uint64_t times;       /* flushes that it stands for: put_aside() */
	uint64_t patience_ms; /* more time for cut links after its time-out */
	uint32_t timeout_ms;
	uint64_t started_ms;
	flush_fn done;
	flush_unanswered_fn unanswered; /* of a cut; else NULL */
	void *arg;
};

static int
compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Whether it is the flush at the session's end. */
static bool
is_final(const struct flush *f)
{
	return f->flags == FLUSH_TRACE_STOP;
}

static bool
is_timed_out(const struct flush *f)
{
	return f->state >= FLUSH_TIMED_OUT;
}

static void
flush_free(struct flush *f)
{
	TAILQ_REMOVE(&f->session->flushes, f, link);
	producer_walk_end(&f->asking);
	loop_timer_free(f->asking.pacer);
	loop_call_cancel(&f->ready_call);
	loop_call_cancel(&f->late_call);
	loop_timer_free(f->timer);
	free(f->waiting);
	free(f->places);
	free(f);
}

/* The producer's place in f; NULL: it has none, or has answered. */
static enum place *
place_of(const struct flush *f, uint32_t producer)
{
	const uint32_t *hit;
	enum place *place;

	hit = f->n_waiting == 0 ? NULL : bsearch(&producer, f->waiting,
	    f->n_waiting, sizeof(producer), compare_ids);
	if (hit == NULL)
		return NULL;
	place = &f->places[hit - f->waiting];
	return *place == PLACE_ANSWERED ? NULL : place;
}

static bool
is_unanswered_by(const struct flush *f, const struct producer *p)
{
	return place_of(f, p->id) != NULL;
}

bool
flush_has_given_up_on(const struct session *s, const struct producer *p)
{
	const struct flush *f;

	TAILQ_FOREACH(f, &s->flushes, link)
		if (is_timed_out(f) && is_unanswered_by(f, p))
			return true;
	return false;
}

static void
log_slow(struct flush *f)
{
	struct session *s = f->session;
	struct service_slow_source slow[SLOW_NAMED_MAX];
	struct ds_instance *i;
	size_t n = 0;

	TAILQ_FOREACH(i, &s->instances, of_session) {
		if (n == SLOW_NAMED_MAX)
			break;
		if (!is_unanswered_by(f, i->producer))
			continue;
		slow[n].producer = i->producer->name;
		slow[n].data_source = i->name;
		n++;
	}
	if (n > 0)
		event_log_slow(s->events,
		    SERVICE_EVENT_LAST_FLUSH_SLOW_DATA_SOURCES, slow, n);
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "session %llu: flush %llu is over, and %zu producers have not "
	    "answered", (unsigned long long)s->id, (unsigned long long)f->id,
	    f->n_left);
}

/*
 * Whether the producer's link was cut since the flush began, so that the answer
 * may still come.
 */
static bool
is_late_by_link(const struct flush *f, const struct producer *p)
{
	return p->linked && (p->state == PRODUCER_CUT || p->back_ms >= f->started_ms) &&
	    is_unanswered_by(f, p);
}

/*
 * A relay acknowledges the flush request at once.  One that was not heard since
 * is taken for cut off, too: TCP reports a dead connection only much later.
 */
static void
find_silent(struct flush *f)
{
	struct producer *p;

	TAILQ_FOREACH(p, &f->session->service->producers, link)
		if (p->heard != NULL && *p->heard < f->id &&
		    is_unanswered_by(f, p))
			p->back_ms = loop_now_ms();
}

static bool
waits_for_links(const struct flush *f)
{
	const struct producer *p;

	TAILQ_FOREACH(p, &f->session->service->producers, link)
		if (is_late_by_link(f, p))
			return true;
	return false;
}

/* Marks losses: the session ends without data that these producers hold. */
static void
mark_left_out(const struct flush *f)
{
	struct ds_instance *i;

	TAILQ_FOREACH(i, &f->session->instances, of_session) {
		if (is_late_by_link(f, i->producer))
			losses_unknown(i, LINK_LOSS_OF_CUT);
		else if (is_unanswered_by(f, i->producer) &&
		    quota_is_held(i->producer))
			losses_unknown(i, LINK_LOSS_OF_QUOTA);
	}
}

static struct flush *
find_put_aside(const struct session *s)
{
	struct flush *f;

	TAILQ_FOREACH(f, &s->flushes, link)
		if (f->state == FLUSH_PUT_ASIDE)
			return f;
	return NULL;
}

/*
 * A relay keeps its producers' data, and answers when it can: only at the end
 * of the session is a flush known to have failed that waits for relays alone.
 */
static bool
waits_for_relays_alone(const struct flush *f)
{
	struct producer *p;

	if (is_final(f) || f->asking.under_way)
		return false;
	TAILQ_FOREACH(p, &f->session->service->producers, link)
		if (!p->linked && is_unanswered_by(f, p))
			return false;
	return true;
}

/*
 * Keeps one flush for all that are put aside: an answer to the newest answers
 * the earlier ones, too.
 */
static void
put_aside(struct flush *f)
{
	struct flush *before = find_put_aside(f->session);

	if (before != NULL) {
		f->times += before->times;
		flush_free(before);
	}
	f->state = FLUSH_PUT_ASIDE;
	f->done = NULL;
	f->unanswered = NULL;
}

/* Counts it, and frees it. */
static void
settle(struct flush *f, bool success)
{
	struct session *s = f->session;

	if (success) {
		s->flushes_succeeded += f->times;
		event_log_event(s->events,
		    SERVICE_EVENT_ALL_DATA_SOURCES_FLUSHED);
	} else {
		s->flushes_failed += f->times;
	}
	flush_free(f);
}

static void
settle_at_end(struct flush *f)
{
	struct flush *before = find_put_aside(f->session);

	mark_left_out(f);
	if (before == NULL)
		return;
	/*
	 * Stays until the session goes, as callers may be on their way to it.
	 */
	f->session->flushes_failed += before->times;
	before->times = 0;
}

static void
name_unanswered(const struct flush *f)
{
	const struct producer *p;

	if (f->unanswered == NULL || f->n_left == 0)
		return;
	TAILQ_FOREACH(p, &f->session->service->producers, link)
		if (is_unanswered_by(f, p))
			f->unanswered(f->session, p, f->arg);
}

/* Finishes it when nothing is left to wait for. */
static void
flush_check(struct flush *f)
{
	struct session *s = f->session;
	flush_fn done = f->done;
	void *arg = f->arg;
	bool success;

	if ((f->n_awaited > 0 || f->asking.under_way) && !is_timed_out(f))
		return;
	if (f->state == FLUSH_PUT_ASIDE && f->n_left > 0)
		return;
	if (!session_scrape(s) && !is_timed_out(f))
		return;
	/* Producers that were not asked yet have not answered either. */
	success = f->n_left == 0 && !f->asking.under_way;
	if (!success) {
		log_slow(f);
		name_unanswered(f);
	}
	if (!success && is_final(f))
		settle_at_end(f);
	if (!success && waits_for_relays_alone(f))
		put_aside(f);
	else
		settle(f, success);
	if (done != NULL)
		done(s, success, arg);
}

static void
timeout_cb(void *arg)
{
	struct flush *f = arg;
	uint64_t more = f->patience_ms;

	f->patience_ms = 0;
	if (is_final(f) && f->state == FLUSH_AWAITS)
		find_silent(f);
	if (more > 0 && waits_for_links(f)) {
		f->state = FLUSH_PATIENT;
		loop_timer_set(f->timer, more, 0);
		return;
	}
	f->state = FLUSH_TIMED_OUT;
	flush_check(f);
}

static void
ready_cb(void *arg)
{
	flush_check(arg);
}

static void
late_cb(void *arg)
{
	struct flush *f = arg;

	if (!waits_for_links(f))
		f->state = FLUSH_TIMED_OUT;
	flush_check(f);
}

/*
 * The final flush does not wait for a producer that has owed an answer to an
 * earlier one for its whole time-out, unless our back-pressure holds it back:
 * consumers often flush before they stop, and would wait twice.
 */
static bool
is_silent(const struct flush *f, struct producer *p)
{
	return is_final(f) && p->asked_ms != 0 &&
	    loop_now_ms() - p->asked_ms >= f->timeout_ms && !p->linked &&
	    p->at_gate.waits_in == NULL && !quota_is_held(p);
}

/* Counts the producer before it is asked, as it may answer at once. */
static void
expect_answer(struct flush *f, struct producer *p)
{
	bool silent = is_silent(f, p);

	f->places[f->n_waiting] = silent ? PLACE_SILENT : PLACE_AWAITED;
	f->waiting[f->n_waiting++] = p->id;
	f->n_left++;
	f->n_awaited += !silent;
	p->asked_flush = f->id;
	if (p->asked_ms == 0)
		p->asked_ms = f->started_ms;
}

/*
 * Asks one producer; its answer is waited for when it has a source that takes
 * part (under emulation all do: the producer scrapes itself on Flush).
 */
static bool
ask(struct producer *p, void *arg)
{
	struct flush *f = arg;
	uint64_t few[8], *ids = few;
	struct ds_instance *i;
	bool cleared;
	size_t n = 0;

	if (p->n_instances > sizeof(few) / sizeof(few[0]) &&
	    (ids = malloc(p->n_instances * sizeof(*ids))) == NULL)
		return false;
	TAILQ_FOREACH(i, &p->instances, of_producer) {
		if (i->session != f->session || (i->no_flush &&
		    p->memory != MEMORY_EMULATED))
			continue;
		if (i->state == INSTANCE_CONFIGURED ||
		    i->state == INSTANCE_STOPPED)
			continue;
		ids[n++] = i->id;
	}
	/* Also where no source takes part in the flush. */
	cleared = f->asking.pacer != NULL &&
	    instance_clear_state(f->session, p);
	if (n > 0) {
		expect_answer(f, p);
		p->ops->flush(p->port, f->id, ids, n, f->flags);
	}
	if (ids != few)
		free(ids);
	return n > 0 || cleared;
}

/* All were asked.  Never done before a later turn than that of its start. */
static void
asked_cb(void *arg)
{
	struct flush *f = arg;

	if (f->n_awaited == 0)
		loop_defer(f->session->service->loop, &f->ready_call,
		    ready_cb, f);
}

/*
 * The time that the final flush waits longer where only machines that are cut
 * off have not answered; none at the end of the daemon.
 */
static uint64_t
patience(const struct session *s, uint32_t timeout_ms)
{
	uint64_t most = s->service->settings->link.end_wait_ms;

	return !s->shutting_down && most > timeout_ms ? most - timeout_ms : 0;
}

/* Whether a periodic flush may begin.  May time out the oldest for it. */
static bool
periodic_has_room(struct session *s)
{
	struct flush *f, *oldest = NULL, *newest = NULL;
	size_t n = 0;

	TAILQ_FOREACH(f, &s->flushes, link) {
		if (f->flags != FLUSH_PERIODIC || is_timed_out(f))
			continue;
		if (oldest == NULL)
			oldest = f;
		newest = f;
		n++;
	}
	if (n < PERIODIC_CROWD)
		return true;
	if (loop_now_ms() - newest->started_ms < PERIODIC_GAP_MS)
		return false;
	if (n >= PERIODIC_MAX) {
		oldest->state = FLUSH_TIMED_OUT;
		/* done() is always called on a later turn. */
		loop_timer_set(oldest->timer, 0, 0);
	}
	return true;
}

/* Has a cut's flush ask at its pace.  -1: no memory. */
static int
pace(struct flush *f, const struct service *sv)
{
	f->asking.pacer = loop_timer_new(sv->loop, producer_walk_on,
	    &f->asking);
	f->timeout_ms += (uint32_t)(sv->n_producers / PRODUCER_WALK_PACED) *
	    PRODUCER_WALK_PACE_MS;
	return f->asking.pacer != NULL ? 0 : -1;
}

static void
start(struct session *s, uint32_t timeout_ms, uint64_t flags, flush_fn done,
    flush_unanswered_fn unanswered, void *arg)
{
	struct flush *f;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		goto fail;
	f->waiting = calloc(s->service->n_producers + 1, sizeof(uint32_t));
	f->places = calloc(s->service->n_producers + 1, sizeof(*f->places));
	f->timer = loop_timer_new(s->service->loop, timeout_cb, f);
	f->timeout_ms = timeout_ms;
	if (f->waiting == NULL || f->places == NULL || f->timer == NULL ||
	    (unanswered != NULL && pace(f, s->service) != 0))
		goto fail;
	f->session = s;
	f->id = ++s->service->last_flush_id;
	f->flags = flags;
	f->patience_ms = is_final(f) ? patience(s, timeout_ms) : 0;
	f->started_ms = loop_now_ms();
	f->times = 1;
	f->done = done;
	f->unanswered = unanswered;
	f->arg = arg;
	TAILQ_INSERT_TAIL(&s->flushes, f, link);
	s->flushes_requested++;
	event_log_event(s->events, SERVICE_EVENT_FLUSH_STARTED);
	loop_timer_set(f->timer, f->timeout_ms, 0);
	/* Producers stand in the order of their ids: `waiting` is sorted. */
	producer_walk_begin(&f->asking, s->service, ask, asked_cb, f);
	return;

fail:
	log_limited(&s->service->memory_log, loop_now_ms(), LOG_LEVEL_ERROR,
	    "session %llu: no memory to flush",
	    (unsigned long long)s->id);
	if (f != NULL) {
		loop_timer_free(f->asking.pacer);
		loop_timer_free(f->timer);
		free(f->waiting);
		free(f->places);
		free(f);
	}
	s->flushes_failed++;
	if (done != NULL)
		done(s, false, arg);
}

void
flush_start(struct session *s, uint32_t timeout_ms, uint64_t flags,
    flush_fn done, void *arg)
{
	if (flags == FLUSH_PERIODIC && !periodic_has_room(s)) {
		if (done != NULL)
			done(s, false, arg);
		return;
	}
	start(s, timeout_ms, flags, done, NULL, arg);
}

void
flush_start_cut(struct session *s, uint32_t timeout_ms, flush_fn done,
    flush_unanswered_fn unanswered, void *arg)
{
	start(s, timeout_ms, FLUSH_EXPLICIT, done, unanswered, arg);
}

void
flush_hurry(struct session *s, uint32_t timeout_ms)
{
	struct flush *f;
	uint64_t left;

	TAILQ_FOREACH(f, &s->flushes, link) {
		if (!is_final(f) || is_timed_out(f))
			continue;
		if (s->shutting_down || s->discarding)
			f->patience_ms = 0;
		if (loop_timer_left(f->timer, &left) && left > timeout_ms)
			loop_timer_set(f->timer, timeout_ms, 0);
	}
}

/* The producer no longer holds up flushes with ids up to this. */
static void
answered(struct service *sv, uint32_t producer, uint64_t up_to)
{
	struct session *s, *snext;
	struct flush *f, *next;
	enum place *place;

	TAILQ_FOREACH_SAFE(s, &sv->sessions, link, snext) {
		TAILQ_FOREACH_SAFE(f, &s->flushes, link, next) {
			if (f->id > up_to || f->n_left == 0 ||
			    (place = place_of(f, producer)) == NULL)
				continue;
			f->n_awaited -= *place == PLACE_AWAITED;
			f->n_left--;
			*place = PLACE_ANSWERED;
			/*
			 * Deferred, so that one look serves all answers of a
			 * turn.
			 */
			if (f->state == FLUSH_PATIENT && f->n_left > 0)
				loop_defer(sv->loop, &f->late_call, late_cb,
				    f);
			else
				flush_check(f);
		}
	}
}

void
flush_ack(struct producer *p, uint64_t request_id)
{
	p->asked_ms = request_id < p->asked_flush ? loop_now_ms() : 0;
	answered(p->service, p->id, request_id);
}

void
flush_producer_gone(struct service *s, struct producer *p)
{
	answered(s, p->id, UINT64_MAX);
}

void
flush_retry(struct session *s)
{
	struct flush *f, *next;

	TAILQ_FOREACH_SAFE(f, &s->flushes, link, next)
		if (f->n_awaited == 0)
			flush_check(f);
}

void
flush_forget(struct session *s, void *arg)
{
	struct flush *f;

	TAILQ_FOREACH(f, &s->flushes, link)
		if (f->arg == arg) {
			f->done = NULL;
			f->unanswered = NULL;
		}
}

void
flush_give_up(struct session *s, void *arg)
{
	const struct flush *f;

	TAILQ_FOREACH(f, &s->flushes, link)
		if (f->arg == arg)
			name_unanswered(f);
	flush_forget(s, arg);
}

void
flush_drop_all(struct session *s)
{
	struct flush *f;

	while ((f = TAILQ_FIRST(&s->flushes)) != NULL)
		flush_free(f);
}
