/* catalog_internal: the catalogue's handle, for the files of this module. */
#ifndef CLIENT_ARCHIVE_CATALOG_INTERNAL_H
#define CLIENT_ARCHIVE_CATALOG_INTERNAL_H

#include <sqlite3.h>

#include "client/archive/catalog.h"

/* A writer's transaction is one segment: milliseconds. */
#define CATALOG_BUSY_MS 10000

/* Statements that are kept prepared; the oldest goes first. */
#define CATALOG_STATEMENTS 48

struct catalog_engine;

struct catalog_statement {
	struct catalog *catalog;
	const char *sql; /* static: compared by address; NULL: not kept */
	void *of; /* the engine's own; NULL: none */
};

struct catalog {
	const struct catalog_engine *engine;
	sqlite3 *db; /* owned; NULL: of another engine */
	struct postgres *postgres; /* owned; likewise */
	char *file;  /* owned: the path of catalog.db, or another name for people */
	int folder;  /* descriptor; flock()ed while the catalogue is open; or -1 */
	struct catalog_statement kept[CATALOG_STATEMENTS];
	unsigned next_kept;
	unsigned depth; /* of catalog_begin() */
};

/* A database; the calls mean the same as those of catalog.h. */
struct catalog_engine {
	const char *begin; /* SQL of a transaction that writes */
	/* NULL with a sentence. */
	void *(*prepare)(struct catalog *c, const char *sql, char *err,
	    size_t err_size);
	bool (*busy)(void *s);
	int (*bind)(struct catalog *c, void *s, const struct catalog_value *v,
	    size_t n, char *err, size_t err_size);
	int (*step)(struct catalog *c, void *s, char *err, size_t err_size);
	void (*reset)(void *s);
	void (*finish)(void *s); /* NULL is fine */
	int64_t (*integer)(void *s, int column);
	const char *(*text)(void *s, int column);
	const void *(*blob)(void *s, int column, size_t *len);
	bool (*is_null)(void *s, int column);
	/* Several statements without values. */
	int (*execute)(struct catalog *c, const char *sql, char *err,
	    size_t err_size);
	void (*bound)(struct catalog *c, int row_bytes,
	    int (*is_over)(void *arg), void *arg);
	void (*close)(struct catalog *c);
};

extern const struct catalog_engine catalog_sqlite;

/* In the file's header, so that file(1) and we know whose it is. */
#define CATALOG_APPLICATION 0x54724361

/* The tables, for an empty database. */
extern const char catalog_schema[];

/* Says what SQLite said last, with what to do about it.  Returns -1. */
int catalog_failed(struct catalog *c, char *err, size_t err_size);
/*
 * Adds the functions of SQL that segment_json.c uses, while no statement is
 * under way: tributary_span_class(first_ns, last_ns), tributary_unhex(text, size).
 */
int catalog_add_functions(struct catalog *c, char *err, size_t err_size)
    MUST_CHECK;
/*
 * Puts the terms of a segment, by its rows in other tables, into the inverted
 * index; in the caller's transaction.
 */
int catalog_put_terms(struct catalog *c, int64_t id, char *err,
    size_t err_size) MUST_CHECK;
int catalog_execute(struct catalog *c, const char *sql, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_CATALOG_INTERNAL_H */
