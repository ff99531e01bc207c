#include "client/upload/backlog.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/segment_entry.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"

/* The index has these rows alone, so most catalogues are not walked through. */
#define TO_STORE                                                              \
	"INDEXED BY segments_to_store WHERE s.stored_state IS NOT 'stored'"   \
	" AND s.local"

static void
forget(struct backlog *b)
{
	while (b->n > 0)
		free(b->rows[--b->n].path);
}

void
backlog_done(struct backlog *b)
{
	forget(b);
}

static bool
row_cb(void *arg, const struct catalog_row *row)
{
	struct backlog *b = arg;
	struct segment_row *to = &b->rows[b->n];

	*to = (struct segment_row){ .id = row->id, .bytes = row->bytes };
	if ((to->path = strdup(row->path)) == NULL)
		return false;
	s3_hex(to->sha256, row->sha256, SEGMENT_SHA256);
	return ++b->n < BACKLOG_BATCH;
}

static const struct segment_row *
first_behind(const struct backlog *b, int64_t cursor)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		if (b->rows[i].id > cursor)
			return &b->rows[i];
	return NULL;
}

int
backlog_next(struct backlog *b, struct catalog *c, int64_t cursor,
    const struct segment_row **row, char *err, size_t err_size)
{
	const struct catalog_value value = CATALOG_INT(cursor);

	/* The cursor went back: rows in hand may have been sent since. */
	if (cursor < b->cursor)
		forget(b);
	b->cursor = cursor;
	if ((*row = first_behind(b, cursor)) != NULL)
		return 1;
	forget(b);
	if (catalog_each(c, TO_STORE " AND s.id > ? ORDER BY s.id LIMIT 256",
		&value, 1, row_cb, b, err, err_size) != 0)
		return -1;
	return (*row = first_behind(b, cursor)) != NULL;
}

/* ---- how much there is ---- */

static void
tell_limit(struct backlog *b, uint64_t limit_bytes)
{
	char count[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];
	bool over = limit_bytes > 0 && b->bytes > limit_bytes;

	/* Near the limit, one line for all the times that it is crossed. */
	if (!over && b->over_limit && b->bytes > limit_bytes / 10 * 9)
		return;
	if (over != b->over_limit) {
		(void)human_count(count, b->segments);
		(void)human_bytes(bytes, b->bytes);
		if (over)
			log_warn("%s segments, %s, wait for the store: more "
			    "than max_backlog_mb.  They stay in the archive "
			    "until they are there, as far as its disk goes",
			    count, bytes);
		else
			log_info("%s segments, %s, wait for the store: less "
			    "than max_backlog_mb again", count, bytes);
	}
	b->over_limit = over;
}

int
backlog_count(struct backlog *b, struct catalog *c, uint64_t limit_bytes,
    uint64_t now_ms, char *err, size_t err_size)
{
	struct catalog_statement *s;

	if (b->counted_ms != 0 && now_ms - b->counted_ms < BACKLOG_COUNT_MS &&
	    b->segments > 0)
		return 0;
	s = catalog_prepare(c, "SELECT count(*), ifnull(sum(s.bytes), 0),"
	    " ifnull(min(s.last_ns), 0), ifnull(sum(s.stored_state ="
	    " 'failed'), 0) FROM segments AS s " TO_STORE, err, err_size);
	if (s == NULL || catalog_step(c, s, err, err_size) != 1)
		return -1;
	b->segments = (uint64_t)catalog_int(s, 0);
	b->bytes = (uint64_t)catalog_int(s, 1);
	b->oldest_ns = (uint64_t)catalog_int(s, 2);
	b->failed = (uint64_t)catalog_int(s, 3);
	catalog_reset(s);
	b->counted_ms = now_ms;
	tell_limit(b, limit_bytes);
	return 0;
}

void
backlog_sent(struct backlog *b, uint64_t bytes)
{
	if (b->segments > 0)
		b->segments--;
	b->bytes -= b->bytes < bytes ? b->bytes : bytes;
}

Tributary__UploadReport__Backlog *
backlog_report(struct backlog *b)
{
	tributary__upload_report__backlog__init(&b->report);
	b->report.has_segments = b->report.has_bytes = true;
	b->report.has_failed = b->report.has_over_limit = true;
	b->report.segments = b->segments;
	b->report.bytes = b->bytes;
	b->report.failed = b->failed;
	b->report.over_limit = b->over_limit;
	b->report.has_oldest_ns = b->segments > 0 && b->oldest_ns != 0;
	b->report.oldest_ns = b->oldest_ns;
	return &b->report;
}
