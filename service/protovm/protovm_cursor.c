#include "service/protovm/protovm_run.h"
#include "service/protovm/protovm_tree.h"

/* Steps for a field that is parsed into a node, and bytes copied in one step. */
#define PARSE_FIELD_STEPS 8u
#define COPY_STEP_BYTES   64u

/* ---- The source ---- */

static enum protovm_outcome
malformed_packet(struct protovm_run *r)
{
	return protovm_run_fail(r, PROTOVM_BAD_PACKET,
	    "the packet is malformed");
}

enum protovm_outcome
protovm_source_enter(struct protovm_run *r, const struct protovm_component *c)
{
	uint64_t left = c->step == PROTOVM_INDEX ? c->arg :
	    c->step == PROTOVM_INDEX_REG	 ? r->registers[c->reg] : 0;
	struct pb_reader in;
	struct pb_field f;

	if (r->at.source.wire != PB_BYTES)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a number of the packet is entered as a message");
	PB_FOREACH (&f, &in, r->at.source.data, r->at.source.len) {
		if (!protovm_run_steps(r, 1))
			return PROTOVM_FAILED;
		if (f.number == c->field && left-- == 0) {
			r->at.source = f;
			return PROTOVM_DONE;
		}
	}
	return in.bad ? malformed_packet(r) : PROTOVM_MISSING;
}

/* ---- Parsing what was stored ---- */

/* Another occurrence of a field: what is there becomes an array's first. */
static bool
make_array(struct protovm_memory *m, struct protovm_node *n)
{
	struct protovm_node *first;

	if (n->value.kind == PROTOVM_ARRAY)
		return true;
	if ((first = protovm_node_new(m, 0)) == NULL)
		return false;
	first->value = n->value;
	n->value = (struct protovm_value){ .kind = PROTOVM_ARRAY };
	protovm_tree_insert(&n->value.top, 0, first);
	return true;
}

static bool
add_field(struct protovm_memory *m, struct protovm_value *message,
    const struct pb_field *f)
{
	struct protovm_node *n, *old;
	uint32_t place;

	if ((n = protovm_node_new(m, f->number)) == NULL)
		return false;
	if (!protovm_value_copy(m, &n->value, f))
		goto fail;
	old = protovm_tree_find(message->top, f->number, &place);
	if (old == NULL) {
		protovm_tree_insert(&message->top, place, n);
		return true;
	}
	if (!make_array(m, old))
		goto fail;
	protovm_tree_insert(&old->value.top,
	    protovm_tree_count(old->value.top), n);
	return true;

fail:
	protovm_node_free(m, n);
	return false;
}

static enum protovm_outcome
parse_bytes(struct protovm_run *r, const struct protovm_value *bytes,
    struct protovm_value *message)
{
	struct protovm_memory *m = &r->vm->memory;
	struct pb_reader in;
	struct pb_field f;

	*message = (struct protovm_value){ .kind = PROTOVM_MESSAGE };
	PB_FOREACH (&f, &in, bytes->data, bytes->len) {
		if (!protovm_run_parse_steps(r, PARSE_FIELD_STEPS +
			f.len / COPY_STEP_BYTES))
			return PROTOVM_FAILED;
		if (!add_field(m, message, &f))
			return protovm_run_no_memory(r);
	}
	if (in.bad)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "bytes of the state are entered, but are no message");
	return PROTOVM_DONE;
}

enum protovm_outcome
protovm_state_parse(struct protovm_run *r, struct protovm_node *n)
{
	struct protovm_value v = { .kind = PROTOVM_MESSAGE };
	enum protovm_outcome o = PROTOVM_DONE;

	if (n->value.kind == PROTOVM_MESSAGE)
		return PROTOVM_DONE;
	if (n->value.kind == PROTOVM_BYTES)
		o = parse_bytes(r, &n->value, &v);
	else if (n->value.kind != PROTOVM_EMPTY)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a number of the state is entered as a message");
	if (o == PROTOVM_DONE && !protovm_journal_value(&r->vm->journal, n, &v))
		o = protovm_run_no_memory(r);
	if (o != PROTOVM_DONE)
		protovm_value_free(&r->vm->memory, &v);
	return o;
}

/* ---- Keys ---- */

static enum protovm_outcome
no_key(struct protovm_run *r)
{
	return protovm_run_fail(r, PROTOVM_ABORTED,
	    "an element of the state has no number as its key");
}

