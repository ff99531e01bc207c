#include "client/archive/find/find_nothing.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/selection.h"
#include "client/text/time_text.h"
#include "protos/plain_text.h"
#include "transport/base/glob.h"

#define ERROR_BYTES 512
/* Names that are listed. */
#define LISTED 8u

/* A kind of names that segments have. */
struct kind {
	const char *noun;
	enum catalog_kind kind;
};

static const struct kind machines = { "machine", CATALOG_MACHINE };
static const struct kind recordings = { "recording", CATALOG_RECORDING };
static const struct kind triggers = { "trigger", CATALOG_TRIGGER };
static const struct kind collectors = { "collector", CATALOG_COLLECTOR };

/* Whether no segment at all has a name; then it says which there are. */
static bool
say_no_such_name(const char *speaker, struct catalog *c,
    const struct selection *s, const struct kind *kind, const char *wanted)
{
	const struct catalog_value v = CATALOG_INT(kind->kind);
	char err[ERROR_BYTES], list[1024] = "";
	size_t n = 0, len = 0;
	struct catalog_statement *stmt;
	const char *name;

	if (wanted == NULL || (stmt = catalog_prepare(c, "SELECT name FROM "
	    "terms WHERE kind = ? AND name > '' ORDER BY name", err,
	    sizeof(err))) == NULL ||
	    catalog_bind(c, stmt, &v, 1, err, sizeof(err)) < 0)
		return false;
	while (catalog_step(c, stmt, err, sizeof(err)) == 1) {
		name = catalog_text(stmt, 0);
		if (name == NULL || glob_match(wanted, name)) {
			catalog_reset(stmt);
			return false;
		}
		if (n++ < LISTED && len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len,
			    "%s%s", n == 1 ? "" : ", ", name);
	}
	catalog_reset(stmt);
	plain_printf(stderr, "%s: no segment in %s has a %s %s; ", speaker,
	    s->name, kind->noun, wanted);
	if (n == 0)
		plain_printf(stderr, "none of them has any\n");
	else
		plain_printf(stderr, "there %s %s%s\n", n == 1 ? "is" : "are",
		    list, n > LISTED ? ", ..." : "");
	return true;
}

/* One segment that is not in the time asked for. */
struct near {
	char path[512];
	int64_t first_ns, last_ns;
	bool is;
};

static bool
near_cb(void *arg, const struct catalog_row *row)
{
	struct near *n = arg;

	snprintf(n->path, sizeof(n->path), "%s", row->path);
	n->first_ns = row->first_ns;
	n->last_ns = row->last_ns;
	n->is = true;
	return false;
}

static void
read_near(struct catalog *c, int64_t id, struct near *out)
{
	const struct selection_found one = { &id, 1 };
	char err[ERROR_BYTES];

	out->is = false;
	if (id != 0 && selection_each(c, &one, near_cb, out, err,
	    sizeof(err)) < 0)
		out->is = false;
}

static void
say_nearest(const char *speaker, struct catalog *c, const struct selection *s)
{
	char from[HUMAN_TEXT_MAX], to[HUMAN_TEXT_MAX], err[ERROR_BYTES];
	struct near before, behind;
	int64_t ids[2];

	if (selection_nearest(ids, c, s, err, sizeof(err)) < 0) {
		plain_printf(stderr, "%s: nothing is found\n", speaker);
		return;
	}
	read_near(c, ids[0], &before);
	read_near(c, ids[1], &behind);
	plain_printf(stderr, "%s: %s has no such segment from %s to %s",
	    speaker, s->name, time_text_at(from, (uint64_t)s->from_ns),
	    s->to_ns == INT64_MAX ? "now" : time_text_at(to,
	    (uint64_t)s->to_ns));
	if (before.is)
		plain_printf(stderr, "; the last one before ends at %s (%s)",
		    time_text_at(to, (uint64_t)before.last_ns), before.path);
	if (behind.is)
		plain_printf(stderr, "; the next one begins at %s (%s)",
		    time_text_at(to, (uint64_t)behind.first_ns), behind.path);
	if (!before.is && !behind.is)
		plain_printf(stderr, ", and at no other time");
	plain_printf(stderr, "\n");
}

static bool
any_cb(void *arg, const struct catalog_row *row)
{
	(void)row;
	*(bool *)arg = true;
	return false;
}

void
find_nothing_say(const char *speaker, struct catalog *c,
    const struct selection *s)
{
	char err[ERROR_BYTES];
	bool any = false;

	if (catalog_each(c, "LIMIT 1", NULL, 0, any_cb, &any, err,
	    sizeof(err)) == 0 && !any)
		plain_printf(stderr, "%s: the archive %s has no segments "
		    "yet\n", speaker, s->name);
	else if (say_no_such_name(speaker, c, s, &machines, s->machine) ||
	    say_no_such_name(speaker, c, s, &recordings, s->recording) ||
	    say_no_such_name(speaker, c, s, &triggers, s->trigger) ||
	    say_no_such_name(speaker, c, s, &collectors, s->collector))
		return;
	else if (s->has_time)
		say_nearest(speaker, c, s);
	else
		plain_printf(stderr, "%s: no segment in %s is as asked for\n",
		    speaker, s->name);
}
