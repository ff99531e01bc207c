#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/selection.h"
#include "client/archive/selection_sql.h"
#include "client/archive/selection_terms.h"
#include "transport/base/failure.h"
#include "transport/base/glob.h"

/*
 * The condition with the fewest segments is walked, in the order of time, and
 * the others are asked of each segment on the way.
 */

/* Counting ends here: what has more is common. */
#define COMMON 16384
/* Terms of a common condition at most: each is a walk, with hits or without. */
#define MAX_WALKS 1024u
/* Likewise where each is a way to a server and back. */
#define MAX_FAR_WALKS 16u
/* A search for each of so many terms is less than a look at all of a segment. */
#define FEW_TERMS 8u
/* Classes of spans: 0 to 63, and that of segments without times. */
#define CLASSES 65u
#define CONDITIONS 6u

struct hit {
	int64_t id, first_ns;
	bool has_wall;
};

struct condition {
	enum catalog_kind kind;
	const char *name;
	struct selection_terms terms; /* owned */
};

struct query {
	struct catalog *catalog;
	const struct selection *select;
	size_t limit;
	bool oldest_first;
	struct condition conditions[CONDITIONS];
	size_t n_conditions;
	int64_t classes[CLASSES];
	size_t n_classes;
	struct hit *hits; /* owned */
	size_t n, cap;
	struct selection_sql sql;
	char *err;
	size_t err_size;
};

static int
add_hit(struct query *q, struct hit hit)
{
	struct hit *grown;

	if (q->n == q->cap) {
		q->cap = q->cap == 0 ? 64 : 2 * q->cap;
		grown = realloc(q->hits, q->cap * sizeof(*grown));
		if (grown == NULL)
			return FAILURE(q->err, q->err_size, "out of memory");
		q->hits = grown;
	}
	q->hits[q->n++] = hit;
	return 0;
}

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

/* ---- classes ---- */

/* Goes through the index by a search for each class. */
static const char classes_sql[] =
    "WITH RECURSIVE k(v) AS (SELECT min(class) FROM segments UNION ALL "
    "SELECT (SELECT min(class) FROM segments WHERE class > k.v) FROM k "
    "WHERE k.v IS NOT NULL) SELECT v FROM k WHERE v IS NOT NULL";

static int
read_classes(struct query *q)
{
	struct catalog_statement *s;
	int rc;

	s = catalog_prepare(q->catalog, classes_sql, q->err, q->err_size);
	if (s == NULL)
		return -1;
	while ((rc = catalog_step(q->catalog, s, q->err, q->err_size)) == 1 &&
	    q->n_classes < CLASSES - 1)
		q->classes[q->n_classes++] = catalog_int(s, 0);
	catalog_reset(s);
	/* The last: it comes behind all others.  None has a time asked for. */
	if (!q->select->has_time)
		q->classes[q->n_classes++] = CATALOG_TIMELESS;
	return rc < 0 ? -1 : 0;
}

/* The first time that a segment of a class may have. */
static int64_t
earliest(const struct query *q, int64_t class)
{
	int64_t from = q->select->has_time ? q->select->from_ns : INT64_MIN;

	if (class > 62 || class < 0 ||
	    from < INT64_MIN + (INT64_C(1) << class))
		return INT64_MIN;
	return from - (INT64_C(1) << class);
}

/* Binds ?1 to ?4 of a walk, and the names behind them. */
static int
bind_span(struct query *q, struct catalog_statement *s, int64_t term,
    int64_t class, bool with_names)
{
	int64_t low = earliest(q, class), high = INT64_MAX;
	struct catalog_value values[4 + SELECTION_SQL_VALUES];
	size_t n = with_names ? q->sql.n : 0;

	if (q->select->has_time)
		high = q->select->to_ns;
	/* With enough hits, only those on their side of the last one count. */
	if (q->limit != 0 && q->n == q->limit && class >= 0) {
		const struct hit *edge = &q->hits[q->oldest_first ? 0 :
		    q->n - 1];

		if (q->oldest_first && edge->first_ns < high)
			high = edge->first_ns;
		else if (!q->oldest_first && edge->has_wall &&
		    edge->first_ns > low)
			low = edge->first_ns;
	}
	values[0] = CATALOG_INT(term);
	values[1] = CATALOG_INT(class);
	values[2] = CATALOG_INT(low);
	values[3] = CATALOG_INT(high);
	if (n > 0)
		memcpy(values + 4, q->sql.values, n * sizeof(values[0]));
	return catalog_bind(q->catalog, s, values, 4 + n, q->err,
	    q->err_size);
}

