#include "service/ring_memory/populator.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Linux has MADV_POPULATE_WRITE since 5.14, libc since later. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Address space, of which a few pages are touched. */
#define STACK_BYTES (512u * 1024u)

TAILQ_HEAD(populate_jobs, populate_job);

struct populator {
	pthread_t thread;
	bool started; /* the loop's side */

	pthread_mutex_t lock; /* of all that follows, and of the jobs */
	pthread_cond_t wake;
	pthread_cond_t stepped;
	struct populate_jobs jobs;
	const struct populate_job *running; /* its step is under way */
	bool unable; /* the kernel is too old */
	bool ending;
};

struct populator *
populator_new(void)
{
	struct populator *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	pthread_cond_init(&p->stepped, NULL);
	TAILQ_INIT(&p->jobs);
	return p;
}

void
populator_free(struct populator *p)
{
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->started)
		pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->stepped);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Under the lock.  Up to the next multiple of a step: huge pages lie so. */
static size_t
next_step(const struct populate_job *j)
{
	uintptr_t end = (j->begin | (POPULATOR_STEP - 1)) + 1;

	return (end < j->end ? end : j->end) - j->begin;
}

/* Under the lock, which it leaves meanwhile. */
static void
step(struct populator *p)
{
	struct populate_job *j = TAILQ_FIRST(&p->jobs);
	size_t len = next_step(j);
	void *at = (void *)j->begin;
	bool unable;

	TAILQ_REMOVE(&p->jobs, j, link);
	j->begin += len;
	if (j->begin < j->end)
		TAILQ_INSERT_TAIL(&p->jobs, j, link);
	p->running = j;
	pthread_mutex_unlock(&p->lock);
	/* Other failures concern these pages only: writing them meets them. */
	unable = madvise(at, len, MADV_POPULATE_WRITE) != 0 && errno == EINVAL;
	pthread_mutex_lock(&p->lock);
	p->running = NULL;
	p->unable = unable;
	pthread_cond_signal(&p->stepped);
}

static void *
run(void *arg)
{
	struct populator *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->ending) {
		if (TAILQ_EMPTY(&p->jobs) || p->unable)
			pthread_cond_wait(&p->wake, &p->lock);
		else
			step(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Blocks all signals in the thread: they are the loop's.  May fail silently. */
static void
start(struct populator *p)
{
	pthread_attr_t attr;
	sigset_t all, before;

	if (pthread_attr_init(&attr) != 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	p->started = pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
	    pthread_create(&p->thread, &attr, run, p) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

void
populator_ask(struct populator *p, struct populate_job *j, const void *begin,
    const void *end)
{
	uintptr_t from = (uintptr_t)begin, to = (uintptr_t)end;
	bool waited;

	if (!p->started)
		start(p);
	pthread_mutex_lock(&p->lock);
	waited = j->begin < j->end;
	if (j->begin < from)
		j->begin = from;
	j->end = to;
	if (waited && j->begin >= to)
		TAILQ_REMOVE(&p->jobs, j, link);
	if (!waited && j->begin < to)
		TAILQ_INSERT_TAIL(&p->jobs, j, link);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void
populator_drop(struct populator *p, struct populate_job *j)
{
	/* Never asked for: only populator_ask() sets the end. */
	if (j->end == 0)
		return;
	pthread_mutex_lock(&p->lock);
	if (j->begin < j->end)
		TAILQ_REMOVE(&p->jobs, j, link);
	while (p->running == j)
		pthread_cond_wait(&p->stepped, &p->lock);
	j->begin = j->end = 0;
	pthread_mutex_unlock(&p->lock);
}
