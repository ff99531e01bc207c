#include <assert.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "client/archive/segment_entry.h"

/* More than the columns of any table. */
#define VALUES_MAX 32u

/* Values for a statement, NULLs among them; borrowed until it runs. */
struct binding {
	struct catalog_statement *s;
	struct catalog_value v[VALUES_MAX];
	size_t n;
};

static void
put_value(struct binding *b, struct catalog_value v)
{
	assert(b->n < VALUES_MAX);
	b->v[b->n++] = v;
}

static void
put_int(struct binding *b, int64_t v)
{
	put_value(b, CATALOG_INT(v));
}

static void
put_int_if(struct binding *b, bool there, int64_t v)
{
	put_value(b, there ? CATALOG_INT(v) : CATALOG_STR(NULL));
}

/* NULL becomes SQL's. */
static void
put_text(struct binding *b, const char *v)
{
	put_value(b, CATALOG_STR(v));
}

static void
put_name(struct binding *b, const char *v)
{
	put_text(b, v == NULL ? "" : v);
}

static void
put_blob_if(struct binding *b, bool there, const void *v, size_t len)
{
	put_value(b, (struct catalog_value){ .type = CATALOG_BLOB,
	    .bytes = there ? v : NULL, .len = len });
}

static void
put_span(struct binding *b, const struct segment_span *t)
{
	put_int_if(b, t->known, t->first_ns);
	put_int_if(b, t->known, t->last_ns);
}

static void
put_class(struct binding *b, const struct segment_span *t)
{
	put_int_if(b, t->known, catalog_span_class(t->first_ns, t->last_ns));
}

/* A change in progress: the handle, and where its failure is told. */
struct change {
	struct catalog *c;
	int64_t segment;
	char *err;
	size_t err_size;
};

static int
begin(struct change *g, struct binding *b, const char *sql)
{
	b->n = 0;
	b->s = catalog_prepare(g->c, sql, g->err, g->err_size);
	return b->s == NULL ? -1 : 0;
}

/* Runs a statement that yields no rows. */
static int
run(struct change *g, struct binding *b)
{
	if (catalog_bind(g->c, b->s, b->v, b->n, g->err, g->err_size) < 0)
		return -1;
	return catalog_step(g->c, b->s, g->err, g->err_size);
}

/* Runs one with RETURNING an id. */
static int
run_for_id(struct change *g, struct binding *b, int64_t *id)
{
	int rc = run(g, b);

	if (rc == 1) {
		*id = catalog_int(b->s, 0);
		catalog_reset(b->s);
	}
	return rc < 0 ? -1 : 0;
}

static const char put_segment_sql[] =
    "INSERT INTO segments (path, bytes, mtime_ns, sha256, verdict, problem,"
    " uuid, recording_uuid, recording, number, cause, end_cause, is_last,"
    " unanswered, machine, packets, lost, first_ns, last_ns, first_boot_ns,"
    " last_boot_ns, class, pinned, local) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
    "?,?,?,?,?,?,?,?,?,1) ON CONFLICT (path) DO UPDATE SET"
    " stored_state = iif(sha256 = excluded.sha256, stored_state, NULL),"
    " stored_url = iif(sha256 = excluded.sha256, stored_url, NULL),"
    " stored_etag = iif(sha256 = excluded.sha256, stored_etag, NULL),"
    " stored_detail = iif(sha256 = excluded.sha256, stored_detail, NULL),"
    " stored_ns = iif(sha256 = excluded.sha256, stored_ns, NULL),"
    " bytes = excluded.bytes, mtime_ns = excluded.mtime_ns,"
    " sha256 = excluded.sha256, verdict = excluded.verdict,"
    " problem = excluded.problem, uuid = excluded.uuid,"
    " recording_uuid = excluded.recording_uuid,"
    " recording = excluded.recording, number = excluded.number,"
    " cause = excluded.cause, end_cause = excluded.end_cause,"
    " is_last = excluded.is_last, unanswered = excluded.unanswered,"
    " machine = excluded.machine, packets = excluded.packets,"
    " lost = excluded.lost, first_ns = excluded.first_ns,"
    " last_ns = excluded.last_ns, first_boot_ns = excluded.first_boot_ns,"
    " last_boot_ns = excluded.last_boot_ns, class = excluded.class,"
    " pinned = excluded.pinned, local = 1 RETURNING id";

