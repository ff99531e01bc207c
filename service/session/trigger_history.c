#include "service/session/trigger_history.h"

#include <stdlib.h>
#include <string.h>

/* The hits of one name: a ring in the order of their times. */
struct past {
	char *name;    /* NULL: free */
	uint64_t *ts;
	size_t cap;    /* of ts */
	size_t first;  /* the oldest */
	size_t n;
	uint64_t last; /* the newest, also after it was forgotten */
};

struct trigger_history {
	struct past names[TRIGGER_HISTORY_NAMES_MAX];
};

struct trigger_history *
trigger_history_new(void)
{
	return calloc(1, sizeof(struct trigger_history));
}

static void
forget(struct past *p)
{
	free(p->name);
	free(p->ts);
	memset(p, 0, sizeof(*p));
}

void
trigger_history_free(struct trigger_history *h)
{
	size_t i;

	if (h == NULL)
		return;
	for (i = 0; i < TRIGGER_HISTORY_NAMES_MAX; i++)
		forget(&h->names[i]);
	free(h);
}

static struct past *
find(struct trigger_history *h, const char *name)
{
	size_t i;

	for (i = 0; i < TRIGGER_HISTORY_NAMES_MAX; i++)
		if (h->names[i].name != NULL &&
		    strcmp(h->names[i].name, name) == 0)
			return &h->names[i];
	return NULL;
}

/* A place for a new name: a free one, or that of the name hit longest ago. */
static struct past *
make(struct trigger_history *h, const char *name)
{
	struct past *p = &h->names[0];
	size_t i;

	for (i = 0; i < TRIGGER_HISTORY_NAMES_MAX && p->name != NULL; i++)
		if (h->names[i].name == NULL || h->names[i].last < p->last)
			p = &h->names[i];
	forget(p);
	p->name = strdup(name);
	return p->name != NULL ? p : NULL;
}

static void
expire(struct past *p, uint64_t now)
{
	while (p->n > 0 && p->ts[p->first] + TRIGGER_HISTORY_DAY_NS < now) {
		p->first = (p->first + 1) % p->cap;
		p->n--;
	}
}

/* Room for one more: by growing, or where there is enough, by forgetting. */
static int
make_room(struct past *p)
{
	size_t cap = p->cap == 0 ? 16 : p->cap * 2, i, from;
	uint64_t *grown;

	if (p->n < p->cap)
		return 0;
	if (p->cap >= TRIGGER_HISTORY_HITS_MAX) {
		p->first = (p->first + 1) % p->cap;
		p->n--;
		return 0;
	}
	if ((grown = calloc(cap, sizeof(*grown))) == NULL)
		return -1;
	for (i = 0, from = p->first; i < p->n; i++) {
		grown[i] = p->ts[from];
		if (++from == p->cap)
			from = 0;
	}
	free(p->ts);
	p->ts = grown;
	p->cap = cap;
	p->first = 0;
	return 0;
}

void
trigger_history_add(struct trigger_history *h, const char *name, uint64_t now)
{
	struct past *p = find(h, name);

	if (p == NULL && (p = make(h, name)) == NULL)
		return;
	expire(p, now);
	p->last = now;
	if (make_room(p) != 0)
		return;
	p->ts[(p->first + p->n) % p->cap] = now;
	p->n++;
}

size_t
trigger_history_count(struct trigger_history *h, const char *name,
    uint64_t now)
{
	struct past *p = find(h, name);

	if (p == NULL)
		return 0;
	expire(p, now);
	return p->n;
}
