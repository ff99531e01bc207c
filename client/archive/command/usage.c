#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/text/text_cell.h"
#include "protos/json_out.h"
#include "transport/base/human_numbers.h"

/*
 * A segment of several machines counts for each by its share of the packets'
 * bytes: the file itself is one, and compressed.
 */
static const struct {
	const char *title, *key, *sql;
} tables[] = {
	{ "MACHINE", "machines",
	    "WITH whole AS (SELECT segment, sum(bytes) AS bytes FROM machines "
	    "GROUP BY segment) SELECT m.name, count(*), CAST(total(s.bytes * "
	    "iif(w.bytes > 0, 1.0 * m.bytes / w.bytes, 0)) AS INTEGER) "
	    "FROM machines AS m JOIN segments AS s ON s.id = m.segment "
	    "JOIN whole AS w ON w.segment = m.segment "
	    "WHERE s.local AND m.packets > 0 GROUP BY m.name ORDER BY 3 DESC" },
	{ "RECORDING", "recordings",
	    "SELECT s.recording, count(*), sum(s.bytes) FROM segments AS s "
	    "WHERE s.local GROUP BY 1 ORDER BY 3 DESC" },
	{ "DAY", "days",
	    "SELECT date(s.first_ns / 1000000000, 'unixepoch', 'localtime'), "
	    "count(*), sum(s.bytes) FROM segments AS s WHERE s.local "
	    "GROUP BY 1 ORDER BY 1" },
	{ "ALL", "all",
	    "SELECT 'here', count(*), total(bytes) FROM segments WHERE local "
	    "UNION ALL SELECT 'pinned', count(*), total(bytes) FROM segments "
	    "WHERE local AND pinned UNION ALL SELECT 'only in the store', "
	    "count(*), total(bytes) FROM segments WHERE NOT local" },
};

static void
print_row(sqlite3_stmt *s)
{
	char name[TEXT_CELL_MAX], bytes[HUMAN_TEXT_MAX], n[HUMAN_TEXT_MAX];

	text_cell_put(stdout, text_cell_plain(
	    (const char *)sqlite3_column_text(s, 0), name), 32);
	printf("%12s  %10s\n", human_bytes(bytes,
	    (uint64_t)sqlite3_column_int64(s, 2)), human_count(n,
	    (uint64_t)sqlite3_column_int64(s, 1)));
}

static void
write_row(struct json_out *j, sqlite3_stmt *s)
{
	const char *name = (const char *)sqlite3_column_text(s, 0);

	json_object(j, NULL);
	json_string(j, "name", name == NULL ? "" : name);
	json_uint(j, "segments", (uint64_t)sqlite3_column_int64(s, 1));
	json_uint(j, "bytes", (uint64_t)sqlite3_column_int64(s, 2));
	json_object_end(j);
}

int
archive_usage(const struct archive_open *a)
{
	struct json_out j = { .out = stdout };
	char err[ARCHIVE_ERROR_SIZE];
	bool json = a->options->json;
	sqlite3_stmt *s;
	size_t i;
	int rc;

	if (json)
		json_object(&j, NULL);
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		s = catalog_prepare(a->catalog, tables[i].sql, err,
		    sizeof(err));
		if (s == NULL)
			return archive_refuse(err);
		if (json)
			json_array(&j, tables[i].key);
		else
			printf("%s%-32s  %12s  %10s\n", i == 0 ? "" : "\n",
			    tables[i].title, "BYTES", "SEGMENTS");
		while ((rc = catalog_step(a->catalog, s, err,
		    sizeof(err))) == 1) {
			if (json)
				write_row(&j, s);
			else
				print_row(s);
		}
		if (rc < 0)
			return archive_refuse(err);
		if (json)
			json_array_end(&j);
	}
	if (json) {
		json_object_end(&j);
		putchar('\n');
	}
	return ARCHIVE_DONE;
}
