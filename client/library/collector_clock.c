#include "client/library/collector_clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "client/library/control.h"
#include "protos/control.pb-c.h"
#include "transport/base/failure.h"

/* The first question also waits for the connection. */
#define QUESTIONS 8u

struct collector_clock {
	struct control *control; /* owned */
	collector_clock_fn fn;
	void *arg;
	uint64_t asked_ns; /* our wall clock at the question */
	unsigned n;        /* answers */
	struct collector_clock_reading best;
};

static uint64_t
wall_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
take(struct collector_clock *c, uint64_t theirs, uint64_t now)
{
	uint64_t trip = now - c->asked_ns;

	/* A wall clock that was set back meanwhile measures nothing. */
	if (now < c->asked_ns || (c->n > 1 && c->best.within_ns <= trip / 2))
		return;
	c->best.within_ns = trip / 2;
	c->best.ahead_ns = (int64_t)(theirs - (c->asked_ns + trip / 2));
}

static void ask(struct collector_clock *c);

static void
answer_cb(void *arg, const Tributary__QuerySessionsReply *reply,
    const char *why)
{
	struct collector_clock *c = arg;
	uint64_t now = wall_clock_ns();

	if (reply == NULL || reply->now_ns == 0) {
		c->fn(c->arg, NULL);
		return;
	}
	c->n++;
	take(c, reply->now_ns, now);
	if (c->n == QUESTIONS)
		c->fn(c->arg, &c->best);
	else
		ask(c);
}

static void
ask(struct collector_clock *c)
{
	/* No session has this id, so the answer is short. */
	const struct control_sessions none = { .id = UINT64_MAX };

	c->asked_ns = wall_clock_ns();
	control_query_sessions(c->control, &none, answer_cb, c);
}

struct collector_clock *
collector_clock_new(struct loop *l, const struct addr *a,
    const struct dial_options *how, collector_clock_fn fn, void *arg,
    char *err, size_t err_size)
{
	struct collector_clock *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		(void)FAILURE(err, err_size, "out of memory");
		return NULL;
	}
	c->fn = fn;
	c->arg = arg;
	if ((c->control = control_new(l, a, how, err, err_size)) == NULL) {
		free(c);
		return NULL;
	}
	ask(c);
	return c;
}

void
collector_clock_free(struct collector_clock *c)
{
	if (c == NULL)
		return;
	control_free(c->control);
	free(c);
}