static int
put_segment(struct change *g, const struct segment_entry *e, bool pinned)
{
	bool cut = e->number != 0;
	struct binding b;

	if (begin(g, &b, put_segment_sql) < 0)
		return -1;
	put_name(&b, e->path);
	put_int(&b, (int64_t)e->bytes);
	put_int(&b, e->mtime_ns);
	put_blob_if(&b, true, e->sha256, SEGMENT_SHA256);
	put_name(&b, e->verdict);
	put_name(&b, e->problem);
	put_blob_if(&b, e->has_uuid, e->uuid, SEGMENT_UUID);
	put_blob_if(&b, e->has_recording_uuid, e->recording_uuid,
	    SEGMENT_UUID);
	put_name(&b, e->recording);
	put_int_if(&b, cut, e->number);
	put_text(&b, e->cause);
	put_text(&b, e->end_cause);
	put_int(&b, e->is_last);
	put_int(&b, e->unanswered);
	put_name(&b, e->machine);
	put_int(&b, (int64_t)e->packets);
	put_int(&b, (int64_t)e->lost);
	put_span(&b, &e->wall);
	put_span(&b, &e->boot);
	put_class(&b, &e->wall);
	put_int(&b, pinned);
	return run_for_id(g, &b, &g->segment);
}

static int
put_machines(struct change *g, const struct segment_entry *e)
{
	const struct segment_machine *m;
	struct binding b;
	size_t i;

	for (i = 0; i < e->n_machines; i++) {
		m = &e->machines[i];
		if (begin(g, &b, "INSERT INTO machines (segment, id, name, "
		    "packets, bytes, first_ns, last_ns) "
		    "VALUES (?,?,?,?,?,?,?)") < 0)
			return -1;
		put_int(&b, g->segment);
		put_int(&b, m->id);
		put_name(&b, m->name);
		put_int(&b, (int64_t)m->packets);
		put_int(&b, (int64_t)m->bytes);
		put_span(&b, &m->wall);
		if (run(g, &b) < 0)
			return -1;
	}
	return 0;
}

static int
put_losses(struct change *g, const struct segment_entry *e)
{
	const struct segment_loss *l;
	struct binding b;
	size_t i;

	for (i = 0; i < e->n_losses; i++) {
		l = &e->losses[i];
		if (begin(g, &b, "INSERT INTO losses (segment, position, text, "
		    "cause, unit, place, count, bytes, buffer, machine_id, "
		    "at_least) VALUES (?,?,?,?,?,?,?,?,?,?,?)") < 0)
			return -1;
		put_int(&b, g->segment);
		put_int(&b, (int64_t)i);
		put_name(&b, l->text);
		put_name(&b, l->cause);
		put_name(&b, l->unit);
		put_name(&b, l->place);
		put_int(&b, (int64_t)l->count);
		put_int(&b, (int64_t)l->bytes);
		put_int_if(&b, l->buffer >= 0, l->buffer);
		put_int_if(&b, l->machine_id >= 0, l->machine_id);
		put_int(&b, l->at_least);
		if (run(g, &b) < 0)
			return -1;
	}
	return 0;
}

static int
put_triggers(struct change *g, const struct segment_entry *e)
{
	const struct segment_trigger *t;
	struct binding b;
	size_t i;

	for (i = 0; i < e->n_triggers; i++) {
		t = &e->triggers[i];
		if (begin(g, &b, "INSERT INTO triggers (segment, position, "
		    "name, producer, machine_id, at_ns, begun_by) "
		    "VALUES (?,?,?,?,?,?,?)") < 0)
			return -1;
		put_int(&b, g->segment);
		put_int(&b, (int64_t)i);
		put_name(&b, t->name);
		put_name(&b, t->producer);
		put_int(&b, t->machine_id);
		put_int_if(&b, t->has_wall, t->wall_ns);
		put_int(&b, t->begun_by);
		if (run(g, &b) < 0)
			return -1;
	}
	return 0;
}

static int
put_data_sources(struct change *g, const struct segment_entry *e)
{
	struct binding b;
	size_t i;

	for (i = 0; i < e->n_data_sources; i++) {
		if (begin(g, &b, "INSERT INTO data_sources "
		    "(segment, name) VALUES (?,?) ON CONFLICT DO NOTHING") < 0)
			return -1;
		put_int(&b, g->segment);
		put_name(&b, e->data_sources[i]);
		if (run(g, &b) < 0)
			return -1;
	}
	return 0;
}

static const char *
machine_name(const struct segment_entry *e, uint32_t id)
{
	size_t i;

	for (i = 0; i < e->n_machines; i++)
		if (e->machines[i].id == id)
			return e->machines[i].name;
	return "";
}

static int
find_process(struct change *g, const struct segment_process *p,
    const char *machine, int64_t *id)
{
	struct binding b;

	if (begin(g, &b, "SELECT id FROM processes WHERE machine = ? AND "
	    "name = ? AND pid = ?") < 0)
		return -1;
	put_name(&b, machine);
	put_name(&b, p->name);
	put_int(&b, p->pid);
	return run_for_id(g, &b, id);
}

