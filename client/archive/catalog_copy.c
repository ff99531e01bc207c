#include "client/archive/catalog_copy.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "client/archive/segment_entry.h"
#include "transport/base/failure.h"

/* Rows of one statement: each is a way to the server and back. */
#define ROWS 100u
/* The most columns of a row. */
#define COLUMNS 32u

/*
 * Columns of a list behind its segment; kinds: "i" numbers, "t" texts.  The same
 * segment's rows may become the same ones when their texts become UTF-8.
 */
struct list {
	const char *read; /* of segment ? */
	const char *put, *behind;
	const char *kinds;
};

static const struct list lists[] = {
	{ "SELECT id, name, packets, bytes, first_ns, last_ns FROM machines "
	    "WHERE segment = ?",
	    "INSERT INTO machines (segment, id, name, packets, bytes, "
	    "first_ns, last_ns) VALUES ", "", "itiiii" },
	{ "SELECT position, text, cause, unit, place, count, bytes, buffer, "
	    "machine_id, at_least FROM losses WHERE segment = ?",
	    "INSERT INTO losses (segment, position, text, cause, unit, place, "
	    "count, bytes, buffer, machine_id, at_least) VALUES ", "",
	    "ittttiiiii" },
	{ "SELECT position, name, producer, machine_id, at_ns, begun_by FROM "
	    "triggers WHERE segment = ?",
	    "INSERT INTO triggers (segment, position, name, producer, "
	    "machine_id, at_ns, begun_by) VALUES ", "", "ittiii" },
	{ "SELECT name FROM data_sources WHERE segment = ?",
	    "INSERT INTO data_sources (segment, name) VALUES ",
	    " ON CONFLICT DO NOTHING", "t" },
};

static const char read_processes[] =
    "SELECT p.machine, p.name, p.pid FROM seen AS x JOIN processes AS p ON "
    "p.id = x.process WHERE x.segment = ?";
/* Processes stand for themselves first, then for the segment. */
static const struct list processes[] = {
	{ read_processes, "INSERT INTO processes (machine, name, pid) VALUES ",
	    " ON CONFLICT DO NOTHING", "tti" },
	{ read_processes, "INSERT INTO seen (process, segment) SELECT p.id, "
	    "s.id FROM (VALUES ", ") AS v JOIN processes AS p ON p.machine = "
	    "v.column1 AND p.name = v.column2 AND p.pid = v.column3 "
	    "JOIN segments AS s ON s.id = ? WHERE TRUE "
	    "ON CONFLICT DO NOTHING", "tti" },
};

struct copying {
	struct catalog *to, *from;
	int64_t from_id, id;
	/* Rows that are read, and not put yet; bytes are owned. */
	struct catalog_value values[ROWS * COLUMNS + 1];
	size_t n;
	char *err;
	size_t err_size;
};

/* ---- values ---- */

static void
forget(struct copying *k)
{
	while (k->n > 0) {
		k->n--;
		if (k->values[k->n].type != CATALOG_INTEGER)
			free((void *)k->values[k->n].bytes);
	}
}

static int
keep(struct copying *k, const void *bytes, size_t len, enum catalog_type type)
{
	char *copy = NULL;

	if (bytes != NULL) {
		if ((copy = malloc(len + 1)) == NULL)
			return FAILURE(k->err, k->err_size, "out of memory");
		memcpy(copy, bytes, len);
		copy[len] = '\0';
	}
	k->values[k->n++] = (struct catalog_value){ .type = type,
		.bytes = copy, .len = len };
	return 0;
}

static int
keep_column(struct copying *k, struct catalog_statement *s, int column,
    char kind)
{
	const char *text;
	const void *bytes;
	size_t len;

	if (kind == 'i' && !catalog_is_null(s, column)) {
		k->values[k->n++] = CATALOG_INT(catalog_int(s, column));
		return 0;
	}
	if (kind == 'b') {
		bytes = catalog_blob(s, column, &len);
		return keep(k, bytes, len, CATALOG_BLOB);
	}
	text = kind == 'i' ? NULL : catalog_text(s, column);
	return keep(k, text, text == NULL ? 0 : strlen(text), CATALOG_TEXT);
}

