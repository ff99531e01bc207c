#include "client/upload/unlisted.h"

#include <stdbool.h>
#include <stdio.h>

#include "client/archive/catalog.h"

/* Runs SQL that yields no rows, or one number, which goes to *out. */
static int
run(struct catalog *c, const char *sql, const struct catalog_value *v,
    size_t n, int64_t *out, char *err, size_t err_size)
{
	struct catalog_statement *s = catalog_prepare(c, sql, err, err_size);
	int rc;

	if (s == NULL || catalog_bind(c, s, v, n, err, err_size) < 0 ||
	    (rc = catalog_step(c, s, err, err_size)) < 0)
		return -1;
	if (rc == 1 && out != NULL)
		*out = catalog_int(s, 0);
	catalog_reset(s);
	return 0;
}

static int
make(struct catalog *c, const char *name, char *err, size_t err_size)
{
	static const char *const statements[] = {
		"DELETE FROM unlisted_for",
		"DELETE FROM unlisted",
		"INSERT INTO unlisted (segment) SELECT id FROM segments WHERE "
		"stored_state = 'stored'",
	};
	const struct catalog_value v = CATALOG_STR(name);
	int64_t same = 0;
	size_t i;

	if (run(c, "CREATE TABLE IF NOT EXISTS unlisted_for (name TEXT NOT "
	    "NULL) STRICT", NULL, 0, NULL, err, err_size) < 0 ||
	    run(c, "CREATE TABLE IF NOT EXISTS unlisted (segment INTEGER "
	    "PRIMARY KEY REFERENCES segments ON DELETE CASCADE, why TEXT) "
	    "STRICT", NULL, 0, NULL, err, err_size) < 0 ||
	    run(c, "SELECT count(*) FROM unlisted_for WHERE name = ?", &v, 1,
	    &same, err, err_size) < 0)
		return -1;
	if (same == 1)
		return 0;
	for (i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (run(c, statements[i], NULL, 0, NULL, err, err_size) < 0)
			return -1;
	return run(c, "INSERT INTO unlisted_for VALUES (?)", &v, 1, NULL, err,
	    err_size);
}

int
unlisted_prepare(struct catalog *c, const char *name, char *err,
    size_t err_size)
{
	int rc;

	if (catalog_begin(c, err, err_size) < 0)
		return -1;
	if (name != NULL) {
		rc = make(c, name, err, err_size);
	} else {
		rc = run(c, "DROP TABLE IF EXISTS unlisted", NULL, 0, NULL,
		    err, err_size);
		if (rc == 0)
			rc = run(c, "DROP TABLE IF EXISTS unlisted_for", NULL,
			    0, NULL, err, err_size);
	}
	if (rc == 0)
		return catalog_commit(c, err, err_size);
	catalog_rollback(c);
	return -1;
}

int
unlisted_add(struct catalog *c, int64_t id, char *err, size_t err_size)
{
	const struct catalog_value v = CATALOG_INT(id);

	return run(c, "INSERT INTO unlisted (segment) VALUES (?) ON CONFLICT "
	    "DO UPDATE SET why = NULL", &v, 1, NULL, err, err_size);
}

int
unlisted_next(struct catalog *c, int64_t cursor, int64_t *ids, int max,
    char *err, size_t err_size)
{
	const struct catalog_value v[] = { CATALOG_INT(cursor),
		CATALOG_INT(max) };
	/* A row whose file has changed waits until the store has it again. */
	struct catalog_statement *s = catalog_prepare(c, "SELECT u.segment "
	    "FROM unlisted AS u JOIN segments AS s ON s.id = u.segment WHERE "
	    "u.segment > ? AND u.why IS NULL AND s.stored_state = 'stored' "
	    "ORDER BY u.segment LIMIT ?", err, err_size);
	int n = 0, rc;

	if (s == NULL || catalog_bind(c, s, v, 2, err, err_size) < 0)
		return -1;
	while ((rc = catalog_step(c, s, err, err_size)) == 1 && n < max)
		ids[n++] = catalog_int(s, 0);
	catalog_reset(s);
	return rc < 0 ? -1 : n;
}

int
unlisted_remove(struct catalog *c, int64_t id, char *err, size_t err_size)
{
	const struct catalog_value v = CATALOG_INT(id);

	return run(c, "DELETE FROM unlisted WHERE segment = ?", &v, 1, NULL,
	    err, err_size);
}

int
unlisted_refuse(struct catalog *c, int64_t id, const char *why, char *err,
    size_t err_size)
{
	const struct catalog_value v[] = { CATALOG_STR(why), CATALOG_INT(id) };

	return run(c, "UPDATE unlisted SET why = ? WHERE segment = ?", v, 2,
	    NULL, err, err_size);
}

int
unlisted_retry(struct catalog *c, char *err, size_t err_size)
{
	return run(c, "UPDATE unlisted SET why = NULL WHERE why IS NOT NULL",
	    NULL, 0, NULL, err, err_size);
}

int
unlisted_count(struct catalog *c, struct unlisted_count *out, char *err,
    size_t err_size)
{
	int64_t all = 0, refused = 0;

	if (run(c, "SELECT count(*) FROM unlisted", NULL, 0, &all, err,
	    err_size) < 0 ||
	    run(c, "SELECT count(*) FROM unlisted WHERE why IS NOT NULL", NULL,
	    0, &refused, err, err_size) < 0)
		return -1;
	out->refused = (uint64_t)refused;
	out->waiting = (uint64_t)(all - refused);
	return 0;
}
