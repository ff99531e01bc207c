#include "service/filter/bytecode.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/filter/bytecode_words.h"

#define OPCODE_BITS 3u
#define OPCODE_MASK 7u
/* Field numbers have 29 bits. */
#define FIELD_END (1u << 29)
/* Fields below this are looked up in a table; others by search in ranges. */
#define DIRECT_END 128u
#define OVERLAY_ENTRY_WORDS 3u

enum opcode {
	OP_END_OF_MESSAGE = 0,
	OP_FIELD = 1,
	OP_FIELD_RANGE = 2,
	OP_NESTED = 3,
	OP_STRING = 4,
	OP_TYPED_STRING = 5,
};

struct range {
	uint32_t first;
	uint32_t end; /* the first that is not in it */
	struct field_rule rule;
};

/* A message's part of the arrays direct and ranges. */
struct message {
	uint32_t direct;
	uint32_t n_direct; /* at most DIRECT_END; fields beyond are denied */
	uint32_t ranges;
	uint32_t n_ranges; /* ascending, without overlap, from DIRECT_END on */
};

struct bytecode {
	struct message *messages;
	size_t n_messages;
	size_t messages_cap;
	struct field_rule *direct; /* of all messages */
	size_t n_direct;
	size_t direct_cap;
	struct range *ranges;
	size_t n_ranges;
	size_t ranges_cap;
};

struct overlay_entry {
	uint32_t message;
	uint32_t field;
	struct field_rule rule;
};

/* State of loading one program. */
struct loader {
	struct bytecode *b;
	const char *name;  /* of the source being read */
	size_t word;       /* index of the present word, for sentences */
	uint32_t *words;
	size_t n_words;
	uint32_t next_field; /* the lowest that may come in this message */
	uint32_t highest_message; /* that a field refers to */
	struct overlay_entry *overlay;
	size_t n_overlay;
	size_t overlay_done;
	char *err;
	size_t err_size;
};

