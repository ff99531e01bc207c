#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/show/perfetto_sessions.h"
#include "client/show/session_stats_text.h"
#include "client/show/sessions_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_stats.pb-c.h"

#define S 1000000000ull
#define NOW (1700000000ull * S)
#define MIB (UINT64_C(1) << 20)
#define STATE(name) TRIBUTARY__SESSION_STATE__STATE__##name

typedef Tributary__SessionState session_state;

/* One that runs and loses, and one that waits for a trigger. */
static session_state sessions[2];
static const session_state *list[2] = { &sessions[0], &sessions[1] };
static Tributary__SessionState__Buffer buffers[2];
static Tributary__SessionState__Buffer *buffer_list[2];
static Tributary__SessionState__Writer writers[1];
static Tributary__SessionState__Writer *writer_list[1];
static Perfetto__Protos__TraceStats stats;
static Perfetto__Protos__TraceStats__BufferStats buffer_stats[2];
static Perfetto__Protos__TraceStats__BufferStats *buffer_stats_list[2];
static Tributary__QuerySessionsReply reply;

static char text[16384];

static void
make_running(session_state *s)
{
	static char name[] = "robots", owner[] = "uid 1000", file[] = "/t/x";
	static char host[] = "host", car[] = "car-7", key[] = "k";
	static char warning[] = "the field x has no effect";
	static char *machines[] = { host, car }, *warnings[] = { warning };

	s->id = 7;
	s->unique_session_name = name;
	s->state = STATE(STARTED);
	s->owner = owner;
	s->has_has_consumer = true;
	s->detach_key = key;
	s->created_ns = NOW - 90 * S;
	s->started_ns = NOW - 60 * S;
	s->has_remaining_ms = true;
	s->remaining_ms = 12000;
	s->n_buffers = 2;
	s->buffers = buffer_list;
	s->file = file;
	s->has_file_bytes = true;
	s->file_bytes = 3 * MIB;
	s->max_file_bytes = 10 * MIB;
	s->n_machines = 2;
	s->machines = machines;
	s->has_all_machines = true;
	s->all_machines = 2;
	s->has_producers = true;
	s->producers = 17;
	s->data_sources = 20;
	s->sequences = 40;
	s->has_packets = true;
	s->packets = 123456;
	s->has_packets_lost = true;
	s->packets_lost = 5;
	s->n_warnings = 1;
	s->warnings = warnings;
}

static void
make_buffers(void)
{
	static char big[] = "big", probes[] = "probes", car[] = "car-7";
	int i;

	for (i = 0; i < 2; i++) {
		tributary__session_state__buffer__init(&buffers[i]);
		perfetto__protos__trace_stats__buffer_stats__init(
		    &buffer_stats[i]);
		buffer_list[i] = &buffers[i];
		buffer_stats_list[i] = &buffer_stats[i];
		buffers[i].size = buffer_stats[i].buffer_size = 32 * MIB;
		buffers[i].has_used = buffers[i].has_discard = true;
	}
	buffers[0].name = big;
	buffers[0].used = 32 * MIB;
	buffers[0].has_bytes_lost = true;
	buffers[0].bytes_lost = 62 * MIB;
	buffers[0].write_wrap_count = 2;
	buffers[1].discard = true;
	buffer_stats[0].bytes_written = 94 * MIB;
	buffer_stats[0].bytes_overwritten = 94 * MIB * 2 / 3;
	buffer_stats[0].write_wrap_count = 2;
	tributary__session_state__writer__init(&writers[0]);
	writer_list[0] = &writers[0];
	writers[0].producer = probes;
	writers[0].machine = car;
	writers[0].pid = 42;
	writers[0].bytes = 47 * MIB;
	writers[0].chunks = 1000;
}

static int
setup(void **state)
{
	static char trigger[] = "crash", *triggers[] = { trigger };
	int i;

	for (i = 0; i < 2; i++)
		tributary__session_state__init(&sessions[i]);
	make_buffers();
	make_running(&sessions[0]);
	sessions[1].id = 8;
	sessions[1].state = STATE(CONFIGURED);
	sessions[1].created_ns = NOW - S;
	sessions[1].trigger_mode = 1;
	sessions[1].n_triggers = 1;
	sessions[1].triggers = triggers;
	tributary__query_sessions_reply__init(&reply);
	reply.now_ns = NOW;
	reply.has_all_sessions = true;
	reply.all_sessions = 3;
	reply.max_sessions = 64;
	reply.buffer_bytes = 96 * MIB;
	reply.max_buffer_bytes = 2048 * MIB;
	perfetto__protos__trace_stats__init(&stats);
	stats.n_buffer_stats = 2;
	stats.buffer_stats = buffer_stats_list;
	stats.flushes_requested = 12;
	stats.flushes_failed = 1;
	stats.invalid_packets = 3;
	return 0;
}

