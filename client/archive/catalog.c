#include "client/archive/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/archive/catalog_internal.h"

void
catalog_close(struct catalog *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < CATALOG_STATEMENTS; i++)
		c->engine->finish(c->kept[i].of);
	c->engine->close(c);
	free(c->file);
	if (c->folder >= 0)
		close(c->folder);
	free(c);
}

bool
catalog_is_shared(const struct catalog *c)
{
	return c->postgres != NULL;
}

void
catalog_bound(struct catalog *c, int row_bytes, int (*is_over)(void *arg),
    void *arg)
{
	c->engine->bound(c, row_bytes, is_over, arg);
}

int
catalog_execute(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	return c->engine->execute(c, sql, err, err_size);
}

struct sqlite3 *
catalog_handle(struct catalog *c)
{
	return c->db;
}

/* ---- statements ---- */

struct catalog_statement *
catalog_prepare(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	struct catalog_statement *k;
	void *of;
	size_t i;

	for (i = 0; i < CATALOG_STATEMENTS; i++) {
		k = &c->kept[i];
		if (k->sql == sql && !c->engine->busy(k->of)) {
			c->engine->reset(k->of);
			return k;
		}
	}
	if ((of = c->engine->prepare(c, sql, err, err_size)) == NULL)
		return NULL;
	/* A statement in use stays: its walk goes on behind this call. */
	do {
		k = &c->kept[c->next_kept++ % CATALOG_STATEMENTS];
	} while (k->of != NULL && c->engine->busy(k->of));
	c->engine->finish(k->of);
	*k = (struct catalog_statement){ c, sql, of };
	return k;
}

struct catalog_statement *
catalog_compile(struct catalog *c, const char *sql, char *err, size_t err_size)
{
	struct catalog_statement *s = malloc(sizeof(*s));

	if (s == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	*s = (struct catalog_statement){ .catalog = c };
	if ((s->of = c->engine->prepare(c, sql, err, err_size)) != NULL)
		return s;
	free(s);
	return NULL;
}

void
catalog_finish(struct catalog_statement *s)
{
	if (s == NULL)
		return;
	s->catalog->engine->finish(s->of);
	free(s);
}

int
catalog_bind(struct catalog *c, struct catalog_statement *s,
    const struct catalog_value *values, size_t n_values, char *err,
    size_t err_size)
{
	return c->engine->bind(c, s->of, values, n_values, err, err_size);
}

int
catalog_step(struct catalog *c, struct catalog_statement *s, char *err,
    size_t err_size)
{
	return c->engine->step(c, s->of, err, err_size);
}

void
catalog_reset(struct catalog_statement *s)
{
	s->catalog->engine->reset(s->of);
}

int64_t
catalog_int(struct catalog_statement *s, int column)
{
	return s->catalog->engine->integer(s->of, column);
}

const char *
catalog_text(struct catalog_statement *s, int column)
{
	return s->catalog->engine->text(s->of, column);
}

const void *
catalog_blob(struct catalog_statement *s, int column, size_t *len)
{
	return s->catalog->engine->blob(s->of, column, len);
}

bool
catalog_is_null(struct catalog_statement *s, int column)
{
	return s->catalog->engine->is_null(s->of, column);
}

/* ---- transactions ---- */

int
catalog_begin(struct catalog *c, char *err, size_t err_size)
{
	if (c->depth == 0 &&
	    catalog_execute(c, c->engine->begin, err, err_size) < 0) {
		c->depth = 1;
		catalog_rollback(c);
		return -1;
	}
	c->depth++;
	return 0;
}

int
catalog_commit(struct catalog *c, char *err, size_t err_size)
{
	if (c->depth > 1) {
		c->depth--;
		return 0;
	}
	if (catalog_execute(c, "COMMIT", err, err_size) < 0) {
		catalog_rollback(c);
		return -1;
	}
	c->depth = 0;
	return 0;
}

void
catalog_rollback(struct catalog *c)
{
	char err[1];

	if (c->depth == 0)
		return;
	c->depth = 0;
	/* The database may have done so already, and then says an error. */
	if (catalog_execute(c, "ROLLBACK", err, sizeof(err)) < 0)
		return;
}

unsigned
catalog_span_class(int64_t first_ns, int64_t last_ns)
{
	uint64_t span = (uint64_t)last_ns - (uint64_t)first_ns;
	unsigned n = 0;

	while (n < 63 && span >> n != 0)
		n++;
	return n;
}
