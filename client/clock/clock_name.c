#include "client/clock/clock_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/clock/clock_graph.h"
#include "protos/clock.pb-c.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"

#define PREFIX "BUILTIN_CLOCK_"

static const char *
name_of(const ProtobufCEnumValue *v)
{
	return v->name + sizeof(PREFIX) - 1;
}

char *
clock_name(char out[CLOCK_NAME_MAX], const struct clock_key *k)
{
	const ProtobufCEnumValue *v = NULL;

	if (k->id < PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_MAX_ID)
		v = protobuf_c_enum_descriptor_get_value(
		    &perfetto__protos__builtin_clock__descriptor, (int)k->id);
	if (v != NULL)
		snprintf(out, CLOCK_NAME_MAX, "%s", name_of(v));
	else if (k->sequence != 0)
		snprintf(out, CLOCK_NAME_MAX, "%" PRIu32 "@%" PRIu32, k->id,
		    k->sequence);
	else
		snprintf(out, CLOCK_NAME_MAX, "%" PRIu32, k->id);
	return out;
}

/* The id of a built-in clock, or 0. */
static uint32_t
builtin_id(const char *text, size_t len)
{
	const ProtobufCEnumDescriptor *d =
	    &perfetto__protos__builtin_clock__descriptor;
	const ProtobufCEnumValue *v;

	for (v = d->values; v < d->values + d->n_values; v++) {
		if (strlen(name_of(v)) == len &&
		    strncasecmp(name_of(v), text, len) == 0 &&
		    v->value < PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_MAX_ID)
			return (uint32_t)v->value;
	}
	return 0;
}

/* Digits from text on, up to end.  -1: something else. */
static int
number(const char *text, const char *end, uint32_t *out)
{
	uint64_t v = 0;

	if (text == end)
		return -1;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (uint64_t)(*text - '0');
		if (v > UINT32_MAX)
			return -1;
	}
	*out = (uint32_t)v;
	return 0;
}

int
clock_name_parse(struct clock_key *out, const char *text, size_t len, char *err,
    size_t err_size)
{
	const char *end = text + len, *at = memchr(text, '@', len);
	char word[CLOCK_NAME_MAX];
	uint32_t id, sequence = 0;
	struct clock_key k;

	if ((id = builtin_id(text, len)) != 0) {
		*out = clock_key_of(0, 0, id);
		return 0;
	}
	if (number(text, at == NULL ? end : at, &id) != 0 || id == 0 ||
	    (at != NULL && (number(at + 1, end, &sequence) != 0 ||
	    sequence == 0)))
		return FAILURE(err, err_size, "there is no clock \"%s\": "
		    "REALTIME, MONOTONIC, BOOTTIME, ..., the number of one, or "
		    "64@7 for the clock 64 of the sequence 7",
		    log_escape(word, sizeof(word), text, len));
	k = clock_key_of(0, sequence, id);
	if (k.sequence != sequence)
		return FAILURE(err, err_size, "the clock %" PRIu32 " is not "
		    "one of a sequence: these are 64 to 127", id);
	if (id >= 64 && id < 128 && sequence == 0)
		return FAILURE(err, err_size, "the clock %" PRIu32 " is one of "
		    "a sequence: of which? %" PRIu32 "@NUMBER", id, id);
	*out = k;
	return 0;
}

char *
clock_seconds(char out[CLOCK_NAME_MAX], int64_t ns)
{
	uint64_t n = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	snprintf(out, CLOCK_NAME_MAX, "%s%" PRIu64 ".%09" PRIu64,
	    ns < 0 ? "-" : "", n / 1000000000, n % 1000000000);
	return out;
}