/* The same reply from two collectors, of which the second has fewer. */
static bool fleet;

static void
print(enum list_form form, size_t n)
{
	struct control_sessions_list lists[2];
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	lists[0] = (struct control_sessions_list){ .reply = &reply,
		.sessions = list, .n = n };
	lists[1] = (struct control_sessions_list){ .reply = &reply,
		.sessions = list, .n = 1 };
	if (fleet) {
		lists[0].collector = "c1";
		lists[1].collector = "second";
	}
	sessions_print(f, lists, fleet ? 2 : 1, form);
	fclose(f);
}

#define assert_says(what)                                                     \
	do {                                                                  \
		if (strstr(text, what) == NULL)                               \
			fail_msg("\"%s\" is not in\n%s", what, text);         \
	} while (0)

static void
sessions_of_a_fleet_are_told_by_their_collectors(void **state)
{
	fleet = true;
	print(LIST_TABLE, 2);
	assert_memory_equal(text, "COLLECTOR  ID  NAME ", 20);
	assert_says("\nc1         8   ");
	assert_says("\nsecond     7   robots ");
	assert_says("\nc1 has 3 of at most 64 sessions");
	assert_says("\nsecond has 3 of at most 64 sessions");
	print(LIST_LONG, 1);
	assert_says("session 7 (robots)\n  collector      second\n");
	print(LIST_JSON, 1);
	assert_says("{\"collector\": \"c1\", \"id\": 7, ");
	assert_says("{\"collector\": \"second\", \"id\": 7, ");
	fleet = false;
}

static void
the_table_has_a_line_for_each(void **state)
{
	print(LIST_TABLE, 2);
	assert_says("ID  NAME    STATE                OWNER     AGE         "
	    "LEFT    BUFFERS      FILL  LOST              MACHINES     "
	    "PRODUCERS  SIZE     FILE\n");
	assert_says("7   robots  started              uid 1000  1 min 30 s  "
	    "12.0 s  2, 64.0 MiB  50 %  62.0 MiB + 5 pkt  host, car-7  17     "
	    "    3.0 MiB  /t/x\n");
	assert_says("8   -       waits for a trigger  -         1.0 s       "
	    "-       -            -     -                 -            -      "
	    "    -        -\n");
	assert_says("The collector has 3 of at most 64 sessions, and 96.0 MiB "
	    "of 2.0 GiB of buffers in use.\n");
}

/* It is not ours: its numbers need not be of this world. */
static void
a_buffer_that_is_absurdly_full_is_shown(void **state)
{
	buffers[0].used = UINT64_MAX / 2;
	buffers[0].size = buffers[1].size = 1;
	print(LIST_TABLE, 1);
	assert_says("  18446744073709551615 %  ");
	print(LIST_LONG, 1);
	assert_says("18446744073709551615 %");
}

static void
many_machines_are_counted(void **state)
{
	sessions[0].all_machines = 412;
	print(LIST_TABLE, 1);
	assert_says("  412       17 ");
	print(LIST_LONG, 1);
	assert_says("  machines       host, car-7 and 410 more\n");
}

static void
an_empty_list_says_so(void **state)
{
	print(LIST_TABLE, 0);
	assert_says("There is no session that you may see.\n");
	print(LIST_JSON, 0);
	assert_string_equal(text, "[]\n");
}

static void
a_block_says_everything(void **state)
{
	print(LIST_LONG, 2);
	assert_says("session 7 (robots)\n  state          started\n");
	assert_says("none: detached under the key \"k\"");
	assert_says("(1 min 30 s ago)");
	assert_says("buffer 0       \"big\", 32.0 MiB, keeps the newest: 32.0 "
	    "MiB unread (100 %), wrapped 2 times, lost 62.0 MiB\n");
	assert_says("buffer 1       32.0 MiB, keeps the oldest: 0 bytes unread "
	    "(0 %)\n");
	assert_says("file           /t/x: 3.0 MiB of at most 10.0 MiB\n");
	assert_says("producers      17 with 20 data sources, 40 sequences\n");
	assert_says("packets        about 123,456\n");
	assert_says("lost           5 packets before they reached a buffer\n");
	assert_says("warning        the field x has no effect\n");
	assert_says("triggers       \"crash\" start it; hit 0 times\n");
}

