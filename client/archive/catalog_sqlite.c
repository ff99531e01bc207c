#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "transport/base/failure.h"

int
catalog_failed(struct catalog *c, char *err, size_t err_size)
{
	switch (sqlite3_errcode(c->db)) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return FAILURE(err, err_size, "%s is locked by another "
		    "process that writes into it, for more than %d s: try "
		    "again, or see who it is (fuser -v %s)", c->file,
		    CATALOG_BUSY_MS / 1000, c->file);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return FAILURE(err, err_size, "%s is damaged (%s): "
		    "tributary archive reindex --full makes it anew from the "
		    "segments", c->file, sqlite3_errmsg(c->db));
	case SQLITE_FULL:
		return FAILURE(err, err_size, "cannot write %s: the disk is "
		    "full", c->file);
	case SQLITE_INTERRUPT:
		return FAILURE(err, err_size, "it takes too long to find this "
		    "in %s: narrow the time, or ask for less", c->file);
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
		return FAILURE(err, err_size, "cannot use %s: permission to "
		    "write it is missing, or its -wal and -shm beside it",
		    c->file);
	default:
		return FAILURE(err, err_size, "cannot use %s: %s", c->file,
		    sqlite3_errmsg(c->db));
	}
}

static int
execute(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	if (sqlite3_exec(c->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return catalog_failed(c, err, err_size);
	return 0;
}

static void *
prepare(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s,
	    NULL) != SQLITE_OK) {
		(void)catalog_failed(c, err, err_size);
		return NULL;
	}
	return s;
}

static bool
is_busy(void *s)
{
	return sqlite3_stmt_busy(s) != 0;
}

/* Our patterns have no "[": in SQL's it is a class of characters. */
static char *
glob_of(const char *pattern)
{
	char *out = malloc(3 * strlen(pattern) + 1), *to = out;

	for (; out != NULL && *pattern != '\0'; pattern++) {
		if (*pattern == '[') {
			memcpy(to, "[[]", 3);
			to += 3;
		} else {
			*to++ = *pattern;
		}
	}
	if (out != NULL)
		*to = '\0';
	return out;
}

static int
bind_one(sqlite3_stmt *s, int i, const struct catalog_value *v)
{
	char *pattern;

	switch (v->type) {
	case CATALOG_INTEGER:
		return sqlite3_bind_int64(s, i, v->integer);
	case CATALOG_TEXT:
		return sqlite3_bind_text(s, i, v->bytes, -1, SQLITE_TRANSIENT);
	case CATALOG_BLOB:
		return sqlite3_bind_blob64(s, i, v->bytes, v->len,
		    SQLITE_TRANSIENT);
	case CATALOG_PATTERN:
		break;
	}
	if ((pattern = glob_of(v->bytes)) == NULL)
		return SQLITE_NOMEM;
	return sqlite3_bind_text(s, i, pattern, -1, free);
}

static int
bind_all(struct catalog *c, void *s, const struct catalog_value *v, size_t n,
    char *err, size_t err_size)
{
	int i, rc = SQLITE_OK;

	for (i = 0; rc == SQLITE_OK && (size_t)i < n; i++)
		rc = bind_one(s, i + 1, &v[i]);
	return rc == SQLITE_OK ? 0 : catalog_failed(c, err, err_size);
}

static int
step(struct catalog *c, void *s, char *err, size_t err_size)
{
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		(void)catalog_failed(c, err, err_size);
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : -1;
}

static void
reset(void *s)
{
	sqlite3_reset(s);
}

static void
finish(void *s)
{
	sqlite3_finalize(s);
}

static int64_t
integer(void *s, int column)
{
	return sqlite3_column_int64(s, column);
}

static const char *
text(void *s, int column)
{
	return (const char *)sqlite3_column_text(s, column);
}

static const void *
blob(void *s, int column, size_t *len)
{
	const void *bytes = sqlite3_column_blob(s, column);

	*len = (size_t)sqlite3_column_bytes(s, column);
	return bytes;
}

static bool
is_null(void *s, int column)
{
	return sqlite3_column_type(s, column) == SQLITE_NULL;
}

/* Instructions of SQLite's between two looks whether it is over. */
#define LOOK_EACH 10000

static void
bound(struct catalog *c, int row_bytes, int (*is_over)(void *arg), void *arg)
{
	sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, row_bytes);
	sqlite3_progress_handler(c->db, LOOK_EACH, is_over, arg);
}

static void
close_database(struct catalog *c)
{
	sqlite3_close(c->db);
}

const struct catalog_engine catalog_sqlite = {
	/* IMMEDIATE: a reader that becomes a writer cannot wait its turn. */
	.begin = "BEGIN IMMEDIATE",
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
	.close = close_database,
};