static int PRINTF_LIKE(2, 3)
refuse(struct loader *l, const char *fmt, ...)
{
	char why[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(l->err, l->err_size,
	    "Trace filter bytecode invalid: %s, word %zu: %s", l->name,
	    l->word, why);
	return -1;
}

static int
refuse_memory(struct loader *l)
{
	snprintf(l->err, l->err_size, "No memory for the trace filter");
	return -1;
}

/* Room for n more in an array. */
static bool
grow(void **array, size_t n, size_t more, size_t *cap, size_t size)
{
	size_t want = *cap == 0 ? 16 : *cap;
	void *p;

	while (want < n + more)
		want *= 2;
	if (want == *cap)
		return true;
	if ((p = reallocarray(*array, want, size)) == NULL)
		return false;
	*array = p;
	*cap = want;
	return true;
}

static struct field_rule
make_rule(enum field_action action, uint32_t argument)
{
	struct field_rule r = { .action = action, .argument = argument };

	return r;
}

/* Caps the type: an unknown one must not be cut to one that a rule knows. */
static struct field_rule
string_rule(uint32_t type)
{
	return make_rule(FIELD_STRING, type < BYTECODE_TYPES ? type :
	    BYTECODE_TYPES);
}

/* Extends the table of the last message, which is the one being read. */
static int
add_direct(struct loader *l, uint32_t first, uint32_t end,
    struct field_rule rule)
{
	struct bytecode *b = l->b;
	struct message *m = &b->messages[b->n_messages - 1];
	uint32_t more = end - m->n_direct;

	/* Fields come in ascending order, so `more` is not negative. */
	if (!grow((void **)&b->direct, b->n_direct, more, &b->direct_cap,
	    sizeof(*b->direct)))
		return refuse_memory(l);
	memset(&b->direct[b->n_direct], 0, more * sizeof(*b->direct));
	b->n_direct += more;
	m->n_direct = end;
	for (; first < end; first++)
		b->direct[m->direct + first] = rule;
	return 0;
}

static int
add_range(struct loader *l, uint32_t first, uint32_t end,
    struct field_rule rule)
{
	struct bytecode *b = l->b;
	struct range r = { first, end, rule };

	if (!grow((void **)&b->ranges, b->n_ranges, 1, &b->ranges_cap,
	    sizeof(*b->ranges)))
		return refuse_memory(l);
	b->ranges[b->n_ranges++] = r;
	b->messages[b->n_messages - 1].n_ranges++;
	return 0;
}

static int
add(struct loader *l, uint32_t first, uint32_t end, struct field_rule rule)
{
	uint32_t cut = end < DIRECT_END ? end : DIRECT_END;

	if (first < cut && add_direct(l, first, cut, rule) != 0)
		return -1;
	if (first < cut)
		first = cut;
	return first < end ? add_range(l, first, end, rule) : 0;
}

/*
 * Merges the fields from first up to, not including, end of the bytecode with
 * those of the overlay; both ascend.  With first = end = FIELD_END it adds the
 * rest of the overlay's fields of this message.
 */
static int
add_with_overlay(struct loader *l, uint32_t first, uint32_t end,
    struct field_rule rule)
{
	uint32_t message = (uint32_t)l->b->n_messages - 1;
	const struct overlay_entry *e;

	for (; l->overlay_done < l->n_overlay; l->overlay_done++) {
		e = &l->overlay[l->overlay_done];
		if (e->message != message || e->field >= end)
			break;
		if (first < e->field && add(l, first, e->field, rule) != 0)
			return -1;
		if (add(l, e->field, e->field + 1, e->rule) != 0)
			return -1;
		if (first <= e->field)
			first = e->field + 1;
	}
	return first < end ? add(l, first, end, rule) : 0;
}

static int
begin_message(struct loader *l)
{
	struct bytecode *b = l->b;
	struct message m = {
		.direct = (uint32_t)b->n_direct,
		.ranges = (uint32_t)b->n_ranges,
	};

	if (b->n_messages >= BYTECODE_MESSAGES_MAX)
		return refuse(l, "more than %u messages are not accepted",
		    BYTECODE_MESSAGES_MAX);
	if (!grow((void **)&b->messages, b->n_messages, 1, &b->messages_cap,
	    sizeof(*b->messages)))
		return refuse_memory(l);
	b->messages[b->n_messages++] = m;
	l->next_field = 1;
	return 0;
}

static int
read_fields(struct loader *l, uint32_t first, uint32_t count,
    struct field_rule rule)
{
	if (first < l->next_field)
		return refuse(l, "field %u is not in ascending order", first);
	if (count > FIELD_END - first)
		return refuse(l, "fields from %u on go beyond the last one "
		    "there can be", first);
	l->next_field = first + count;
	return add_with_overlay(l, first, first + count, rule);
}

/* The word after this one, which belongs to it. */
static int
read_argument(struct loader *l, uint32_t *argument)
{
	if (l->word + 1 >= l->n_words)
		return refuse(l, "its argument is missing");
	*argument = l->words[++l->word];
	return 0;
}

/* Loads one field or range of fields: an opcode with its argument. */
static int
read_item(struct loader *l)
{
	uint32_t word = l->words[l->word];
	uint32_t field = word >> OPCODE_BITS, argument = 0;

	if (field == 0)
		return refuse(l, "there is no field 0");
	switch (word & OPCODE_MASK) {
	case OP_FIELD:
		return read_fields(l, field, 1, make_rule(FIELD_SIMPLE, 0));
	case OP_STRING:
		return read_fields(l, field, 1, string_rule(0));
	case OP_FIELD_RANGE:
		if (read_argument(l, &argument) != 0)
			return -1;
		return read_fields(l, field, argument,
		    make_rule(FIELD_SIMPLE, 0));
	case OP_TYPED_STRING:
		if (read_argument(l, &argument) != 0)
			return -1;
		return read_fields(l, field, 1, string_rule(argument));
	case OP_NESTED:
		if (read_argument(l, &argument) != 0)
			return -1;
		/* May be a later message: checked when all are known. */
		if (argument >= BYTECODE_MESSAGES_MAX)
			return refuse(l, "there is no message %u", argument);
		if (argument > l->highest_message)
			l->highest_message = argument;
		return read_fields(l, field, 1,
		    make_rule(FIELD_NESTED, argument));
	default:
		return refuse(l, "opcode %u is not known",
		    word & OPCODE_MASK);
	}
}

static int
read_base(struct loader *l)
{
	bool in_message = false;

	for (l->word = 0; l->word < l->n_words; l->word++) {
		if (!in_message && begin_message(l) != 0)
			return -1;
		in_message = l->words[l->word] != OP_END_OF_MESSAGE;
		if (in_message) {
			if (read_item(l) != 0)
				return -1;
		} else if (add_with_overlay(l, FIELD_END, FIELD_END,
		    make_rule(FIELD_DENY, 0)) != 0) {
			return -1;
		}
	}
	if (in_message)
		return refuse(l, "the last message has no end");
	if (l->b->n_messages == 0)
		return refuse(l, "there is no message");
	if (l->highest_message >= l->b->n_messages)
		return refuse(l, "there is no message %u, although a field "
		    "refers to it", l->highest_message);
	return 0;
}

static int
read_overlay_entry(struct loader *l, const uint32_t *w,
    struct overlay_entry *e)
{
	e->message = w[0];
	e->field = w[1] >> OPCODE_BITS;
	if (e->field == 0)
		return refuse(l, "there is no field 0");
	switch (w[1] & OPCODE_MASK) {
	case OP_FIELD:
		e->rule = make_rule(FIELD_SIMPLE, 0);
		return 0;
	case OP_STRING:
		e->rule = string_rule(0);
		return 0;
	case OP_TYPED_STRING:
		e->rule = string_rule(w[2]);
		return 0;
	default:
		return refuse(l, "opcode %u is not for an overlay",
		    w[1] & OPCODE_MASK);
	}
}

static bool
ascends(const struct overlay_entry *a, const struct overlay_entry *b)
{
	return a->message != b->message ? a->message < b->message :
	    a->field < b->field;
}

static int
read_overlay(struct loader *l)
{
	struct overlay_entry *e;

	l->word = l->n_words;
	if (l->n_words % OVERLAY_ENTRY_WORDS != 0)
		return refuse(l, "the last entry is cut off");
	l->overlay = calloc(l->n_words / OVERLAY_ENTRY_WORDS + 1, sizeof(*e));
	if (l->overlay == NULL)
		return refuse_memory(l);
	for (l->word = 0; l->word < l->n_words;
	    l->word += OVERLAY_ENTRY_WORDS) {
		e = &l->overlay[l->n_overlay];
		if (read_overlay_entry(l, &l->words[l->word], e) != 0)
			return -1;
		if (l->n_overlay > 0 && !ascends(e - 1, e))
			return refuse(l, "field %u of message %u is not in "
			    "ascending order", e->field, e->message);
		l->n_overlay++;
	}
	return 0;
}

/* Reads the words of one source, then what they mean. */
static int
read_source(struct loader *l, const struct bytecode_source *src,
    int (*read)(struct loader *))
{
	int rc;

	l->name = src->name;
	if (bytecode_words_read(src, &l->words, &l->n_words, l->err,
	    l->err_size) != 0)
		return -1;
	rc = read(l);
	free(l->words);
	l->words = NULL;
	return rc;
}

struct bytecode *
bytecode_load(const struct bytecode_source *base,
    const struct bytecode_source *overlay, char *err, size_t err_size)
{
	struct loader l = { .err = err, .err_size = err_size };

	if ((l.b = calloc(1, sizeof(*l.b))) == NULL) {
		(void)refuse_memory(&l);
		goto fail;
	}
	if (overlay != NULL && read_source(&l, overlay, read_overlay) != 0)
		goto fail;
	if (read_source(&l, base, read_base) != 0)
		goto fail;
	if (overlay != NULL && l.overlay_done < l.n_overlay) {
		l.name = overlay->name;
		l.word = l.overlay_done * OVERLAY_ENTRY_WORDS;
		(void)refuse(&l, "there is no message %u",
		    l.overlay[l.overlay_done].message);
		goto fail;
	}
	free(l.overlay);
	return l.b;

fail:
	free(l.overlay);
	bytecode_free(l.b);
	return NULL;
}

void
bytecode_free(struct bytecode *b)
{
	if (b == NULL)
		return;
	free(b->messages);
	free(b->direct);
	free(b->ranges);
	free(b);
}

static struct field_rule
find_range(const struct range *r, size_t n, uint32_t field)
{
	size_t low = 0, high = n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (field >= r[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < n && field >= r[low].first)
		return r[low].rule;
	return make_rule(FIELD_DENY, 0);
}

struct field_rule
bytecode_rule(const struct bytecode *b, uint32_t message, uint32_t field)
{
	const struct message *m = &b->messages[message];

	if (LIKELY(field < m->n_direct))
		return b->direct[m->direct + field];
	if (m->n_ranges == 0 || field < DIRECT_END)
		return make_rule(FIELD_DENY, 0);
	return find_range(&b->ranges[m->ranges], m->n_ranges, field);
}
