#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_copy.h"
#include "client/archive/command/actions.h"
#include "client/archive/segment_json.h"
#include "client/archive/store/store_program.h"
#include "client/text/progress.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

struct reindex {
	struct catalog *catalog;
	struct catalog *shared; /* or NULL */
	int64_t now_ns;
	uint64_t added, known, refused;
	bool failed; /* the shared catalogue takes no more */
	struct progress progress;
};

/* Columns of a line of `tributary-upload --descriptions`. */
enum { URL, ETAG, SIZE, DESCRIPTION, PATH, BYTES };
static const char line_sql[] =
    "SELECT j->>'url', j->>'etag', j->>'size', j->'description',"
    " j->'description'->>'path', j->'description'->>'bytes'"
    " FROM (SELECT ?1 AS j) WHERE json_valid(j)"
    " AND json_type(j, '$.url') = 'text'"
    " AND json_type(j, '$.description.path') = 'text'";

/* Whether an object's name ends with the path that its description says. */
static bool
ends_with(const char *url, const char *path)
{
	size_t len = strlen(url), tail = strlen(path);

	return len > tail && url[len - tail - 1] == '/' &&
	    strcmp(url + len - tail, path) == 0;
}

static bool
id_cb(void *arg, const struct catalog_row *row)
{
	*(int64_t *)arg = row->id;
	return false;
}

/* Moves the one row of the scratch catalogue into the shared one. */
static int
pass_on(struct reindex *r, const char *path, char *err, size_t err_size)
{
	char why[ARCHIVE_ERROR_SIZE];
	int64_t id = 0;
	int rc = -1;

	if (catalog_find(r->catalog, path, id_cb, &id, err, err_size) != 1)
		return -1;
	switch (catalog_copy(r->shared, r->catalog, id, err, err_size)) {
	case CATALOG_COPY_FAILED:
		/* No other one would do better. */
		r->failed = true;
		break;
	case CATALOG_COPY_REFUSED:
		break;
	case CATALOG_COPY_ADDED:
		r->added++;
		rc = 0;
		break;
	case CATALOG_COPY_KNOWN:
		r->known++;
		rc = 0;
		break;
	}
	if (catalog_remove(r->catalog, id, why, sizeof(why)) == 0)
		return rc;
	r->failed = true;
	return FAILURE(err, err_size, "%s", why);
}

/* Puts what a row of line_sql says.  -1 with a sentence. */
static int
put(struct reindex *r, struct catalog_statement *s, char *err, size_t err_size)
{
	const char *url = catalog_text(s, URL);
	const struct catalog_stored stored = {
		.state = "stored",
		.url = url,
		.etag = catalog_text(s, ETAG),
		.at_ns = r->now_ns,
	};

	if (!ends_with(url, catalog_text(s, PATH)))
		return FAILURE(err, err_size, "its description is of another "
		    "segment, %.200s", catalog_text(s, PATH));
	if (catalog_int(s, SIZE) != catalog_int(s, BYTES))
		return FAILURE(err, err_size, "it has %lld bytes, and should "
		    "have %lld", (long long)catalog_int(s, SIZE),
		    (long long)catalog_int(s, BYTES));
	switch (segment_json_put(r->catalog, catalog_text(s, DESCRIPTION),
	    &stored, err, err_size)) {
	case SEGMENT_JSON_FAILED:
		return -1;
	case SEGMENT_JSON_ADDED:
		if (r->shared != NULL)
			return pass_on(r, catalog_text(s, PATH), err,
			    err_size);
		r->added++;
		return 0;
	case SEGMENT_JSON_KNOWN:
		r->known++;
		return 0;
	case SEGMENT_JSON_OTHER:
		break;
	}
	return FAILURE(err, err_size, "the catalogue has another segment of "
	    "this path, which stays");
}

/* One object that is of no use keeps no others back. */
static int
line_cb(void *arg, const char *line, char *err, size_t err_size)
{
	const struct catalog_value value = CATALOG_STR(line);
	char why[ARCHIVE_ERROR_SIZE];
	struct reindex *r = arg;
	struct catalog_statement *s;
	int rc;

	progress_show(&r->progress, r->added + r->known + r->refused);
	s = catalog_prepare(r->catalog, line_sql, err, err_size);
	if (s == NULL ||
	    catalog_bind(r->catalog, s, &value, 1, err, err_size) != 0 ||
	    (rc = catalog_step(r->catalog, s, err, err_size)) < 0)
		return -1;
	if (rc == 0) {
		progress_clear(&r->progress);
		plain_printf(stderr, "tributary archive: no description of a "
		    "segment: %.200s\n", line);
		r->refused++;
		return 0;
	}
	rc = put(r, s, why, sizeof(why));
	if (r->failed) {
		catalog_reset(s);
		return FAILURE(err, err_size, "%s", why);
	}
	if (rc != 0) {
		progress_clear(&r->progress);
		plain_printf(stderr, "tributary archive: %s: %s\n",
		    catalog_text(s, URL), why);
		r->refused++;
	}
	catalog_reset(s);
	return 0;
}

int
archive_reindex_from(const struct archive_open *a)
{
	struct reindex r = { .catalog = a->catalog, .shared = a->shared };
	char err[ARCHIVE_ERROR_SIZE];
	struct timespec now;
	int rc;

	clock_gettime(CLOCK_REALTIME, &now);
	r.now_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	/* How many there are the store says with the last one. */
	progress_begin(&r.progress, "descriptions read", 0);
	rc = store_program_each(a->options->settings, a->options->from,
	    line_cb, &r, err, sizeof(err));
	progress_clear(&r.progress);
	printf("%" PRIu64 " segment%s of the store taken, %" PRIu64
	    " known before", r.added, human_s(r.added), r.known);
	if (r.refused > 0)
		printf(", %" PRIu64 " of no use", r.refused);
	printf("\n");
	if (rc != 0)
		return archive_refuse(err);
	return r.refused > 0 ? ARCHIVE_NOT_DONE : ARCHIVE_DONE;
}
