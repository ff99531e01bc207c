#include "service/protovm/protovm_journal.h"

#include <stdlib.h>

#include "service/protovm/protovm_tree.h"

/*
 * Room that a machine keeps between packets, and that counts as its own rather
 * than as its state's memory.
 */
#define REST_CHANGES 64u

enum change_kind { VALUE, INSERTED, REMOVED, WRAPPED, MAPPED };

struct protovm_change {
	enum change_kind kind;
	uint32_t place; /* INSERTED, REMOVED, WRAPPED; MAPPED: length of order */
	struct protovm_node *node; /* changed; in the state or in this journal */
	union {
		struct protovm_value value; /* VALUE: the old one, owned */
		struct protovm_node *child; /* REMOVED: owned */
		struct protovm_node **order; /* MAPPED: owned; the old one */
	};
};

static size_t
room_size(uint32_t cap)
{
	return cap <= REST_CHANGES ? 0 :
	    sizeof(struct protovm_change) * (cap - REST_CHANGES);
}

/* Room for a change, so that what follows cannot fail. */
static struct protovm_change *
reserve(struct protovm_journal *j)
{
	uint32_t cap = j->cap == 0 ? REST_CHANGES : j->cap * 2;
	size_t more = room_size(cap) - room_size(j->cap);
	struct protovm_change *p;

	if (j->n < j->cap)
		return &j->changes[j->n];
	if (j->cap > UINT32_MAX / 2 || !protovm_memory_take(j->memory, more))
		return NULL;
	p = realloc(j->changes, sizeof(*p) * cap);
	if (p == NULL) {
		j->memory->used -= more;
		return NULL;
	}
	j->changes = p;
	j->cap = cap;
	return &p[j->n];
}

bool
protovm_journal_value(struct protovm_journal *j, struct protovm_node *n,
    const struct protovm_value *v)
{
	struct protovm_change *c = reserve(j);

	if (c == NULL)
		return false;
	*c = (struct protovm_change){
		.kind = VALUE, .node = n, .value = n->value,
	};
	n->value = *v;
	j->n++;
	return true;
}

bool
protovm_journal_insert(struct protovm_journal *j, struct protovm_node *n,
    uint32_t place, struct protovm_node *child)
{
	struct protovm_change *c = reserve(j);

	if (c == NULL)
		return false;
	*c = (struct protovm_change){
		.kind = INSERTED, .place = place, .node = n,
	};
	protovm_tree_insert(&n->value.top, place, child);
	j->n++;
	return true;
}

bool
protovm_journal_remove(struct protovm_journal *j, struct protovm_node *n,
    uint32_t place)
{
	struct protovm_change *c = reserve(j);

	if (c == NULL)
		return false;
	*c = (struct protovm_change){
		.kind = REMOVED, .place = place, .node = n,
	};
	c->child = protovm_tree_remove(&n->value.top, place);
	j->n++;
	return true;
}

struct protovm_node *
protovm_journal_wrap(struct protovm_journal *j, struct protovm_node *n,
    uint32_t place, enum protovm_kind kind, uint64_t key)
{
	struct protovm_change *c = reserve(j);
	struct protovm_node *outer, *child;

	if (c == NULL || (outer = protovm_node_new(j->memory, 0)) == NULL)
		return NULL;
	*c = (struct protovm_change){
		.kind = WRAPPED, .place = place, .node = n,
	};
	child = protovm_tree_remove(&n->value.top, place);
	outer->key = child->key;
	outer->value.kind = (uint8_t)kind;
	child->key = key;
	protovm_tree_insert(&outer->value.top, 0, child);
	protovm_tree_insert(&n->value.top, place, outer);
	j->n++;
	return outer;
}

static size_t
order_size(uint32_t n)
{
	return sizeof(struct protovm_node *) * n;
}

/* The nodes of a tree in their order, behind those at `to`. */
static struct protovm_node **
list(struct protovm_node *top, struct protovm_node **to)
{
	if (top == NULL)
		return to;
	to = list(top->left, to);
	*to++ = top;
	return list(top->right, to);
}

