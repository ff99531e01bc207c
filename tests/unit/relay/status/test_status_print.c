#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/json_out.h"
#include "protos/relay_report.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "relay/status/status.h"

/* What is printed of a report, given as text. */
static char *
print(const char *report, bool json)
{
	struct text_error where;
	ProtobufCMessage *m;
	char *out = NULL;
	size_t len;
	FILE *f;

	m = text_parse_message(&tributary__relay_report__descriptor, report,
	    strlen(report), &where);
	if (m == NULL)
		fail_msg("%u: %s", where.line, where.message);
	assert_non_null(f = open_memstream(&out, &len));
	if (json)
		json_message(&(struct json_out){ .out = f }, NULL, m);
	else
		status_print(f, (Tributary__RelayReport *)m);
	fclose(f);
	protobuf_c_message_free_unpacked(m, NULL);
	return out;
}

static void
shows(const char *report, const char *line)
{
	char *out = print(report, false);

	if (strstr(out, line) == NULL)
		fail_msg("\"%s\" is not in\n%s", line, out);
	free(out);
}

static void
is_json(const char *report, const char *expected)
{
	char *out = print(report, true);

	assert_string_equal(out, expected);
	free(out);
}

static void
a_link_that_works_is_shown(void **state)
{
	static const char r[] = "version: \"1\" pid: 7 running_ms: 61000 "
	    "machine_name: \"m\" link { state: \"linked\" peer: \"tls://c:1\" "
	    "since_ms: 2000 reconnects: 1 bytes_up: 4096 bytes_sent: 1024 "
	    "bytes_again: 512 compressed: true } "
	    "clock { offset_ns: -1500000 uncertainty_ns: 20000 "
	    "round_trip_ns: 400000 measured_ms_ago: 3000 }";

	shows(r, "tributary-relay 1, process 7, for 1 min 01 s");
	shows(r, "linked for 2.0 s");
	shows(r, "compressed 4.0 times");
	shows(r, "512 bytes of it once more after a cut; 1 reconnect\n");
	shows(r, "-0.001500 s off, to within 0.020 ms; round trip 0.400 ms");
	shows(r, "losses      none");
}

static void
why_there_is_no_link_is_shown(void **state)
{
	static const char r[] = "link { state: \"waiting\" peer: \"/c\" "
	    "since_ms: 1000 last_error: \"nobody there\" next_try_ms: 500 }";

	shows(r, "not connected for 1.0 s; next attempt in 0.5 s");
	shows(r, "last error: nobody there");
	shows(r, "clock       not measured yet");
	shows("link { state: \"waiting\" }", "none yet: waiting for it to dial");
}

static void
the_choice_among_several_collectors_is_shown(void **state)
{
	static const char r[] = "link { state: \"linked\" peer: \"/c2\" "
	    "collectors: 3 choice: 2 home: \"/c1\" why: \"of that\" "
	    "moves: 1 moved_ms_ago: 5000 }";

	shows(r, "collector   /c2\n"
	    "            choice 2 of 3 for this machine, whose home is /c1\n"
	    "            because of that\n"
	    "            1 move, the last 5.0 s ago\n"
	    "            linked for");
	shows("link { state: \"linked\" peer: \"/c1\" collectors: 3 "
	    "choice: 1 home: \"/c1\" moves: 0 }",
	    "            this machine's home, of 3 collectors\n"
	    "            linked for");
}

static void
what_perfettos_way_cannot_do_is_shown_with_its_cause(void **state)
{
	static const char r[] = "link { state: \"classic\" since_ms: 1000 "
	    "why_classic: \"of this\" without_clocks: true }";

	shows(r, "in Perfetto's own way: nothing survives a cut\n"
	    "            because of this\n");
	shows(r, "clock       not measured, so this machine's times may be "
	    "wrong");
	shows(r, "start it with --enable-relay-endpoint");
	shows("link { state: \"classic\" since_ms: 1000 }",
	    "clock       measured by the collector");
}

static void
what_waits_and_what_was_lost_is_shown(void **state)
{
	static const char r[] = "store { memory_bytes: 1048576 "
	    "memory_limit: 8388608 spool_bytes: 2048 spool_limit: 4096 "
	    "oldest_ms: 9000 spool_error: \"no room\" spool_damaged: 2 "
	    "spool_cut_bytes: 10 } "
	    "losses { cause: \"spool full\" chunks: 3 packets: 4000 "
	    "bytes: 5 } losses { cause: \"grace over\" chunks: 1 }";

	shows(r, "1.0 MiB of 8.0 MiB in memory, 2.0 KiB of 4.0 KiB in the "
	    "spool; the oldest for 9.0 s");
	shows(r, "the spool does not work: no room");
	shows(r, "2 blocks, and 10 bytes cut off");
	shows(r, "4,000 packets in 3 chunks (5 bytes): spool full");
	shows(r, "grace over");
	shows("store { }", ", no spool");
}

static void
producers_are_shown(void **state)
{
	static const char r[] = "producer_socket: \"/a\" "
	    "producer_socket: \"/b\" producers { name: \"one\" pid: 12 "
	    "uid: 34 data_sources: 5 announced: true } "
	    "producers { name: \"two\" emulated: true discarded: 6 late: 7 }";

	shows(r, "producers   2; they connect to /a, /b");
	shows(r, "  one\n");
	shows(r, "two (not known to the collector) (without shared memory) "
	    "(6 chunks or patches broke the rules) "
	    "(7 came after their session)");
	shows("producer_socket: \"/a\"", "none; they connect to /a");
}

static void
programs_get_json(void **state)
{
	is_json("", "{\"producer_socket\":[],\"producers\":[],\"losses\":[],"
	    "\"loop_delays\":[]}");
	is_json("pid: -1 running_ms: 18446744073709551615 "
	    "machine_name: \"a\\\"\\\\\\n\\303\\244\" "
	    "producer_socket: \"/a\" producer_socket: \"/b\" "
	    "link { compressed: true } clock { offset_ns: -5 }",
	    "{\"pid\":-1,\"running_ms\":18446744073709551615,"
	    "\"machine_name\":\"a\\\"\\\\\\u000a\303\244\","
	    "\"producer_socket\":[\"/a\",\"/b\"],"
	    "\"link\":{\"compressed\":true},\"clock\":{\"offset_ns\":-5},"
	    "\"producers\":[],\"losses\":[],\"loop_delays\":[]}");
	is_json("losses { } losses { cause: \"x\" }",
	    "{\"producer_socket\":[],\"producers\":[],"
	    "\"losses\":[{},{\"cause\":\"x\"}],\"loop_delays\":[]}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_that_works_is_shown),
		cmocka_unit_test(why_there_is_no_link_is_shown),
		cmocka_unit_test(the_choice_among_several_collectors_is_shown),
		cmocka_unit_test(
		    what_perfettos_way_cannot_do_is_shown_with_its_cause),
		cmocka_unit_test(what_waits_and_what_was_lost_is_shown),
		cmocka_unit_test(producers_are_shown),
		cmocka_unit_test(programs_get_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
