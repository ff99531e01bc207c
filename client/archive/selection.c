#include "client/archive/selection.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/postgres_url.h"
#include "client/text/time_point.h"
#include "transport/base/failure.h"

#define AROUND_NS (30 * 1000000000ll)

static int
settle_at(struct selection *s, int64_t now_ns, char *err, size_t err_size)
{
	int64_t at, around = AROUND_NS;

	if (s->from != NULL || s->to != NULL)
		return FAILURE(err, err_size, "--at, or --from and --to: not "
		    "both");
	if (time_point_parse(s->at, now_ns, 0, &at, err, err_size) < 0 ||
	    (s->around != NULL && time_span_parse(s->around, &around, err,
	    err_size) < 0))
		return -1;
	s->from_ns = at > around ? at - around : 0;
	s->to_ns = at < INT64_MAX - around ? at + around : INT64_MAX;
	return 0;
}

static int
settle_span(struct selection *s, int64_t now_ns, char *err, size_t err_size)
{
	int64_t after = 0;

	s->from_ns = 0;
	s->to_ns = INT64_MAX;
	if (s->from != NULL) {
		if (time_point_parse(s->from, now_ns, 0, &s->from_ns, err,
		    err_size) < 0)
			return -1;
		after = s->from_ns;
	}
	if (s->to != NULL && time_point_parse(s->to, now_ns, after, &s->to_ns,
	    err, err_size) < 0)
		return -1;
	if (s->to_ns < s->from_ns)
		return FAILURE(err, err_size, "--to %s is before --from %s",
		    s->to, s->from);
	return 0;
}

static const char *
from_environment(const char *name)
{
	const char *value = getenv(name);

	return value == NULL || value[0] == '\0' ? NULL : value;
}

/* Which archive: a folder, or a shared catalogue. */
static int
settle_place(struct selection *s, char *err, size_t err_size)
{
	char name[POSTGRES_NAME_MAX];

	if (s->folder != NULL && s->catalog != NULL)
		return FAILURE(err, err_size, "--archive, or --catalog: not "
		    "both");
	if (s->folder == NULL && s->catalog == NULL &&
	    (s->folder = from_environment("TRIBUTARY_ARCHIVE")) == NULL)
		s->catalog = from_environment("TRIBUTARY_CATALOG");
	if (s->catalog == NULL && s->collector != NULL)
		return FAILURE(err, err_size, "--collector goes with --catalog: "
		    "a folder has the segments of one");
	if (s->catalog != NULL) {
		if (postgres_url_name(s->catalog, name, err, err_size) < 0)
			return -1;
		snprintf(s->name, sizeof(s->name), "%s", name);
		return 0;
	}
	if (s->folder == NULL || s->folder[0] == '\0')
		s->folder = SELECTION_DEFAULT_FOLDER;
	snprintf(s->name, sizeof(s->name), "%s", s->folder);
	return 0;
}

struct catalog *
selection_open(const struct selection *s, char *err, size_t err_size)
{
	return s->catalog != NULL ?
	    catalog_connect(s->catalog, CATALOG_READ, err, err_size) :
	    catalog_open(s->folder, CATALOG_READ, err, err_size);
}

int
selection_settle(struct selection *s, int64_t now_ns, char *err,
    size_t err_size)
{
	if (settle_place(s, err, err_size) < 0)
		return -1;
	if (s->n_paths > 0 && (s->machine != NULL || s->recording != NULL ||
	    s->trigger != NULL || s->process != NULL || s->lost ||
	    s->collector != NULL || s->at != NULL || s->from != NULL || s->to != NULL))
		return FAILURE(err, err_size, "name segments, or say which "
		    "kind of them: not both");
	if (s->around != NULL && s->at == NULL)
		return FAILURE(err, err_size, "--around wants --at: around "
		    "which time?");
	s->has_time = s->at != NULL || s->from != NULL || s->to != NULL;
	if (!s->has_time)
		return 0;
	return s->at != NULL ? settle_at(s, now_ns, err, err_size) :
	    settle_span(s, now_ns, err, err_size);
}

bool
selection_is_set(const struct selection *s)
{
	return s->machine != NULL || s->recording != NULL ||
	    s->trigger != NULL || s->process != NULL || s->at != NULL ||
	    s->from != NULL || s->to != NULL || s->lost ||
	    s->collector != NULL || s->n_paths > 0;
}

void
selection_found_done(struct selection_found *f)
{
	free(f->ids);
	*f = (struct selection_found){ 0 };
}

/* ---- rows ---- */

#define CHUNK 256u
#define ID_BYTES 24u

int
selection_each(struct catalog *c, const struct selection_found *f,
    catalog_row_fn fn, void *arg, char *err, size_t err_size)
{
	char sql[CHUNK * ID_BYTES + 128];
	size_t i, n, len;

	for (i = 0; i < f->n; i += n) {
		len = (size_t)snprintf(sql, sizeof(sql), "JOIN (SELECT "
		    "column1 AS id, row_number() OVER () AS n FROM (VALUES");
		for (n = 0; n < CHUNK && i + n < f->n; n++)
			len += (size_t)snprintf(sql + len, sizeof(sql) - len,
			    "%s(%lld)", n == 0 ? "" : ",",
			    (long long)f->ids[i + n]);
		snprintf(sql + len, sizeof(sql) - len,
		    ") AS v) AS k ON k.id = s.id ORDER BY k.n");
		if (catalog_each(c, sql, NULL, 0, fn, arg, err, err_size) < 0)
			return -1;
	}
	return 0;
}
