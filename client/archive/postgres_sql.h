/*
 * postgres_sql: what PostgreSQL says otherwise than SQLite: the one place that
 * knows in which words they differ.  Pure.
 */
#ifndef CLIENT_ARCHIVE_POSTGRES_SQL_H
#define CLIENT_ARCHIVE_POSTGRES_SQL_H

#include <stddef.h>

#include "transport/base/compiler.h"

/*
 * The catalogue's SQL, or its schema, for PostgreSQL; the caller's.  "?" and
 * "?3" become "$1" and "$3".  NULL: no memory.
 */
char *postgres_sql(const char *sql) MUST_CHECK;

/* A pattern as glob.h has it, for LIKE; the caller's.  NULL: no memory. */
char *postgres_sql_pattern(const char *pattern) MUST_CHECK;

/* Bytes of a text, about: two of them fit into an entry of an index. */
#define POSTGRES_SQL_TEXT_MAX 1200

/*
 * A text in UTF-8, the caller's: bytes that are no character become U+FFFD, as
 * PostgreSQL takes no others, and a longer one is cut.  NULL: no memory.
 */
char *postgres_sql_text(const char *text) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_POSTGRES_SQL_H */