static struct catalog_statement *
ask(struct copying *k, const char *sql, int64_t id)
{
	const struct catalog_value v = CATALOG_INT(id);
	struct catalog_statement *s = catalog_prepare(k->from, sql, k->err,
	    k->err_size);

	return s == NULL || catalog_bind(k->from, s, &v, 1, k->err,
	    k->err_size) < 0 ? NULL : s;
}

/* ---- lists ---- */

/* "(?,?),(?,?)" between the parts of the statement; NULL: no memory. */
static char *
put_sql(const struct list *list, size_t columns, size_t rows)
{
	char *sql = NULL;
	size_t i, n;
	FILE *out = open_memstream(&sql, &n);

	if (out == NULL)
		return NULL;
	fputs(list->put, out);
	for (i = 0; i < rows * columns; i++)
		fputs(i % columns != 0 ? ",?" : i == 0 ? "(?" : "),(?", out);
	fprintf(out, ")%s", list->behind);
	if (fclose(out) == 0)
		return sql;
	free(sql);
	return NULL;
}

static int
run(struct copying *k, const char *sql)
{
	struct catalog_statement *s = catalog_compile(k->to, sql, k->err,
	    k->err_size);
	int rc = -1;

	if (s != NULL && catalog_bind(k->to, s, k->values, k->n, k->err,
	    k->err_size) == 0)
		rc = catalog_step(k->to, s, k->err, k->err_size);
	if (rc == 1)
		k->id = catalog_int(s, 0);
	catalog_finish(s);
	return rc < 0 ? -1 : 0;
}

static bool
is_of_segment(const struct list *list)
{
	return strstr(list->put, "(segment,") != NULL;
}

/* Puts the rows that are kept, as one statement. */
static int
put_rows(struct copying *k, const struct list *list, size_t columns,
    size_t rows)
{
	char *sql;
	int rc;

	if (rows == 0)
		return 0;
	/* The segment that is named behind the rows is a value more. */
	if (strchr(list->behind, '?') != NULL)
		k->values[k->n++] = CATALOG_INT(k->id);
	if ((sql = put_sql(list, columns, rows)) == NULL)
		return FAILURE(k->err, k->err_size, "out of memory");
	rc = run(k, sql);
	free(sql);
	forget(k);
	return rc;
}

/* Keeps the columns of a row. */
static int
keep_row(struct copying *k, struct catalog_statement *s,
    const struct list *list)
{
	const char *kind;

	if (is_of_segment(list))
		k->values[k->n++] = CATALOG_INT(k->id);
	for (kind = list->kinds; *kind != '\0'; kind++)
		if (keep_column(k, s, (int)(kind - list->kinds), *kind) < 0)
			return -1;
	return 0;
}

static int
copy_list(struct copying *k, const struct list *list)
{
	struct catalog_statement *s = ask(k, list->read, k->from_id);
	size_t rows = 0, columns = strlen(list->kinds) + is_of_segment(list);
	int rc;

	if (s == NULL)
		return -1;
	while ((rc = catalog_step(k->from, s, k->err, k->err_size)) == 1) {
		if (keep_row(k, s, list) < 0)
			goto fail;
		if (++rows < ROWS)
			continue;
		if (put_rows(k, list, columns, rows) < 0)
			goto fail;
		rows = 0;
	}
	return rc < 0 ? -1 : put_rows(k, list, columns, rows);

fail:
	catalog_reset(s);
	return -1;
}

