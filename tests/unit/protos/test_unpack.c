/*
 * The guard in front of protobuf-c: what it lets through and what it stops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/data_source.pb-c.h"
#include "protos/producer_port.pb-c.h"
#include "protos/protovm.pb-c.h"
#include "protos/service_state.pb-c.h"
#include "protos/unpack.h"

#define INSTRUCTIONS (&perfetto__protos__vm_instruction__descriptor)

/* Wraps buf[at..end) in a field of one byte of tag; returns the new start. */
static size_t
wrap(uint8_t *buf, size_t at, size_t end, uint8_t tag)
{
	size_t len = end - at;
	uint8_t head[8];
	size_t n = 0;

	head[n++] = tag;
	while (len >= 0x80) {
		head[n++] = (uint8_t)(len | 0x80);
		len >>= 7;
	}
	head[n++] = (uint8_t)len;
	memcpy(buf + at - n, head, n);
	return at - n;
}

/* A VmInstruction in a VmInstruction, levels deep below the outermost. */
static size_t
nested(uint8_t *buf, size_t size, unsigned levels)
{
	size_t at = size;

	while (levels-- > 0)
		at = wrap(buf, at, size, 7 << 3 | 2);
	return at;
}

static void
nesting_is_accepted_up_to_the_limit_and_not_beyond(void **state)
{
	uint8_t buf[1024];
	ProtobufCMessage *m;
	size_t at;

	at = nested(buf, sizeof(buf), UNPACK_MAX_DEPTH);
	m = unpack_checked(INSTRUCTIONS, NULL, sizeof(buf) - at, buf + at);
	assert_non_null(m);
	protobuf_c_message_free_unpacked(m, NULL);
	at = nested(buf, sizeof(buf), UNPACK_MAX_DEPTH + 1);
	assert_null(unpack_checked(INSTRUCTIONS, NULL, sizeof(buf) - at,
	    buf + at));
}

static void
generated_functions_go_through_the_guard(void **state)
{
	/* As deep as fits a frame: far beyond what the stack would bear. */
	static uint8_t buf[128 * 1024];
	size_t at;

	at = nested(buf, sizeof(buf), 30000);
	at = wrap(buf, at, sizeof(buf), 2 << 3 | 2);  /* instructions */
	at = wrap(buf, at, sizeof(buf), 10 << 3 | 2); /* protovm_program */
	at = wrap(buf, at, sizeof(buf), 1 << 3 | 2);  /* descriptor */
	assert_null(perfetto__protos__register_data_source_request__unpack(NULL,
	    sizeof(buf) - at, buf + at));
}

static void
repeated_messages_have_no_limit_of_their_own(void **state)
{
	/* 5000 empty producers */
	uint8_t buf[10000];
	Perfetto__Protos__TracingServiceState *s;
	size_t i;

	for (i = 0; i < sizeof(buf); i += 2) {
		buf[i] = 1 << 3 | 2;
		buf[i + 1] = 0;
	}
	s = perfetto__protos__tracing_service_state__unpack(NULL, sizeof(buf),
	    buf);
	assert_non_null(s);
	assert_int_equal(s->n_producers, 5000);
	perfetto__protos__tracing_service_state__free_unpacked(s, NULL);
}

static void
a_singular_message_given_in_parts_is_merged_within_a_limit(void **state)
{
	/* data_source_descriptor { track_event_descriptor { category {} } } */
	static const uint8_t part[] = { 1 << 3 | 2, 4, 6 << 3 | 2, 2,
	    1 << 3 | 2, 0 };
	static uint8_t buf[sizeof(part) * (UNPACK_MAX_MERGES + 1)];
	Perfetto__Protos__RegisterDataSourceRequest *r;
	size_t i;

	for (i = 0; i < sizeof(buf); i += sizeof(part))
		memcpy(buf + i, part, sizeof(part));
	r = perfetto__protos__register_data_source_request__unpack(NULL,
	    3 * sizeof(part), buf);
	assert_non_null(r);
	assert_int_equal(r->data_source_descriptor->track_event_descriptor
	    ->n_available_categories, 3);
	perfetto__protos__register_data_source_request__free_unpacked(r, NULL);
	/* Only the outer field repeats: the inner is a first time in each. */
	r = perfetto__protos__register_data_source_request__unpack(NULL,
	    sizeof(buf), buf);
	assert_non_null(r);
	perfetto__protos__register_data_source_request__free_unpacked(r, NULL);
}

static void
one_repetition_too_many_is_refused(void **state)
{
	static uint8_t buf[2 * (UNPACK_MAX_MERGES + 2)];
	size_t i;

	for (i = 0; i < sizeof(buf); i += 2) {
		buf[i] = 1 << 3 | 2;
		buf[i + 1] = 0;
	}
	assert_null(perfetto__protos__register_data_source_request__unpack(NULL,
	    sizeof(buf), buf));
}

static void
every_cut_of_a_message_is_refused_or_whole(void **state)
{
	/* name: "ab", id: 300, 9999: fixed64, 9999: fixed32 */
	static const uint8_t in[] = { 0x0a, 2, 'a', 'b', 0x38, 0xac, 0x02, 0xf9,
	    0xf0, 0x04, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0xf0, 0x04, 1, 2, 3, 4 };
	size_t n;

	for (n = 0; n <= sizeof(in); n++) {
		Perfetto__Protos__DataSourceDescriptor *d;
		uint8_t *copy;
		int whole = n == 0 || n == 4 || n == 7 || n == 18 || n == 25;

		/* A block of its own, so that ASan sees a byte too far. */
		copy = malloc(n > 0 ? n : 1);
		assert_non_null(copy);
		memcpy(copy, in, n);
		d = perfetto__protos__data_source_descriptor__unpack(NULL, n,
		    copy);
		assert_int_equal(d != NULL, whole);
		if (d != NULL)
			perfetto__protos__data_source_descriptor__free_unpacked(
			    d, NULL);
		free(copy);
	}
}

static void
groups_and_unknown_wire_types_are_refused(void **state)
{
	uint8_t wire;

	for (wire = 0; wire < 8; wire++) {
		uint8_t in[] = { (uint8_t)(7 << 3 | wire), 1, 1 };

		if (wire == 3 || wire == 4 || wire >= 6)
			assert_null(unpack_checked(INSTRUCTIONS, NULL, 3, in));
	}
}

static void
field_numbers_that_cannot_be_are_refused(void **state)
{
	/* 0 in one byte and in two; more than 29 bits */
	assert_null(unpack_checked(INSTRUCTIONS, NULL, 2,
	    (const uint8_t *)"\x00\x01"));
	assert_null(unpack_checked(INSTRUCTIONS, NULL, 3,
	    (const uint8_t *)"\x80\x00\x01"));
	assert_null(unpack_checked(INSTRUCTIONS, NULL, 6,
	    (const uint8_t *)"\x80\x80\x80\x80\x10\x01"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    nesting_is_accepted_up_to_the_limit_and_not_beyond),
		cmocka_unit_test(generated_functions_go_through_the_guard),
		cmocka_unit_test(repeated_messages_have_no_limit_of_their_own),
		cmocka_unit_test(
		    a_singular_message_given_in_parts_is_merged_within_a_limit),
		cmocka_unit_test(one_repetition_too_many_is_refused),
		cmocka_unit_test(every_cut_of_a_message_is_refused_or_whole),
		cmocka_unit_test(field_numbers_that_cannot_be_are_refused),
		cmocka_unit_test(groups_and_unknown_wire_types_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
