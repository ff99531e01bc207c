#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "protos/trace_config.pb-c.h"
#include "service/filter/string_filter.h"

typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule rule_pb;
typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterPolicy policy;

#define POLICY(x) PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_##x

static char err[512];

static int
setup(void **state)
{
	return (*state = string_filter_new()) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	string_filter_free(*state);
	return 0;
}

static rule_pb
make(policy p, const char *pattern, const char *payload)
{
	rule_pb r = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_RULE__INIT;

	r.has_policy = 1;
	r.policy = p;
	r.regex_pattern = (char *)(uintptr_t)pattern;
	r.atrace_payload_starts_with = (char *)(uintptr_t)payload;
	return r;
}

static void
add(struct string_filter *f, const rule_pb *r)
{
	err[0] = '\0';
	if (string_filter_add(f, r, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static void
add_rule(struct string_filter *f, policy p, const char *pattern,
    const char *payload)
{
	rule_pb r = make(p, pattern, payload);

	add(f, &r);
}

static void
refused(struct string_filter *f, const rule_pb *r, const char *why)
{
	err[0] = '\0';
	assert_int_equal(string_filter_add(f, r, err, sizeof(err)), -1);
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, err);
}

static void
becomes_typed(struct string_filter *f, const char *in, const char *out,
    uint32_t type)
{
	char text[512];

	assert_true(strlen(in) < sizeof(text));
	memcpy(text, in, strlen(in) + 1);
	string_filter_begin(f, strlen(in));
	string_filter_apply(f, (uint8_t *)text, strlen(in), type);
	assert_string_equal(text, out);
}

static void
becomes(struct string_filter *f, const char *in, const char *out)
{
	becomes_typed(f, in, out, 0);
}

static void
without_rules_a_string_stays(void **state)
{
	becomes(*state, "anything", "anything");
	becomes(*state, "", "");
}

static void
groups_of_a_match_are_written_over_at_their_length(void **state)
{
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS),
	    "name=(\\w*),key=(\\w*);?", NULL);
	becomes(*state, "name=ab,key=0123456789abcdefg",
	    "name=P6,key=P60REDACTED------");
	becomes(*state, "name=,key=xyz;", "name=,key=P60;");
	/* The pattern has to fit the string as a whole. */
	becomes(*state, " name=ab,key=cd", " name=ab,key=cd");
	becomes(*state, "name=ab,key=cd;;", "name=ab,key=cd;;");
}

static void
groups_that_took_no_part_are_left_alone(void **state)
{
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "a(b)?c(d(e)?)?", NULL);
	becomes(*state, "ac", "ac");
	becomes(*state, "abcd", "aPcP");
	becomes(*state, "abcde", "aPcPP");
}

static void
a_rule_without_groups_leaves_the_string_and_ends(void **state)
{
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "public.*", NULL);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "(.*)", NULL);
	becomes(*state, "public thing", "public thing");
	becomes(*state, "private", "P60REDA");
}

static void
the_first_rule_that_fits_decides(void **state)
{
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "aa(.*)", NULL);
	add_rule(*state, POLICY(MATCH_BREAK), "a.*", NULL);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "(.*)", NULL);
	becomes(*state, "aaxyz", "aaP60");
	becomes(*state, "abxyz", "abxyz");
	becomes(*state, "bbxyz", "P60RE");
}

static void
atrace_rules_want_a_payload_that_begins_so(void **state)
{
	add_rule(*state, POLICY(ATRACE_MATCH_REDACT_GROUPS),
	    "B\\|\\d+\\|key=(.*)", "key=");
	becomes(*state, "B|123|key=secret", "B|123|key=P60RED");
	becomes(*state, "B|123|kez=secret", "B|123|kez=secret");
	becomes(*state, "B|123|ke", "B|123|ke");
	becomes(*state, "B|123", "B|123");
	becomes(*state, "B|", "B|");
	becomes(*state, "B", "B");
	becomes(*state, "E|123|key=secret", "E|123|key=secret");
	becomes(*state, "key=secret", "key=secret");
}

static void
an_atrace_rule_may_want_no_particular_payload(void **state)
{
	add_rule(*state, POLICY(ATRACE_MATCH_REDACT_GROUPS), ".*\\|(\\w*)",
	    "");
	becomes(*state, "C|1|abc", "C|1|P60");
	becomes(*state, "S|1|", "S|1|");
	becomes(*state, "xyz", "xyz");
}

