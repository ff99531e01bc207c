#include "service/protovm/protovm_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"

/* The shortest instruction, a SET, has 4 bytes, and so has a component. */
#define WIRE_BYTES_MIN 4u
#define FIELD_NUMBER_MAX ((1u << 29) - 1)
#define VERSION_MAX 1u

/* VmCursorEnum; 0, unspecified, is as BOTH. */
enum { CURSOR_SRC = 1, CURSOR_DST = 2, CURSOR_BOTH = 3 };

struct parser {
	struct protovm_program *p;
	char *err;
	size_t err_size;
	/* The place of the instruction at hand, one number for each level. */
	uint32_t place[PROTOVM_DEPTH_MAX + 1];
	unsigned levels;
};

/* A branch as deep as it is so far. */
struct depth {
	unsigned all;
	unsigned in_state;
};

static int
refuse(struct parser *ps, const char *why)
{
	char place[32] = "";
	size_t used = 0;
	unsigned i;

	for (i = 0; i < ps->levels && used < sizeof(place); i++)
		used += (size_t)snprintf(place + used, sizeof(place) - used,
		    "%s%u", i > 0 ? "." : "", (unsigned)ps->place[i]);
	return FAILURE(ps->err, ps->err_size, "instruction %s%s: %s", place,
	    used < sizeof(place) ? "" : "...", why);
}

static bool
is_register(uint64_t v)
{
	return v < PROTOVM_REGISTERS;
}

/* ---- Paths ---- */

/* A PathComponent as on the wire. */
struct raw_component {
	uint32_t which; /* field number of the oneof; 0: none */
	uint64_t value;
	uint64_t match;
	uint64_t store;
	bool is_repeated;
	bool matches;
	bool stores;
};

static int
read_component(struct parser *ps, const struct pb_field *in,
    struct raw_component *c)
{
	struct pb_reader r;
	struct pb_field f;

	*c = (struct raw_component){ 0 };
	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.wire != PB_VARINT)
			continue;
		switch (f.number) {
		case PathComponent_field_id:
		case PathComponent_array_index:
		case PathComponent_array_index_register:
		case PathComponent_map_key_field_id:
			c->which = f.number;
			c->value = f.value;
			break;
		case PathComponent_is_repeated:
			c->is_repeated = f.value != 0;
			break;
		case PathComponent_register_to_match:
			c->match = f.value;
			c->matches = true;
			break;
		case PathComponent_store_foreach_index_into_register:
			c->store = f.value;
			c->stores = true;
			break;
		default:
			break;
		}
	}
	return r.bad ? refuse(ps, "malformed path component") : 0;
}

static int
put_field(struct parser *ps, const struct raw_component *raw, bool both)
{
	struct protovm_program *p = ps->p;
	struct protovm_component *c = &p->components[p->n_components];

	if (raw->value == 0 || raw->value > FIELD_NUMBER_MAX)
		return refuse(ps, "no such field number");
	*c = (struct protovm_component){
		.step = raw->is_repeated ? PROTOVM_EACH : PROTOVM_FIELD,
		.field = (uint32_t)raw->value,
	};
	if (raw->is_repeated && both)
		return refuse(ps, "is_repeated needs the cursor SRC or DST");
	if (raw->is_repeated && raw->stores) {
		if (!is_register(raw->store))
			return refuse(ps, "no such register");
		c->stores = true;
		c->reg = (uint8_t)raw->store;
	}
	p->n_components++;
	return 0;
}

/* An index or a key, for the field that is the last component so far. */
static int
put_element(struct parser *ps, const struct raw_component *raw,
    const struct protovm_instruction *ins)
{
	struct protovm_program *p = ps->p;
	struct protovm_component *c;

	if (p->n_components == ins->path)
		return refuse(ps, "a path begins with a field_id");
	c = &p->components[p->n_components - 1];
	if (raw->which == 0 || c->step != PROTOVM_FIELD)
		return refuse(ps, "a path component has no field_id");
	if (raw->which == PathComponent_array_index) {
		c->step = PROTOVM_INDEX;
		c->arg = (uint32_t)raw->value;
		return 0;
	}
	if (raw->which == PathComponent_array_index_register) {
		if (!is_register(raw->value))
			return refuse(ps, "no such register");
		c->step = PROTOVM_INDEX_REG;
		c->reg = (uint8_t)raw->value;
		return 0;
	}
	if (ins->in_source)
		return refuse(ps, "map_key_field_id needs the cursor DST");
	if (!raw->matches || !is_register(raw->match))
		return refuse(ps, "register_to_match is missing or is none");
	c->step = PROTOVM_KEY;
	c->arg = (uint32_t)raw->value;
	c->reg = (uint8_t)raw->match;
	return 0;
}

