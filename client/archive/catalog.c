#include "client/archive/catalog.h"

#include <sqlite3.h>
#include <stdio.h>

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

int
catalog_execute(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	if (sqlite3_exec(c->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return catalog_failed(c, err, err_size);
	return 0;
}

struct sqlite3 *
catalog_handle(struct catalog *c)
{
	return c->db;
}

struct sqlite3_stmt *
catalog_prepare(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	struct catalog_statement *k;
	sqlite3_stmt *s;
	size_t i;

	for (i = 0; i < CATALOG_STATEMENTS; i++) {
		k = &c->kept[i];
		if (k->sql == sql && !sqlite3_stmt_busy(k->stmt)) {
			sqlite3_reset(k->stmt);
			sqlite3_clear_bindings(k->stmt);
			return k->stmt;
		}
	}
	if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s,
	    NULL) != SQLITE_OK) {
		(void)catalog_failed(c, err, err_size);
		return NULL;
	}
	/* A statement in use stays: its walk goes on behind this call. */
	do {
		k = &c->kept[c->next_kept++ % CATALOG_STATEMENTS];
	} while (k->stmt != NULL && sqlite3_stmt_busy(k->stmt));
	sqlite3_finalize(k->stmt);
	*k = (struct catalog_statement){ sql, s };
	return s;
}

int
catalog_bind(struct catalog *c, struct sqlite3_stmt *s,
    const struct catalog_value *values, size_t n_values, char *err,
    size_t err_size)
{
	const struct catalog_value *v;
	int i, rc = SQLITE_OK;

	for (i = 0; rc == SQLITE_OK && (size_t)i < n_values; i++) {
		v = &values[i];
		switch (v->type) {
		case CATALOG_INTEGER:
			rc = sqlite3_bind_int64(s, i + 1, v->integer);
			break;
		case CATALOG_TEXT:
			rc = sqlite3_bind_text(s, i + 1, v->bytes, -1,
			    SQLITE_TRANSIENT);
			break;
		case CATALOG_BLOB:
			rc = sqlite3_bind_blob64(s, i + 1, v->bytes, v->len,
			    SQLITE_TRANSIENT);
			break;
		}
	}
	return rc == SQLITE_OK ? 0 : catalog_failed(c, err, err_size);
}

int
catalog_step(struct catalog *c, struct sqlite3_stmt *s, char *err,
    size_t err_size)
{
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		(void)catalog_failed(c, err, err_size);
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : -1;
}

int
catalog_begin(struct catalog *c, char *err, size_t err_size)
{
	/* IMMEDIATE: a reader that becomes a writer cannot wait its turn. */
	if (c->depth == 0 &&
	    catalog_execute(c, "BEGIN IMMEDIATE", err, err_size) < 0)
		return -1;
	c->depth++;
	return 0;
}

int
catalog_commit(struct catalog *c, char *err, size_t err_size)
{
	if (c->depth > 1) {
		c->depth--;
		return 0;
	}
	if (catalog_execute(c, "COMMIT", err, err_size) < 0) {
		catalog_rollback(c);
		return -1;
	}
	c->depth = 0;
	return 0;
}

void
catalog_rollback(struct catalog *c)
{
	if (c->depth == 0)
		return;
	c->depth = 0;
	/* SQLite may have done so already, and then says an error. */
	(void)sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
}

unsigned
catalog_span_class(int64_t first_ns, int64_t last_ns)
{
	uint64_t span = (uint64_t)last_ns - (uint64_t)first_ns;
	unsigned n = 0;

	while (n < 63 && span >> n != 0)
		n++;
	return n;
}
