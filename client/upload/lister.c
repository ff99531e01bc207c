#include "client/upload/lister.h"

#include <limits.h>
#include <stdio.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_copy.h"
#include "client/upload/upload_clock.h"
#include "transport/base/backoff.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"

/*
 * Rows of one transaction of the shared catalogue, in which other writers wait: a
 * part of a second.
 */
#define BATCH 16

/* A batch; its outcome is told the archive's catalogue once it is sure. */
struct batch {
	int64_t ids[BATCH];
	bool refused[BATCH];
	char why[BATCH][512];
	int n;
};

static void
disconnect(struct lister *l)
{
	catalog_close(l->shared);
	l->shared = NULL;
}

void
lister_done(struct lister *l)
{
	disconnect(l);
}

static void
fail(struct lister *l, const char *why)
{
	char pause[HUMAN_TEXT_MAX];
	uint64_t ms;

	disconnect(l);
	if (l->failures < UINT_MAX)
		l->failures++;
	ms = backoff_ms(l->failures, l->pace.min_ms, l->pace.max_ms,
	    upload_clock_random());
	l->until_ms = upload_clock_ms() + ms;
	snprintf(l->failure, sizeof(l->failure), "%s", why);
	(void)human_ms(pause, ms);
	if (l->failures == 1)
		log_warn("rows wait for the shared catalogue: %s; next attempt "
		    "in %s", why, pause);
	else
		log_debug("%s; next attempt in %s", why, pause);
}

static void
worked(struct lister *l)
{
	if (l->failures > 0)
		log_info("the shared catalogue takes rows again, after %u "
		    "failure%s", l->failures, human_s(l->failures));
	l->failures = 0;
	l->until_ms = 0;
}

/* ---- a batch ---- */

/* In a transaction of the shared catalogue.  -1 with a sentence. */
static int
copy_all(struct lister *l, struct catalog *c, struct batch *b, char *err,
    size_t err_size)
{
	int i;

	for (i = 0; i < b->n; i++) {
		switch (catalog_copy(l->shared, c, b->ids[i], err, err_size)) {
		case CATALOG_COPY_FAILED:
			return -1;
		case CATALOG_COPY_REFUSED:
			b->refused[i] = true;
			snprintf(b->why[i], sizeof(b->why[i]), "%.500s",
			    err);
			break;
		case CATALOG_COPY_ADDED:
		case CATALOG_COPY_KNOWN:
			b->refused[i] = false;
			break;
		}
	}
	return 0;
}

static int
put(struct lister *l, struct catalog *c, struct batch *b, char *err,
    size_t err_size)
{
	if (l->shared == NULL && (l->shared = catalog_connect(l->url,
	    CATALOG_WRITE, err, err_size)) == NULL)
		return -1;
	if (catalog_begin(l->shared, err, err_size) < 0)
		return -1;
	if (copy_all(l, c, b, err, err_size) == 0)
		return catalog_commit(l->shared, err, err_size);
	catalog_rollback(l->shared);
	return -1;
}

/* Has the archive's catalogue remember what became of them. */
static int
settle(struct catalog *c, const struct batch *b, char *err, size_t err_size)
{
	int i, rc = 0;

	if (catalog_begin(c, err, err_size) < 0)
		return -1;
	for (i = 0; rc == 0 && i < b->n; i++) {
		if (b->refused[i])
			log_warn("a segment is not listed: %s", b->why[i]);
		rc = b->refused[i] ? unlisted_refuse(c, b->ids[i], b->why[i],
		    err, err_size) : unlisted_remove(c, b->ids[i], err,
		    err_size);
	}
	if (rc == 0)
		return catalog_commit(c, err, err_size);
	catalog_rollback(c);
	return -1;
}

/* True: there may be more. */
static bool
run_batch(struct lister *l, struct catalog *c)
{
	struct batch b;
	char err[1024];

	b.n = unlisted_next(c, l->cursor, b.ids, l->one_by_one ? 1 : BATCH,
	    err, sizeof(err));
	if (b.n < 0) {
		fail(l, err);
		return false;
	}
	if (b.n == 0) {
		/* Rows that failed have their turn again. */
		l->one_by_one = false;
		l->cursor = 0;
		return false;
	}
	if (put(l, c, &b, err, sizeof(err)) < 0) {
		/* One row of a batch may be to blame: the others pass it. */
		if (b.n == 1)
			l->cursor = b.ids[0];
		l->one_by_one = true;
		fail(l, err);
		return false;
	}
	worked(l);
	if (settle(c, &b, err, sizeof(err)) == 0)
		return true;
	fail(l, err);
	return false;
}

void
lister_run(struct lister *l, struct catalog *c)
{
	char err[512];

	if (l->url == NULL)
		return;
	while (!*l->stop && upload_clock_ms() >= l->until_ms && run_batch(l, c))
		;
	if (unlisted_count(c, &l->count, err, sizeof(err)) < 0)
		log_warn("cannot count what waits for the shared catalogue: %s",
		    err);
}

void
lister_try_now(struct lister *l, struct catalog *c)
{
	char err[512];

	l->until_ms = 0;
	l->cursor = 0;
	if (l->url != NULL && c != NULL &&
	    unlisted_retry(c, err, sizeof(err)) < 0)
		log_warn("%s", err);
}

uint64_t
lister_pause(const struct lister *l)
{
	uint64_t now = upload_clock_ms();

	if (l->url == NULL || l->count.waiting == 0)
		return UINT64_MAX;
	return l->until_ms > now ? l->until_ms - now : 0;
}

Tributary__UploadReport__Listing *
lister_report(struct lister *l)
{
	if (l->url == NULL)
		return NULL;
	tributary__upload_report__listing__init(&l->report);
	l->report.catalog = l->name;
	l->report.has_waiting = l->report.has_refused = true;
	l->report.has_failures = true;
	l->report.waiting = l->count.waiting;
	l->report.refused = l->count.refused;
	l->report.failures = l->failures;
	l->report.failure = l->failures > 0 ? l->failure : NULL;
	return &l->report;
}