static enum protovm_outcome
key_in_bytes(struct protovm_run *r, const struct protovm_value *v,
    uint32_t field, uint64_t *key)
{
	struct pb_reader in;
	struct pb_field f;

	PB_FOREACH (&f, &in, v->data, v->len) {
		if (!protovm_run_parse_steps(r, 1))
			return PROTOVM_FAILED;
		if (f.number != field)
			continue;
		if (f.wire == PB_BYTES)
			break;
		*key = f.value;
		return PROTOVM_DONE;
	}
	return no_key(r);
}

static enum protovm_outcome
key_of(struct protovm_run *r, const struct protovm_node *n, uint32_t field,
    uint64_t *key)
{
	const struct protovm_node *k;
	uint32_t place;

	if (n->value.kind == PROTOVM_BYTES)
		return key_in_bytes(r, &n->value, field, key);
	if (n->value.kind != PROTOVM_MESSAGE)
		return no_key(r);
	if (!protovm_run_parse_steps(r, 1))
		return PROTOVM_FAILED;
	k = protovm_tree_find(n->value.top, field, &place);
	if (k == NULL || !protovm_is_scalar(&k->value))
		return no_key(r);
	*key = k->value.number;
	return PROTOVM_DONE;
}

/* Into the nodes' `key`, which means nothing in an array. */
static enum protovm_outcome
read_keys(struct protovm_run *r, struct protovm_node *top, uint32_t field)
{
	enum protovm_outcome o;

	if (top == NULL)
		return PROTOVM_DONE;
	if ((o = key_of(r, top, field, &top->key)) != PROTOVM_DONE ||
	    (o = read_keys(r, top->left, field)) != PROTOVM_DONE)
		return o;
	return read_keys(r, top->right, field);
}

/* ---- The state ---- */

/* A child in the tree of a value, and where it is or would be. */
struct found {
	struct protovm_node *node; /* NULL: none */
	uint32_t place;
};

static enum protovm_outcome
find_field(struct protovm_run *r, uint32_t field, struct found *out)
{
	struct protovm_node *n = r->at.node;
	enum protovm_outcome o;

	if (n == NULL)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "the destination was deleted");
	if ((o = protovm_state_parse(r, n)) != PROTOVM_DONE)
		return o;
	if (!protovm_run_steps(r,
		protovm_run_find_cost(protovm_tree_count(n->value.top))))
		return PROTOVM_FAILED;
	out->node = protovm_tree_find(n->value.top, field, &out->place);
	return PROTOVM_DONE;
}

/* A new EMPTY node at a place in n's tree. */
static enum protovm_outcome
create(struct protovm_run *r, struct protovm_node *n, uint64_t key,
    struct found *at)
{
	struct protovm *vm = r->vm;

	if (!protovm_run_steps(r, PARSE_FIELD_STEPS))
		return PROTOVM_FAILED;
	at->node = protovm_node_new(&vm->memory, key);
	if (at->node == NULL)
		return protovm_run_no_memory(r);
	if (!protovm_journal_insert(&vm->journal, n, at->place, at->node)) {
		protovm_node_free(&vm->memory, at->node);
		return protovm_run_no_memory(r);
	}
	return PROTOVM_DONE;
}

static void
go_to(struct protovm_run *r, struct protovm_node *parent,
    const struct found *at)
{
	r->at.parent = parent;
	r->at.node = at->node;
	r->at.place = at->place;
}

/* Makes an ARRAY of at->node, a field of the cursor's message. */
static enum protovm_outcome
to_array(struct protovm_run *r, struct found *at)
{
	struct protovm_value v = { .kind = PROTOVM_ARRAY };
	struct protovm_journal *j = &r->vm->journal;

	switch ((enum protovm_kind)at->node->value.kind) {
	case PROTOVM_ARRAY:
		return PROTOVM_DONE;
	case PROTOVM_MAP:
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a map of the state is entered as an array");
	case PROTOVM_EMPTY:
		if (protovm_journal_value(j, at->node, &v))
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	default:
		at->node = protovm_journal_wrap(j, r->at.node, at->place,
		    PROTOVM_ARRAY, 0);
		if (at->node != NULL)
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	}
}

