/*
 * The end of the daemon as the sessions see it: service_shutdown().
 */
#include "service/session/shutdown.h"

#include <stdlib.h>

#include "service/model/model.h"
#include "service/session/session.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Longest wait for sessions: a disk that hangs is left alone then. */
#define BUSY_LONGEST_MS 5000u
/* Time for consumers to fetch what their sessions hold. */
#define READERS_LONGEST_MS 5000u

struct shutdown {
	struct service *service;
	struct loop_timer *deadline;
	bool for_readers;        /* the deadline is READERS_LONGEST_MS */
	void (*idle)(void *arg); /* NULL once it was told */
	void *arg;
};

static bool
is_unfinished(const struct service *s)
{
	const struct session *one;

	TAILQ_FOREACH (one, &s->sessions, link)
		if (session_is_unfinished(one))
			return true;
	return false;
}

/* Whether a session still has a consumer, which may want to read its data. */
static bool
has_readers(const struct service *s)
{
	const struct session *one;

	TAILQ_FOREACH (one, &s->sessions, link)
		if (one->ops != NULL)
			return true;
	return false;
}

/* Calls idle, once: at the end of the sessions or the deadline. */
static void
tell(struct shutdown *down)
{
	void (*idle)(void *arg) = down->idle;

	if (idle == NULL)
		return;
	down->idle = NULL;
	down->service->idle = NULL;
	loop_timer_clear(down->deadline);
	idle(down->arg);
}

/* A session ended or was freed: calls idle, or waits for the others. */
static void
look_again(void *arg)
{
	struct shutdown *down = arg;
	struct service *s = down->service;

	if (down->idle == NULL)
		return;
	if (!is_unfinished(s) && !has_readers(s)) {
		tell(down);
		return;
	}
	if (!is_unfinished(s) && !down->for_readers) {
		down->for_readers = true;
		loop_timer_set(down->deadline, READERS_LONGEST_MS, 0);
	}
	s->idle = look_again;
	s->idle_arg = down;
}

static void
deadline_cb(void *arg)
{
	struct shutdown *down = arg;

	if (down->for_readers)
		log_info("consumers did not leave within %u ms",
		    READERS_LONGEST_MS);
	else
		log_warn("sessions are not done after %u ms: leaving without "
		    "them", BUSY_LONGEST_MS);
	tell(down);
}

static struct shutdown *
shutdown_new(struct service *s, void (*idle)(void *arg), void *arg)
{
	struct shutdown *down;

	if ((down = calloc(1, sizeof(*down))) == NULL)
		return NULL;
	down->service = s;
	down->idle = idle;
	down->arg = arg;
	down->deadline = loop_timer_new(s->loop, deadline_cb, down);
	if (down->deadline == NULL) {
		free(down);
		return NULL;
	}
	return down;
}

void
shutdown_free(struct service *s)
{
	if (s->shutdown == NULL)
		return;
	loop_cancel(s->loop, s->shutdown);
	loop_timer_free(s->shutdown->deadline);
	free(s->shutdown);
	s->shutdown = NULL;
}

void
service_resume(struct service *s)
{
	s->idle = NULL;
	shutdown_free(s);
}

void
service_shutdown(struct service *s, void (*idle)(void *arg), void *arg)
{
	struct session *one, *next;

	if (s->shutdown != NULL)
		return;
	if ((s->shutdown = shutdown_new(s, idle, arg)) == NULL) {
		/*
		 * Without memory to wait with, sessions end as their peers do.
		 */
		loop_defer(s->loop, &s->idle_call, idle, arg);
		return;
	}
	for (one = TAILQ_FIRST(&s->sessions); one != NULL; one = next) {
		next = TAILQ_NEXT(one, link);
		session_end_for_shutdown(one);
	}
	loop_timer_set(s->shutdown->deadline, BUSY_LONGEST_MS, 0);
	s->idle = look_again;
	s->idle_arg = s->shutdown;
	loop_defer(s->loop, &s->idle_call, look_again, s->shutdown);
}
