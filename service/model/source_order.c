#include "service/model/source_order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "service/model/model.h"

struct source_name {
	TAILQ_HEAD(, data_source) sources;
};

static const char *
text_of(const struct source_name *n)
{
	return TAILQ_FIRST(&n->sources)->descriptor.name;
}

/* Where the name is, or would have to be. */
static size_t
place_of(const struct source_order *o, const char *name, bool *there)
{
	size_t low = 0, high = o->n, middle;
	int order;

	*there = false;
	while (low < high) {
		middle = low + (high - low) / 2;
		order = strcmp(text_of(o->names[middle]), name);
		*there = *there || order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct source_name *
add_name(struct source_order *o, size_t at)
{
	size_t cap = o->cap == 0 ? 16 : o->cap * 2;
	struct source_name *name, **grown;

	if (o->n == o->cap) {
		grown = reallocarray(o->names, cap, sizeof(*grown));
		if (grown == NULL)
			return NULL;
		o->names = grown;
		o->cap = cap;
	}
	if ((name = malloc(sizeof(*name))) == NULL)
		return NULL;
	TAILQ_INIT(&name->sources);
	memmove(o->names + at + 1, o->names + at,
	    (o->n - at) * sizeof(*o->names));
	o->names[at] = name;
	o->n++;
	return name;
}

void
source_order_done(struct source_order *o)
{
	free(o->names);
	memset(o, 0, sizeof(*o));
}

int
source_order_add(struct source_order *o, struct data_source *ds)
{
	bool there;
	size_t at = place_of(o, ds->descriptor.name, &there);

	ds->of_name = there ? o->names[at] : add_name(o, at);
	if (ds->of_name == NULL)
		return -1;
	TAILQ_INSERT_TAIL(&ds->of_name->sources, ds, by_name);
	return 0;
}

void
source_order_remove(struct source_order *o, struct data_source *ds)
{
	struct source_name *name = ds->of_name;
	bool there;
	size_t at;

	if (TAILQ_NEXT(TAILQ_FIRST(&name->sources), by_name) == NULL) {
		at = place_of(o, ds->descriptor.name, &there);
		memmove(o->names + at, o->names + at + 1,
		    (--o->n - at) * sizeof(*o->names));
		free(name);
		return;
	}
	TAILQ_REMOVE(&name->sources, ds, by_name);
}

const struct data_source *
source_order_first(const struct source_order *o)
{
	return o->n == 0 ? NULL : TAILQ_FIRST(&o->names[0]->sources);
}

const struct data_source *
source_order_next(const struct source_order *o, const struct data_source *ds)
{
	const struct data_source *next = TAILQ_NEXT(ds, by_name);
	bool there;
	size_t at;

	if (next != NULL)
		return next;
	at = place_of(o, ds->descriptor.name, &there) + 1;
	return at < o->n ? TAILQ_FIRST(&o->names[at]->sources) : NULL;
}
