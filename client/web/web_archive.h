/*
 * web_archive: what takes the files of an archive: its pages, its segments, and
 * segments joined into one trace.  Two threads of its own do it, so that the one
 * that speaks HTTP never waits for a disk: one for pages and segments, one for
 * joins, one at a time.
 *
 * Each job opens the catalogue for itself, so that none keeps it from being made
 * anew.  Writes nothing but files without a name, below $TMPDIR or /var/tmp.
 */
#ifndef CLIENT_WEB_WEB_ARCHIVE_H
#define CLIENT_WEB_WEB_ARCHIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/web/web_request.h"
#include "transport/base/compiler.h"

struct web_archive;

enum web_job_kind {
	WEB_JOB_NONE,
	WEB_JOB_PAGE,    /* /archive */
	WEB_JOB_SEGMENT, /* the file at search.path */
	WEB_JOB_TRACE,   /* the segments that are found, as one trace */
};

/* Jobs of pages and segments that wait; joins that wait, run, or are sent. */
#define WEB_ARCHIVE_QUEUE 64u
#define WEB_ARCHIVE_JOINS 4u

/* An answer, fixed once web_job_is_done(). */
struct web_job {
	unsigned status;  /* of HTTP */
	char *body;       /* owned; NULL: it is in fd */
	int fd;           /* owned; -1: it is in body */
	size_t len;
	char name[128];   /* of the file, for who keeps it; "": a page */
	/* Fields of web_archive. */
	struct web_archive *archive;
	TAILQ_ENTRY(web_job) link; /* while it waits */
	enum web_job_kind kind;
	struct web_search search;
	uint32_t page;
	bool waits, done, abandoned;
	atomic_bool stop; /* it is to end, while it runs */
};

/* Borrowed; a folder, or a shared catalogue. */
struct web_archive_setup {
	const char *folder, *catalog; /* the other one is NULL */
	const char *ui;               /* origin of Perfetto's UI */
};

/*
 * done(arg) is called from another thread after each job.  NULL with a sentence:
 * there is no such folder, or this is no address of a catalogue.
 */
struct web_archive *web_archive_new(const struct web_archive_setup *setup,
    void (*done)(void *arg), void *arg, char *err, size_t err_size) MUST_CHECK;
/* Starts the threads.  -1: the system has no room for them. */
int web_archive_start(struct web_archive *a) MUST_CHECK;
/* Ends the threads: what runs fails, and done() is called no more. */
void web_archive_stop(struct web_archive *a);
/* Stops it, once all jobs were dropped.  NULL is fine. */
void web_archive_free(struct web_archive *a);

/* NULL: too much is asked already, or no memory. */
struct web_job *web_archive_ask(struct web_archive *a, enum web_job_kind kind,
    const struct web_query *q) MUST_CHECK;
bool web_job_is_done(struct web_job *j);
/* Ends it, and frees it, now or once it has ended.  NULL is fine. */
void web_job_drop(struct web_job *j);

#endif /* CLIENT_WEB_WEB_ARCHIVE_H */
