#include "client/trace/machine_names.h"

#include <stdlib.h>
#include <string.h>

void
machine_names_done(struct machine_names *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		free(m->all[i].name);
	free(m->all);
	memset(m, 0, sizeof(*m));
}

/* Binary search: the index of the id, or where it has to be inserted. */
static size_t
place_of(const struct machine_names *m, uint32_t id)
{
	size_t low = 0, high = m->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (m->all[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int
make_room(struct machine_names *m)
{
	size_t cap = m->cap == 0 ? 16 : m->cap * 2;
	struct machine_name *all;

	if (m->n < m->cap)
		return 0;
	if (m->n == MACHINE_NAMES_MAX ||
	    (all = reallocarray(m->all, cap, sizeof(*all))) == NULL)
		return -1;
	m->all = all;
	m->cap = cap;
	return 0;
}

/* The entry of the id, which may be new; NULL: no room. */
static struct machine_name *
entry(struct machine_names *m, uint32_t id)
{
	size_t at = place_of(m, id);

	if (at < m->n && m->all[at].id == id)
		return &m->all[at];
	if (make_room(m) != 0)
		return NULL;
	memmove(m->all + at + 1, m->all + at, (m->n - at) * sizeof(*m->all));
	m->all[at] = (struct machine_name){ .id = id };
	m->n++;
	return &m->all[at];
}

void
machine_names_put(struct machine_names *m, uint32_t id, const char *name)
{
	char *copy = strdup(name);
	struct machine_name *e;

	if (copy == NULL)
		return;
	if ((e = entry(m, id)) == NULL) {
		free(copy);
		return;
	}
	free(e->name);
	e->name = copy;
}

void
machine_names_see(struct machine_names *m, uint32_t id)
{
	struct machine_name *e = entry(m, id);

	if (e != NULL)
		e->seen = true;
}

void
machine_names_suggest(struct machine_names *m, uint32_t id, const char *name)
{
	if (machine_names_find(m, id) == NULL)
		machine_names_put(m, id, name);
}

const char *
machine_names_find(const struct machine_names *m, uint32_t id)
{
	size_t at = place_of(m, id);

	return at < m->n && m->all[at].id == id ? m->all[at].name : NULL;
}
