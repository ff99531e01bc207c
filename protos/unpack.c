#include "protos/unpack.h"

#include <stdbool.h>

#include "protos/varint.h"

/* Longest encoding of a tag's 32 bits. */
#define TAG_MAX_BYTES 5

/* Fields of one message of which a repetition is noticed. */
#define SEEN_FIELDS 256
#define WORD_BITS 64

/* A message that the walk is inside of. */
struct level {
	const ProtobufCMessageDescriptor *d;
	const uint8_t *p;
	const uint8_t *end;
	uint64_t seen[SEEN_FIELDS / WORD_BITS];
};

struct walk {
	struct level level[UNPACK_MAX_DEPTH + 1];
	unsigned depth; /* of the innermost level; the outermost is 0 */
	unsigned merges;
};

static bool
read_varint(struct level *l, unsigned max_bytes, uint64_t *out)
{
	const uint8_t *p = pb_varint(l->p, l->end, out);

	if (p == NULL || p - l->p > (ptrdiff_t)max_bytes)
		return false;
	l->p = p;
	return true;
}

static bool
skip(struct level *l, uint64_t n)
{
	if (n > (uint64_t)(l->end - l->p))
		return false;
	l->p += n;
	return true;
}

/* True the first time that a singular field is met in this message. */
static bool
first_time(struct level *l, const ProtobufCFieldDescriptor *f)
{
	size_t i = (size_t)(f - l->d->fields);
	uint64_t bit = UINT64_C(1) << (i % WORD_BITS);

	if (i >= SEEN_FIELDS || (l->seen[i / WORD_BITS] & bit) != 0)
		return false;
	l->seen[i / WORD_BITS] |= bit;
	return true;
}

static bool
enter(struct walk *w, const ProtobufCFieldDescriptor *f, const uint8_t *data,
    size_t len)
{
	if (f->label != PROTOBUF_C_LABEL_REPEATED &&
	    !first_time(&w->level[w->depth], f) &&
	    ++w->merges > UNPACK_MAX_MERGES)
		return false;
	if (++w->depth > UNPACK_MAX_DEPTH)
		return false;
	w->level[w->depth] = (struct level){
		.d = f->descriptor, .p = data, .end = data + len
	};
	return true;
}

/* A length and that many bytes: passed over, or entered if a message. */
static bool
step_bytes(struct walk *w, uint32_t number)
{
	struct level *l = &w->level[w->depth];
	const ProtobufCFieldDescriptor *f;
	const uint8_t *data;
	uint64_t len;

	if (!read_varint(l, PB_VARINT_MAX, &len))
		return false;
	data = l->p;
	if (!skip(l, len))
		return false;
	f = protobuf_c_message_descriptor_get_field(l->d, number);
	if (f == NULL || f->type != PROTOBUF_C_TYPE_MESSAGE)
		return true;
	return enter(w, f, data, (size_t)len);
}

/* Passes one field of the innermost message. */
static bool
step(struct walk *w)
{
	struct level *l = &w->level[w->depth];
	uint64_t tag, ignored;

	/* protobuf-c alone takes field 0, or a number of more than 29 bits. */
	if (!read_varint(l, TAG_MAX_BYTES, &tag) || tag >> 3 == 0 ||
	    tag > UINT32_MAX)
		return false;
	switch (tag & 7) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		return read_varint(l, PB_VARINT_MAX, &ignored);
	case PROTOBUF_C_WIRE_TYPE_64BIT:
		return skip(l, 8);
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		return step_bytes(w, (uint32_t)(tag >> 3));
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		return skip(l, 4);
	default:
		return false;
	}
}

static bool
within_limits(const ProtobufCMessageDescriptor *d, const uint8_t *data,
    size_t len)
{
	struct walk w;

	w.depth = 0;
	w.merges = 0;
	w.level[0] = (struct level){ .d = d, .p = data, .end = data + len };
	for (;;) {
		while (w.level[w.depth].p == w.level[w.depth].end) {
			if (w.depth == 0)
				return true;
			w.depth--;
		}
		if (!step(&w))
			return false;
	}
}

ProtobufCMessage *
unpack_checked(const ProtobufCMessageDescriptor *d,
    ProtobufCAllocator *allocator, size_t len, const uint8_t *data)
{
	/* An empty message may come without an address. */
	if (len > 0 && !within_limits(d, data, len))
		return NULL;
	return protobuf_c_message_unpack(d, allocator, len, data);
}