static int
put_process(struct change *g, const struct segment_process *p,
    const char *machine)
{
	struct binding b;
	int64_t id = 0;
	int rc;

	if (find_process(g, p, machine, &id) < 0)
		return -1;
	if (id == 0) {
		if (begin(g, &b, "INSERT INTO processes (name, machine, pid) "
		    "VALUES (?,?,?) RETURNING id") < 0)
			return -1;
		put_name(&b, p->name);
		put_name(&b, machine);
		put_int(&b, p->pid);
		if (run_for_id(g, &b, &id) < 0)
			return -1;
	}
	if (begin(g, &b, "INSERT INTO seen (segment, process) VALUES (?,?) "
	    "ON CONFLICT DO NOTHING RETURNING 1") < 0)
		return -1;
	put_int(&b, g->segment);
	put_int(&b, id);
	/* No row: it is known already. */
	if ((rc = run(g, &b)) != 1)
		return rc;
	catalog_reset(b.s);
	if (begin(g, &b, "UPDATE processes SET segments = segments + 1 "
	    "WHERE id = ?") < 0)
		return -1;
	put_int(&b, id);
	return run(g, &b);
}

static int
put_processes(struct change *g, const struct segment_entry *e)
{
	const struct segment_process *p;
	size_t i;

	for (i = 0; i < e->n_processes; i++) {
		p = &e->processes[i];
		if (put_process(g, p, machine_name(e, p->machine_id)) < 0)
			return -1;
	}
	return 0;
}

/* ---- the inverted index ---- */

/* Runs a statement whose ?1 is the segment's id. */
static int
run_for_segment(struct change *g, const char *sql)
{
	struct binding b;

	if (begin(g, &b, sql) < 0)
		return -1;
	put_int(&b, g->segment);
	return run(g, &b);
}

/*
 * The terms of segment ?1, by its rows; the kinds are those of enum
 * catalog_kind.  Machines without packets are none of its terms: each segment
 * names some.
 */
#define OWN(more)                                                             \
    "WITH own(kind, name) AS ("                                               \
    "SELECT 1, recording FROM segments WHERE id = ?1 UNION "                  \
    "SELECT 2, name FROM machines WHERE segment = ?1 AND packets > 0 UNION "  \
    "SELECT 3, name FROM triggers WHERE segment = ?1 UNION "                  \
    "SELECT 4, p.name FROM seen AS x JOIN processes AS p "                    \
    "ON p.id = x.process WHERE x.segment = ?1 UNION "                         \
    "SELECT 5, '' FROM segments WHERE id = ?1 AND lost > 0" more ") "
/* In a shared catalogue, the first folder of the path: what is before a "/". */
#define COLLECTOR                                                             \
    " UNION SELECT 6, substr(path, 1, length(path) - length(ltrim(path, "     \
    "replace(path, '/', '')))) FROM segments WHERE id = ?1"
/* Their ids. */
#define TERMS_OF(more)                                                        \
    OWN(more) "SELECT t.id FROM own JOIN terms AS t ON t.kind = own.kind "    \
    "AND t.name = own.name"
/* base: what is behind the last slash. */
#define PUT_TERMS(more)                                                       \
    OWN(more) "INSERT INTO terms (kind, name, base) SELECT kind, name, "      \
    "substr(name, length(rtrim(name, replace(name, '/', ''))) + 1) FROM own " \
    "WHERE TRUE ON CONFLICT DO NOTHING"
#define PUT_POSTINGS(more)                                                    \
    OWN(more) "INSERT INTO postings (term, class, first_ns, segment) "        \
    "SELECT t.id, coalesce(s.class, -1), coalesce(s.first_ns, 0), s.id "      \
    "FROM own JOIN terms AS t ON t.kind = own.kind "                          \
    "AND t.name = own.name JOIN segments AS s ON s.id = ?1 "                  \
    "WHERE TRUE ON CONFLICT DO NOTHING"
#define REMOVE_POSTINGS(more)                                                 \
    "DELETE FROM postings WHERE term IN (" TERMS_OF(more) ") AND "            \
    "(class, first_ns) = (SELECT coalesce(class, -1), "                       \
    "coalesce(first_ns, 0) FROM segments WHERE id = ?1) AND segment = ?1"
#define REMOVE_TERMS(more)                                                    \
    "DELETE FROM terms WHERE id IN (" TERMS_OF(more) ") AND NOT EXISTS "      \
    "(SELECT 1 FROM postings WHERE term = terms.id)"

static int
run_all(struct change *g, const char *const *statements, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (run_for_segment(g, statements[i]) < 0)
			return -1;
	return 0;
}

static int
put_terms(struct change *g)
{
	static const char *const own[] = { PUT_TERMS(""), PUT_POSTINGS("") };
	static const char *const shared[] = { PUT_TERMS(COLLECTOR),
		PUT_POSTINGS(COLLECTOR) };

	return run_all(g, catalog_is_shared(g->c) ? shared : own, 2);
}

