#include "client/archive/postgres.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/base/failure.h"

/* is_over() is asked so often. */
#define LOOK_MS 100u

struct postgres {
	PGconn *conn; /* owned; NULL: it is over */
	const char *name;
	int (*is_over)(void *arg); /* or NULL */
	void *arg;
	char failure[512]; /* why it is over */
};

static uint64_t
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- failures ---- */

/* libpq's sentences have lines, and an end of line behind the last. */
static void
put_line(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text != '\0' && n + 1 < size; text++) {
		if (*text != '\n' && *text != '\t')
			out[n++] = *text;
		else if (n > 0 && out[n - 1] != ' ' && text[1] != '\0')
			out[n++] = ' ';
	}
	out[n] = '\0';
}

/* Ends the connection; the sentence is that of all later calls. */
static int
end(struct postgres *p, const char *why, char *err, size_t err_size)
{
	char line[400];

	put_line(line, sizeof(line), why);
	snprintf(p->failure, sizeof(p->failure), "%s", line);
	PQfinish(p->conn);
	p->conn = NULL;
	return FAILURE(err, err_size, "cannot use the catalogue %s: %s",
	    p->name, p->failure);
}

static bool
is_state(const PGresult *r, const char *state)
{
	const char *s = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	return s != NULL && strncmp(s, state, strlen(state)) == 0;
}

/* A statement that the server refused; the connection may go on. */
static int
refused(struct postgres *p, const PGresult *r, char *err, size_t err_size)
{
	const char *primary = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
	char line[400];

	put_line(line, sizeof(line), primary != NULL ? primary :
	    PQresultErrorMessage(r));
	if (is_state(r, "57014"))
		return FAILURE(err, err_size, "it takes too long to do this "
		    "in the catalogue %s: narrow the time, or ask for less",
		    p->name);
	if (is_state(r, "42501"))
		return FAILURE(err, err_size, "the catalogue %s: %s: its owner "
		    "has to GRANT it", p->name, line);
	if (is_state(r, "42P01") || is_state(r, "42703"))
		return FAILURE(err, err_size, "the catalogue %s is damaged "
		    "(%s): make it anew in an empty database, with tributary "
		    "archive reindex --from", p->name, line);
	return FAILURE(err, err_size, "cannot use the catalogue %s: %s",
	    p->name, line);
}

/* ---- waiting ---- */

/* 0: the socket is as wanted; -1: it is over, or late. */
static int
wait_for(struct postgres *p, short events, uint64_t until_ms, const char **why)
{
	struct pollfd fd = { .fd = PQsocket(p->conn), .events = events };
	uint64_t now;

	for (;;) {
		now = now_ms();
		if (p->is_over != NULL && p->is_over(p->arg) != 0)
			*why = "it takes too long";
		else if (now >= until_ms)
			*why = "the server does not answer in time";
		else if (poll(&fd, 1, (int)(until_ms - now < LOOK_MS ?
		    until_ms - now : LOOK_MS)) > 0)
			return 0;
		else
			continue;
		return -1;
	}
}

static int
flush(struct postgres *p, uint64_t until_ms, const char **why)
{
	int rc;

	while ((rc = PQflush(p->conn)) == 1) {
		if (wait_for(p, POLLIN | POLLOUT, until_ms, why) < 0)
			return -1;
		if (PQconsumeInput(p->conn) == 0)
			return -1;
	}
	return rc;
}

/* The last result; NULL: the connection is of no use any more. */
static PGresult *
read_result(struct postgres *p, uint64_t until_ms, const char **why)
{
	PGresult *last = NULL, *r;

	for (;;) {
		while (PQisBusy(p->conn)) {
			if (wait_for(p, POLLIN, until_ms, why) < 0 ||
			    PQconsumeInput(p->conn) == 0)
				goto fail;
		}
		if ((r = PQgetResult(p->conn)) == NULL)
			break;
		/* The first that failed says why; those behind did not run. */
		if (last != NULL &&
		    PQresultStatus(last) == PGRES_FATAL_ERROR) {
			PQclear(r);
			continue;
		}
		PQclear(last);
		last = r;
	}
	if (PQstatus(p->conn) == CONNECTION_OK && last != NULL)
		return last;
fail:
	PQclear(last);
	return NULL;
}