/* ---- which condition is walked ---- */

static const char count_postings[] =
    "SELECT count(*) FROM (SELECT 1 FROM postings WHERE term = ?1 AND "
    "class = ?2 AND first_ns >= ?3 AND first_ns <= ?4 LIMIT 16384) AS k";
static const char count_segments[] =
    "SELECT count(*) FROM (SELECT 1 FROM segments WHERE class = ?2 AND "
    "first_ns >= ?3 AND first_ns <= ?4 LIMIT 16384) AS k";

/* Adds the segments of a term, or with NULL of all, up to COMMON. */
static int
count(struct query *q, const int64_t *term, int64_t *sum)
{
	struct catalog_statement *s;
	size_t i;

	s = catalog_prepare(q->catalog, term == NULL ? count_segments :
	    count_postings, q->err, q->err_size);
	if (s == NULL)
		return -1;
	for (i = 0; i < q->n_classes && *sum < COMMON; i++) {
		if (bind_span(q, s, term == NULL ? 0 : *term, q->classes[i],
			false) < 0 ||
		    catalog_step(q->catalog, s, q->err, q->err_size) != 1)
			return -1;
		*sum += catalog_int(s, 0);
		catalog_reset(s);
	}
	return 0;
}

/*
 * Lowers *least to the searches and rows of a walk through a condition, where
 * that is less.  Returns 1 then; -1 with a sentence.
 */
static int
cost(struct query *q, const struct condition *c, int64_t *least)
{
	int64_t sum = (int64_t)(c->terms.n * q->n_classes);
	size_t i;

	if (catalog_is_shared(q->catalog) && c->terms.n > MAX_FAR_WALKS)
		return 0;
	for (i = 0; i < c->terms.n && sum < *least && sum < COMMON; i++) {
		if (count(q, &c->terms.ids[i], &sum) < 0)
			return -1;
	}
	if (sum >= COMMON && c->terms.n > MAX_WALKS)
		return 0;
	if (sum >= *least)
		return 0;
	*least = sum;
	return 1;
}

/* out: the condition to be walked; NULL: all segments. */
static int
choose(struct query *q, struct condition **out)
{
	int64_t least = (int64_t)q->n_classes;
	size_t i;
	int rc;

	*out = NULL;
	if (q->n_conditions == 0)
		return 0;
	if (count(q, NULL, &least) < 0)
		return -1;
	/* Among common ones a condition is better: its walk meets no others. */
	if (least >= COMMON)
		least = INT64_MAX;
	for (i = 0; i < q->n_conditions; i++) {
		if ((rc = cost(q, &q->conditions[i], &least)) < 0)
			return -1;
		if (rc == 1)
			*out = &q->conditions[i];
	}
	return 0;
}

/* ---- what is asked of each segment ---- */

/* Names of a segment's id, class and first time in the query. */
struct place {
	const char *segment, *class, *first;
};

static void
add_terms(struct query *q, const struct condition *c, const struct place *at)
{
	struct selection_sql *s = &q->sql;
	size_t i;

	selection_sql_add(s, " AND EXISTS (SELECT 1 FROM postings AS q WHERE "
	    "q.term IN (");
	for (i = 0; i < c->terms.n; i++)
		selection_sql_integer(s, i == 0 ? "" : ",", c->terms.ids[i]);
	selection_sql_add(s, ") AND q.class = ");
	selection_sql_add(s, at->class);
	selection_sql_add(s, " AND q.first_ns = ");
	selection_sql_add(s, at->first);
	selection_sql_add(s, " AND q.segment = ");
	selection_sql_add(s, at->segment);
	selection_sql_add(s, ")");
}