static int
read_cursor(struct parser *ps, uint64_t v, struct protovm_instruction *ins)
{
	if (v > CURSOR_BOTH)
		return refuse(ps, "no such cursor");
	ins->in_source = v == CURSOR_SRC;
	return 0;
}

static int
read_select(struct parser *ps, const struct pb_field *in,
    struct protovm_instruction *ins)
{
	struct raw_component raw;
	struct pb_reader r;
	struct pb_field f;
	bool both = false;
	int rc;

	ins->in_source = true;
	ins->path = ps->p->n_components;
	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.number == VmOpSelect_cursor && f.wire == PB_VARINT) {
			if (read_cursor(ps, f.value, ins) != 0)
				return -1;
			both = f.value != CURSOR_SRC &&
			    f.value != CURSOR_DST;
		} else if (f.number == VmOpSelect_create_if_not_exist &&
		    f.wire == PB_VARINT) {
			ins->create = f.value != 0;
		}
	}
	if (r.bad)
		return refuse(ps, "malformed select");
	if (ins->create && ins->in_source)
		return refuse(ps, "create_if_not_exist needs the cursor DST");
	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.number != VmOpSelect_relative_path || f.wire != PB_BYTES)
			continue;
		if (read_component(ps, &f, &raw) != 0)
			return -1;
		if (raw.which == PathComponent_field_id)
			rc = put_field(ps, &raw, both);
		else
			rc = put_element(ps, &raw, ins);
		if (rc != 0)
			return -1;
	}
	ins->n_path = ps->p->n_components - ins->path;
	return 0;
}

/* ---- Instructions ---- */

static int
read_reg_load(struct parser *ps, const struct pb_field *in,
    struct protovm_instruction *ins)
{
	struct pb_reader r;
	struct pb_field f;

	ins->in_source = true;
	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == VmOpRegLoad_cursor &&
		    read_cursor(ps, f.value, ins) != 0)
			return -1;
		if (f.number != VmOpRegLoad_dst_register)
			continue;
		if (!is_register(f.value))
			return refuse(ps, "no such register");
		ins->reg = (uint8_t)f.value;
	}
	return r.bad ? refuse(ps, "malformed reg_load") : 0;
}

static int
read_merge(struct parser *ps, const struct pb_field *in,
    struct protovm_instruction *ins)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.number == VmOpMerge_skip_submessages)
			ins->skip_submessages = f.value != 0;
		else if (f.number == VmOpMerge_del_if_src_empty)
			ins->del_if_src_empty = f.value != 0;
	}
	return r.bad ? refuse(ps, "malformed merge") : 0;
}

static int
read_operation(struct parser *ps, const struct pb_field *op,
    struct protovm_instruction *ins)
{
	switch (op->number) {
	case VmInstruction_select:
		ins->op = PROTOVM_SELECT;
		return read_select(ps, op, ins);
	case VmInstruction_reg_load:
		ins->op = PROTOVM_REG_LOAD;
		return read_reg_load(ps, op, ins);
	case VmInstruction_merge:
		ins->op = PROTOVM_MERGE;
		return read_merge(ps, op, ins);
	case VmInstruction_set:
		ins->op = PROTOVM_SET;
		return 0;
	case VmInstruction_del:
		ins->op = PROTOVM_DEL;
		return 0;
	case VmInstruction_insert:
		ins->op = PROTOVM_INSERT;
		return 0;
	default:
		return refuse(ps, "no operation that is known");
	}
}

static bool
is_operation(uint32_t number)
{
	return number != VmInstruction_abort_level &&
	    number != VmInstruction_nested_instructions;
}

/* All but the nested instructions. */
static int
read_instruction(struct parser *ps, const struct pb_field *in,
    struct protovm_instruction *ins)
{
	struct pb_field f, op = { 0 };
	struct pb_reader r;