static void
json_is_for_programs(void **state)
{
	print(LIST_JSON, 2);
	assert_says("[\n  {\"id\": 7, \"name\": \"robots\", \"state\": "
	    "\"started\", \"owner\": \"uid 1000\"");
	assert_says("\"remaining_ms\": 12000, \"buffers\": [{\"size\": "
	    "33554432, \"name\": \"big\", \"used\": 33554432, "
	    "\"fill_policy\": \"ring\", \"bytes_lost\": 65011712}, ");
	assert_says("\"file\": {\"bytes\": 3145728, \"path\": \"/t/x\", "
	    "\"max_bytes\": 10485760}");
	assert_says("\"machines\": [\"host\", \"car-7\"]");
	assert_says("},\n  {\"id\": 8, ");
	assert_says("\"triggers\": [\"crash\"]");
}

static void
nothing_of_a_peer_reaches_the_terminal_raw(void **state)
{
	/* A terminal's CSI in one character, and one that turns the line. */
	static char wild[] = "\x1b[2J\"\xff\x7f\xc2\x9b" "2J\u202e";
	static char *wilds[] = { wild, wild };
	enum list_form form;

	sessions[0].unique_session_name = sessions[0].owner = wild;
	sessions[0].file = sessions[0].detach_key = sessions[0].error = wild;
	sessions[0].compression = buffers[0].name = wild;
	sessions[0].machines = sessions[0].warnings = wilds;
	sessions[1].triggers = wilds;
	for (form = LIST_TABLE; form <= LIST_JSON; form++) {
		print(form, 2);
		assert_null(strchr(text, '\x1b'));
		assert_null(strchr(text, '\xff'));
		assert_null(strchr(text, '\x7f'));
		assert_null(strstr(text, "\xc2\x9b"));
		assert_null(strstr(text, "\u202e"));
	}
	assert_says("\\u001b[2J\\\"\\ufffd\\u007f\\u009b2J\\u202e");
}

static void
states_have_words(void **state)
{
	static char why[] = "no space left";

	sessions[1].trigger_mode = 0;
	assert_string_equal(session_state_text(&sessions[1]),
	    "waits for start");
	sessions[1].state = STATE(DISABLED);
	assert_string_equal(session_state_text(&sessions[1]), "stopped");
	sessions[1].error = why;
	assert_string_equal(session_state_text(&sessions[1]), "failed");
	sessions[1].state = STATE(CLONED);
	assert_string_equal(session_state_text(&sessions[1]), "snapshot");
	sessions[1].state = STATE(STATE_UNSPECIFIED);
	assert_string_equal(session_state_text(&sessions[1]), "unknown");
}

/* ---- statistics ---- */

static void
print_stats(bool json)
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	if (json)
		session_stats_json(
		    &(struct json_out){ .out = f, .row = "\n" }, &sessions[0], NOW);
	else
		session_stats_print(f, &sessions[0], NOW);
	fclose(f);
}

static void
statistics_are_read_like_an_expert_would(void **state)
{
	sessions[0].stats = &stats;
	sessions[0].has_file_bytes = false;
	sessions[0].n_writers = 1;
	sessions[0].writers = writer_list;
	print_stats(false);
	assert_says("session 7 (robots): started, 1 min 00 s recorded, about "
	    "123,456 packets\n");
	assert_says("  buffer 0 \"big\" wrapped 2 times: about the first 40 s "
	    "of 60 s are gone; 96 MiB would have held it.\n");
	assert_says("  buffer 1 is empty: nothing was written into its 32 "
	    "MiB.\n");
	assert_says("  3 packets malformed or forged, and dropped.\n");
	assert_says("  1 of 12 flushes timed out: a producer was too slow, or "
	    "hangs.\n");
	assert_says("  17 producers wrote 40 sequences; those that wrote "
	    "most:\n    probes, pid 42 on car-7: 47.0 MiB in 1,000 chunks of "
	    "buffer 0 (50 %)\n");
}

static void
the_end_of_a_session_bounds_what_was_recorded(void **state)
{
	sessions[0].stats = &stats;
	sessions[0].state = STATE(DISABLED);
	sessions[0].ended_ns = sessions[0].started_ns + 30 * S;
	sessions[0].has_file_bytes = false;
	print_stats(false);
	assert_says("session 7 (robots): stopped, 30.0 s recorded");
	assert_says("about the first 20 s of 30 s are gone");
	assert_says("buffer 1 stayed empty");
}

