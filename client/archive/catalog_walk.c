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
text_or_null(struct catalog_statement *s, int column)
{
	return catalog_text(s, column);
}

/* The schema says NOT NULL, but a catalogue may come from anywhere. */
static const char *
text(struct catalog_statement *s, int column)
{
	const char *v = text_or_null(s, column);

	return v == NULL ? "" : v;
}

static const uint8_t *
checksum(struct catalog_statement *s)
{
	static const uint8_t none[SEGMENT_SHA256];

	const uint8_t *bytes;
	size_t len;

	bytes = catalog_blob(s, SHA256, &len);
	return bytes != NULL && len == sizeof(none) ? bytes : none;
}

static void
read_row(struct catalog_row *row, struct catalog_statement *s)
{
	*row = (struct catalog_row){
		.id = catalog_int(s, ID),
		.path = text(s, PATH),
		.bytes = (uint64_t)catalog_int(s, BYTES),
		.mtime_ns = catalog_int(s, MTIME),
		.sha256 = checksum(s),
		.verdict = text(s, VERDICT),
		.problem = text(s, PROBLEM),
		.recording = text(s, RECORDING),
		.number = (uint32_t)catalog_int(s, NUMBER),
		.machine = text(s, MACHINE),
		.packets = (uint64_t)catalog_int(s, PACKETS),
		.lost = (uint64_t)catalog_int(s, LOST),
		.has_wall = !catalog_is_null(s, FIRST),
		.first_ns = catalog_int(s, FIRST),
		.last_ns = catalog_int(s, LAST),
		.pinned = catalog_int(s, PINNED) != 0,
		/* No one's disk, whatever the row says. */
		.local = !catalog_is_shared(s->catalog) &&
		    catalog_int(s, LOCAL) != 0,
		.stored = {
			.state = text_or_null(s, STATE),
			.url = text_or_null(s, URL),
			.etag = text_or_null(s, ETAG),
			.detail = text_or_null(s, DETAIL),
			.at_ns = catalog_int(s, STORED_AT),
		},
	};
}

/* Takes ownership of no statement: it is reset behind the walk. */
static int
walk(struct catalog *c, struct catalog_statement *s, const struct catalog_value *values,
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
	catalog_reset(s);
	return rc < 0 ? -1 : n;
}

int
catalog_each(struct catalog *c, const char *sql,
    const struct catalog_value *values, size_t n_values, catalog_row_fn fn,
    void *arg, char *err, size_t err_size)
{
	struct catalog_statement *s;
	char *all = NULL;
	int rc;

	if (asprintf(&all, COLUMNS "%s", sql) < 0)
		return FAILURE(err, err_size, "out of memory");
	s = catalog_compile(c, all, err, err_size);
	rc = s == NULL ? -1 :
	    walk(c, s, values, n_values, fn, arg, err, err_size);
	catalog_finish(s);
	free(all);
	return rc < 0 ? -1 : 0;
}

int
catalog_find(struct catalog *c, const char *path, catalog_row_fn fn, void *arg,
    char *err, size_t err_size)
{
	const struct catalog_value v = CATALOG_STR(path);
	struct catalog_statement *s;

	s = catalog_prepare(c, COLUMNS "WHERE s.path = ?", err, err_size);
	return s == NULL ? -1 : walk(c, s, &v, 1, fn, arg, err, err_size);
}
