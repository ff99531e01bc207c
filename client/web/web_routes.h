/*
 * web_routes: the paths that are answered, and the body of each answer.  Pure,
 * but for the file that it prints to; knows no connection.
 */
#ifndef CLIENT_WEB_WEB_ROUTES_H
#define CLIENT_WEB_WEB_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/metrics/metrics_text.h"
#include "client/web/web_archive.h"
#include "client/web/web_request.h"
#include "client/web/web_source.h"
#include "transport/base/compiler.h"

struct web_snapshot;

/* Sources of a body, besides the snapshot.  Pointers are borrowed. */
struct web_asked {
	struct web_query query;
	enum metrics_form form;
	const char *collector; /* its address */
	bool has_archive;
	/* Counts of this server, so far. */
	const struct metrics_answers *answers;
	size_t n_answers;
	uint64_t connections;
};

struct web_route {
	const char *path;
	const char *type; /* Content-Type; NULL: that of the metrics' form */
	bool is_open;     /* answered without a token */
	bool is_archive;  /* is there with an archive alone */
	enum web_job_kind job; /* WEB_JOB_NONE: there is print() */
	bool scripts;     /* may run those of this server */
	bool asks;        /* wants a snapshot, of this wish */
	enum web_wish wish;
	/* Route where the query names a machine; NULL: it makes no difference. */
	const struct web_route *of_machine;
	/*
	 * NULL where there is a job.  Returns the HTTP status.  s: NULL where
	 * the route asks for none.
	 */
	unsigned (*print)(const struct web_asked *a,
	    const struct web_snapshot *s, FILE *out);
};

/* NULL: there is nothing at this path. */
const struct web_route *web_routes_find(const char *path) MUST_CHECK;
/* Content-Type of an answer with this status; static. */
const char *web_routes_type(const struct web_route *r,
    const struct web_asked *a, unsigned status);

#endif /* CLIENT_WEB_WEB_ROUTES_H */