static void
an_atrace_rule_to_break_protects_from_those_behind(void **state)
{
	add_rule(*state, POLICY(ATRACE_MATCH_BREAK), "B\\|\\d+\\|fine.*",
	    "fine");
	add_rule(*state, POLICY(ATRACE_MATCH_REDACT_GROUPS), "B\\|\\d+\\|(.*)",
	    "");
	becomes(*state, "B|1|fine=1", "B|1|fine=1");
	becomes(*state, "B|1|other", "B|1|P60RE");
	/* Not where the pattern does not fit, whatever the payload. */
	becomes(*state, "I|1|fine", "I|1|fine");
}

static void
a_repeated_search_finds_all_there_are(void **state)
{
	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS),
	    "id=(\\d+)", "Job");
	becomes(*state, "B|1|Job id=12 id=34567 ix=89 id=0",
	    "B|1|Job id=P6 id=P60RE ix=89 id=P");
	becomes(*state, "B|1|job id=12", "B|1|job id=12");
	becomes(*state, "Job id=12", "Job id=12");
}

static void
a_repeated_search_gets_past_empty_matches(void **state)
{
	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS), "(\\d*)",
	    "");
	becomes(*state, "B|12|a34b", "B|P6|aP6b");
}

static void
a_repeated_search_gets_past_a_moved_start(void **state)
{
	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS),
	    "(x)\\K|(z)", "");
	becomes(*state, "B|1|axxbz", "B|1|aPPbP");
}

static void
a_search_that_finds_nothing_leaves_it_to_the_next_rule(void **state)
{
	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS),
	    "id=(\\d+)", "");
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), ".*(secret)", NULL);
	becomes(*state, "B|1|secret", "B|1|P60RED");
	becomes(*state, "B|1|id=1secret", "B|1|id=Psecret");
}

static void
a_rule_is_for_the_types_it_names(void **state)
{
	rule_pb r = make(POLICY(MATCH_REDACT_GROUPS), "(.*)", NULL);
	Perfetto__Protos__SemanticType types[] = { 2, 127 };

	r.semantic_type = types;
	r.n_semantic_type = 2;
	add(*state, &r);
	becomes_typed(*state, "abc", "abc", 0);
	becomes_typed(*state, "abc", "abc", 1);
	becomes_typed(*state, "abc", "P60", 2);
	becomes_typed(*state, "abc", "abc", 64 + 2);
	becomes_typed(*state, "abc", "P60", 127);
	/* One that no rule can name gets all of them. */
	becomes_typed(*state, "abc", "P60", 128);
	becomes_typed(*state, "abc", "P60", UINT32_MAX);
}

static void
a_rule_without_types_is_for_fields_without_one(void **state)
{
	rule_pb r = make(POLICY(MATCH_REDACT_GROUPS), "b(.*)", NULL);
	Perfetto__Protos__SemanticType both[] = { 0, 5 };

	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "a(.*)", NULL);
	r.semantic_type = both;
	r.n_semantic_type = 2;
	add(*state, &r);
	becomes_typed(*state, "axx", "aP6", 0);
	becomes_typed(*state, "axx", "axx", 5);
	becomes_typed(*state, "bxx", "bP6", 0);
	becomes_typed(*state, "bxx", "bP6", 5);
}

static void
a_rule_takes_the_place_of_the_one_with_its_name(void **state)
{
	rule_pb r = make(POLICY(MATCH_REDACT_GROUPS), "(a).*", NULL);
	rule_pb again = make(POLICY(MATCH_BREAK), "a+", NULL);

	r.name = (char *)(uintptr_t)"first";
	add(*state, &r);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "(.*)", NULL);
	becomes(*state, "aaa", "Paa");
	again.name = (char *)(uintptr_t)"first";
	add(*state, &again);
	becomes(*state, "aaa", "aaa"); /* in its place: before the other */
	becomes(*state, "aab", "P60");
	/* No name is not a name. */
	r.name = (char *)(uintptr_t)"";
	add(*state, &r);
	add(*state, &r);
	becomes(*state, "aab", "P60");
}

static void
patterns_mean_what_they_mean_in_ecmascript(void **state)
{
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "dot(.)", NULL);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "end(.*)$\\n?", NULL);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "hex(\\u0041)", NULL);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "any([^])", NULL);
	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "ref(x)?(b)\\1", NULL);
	becomes(*state, "dotx", "dotP");
	becomes(*state, "dot\n", "dot\n");
	becomes(*state, "dot\r", "dot\r");
	becomes(*state, "end\n", "end\n");
	becomes(*state, "hexA", "hexP");
	becomes(*state, "any\n", "anyP");
	becomes(*state, "refb", "refP");
}

