#include "service/protovm/protovm_run.h"

#include "service/protovm/protovm_tree.h"

enum protovm_outcome
protovm_run_fail(struct protovm_run *r, enum protovm_verdict v,
    const char *reason)
{
	r->verdict = v;
	r->reason = reason;
	return PROTOVM_FAILED;
}

enum protovm_outcome
protovm_run_no_memory(struct protovm_run *r)
{
	return protovm_run_fail(r, PROTOVM_NO_MEMORY,
	    "the state would outgrow its memory limit");
}

bool
protovm_run_steps(struct protovm_run *r, uint64_t n)
{
	if (n > r->steps) {
		protovm_run_fail(r, PROTOVM_TOO_MANY_STEPS,
		    "the program takes too many steps for the packet's size");
		return false;
	}
	r->steps -= n;
	return true;
}

bool
protovm_run_parse_steps(struct protovm_run *r, uint64_t n)
{
	if (n > r->vm->credit)
		return protovm_run_steps(r, n);
	r->vm->credit -= n;
	return true;
}

uint64_t
protovm_run_find_cost(uint32_t n)
{
	return n == 0 ? 1 : 33 - (unsigned)__builtin_clz(n);
}

/* ---- Select ---- */

static enum protovm_outcome run_list(struct protovm_run *r, uint32_t begin,
    uint32_t end);

static const struct protovm_instruction *
instruction(const struct protovm_run *r, uint32_t i)
{
	return &r->program->instructions[i];
}

static enum protovm_outcome
run_nested(struct protovm_run *r, uint32_t i)
{
	return run_list(r, i + 1, instruction(r, i)->end);
}

static enum protovm_outcome run_path(struct protovm_run *r, uint32_t i,
    uint32_t component);

static void
define(struct protovm_run *r, unsigned reg, uint64_t v)
{
	r->registers[reg] = v;
	r->defined |= UINT32_C(1) << reg;
}

/* The rest of the path, and the nested instructions, for each occurrence. */
static enum protovm_outcome
each_in_source(struct protovm_run *r, uint32_t i, uint32_t component)
{
	const struct protovm_component *c = &r->program->components[component];
	struct pb_field whole = r->at.source;
	enum protovm_outcome o;
	uint64_t index = 0;
	struct pb_reader in;
	struct pb_field f;

	if (whole.wire != PB_BYTES)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a number of the packet is entered as a message");
	PB_FOREACH (&f, &in, whole.data, whole.len) {
		if (!protovm_run_steps(r, 1))
			return PROTOVM_FAILED;
		if (f.number != c->field)
			continue;
		r->at.source = f;
		if (c->stores)
			define(r, c->reg, index);
		if ((o = run_path(r, i, component + 1)) != PROTOVM_DONE)
			return o;
		index++;
	}
	if (in.bad)
		return protovm_run_fail(r, PROTOVM_BAD_PACKET,
		    "the packet is malformed");
	return PROTOVM_DONE;
}

/*
 * DEL takes the element away and INSERT puts one in front of it, so that the
 * next one is found by how the array has grown.
 */
static enum protovm_outcome
each_in_state(struct protovm_run *r, uint32_t i, uint32_t component)
{
	const struct protovm_component *c = &r->program->components[component];
	struct protovm_node *array;
	enum protovm_outcome o;
	uint32_t at = 0, count;

	if ((o = protovm_state_array(r, c->field, &array)) != PROTOVM_DONE)
		return o;
	while (array != NULL &&
	    at < (count = protovm_tree_count(array->value.top))) {
		if (!protovm_run_steps(r, protovm_run_find_cost(count)))
			return PROTOVM_FAILED;
		r->at.parent = array;
		r->at.node = protovm_tree_at(array->value.top, at);
		r->at.place = at;
		if (c->stores)
			define(r, c->reg, at);
		if ((o = run_path(r, i, component + 1)) != PROTOVM_DONE)
			return o;
		at += 1 + protovm_tree_count(array->value.top) - count;
	}
	return PROTOVM_DONE;
}

static bool
reads_undefined(const struct protovm_run *r, const struct protovm_component *c)
{
	return (c->step == PROTOVM_INDEX_REG || c->step == PROTOVM_KEY) &&
	    (r->defined >> c->reg & 1) == 0;
}

