/*
 * selection_sql: text of a query that is put together, with its values.  Pure.
 */
#ifndef CLIENT_ARCHIVE_SELECTION_SQL_H
#define CLIENT_ARCHIVE_SELECTION_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/catalog.h"

#define SELECTION_SQL_BYTES  4096
#define SELECTION_SQL_VALUES 16
/* Bytes of a program's pattern. */
#define SELECTION_PATTERN_BYTES 512

struct selection_sql {
	char text[SELECTION_SQL_BYTES];
	size_t len;
	struct catalog_value values[SELECTION_SQL_VALUES];
	size_t n;
	bool too_long; /* sticky */
	/* Patterns of programs, which values borrow. */
	char patterns[8][SELECTION_PATTERN_BYTES];
	size_t n_patterns;
};

void selection_sql_init(struct selection_sql *q);
/* Appends text. */
void selection_sql_add(struct selection_sql *q, const char *text);
/* Appends text, and the number behind it. */
void selection_sql_integer(struct selection_sql *q, const char *text,
    int64_t v);
/*
 * Appends "COLUMN = ?", or "COLUMN GLOB ?" for a pattern.  static column; name
 * is borrowed.
 */
void selection_sql_name(struct selection_sql *q, const char *column,
    const char *name);
/* Appends that of a program, whose name may be the last part of its path. */
void selection_sql_program(struct selection_sql *q, const char *column,
    const char *name);

#endif /* CLIENT_ARCHIVE_SELECTION_SQL_H */
