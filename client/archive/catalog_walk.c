#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "client/archive/segment_entry.h"
#include "transport/base/failure.h"

/* In the order of the columns below. */
enum column {
	ID, PATH, BYTES, MTIME, SHA256, VERDICT, PROBLEM, RECORDING, NUMBER,
	MACHINE, PACKETS, LOST, FIRST, LAST, PINNED, LOCAL, STATE, URL, ETAG,
	DETAIL, STORED_AT
};
#define COLUMNS "SELECT s.id, s.path, s.bytes, s.mtime_ns, s.sha256, "       \
	"s.verdict, s.problem, s.recording, s.number, s.machine, s.packets, "  \
	"s.lost, s.first_ns, s.last_ns, s.pinned, s.local, s.stored_state, "   \
	"s.stored_url, s.stored_etag, s.stored_detail, s.stored_ns "           \
	"FROM segments AS s "

static const char *
text_or_null(sqlite3_stmt *s, int column)
{
	return (const char *)sqlite3_column_text(s, column);
}

/* The schema says NOT NULL, but a catalogue may come from anywhere. */
static const char *
text(sqlite3_stmt *s, int column)
{
	const char *v = text_or_null(s, column);

	return v == NULL ? "" : v;
}

static const uint8_t *
checksum(sqlite3_stmt *s)
{
	static const uint8_t none[SEGMENT_SHA256];

	if (sqlite3_column_bytes(s, SHA256) != (int)sizeof(none))
		return none;
	return sqlite3_column_blob(s, SHA256);
}

static void
read_row(struct catalog_row *row, sqlite3_stmt *s)
{
	*row = (struct catalog_row){
		.id = sqlite3_column_int64(s, ID),
		.path = text(s, PATH),
		.bytes = (uint64_t)sqlite3_column_int64(s, BYTES),
		.mtime_ns = sqlite3_column_int64(s, MTIME),
		.sha256 = checksum(s),
		.verdict = text(s, VERDICT),
		.problem = text(s, PROBLEM),
		.recording = text(s, RECORDING),
		.number = (uint32_t)sqlite3_column_int64(s, NUMBER),
		.machine = text(s, MACHINE),
		.packets = (uint64_t)sqlite3_column_int64(s, PACKETS),
		.lost = (uint64_t)sqlite3_column_int64(s, LOST),
		.has_wall = sqlite3_column_type(s, FIRST) != SQLITE_NULL,
		.first_ns = sqlite3_column_int64(s, FIRST),
		.last_ns = sqlite3_column_int64(s, LAST),
		.pinned = sqlite3_column_int(s, PINNED) != 0,
		.local = sqlite3_column_int(s, LOCAL) != 0,
		.stored = {
			.state = text_or_null(s, STATE),
			.url = text_or_null(s, URL),
			.etag = text_or_null(s, ETAG),
			.detail = text_or_null(s, DETAIL),
			.at_ns = sqlite3_column_int64(s, STORED_AT),
		},
	};
}

/* Takes ownership of no statement: it is reset behind the walk. */
static int
walk(struct catalog *c, sqlite3_stmt *s, const struct catalog_value *values,
    size_t n_values, catalog_row_fn fn, void *arg, char *err, size_t err_size)
{
	struct catalog_row row;
	int rc, n = 0;

	if (catalog_bind(c, s, values, n_values, err, err_size) < 0)
		return -1;
	while ((rc = catalog_step(c, s, err, err_size)) == 1) {
		read_row(&row, s);
		/* A catalogue that others made may have any path. */
		if (!archive_path_is_segment(row.path)) {
			rc = FAILURE(err, err_size, "%s is no path of a "
			    "segment in an archive: `tributary archive "
			    "reindex --full` makes the catalogue anew",
			    row.path);
			break;
		}
		n = 1;
		if (!fn(arg, &row))
			break;
	}
	sqlite3_reset(s);
	return rc < 0 ? -1 : n;
}

int
catalog_each(struct catalog *c, const char *sql,
    const struct catalog_value *values, size_t n_values, catalog_row_fn fn,
    void *arg, char *err, size_t err_size)
{
	sqlite3_stmt *s = NULL;
	char *all = NULL;
	int rc;

	if (asprintf(&all, COLUMNS "%s", sql) < 0)
		return FAILURE(err, err_size, "out of memory");
	if (sqlite3_prepare_v2(c->db, all, -1, &s, NULL) != SQLITE_OK)
		rc = catalog_failed(c, err, err_size);
	else
		rc = walk(c, s, values, n_values, fn, arg, err, err_size);
	sqlite3_finalize(s);
	free(all);
	return rc < 0 ? -1 : 0;
}

int
catalog_find(struct catalog *c, const char *path, catalog_row_fn fn, void *arg,
    char *err, size_t err_size)
{
	const struct catalog_value v = CATALOG_STR(path);
	sqlite3_stmt *s;

	s = catalog_prepare(c, COLUMNS "WHERE s.path = ?", err, err_size);
	return s == NULL ? -1 : walk(c, s, &v, 1, fn, arg, err, err_size);
}
