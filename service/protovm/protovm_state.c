#include "service/protovm/protovm_state.h"

#include <stdlib.h>
#include <string.h>

#include "service/protovm/protovm_tree.h"
#include "transport/wire/pb_writer.h"

/* Overhead of an allocation. */
#define MALLOC_BYTES 16u

bool
protovm_memory_take(struct protovm_memory *m, size_t n)
{
	size_t most = m->limit > SIZE_MAX / 2 ? SIZE_MAX : m->limit * 2;

	if (n > most || m->used > most - n)
		return false;
	m->used += n;
	return true;
}

static size_t
bytes_size(size_t len)
{
	return len == 0 ? 0 : len + MALLOC_BYTES;
}

size_t
protovm_node_size(void)
{
	return sizeof(struct protovm_node) + MALLOC_BYTES;
}

static bool
is_tree(const struct protovm_value *v)
{
	return v->kind >= PROTOVM_MESSAGE;
}

bool
protovm_is_scalar(const struct protovm_value *v)
{
	return v->kind == PROTOVM_VARINT || v->kind == PROTOVM_FIXED32 ||
	    v->kind == PROTOVM_FIXED64;
}

static size_t
tree_size(const struct protovm_node *top)
{
	return top == NULL ? 0 : protovm_node_size() +
	    protovm_value_size(&top->value) + tree_size(top->left) +
	    tree_size(top->right);
}

size_t
protovm_value_size(const struct protovm_value *v)
{
	if (v->kind == PROTOVM_BYTES)
		return bytes_size(v->len);
	return is_tree(v) ? tree_size(v->top) : 0;
}

struct protovm_node *
protovm_node_new(struct protovm_memory *m, uint64_t key)
{
	struct protovm_node *n;

	if (!protovm_memory_take(m, protovm_node_size()))
		return NULL;
	if ((n = calloc(1, sizeof(*n))) == NULL) {
		m->used -= protovm_node_size();
		return NULL;
	}
	n->key = key;
	return n;
}

static void
tree_free(struct protovm_memory *m, struct protovm_node *top)
{
	if (top == NULL)
		return;
	tree_free(m, top->left);
	tree_free(m, top->right);
	protovm_node_free(m, top);
}

void
protovm_node_free(struct protovm_memory *m, struct protovm_node *n)
{
	if (n == NULL)
		return;
	protovm_value_free(m, &n->value);
	m->used -= protovm_node_size();
	free(n);
}

void
protovm_value_free(struct protovm_memory *m, struct protovm_value *v)
{
	if (v->kind == PROTOVM_BYTES) {
		m->used -= bytes_size(v->len);
		free(v->data);
	} else if (is_tree(v)) {
		tree_free(m, v->top);
	}
	*v = (struct protovm_value){ .kind = PROTOVM_EMPTY };
}

static bool
copy_bytes(struct protovm_memory *m, struct protovm_value *to,
    const struct pb_field *from)
{
	size_t len = from->len;
	uint8_t *data = NULL;

	if (len > UINT32_MAX || !protovm_memory_take(m, bytes_size(len)))
		return false;
	if (len > 0 && (data = malloc(len)) == NULL) {
		m->used -= bytes_size(len);
		return false;
	}
	if (len > 0)
		memcpy(data, from->data, len);
	*to = (struct protovm_value){
		.data = data, .len = (uint32_t)len, .kind = PROTOVM_BYTES,
	};
	return true;
}

bool
protovm_value_copy(struct protovm_memory *m, struct protovm_value *to,
    const struct pb_field *from)
{
	if (from->wire == PB_BYTES)
		return copy_bytes(m, to, from);
	*to = (struct protovm_value){
		.number = from->value,
		.kind = from->wire == PB_FIXED32 ? PROTOVM_FIXED32 :
		    from->wire == PB_FIXED64	 ? PROTOVM_FIXED64 :
						   PROTOVM_VARINT,
	};
	return true;
}

/* ---- Writing ---- */

static void
put_elements(const struct protovm_node *top, uint32_t number,
    struct pb_writer *out)
{
	if (top == NULL)
		return;
	put_elements(top->left, number, out);
	protovm_value_put(&top->value, number, out);
	put_elements(top->right, number, out);
}

static void
put_message(const struct protovm_node *top, struct pb_writer *out)
{
	if (top == NULL)
		return;
	put_message(top->left, out);
	protovm_value_put(&top->value, (uint32_t)top->key, out);
	put_message(top->right, out);
}

/* As on a little-endian machine, which is all that pb_writer knows. */
static void
put_fixed(uint32_t number, enum pb_wire wire, uint64_t v,
    struct pb_writer *out)
{
	pb_put_varint(out, (uint64_t)number << 3 | wire);
	pb_put_raw(out, &v, wire == PB_FIXED32 ? 4 : 8);
}

void
protovm_value_put(const struct protovm_value *v, uint32_t number,
    struct pb_writer *out)
{
	size_t mark;

	switch ((enum protovm_kind)v->kind) {
	case PROTOVM_EMPTY:
		break;
	case PROTOVM_VARINT:
		pb_put_uint(out, number, v->number);
		break;
	case PROTOVM_FIXED32:
		put_fixed(number, PB_FIXED32, v->number, out);
		break;
	case PROTOVM_FIXED64:
		put_fixed(number, PB_FIXED64, v->number, out);
		break;
	case PROTOVM_BYTES:
		pb_put_bytes(out, number, v->data, v->len);
		break;
	case PROTOVM_MESSAGE:
		mark = pb_nest_begin(out, number);
		put_message(v->top, out);
		pb_nest_end(out, mark);
		break;
	case PROTOVM_ARRAY:
	case PROTOVM_MAP:
		put_elements(v->top, number, out);
		break;
	}
}

void
protovm_fields_put(const struct protovm_value *v, struct pb_writer *out)
{
	if (v->kind == PROTOVM_BYTES && v->len > 0)
		pb_put_raw(out, v->data, v->len);
	else if (v->kind == PROTOVM_MESSAGE)
		put_message(v->top, out);
}
