/* catalog_internal: the catalogue's handle, for the files of this module. */
#ifndef CLIENT_ARCHIVE_CATALOG_INTERNAL_H
#define CLIENT_ARCHIVE_CATALOG_INTERNAL_H

#include <sqlite3.h>

#include "client/archive/catalog.h"

/* A writer's transaction is one segment: milliseconds. */
#define CATALOG_BUSY_MS 10000

/* Statements that are kept prepared; the oldest goes first. */
#define CATALOG_STATEMENTS 48

struct catalog_statement {
	const char *sql; /* static: compared by address */
	sqlite3_stmt *stmt; /* owned */
};

struct catalog {
	sqlite3 *db; /* owned */
	char *file;  /* owned: the path of catalog.db */
	int folder;  /* descriptor; flock()ed as long as the catalogue is open */
	struct catalog_statement kept[CATALOG_STATEMENTS];
	unsigned next_kept;
	unsigned depth; /* of catalog_begin() */
};

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
