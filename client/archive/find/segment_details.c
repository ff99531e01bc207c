#include "client/archive/find/segment_details.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "transport/base/failure.h"

static void
names_done(struct detail_names *n)
{
	while (n->n > 0)
		free(n->name[--n->n]);
	free(n->name);
	n->name = NULL;
}

static int
add_name(struct detail_names *n, const char *name)
{
	char **grown;

	grown = realloc(n->name, (n->n + 1) * sizeof(*grown));
	if (grown == NULL)
		return -1;
	n->name = grown;
	if ((grown[n->n] = strdup(name)) == NULL)
		return -1;
	n->n++;
	return 0;
}

/* sql: one column of text, for the segment ?. */
static int
read_names(struct detail_names *out, struct catalog *c, const char *sql,
    int64_t id, char *err, size_t err_size)
{
	const struct catalog_value v = CATALOG_INT(id);
	struct catalog_statement *s = catalog_prepare(c, sql, err, err_size);
	const char *name;
	int rc;

	if (s == NULL || catalog_bind(c, s, &v, 1, err, err_size) < 0)
		return -1;
	while ((rc = catalog_step(c, s, err, err_size)) == 1) {
		name = catalog_text(s, 0);
		if (name != NULL && add_name(out, name) < 0) {
			rc = FAILURE(err, err_size, "out of memory");
			break;
		}
	}
	catalog_reset(s);
	return rc;
}

int
segment_details_read(struct segment_details *out, struct catalog *c,
    int64_t id, char *err, size_t err_size)
{
	static const char machines[] = "SELECT name FROM machines WHERE "
	    "segment = ? AND name <> '' AND packets > 0 ORDER BY id";
	static const char triggers[] = "SELECT name FROM triggers WHERE "
	    "segment = ? GROUP BY name ORDER BY min(position)";
	static const char losses[] = "SELECT text FROM losses WHERE "
	    "segment = ? ORDER BY position";
	struct segment_details d = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };

	if (read_names(&d.machines, c, machines, id, err, err_size) < 0 ||
	    read_names(&d.triggers, c, triggers, id, err, err_size) < 0 ||
	    read_names(&d.losses, c, losses, id, err, err_size) < 0) {
		segment_details_done(&d);
		return -1;
	}
	*out = d;
	return 0;
}

void
segment_details_done(struct segment_details *d)
{
	names_done(&d->machines);
	names_done(&d->triggers);
	names_done(&d->losses);
}
