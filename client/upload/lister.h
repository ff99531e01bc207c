/*
 * lister: the rows of segments that the store has, into a shared catalogue.
 *
 * When that cannot be reached the rows wait, as unlisted.h remembers them, and
 * the uploads go on: each attempt takes seconds at most, and the pauses between
 * them grow.
 */
#ifndef CLIENT_UPLOAD_LISTER_H
#define CLIENT_UPLOAD_LISTER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/archive/postgres_url.h"
#include "client/upload/unlisted.h"
#include "client/upload/upload_queue.h"
#include "protos/upload_report.pb-c.h"

struct catalog;

/* Zero but for the first four is ready to use; others are private. */
struct lister {
	const char *url;  /* of the shared catalogue, borrowed; NULL: none */
	char name[POSTGRES_NAME_MAX]; /* of it, for people */
	struct upload_pace pace;
	const volatile sig_atomic_t *stop;

	struct catalog *shared; /* owned; NULL: not connected */
	unsigned failures;      /* in a row */
	uint64_t until_ms;      /* it is left alone until then */
	int64_t cursor;         /* behind rows that failed, in this sweep */
	bool one_by_one;        /* a batch failed, in this sweep */
	struct unlisted_count count;
	char failure[512];
	Tributary__UploadReport__Listing report;
};

void lister_done(struct lister *l);

/* Puts all rows that wait, as far as it goes now; c: the archive's catalogue. */
void lister_run(struct lister *l, struct catalog *c);
/* Tries everything at once again, as at SIGHUP; c may be NULL. */
void lister_try_now(struct lister *l, struct catalog *c);
/* Milliseconds until lister_run() is to be called; UINT64_MAX: nothing waits. */
uint64_t lister_pause(const struct lister *l);
/* For a report; the lister's.  NULL: there is no shared catalogue. */
Tributary__UploadReport__Listing *lister_report(struct lister *l);

#endif /* CLIENT_UPLOAD_LISTER_H */