bool
protovm_journal_map(struct protovm_journal *j, struct protovm_node *n)
{
	uint32_t i, place, count = protovm_tree_count(n->value.top);
	struct protovm_change *c = reserve(j);
	struct protovm_node **order;

	if (c == NULL || !protovm_memory_take(j->memory, order_size(count)))
		return false;
	if ((order = malloc(order_size(count) + 1)) == NULL) {
		j->memory->used -= order_size(count);
		return false;
	}
	list(n->value.top, order);
	*c = (struct protovm_change){
		.kind = MAPPED, .place = count, .node = n, .order = order,
	};
	n->value.top = NULL;
	n->value.kind = PROTOVM_MAP;
	for (i = 0; i < count; i++) {
		order[i]->is_duplicate = protovm_tree_find(n->value.top,
		    order[i]->key, &place) != NULL;
		if (!order[i]->is_duplicate)
			protovm_tree_insert(&n->value.top, place, order[i]);
	}
	j->n++;
	return true;
}

/* ---- The end of a packet ---- */

static size_t
duplicates_size(const struct protovm_change *c)
{
	size_t sum = 0;
	uint32_t i;

	for (i = 0; i < c->place; i++)
		if (c->order[i]->is_duplicate)
			sum += protovm_node_size() +
			    protovm_value_size(&c->order[i]->value);
	return sum + order_size(c->place);
}

size_t
protovm_journal_garbage(const struct protovm_journal *j)
{
	const struct protovm_change *c;
	size_t sum = 0;
	uint32_t i;

	for (i = 0; i < j->n; i++) {
		c = &j->changes[i];
		if (c->kind == VALUE)
			sum += protovm_value_size(&c->value);
		else if (c->kind == REMOVED)
			sum += protovm_node_size() +
			    protovm_value_size(&c->child->value);
		else if (c->kind == MAPPED)
			sum += duplicates_size(c);
	}
	return sum + room_size(j->cap);
}

static void
order_free(struct protovm_journal *j, struct protovm_change *c)
{
	j->memory->used -= order_size(c->place);
	free(c->order);
}

static void
forget(struct protovm_journal *j, struct protovm_change *c)
{
	uint32_t i;

	switch (c->kind) {
	case VALUE:
		protovm_value_free(j->memory, &c->value);
		break;
	case REMOVED:
		protovm_node_free(j->memory, c->child);
		break;
	case MAPPED:
		for (i = 0; i < c->place; i++)
			if (c->order[i]->is_duplicate)
				protovm_node_free(j->memory, c->order[i]);
		order_free(j, c);
		break;
	case INSERTED:
	case WRAPPED:
		break;
	}
}

static void
unmap(struct protovm_journal *j, struct protovm_change *c)
{
	struct protovm_node *n = c->node;
	uint32_t i;

	n->value.kind = PROTOVM_ARRAY;
	n->value.top = NULL;
	for (i = 0; i < c->place; i++) {
		c->order[i]->is_duplicate = false;
		protovm_tree_insert(&n->value.top, i, c->order[i]);
	}
	order_free(j, c);
}

static void
unwrap(struct protovm_journal *j, struct protovm_change *c)
{
	struct protovm_node *outer, *child;

	outer = protovm_tree_remove(&c->node->value.top, c->place);
	child = protovm_tree_remove(&outer->value.top, 0);
	child->key = outer->key;
	protovm_tree_insert(&c->node->value.top, c->place, child);
	protovm_node_free(j->memory, outer);
}

static void
undo(struct protovm_journal *j, struct protovm_change *c)
{
	struct protovm_node *n = c->node;

	switch (c->kind) {
	case VALUE:
		protovm_value_free(j->memory, &n->value);
		n->value = c->value;
		break;
	case INSERTED:
		protovm_node_free(j->memory,
		    protovm_tree_remove(&n->value.top, c->place));
		break;
	case REMOVED:
		protovm_tree_insert(&n->value.top, c->place, c->child);
		break;
	case WRAPPED:
		unwrap(j, c);
		break;
	case MAPPED:
		unmap(j, c);
		break;
	}
}

static void
rest(struct protovm_journal *j)
{
	j->n = 0;
	if (j->cap > REST_CHANGES)
		protovm_journal_done(j);
}

void
protovm_journal_commit(struct protovm_journal *j)
{
	uint32_t i;

	for (i = 0; i < j->n; i++)
		forget(j, &j->changes[i]);
	rest(j);
}

void
protovm_journal_undo(struct protovm_journal *j)
{
	uint32_t i;

	for (i = j->n; i > 0; i--)
		undo(j, &j->changes[i - 1]);
	rest(j);
}

void
protovm_journal_done(struct protovm_journal *j)
{
	j->memory->used -= room_size(j->cap);
	free(j->changes);
	j->changes = NULL;
	j->n = j->cap = 0;
}
