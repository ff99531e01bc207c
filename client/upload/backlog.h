/*
 * backlog: the segments of a catalogue that the store has not got: the next
 * ones, and how much there is of them.
 *
 * Holds BACKLOG_BATCH rows at most, however many wait.
 */
#ifndef CLIENT_UPLOAD_BACKLOG_H
#define CLIENT_UPLOAD_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/upload/segment_sender.h"
#include "protos/upload_report.pb-c.h"
#include "transport/base/compiler.h"

struct catalog;

#define BACKLOG_BATCH 256u
/* The whole is counted again after this time; in between, what is sent. */
#define BACKLOG_COUNT_MS 5000u

/* Zero is ready to use; private but for the numbers. */
struct backlog {
	uint64_t segments, bytes, failed;
	uint64_t oldest_ns; /* wall clock; 0: not known */
	bool over_limit;
	uint64_t counted_ms;
	struct segment_row rows[BACKLOG_BATCH]; /* owned, by rising id */
	size_t n;
	int64_t cursor;                         /* of the last call */
	Tributary__UploadReport__Backlog report;
};

void backlog_done(struct backlog *b);

/*
 * The first segment behind the cursor, *row, which is the backlog's until the
 * next call.  1: there is one; 0: none; -1 with a sentence.
 */
int backlog_next(struct backlog *b, struct catalog *c, int64_t cursor,
    const struct segment_row **row, char *err, size_t err_size) MUST_CHECK;

/*
 * Counts, if that is due, and logs when limit_bytes (0: none) is exceeded, and
 * when it is no longer.  -1 with a sentence.
 */
int backlog_count(struct backlog *b, struct catalog *c, uint64_t limit_bytes,
    uint64_t now_ms, char *err, size_t err_size) MUST_CHECK;
void backlog_sent(struct backlog *b, uint64_t bytes);

/* For a report; the backlog's. */
Tributary__UploadReport__Backlog *backlog_report(struct backlog *b);

#endif /* CLIENT_UPLOAD_BACKLOG_H */
