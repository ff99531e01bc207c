#include "client/archiver/work_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "transport/base/hash_map.h"

/* Some months, as a time that timespec holds in any case. */
#define WAIT_MOST_MS (1ull << 33)

struct job {
	TAILQ_ENTRY(job) entry;
	struct hash_link link; /* by path and kind */
	bool is_folder;
	char path[];
};

struct work_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* of CLOCK_MONOTONIC */
	TAILQ_HEAD(, job) jobs;
	struct hash_map map;
	bool whole; /* the whole tree waits, and nothing else */
	bool woken;
	bool stopped;
};

struct work_queue *
work_queue_new(void)
{
	pthread_condattr_t attr;
	struct work_queue *q;

	if ((q = calloc(1, sizeof(*q))) == NULL)
		return NULL;
	TAILQ_INIT(&q->jobs);
	if (pthread_condattr_init(&attr) != 0) {
		free(q);
		return NULL;
	}
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&q->lock, NULL);
	(void)pthread_cond_init(&q->changed, &attr);
	pthread_condattr_destroy(&attr);
	return q;
}

static void
drop(struct work_queue *q, struct job *j)
{
	TAILQ_REMOVE(&q->jobs, j, entry);
	hash_map_remove(&q->map, &j->link);
	free(j);
}

static void
drop_all(struct work_queue *q)
{
	struct job *j;

	while ((j = TAILQ_FIRST(&q->jobs)) != NULL)
		drop(q, j);
}

void
work_queue_free(struct work_queue *q)
{
	if (q == NULL)
		return;
	drop_all(q);
	hash_map_done(&q->map);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static bool
waits(struct work_queue *q, const char *path, bool is_folder, uint64_t hash)
{
	struct job *j;

	if (q->whole)
		return true;
	HASH_MAP_FOREACH_OF(j, &q->map, hash, link) {
		if (j->is_folder == is_folder && strcmp(j->path, path) == 0)
			return true;
	}
	return false;
}

static void
add(struct work_queue *q, const char *path, bool is_folder)
{
	uint64_t hash = hash_bytes(path, strlen(path));
	size_t len = strlen(path) + 1;
	struct job *j = NULL;

	if (waits(q, path, is_folder, hash))
		return;
	if (path[0] != '\0' && q->map.n < WORK_QUEUE_MAX)
		j = malloc(sizeof(*j) + len);
	if (j == NULL) {
		drop_all(q);
		q->whole = true;
		return;
	}
	j->is_folder = is_folder;
	memcpy(j->path, path, len);
	TAILQ_INSERT_TAIL(&q->jobs, j, entry);
	hash_map_put(&q->map, &j->link, hash);
}

void
work_queue_add(struct work_queue *q, const char *path, bool is_folder)
{
	pthread_mutex_lock(&q->lock);
	add(q, path, is_folder);
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void
work_queue_wake(struct work_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->woken = true;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void
work_queue_stop(struct work_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->stopped = true;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

static struct timespec
deadline(uint64_t wait_ms)
{
	struct timespec t;

	if (wait_ms > WAIT_MOST_MS)
		wait_ms = WAIT_MOST_MS;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (time_t)(wait_ms / 1000);
	t.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Under the lock. */
static bool
take(struct work_queue *q, struct work *out)
{
	struct job *j = TAILQ_FIRST(&q->jobs);
	char *path;

	if (q->stopped || (j == NULL && !q->whole))
		return false;
	if ((path = strdup(q->whole ? "" : j->path)) == NULL)
		return false;
	*out = (struct work){ path, q->whole || j->is_folder };
	if (q->whole)
		q->whole = false;
	else
		drop(q, j);
	return true;
}

bool
work_queue_take(struct work_queue *q, uint64_t wait_ms, struct work *out)
{
	struct timespec until = deadline(wait_ms);
	bool taken;

	pthread_mutex_lock(&q->lock);
	while (!q->stopped && !q->woken && !q->whole &&
	    TAILQ_EMPTY(&q->jobs) &&
	    pthread_cond_timedwait(&q->changed, &q->lock, &until) == 0)
		;
	q->woken = false;
	taken = take(q, out);
	pthread_mutex_unlock(&q->lock);
	return taken;
}

bool
work_queue_is_stopped(struct work_queue *q)
{
	bool stopped;

	pthread_mutex_lock(&q->lock);
	stopped = q->stopped;
	pthread_mutex_unlock(&q->lock);
	return stopped;
}

size_t
work_queue_length(struct work_queue *q)
{
	size_t n;

	pthread_mutex_lock(&q->lock);
	n = q->map.n + q->whole;
	pthread_mutex_unlock(&q->lock);
	return n;
}
