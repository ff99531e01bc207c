#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/trace_config.pb-c.h"
#include "service/filter/message_filter.h"
#include "tests/unit/service/filter/assembler.h"
#include "tests/unit/transport/wire/put_fixed64.h"
#include "transport/wire/pb_writer.h"

typedef Perfetto__Protos__TraceConfig__TraceFilter filter_pb;
typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterChain chain_pb;
typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule rule_pb;

#define POLICY(x) PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_##x

static struct assembler code, overlay;
static char err[512];

struct fixture {
	struct message_filter *f;
	struct pb_writer in;
	struct pb_writer want;
};

static int
setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return -1;
	pb_writer_init(&x->in);
	pb_writer_init(&x->want);
	*state = x;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *x = *state;

	message_filter_free(x->f);
	pb_writer_done(&x->in);
	pb_writer_done(&x->want);
	free(x);
	return 0;
}

static ProtobufCBinaryData
binary(struct assembler *a)
{
	asm_done(a, 0);
	return (ProtobufCBinaryData){ .len = a->len, .data = a->bytes };
}

static void
load_pb(struct fixture *x, const filter_pb *pb)
{
	message_filter_free(x->f);
	err[0] = '\0';
	x->f = message_filter_new(pb, err, sizeof(err));
	if (x->f == NULL)
		fail_msg("%s", err);
}

static void
refused(const filter_pb *pb, const char *why)
{
	err[0] = '\0';
	assert_null(message_filter_new(pb, err, sizeof(err)));
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, err);
}

static filter_pb
empty(void)
{
	return (filter_pb)PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__INIT;
}

/* What is in `code`, as bytecode_v2. */
static void
load(struct fixture *x)
{
	filter_pb pb = empty();

	pb.has_bytecode_v2 = 1;
	pb.bytecode_v2 = binary(&code);
	load_pb(x, &pb);
}

/* The packet in x->in becomes the one in x->want; both begin anew. */
static void
passes(struct fixture *x)
{
	const uint8_t *out = NULL;
	size_t len = 99;

	assert_false(x->in.failed || x->want.failed);
	assert_true(message_filter_packet(x->f, x->in.data, x->in.len, &out,
	    &len));
	assert_int_equal(len, x->want.len);
	if (len > 0)
		assert_memory_equal(out, x->want.data, len);
	pb_writer_reset(&x->in);
	pb_writer_reset(&x->want);
}

static void
is_dropped(struct fixture *x)
{
	uint64_t errors = message_filter_stats(x->f)->errors;
	const uint8_t *out;
	uint8_t *exact;
	size_t len;

	/* Of its very size, so that a sanitizer sees one byte too far. */
	exact = malloc(x->in.len);
	assert_non_null(exact);
	memcpy(exact, x->in.data, x->in.len);
	assert_false(message_filter_packet(x->f, exact, x->in.len, &out,
	    &len));
	assert_int_equal(message_filter_stats(x->f)->errors, errors + 1);
	free(exact);
	pb_writer_reset(&x->in);
}

/* A field of each wire type with the same number. */
static void
put_all_types(struct pb_writer *w, uint32_t field)
{
	pb_put_uint(w, field, 300);
	put_fixed64(w, field, 7);
	pb_put_string(w, field, "text");
	pb_put_varint(w, field << 3 | 5);
	pb_put_raw(w, "\1\2\3\4", 4);
}

static void
allowed_fields_of_every_type_pass_as_they_are(void **state)
{
	struct fixture *x = *state;

	asm_trace(&code);
	asm_field(&code, 2);
	asm_range(&code, 200, 2);
	asm_end(&code);
	load(x);
	put_all_types(&x->in, 1);
	put_all_types(&x->in, 2);
	put_all_types(&x->want, 2);
	put_all_types(&x->in, 199);
	put_all_types(&x->in, 200);
	put_all_types(&x->want, 200);
	put_all_types(&x->in, 201);
	put_all_types(&x->want, 201);
	put_all_types(&x->in, 202);
	put_all_types(&x->in, 2);
	put_all_types(&x->want, 2);
	passes(x);
}

static void
what_is_not_in_the_bytecode_is_not_there(void **state)
{
	struct fixture *x = *state;

	asm_trace(&code);
	asm_end(&code);
	load(x);
	put_all_types(&x->in, 1);
	passes(x);
	passes(x); /* an empty packet */
}

