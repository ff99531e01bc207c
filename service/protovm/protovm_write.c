#include "service/protovm/protovm_run.h"
#include "service/protovm/protovm_tree.h"

/* Steps for a field that is written, and bytes copied in one step. */
#define WRITE_STEPS     8u
#define COPY_STEP_BYTES 64u

static enum protovm_outcome
unlike(struct protovm_run *r)
{
	return protovm_run_fail(r, PROTOVM_ABORTED,
	    "a field of the packet is of another kind than the state's");
}

static enum protovm_outcome
deleted(struct protovm_run *r)
{
	return protovm_run_fail(r, PROTOVM_ABORTED,
	    "the destination was deleted");
}

/* A copy of a field of the packet. */
static enum protovm_outcome
copy(struct protovm_run *r, const struct pb_field *from,
    struct protovm_value *to)
{
	if (!protovm_run_steps(r, WRITE_STEPS + from->len / COPY_STEP_BYTES))
		return PROTOVM_FAILED;
	if (!protovm_value_copy(&r->vm->memory, to, from))
		return protovm_run_no_memory(r);
	r->vm->credit += (uint64_t)from->len * PROTOVM_CREDIT_PER_BYTE;
	return PROTOVM_DONE;
}

/* The node's value becomes a copy of a field of the packet. */
static enum protovm_outcome
replace(struct protovm_run *r, struct protovm_node *n,
    const struct pb_field *from)
{
	enum protovm_outcome o;
	struct protovm_value v;

	if ((o = copy(r, from, &v)) != PROTOVM_DONE)
		return o;
	if (protovm_journal_value(&r->vm->journal, n, &v))
		return PROTOVM_DONE;
	protovm_value_free(&r->vm->memory, &v);
	return protovm_run_no_memory(r);
}

/* A new node at a place in n's tree, with a copy of a field of the packet. */
static enum protovm_outcome
insert(struct protovm_run *r, struct protovm_node *n, uint32_t place,
    const struct pb_field *from, struct protovm_node **out)
{
	struct protovm_memory *m = &r->vm->memory;
	enum protovm_outcome o;
	struct protovm_value v;
	struct protovm_node *child;

	if ((o = copy(r, from, &v)) != PROTOVM_DONE)
		return o;
	if ((child = protovm_node_new(m, from->number)) == NULL) {
		protovm_value_free(m, &v);
		return protovm_run_no_memory(r);
	}
	child->value = v;
	if (!protovm_journal_insert(&r->vm->journal, n, place, child)) {
		protovm_node_free(m, child);
		return protovm_run_no_memory(r);
	}
	*out = child;
	return PROTOVM_DONE;
}

/* ---- Set, insert, del ---- */

enum protovm_outcome
protovm_write_set(struct protovm_run *r)
{
	struct protovm_node *n = r->at.node;
	bool is_bytes = r->at.source.wire == PB_BYTES;

	if (n == NULL)
		return deleted(r);
	if (n->value.kind == PROTOVM_ARRAY || n->value.kind == PROTOVM_MAP ||
	    (is_bytes && protovm_is_scalar(&n->value)))
		return unlike(r);
	if (!is_bytes && (n == &r->vm->root ||
		(n->value.kind != PROTOVM_EMPTY &&
		!protovm_is_scalar(&n->value))))
		return unlike(r);
	/* A trace has the root as a message. */
	if (n == &r->vm->root &&
	    !pb_well_formed(r->at.source.data, r->at.source.len))
		return unlike(r);
	return replace(r, n, &r->at.source);
}

/*
 * An element that is EMPTY was created by the SELECT that led here: it is the
 * one that is inserted.
 */
enum protovm_outcome
protovm_write_insert(struct protovm_run *r)
{
	struct protovm_node *parent = r->at.parent;

	if (r->at.node == NULL)
		return deleted(r);
	if (parent == NULL || parent->value.kind != PROTOVM_ARRAY ||
	    r->at.node->value.kind == PROTOVM_EMPTY)
		return protovm_write_set(r);
	return insert(r, parent, r->at.place, &r->at.source, &r->at.node);
}

enum protovm_outcome
protovm_write_del(struct protovm_run *r)
{
	struct protovm_value empty = { .kind = PROTOVM_EMPTY };
	struct protovm_journal *j = &r->vm->journal;

	if (r->at.node == NULL)
		return deleted(r);
	if (!protovm_run_steps(r, WRITE_STEPS))
		return PROTOVM_FAILED;
	if (r->at.parent == NULL) {
		if (protovm_journal_value(j, r->at.node, &empty))
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	}
	if (!protovm_journal_remove(j, r->at.parent, r->at.place))
		return protovm_run_no_memory(r);
	r->deleted = r->at.node;
	r->at.node = NULL;
	return PROTOVM_DONE;
}

/* ---- Merge ---- */

/*
 * All elements of an array are replaced by those of the packet: the first that
 * a merge brings clears the array.
 */
static enum protovm_outcome
append(struct protovm_run *r, struct protovm_node *array,
    const struct pb_field *f)
{
	struct protovm_value none = { .kind = PROTOVM_ARRAY };
	struct protovm_node *child;

	if (array->merge != r->vm->merges) {
		if (!protovm_journal_value(&r->vm->journal, array, &none))
			return protovm_run_no_memory(r);
		array->merge = r->vm->merges;
	}
	return insert(r, array, protovm_tree_count(array->value.top), f,
	    &child);
}

static enum protovm_outcome
merge_field(struct protovm_run *r, const struct protovm_instruction *ins,
    const struct pb_field *f)
{
	struct protovm_node *n = r->at.node, *old;
	uint32_t place;

	if (!protovm_run_steps(r,
		protovm_run_find_cost(protovm_tree_count(n->value.top))))
		return PROTOVM_FAILED;
	old = protovm_tree_find(n->value.top, f->number, &place);
	if (old == NULL)
		return insert(r, n, place, f, &old);
	if (ins->skip_submessages && old->value.kind == PROTOVM_MESSAGE)
		return PROTOVM_DONE;
	if (ins->del_if_src_empty && f->wire == PB_BYTES && f->len == 0) {
		if (protovm_journal_remove(&r->vm->journal, n, place))
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	}
	if (old->value.kind == PROTOVM_MAP)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a field is merged that is a map in the state");
	if (old->value.kind == PROTOVM_ARRAY)
		return append(r, old, f);
	return replace(r, old, f);
}

enum protovm_outcome
protovm_write_merge(struct protovm_run *r,
    const struct protovm_instruction *ins)
{
	struct protovm_node *n = r->at.node;
	enum protovm_outcome o;
	struct pb_reader in;
	struct pb_field f;

	if (n == NULL)
		return deleted(r);
	if (r->at.source.wire != PB_BYTES || protovm_is_scalar(&n->value) ||
	    n->value.kind == PROTOVM_ARRAY || n->value.kind == PROTOVM_MAP)
		return unlike(r);
	if (r->at.source.len == 0)
		return PROTOVM_DONE;
	if ((o = protovm_state_parse(r, n)) != PROTOVM_DONE)
		return o;
	r->vm->merges++;
	PB_FOREACH (&f, &in, r->at.source.data, r->at.source.len) {
		if ((o = merge_field(r, ins, &f)) != PROTOVM_DONE)
			return o;
	}
	if (in.bad)
		return protovm_run_fail(r, PROTOVM_BAD_PACKET,
		    "the packet is malformed");
	return PROTOVM_DONE;
}
