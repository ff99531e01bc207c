/*
 * postgres: a connection to PostgreSQL on which nothing waits for ever: each
 * call has a deadline of its own, whatever the server or the network does.
 *
 * Knows no tables.  A connection that failed or was late is over; all later
 * calls fail with the same sentence.
 */
#ifndef CLIENT_ARCHIVE_POSTGRES_H
#define CLIENT_ARCHIVE_POSTGRES_H

#include <libpq-fe.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* To connect, unless the URL has connect_timeout. */
#define POSTGRES_CONNECT_S 5
/* The server ends a statement after the first; we leave after the second. */
#define POSTGRES_STATEMENT_S 10
#define POSTGRES_DEADLINE_S  15

/* Values of one statement at most. */
#define POSTGRES_VALUES_MAX 2048

struct postgres;

/* Values of $1 and so on, in the words of PQsendQueryParams(). */
struct postgres_values {
	int n;
	const Oid *types;
	const char *const *bytes;
	const int *lengths, *formats;
};

enum postgres_mode { POSTGRES_READ, POSTGRES_WRITE };

/* name: the server's, for people.  NULL with a sentence. */
struct postgres *postgres_open(const char *url, const char *name,
    enum postgres_mode mode, char *err, size_t err_size) MUST_CHECK;
void postgres_close(struct postgres *p);
/* Has calls fail once is_over(arg), which is asked several times a second. */
void postgres_bound(struct postgres *p, int (*is_over)(void *arg), void *arg);

/*
 * Runs a statement; v NULL: any number of them, without values.  The last one's
 * result, the caller's; NULL with a sentence.
 */
PGresult *postgres_run(struct postgres *p, const char *sql,
    const struct postgres_values *v, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_POSTGRES_H */
