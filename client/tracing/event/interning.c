#include "client/tracing/event/interning.h"

#include <string.h>

#include "client/tracing/memory/own_memory.h"

void
interning_init(struct interning *in)
{
	memset(in, 0, sizeof(*in));
	in->entries = in->own;
	in->mask = INTERNING_OWN - 1;
}

static size_t
bytes(uint32_t mask)
{
	return ((size_t)mask + 1) * sizeof(struct interned);
}

void
interning_done(struct interning *in)
{
	if (in->entries != in->own)
		own_free(in->entries, bytes(in->mask));
}

void
interning_clear(struct interning *in)
{
	interning_done(in);
	interning_init(in);
}

static void
place(struct interned *entries, uint32_t mask, const struct interned *e)
{
	uint32_t at = interning_hash(e->key, e->kind) & mask;

	while (entries[at].kind != 0)
		at = (at + 1) & mask;
	entries[at] = *e;
}

static bool
grow(struct interning *in)
{
	uint32_t i, mask = in->mask * 2 + 1;
	struct interned *entries;

	if (in->n >= INTERNING_HARD_MAX || !own_try_enter())
		return false;
	entries = own_alloc(bytes(mask));
	own_leave();
	if (entries == NULL)
		return false;
	for (i = 0; i <= in->mask; i++)
		if (in->entries[i].kind != 0)
			place(entries, mask, &in->entries[i]);
	interning_done(in);
	in->entries = entries;
	in->mask = mask;
	return true;
}

uint32_t
interning_add(struct interning *in, uint64_t key, enum interned_kind kind)
{
	struct interned e = { key, 0, (uint32_t)kind };

	/* At most three quarters are taken. */
	if (in->n + 1 > (in->mask + 1) / 4 * 3 && !grow(in))
		return 0;
	e.iid = ++in->last[kind];
	place(in->entries, in->mask, &e);
	in->n++;
	return e.iid;
}