/* A condition of many terms: a pattern is held against all of a segment's. */
static void
add_pattern(struct query *q, const struct condition *c, const struct place *at)
{
	struct selection_sql *s = &q->sql;

	switch (c->kind) {
	case CATALOG_RECORDING:
		selection_sql_add(s, " AND EXISTS (SELECT 1 FROM segments AS "
		    "r WHERE r.id = ");
		selection_sql_add(s, at->segment);
		selection_sql_name(s, " AND r.recording", c->name);
		break;
	case CATALOG_MACHINE:
		selection_sql_add(s, " AND EXISTS (SELECT 1 FROM machines AS "
		    "m WHERE m.segment = ");
		selection_sql_add(s, at->segment);
		selection_sql_name(s, " AND m.packets > 0 AND m.name",
		    c->name);
		break;
	case CATALOG_TRIGGER:
		selection_sql_add(s, " AND EXISTS (SELECT 1 FROM triggers AS "
		    "t WHERE t.segment = ");
		selection_sql_add(s, at->segment);
		selection_sql_name(s, " AND t.name", c->name);
		break;
	case CATALOG_PROCESS:
		selection_sql_add(s, " AND EXISTS (SELECT 1 FROM seen AS x "
		    "CROSS JOIN processes AS r ON r.id = x.process WHERE "
		    "x.segment = ");
		selection_sql_add(s, at->segment);
		selection_sql_add(s, " AND ");
		selection_sql_program(s, "r.name", c->name);
		break;
	case CATALOG_COLLECTOR:
		selection_sql_add(s, " AND EXISTS (SELECT 1 FROM segments AS "
		    "r WHERE r.id = ");
		selection_sql_add(s, at->segment);
		/* The path up to its first "/". */
		selection_sql_name(s, " AND substr(r.path, 1, length(r.path) "
		    "- length(ltrim(r.path, replace(r.path, '/', ''))))",
		    c->name);
		break;
	case CATALOG_LOSS: /* has one term at most */
		return;
	}
	selection_sql_add(s, ")");
}

/* The machine's own packets are to be of the time, where it says theirs. */
static void
add_machine_time(struct query *q, const struct place *at)
{
	struct selection_sql *s = &q->sql;

	selection_sql_add(s, " AND EXISTS (SELECT 1 FROM machines AS m WHERE "
	    "m.segment = ");
	selection_sql_add(s, at->segment);
	selection_sql_name(s, " AND m.packets > 0 AND m.name",
	    q->select->machine);
	selection_sql_integer(s, " AND (m.first_ns IS NULL OR (m.first_ns <= ",
	    q->select->to_ns);
	selection_sql_integer(s, " AND m.last_ns >= ", q->select->from_ns);
	selection_sql_add(s, ")))");
}

/* A process is to be one of the machine, where both are asked for. */
static void
add_process_of_machine(struct query *q, const struct place *at)
{
	const struct selection *select = q->select;
	struct selection_sql *s = &q->sql;

	selection_sql_add(s, " AND EXISTS (SELECT 1 FROM seen AS x ");
	/* One machine has few processes of a name, in an index. */
	if (glob_is_pattern(select->machine))
		selection_sql_add(s, "CROSS JOIN processes AS r ON r.id = "
		    "x.process WHERE x.segment = ");
	else
		selection_sql_add(s, "WHERE x.segment = ");
	selection_sql_add(s, at->segment);
	if (!glob_is_pattern(select->machine))
		selection_sql_add(s, " AND x.process IN (SELECT r.id FROM "
		    "processes AS r WHERE TRUE");
	selection_sql_name(s, " AND r.machine", select->machine);
	selection_sql_add(s, " AND ");
	selection_sql_program(s, "r.name", select->process);
	selection_sql_add(s, glob_is_pattern(select->machine) ? ")" : "))");
}