static void
strings_are_bytes(void **state)
{
	uint8_t s[] = { 'k', 0xff, 0x00, 0xc3, 'x' };
	const uint8_t want[] = { 'k', 'P', '6', '0', 'R' };

	add_rule(*state, POLICY(MATCH_REDACT_GROUPS), "k(.*)", NULL);
	string_filter_begin(*state, 64);
	string_filter_apply(*state, s, sizeof(s), 0);
	assert_memory_equal(s, want, sizeof(s));
}

static void
a_rule_without_a_policy_is_refused(void **state)
{
	rule_pb r = make(POLICY(UNSPECIFIED), "x", NULL);

	refused(*state, &r, "the policy is missing or not known");
	r.policy = (policy)77;
	refused(*state, &r, "the policy is missing or not known");
}

static void
a_type_beyond_those_there_can_be_is_refused(void **state)
{
	rule_pb r = make(POLICY(MATCH_BREAK), "x", NULL);
	Perfetto__Protos__SemanticType type = 128;

	r.semantic_type = &type;
	r.n_semantic_type = 1;
	refused(*state, &r, "semantic type");
	type = (Perfetto__Protos__SemanticType)-1;
	refused(*state, &r, "semantic type");
}

static void
a_pattern_that_does_not_compile_is_refused(void **state)
{
	rule_pb r = make(POLICY(MATCH_BREAK), "a(b\x1b", NULL);
	char deep[256];

	refused(*state, &r, "it cannot be used");
	assert_null(strchr(err, '\x1b'));
	memset(deep, '(', 100);
	memset(deep + 100, ')', 100);
	deep[200] = '\0';
	r.regex_pattern = deep;
	refused(*state, &r, "it cannot be used");
	r.regex_pattern = (char *)(uintptr_t)"(*UTF)a";
	refused(*state, &r, "it cannot be used");
	/* Nothing of them stayed. */
	becomes(*state, "ab", "ab");
}

static void
patterns_have_limits(void **state)
{
	rule_pb r = make(POLICY(MATCH_BREAK), "((a{1,100}b){1,100}){1,13}", NULL);
	char *longest = malloc(STRING_PATTERN_MAX + 2);
	size_t i;

	refused(*state, &r, "it is too complex");
	assert_non_null(longest);
	memset(longest, 'a', STRING_PATTERN_MAX + 1);
	longest[STRING_PATTERN_MAX + 1] = '\0';
	r.regex_pattern = longest;
	refused(*state, &r, "longer");
	longest[STRING_PATTERN_MAX] = '\0';
	add(*state, &r);
	free(longest);
	r.regex_pattern = (char *)(uintptr_t)"x";
	for (i = 1; i < STRING_RULES_MAX; i++)
		add(*state, &r);
	refused(*state, &r, "more than 256");
}

static void
all_patterns_together_have_a_limit(void **state)
{
	rule_pb r = make(POLICY(MATCH_BREAK), "((a{1,9}b){1,60}){1,10}", NULL);
	int rc = 0;
	size_t i;

	for (i = 0; i < STRING_RULES_MAX && rc == 0; i++)
		rc = string_filter_add(*state, &r, err, sizeof(err));
	assert_int_equal(rc, -1);
	assert_non_null(strstr(err, "too complex"));
	assert_true(i > 8);
}

static void
a_string_that_costs_too_much_is_written_over(void **state)
{
	char s[64];

	add_rule(*state, POLICY(MATCH_BREAK), "(?:a+)+[bc]", NULL);
	memset(s, 'a', sizeof(s));
	string_filter_begin(*state, 64);
	string_filter_apply(*state, (uint8_t *)s, sizeof(s), 0);
	assert_memory_equal(s, "P60REDACTED-----", 16);
	assert_int_equal(s[63], '-');
	/* The others of its packet too, without another attempt. */
	memcpy(s, "xyz", 3);
	string_filter_apply(*state, (uint8_t *)s, 3, 0);
	assert_memory_equal(s, "P60", 3);
	/* Those that no rule is for stay, and the next packet begins anew. */
	memcpy(s, "xyz", 3);
	string_filter_apply(*state, (uint8_t *)s, 3, 1);
	assert_memory_equal(s, "xyz", 3);
	becomes(*state, "xyz", "xyz");
	becomes(*state, "aab", "aab");
}

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
a_packet_of_slow_strings_ends(void **state)
{
	double start = cpu_seconds();
	char s[400];
	size_t i, over = 0;

	/* Each costs a good part of what one match may. */
	add_rule(*state, POLICY(MATCH_BREAK), ".*.*[bc]", NULL);
	string_filter_begin(*state, 64);
	for (i = 0; i < 20000; i++) {
		memset(s, 'a', sizeof(s));
		string_filter_apply(*state, (uint8_t *)s, sizeof(s), 0);
		over += s[0] == 'P';
	}
	assert_true(over > 0);
	assert_true(cpu_seconds() - start < 5);
}