static int
copy_lists(struct copying *k)
{
	const struct catalog_value id = CATALOG_INT(k->id);
	struct catalog_statement *s;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (copy_list(k, &lists[i]) < 0)
			return -1;
	for (i = 0; i < sizeof(processes) / sizeof(processes[0]); i++)
		if (copy_list(k, &processes[i]) < 0)
			return -1;
	s = catalog_prepare(k->to, "UPDATE processes SET segments = segments + "
	    "1 WHERE id IN (SELECT process FROM seen WHERE segment = ?)",
	    k->err, k->err_size);
	if (s == NULL || catalog_bind(k->to, s, &id, 1, k->err,
	    k->err_size) < 0 || catalog_step(k->to, s, k->err,
	    k->err_size) < 0)
		return -1;
	return catalog_put_terms(k->to, k->id, k->err, k->err_size);
}

/* ---- the segment ---- */

/* Columns of the row that are copied as they are. */
#define SAME                                                                  \
    "bytes, mtime_ns, sha256, verdict, problem, uuid, recording_uuid, "       \
    "recording, number, cause, end_cause, is_last, unanswered, machine, "     \
    "packets, lost, first_ns, last_ns, first_boot_ns, last_boot_ns, class, "  \
    "stored_state, stored_url, stored_etag, stored_detail, stored_ns"
#define SAME_KINDS "iibttbbtittiitiiiiiiitttti"

static const struct list segment = {
	"SELECT path, " SAME " FROM segments WHERE id = ?",
	"INSERT INTO segments (path, " SAME ", local) VALUES ",
	" RETURNING id", "t" SAME_KINDS };

/* Reads the segment's row into values: its path first. */
static int
read_segment(struct copying *k)
{
	struct catalog_statement *s = ask(k, segment.read, k->from_id);
	int rc;

	if (s == NULL ||
	    (rc = catalog_step(k->from, s, k->err, k->err_size)) < 0)
		return -1;
	if (rc == 0)
		return FAILURE(k->err, k->err_size, "it is not in the "
		    "catalogue any more");
	rc = keep_row(k, s, &segment);
	catalog_reset(s);
	return rc;
}

/* Columns of the row that say which file it is, and where. */
enum { PATH = 0, SHA256 = 3, URL = 23 };

static enum catalog_copied
refuse(struct copying *k, const char *why)
{
	snprintf(k->err, k->err_size, "%s", why);
	return CATALOG_COPY_REFUSED;
}

/* Puts the collector's name before the path. */
static enum catalog_copied
name_segment(struct copying *k)
{
	char name[CATALOG_COLLECTOR_MAX], *path;
	const char *below = k->values[PATH].bytes, *url = k->values[URL].bytes;

	if (below == NULL || !archive_path_is_segment(below))
		return refuse(k, "its path is none of a segment");
	if (url == NULL)
		return refuse(k, "no store has it");
	if (catalog_collector(name, url, below, k->err, k->err_size) < 0)
		return CATALOG_COPY_REFUSED;
	if (asprintf(&path, "%s/%s", name, below) < 0) {
		snprintf(k->err, k->err_size, "out of memory");
		return CATALOG_COPY_FAILED;
	}
	free((void *)below);
	k->values[PATH].bytes = path;
	return CATALOG_COPY_ADDED;
}

/*
 * Looks for a row of the same path: one of the same file in the same place stays;
 * one of another file there, which was deleted since, goes.
 */