static void
add_conditions(struct query *q, const struct condition *walked,
    const struct place *at)
{
	const struct selection *s = q->select;
	const struct condition *c;
	size_t i;

	for (i = 0; i < q->n_conditions; i++) {
		c = &q->conditions[i];
		if (c == walked)
			continue;
		if (c->terms.n <= FEW_TERMS)
			add_terms(q, c, at);
		else
			add_pattern(q, c, at);
	}
	if (s->machine != NULL && s->has_time)
		add_machine_time(q, at);
	if (s->machine != NULL && s->process != NULL)
		add_process_of_machine(q, at);
}

/* ---- the walk ---- */

static void
write_sql(struct query *q, const struct condition *walked, bool timeless)
{
	static const struct place postings = { "p.segment", "p.class",
		"p.first_ns" };
	static const struct place segments = { "s.id", "s.class",
		"s.first_ns" };
	static const struct place without = { "s.id", "-1", "0" };
	const struct place *at = walked != NULL ? &postings : timeless ?
	    &without : &segments;
	struct selection_sql *s = &q->sql;

	selection_sql_init(s);
	if (walked != NULL)
		selection_sql_add(s, q->select->has_time ?
		    "SELECT p.segment, p.first_ns FROM postings AS p "
		    "CROSS JOIN segments AS s ON s.id = p.segment "
		    "WHERE p.term = ?1 AND p.class = ?2 AND "
		    "p.first_ns >= ?3 AND p.first_ns <= ?4" :
		    "SELECT p.segment, p.first_ns FROM postings AS p "
		    "WHERE p.term = ?1 AND p.class = ?2 AND "
		    "p.first_ns >= ?3 AND p.first_ns <= ?4");
	else if (timeless)
		selection_sql_add(s, "SELECT s.id, 0 FROM segments AS s WHERE "
		    "s.class IS NULL");
	else
		selection_sql_add(s, "SELECT s.id, s.first_ns FROM segments "
		    "AS s WHERE s.class = ?2 AND s.first_ns >= ?3 AND "
		    "s.first_ns <= ?4");
	if (q->select->has_time)
		selection_sql_integer(s, " AND s.last_ns >= ",
		    q->select->from_ns);
	add_conditions(q, walked, at);
	if (walked != NULL || !timeless) {
		selection_sql_add(s, " ORDER BY ");
		selection_sql_add(s, at->first);
		selection_sql_add(s, q->oldest_first ? "" : " DESC");
	}
	if (q->limit != 0)
		selection_sql_integer(s, " LIMIT ", (int64_t)q->limit);
}

static int
read_hits(struct query *q, struct catalog_statement *s, bool has_wall)
{
	int rc;

	while ((rc = catalog_step(q->catalog, s, q->err, q->err_size)) == 1) {
		if (add_hit(q, (struct hit){ catalog_int(s, 0),
		    catalog_int(s, 1), has_wall }) < 0) {
			rc = -1;
			break;
		}
	}
	catalog_reset(s);
	return rc;
}

static int
bind_walk(struct query *q, struct catalog_statement *s, int64_t term,
    int64_t class)
{
	/* A walk of all segments without times has names alone. */
	if (term == 0 && class == CATALOG_TIMELESS)
		return catalog_bind(q->catalog, s, q->sql.values, q->sql.n,
		    q->err, q->err_size);
	return bind_span(q, s, term, class, true);
}

/* The walk of one class: of each term, or of all segments. */
static int
walk_class(struct query *q, const struct condition *walked,
    struct catalog_statement *s, int64_t class)
{
	size_t i, n = walked == NULL ? 1 : walked->terms.n;
	int rc = 0;