/* From a component of the SELECT to its nested instructions. */
static enum protovm_outcome
run_path(struct protovm_run *r, uint32_t i, uint32_t component)
{
	const struct protovm_instruction *ins = instruction(r, i);
	const struct protovm_component *c;
	enum protovm_outcome o;

	for (; component < ins->path + ins->n_path; component++) {
		c = &r->program->components[component];
		if (c->step == PROTOVM_EACH && ins->in_source)
			return each_in_source(r, i, component);
		if (c->step == PROTOVM_EACH)
			return each_in_state(r, i, component);
		if (reads_undefined(r, c))
			return protovm_run_fail(r, PROTOVM_ABORTED,
			    "a register is read that was not loaded");
		o = ins->in_source ? protovm_source_enter(r, c) :
				     protovm_state_enter(r, c, ins->create);
		if (o != PROTOVM_DONE)
			return o;
	}
	return run_nested(r, i);
}

/*
 * Afterwards the cursors are back where they were, which must still be there: a
 * nested DEL may have deleted it.
 */
static enum protovm_outcome
run_select(struct protovm_run *r, uint32_t i)
{
	struct protovm_cursors before = r->at;
	enum protovm_outcome o = run_path(r, i, instruction(r, i)->path);

	if (o == PROTOVM_FAILED)
		return o;
	if (before.node != NULL && before.node == r->deleted)
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a SELECT ends at a destination that was deleted in it");
	r->at = before;
	return o;
}

/* ---- The other instructions ---- */

static enum protovm_outcome
run_reg_load(struct protovm_run *r, const struct protovm_instruction *ins)
{
	const struct protovm_node *n = r->at.node;

	if (ins->in_source && r->at.source.wire != PB_BYTES)
		define(r, ins->reg, r->at.source.value);
	else if (!ins->in_source && n != NULL && protovm_is_scalar(&n->value))
		define(r, ins->reg, n->value.number);
	else
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a register is loaded with what is no number");
	return PROTOVM_DONE;
}

static enum protovm_outcome
run_one(struct protovm_run *r, uint32_t i)
{
	const struct protovm_instruction *ins = instruction(r, i);
	enum protovm_outcome o = PROTOVM_DONE;

	if (!protovm_run_steps(r, 1 + ins->n_path))
		return PROTOVM_FAILED;
	switch (ins->op) {
	case PROTOVM_SELECT:
		return run_select(r, i);
	case PROTOVM_REG_LOAD:
		o = run_reg_load(r, ins);
		break;
	case PROTOVM_MERGE:
		o = protovm_write_merge(r, ins);
		break;
	case PROTOVM_SET:
		o = protovm_write_set(r);
		break;
	case PROTOVM_DEL:
		o = protovm_write_del(r);
		break;
	case PROTOVM_INSERT:
		o = protovm_write_insert(r);
		break;
	}
	return o == PROTOVM_DONE ? run_nested(r, i) : o;
}

static enum protovm_outcome
run_list(struct protovm_run *r, uint32_t begin, uint32_t end)
{
	enum protovm_outcome o;
	uint32_t i;

	for (i = begin; i < end; i = instruction(r, i)->end) {
		o = run_one(r, i);
		if (o == PROTOVM_FAILED)
			return o;
		if (o == PROTOVM_DONE ||
		    instruction(r, i)->level == PROTOVM_SKIP)
			continue;
		if (instruction(r, i)->level == PROTOVM_BREAK_OUTER)
			return o;
		return protovm_run_fail(r, PROTOVM_ABORTED,
		    "a field is missing, and the program aborts at that");
	}
	return PROTOVM_DONE;
}

static uint64_t
steps_for(const struct protovm *vm, size_t len)
{
	uint64_t base = vm->pool < PROTOVM_STEPS_BASE ? vm->pool :
	    PROTOVM_STEPS_BASE;

	if (len > PROTOVM_STEPS_MAX / PROTOVM_STEPS_PER_BYTE)
		return PROTOVM_STEPS_MAX;
	return base + (uint64_t)len * PROTOVM_STEPS_PER_BYTE;
}

enum protovm_outcome
protovm_run(struct protovm_run *r, const uint8_t *packet, size_t len)
{
	r->given = r->steps = steps_for(r->vm, len);
	r->at = (struct protovm_cursors){
		.source = { .wire = PB_BYTES, .data = packet, .len = len },
		.node = &r->vm->root,
	};
	if (!pb_well_formed(packet, len))
		return protovm_run_fail(r, PROTOVM_BAD_PACKET,
		    "the packet is malformed");
	return run_list(r, 0, r->program->n_instructions);
}
