#include "service/session/thread_priority.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "service/config/config.h"
#include "service/model/model.h"
#include "service/session/session_warnings.h"
#include "transport/base/log.h"

#define FIFO                                                                  \
	PERFETTO__PROTOS__PRIORITY_BOOST_CONFIG__BOOST_POLICY__POLICY_SCHED_FIFO

struct thread_priority {
	const struct thread_priority_ops *ops;
	bool known;                     /* initial was asked for */
	struct thread_priority_level initial;
	struct thread_priority_level now;
};

static int
kernel_get(struct thread_priority_level *out)
{
	struct sched_param param = { 0 };

	out->policy = sched_getscheduler(0);
	if (out->policy < 0 || sched_getparam(0, &param) != 0)
		return errno;
	out->policy &= ~SCHED_RESET_ON_FORK;
	out->rt = param.sched_priority;
	errno = 0;
	out->nice = getpriority(PRIO_PROCESS, 0);
	return out->nice == -1 ? errno : 0;
}

static int
kernel_set(const struct thread_priority_level *to)
{
	struct sched_param param = { .sched_priority = to->rt };

	if (sched_setscheduler(0, to->policy | SCHED_RESET_ON_FORK, &param) !=
	    0)
		return errno;
	if (to->rt == 0 && setpriority(PRIO_PROCESS, 0, to->nice) != 0)
		return errno;
	return 0;
}

static const struct thread_priority_ops kernel = { kernel_get, kernel_set };

struct thread_priority *
thread_priority_new(const struct thread_priority_ops *ops)
{
	struct thread_priority *p = calloc(1, sizeof(*p));

	if (p != NULL)
		p->ops = ops != NULL ? ops : &kernel;
	return p;
}

void
thread_priority_free(struct thread_priority *p)
{
	free(p);
}

static struct thread_priority_level
level_of(const struct session *s, const struct thread_priority_level *initial)
{
	const Perfetto__Protos__PriorityBoostConfig *pb =
	    s->config->pb->priority_boost;
	struct thread_priority_level l = *initial;

	if (pb->policy == FIFO) {
		l.policy = SCHED_FIFO;
		l.rt = (int)pb->priority;
	} else {
		l.policy = SCHED_OTHER;
		l.rt = 0;
		l.nice = -(int)pb->priority;
	}
	return l;
}

static bool
is_over(const struct thread_priority_level *a,
    const struct thread_priority_level *b)
{
	if (a->rt != b->rt)
		return a->rt > b->rt;
	return a->rt == 0 && a->nice < b->nice;
}

static bool
asks(const struct session *s)
{
	return s->config != NULL && s->state != SESSION_CLONED &&
	    s->boost == BOOST_WANTED;
}

/* The session with the highest boost over the initial one; NULL: none. */
static struct session *
highest(const struct service *sv, struct thread_priority_level *level)
{
	struct session *s, *best = NULL;
	struct thread_priority_level l;

	*level = sv->priority->initial;
	TAILQ_FOREACH(s, &sv->sessions, link) {
		if (!asks(s))
			continue;
		l = level_of(s, &sv->priority->initial);
		if (!is_over(&l, level))
			continue;
		*level = l;
		best = s;
	}
	return best;
}

static void
refused(struct session *s, const struct thread_priority_level *l, int error)
{
	char text[256];

	s->boost = BOOST_REFUSED;
	snprintf(text, sizeof(text), "priority_boost of the trace config has "
	    "no effect: the system refuses the collector %s %d (%s)",
	    l->rt > 0 ? "SCHED_FIFO" : "a nice value of",
	    l->rt > 0 ? l->rt : l->nice, strerror(error));
	session_warn(s, text);
}

/*
 * A boost that was refused is not tried again; the next highest has its turn.
 */
static void
update(struct service *sv)
{
	struct thread_priority *p = sv->priority;
	struct thread_priority_level to;
	struct session *s;
	int error;

	for (;;) {
		s = highest(sv, &to);
		if (to.rt == p->now.rt && to.nice == p->now.nice)
			return;
		if ((error = p->ops->set(&to)) == 0)
			break;
		if (s == NULL) {
			log_warn("cannot restore the priority: %s",
			    strerror(error));
			break;
		}
		refused(s, &to, error);
	}
	p->now = to;
}

void
thread_priority_session_came(struct session *s)
{
	struct thread_priority *p = s->service->priority;
	int error;

	if (s->config->pb->priority_boost == NULL)
		return;
	s->boost = BOOST_WANTED;
	if (!p->known) {
		if ((error = p->ops->get(&p->initial)) != 0) {
			refused(s, &p->initial, error);
			return;
		}
		p->known = true;
		p->now = p->initial;
	}
	update(s->service);
}

void
thread_priority_session_gone(struct service *sv, const struct session *s)
{
	if (s->boost != BOOST_NONE && sv->priority->known)
		update(sv);
}