static void
a_repeated_field_may_be_packed(void **state)
{
	struct fixture *x = *state;
	size_t i;

	asm_trace(&code);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	pb_put_bytes(&x->in, 5, "\1\2\xac\2", 4);
	pb_put_bytes(&x->want, 5, "\1\2\xac\2", 4);
	for (i = 0; i < 3; i++) {
		pb_put_uint(&x->in, 5, i);
		pb_put_uint(&x->want, 5, i);
	}
	passes(x);
}

static void
messages_are_filtered_inside(void **state)
{
	struct fixture *x = *state;
	size_t a, b;

	asm_trace(&code);
	asm_nested(&code, 4, 2);
	asm_end(&code);
	asm_field(&code, 1);
	asm_nested(&code, 3, 3);
	asm_end(&code);
	asm_field(&code, 9);
	asm_end(&code);
	load(x);
	a = pb_nest_begin(&x->in, 4);
	pb_put_uint(&x->in, 1, 11);
	pb_put_uint(&x->in, 2, 12);
	b = pb_nest_begin(&x->in, 3);
	pb_put_string(&x->in, 9, "kept");
	pb_put_string(&x->in, 8, "gone");
	pb_nest_end(&x->in, b);
	pb_nest_end(&x->in, a);
	a = pb_nest_begin(&x->want, 4);
	pb_put_uint(&x->want, 1, 11);
	b = pb_nest_begin(&x->want, 3);
	pb_put_string(&x->want, 9, "kept");
	pb_nest_end(&x->want, b);
	pb_nest_end(&x->want, a);
	passes(x);
}

static void
a_message_without_what_is_allowed_stays_empty(void **state)
{
	struct fixture *x = *state;
	size_t a;

	asm_trace(&code);
	asm_nested(&code, 4, 2);
	asm_end(&code);
	asm_end(&code);
	load(x);
	a = pb_nest_begin(&x->in, 4);
	pb_put_uint(&x->in, 1, 11);
	pb_nest_end(&x->in, a);
	pb_put_bytes(&x->in, 4, "", 0);
	pb_put_bytes(&x->want, 4, "", 0);
	pb_put_bytes(&x->want, 4, "", 0);
	passes(x);
}

