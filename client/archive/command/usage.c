#include <inttypes.h>
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
	    "GROUP BY segment) SELECT m.name, count(*), CAST(sum(s.bytes * "
	    "CASE WHEN w.bytes > 0 THEN 1.0 * m.bytes / w.bytes ELSE 0 END) "
	    "AS INTEGER) "
	    "FROM machines AS m JOIN segments AS s ON s.id = m.segment "
	    "JOIN whole AS w ON w.segment = m.segment "
	    "WHERE s.local = ?1 AND m.packets > 0 GROUP BY m.name "
	    "ORDER BY 3 DESC" },
	{ "RECORDING", "recordings",
	    "SELECT s.recording, count(*), sum(s.bytes) FROM segments AS s "
	    "WHERE s.local = ?1 GROUP BY 1 ORDER BY 3 DESC" },
	{ "DAY", "days",
	    "SELECT date(s.first_ns / 1000000000, 'unixepoch', 'localtime'), "
	    "count(*), sum(s.bytes) FROM segments AS s WHERE s.local = ?1 "
	    "GROUP BY 1 ORDER BY 1" },
	{ "ALL", "all",
	    "SELECT 'here', count(*), coalesce(sum(bytes), 0) FROM segments "
	    "WHERE local <> 0 UNION ALL SELECT 'pinned', count(*), "
	    "coalesce(sum(bytes), 0) FROM segments WHERE local <> 0 AND "
	    "pinned <> 0 UNION ALL SELECT 'only in the store', count(*), "
	    "coalesce(sum(bytes), 0) FROM segments WHERE local = 0" },
};

static void
print_row(struct catalog_statement *s)
{
	char name[TEXT_CELL_MAX], bytes[HUMAN_TEXT_MAX], n[HUMAN_TEXT_MAX];

	text_cell_put(stdout, text_cell_plain(
	    catalog_text(s, 0), name), 32);
	printf("%12s  %10s\n", human_bytes(bytes,
	    (uint64_t)catalog_int(s, 2)), human_count(n,
	    (uint64_t)catalog_int(s, 1)));
}

static void
write_row(struct json_out *j, struct catalog_statement *s)
{
	const char *name = catalog_text(s, 0);

	json_object(j, NULL);
	json_string(j, "name", name == NULL ? "" : name);
	json_uint(j, "segments", (uint64_t)catalog_int(s, 1));
	json_uint(j, "bytes", (uint64_t)catalog_int(s, 2));
	json_object_end(j);
}

int
archive_usage(const struct archive_open *a)
{
	struct json_out j = { .out = stdout };
	char err[ARCHIVE_ERROR_SIZE];
	const struct catalog_value local =
	    CATALOG_INT(!catalog_is_shared(a->catalog));
	bool json = a->options->json;
	struct catalog_statement *s;
	size_t i;
	int rc;

	if (json)
		json_object(&j, NULL);
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		s = catalog_prepare(a->catalog, tables[i].sql, err,
		    sizeof(err));
		/* The last has no value: it is about all segments. */
		if (s == NULL || catalog_bind(a->catalog, s, &local, i <
		    sizeof(tables) / sizeof(tables[0]) - 1, err,
		    sizeof(err)) < 0)
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
