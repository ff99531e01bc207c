/*
 * catalog: FOLDER/catalog.db, what is known of each trace file of an archive; or
 * the same tables in PostgreSQL, of what several collectors have in one store.
 *
 * SQLite in WAL mode: any number of processes read it, one at a time writes.
 * A row is a function of its file (segment_entry), but for three things: pinned
 * (a mark beside the file, folder.h), local, and the columns of the store.  So
 * it can be thrown away and made anew, and a power failure may take its newest
 * transactions (synchronous = NORMAL), not its consistency.
 *
 * A shared catalogue has no local rows.  Their paths begin with the collector's
 * name, as a folder, so that those of several never meet.
 *
 * Not thread-safe: one handle is one thread's.  Knows no files but its own.
 */
#ifndef CLIENT_ARCHIVE_CATALOG_H
#define CLIENT_ARCHIVE_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;
struct catalog_statement;
struct segment_entry;
struct sqlite3;

/* PRAGMA user_version of the tables in catalog_schema.c. */
#define CATALOG_VERSION 2
#define CATALOG_FILE    "catalog.db"

/* Kinds of terms, as numbers in the table. */
enum catalog_kind {
	CATALOG_RECORDING = 1,
	CATALOG_MACHINE = 2,
	CATALOG_TRIGGER = 3,
	CATALOG_PROCESS = 4,
	CATALOG_LOSS = 5, /* one term, "": segments that lost something */
	CATALOG_COLLECTOR = 6, /* of a shared catalogue */
};
/* The class in postings of a segment without times. */
#define CATALOG_TIMELESS (-1)

enum catalog_mode {
	CATALOG_READ,  /* it must be there */
	CATALOG_WRITE, /* made if it is missing */
};

/*
 * Opens it; NULL with a sentence in err: no such folder, no catalogue, locked,
 * damaged, of another version.
 */