static enum protovm_outcome
to_map(struct protovm_run *r, struct found *at, uint32_t key_field)
{
	struct protovm_value v = { .kind = PROTOVM_MAP };
	struct protovm_journal *j = &r->vm->journal;
	enum protovm_outcome o;
	uint64_t key;

	switch ((enum protovm_kind)at->node->value.kind) {
	case PROTOVM_MAP:
		return PROTOVM_DONE;
	case PROTOVM_EMPTY:
		if (protovm_journal_value(j, at->node, &v))
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	case PROTOVM_ARRAY:
		o = read_keys(r, at->node->value.top, key_field);
		if (o != PROTOVM_DONE)
			return o;
		if (protovm_journal_map(j, at->node))
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	default:
		o = key_of(r, at->node, key_field, &key);
		if (o != PROTOVM_DONE)
			return o;
		at->node = protovm_journal_wrap(j, r->at.node, at->place,
		    PROTOVM_MAP, key);
		if (at->node != NULL)
			return PROTOVM_DONE;
		return protovm_run_no_memory(r);
	}
}

static enum protovm_outcome
enter_field(struct protovm_run *r, const struct found *at)
{
	if (at->node->value.kind == PROTOVM_ARRAY ||
	    at->node->value.kind == PROTOVM_MAP)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a repeated field of the state is entered as one field");
	go_to(r, r->at.node, at);
	return PROTOVM_DONE;
}

static enum protovm_outcome
enter_index(struct protovm_run *r, struct found *at, uint64_t index)
{
	struct protovm_node *array;
	enum protovm_outcome o;
	struct found element;
	uint32_t count;

	if ((o = to_array(r, at)) != PROTOVM_DONE)
		return o;
	array = at->node;
	count = protovm_tree_count(array->value.top);
	if (index > count)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "an index is beyond the end of an array of the state");
	if (!protovm_run_steps(r, protovm_run_find_cost(count)))
		return PROTOVM_FAILED;
	element.place = (uint32_t)index;
	if (index < count)
		element.node = protovm_tree_at(array->value.top,
		    element.place);
	else if ((o = create(r, array, 0, &element)) != PROTOVM_DONE)
		return o;
	go_to(r, array, &element);
	return PROTOVM_DONE;
}

static enum protovm_outcome
enter_key(struct protovm_run *r, struct found *at,
    const struct protovm_component *c)
{
	uint64_t key = r->registers[c->reg];
	struct protovm_node *map;
	enum protovm_outcome o;
	struct found element;

	if ((o = to_map(r, at, c->arg)) != PROTOVM_DONE)
		return o;
	map = at->node;
	if (!protovm_run_steps(r,
		protovm_run_find_cost(protovm_tree_count(map->value.top))))
		return PROTOVM_FAILED;
	element.node = protovm_tree_find(map->value.top, key, &element.place);
	if (element.node == NULL &&
	    (o = create(r, map, key, &element)) != PROTOVM_DONE)
		return o;
	go_to(r, map, &element);
	return PROTOVM_DONE;
}

/*
 * An element is created where its field is there, whatever `may_create` says:
 * Perfetto's machine asks it of the field alone, and not at all of arrays.
 */
enum protovm_outcome
protovm_state_enter(struct protovm_run *r, const struct protovm_component *c,
    bool may_create)
{
	bool is_element = c->step == PROTOVM_INDEX ||
	    c->step == PROTOVM_INDEX_REG;
	enum protovm_outcome o;
	struct found at;

	if ((o = find_field(r, c->field, &at)) != PROTOVM_DONE)
		return o;
	if (at.node == NULL && !may_create && !is_element)
		return PROTOVM_MISSING;
	if (at.node == NULL &&
	    (o = create(r, r->at.node, c->field, &at)) != PROTOVM_DONE)
		return o;
	switch (c->step) {
	case PROTOVM_INDEX:
		return enter_index(r, &at, c->arg);
	case PROTOVM_INDEX_REG:
		return enter_index(r, &at, r->registers[c->reg]);
	case PROTOVM_KEY:
		return enter_key(r, &at, c);
	case PROTOVM_FIELD:
	case PROTOVM_EACH:
		break;
	}
	return enter_field(r, &at);
}

enum protovm_outcome
protovm_state_array(struct protovm_run *r, uint32_t field,
    struct protovm_node **array)
{
	enum protovm_outcome o;
	struct found at;

	if ((o = find_field(r, field, &at)) != PROTOVM_DONE)
		return o;
	if (at.node != NULL && (o = to_array(r, &at)) != PROTOVM_DONE)
		return o;
	*array = at.node;
	return PROTOVM_DONE;
}
