/*
 * The catalogue in PostgreSQL: a shared one.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "client/archive/postgres.h"
#include "client/archive/postgres_sql.h"
#include "client/archive/postgres_url.h"
#include "transport/base/failure.h"

/* Rows of pg_type; 0: PostgreSQL is to see for itself, as for NULL. */
#define OID_INT8  20u
#define OID_TEXT  25u
#define OID_BYTEA 17u

/* Any number: writers take turns, as with SQLite, and so none meets another. */
#define LOCK "pg_advisory_xact_lock(1416774497)"

struct value {
	Oid type;
	char *bytes; /* owned; NULL: SQL's */
	int len, format;
};

struct statement {
	struct postgres *postgres; /* borrowed */
	char *sql;                 /* owned */
	struct value *values;      /* owned */
	size_t n, room;
	PGresult *result; /* owned; NULL: it did not run */
	int row;          /* of the result */
	unsigned char *blob; /* owned: of the column read last */
};

static void *
prepare(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	struct statement *s = calloc(1, sizeof(*s));

	if (s != NULL && (s->sql = postgres_sql(sql)) != NULL) {
		s->postgres = c->postgres;
		return s;
	}
	free(s);
	snprintf(err, err_size, "out of memory");
	return NULL;
}

static bool
is_busy(void *arg)
{
	struct statement *s = arg;

	return s->result != NULL;
}

static void
reset(void *arg)
{
	struct statement *s = arg;

	PQclear(s->result);
	s->result = NULL;
	PQfreemem(s->blob);
	s->blob = NULL;
}

static void
drop_values(struct statement *s)
{
	while (s->n > 0)
		free(s->values[--s->n].bytes);
}

static void
finish(void *arg)
{
	struct statement *s = arg;

	if (s == NULL)
		return;
	reset(s);
	drop_values(s);
	free(s->values);
	free(s->sql);
	free(s);
}

/* ---- values ---- */

static char *
number_text(int64_t v)
{
	char *text;

	return asprintf(&text, "%lld", (long long)v) < 0 ? NULL : text;
}

static char *
copy_of(const void *bytes, size_t len)
{
	char *copy = malloc(len + 1);

	if (copy != NULL)
		memcpy(copy, bytes, len);
	return copy;
}

static int
take(struct value *to, const struct catalog_value *v)
{
	*to = (struct value){ .type = 0 };
	if (v->type != CATALOG_INTEGER && v->bytes == NULL)
		return 0;
	switch (v->type) {
	case CATALOG_INTEGER:
		to->type = OID_INT8;
		to->bytes = number_text(v->integer);
		break;
	case CATALOG_TEXT:
		to->type = OID_TEXT;
		to->bytes = postgres_sql_text(v->bytes);
		break;
	case CATALOG_PATTERN:
		to->type = OID_TEXT;
		to->bytes = postgres_sql_pattern(v->bytes);
		break;
	case CATALOG_BLOB:
		to->type = OID_BYTEA;
		to->bytes = copy_of(v->bytes, v->len);
		to->len = (int)v->len;
		to->format = 1;
		break;
	}
	return to->bytes == NULL ? -1 : 0;
}

static int
bind_all(struct catalog *c, void *arg, const struct catalog_value *v, size_t n,
    char *err, size_t err_size)
{
	struct statement *s = arg;
	struct value *grown;

	(void)c;
	reset(s);
	drop_values(s);
	if (n > s->room) {
		if ((grown = reallocarray(s->values, n, sizeof(*grown))) == NULL)
			return FAILURE(err, err_size, "out of memory");
		s->values = grown;
		s->room = n;
	}
	for (; s->n < n; s->n++)
		if (take(&s->values[s->n], &v[s->n]) < 0)
			return FAILURE(err, err_size, "out of memory");
	return 0;
}

/* ---- rows ---- */

/* Columns of values, as libpq wants them. */
struct columns {
	Oid types[POSTGRES_VALUES_MAX];
	const char *bytes[POSTGRES_VALUES_MAX];
	int lengths[POSTGRES_VALUES_MAX], formats[POSTGRES_VALUES_MAX];
};

static int
run(struct statement *s, char *err, size_t err_size)
{
	struct columns *k;
	struct postgres_values v;
	size_t i;

	if (s->n > POSTGRES_VALUES_MAX ||
	    (k = malloc(sizeof(*k))) == NULL)
		return FAILURE(err, err_size, "out of memory");
	for (i = 0; i < s->n; i++) {
		k->types[i] = s->values[i].type;
		k->bytes[i] = s->values[i].bytes;
		k->lengths[i] = s->values[i].len;
		k->formats[i] = s->values[i].format;
	}
	v = (struct postgres_values){ (int)s->n, k->types, k->bytes,
		k->lengths, k->formats };
	s->result = postgres_run(s->postgres, s->sql, &v, err, err_size);
	free(k);
	s->row = -1;
	return s->result == NULL ? -1 : 0;
}

static int
step(struct catalog *c, void *arg, char *err, size_t err_size)
{
	struct statement *s = arg;

	(void)c;
	if (s->result == NULL && run(s, err, err_size) < 0)
		return -1;
	if (++s->row < PQntuples(s->result))
		return 1;
	reset(s);
	return 0;
}

static const char *
text(void *arg, int column)
{
	struct statement *s = arg;

	return PQgetisnull(s->result, s->row, column) ? NULL :
	    PQgetvalue(s->result, s->row, column);
}

static int64_t
integer(void *arg, int column)
{
	const char *v = text(arg, column);

	/* A condition's answer is "t" or "f". */
	return v == NULL ? 0 : *v == 't' ? 1 : strtoll(v, NULL, 10);
}

