#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/selection.h"
#include "client/archive/selection_sql.h"
#include "transport/base/failure.h"
#include "transport/base/glob.h"

/*
 * A condition with at most so many segments is looked up first, and the others
 * are asked of these.  One with more is met soon on a walk through time.
 */
#define CANDIDATES 4096
/* More machines than this that a pattern means are asked of each segment. */
#define MAX_NAMES 64u
#define CLASSES   64u

struct hit {
	int64_t id, first_ns;
	bool has_wall;
};

struct query {
	struct catalog *catalog;
	const struct selection *select;
	size_t limit;
	bool oldest_first;
	struct hit *hits; /* owned */
	size_t n, cap;
	bool no_memory;
	struct selection_sql sql;
	char *err;
	size_t err_size;
};

static bool
hit_cb(void *arg, const struct catalog_row *row)
{
	struct query *q = arg;
	struct hit *grown;

	if (q->n == q->cap) {
		q->cap = q->cap == 0 ? 64 : 2 * q->cap;
		grown = realloc(q->hits, q->cap * sizeof(*grown));
		if (grown == NULL) {
			q->no_memory = true;
			return false;
		}
		q->hits = grown;
	}
	q->hits[q->n++] = (struct hit){ row->id, row->first_ns,
		row->has_wall };
	return true;
}

/* Runs the SQL so far, with an order and the limit behind it. */
static int
run(struct query *q, const char *order)
{
	struct selection_sql *s = &q->sql;

	selection_sql_conditions(s, q->select);
	if (order != NULL) {
		selection_sql_add(s, " ORDER BY ");
		selection_sql_add(s, order);
		if (!q->oldest_first)
			selection_sql_add(s, " DESC");
	}
	if (q->limit != 0)
		selection_sql_integer(s, " LIMIT ?", (int64_t)q->limit);
	if (s->too_long)
		return FAILURE(q->err, q->err_size, "the names are too long");
	if (catalog_each(q->catalog, s->text, s->values, s->n, hit_cb, q,
	    q->err, q->err_size) < 0)
		return -1;
	return q->no_memory ? FAILURE(q->err, q->err_size, "out of memory") :
	    0;
}

/* ---- few candidates ---- */

/* The column, without an index of it, in the selection's time. */
static void
add_time(struct query *q)
{
	if (!q->select->has_time)
		return;
	selection_sql_integer(&q->sql, " AND +s.first_ns <= ?",
	    q->select->to_ns);
	selection_sql_integer(&q->sql, " AND +s.last_ns >= ?",
	    q->select->from_ns);
}

enum driver { BY_TRIGGER, BY_PROCESS, BY_LOSS };

/* Appends a SELECT of the segments with what one condition asks for. */
static bool
add_candidates(struct query *q, enum driver driver)
{
	const struct selection *s = q->select;

	switch (driver) {
	case BY_TRIGGER:
		if (s->trigger == NULL)
			return false;
		selection_sql_add(&q->sql, "SELECT t.segment FROM triggers AS "
		    "t WHERE ");
		selection_sql_name(&q->sql, "t.name", s->trigger);
		break;
	case BY_PROCESS:
		if (s->process == NULL)
			return false;
		selection_sql_add(&q->sql, "SELECT x.segment FROM seen AS x "
		    "WHERE x.process");
		selection_sql_processes(&q->sql, s);
		break;
	case BY_LOSS:
		if (!s->lost)
			return false;
		selection_sql_add(&q->sql, "SELECT l.id FROM segments AS l "
		    "WHERE l.lost > 0");
		break;
	}
	selection_sql_integer(&q->sql, " LIMIT ?", CANDIDATES + 1);
	return true;
}