	*ins = (struct protovm_instruction){ .level = PROTOVM_BREAK_OUTER };
	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.wire == PB_BYTES && is_operation(f.number))
			op = f;
		if (f.number != VmInstruction_abort_level ||
		    f.wire != PB_VARINT)
			continue;
		if (f.value < PROTOVM_SKIP || f.value > PROTOVM_ABORT)
			return refuse(ps, "no such abort_level");
		ins->level = (enum protovm_level)f.value;
	}
	if (r.bad)
		return refuse(ps, "malformed");
	return read_operation(ps, &op, ins);
}

/* Instructions are the fields of a message with this number. */
static int
read_list(struct parser *ps, const struct pb_field *in, uint32_t number,
    struct depth depth)
{
	struct protovm_program *p = ps->p;
	struct protovm_instruction *ins;
	struct depth below;
	struct pb_reader r;
	struct pb_field f;
	uint32_t *place = &ps->place[ps->levels++];
	uint32_t self;

	*place = 0;
	PB_FOREACH (&f, &r, in->data, in->len) {
		if (f.number != number || f.wire != PB_BYTES)
			continue;
		if (p->n_instructions == PROTOVM_INSTRUCTIONS_MAX)
			return refuse(ps, "too many instructions");
		self = p->n_instructions++;
		ins = &p->instructions[self];
		if (read_instruction(ps, &f, ins) != 0)
			return -1;
		below.all = depth.all + 1 + ins->n_path;
		below.in_state = depth.in_state +
		    (ins->in_source ? 0 : ins->n_path);
		if (below.all > PROTOVM_DEPTH_MAX ||
		    below.in_state > PROTOVM_STATE_DEPTH_MAX)
			return refuse(ps, "nested too deep");
		if (read_list(ps, &f, VmInstruction_nested_instructions,
		    below) != 0)
			return -1;
		p->instructions[self].end = p->n_instructions;
		++*place;
	}
	ps->levels--;
	return r.bad ? refuse(ps, "malformed list of instructions") : 0;
}

static int
read_program(struct parser *ps)
{
	struct protovm_program *p = ps->p;
	struct pb_field whole = { .data = p->data, .len = p->len };
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH (&f, &r, p->data, p->len) {
		if (f.number == VmProgram_version && f.wire == PB_VARINT &&
		    f.value > VERSION_MAX)
			return FAILURE(ps->err, ps->err_size,
			    "version %llu; versions up to %u are known",
			    (unsigned long long)f.value, VERSION_MAX);
	}
	if (r.bad)
		return FAILURE(ps->err, ps->err_size, "malformed protobuf");
	return read_list(ps, &whole, VmProgram_instructions,
	    (struct depth){ 0 });
}

struct protovm_program *
protovm_program_new(const uint8_t *data, size_t len, char *err,
    size_t err_size)
{
	struct parser ps = { .err = err, .err_size = err_size };
	struct protovm_program *p = NULL;
	size_t n = len / WIRE_BYTES_MIN + 1;

	if (len > PROTOVM_PROGRAM_BYTES_MAX) {
		snprintf(err, err_size, "%zu bytes; at most %u are allowed",
		    len, PROTOVM_PROGRAM_BYTES_MAX);
		return NULL;
	}
	snprintf(err, err_size, "no memory");
	if ((p = calloc(1, sizeof(*p))) == NULL ||
	    (p->data = malloc(len + 1)) == NULL ||
	    (p->instructions = calloc(n, sizeof(*p->instructions))) == NULL ||
	    (p->components = calloc(n, sizeof(*p->components))) == NULL)
		goto fail;
	if (len > 0)
		memcpy(p->data, data, len);
	p->len = len;
	p->refs = 1;
	ps.p = p;
	if (read_program(&ps) != 0)
		goto fail;
	return p;

fail:
	protovm_program_unref(p);
	return NULL;
}

struct protovm_program *
protovm_program_ref(struct protovm_program *p)
{
	p->refs++;
	return p;
}

void
protovm_program_unref(struct protovm_program *p)
{
	if (p == NULL || (p->refs > 0 && --p->refs > 0))
		return;
	free(p->data);
	free(p->instructions);
	free(p->components);
	free(p);
}

const uint8_t *
protovm_program_bytes(const struct protovm_program *p, size_t *len)
{
	*len = p->len;
	return p->data;
}
