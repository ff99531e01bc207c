#include "tests/bench/scale/census.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/failure.h"

#define THREADS_MAX 64
#define NAME_SIZE   24

/* The names first, first + step, ... */
struct share {
	struct census count;
	const char *const *collectors; /* n, and the one that is added */
	uint32_t first, step;
	bool failed;
	char err[256];
};

static bool
place(struct share *s, const char *name, uint32_t n, size_t *order)
{
	s->failed = placement_order(name, s->collectors, n, order, s->err,
	    sizeof(s->err)) != 0;
	return !s->failed;
}

static void
count_one(struct census *c, const size_t *order, size_t with_added,
    size_t without_last)
{
	uint32_t last = c->n - 1;

	c->at[order[0]]++;
	if (with_added == c->n)
		c->moved_to_added++;
	else if (with_added != order[0])
		c->moved_otherwise++;
	if (order[0] == last) {
		c->heirs[order[1]]++;
		c->moved_from_removed++;
	}
	if (without_last != order[order[0] == last])
		c->moved_otherwise++;
}

static void *
count_share(void *arg)
{
	size_t order[PLACEMENT_MAX], more[PLACEMENT_MAX], fewer[PLACEMENT_MAX];
	struct share *s = arg;
	uint32_t i, n = s->count.n;
	char name[NAME_SIZE];

	for (i = s->first; i < s->count.names; i += s->step) {
		snprintf(name, sizeof(name), "device-%u", i);
		if (!place(s, name, n, order) || !place(s, name, n + 1, more) ||
		    !place(s, name, n - 1, fewer))
			break;
		count_one(&s->count, order, more[0], fewer[0]);
	}
	return NULL;
}

static void
add(struct census *c, const struct census *part)
{
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		c->at[i] += part->at[i];
		c->heirs[i] += part->heirs[i];
	}
	c->moved_to_added += part->moved_to_added;
	c->moved_from_removed += part->moved_from_removed;
	c->moved_otherwise += part->moved_otherwise;
}

/* Threads that cannot be started are done without. */
static int
count_all(struct census *c, struct share *shares, uint32_t n, char *err,
    size_t err_size)
{
	pthread_t threads[THREADS_MAX];
	bool runs[THREADS_MAX];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n; i++) {
		runs[i] = pthread_create(&threads[i], NULL, count_share,
		    &shares[i]) == 0;
		if (!runs[i])
			count_share(&shares[i]);
	}
	for (i = 0; i < n; i++) {
		if (runs[i])
			pthread_join(threads[i], NULL);
		if (shares[i].failed)
			rc = FAILURE(err, err_size, "%s", shares[i].err);
		add(c, &shares[i].count);
	}
	return rc;
}

int
census_take(struct census *c, uint32_t names, uint32_t n, char *err,
    size_t err_size)
{
	static char text[PLACEMENT_MAX][NAME_SIZE];
	static struct share shares[THREADS_MAX];
	const char *collectors[PLACEMENT_MAX];
	long threads = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t i;

	if (n < 3 || n >= PLACEMENT_MAX)
		return FAILURE(err, err_size, "%u collectors: there may be 3 "
		    "to %u", n, PLACEMENT_MAX - 1);
	if (threads < 1 || threads > THREADS_MAX)
		threads = threads < 1 ? 1 : THREADS_MAX;
	for (i = 0; i <= n; i++) {
		snprintf(text[i], sizeof(text[i]), "c%u", i);
		collectors[i] = text[i];
	}
	*c = (struct census){ .names = names, .n = n };
	for (i = 0; i < threads; i++)
		shares[i] = (struct share){ .count = *c, .first = i,
			.step = (uint32_t)threads, .collectors = collectors };
	return count_all(c, shares, (uint32_t)threads, err, err_size);
}

struct spread
census_spread(const uint32_t *counts, uint32_t n)
{
	struct spread s = { .least = INFINITY };
	double all = 0, mean, sigma, off;
	uint32_t i;

	for (i = 0; i < n; i++)
		all += counts[i];
	mean = all / n;
	sigma = sqrt(mean * (1 - 1.0 / n));
	for (i = 0; i < n; i++) {
		off = counts[i] / mean;
		s.least = fmin(s.least, off);
		s.most = fmax(s.most, off);
		s.sigmas = fmax(s.sigmas, fabs(counts[i] - mean) / sigma);
	}
	return s;
}
