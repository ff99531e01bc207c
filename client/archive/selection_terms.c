#include "client/archive/selection_terms.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/selection_sql.h"
#include "transport/base/failure.h"
#include "transport/base/glob.h"

static void
write_sql(struct selection_sql *q, enum catalog_kind kind, const char *name)
{
	selection_sql_init(q);
	selection_sql_integer(q, "SELECT id FROM terms WHERE kind = ", kind);
	selection_sql_add(q, " AND ");
	if (kind != CATALOG_PROCESS)
		selection_sql_name(q, "name", name);
	else if (glob_is_pattern(name) || strchr(name, '/') != NULL)
		selection_sql_program(q, "name", name);
	else
		selection_sql_name(q, "base", name);
}

static int
read_ids(struct selection_terms *out, struct catalog *c, struct catalog_statement *s,
    char *err, size_t err_size)
{
	int64_t *grown;
	int rc;

	while ((rc = catalog_step(c, s, err, err_size)) == 1) {
		grown = realloc(out->ids, (out->n + 1) * sizeof(*grown));
		if (grown == NULL)
			return FAILURE(err, err_size, "out of memory");
		out->ids = grown;
		grown[out->n++] = catalog_int(s, 0);
	}
	return rc;
}

int
selection_terms_read(struct selection_terms *out, struct catalog *c,
    enum catalog_kind kind, const char *name, char *err, size_t err_size)
{
	struct selection_sql q;
	struct catalog_statement *s;
	int rc;

	*out = (struct selection_terms){ NULL, 0 };
	write_sql(&q, kind, name);
	if (q.too_long)
		return FAILURE(err, err_size, "the names are too long");
	if ((s = catalog_compile(c, q.text, err, err_size)) == NULL)
		return -1;
	rc = catalog_bind(c, s, q.values, q.n, err, err_size);
	if (rc == 0)
		rc = read_ids(out, c, s, err, err_size);
	catalog_finish(s);
	if (rc < 0)
		selection_terms_done(out);
	return rc;
}

void
selection_terms_done(struct selection_terms *t)
{
	free(t->ids);
	*t = (struct selection_terms){ NULL, 0 };
}