static enum catalog_copied
make_room(struct copying *k)
{
	struct catalog_statement *s = catalog_prepare(k->to, "SELECT id, "
	    "sha256, stored_url FROM segments WHERE path = ?", k->err,
	    k->err_size);
	const struct catalog_value *v = k->values;
	const void *sha256;
	const char *url;
	bool file, place;
	int64_t id;
	size_t len;
	int rc;

	if (s == NULL || catalog_bind(k->to, s, &v[PATH], 1, k->err,
	    k->err_size) < 0 ||
	    (rc = catalog_step(k->to, s, k->err, k->err_size)) < 0)
		return CATALOG_COPY_FAILED;
	if (rc == 0)
		return CATALOG_COPY_ADDED;
	id = catalog_int(s, 0);
	sha256 = catalog_blob(s, 1, &len);
	file = sha256 != NULL && v[SHA256].bytes != NULL &&
	    len == v[SHA256].len && memcmp(sha256, v[SHA256].bytes, len) == 0;
	url = catalog_text(s, 2);
	place = url != NULL && strcmp(url, v[URL].bytes) == 0;
	if (!place)
		snprintf(k->err, k->err_size, "the catalogue has another "
		    "segment of this collector and path, %s: two uploaders "
		    "send to folders of one name", url == NULL ? "" : url);
	catalog_reset(s);
	if (!place)
		return CATALOG_COPY_REFUSED;
	if (file)
		return CATALOG_COPY_KNOWN;
	return catalog_remove(k->to, id, k->err, k->err_size) < 0 ?
	    CATALOG_COPY_FAILED : CATALOG_COPY_ADDED;
}

static enum catalog_copied
copy(struct copying *k)
{
	enum catalog_copied rc;

	if (read_segment(k) < 0)
		return CATALOG_COPY_FAILED;
	if ((rc = name_segment(k)) != CATALOG_COPY_ADDED ||
	    (rc = make_room(k)) != CATALOG_COPY_ADDED)
		return rc;
	/* The column local: the file is on no disk of a reader. */
	k->values[k->n++] = CATALOG_INT(0);
	if (put_rows(k, &segment, k->n, 1) < 0 || copy_lists(k) < 0)
		return CATALOG_COPY_FAILED;
	return CATALOG_COPY_ADDED;
}

/*
 * Copies in a transaction of each: the row that is read is of one moment, and no
 * writer of the archive waits for it.
 */
static enum catalog_copied
copy_at_once(struct copying *k)
{
	enum catalog_copied rc = CATALOG_COPY_FAILED;
	char err[64];

	if (catalog_begin(k->to, k->err, k->err_size) < 0)
		return rc;
	if (catalog_execute(k->from, "BEGIN", k->err, k->err_size) == 0) {
		rc = copy(k);
		/* The transaction wrote nothing. */
		(void)catalog_execute(k->from, "ROLLBACK", err, sizeof(err));
	}
	if (rc == CATALOG_COPY_FAILED)
		catalog_rollback(k->to);
	else if (catalog_commit(k->to, k->err, k->err_size) < 0)
		rc = CATALOG_COPY_FAILED;
	return rc;
}

enum catalog_copied
catalog_copy(struct catalog *to, struct catalog *from, int64_t id, char *err,
    size_t err_size)
{
	struct copying *k = calloc(1, sizeof(*k));
	enum catalog_copied rc;

	if (k == NULL) {
		snprintf(err, err_size, "out of memory");
		return CATALOG_COPY_FAILED;
	}
	*k = (struct copying){ .to = to, .from = from, .from_id = id,
		.err = err, .err_size = err_size };
	rc = copy_at_once(k);
	forget(k);
	free(k);
	return rc;
}

int
catalog_collector(char out[CATALOG_COLLECTOR_MAX], const char *url,
    const char *path, char *err, size_t err_size)
{
	size_t end = strlen(url), tail = path == NULL ? 0 : strlen(path);
	size_t begin;

	if (end > tail && strcmp(url + end - tail, path == NULL ? "" :
	    path) == 0)
		end -= tail;
	while (end > 0 && url[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && url[begin - 1] != '/'; begin--)
		;
	if (begin == end || url[begin] == '.' ||
	    end - begin >= CATALOG_COLLECTOR_MAX)
		return FAILURE(err, err_size, "%.200s: its last folder is to "
		    "be the collector's name", url);
	memcpy(out, url + begin, end - begin);
	out[end - begin] = '\0';
	return 0;
}
