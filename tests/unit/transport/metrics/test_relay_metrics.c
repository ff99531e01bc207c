#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/relay_report.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "transport/metrics/metrics.h"
#include "transport/metrics/relay_metrics.h"

/* Numbers of a report, given as text; to be freed. */
static char *
print(const char *report, enum metrics_form form)
{
	struct metrics_out m = { .form = form };
	struct text_error where;
	ProtobufCMessage *r;
	char *out = NULL;
	size_t size;

	r = text_parse_message(&tributary__relay_report__descriptor, report,
	    strlen(report), &where);
	if (r == NULL)
		fail_msg("%u: %s", where.line, where.message);
	assert_non_null(m.out = open_memstream(&out, &size));
	relay_metrics_print_own(&m, (Tributary__RelayReport *)r);
	metrics_end(&m);
	fclose(m.out);
	protobuf_c_message_free_unpacked(r, NULL);
	return out;
}

static void
has(const char *report, const char *lines)
{
	char *out = print(report, METRICS_PROMETHEUS);

	if (strstr(out, lines) == NULL)
		fail_msg("no \"%s\" in:\n%s", lines, out);
	free(out);
}

static void
has_not(const char *report, const char *word)
{
	char *out = print(report, METRICS_PROMETHEUS);

	if (strstr(out, word) != NULL)
		fail_msg("\"%s\" is in:\n%s", word, out);
	free(out);
}

static void
one_state_at_most_is_true(void **state)
{
	has("link { state: \"classic\" }",
	    "tributary_relay_link_state{state=\"waiting\"} 0\n"
	    "tributary_relay_link_state{state=\"connecting\"} 0\n"
	    "tributary_relay_link_state{state=\"linked\"} 0\n"
	    "tributary_relay_link_state{state=\"classic\"} 1\n"
	    "tributary_relay_link_state{state=\"stopped\"} 0\n");
	has("link { state: \"new\" }", "state=\"linked\"} 0\n");
	has_not("link { state: \"new\" }", "} 1\n");
	has_not("link { }", "link_state");
}

static void
a_spool_counts_where_there_is_one(void **state)
{
	has("store { memory_bytes: 5 spool_bytes: 6 spool_limit: 7 }",
	    "tributary_relay_backlog_bytes{where=\"memory\"} 5\n"
	    "tributary_relay_backlog_bytes{where=\"spool\"} 6\n");
	has_not("store { memory_bytes: 5 spool_limit: 0 }", "\"spool\"");
	has("store { spool_error: \"no room\" }",
	    "tributary_relay_spool_failed 1\n");
	has("store { }", "tributary_relay_spool_failed 0\n");
}

static void
losses_have_the_collectors_words_for_causes(void **state)
{
	static const char r[] = "losses { cause: \"spool full\" packets: 7 "
	    "chunks: 2 bytes: 9 } losses { cause: \"of my own\" packets: 8 } "
	    "losses { }";

	has(r, "tributary_relay_lost_packets_total{cause=\"unspecified\"} 0\n"
	    "tributary_relay_lost_packets_total{cause=\"spool_full\"} 7\n"
	    "tributary_relay_lost_packets_total{cause=\"disk\"} 0\n");
	has(r, "tributary_relay_lost_chunks_total{cause=\"spool_full\"} 2\n");
	has(r, "tributary_relay_lost_bytes_total{cause=\"spool_full\"} 9\n");
	has_not(r, "own");
	/* Those that the collector alone can tell. */
	has_not(r, "quota");
}

static void
producers_add_up(void **state)
{
	has("producers { data_sources: 2 } producers { data_sources: 3 }",
	    "tributary_relay_producers 2\n");
	has("producers { data_sources: 2 } producers { data_sources: 3 }",
	    "tributary_relay_data_sources 5\n");
}

static void
clocks_have_a_sign(void **state)
{
	has("clock { offset_ns: -1 }",
	    "tributary_relay_clock_offset_seconds -0.000000001\n");
	has("clock { offset_ns: -9223372036854775808 }",
	    "tributary_relay_clock_offset_seconds -9223372036.854775808\n");
	has("clock { offset_ns: 1500000000 uncertainty_ns: 2 }",
	    "tributary_relay_clock_offset_seconds 1.500000000\n");
	has_not("clock { }", "clock");
}

static void
openmetrics_is_spoken_too(void **state)
{
	char *out = print("link { reconnects: 4 }", METRICS_OPENMETRICS);

	assert_non_null(strstr(out, "# TYPE tributary_relay_reconnects counter"
	    "\ntributary_relay_reconnects_total 4\n"));
	assert_string_equal(out + strlen(out) - 6, "# EOF\n");
	free(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_state_at_most_is_true),
		cmocka_unit_test(a_spool_counts_where_there_is_one),
		cmocka_unit_test(losses_have_the_collectors_words_for_causes),
		cmocka_unit_test(producers_add_up),
		cmocka_unit_test(clocks_have_a_sign),
		cmocka_unit_test(openmetrics_is_spoken_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