struct catalog *catalog_open(const char *folder, enum catalog_mode mode,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Likewise the shared one at a postgresql:// URL; its tables are made where it is
 * to be written.  Waits for the server for seconds at most, here and in all
 * calls below.  A connection that is lost stays so: each call fails.
 */
struct catalog *catalog_connect(const char *url, enum catalog_mode mode,
    char *err, size_t err_size) MUST_CHECK;
/* An empty one in memory, of SQLite. */
struct catalog *catalog_scratch(char *err, size_t err_size) MUST_CHECK;
void catalog_close(struct catalog *c);
bool catalog_is_shared(const struct catalog *c);
/*
 * Has statements fail once is_over(arg) is true, which is asked now and then,
 * and, of SQLite, rows of more bytes than so many.
 */
void catalog_bound(struct catalog *c, int row_bytes, int (*is_over)(void *arg),
    void *arg);
/*
 * Removes the catalogue of a folder, with its journal, so that it can be made
 * anew.  -1 with a sentence: a process has it open.
 */
int catalog_destroy(const char *folder, char *err, size_t err_size) MUST_CHECK;

/*
 * All calls below: -1 with a sentence in err, and then nothing has changed.
 *
 * Puts what is known of a file, in one transaction.  A row of the same path is
 * replaced; it keeps `stored` where the checksum is the same.  The row is local
 * then, and pinned as told.
 */
int catalog_put(struct catalog *c, const struct segment_entry *e, bool pinned,
    char *err, size_t err_size) MUST_CHECK;
/* Removes a row and all that belongs to it; no row is no failure. */
int catalog_remove(struct catalog *c, int64_t id, char *err, size_t err_size)
    MUST_CHECK;
int catalog_set_pinned(struct catalog *c, int64_t id, bool pinned, char *err,
    size_t err_size) MUST_CHECK;
/* Whether the file is in the folder. */
int catalog_set_local(struct catalog *c, int64_t id, bool local, char *err,
    size_t err_size) MUST_CHECK;

/* The columns of the store: written by the uploader alone. */
struct catalog_stored {
	const char *state; /* the uploader's word; "stored": it is there; or NULL */
	const char *url, *etag, *detail; /* or NULL */
	int64_t at_ns; /* CLOCK_REALTIME of the change; 0: none */
};
int catalog_set_stored(struct catalog *c, int64_t id,
    const struct catalog_stored *s, char *err, size_t err_size) MUST_CHECK;

/*
 * A row of the table segments; borrowed for the call that gets it.  Its path is
 * a segment's below the folder: a walk that finds another one fails.
 */
struct catalog_row {
	int64_t id;
	const char *path;
	uint64_t bytes;
	int64_t mtime_ns;
	const uint8_t *sha256; /* SEGMENT_SHA256 bytes */
	const char *verdict, *problem;
	const char *recording; /* "": it has no name */
	uint32_t number;       /* 0: no segment */
	const char *machine;   /* "": not split by machine */
	uint64_t packets, lost;
	bool has_wall;
	int64_t first_ns, last_ns; /* CLOCK_REALTIME of the collector */
	bool pinned, local;
	struct catalog_stored stored;
};

/* A value for a `?` of a condition. */
enum catalog_type {
	CATALOG_INTEGER,
	CATALOG_TEXT,
	CATALOG_BLOB,
	CATALOG_PATTERN, /* text as glob.h has it, behind GLOB */
};
struct catalog_value {
	enum catalog_type type;
	int64_t integer;
	/* Text with its terminator, or a blob; borrowed.  NULL: SQL's. */
	const void *bytes;
	size_t len; /* of a blob */
};
#define CATALOG_INT(v) ((struct catalog_value){ .integer = (v) })
#define CATALOG_STR(v)                                                        \
	((struct catalog_value){ .type = CATALOG_TEXT, .bytes = (v) })
#define CATALOG_GLOB(v)                                                       \
	((struct catalog_value){ .type = CATALOG_PATTERN, .bytes = (v) })

/* A row; false ends the walk, which is no failure. */
typedef bool (*catalog_row_fn)(void *arg, const struct catalog_row *row);
/*
 * Walks the rows of segments, as `s`, that SQL behind FROM segments AS s
 * selects: "WHERE s.local AND NOT s.pinned ORDER BY s.last_ns".  Static SQL; the
 * values come from `values`.  fn must not write through the same handle, as the
 * walk would never end.
 */
int catalog_each(struct catalog *c, const char *sql,
    const struct catalog_value *values, size_t n_values, catalog_row_fn fn,
    void *arg, char *err, size_t err_size) MUST_CHECK;
/* 1: called fn with the row of this path; 0: there is none. */
int catalog_find(struct catalog *c, const char *path, catalog_row_fn fn,
    void *arg, char *err, size_t err_size) MUST_CHECK;

/*
 * For SQL of others, in words that SQLite and PostgreSQL have in common, or that
 * postgres_sql.h says in PostgreSQL's.  A prepared statement belongs to the
 * handle, is kept for the next call with the same text (which must be static),
 * and comes reset.
 */
struct catalog_statement *catalog_prepare(struct catalog *c, const char *sql,
    char *err, size_t err_size) MUST_CHECK;
/* The caller's, of any text, until catalog_finish(), for which NULL is fine. */
struct catalog_statement *catalog_compile(struct catalog *c, const char *sql,
    char *err, size_t err_size) MUST_CHECK;
void catalog_finish(struct catalog_statement *s);
/* Values of ?1 and so on. */
int catalog_bind(struct catalog *c, struct catalog_statement *s,
    const struct catalog_value *values, size_t n_values, char *err,
    size_t err_size) MUST_CHECK;
/* 1: a row; 0: the end; the statement is reset on 0 and -1. */
int catalog_step(struct catalog *c, struct catalog_statement *s, char *err,
    size_t err_size) MUST_CHECK;
void catalog_reset(struct catalog_statement *s);
/* Columns of a row, from 0; good until the next step.  NULL: 0 or NULL. */
int64_t catalog_int(struct catalog_statement *s, int column);
const char *catalog_text(struct catalog_statement *s, int column);
const void *catalog_blob(struct catalog_statement *s, int column, size_t *len);
bool catalog_is_null(struct catalog_statement *s, int column);
/* The handle of SQLite; NULL: the catalogue is in PostgreSQL. */
struct sqlite3 *catalog_handle(struct catalog *c);
/* Several changes as one: catalog_put() and others nest in it. */
int catalog_begin(struct catalog *c, char *err, size_t err_size) MUST_CHECK;
int catalog_commit(struct catalog *c, char *err, size_t err_size) MUST_CHECK;
void catalog_rollback(struct catalog *c);

/*
 * For segments, a span's class: the least n with
 * last - first < 1 << n.  With it a search by time reads few rows besides those
 * that it finds, however long single segments are: of each class, those that
 * begin in [from - (1 << n), to].
 */
unsigned catalog_span_class(int64_t first_ns, int64_t last_ns);

#endif /* CLIENT_ARCHIVE_CATALOG_H */