static void
statistics_for_programs_have_every_counter(void **state)
{
	sessions[0].stats = &stats;
	sessions[0].has_file_bytes = false;
	sessions[0].n_writers = 1;
	sessions[0].writers = writer_list;
	print_stats(true);
	assert_says("{\"session\": {\"id\": 7, ");
	assert_says("\"recorded_ms\": 60000, \"buffers\": [{\"stats\": "
	    "{\"buffer_size\": 33554432, \"bytes_written\": 98566144, ");
	assert_says("\"verdict\": \"cut\", ");
	assert_says("\"gone_ms\": 40000, \"enough_bytes\": 100663296, "
	    "\"sentences\": [{\"loss\": true, \"text\": \"wrapped 2 times: ");
	assert_says("\"losses\": [{\"unit\": \"packet\", \"cause\": "
	    "\"malformed or forged, and dropped\", \"count\": 3}]");
	assert_says("\"writers\": [{\"pid\": 42, \"buffer\": 0, \"chunks\": "
	    "1000, \"bytes\": 49283072, \"producer\": \"probes\", "
	    "\"machine\": \"car-7\"}]}");
}

static void
without_statistics_that_is_said(void **state)
{
	print_stats(false);
	assert_says("The statistics are too many to be told");
	print_stats(true);
	assert_says("\"recorded_ms\": 60000}");
}

/* ---- of a collector that is not ours ---- */

static void
a_foreign_collectors_sessions_are_shown_as_far_as_it_tells(void **state)
{
	static char name[] = "traced's", started[] = "STARTED";
	Perfetto__Protos__TracingServiceState__TracingSession one, *ones[1] = {
		&one };
	Perfetto__Protos__TracingServiceState st;
	Tributary__QuerySessionsReply *r;
	uint32_t kb[] = { 32768, 1024 };
	FILE *f;

	perfetto__protos__tracing_service_state__init(&st);
	perfetto__protos__tracing_service_state__tracing_session__init(&one);
	st.supports_tracing_sessions = true;
	st.n_tracing_sessions = 1;
	st.tracing_sessions = ones;
	one.id = 4;
	one.unique_session_name = name;
	one.state = started;
	one.consumer_uid = 1000;
	one.n_buffer_size_kb = 2;
	one.buffer_size_kb = kb;
	assert_non_null(r = perfetto_sessions(&st));
	f = fmemopen(text, sizeof(text), "w");
	sessions_print(f, &(struct control_sessions_list){ .reply = r,
	    .sessions = (const session_state **)r->sessions, .n = 1 }, 1,
	    LIST_TABLE);
	fclose(f);
	assert_says("4   traced's  started  uid 1000  -    -     2, 33.0 MiB  "
	    "-     -     -         -          -     -\n");
	assert_null(strstr(text, "The collector has"));
	tributary__query_sessions_reply__free_unpacked(r, NULL);
}

static void
an_old_collector_that_names_no_session_is_told_from_an_idle_one(void **state)
{
	Perfetto__Protos__TracingServiceState st;
	Tributary__QuerySessionsReply *r;

	perfetto__protos__tracing_service_state__init(&st);
	assert_non_null(r = perfetto_sessions(&st));
	assert_int_equal(r->n_sessions, 0);
	tributary__query_sessions_reply__free_unpacked(r, NULL);
	st.num_sessions = 2;
	assert_null(perfetto_sessions(&st));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(the_table_has_a_line_for_each),
		T(sessions_of_a_fleet_are_told_by_their_collectors),
		T(a_buffer_that_is_absurdly_full_is_shown),
		T(many_machines_are_counted),
		T(an_empty_list_says_so),
		T(a_block_says_everything),
		T(json_is_for_programs),
		T(nothing_of_a_peer_reaches_the_terminal_raw),
		T(states_have_words),
		T(statistics_are_read_like_an_expert_would),
		T(the_end_of_a_session_bounds_what_was_recorded),
		T(statistics_for_programs_have_every_counter),
		T(without_statistics_that_is_said),
		T(a_foreign_collectors_sessions_are_shown_as_far_as_it_tells),
		T(an_old_collector_that_names_no_session_is_told_from_an_idle_one),
	};

	return cmocka_run_group_tests_name("sessions_text", tests, NULL, NULL);
}