/* With CPU time in seconds that only a pattern without bounds takes. */
static void
costs_little(struct string_filter *f, const char *run, size_t len)
{
	double start = cpu_seconds();
	char *s = malloc(len);
	size_t i;

	assert_non_null(s);
	for (i = 0; i < len; i++)
		s[i] = run[i % strlen(run)];
	memcpy(s, "B|1|", 4);
	string_filter_begin(f, len);
	string_filter_apply(f, (uint8_t *)s, len, 0);
	assert_memory_equal(s, "P60REDACTED", 11);
	assert_true(cpu_seconds() - start < 5);
	free(s);
}

static void
a_search_that_begins_everywhere_ends(void **state)
{
	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS),
	    "([ab]*+)[cd]", NULL);
	costs_little(*state, "ab", 300000);
}

static void
a_search_with_many_steps_from_each_place_ends(void **state)
{
	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS),
	    "(a*a*a*)[bd]", NULL);
	costs_little(*state, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
	    3000000);
}

static void
a_match_whose_steps_are_long_ends(void **state)
{
	add_rule(*state, POLICY(MATCH_BREAK), "[^c]{4}(?:(?=[^b]*+)a)*c",
	    NULL);
	costs_little(*state, "a", 3000000);
}

/* Large packets have more time, until one has used it up. */
static void
slow_packets_get_little_time_after_the_first(void **state)
{
	static char s[1000000];
	double start = 0;
	size_t i;

	add_rule(*state, POLICY(ATRACE_REPEATED_SEARCH_REDACT_GROUPS),
	    "([ab]*+)[cd]", NULL);
	for (i = 0; i < 11; i++) {
		if (i == 1)
			start = cpu_seconds();
		memset(s, 'a', sizeof(s));
		memcpy(s, "B|1|", 4);
		string_filter_begin(*state, sizeof(s));
		string_filter_apply(*state, (uint8_t *)s, sizeof(s), 0);
		assert_memory_equal(s, "P60", 3);
	}
	assert_true(cpu_seconds() - start < 2);
	becomes(*state, "B|1|xabc", "B|1|xP6c");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_rules_a_string_stays),
		TEST(groups_of_a_match_are_written_over_at_their_length),
		TEST(groups_that_took_no_part_are_left_alone),
		TEST(a_rule_without_groups_leaves_the_string_and_ends),
		TEST(the_first_rule_that_fits_decides),
		TEST(atrace_rules_want_a_payload_that_begins_so),
		TEST(an_atrace_rule_may_want_no_particular_payload),
		TEST(an_atrace_rule_to_break_protects_from_those_behind),
		TEST(a_repeated_search_finds_all_there_are),
		TEST(a_repeated_search_gets_past_empty_matches),
		TEST(a_repeated_search_gets_past_a_moved_start),
		TEST(a_search_that_finds_nothing_leaves_it_to_the_next_rule),
		TEST(a_rule_is_for_the_types_it_names),
		TEST(a_rule_without_types_is_for_fields_without_one),
		TEST(a_rule_takes_the_place_of_the_one_with_its_name),
		TEST(patterns_mean_what_they_mean_in_ecmascript),
		TEST(strings_are_bytes),
		TEST(a_rule_without_a_policy_is_refused),
		TEST(a_type_beyond_those_there_can_be_is_refused),
		TEST(a_pattern_that_does_not_compile_is_refused),
		TEST(patterns_have_limits),
		TEST(all_patterns_together_have_a_limit),
		TEST(a_string_that_costs_too_much_is_written_over),
		TEST(a_packet_of_slow_strings_ends),
		TEST(a_search_that_begins_everywhere_ends),
		TEST(a_search_with_many_steps_from_each_place_ends),
		TEST(a_match_whose_steps_are_long_ends),
		TEST(slow_packets_get_little_time_after_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