static const void *
blob(void *arg, int column, size_t *len)
{
	struct statement *s = arg;
	const char *v = text(arg, column);

	*len = 0;
	PQfreemem(s->blob);
	s->blob = v == NULL ? NULL :
	    PQunescapeBytea((const unsigned char *)v, len);
	return s->blob;
}

static bool
is_null(void *arg, int column)
{
	return text(arg, column) == NULL;
}

/* ---- the database ---- */

static int
execute(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	PGresult *r = postgres_run(c->postgres, sql, NULL, err, err_size);

	if (r == NULL)
		return -1;
	PQclear(r);
	return 0;
}

static void
bound(struct catalog *c, int row_bytes, int (*is_over)(void *arg), void *arg)
{
	(void)row_bytes;
	postgres_bound(c->postgres, is_over, arg);
}

static void
close_connection(struct catalog *c)
{
	postgres_close(c->postgres);
}

static const struct catalog_engine catalog_postgres = {
	.begin = "BEGIN; SELECT " LOCK,
	.prepare = prepare,
	.busy = is_busy,
	.bind = bind_all,
	.step = step,
	.reset = reset,
	.finish = finish,
	.integer = integer,
	.text = text,
	.blob = blob,
	.is_null = is_null,
	.execute = execute,
	.bound = bound,
	.close = close_connection,
};

/* ---- the beginning ---- */

/* 1: its numbers; 0: no such table; -1 with a sentence. */
static int
read_version(struct catalog *c, int64_t *id, int64_t *version, char *err,
    size_t err_size)
{
	struct catalog_statement *s;
	int rc;

	s = catalog_prepare(c, "SELECT to_regclass('catalog_version') IS NOT "
	    "NULL", err, err_size);
	if (s == NULL || (rc = catalog_step(c, s, err, err_size)) < 0)
		return -1;
	rc = rc == 1 && catalog_int(s, 0) == 1;
	catalog_reset(s);
	if (rc == 0)
		return 0;
	s = catalog_prepare(c, "SELECT application, version FROM "
	    "catalog_version", err, err_size);
	if (s == NULL || (rc = catalog_step(c, s, err, err_size)) < 0)
		return -1;
	*id = rc == 1 ? catalog_int(s, 0) : 0;
	*version = rc == 1 ? catalog_int(s, 1) : 0;
	catalog_reset(s);
	return 1;
}

static int
check_version(struct catalog *c, int64_t id, int64_t version, char *err,
    size_t err_size)
{
	if (id != CATALOG_APPLICATION)
		return FAILURE(err, err_size, "the database %s has tables of "
		    "another program: give the catalogue one of its own "
		    "(createdb)", c->file);
	if (version > CATALOG_VERSION)
		return FAILURE(err, err_size, "the catalogue %s was made by a "
		    "newer version of Tributary (%lld; this one knows %d): "
		    "update", c->file, (long long)version, CATALOG_VERSION);
	if (version < CATALOG_VERSION)
		return FAILURE(err, err_size, "the catalogue %s was made by an "
		    "older version of Tributary: make it anew in an empty "
		    "database, with tributary archive reindex --from", c->file);
	return 0;
}

static int
make_tables(struct catalog *c, char *err, size_t err_size)
{
	char *schema = postgres_sql(catalog_schema);
	char last[160];
	int rc;

	if (schema == NULL)
		return FAILURE(err, err_size, "out of memory");
	snprintf(last, sizeof(last), "CREATE TABLE catalog_version "
	    "(application bigint, version bigint); INSERT INTO "
	    "catalog_version VALUES (%d, %d)", CATALOG_APPLICATION,
	    CATALOG_VERSION);
	rc = catalog_execute(c, schema, err, err_size);
	if (rc == 0)
		rc = catalog_execute(c, last, err, err_size);
	free(schema);
	return rc;
}

static int
open_tables(struct catalog *c, enum catalog_mode mode, char *err,
    size_t err_size)
{
	int64_t id, version;
	int rc = read_version(c, &id, &version, err, err_size);

	if (rc == 0 && mode == CATALOG_READ)
		return FAILURE(err, err_size, "the database %s has no "
		    "catalogue yet: tributary-upload makes it, with this as "
		    "`catalog` in its settings, or tributary archive reindex "
		    "--from", c->file);
	if (rc != 0)
		return rc < 0 ? -1 : check_version(c, id, version, err,
		    err_size);
	/* Another one may be first, and then is done once we have the lock. */
	if (catalog_begin(c, err, err_size) < 0)
		return -1;
	rc = read_version(c, &id, &version, err, err_size);
	if (rc == 0 && make_tables(c, err, err_size) == 0)
		return catalog_commit(c, err, err_size);
	catalog_rollback(c);
	return rc <= 0 ? -1 : check_version(c, id, version, err, err_size);
}

struct catalog *
catalog_connect(const char *url, enum catalog_mode mode, char *err,
    size_t err_size)
{
	struct catalog *c = calloc(1, sizeof(*c));
	char name[POSTGRES_NAME_MAX];

	if (c == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->engine = &catalog_postgres;
	c->folder = -1;
	if (postgres_url_name(url, name, err, err_size) < 0)
		goto fail;
	snprintf(err, err_size, "out of memory");
	if ((c->file = strdup(name)) == NULL)
		goto fail;
	c->postgres = postgres_open(url, c->file, mode == CATALOG_READ ?
	    POSTGRES_READ : POSTGRES_WRITE, err, err_size);
	if (c->postgres != NULL && open_tables(c, mode, err, err_size) == 0)
		return c;
fail:
	catalog_close(c);
	return NULL;
}