int
catalog_put_terms(struct catalog *c, int64_t id, char *err, size_t err_size)
{
	struct change g = { c, id, err, err_size };

	return put_terms(&g);
}

/* ---- a segment ---- */

/* Removes what other tables have of it, and what only it had. */
static int
remove_parts(struct change *g)
{
	static const char *const own[] = { REMOVE_POSTINGS(""),
		REMOVE_TERMS("") };
	static const char *const shared[] = { REMOVE_POSTINGS(COLLECTOR),
		REMOVE_TERMS(COLLECTOR) };
	static const char *const lists[] = {
		"UPDATE processes SET segments = segments - 1 WHERE id IN "
		"(SELECT process FROM seen WHERE segment = ?1)",
		"DELETE FROM processes WHERE segments = 0 AND id IN "
		"(SELECT process FROM seen WHERE segment = ?1)",
		"DELETE FROM seen WHERE segment = ?1",
		"DELETE FROM machines WHERE segment = ?1",
		"DELETE FROM losses WHERE segment = ?1",
		"DELETE FROM triggers WHERE segment = ?1",
		"DELETE FROM data_sources WHERE segment = ?1",
	};

	if (run_all(g, catalog_is_shared(g->c) ? shared : own, 2) < 0)
		return -1;
	return run_all(g, lists, sizeof(lists) / sizeof(lists[0]));
}

/* Removes the parts of the row that this path has; the new row has its id. */
static int
remove_old_parts(struct change *g, const struct segment_entry *e)
{
	struct binding b;

	g->segment = 0;
	if (begin(g, &b, "SELECT id FROM segments WHERE path = ?") < 0)
		return -1;
	put_name(&b, e->path);
	if (run_for_id(g, &b, &g->segment) < 0)
		return -1;
	return g->segment == 0 ? 0 : remove_parts(g);
}

static int
finish(struct change *g, int rc)
{
	if (rc == 0)
		return catalog_commit(g->c, g->err, g->err_size);
	catalog_rollback(g->c);
	return -1;
}

static int
put_all(struct change *g, const struct segment_entry *e, bool pinned)
{
	/* Before the row changes, whose times the postings have. */
	if (remove_old_parts(g, e) < 0 || put_segment(g, e, pinned) < 0)
		return -1;
	if (put_machines(g, e) < 0 || put_losses(g, e) < 0 ||
	    put_triggers(g, e) < 0)
		return -1;
	if (put_data_sources(g, e) < 0 || put_processes(g, e) < 0)
		return -1;
	return put_terms(g);
}

int
catalog_put(struct catalog *c, const struct segment_entry *e, bool pinned,
    char *err, size_t err_size)
{
	struct change g = { c, 0, err, err_size };

	if (catalog_begin(c, err, err_size) < 0)
		return -1;
	return finish(&g, put_all(&g, e, pinned));
}

int
catalog_remove(struct catalog *c, int64_t id, char *err, size_t err_size)
{
	struct change g = { c, id, err, err_size };
	int rc;

	if (catalog_begin(c, err, err_size) < 0)
		return -1;
	if ((rc = remove_parts(&g)) == 0)
		rc = run_for_segment(&g, "DELETE FROM segments WHERE id = ?1");
	return finish(&g, rc);
}

static int
set_bool(struct change *g, const char *sql, bool v)
{
	struct binding b;

	if (begin(g, &b, sql) < 0)
		return -1;
	put_int(&b, v);
	put_int(&b, g->segment);
	return run(g, &b);
}

int
catalog_set_pinned(struct catalog *c, int64_t id, bool pinned, char *err,
    size_t err_size)
{
	struct change g = { c, id, err, err_size };

	return set_bool(&g, "UPDATE segments SET pinned = ? WHERE id = ?",
	    pinned);
}

int
catalog_set_local(struct catalog *c, int64_t id, bool local, char *err,
    size_t err_size)
{
	struct change g = { c, id, err, err_size };

	return set_bool(&g, "UPDATE segments SET local = ? WHERE id = ?",
	    local);
}

int
catalog_set_stored(struct catalog *c, int64_t id,
    const struct catalog_stored *s, char *err, size_t err_size)
{
	struct change g = { c, id, err, err_size };
	struct binding b;

	if (begin(&g, &b, "UPDATE segments SET stored_state = ?, stored_url = "
	    "?, stored_etag = ?, stored_detail = ?, stored_ns = ? "
	    "WHERE id = ?") < 0)
		return -1;
	put_text(&b, s->state);
	put_text(&b, s->url);
	put_text(&b, s->etag);
	put_text(&b, s->detail);
	put_int_if(&b, s->at_ns != 0, s->at_ns);
	put_int(&b, id);
	return run(&g, &b);
}