/* Runs SQL that answers with one number.  -1: with a sentence. */
static int
ask_number(struct query *q, int64_t *out)
{
	struct selection_sql *s = &q->sql;
	sqlite3_stmt *stmt = NULL;
	int rc = -1;

	if (s->too_long)
		return FAILURE(q->err, q->err_size, "the names are too long");
	if (sqlite3_prepare_v2(catalog_handle(q->catalog), s->text, -1, &stmt,
	    NULL) != SQLITE_OK)
		return FAILURE(q->err, q->err_size, "the catalogue cannot be "
		    "asked: %s", sqlite3_errmsg(catalog_handle(q->catalog)));
	if (catalog_bind(q->catalog, stmt, s->values, s->n, q->err,
	    q->err_size) == 0 && catalog_step(q->catalog, stmt, q->err,
	    q->err_size) == 1) {
		*out = sqlite3_column_int64(stmt, 0);
		rc = 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

/* 1: done; 0: this condition has too many segments, or is not asked for. */
static int
run_candidates(struct query *q, enum driver driver)
{
	int64_t count = 0;

	selection_sql_init(&q->sql);
	selection_sql_add(&q->sql, "SELECT count(*) FROM (");
	if (!add_candidates(q, driver))
		return 0;
	selection_sql_add(&q->sql, ")");
	if (ask_number(q, &count) < 0)
		return -1;
	if (count > CANDIDATES)
		return 0;
	selection_sql_init(&q->sql);
	selection_sql_add(&q->sql, "WHERE s.id IN (");
	(void)add_candidates(q, driver);
	selection_sql_add(&q->sql, ")");
	add_time(q);
	return run(q, "s.first_ns") < 0 ? -1 : 1;
}

/* ---- walks through time ---- */

/* The first time that a segment of a class may have. */
static int64_t
earliest(const struct query *q, int64_t class)
{
	int64_t from = q->select->has_time ? q->select->from_ns : INT64_MIN;

	if (class > 62 || from < INT64_MIN + (INT64_C(1) << class))
		return INT64_MIN;
	return from - (INT64_C(1) << class);
}

static void
add_span(struct query *q, int64_t class, const char *class_is,
    const char *first_at_least, const char *first_at_most,
    const char *last_at_least)
{
	const struct selection *s = q->select;

	selection_sql_integer(&q->sql, class_is, class);
	selection_sql_integer(&q->sql, first_at_least, earliest(q, class));
	selection_sql_integer(&q->sql, first_at_most, s->has_time ? s->to_ns :
	    INT64_MAX);
	selection_sql_integer(&q->sql, last_at_least, s->has_time ?
	    s->from_ns : INT64_MIN);
}

static int
walk_segments(struct query *q, int64_t class)
{
	selection_sql_init(&q->sql);
	add_span(q, class, "WHERE s.class = ?", " AND s.first_ns >= ?",
	    " AND s.first_ns <= ?", " AND s.last_ns >= ?");
	return run(q, "s.first_ns");
}

static int
walk_machine(struct query *q, const char *name, int64_t class)
{
	selection_sql_init(&q->sql);
	selection_sql_add(&q->sql, "JOIN machines AS w ON w.segment = s.id "
	    "WHERE ");
	selection_sql_name(&q->sql, "w.name", name);
	add_span(q, class, " AND w.class = ?", " AND w.first_ns >= ?",
	    " AND w.first_ns <= ?", " AND w.last_ns >= ?");
	return run(q, "w.first_ns");
}

/* Segments in which the machine has no packet with a time. */
static int
walk_timeless_machine(struct query *q, const char *name)
{
	selection_sql_init(&q->sql);
	selection_sql_add(&q->sql, "JOIN machines AS w ON w.segment = s.id "
	    "WHERE ");
	selection_sql_name(&q->sql, "w.name", name);
	selection_sql_add(&q->sql, " AND w.class IS NULL");
	add_time(q);
	return run(q, "s.first_ns");
}

/* Segments without a time are found only where none is asked for. */
static int
walk_timeless(struct query *q)
{
	if (q->select->has_time)
		return 0;
	selection_sql_init(&q->sql);
	selection_sql_add(&q->sql, "WHERE s.class IS NULL");
	return run(q, NULL);
}

/*
 * Goes through the values of an index's first column, a search each, however
 * many rows there are.
 */
#define DISTINCT_CLASSES                                                      \
    "WITH RECURSIVE k(v) AS (SELECT min(class) FROM segments UNION ALL "     \
    "SELECT (SELECT min(class) FROM segments WHERE class > k.v) FROM k "      \
    "WHERE k.v IS NOT NULL) SELECT v FROM k WHERE v IS NOT NULL"
#define DISTINCT_NAMES                                                        \
    "WITH RECURSIVE k(v) AS (SELECT min(name) FROM machines UNION ALL "      \
    "SELECT (SELECT min(name) FROM machines WHERE name > k.v) FROM k "        \
    "WHERE k.v IS NOT NULL) SELECT v FROM k WHERE v IS NOT NULL"
#define DISTINCT_CLASSES_OF                                                   \
    "WITH RECURSIVE k(v) AS (SELECT min(class) FROM machines WHERE "         \
    "name = ?1 UNION ALL SELECT (SELECT min(class) FROM machines WHERE "      \
    "name = ?1 AND class > k.v) FROM k WHERE k.v IS NOT NULL) "               \
    "SELECT v FROM k WHERE v IS NOT NULL"

/* Names of machines, those that a pattern means. */
struct names {
	char *name[MAX_NAMES]; /* owned */
	size_t n;
	bool too_many;
};

static void
names_done(struct names *names)
{
	while (names->n > 0)
		free(names->name[--names->n]);
}

static int
read_names(struct query *q, const char *glob, struct names *out)
{
	sqlite3_stmt *s;
	const char *name;
	int rc;

	*out = (struct names){ .n = 0 };
	if (!glob_is_pattern(glob)) {
		out->name[out->n++] = strdup(glob);
		return out->name[0] == NULL ? FAILURE(q->err, q->err_size,
		    "out of memory") : 0;
	}
	s = catalog_prepare(q->catalog, DISTINCT_NAMES, q->err, q->err_size);
	if (s == NULL)
		return -1;
	while ((rc = catalog_step(q->catalog, s, q->err, q->err_size)) == 1) {
		name = (const char *)sqlite3_column_text(s, 0);
		if (name == NULL || !glob_match(glob, name))
			continue;
		out->too_many = out->n == MAX_NAMES;
		if (out->too_many ||
		    (out->name[out->n] = strdup(name)) == NULL)
			break;
		out->n++;
	}
	sqlite3_reset(s);
	return rc < 0 ? -1 : 0;
}

static int
read_classes(struct query *q, const char *machine, int64_t out[CLASSES],
    size_t *n)
{
	const struct catalog_value name = CATALOG_STR(machine);
	sqlite3_stmt *s;
	int rc;

	*n = 0;
	s = catalog_prepare(q->catalog, machine == NULL ? DISTINCT_CLASSES :
	    DISTINCT_CLASSES_OF, q->err, q->err_size);
	if (s == NULL || catalog_bind(q->catalog, s, &name, machine != NULL,
	    q->err, q->err_size) < 0)
		return -1;
	while ((rc = catalog_step(q->catalog, s, q->err, q->err_size)) == 1 &&
	    *n < CLASSES)
		out[(*n)++] = sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return rc < 0 ? -1 : 0;
}

static int
walk_all_segments(struct query *q)
{
	int64_t classes[CLASSES];
	size_t i, n;

	if (read_classes(q, NULL, classes, &n) < 0)
		return -1;
	for (i = 0; i < n; i++) {
		if (walk_segments(q, classes[i]) < 0)
			return -1;
	}
	return walk_timeless(q);
}

static int
walk_all_of(struct query *q, const char *machine)
{
	int64_t classes[CLASSES];
	size_t i, n;

	if (read_classes(q, machine, classes, &n) < 0)
		return -1;
	for (i = 0; i < n; i++) {
		if (walk_machine(q, machine, classes[i]) < 0)
			return -1;
	}
	return walk_timeless_machine(q, machine);
}

static int
walk(struct query *q)
{
	struct names names;
	int rc = 0;
	size_t i;

	if (q->select->machine == NULL)
		return walk_all_segments(q);
	if (read_names(q, q->select->machine, &names) < 0)
		return -1;
	if (names.too_many)
		rc = walk_all_segments(q);
	else
		for (i = 0; rc == 0 && i < names.n; i++)
			rc = walk_all_of(q, names.name[i]);
	names_done(&names);
	return rc;
}

/* ---- paths ---- */

/* The path below the archive's folder; out has room for PATH_MAX. */
static const char *
below(const char *folder, const char *path, char *out)
{
	char base[PATH_MAX];
	size_t n;

	if (realpath(path, out) == NULL || realpath(folder, base) == NULL)
		return path;
	n = strlen(base);
	return strncmp(out, base, n) == 0 && out[n] == '/' ? out + n + 1 :
	    path;
}

static int
find_paths(struct query *q)
{
	const struct selection *s = q->select;
	char whole[PATH_MAX];
	size_t i;
	int rc;

	for (i = 0; i < s->n_paths; i++) {
		/* As the catalogue has it, or else as a shell sees it. */
		rc = catalog_find(q->catalog, s->paths[i], hit_cb, q, q->err,
		    q->err_size);
		if (rc == 0)
			rc = catalog_find(q->catalog, below(s->folder,
			    s->paths[i], whole), hit_cb, q, q->err,
			    q->err_size);
		if (rc == 0)
			return FAILURE(q->err, q->err_size, "the archive %s "
			    "has no segment %s", s->folder, s->paths[i]);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* ---- all together ---- */

static int
compare_hits(const void *left, const void *right)
{
	const struct hit *a = left, *b = right;

	if (a->has_wall != b->has_wall)
		return a->has_wall ? -1 : 1;
	if (a->first_ns != b->first_ns)
		return a->first_ns > b->first_ns ? -1 : 1;
	return a->id > b->id ? -1 : a->id < b->id;
}

/* Sorts the hits, drops doubled ones, and keeps the limit. */
static void
settle_hits(struct query *q)
{
	size_t i, n = 0;

	if (q->n == 0)
		return;
	qsort(q->hits, q->n, sizeof(*q->hits), compare_hits);
	for (i = 0; i < q->n; i++) {
		if (n == 0 || q->hits[n - 1].id != q->hits[i].id)
			q->hits[n++] = q->hits[i];
	}
	if (q->limit != 0 && n > q->limit) {
		if (q->oldest_first)
			memmove(q->hits, q->hits + n - q->limit,
			    q->limit * sizeof(*q->hits));
		n = q->limit;
	}
	q->n = n;
}

static int
find_hits(struct query *q)
{
	static const enum driver drivers[] = { BY_TRIGGER, BY_PROCESS,
		BY_LOSS };
	size_t i;
	int rc = 0;

	if (q->select->n_paths > 0)
		return find_paths(q);
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if ((rc = run_candidates(q, drivers[i])) != 0)
			return rc < 0 ? -1 : 0;
	}
	return walk(q);
}

static int
query(struct selection_found *out, struct query *q)
{
	int64_t *ids = NULL;
	size_t i;
	int rc;

	if ((rc = find_hits(q)) == 0) {
		settle_hits(q);
		ids = calloc(q->n + 1, sizeof(*ids));
		if (ids == NULL)
			rc = FAILURE(q->err, q->err_size, "out of memory");
		for (i = 0; rc == 0 && i < q->n; i++)
			ids[i] = q->hits[i].id;
	}
	if (rc == 0)
		*out = (struct selection_found){ ids, q->n };
	free(q->hits);
	return rc;
}

int
selection_run(struct selection_found *out, struct catalog *c,
    const struct selection *s, size_t limit, char *err, size_t err_size)
{
	struct query q = { .catalog = c, .select = s, .limit = limit,
		.err = err, .err_size = err_size };

	return query(out, &q);
}

static int
find_one(int64_t *out, struct catalog *c, const struct selection *s,
    bool oldest_first, char *err, size_t err_size)
{
	struct query q = { .catalog = c, .select = s, .limit = 1,
		.oldest_first = oldest_first, .err = err,
		.err_size = err_size };
	struct selection_found found;

	if (query(&found, &q) < 0)
		return -1;
	*out = found.n > 0 ? found.ids[0] : 0;
	selection_found_done(&found);
	return 0;
}

int
selection_nearest(int64_t out[2], struct catalog *c, const struct selection *s,
    char *err, size_t err_size)
{
	struct selection before = *s, behind = *s;

	before.has_time = behind.has_time = true;
	before.from_ns = INT64_MIN;
	before.to_ns = s->from_ns - 1;
	behind.from_ns = s->to_ns == INT64_MAX ? INT64_MAX : s->to_ns + 1;
	behind.to_ns = INT64_MAX;
	return find_one(&out[0], c, &before, false, err, err_size) < 0 ||
	    find_one(&out[1], c, &behind, true, err, err_size) < 0 ? -1 : 0;
}