/* Lengths of one, two and three bytes, before and after. */
static void
lengths_shrink_with_what_they_count(void **state)
{
	static const size_t kept[] = { 0, 1, 125, 126, 127, 16379, 16380,
	    16384, 70000 };
	static const size_t gone[] = { 1, 2, 3, 130, 16384, 40000 };
	struct fixture *x = *state;
	uint8_t *data = calloc(1, 70000);
	size_t i, k, a, b;

	assert_non_null(data);
	asm_trace(&code);
	asm_nested(&code, 4, 1);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	for (i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		for (k = 0; k < sizeof(gone) / sizeof(*gone); k++) {
			a = pb_nest_begin(&x->in, 4);
			b = pb_nest_begin(&x->in, 4);
			pb_put_bytes(&x->in, 6, data, gone[k]);
			pb_put_bytes(&x->in, 5, data, kept[i]);
			pb_nest_end(&x->in, b);
			pb_put_uint(&x->in, 5, 77);
			pb_nest_end(&x->in, a);
			pb_put_uint(&x->in, 5, 78);
			a = pb_nest_begin(&x->want, 4);
			b = pb_nest_begin(&x->want, 4);
			pb_put_bytes(&x->want, 5, data, kept[i]);
			pb_nest_end(&x->want, b);
			pb_put_uint(&x->want, 5, 77);
			pb_nest_end(&x->want, a);
			pb_put_uint(&x->want, 5, 78);
			passes(x);
		}
	free(data);
}

/* Messages of field 4 in one another. */
static void
put_depth(struct pb_writer *w, unsigned depth)
{
	struct pb_writer inner;

	pb_writer_init(&inner);
	if (depth > 0)
		put_depth(&inner, depth - 1);
	pb_put_uint(&inner, 5, depth);
	pb_put_bytes(w, 4, inner.data, inner.len);
	pb_writer_done(&inner);
}

static void
messages_may_nest_a_hundred_times(void **state)
{
	struct fixture *x = *state;

	asm_trace(&code);
	asm_nested(&code, 4, 1);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	put_depth(&x->in, 99);
	put_depth(&x->want, 99);
	passes(x);
	put_depth(&x->in, 100);
	is_dropped(x);
	put_depth(&x->in, 3000);
	is_dropped(x);
	/* Depth is of what is looked into, not of what is in a field. */
	asm_trace(&code);
	asm_field(&code, 4);
	asm_end(&code);
	load(x);
	put_depth(&x->in, 300);
	put_depth(&x->want, 300);
	passes(x);
}

static void
a_field_of_another_wire_type_does_not_pass_as_a_message_or_string(void **state)
{
	struct fixture *x = *state;

	asm_trace(&code);
	asm_nested(&code, 4, 2);
	asm_string(&code, 5);
	asm_end(&code);
	asm_end(&code);
	load(x);
	pb_put_uint(&x->in, 4, 1);
	put_fixed64(&x->in, 4, 1);
	pb_put_uint(&x->in, 5, 1);
	pb_put_varint(&x->in, 5 << 3 | 5);
	pb_put_raw(&x->in, "\1\2\3\4", 4);
	passes(x);
}

static void
groups_and_unknown_wire_types_are_errors(void **state)
{
	struct fixture *x = *state;
	uint32_t wire[] = { 3, 4, 6, 7 };
	size_t i, a;

	asm_trace(&code);
	asm_nested(&code, 4, 1);
	asm_end(&code);
	load(x);
	for (i = 0; i < 4; i++) {
		pb_put_varint(&x->in, 9 << 3 | wire[i]);
		is_dropped(x);
		a = pb_nest_begin(&x->in, 4);
		pb_put_varint(&x->in, 9 << 3 | wire[i]);
		pb_nest_end(&x->in, a);
		is_dropped(x);
	}
	assert_int_equal(message_filter_stats(x->f)->input_packets, 8);
	assert_int_equal(message_filter_stats(x->f)->output_bytes, 0);
}

static void
what_is_cut_off_or_too_long_is_an_error(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x22", 1 },                 /* no length */
		{ "\x22\x01", 2 },             /* no payload */
		{ "\x22\x80", 2 },             /* half a length */
		{ "\x28", 1 },                 /* no value */
		{ "\x28\x80\x80", 3 },         /* half a value */
		{ "\x29\1\2\3\4\5\6\7", 8 },   /* of eight bytes */
		{ "\x2d\1\2\3", 4 },           /* of four */
		{ "\x80", 1 },                 /* half a tag */
		{ "\x00\x01", 2 },             /* field 0 */
		{ "\x22\x03\x22\x02\x28", 5 }, /* inner beyond the outer */
		{ "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 },
		{ "\xff\xff\xff\xff\xff\x01\x01", 7 },
		{ "\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
	};
	struct fixture *x = *state;
	size_t i, a;

	asm_trace(&code);
	asm_nested(&code, 4, 1);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		pb_put_raw(&x->in, bad[i].bytes, bad[i].len);
		is_dropped(x);
		a = pb_nest_begin(&x->in, 4);
		pb_put_raw(&x->in, bad[i].bytes, bad[i].len);
		pb_nest_end(&x->in, a);
		is_dropped(x);
	}
}

static void
what_is_denied_is_not_looked_into(void **state)
{
	struct fixture *x = *state;

	asm_trace(&code);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	pb_put_bytes(&x->in, 4, "\xff\xff", 2);
	pb_put_bytes(&x->in, 5, "\xff\xff", 2);
	pb_put_bytes(&x->want, 5, "\xff\xff", 2);
	passes(x);
}

static void
numbers_written_too_long_are_shortened_or_kept_but_never_grow(void **state)
{
	struct fixture *x = *state;

	asm_trace(&code);
	asm_nested(&code, 4, 1);
	asm_field(&code, 5);
	asm_string(&code, 6);
	asm_end(&code);
	load(x);
	/* Tag and length of a message and a string, each by a byte. */
	pb_put_raw(&x->in, "\xa2\x00\x82\x00\x28\x01", 6);
	pb_put_raw(&x->in, "\xb2\x00\x81\x00z", 5);
	pb_put_raw(&x->want, "\x22\x02\x28\x01", 4);
	pb_put_raw(&x->want, "\x32\x01z", 3);
	passes(x);
}

static void
strings_pass_the_rules(void **state)
{
	struct fixture *x = *state;
	rule_pb r = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_RULE__INIT;
	rule_pb *rules[] = { &r };
	chain_pb chain = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_CHAIN__INIT;
	filter_pb pb = empty();
	Perfetto__Protos__SemanticType type = 3;
	char before[300], after[300];

	r.policy = POLICY(MATCH_REDACT_GROUPS);
	r.regex_pattern = (char *)(uintptr_t)"key=(.*)";
	chain.n_rules = 1;
	chain.rules = rules;
	pb.string_filter_chain = &chain;
	asm_trace(&code);
	asm_string(&code, 5);
	asm_field(&code, 6);
	asm_typed_string(&code, 7, 3);
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	load_pb(x, &pb);
	memset(before, 'x', sizeof(before) - 1);
	before[sizeof(before) - 1] = '\0';
	memcpy(before, "key=", 4);
	memset(after, '-', sizeof(after) - 1);
	after[sizeof(after) - 1] = '\0';
	memcpy(after, "key=P60REDACTED", 15);
	pb_put_string(&x->in, 5, before);
	pb_put_string(&x->want, 5, after);
	pb_put_string(&x->in, 5, "other");
	pb_put_string(&x->want, 5, "other");
	pb_put_string(&x->in, 5, "");
	pb_put_string(&x->want, 5, "");
	pb_put_string(&x->in, 6, "key=1");
	pb_put_string(&x->want, 6, "key=1");
	pb_put_string(&x->in, 7, "key=1");
	pb_put_string(&x->want, 7, "key=1");
	passes(x);
	r.n_semantic_type = 1;
	r.semantic_type = &type;
	load_pb(x, &pb);
	pb_put_string(&x->in, 5, "key=1");
	pb_put_string(&x->want, 5, "key=1");
	pb_put_string(&x->in, 7, "key=1");
	pb_put_string(&x->want, 7, "key=P");
	passes(x);
}

static void
the_second_chain_replaces_rules_by_name_and_adds_others(void **state)
{
	struct fixture *x = *state;
	rule_pb r[3];
	rule_pb *first[] = { &r[0] }, *second[] = { &r[1], &r[2] };
	chain_pb a = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_CHAIN__INIT;
	chain_pb b = a;
	filter_pb pb = empty();
	size_t i;

	for (i = 0; i < 3; i++) {
		r[i] = (rule_pb)PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_RULE__INIT;
		r[i].policy = POLICY(MATCH_REDACT_GROUPS);
	}
	r[0].regex_pattern = (char *)(uintptr_t)"(a)bc";
	r[0].name = r[1].name = (char *)(uintptr_t)"abc";
	r[1].regex_pattern = (char *)(uintptr_t)"a(b)c";
	r[2].regex_pattern = (char *)(uintptr_t)"d(e)f";
	a.n_rules = 1;
	a.rules = first;
	b.n_rules = 2;
	b.rules = second;
	pb.string_filter_chain = &a;
	asm_trace(&code);
	asm_string(&code, 5);
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	load_pb(x, &pb);
	pb_put_string(&x->in, 5, "abc");
	pb_put_string(&x->want, 5, "Pbc");
	passes(x);
	pb.string_filter_chain_v54 = &b;
	load_pb(x, &pb);
	pb_put_string(&x->in, 5, "abc");
	pb_put_string(&x->want, 5, "aPc");
	pb_put_string(&x->in, 5, "def");
	pb_put_string(&x->want, 5, "dPf");
	passes(x);
}

static void
the_newer_bytecode_is_taken_and_the_overlay_changes_it(void **state)
{
	static struct assembler v1;
	struct fixture *x = *state;
	filter_pb pb = empty();

	asm_trace(&v1);
	asm_field(&v1, 5);
	asm_end(&v1);
	pb.bytecode = binary(&v1);
	load_pb(x, &pb);
	put_all_types(&x->in, 5);
	put_all_types(&x->in, 6);
	put_all_types(&x->want, 5);
	passes(x);
	asm_trace(&code);
	asm_field(&code, 6);
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	load_pb(x, &pb);
	put_all_types(&x->in, 5);
	put_all_types(&x->in, 6);
	put_all_types(&x->want, 6);
	passes(x);
	asm_begin(&overlay);
	asm_word(&overlay, 1);
	asm_word(&overlay, 5 << 3 | 1);
	asm_word(&overlay, 0);
	pb.bytecode_overlay_v54 = binary(&overlay);
	load_pb(x, &pb);
	put_all_types(&x->in, 5);
	put_all_types(&x->in, 6);
	put_all_types(&x->want, 5);
	put_all_types(&x->want, 6);
	passes(x);
}

static void
a_filter_that_is_not_whole_is_refused(void **state)
{
	rule_pb r = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_RULE__INIT;
	rule_pb *rules[] = { &r };
	chain_pb chain = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_CHAIN__INIT;
	filter_pb pb = empty();

	refused(&pb, "bytecode: it is empty");
	asm_trace(&code);
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	chain.n_rules = 1;
	chain.rules = rules;
	pb.string_filter_chain = &chain;
	refused(&pb, "policy");
	r.policy = POLICY(MATCH_BREAK);
	r.regex_pattern = (char *)(uintptr_t)"(";
	refused(&pb, "it cannot be used");
	pb.string_filter_chain = NULL;
	pb.string_filter_chain_v54 = &chain;
	refused(&pb, "it cannot be used");
	pb.string_filter_chain_v54 = NULL;
	asm_begin(&overlay);
	asm_word(&overlay, 1);
	pb.bytecode_overlay_v54 = binary(&overlay);
	refused(&pb, "bytecode_overlay_v54");
}

static void
bytecode_has_to_begin_at_the_trace(void **state)
{
	filter_pb pb = empty();

	asm_begin(&code);
	asm_field(&code, 1); /* the packets, but not what is in them */
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	refused(&pb, "not Trace");
	asm_begin(&code);
	asm_nested(&code, 2, 0);
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	refused(&pb, "not Trace");
	/* Of itself it may be. */
	asm_begin(&code);
	asm_nested(&code, 1, 0);
	asm_end(&code);
	pb.bytecode_v2 = binary(&code);
	load_pb(*state, &pb);
}

static void
statistics_count_packets_and_bytes(void **state)
{
	const struct message_filter_stats *st;
	struct fixture *x = *state;

	asm_trace(&code);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	pb_put_bytes(&x->in, 5, "1234", 4);
	pb_put_bytes(&x->want, 5, "1234", 4);
	pb_put_bytes(&x->in, 6, "1234", 4);
	passes(x);
	pb_put_bytes(&x->in, 6, "12", 2);
	passes(x);
	pb_put_raw(&x->in, "\x28", 1);
	is_dropped(x);
	st = message_filter_stats(x->f);
	assert_int_equal(st->input_packets, 3);
	assert_int_equal(st->input_bytes, 12 + 4 + 1);
	assert_int_equal(st->output_bytes, 6);
	assert_int_equal(st->errors, 1);
}

static void
a_large_packet_between_small_ones_is_filtered_too(void **state)
{
	struct fixture *x = *state;
	size_t large = 3u << 20, i;
	uint8_t *data = calloc(1, large);

	assert_non_null(data);
	asm_trace(&code);
	asm_field(&code, 5);
	asm_end(&code);
	load(x);
	for (i = 0; i < 3; i++) {
		pb_put_bytes(&x->in, 5, data, i == 1 ? large : 10);
		pb_put_bytes(&x->want, 5, data, i == 1 ? large : 10);
		passes(x);
	}
	free(data);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(allowed_fields_of_every_type_pass_as_they_are),
		TEST(what_is_not_in_the_bytecode_is_not_there),
		TEST(a_repeated_field_may_be_packed),
		TEST(messages_are_filtered_inside),
		TEST(a_message_without_what_is_allowed_stays_empty),
		TEST(lengths_shrink_with_what_they_count),
		TEST(messages_may_nest_a_hundred_times),
		TEST(a_field_of_another_wire_type_does_not_pass_as_a_message_or_string),
		TEST(groups_and_unknown_wire_types_are_errors),
		TEST(what_is_cut_off_or_too_long_is_an_error),
		TEST(what_is_denied_is_not_looked_into),
		TEST(numbers_written_too_long_are_shortened_or_kept_but_never_grow),
		TEST(strings_pass_the_rules),
		TEST(the_second_chain_replaces_rules_by_name_and_adds_others),
		TEST(the_newer_bytecode_is_taken_and_the_overlay_changes_it),
		TEST(a_filter_that_is_not_whole_is_refused),
		TEST(bytecode_has_to_begin_at_the_trace),
		TEST(statistics_count_packets_and_bytes),
		TEST(a_large_packet_between_small_ones_is_filtered_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
