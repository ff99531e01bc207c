#include "client/inspect/packet_filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/packet_facts.h"
#include "protos/nearest.h"
#include "protos/trace_packet.pb-c.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/base/machine_word.h"

#define WORD_BYTES 64

/* A number and nothing else; base 0 takes 0x, too.  -1: it is not. */
static int
number(const char *text, int base, uint32_t *out)
{
	unsigned long long v;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	v = strtoull(text, &end, base);
	if (errno != 0 || *end != '\0' || v > UINT32_MAX)
		return -1;
	*out = (uint32_t)v;
	return 0;
}

static int
no_such_type(const char *text, char *err, size_t err_size)
{
	const ProtobufCMessageDescriptor *d =
	    &perfetto__protos__trace_packet__descriptor;
	char word[WORD_BYTES];
	struct nearest near;
	const char *meant;
	unsigned i;

	nearest_init(&near, text, strlen(text));
	for (i = 0; i < d->n_fields; i++)
		nearest_offer(&near, d->fields[i].name);
	meant = nearest_best(&near);
	return FAILURE(err, err_size, "packets have no \"%s\"%s%s%s",
	    log_escape(word, sizeof(word), text, strlen(text)),
	    meant == NULL ? "" : "; did you mean ",
	    meant == NULL ? "" : meant, meant == NULL ? "" : "?");
}

int
packet_filter_type(struct packet_filter *f, const char *text, char *err,
    size_t err_size)
{
	const ProtobufCFieldDescriptor *field;
	uint32_t type;

	if (f->n_types == PACKET_FILTER_MAX_TYPES)
		return FAILURE(err, err_size, "at most %u types",
		    PACKET_FILTER_MAX_TYPES);
	if (number(text, 10, &type) != 0) {
		field = protobuf_c_message_descriptor_get_field_by_name(
		    &perfetto__protos__trace_packet__descriptor, text);
		if (field == NULL)
			return no_such_type(text, err, err_size);
		type = field->id;
	}
	f->types[f->n_types++] = type;
	return 0;
}

int
packet_filter_sequence(struct packet_filter *f, const char *text, char *err,
    size_t err_size)
{
	char word[WORD_BYTES];

	if (number(text, 10, &f->sequence) != 0)
		return FAILURE(err, err_size, "a sequence is a number, not "
		    "\"%s\"",
		    log_escape(word, sizeof(word), text, strlen(text)));
	f->has_sequence = true;
	return 0;
}

/* "12.5" to nanoseconds. */
static int
seconds(const char *text, int64_t *out, char *err, size_t err_size)
{
	bool negative = text[0] == '-', point = false;
	const char *p = text + (negative || text[0] == '+');
	uint64_t ns = 0, unit = 1000000000;
	char word[WORD_BYTES];
	size_t digits = 0;

	for (; *p != '\0'; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (*p < '0' || *p > '9' || ns > INT64_MAX / 20)
			goto bad;
		digits++;
		if (!point)
			ns = ns * 10 + (uint64_t)(*p - '0') * 1000000000;
		else if ((unit /= 10) > 0)
			ns += (uint64_t)(*p - '0') * unit;
	}
	if (digits == 0 || ns > INT64_MAX)
		goto bad;
	*out = negative ? -(int64_t)ns : (int64_t)ns;
	return 0;

bad:
	return FAILURE(err, err_size, "\"%s\" are no seconds into the trace, "
	    "as 1.5 are", log_escape(word, sizeof(word), text, strlen(text)));
}

int
packet_filter_from(struct packet_filter *f, const char *text, char *err,
    size_t err_size)
{
	f->has_from = true;
	return seconds(text, &f->from_ns, err, err_size);
}

int
packet_filter_to(struct packet_filter *f, const char *text, char *err,
    size_t err_size)
{
	f->has_to = true;
	return seconds(text, &f->to_ns, err, err_size);
}

bool
packet_filter_is_set(const struct packet_filter *f)
{
	return f->n_types > 0 || f->has_sequence || f->machine != NULL ||
	    f->has_from || f->has_to;
}

bool
packet_filter_is_machine(const char *machine, uint32_t id, const char *name)
{
	uint32_t wanted;

	if (number(machine, 0, &wanted) == 0 && wanted == id)
		return true;
	return machine_word_means(machine, id, name);
}

static bool
is_type(const struct packet_filter *f, uint32_t type)
{
	size_t i;

	for (i = 0; i < f->n_types; i++)
		if (f->types[i] == type)
			return true;
	return f->n_types == 0;
}

bool
packet_filter_match(const struct packet_filter *f, const struct packet_facts *p,
    const char *name, int64_t at_ns)
{
	return is_type(f, p->type) &&
	    (!f->has_sequence || f->sequence == p->sequence_id) &&
	    (f->machine == NULL ||
	    packet_filter_is_machine(f->machine, p->machine_id, name)) &&
	    (!f->has_from || at_ns >= f->from_ns) &&
	    (!f->has_to || at_ns <= f->to_ns);
}