	for (i = 0; rc == 0 && i < n; i++) {
		rc = bind_walk(q, s, walked == NULL ? 0 :
		    walked->terms.ids[i], class);
		if (rc == 0)
			rc = read_hits(q, s, class != CATALOG_TIMELESS);
		if (q->limit != 0)
			settle_hits(q);
	}
	return rc;
}

static int
walk(struct query *q, const struct condition *walked)
{
	struct catalog_statement *s;
	bool timeless;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < q->n_classes; i++) {
		timeless = q->classes[i] == CATALOG_TIMELESS;
		write_sql(q, walked, timeless);
		if (q->sql.too_long)
			return FAILURE(q->err, q->err_size, "the names are too "
			    "long");
		s = catalog_compile(q->catalog, q->sql.text, q->err,
		    q->err_size);
		rc = s == NULL ? -1 :
		    walk_class(q, walked, s, q->classes[i]);
		catalog_finish(s);
	}
	return rc;
}

/* 1: it is asked for, and no segment has such a name. */
static int
add_condition(struct query *q, enum catalog_kind kind, const char *name)
{
	struct condition *c = &q->conditions[q->n_conditions];

	if (name == NULL)
		return 0;
	*c = (struct condition){ .kind = kind, .name = name };
	if (selection_terms_read(&c->terms, q->catalog, kind, name, q->err,
	    q->err_size) < 0)
		return -1;
	q->n_conditions++;
	return c->terms.n == 0;
}

/* The first of common ones is walked: those that are rarer by nature. */
static int
add_all_conditions(struct query *q)
{
	const struct selection *s = q->select;
	int rc;

	if ((rc = add_condition(q, CATALOG_LOSS, s->lost ? "" : NULL)) != 0 ||
	    (rc = add_condition(q, CATALOG_TRIGGER, s->trigger)) != 0 ||
	    (rc = add_condition(q, CATALOG_MACHINE, s->machine)) != 0 ||
	    (rc = add_condition(q, CATALOG_PROCESS, s->process)) != 0)
		return rc;
	if ((rc = add_condition(q, CATALOG_RECORDING, s->recording)) != 0)
		return rc;
	return add_condition(q, CATALOG_COLLECTOR, s->collector);
}

static int
find_rows(struct query *q)
{
	struct condition *walked = NULL;
	int rc;

	if ((rc = add_all_conditions(q)) != 0)
		return rc < 0 ? -1 : 0;
	if (read_classes(q) < 0 || choose(q, &walked) < 0)
		return -1;
	return walk(q, walked);
}

/* ---- paths ---- */

static bool
path_cb(void *arg, const struct catalog_row *row)
{
	struct query *q = arg;

	return add_hit(q, (struct hit){ row->id, row->first_ns,
	    row->has_wall }) == 0;
}

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
		rc = catalog_find(q->catalog, s->paths[i], path_cb, q, q->err,
		    q->err_size);
		if (rc == 0 && s->folder != NULL)
			rc = catalog_find(q->catalog, below(s->folder,
			    s->paths[i], whole), path_cb, q, q->err,
			    q->err_size);
		if (rc == 0)
			return FAILURE(q->err, q->err_size, "the archive %s "
			    "has no segment %s", s->name, s->paths[i]);
		/* No memory for it. */
		if (rc < 0 || q->n != i + 1)
			return -1;
	}
	return 0;
}

/* ---- all together ---- */

static int
query(struct selection_found *out, struct query *q)
{
	int64_t *ids = NULL;
	size_t i;
	int rc;

	rc = q->select->n_paths > 0 ? find_paths(q) : find_rows(q);
	if (rc == 0) {
		settle_hits(q);
		ids = calloc(q->n + 1, sizeof(*ids));
		if (ids == NULL)
			rc = FAILURE(q->err, q->err_size, "out of memory");
		for (i = 0; rc == 0 && i < q->n; i++)
			ids[i] = q->hits[i].id;
	}
	if (rc == 0)
		*out = (struct selection_found){ ids, q->n };
	for (i = 0; i < q->n_conditions; i++)
		selection_terms_done(&q->conditions[i].terms);
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