PGresult *
postgres_run(struct postgres *p, const char *sql,
    const struct postgres_values *v, char *err, size_t err_size)
{
	uint64_t until_ms = now_ms() + POSTGRES_DEADLINE_S * 1000;
	const char *why = NULL;
	PGresult *r = NULL;
	int sent;

	if (p->conn == NULL) {
		snprintf(err, err_size, "cannot use the catalogue %s: %s",
		    p->name, p->failure);
		return NULL;
	}
	sent = v == NULL ? PQsendQuery(p->conn, sql) :
	    PQsendQueryParams(p->conn, sql, v->n, v->types, v->bytes,
	    v->lengths, v->formats, 0);
	if (sent == 1 && flush(p, until_ms, &why) == 0)
		r = read_result(p, until_ms, &why);
	if (r == NULL) {
		(void)end(p, why != NULL ? why : PQerrorMessage(p->conn), err,
		    err_size);
		return NULL;
	}
	if (PQresultStatus(r) == PGRES_TUPLES_OK ||
	    PQresultStatus(r) == PGRES_COMMAND_OK)
		return r;
	(void)refused(p, r, err, err_size);
	PQclear(r);
	return NULL;
}

void
postgres_bound(struct postgres *p, int (*is_over)(void *arg), void *arg)
{
	p->is_over = is_over;
	p->arg = arg;
}

/* ---- the beginning and the end ---- */

static unsigned
connect_seconds(PGconn *conn)
{
	PQconninfoOption *all = PQconninfo(conn), *o;
	unsigned seconds = 0;

	for (o = all; o != NULL && o->keyword != NULL; o++)
		if (strcmp(o->keyword, "connect_timeout") == 0 &&
		    o->val != NULL)
			seconds = (unsigned)strtoul(o->val, NULL, 10);
	PQconninfoFree(all);
	return seconds == 0 ? POSTGRES_CONNECT_S : seconds;
}

static int
connect_in_time(struct postgres *p, const char **why)
{
	uint64_t until_ms = now_ms() + connect_seconds(p->conn) * 1000;
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (PQstatus(p->conn) == CONNECTION_BAD)
		return -1;
	while (next != PGRES_POLLING_OK) {
		if (wait_for(p, next == PGRES_POLLING_READING ? POLLIN :
		    POLLOUT, until_ms, why) < 0)
			return -1;
		next = PQconnectPoll(p->conn);
		if (next == PGRES_POLLING_FAILED)
			return -1;
	}
	return PQsetnonblocking(p->conn, 1);
}

/*
 * The session's settings.  A writer that vanishes in a transaction keeps the
 * others waiting no longer than told here.
 */
static int
settle(struct postgres *p, enum postgres_mode mode, char *err, size_t err_size)
{
	const char *encoding = PQparameterStatus(p->conn, "server_encoding");
	time_t now = time(NULL);
	char sql[384], zone[16];
	struct tm tm;
	PGresult *r;

	if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
		return FAILURE(err, err_size, "the catalogue %s is to be in a "
		    "database whose encoding is UTF8, not %s: createdb -E UTF8 "
		    "-T template0", p->name, encoding == NULL ? "?" :
		    encoding);
	if (localtime_r(&now, &tm) == NULL ||
	    strftime(zone, sizeof(zone), "%z", &tm) != 5)
		snprintf(zone, sizeof(zone), "+0000");
	snprintf(sql, sizeof(sql), "SET statement_timeout = '%ds'; "
	    "SET idle_in_transaction_session_timeout = '%ds'; "
	    "SET standard_conforming_strings = on; "
	    "SET default_transaction_read_only = %s; "
	    "SET TIME ZONE INTERVAL '%.3s:%.2s' HOUR TO MINUTE",
	    POSTGRES_STATEMENT_S, POSTGRES_DEADLINE_S,
	    mode == POSTGRES_READ ? "on" : "off", zone, zone + 3);
	if ((r = postgres_run(p, sql, NULL, err, err_size)) == NULL)
		return -1;
	PQclear(r);
	return 0;
}

/* Notices are for psql. */
static void
quiet_cb(void *arg, const PGresult *r)
{
	(void)arg;
	(void)r;
}

struct postgres *
postgres_open(const char *url, const char *name, enum postgres_mode mode,
    char *err, size_t err_size)
{
	/* The URL stands behind what it may say otherwise. */
	const char *const keywords[] = { "gssencmode",
		"fallback_application_name", "dbname", "client_encoding",
		NULL };
	const char *const values[] = { "disable", "tributary", url, "UTF8",
		NULL };
	struct postgres *p = calloc(1, sizeof(*p));
	const char *why = NULL;

	if (p == NULL ||
	    (p->conn = PQconnectStartParams(keywords, values, 1)) == NULL) {
		free(p);
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	p->name = name;
	(void)PQsetNoticeReceiver(p->conn, quiet_cb, NULL);
	if (connect_in_time(p, &why) != 0)
		(void)end(p, why != NULL ? why : PQerrorMessage(p->conn), err,
		    err_size);
	else if (settle(p, mode, err, err_size) == 0)
		return p;
	postgres_close(p);
	return NULL;
}

void
postgres_close(struct postgres *p)
{
	if (p == NULL)
		return;
	PQfinish(p->conn);
	free(p);
}
