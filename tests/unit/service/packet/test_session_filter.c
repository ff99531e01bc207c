#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "protos/trace_stats.pb-c.h"
#include "service/ingest/commit.h"
#include "service/onlookers/clone.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/output/session_stats.h"
#include "service/packet/session_filter.h"
#include "tests/unit/service/filter/assembler.h"
#include "tests/unit/service/session/fixture.h"

#define RING "buffers { size_kb: 64 } "
#define SOURCE "data_sources { config { name: \"src\" } } "
#define ONE_SOURCE RING SOURCE

/* TracePacket and TestEvent (reference wire-format.md). */
enum {
	PACKET_TRUSTED_UID = 3,
	PACKET_SEQUENCE = 10,
	PACKET_TRACE_STATS = 35,
	PACKET_TRUSTED_PID = 79,
	PACKET_FOR_TESTING = 900,
	TEST_EVENT_STR = 1,
};

static struct assembler code;
static char config[16384];

/* A config with `more` and a filter of what is in `code`. */
static const char *
config_with_filter(const char *more, const char *filter_more)
{
	size_t i, n;

	asm_done(&code, 0);
	n = (size_t)snprintf(config, sizeof(config),
	    "%s trace_filter { %s bytecode_v2: \"", more, filter_more);
	for (i = 0; i < code.len; i++)
		n += (size_t)snprintf(config + n, sizeof(config) - n,
		    "\\%03o", code.bytes[i]);
	assert_true(n + 4 < sizeof(config));
	memcpy(config + n, "\" }", 4);
	return config;
}

/* Lets test events through (strings by the rules), and statistics. */
static void
assemble(bool trusted)
{
	asm_trace(&code);
	if (trusted)
		asm_field(&code, PACKET_TRUSTED_UID);
	if (trusted)
		asm_field(&code, PACKET_SEQUENCE);
	asm_field(&code, PACKET_TRACE_STATS);
	if (trusted)
		asm_field(&code, PACKET_TRUSTED_PID);
	asm_nested(&code, PACKET_FOR_TESTING, 2);
	asm_end(&code);
	asm_string(&code, TEST_EVENT_STR);
	asm_end(&code);
}

struct bed {
	struct fixture *f;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
};

static void
bed_init(struct bed *b, void **state, const char *text)
{
	b->f = *state;
	fake_producer_init(&b->p, b->f, "p", true);
	b->p.ack_flushes = true;
	fake_producer_register(&b->p, "src", false, false);
	if (fake_enable(b->f, &b->c, text, -1) == NULL)
		fail_msg("%s", b->c.error);
}

static void
bed_done(struct bed *b)
{
	if (b->c.s != NULL)
		session_free(b->c.s);
	fake_producer_done(&b->p);
}

static const Perfetto__Protos__TraceStats *
stats_of(const struct fake_trace *t)
{
	size_t i;

	for (i = t->n; i-- > 0;)
		if (t->packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS)
			return t->packets[i]->trace_stats;
	fail_msg("no statistics");
	return NULL;
}

static void
only_what_the_filter_names_leaves_the_session(void **state)
{
	struct bed b;
	size_t i, empty = 0;

	assemble(false);
	bed_init(&b, state, config_with_filter(ONE_SOURCE, ""));
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 0, 77, "hello");
	fake_read(b.c.s, &b.t);
	assert_int_equal(fake_trace_count(&b.t, "hello"), 1);
	for (i = 0; i < b.t.n; i++) {
		assert_false(b.t.packets[i]->has_timestamp);
		assert_int_equal(b.t.packets[i]->trusted_packet_sequence_id,
		    0);
		empty += b.t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA__NOT_SET;
	}
	/* The others are counted still, by nothing. */
	assert_int_equal(empty, b.t.n - 2);
	assert_true(empty > 3);
	fake_trace_done(&b.t);
	bed_done(&b);
}

static void
trusted_fields_pass_where_the_filter_names_them(void **state)
{
	struct bed b;
	size_t i;

	assemble(true);
	bed_init(&b, state, config_with_filter(ONE_SOURCE, ""));
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 0, 77, "hello");
	fake_read(b.c.s, &b.t);
	for (i = 0; i < b.t.n; i++)
		assert_int_equal(b.t.packets[i]->trusted_packet_sequence_id,
		    b.t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING ? 2 : 1);
	fake_trace_done(&b.t);
	bed_done(&b);
}

static void
strings_are_written_over(void **state)
{
	struct bed b;

	assemble(false);
	bed_init(&b, state, config_with_filter(ONE_SOURCE,
	    "string_filter_chain { rules { policy: SFP_MATCH_REDACT_GROUPS "
	    "regex_pattern: \"key=(.*)\" } }"));
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 0, 77, "key=secret");
	fake_read(b.c.s, &b.t);
	assert_int_equal(fake_trace_count(&b.t, "key=P60RED"), 1);
	fake_trace_done(&b.t);
	bed_done(&b);
}

static void
packets_of_several_pieces_are_filtered_as_one(void **state)
{
	char text[9000], want[9000];
	struct pb_writer packet, chunk, request;
	struct bed b;

	assemble(false);
	bed_init(&b, state, config_with_filter(ONE_SOURCE,
	    "string_filter_chain { rules { policy: SFP_MATCH_REDACT_GROUPS "
	    "regex_pattern: \"(x+)end\" } }"));
	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(text) - 4, "end", 4);
	memset(want, '-', sizeof(want));
	memcpy(want, "P60REDACTED", 11);
	memcpy(want + sizeof(want) - 4, "end", 4);
	pb_writer_init(&packet);
	fake_packet(&packet, 5, text);
	pb_writer_init(&request);
	/* It goes on in the next chunk, and comes from the one before. */
	pb_writer_init(&chunk);
	{
		struct pb_writer body;
		size_t half = packet.len / 2;

		pb_writer_init(&body);
		pb_put_varint(&body, half);
		pb_put_raw(&body, packet.data, half);
		fake_raw_chunk(&chunk, 1, 0, 1, 2, body.data, body.len);
		fake_move(&request, 0, 0, b.p.last_buffer, &chunk);
		pb_writer_reset(&body);
		pb_writer_reset(&chunk);
		pb_put_varint(&body, packet.len - half);
		pb_put_raw(&body, packet.data + half, packet.len - half);
		fake_raw_chunk(&chunk, 1, 1, 1, 1, body.data, body.len);
		fake_move(&request, 0, 0, b.p.last_buffer, &chunk);
		pb_writer_done(&body);
	}
	assert_int_equal(fake_commit_request(&b.p, &request), COMMIT_OK);
	fake_read(b.c.s, &b.t);
	assert_int_equal(fake_trace_count(&b.t, want), 1);
	fake_trace_done(&b.t);
	pb_writer_done(&chunk);
	pb_writer_done(&packet);
	bed_done(&b);
}

static void
a_packet_that_is_not_sound_inside_is_emptied_and_counted(void **state)
{
	static const uint8_t bad[] = { 6, 0xa2, 0x38, 3, 0x0a, 9, 'x' };
	const Perfetto__Protos__TraceStats__FilterStats *st;
	struct pb_writer chunk, request;
	struct bed b;

	assemble(false);
	bed_init(&b, state, config_with_filter(ONE_SOURCE, ""));
	pb_writer_init(&request);
	pb_writer_init(&chunk);
	fake_raw_chunk(&chunk, 1, 0, 1, 0, bad, sizeof(bad));
	fake_move(&request, 0, 0, b.p.last_buffer, &chunk);
	assert_int_equal(fake_commit_request(&b.p, &request), COMMIT_OK);
	pb_writer_done(&chunk);
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 1, 77, "good");
	fake_read(b.c.s, &b.t);
	assert_int_equal(fake_trace_count(&b.t, NULL), 1);
	assert_int_equal(fake_trace_count(&b.t, "good"), 1);
	st = stats_of(&b.t)->filter_stats;
	assert_non_null(st);
	assert_int_equal(st->errors, 1);
	/* All before the statistics themselves are in them. */
	assert_int_equal(st->input_packets, b.t.n - 1);
	fake_trace_done(&b.t);
	bed_done(&b);
}

static void
statistics_say_what_each_buffer_lost(void **state)
{
	Perfetto__Protos__TraceStats *st;
	struct pb_writer w;
	struct bed b;

	assemble(true);
	bed_init(&b, state, config_with_filter(RING RING RING "data_sources { "
	    "config { name: \"src\" target_buffer: 1 } }", ""));
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 0, 77, "hello");
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 1, 78, "again");
	fake_read(b.c.s, &b.t);
	fake_trace_done(&b.t);
	pb_writer_init(&w);
	session_stats_message(b.c.s, &w);
	st = perfetto__protos__trace_stats__unpack(NULL, w.len, w.data);
	pb_writer_done(&w);
	assert_non_null(st);
	assert_non_null(st->filter_stats);
	assert_int_equal(st->filter_stats->errors, 0);
	assert_true(st->filter_stats->input_bytes >
	    st->filter_stats->output_bytes);
	assert_true(st->filter_stats->output_bytes > 0);
	assert_true(st->filter_stats->time_taken_ns > 0);
	assert_int_equal(st->filter_stats->n_bytes_discarded_per_buffer, 3);
	assert_int_equal(st->filter_stats->bytes_discarded_per_buffer[0], 0);
	/* Of each: the time stamp, of two bytes. */
	assert_int_equal(st->filter_stats->bytes_discarded_per_buffer[1], 4);
	assert_int_equal(st->filter_stats->bytes_discarded_per_buffer[2], 0);
	perfetto__protos__trace_stats__free_unpacked(st, NULL);
	bed_done(&b);
}

static void
without_a_filter_there_are_no_statistics_of_one(void **state)
{
	struct bed b;

	bed_init(&b, state, ONE_SOURCE);
	fake_read(b.c.s, &b.t);
	assert_null(stats_of(&b.t)->filter_stats);
	fake_trace_done(&b.t);
	bed_done(&b);
}

static void
a_filter_that_does_not_load_refuses_the_session(void **state)
{
	struct fake_consumer c, other;
	struct fixture *f = *state;

	assert_non_null(fake_enable(f, &other, ONE_SOURCE, -1));
	assert_null(fake_enable(f, &c, ONE_SOURCE "exclusive_prio: 5 "
	    "trace_filter { bytecode_v2: \"xyz\" }", -1));
	assert_non_null(strstr(c.error, "Trace filter bytecode invalid"));
	assert_null(fake_enable(f, &c, ONE_SOURCE "trace_filter { }", -1));
	assert_non_null(strstr(c.error, "Trace filter bytecode invalid"));
	assemble(false);
	assert_null(fake_enable(f, &c, config_with_filter(ONE_SOURCE,
	    "string_filter_chain { rules { policy: SFP_MATCH_BREAK "
	    "regex_pattern: \"(\" } }"), -1));
	assert_non_null(strstr(c.error, "string filtering rules"));
	/* Nobody was ended for it. */
	assert_int_equal(other.s->state, SESSION_STARTED);
	assert_int_equal(f->service->n_sessions, 1);
	session_free(other.s);
}

struct answer {
	size_t calls;
	struct session *clone;
};

static void
note(void *arg, struct session *clone, bool was_file, const char *error)
{
	struct answer *a = arg;

	a->calls++;
	a->clone = clone;
}

static bool
is_told(void *arg)
{
	return ((struct answer *)arg)->calls > 0;
}

/* Whether a clone by this one lets time stamps through. */
static bool
clone_is_whole(struct bed *b, uint32_t uid, bool skip)
{
	struct clone_request r = { .session_id = b->c.s->id,
	    .who = fake_user(uid), .fd = -1, .skip_trace_filter = skip };
	struct answer a = { 0 };
	bool whole = false;
	size_t i;

	clone_start(b->f->service, &r, note, &a);
	fixture_wait(b->f, is_told, &a);
	assert_non_null(a.clone);
	fake_read(a.clone, &b->t);
	assert_int_equal(fake_trace_count(&b->t, "hello"), 1);
	for (i = 0; i < b->t.n; i++)
		whole |= b->t.packets[i]->has_timestamp;
	assert_int_equal(stats_of(&b->t)->filter_stats == NULL, whole);
	fake_trace_done(&b->t);
	session_free(a.clone);
	return whole;
}

static void
a_clone_has_the_filter_unless_who_may_asks_to_skip_it(void **state)
{
	struct bed b;

	assemble(false);
	bed_init(&b, state, config_with_filter(ONE_SOURCE
	    "bugreport_score: 1 ", ""));
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 0, 77, "hello");
	assert_false(clone_is_whole(&b, 1000, false));
	assert_true(clone_is_whole(&b, 1000, true));
	assert_false(clone_is_whole(&b, 0, false));
	assert_true(clone_is_whole(&b, 0, true));
	/* Somebody else may have it as it is for everybody. */
	assert_false(clone_is_whole(&b, 2000, true));
	fake_read(b.c.s, &b.t);
	assert_int_equal(stats_of(&b.t)->filter_stats->input_packets,
	    b.t.n - 1);
	fake_trace_done(&b.t);
	bed_done(&b);
}

static void
a_file_has_as_many_bytes_of_what_is_left_as_it_may(void **state)
{
	struct fixture *f = *state;
	char path[128], text[400];
	struct stat st;
	struct bed b;
	uint32_t i;

	/* A packet of 400 bytes becomes one of two. */
	asm_trace(&code);
	asm_end(&code);
	snprintf(path, sizeof(path), "%s/trace", f->dir);
	snprintf(text, sizeof(text), ONE_SOURCE "write_into_file: true "
	    "output_path: \"trace\" file_write_period_ms: 3600000 "
	    "max_file_size_bytes: 1001 ");
	bed_init(&b, state, config_with_filter(text, ""));
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < 5000 && !b.c.disabled; i++) {
		if (fake_commit(&b.p, b.p.last_buffer, 1, i, 1, text) !=
		    COMMIT_OK)
			i--;
		loop_run_once(f->loop);
	}
	fixture_wait(f, fake_disabled, &b.c);
	assert_true(i > 200);
	assert_int_equal(stat(path, &st), 0);
	/* Half is kept for statistics, of which as little is left. */
	assert_int_equal(st.st_size, 500 + 2);
	bed_done(&b);
}

static void
slow_rules_leave_others_their_turn(void **state)
{
	struct packet_out *out = packet_out_new_reply();
	enum readback_result r;
	char text[61];
	struct bed b;
	size_t calls = 0;
	uint32_t i;

	assemble(false);
	bed_init(&b, state, config_with_filter(ONE_SOURCE,
	    "string_filter_chain { rules { policy: SFP_MATCH_REDACT_GROUPS "
	    "regex_pattern: \"(?:a+)+[bc]\" } }"));
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	/* Each takes a match to its limit. */
	for (i = 0; i < 120; i++)
		(void)fake_commit(&b.p, b.p.last_buffer, 1, i, 1, text);
	assert_non_null(out);
	readback_begin(b.c.s->readback);
	do {
		r = readback_fill(b.c.s->readback, out, NULL);
		calls++;
		if (r == READBACK_FULL)
			assert_true(packet_out_room(out));
	} while (r == READBACK_FULL);
	assert_int_equal(r, READBACK_DONE);
	assert_true(calls > 2);
	packet_out_free(out);
	bed_done(&b);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(only_what_the_filter_names_leaves_the_session),
		T(trusted_fields_pass_where_the_filter_names_them),
		T(strings_are_written_over),
		T(packets_of_several_pieces_are_filtered_as_one),
		T(a_packet_that_is_not_sound_inside_is_emptied_and_counted),
		T(statistics_say_what_each_buffer_lost),
		T(without_a_filter_there_are_no_statistics_of_one),
		T(a_filter_that_does_not_load_refuses_the_session),
		T(a_clone_has_the_filter_unless_who_may_asks_to_skip_it),
		T(slow_rules_leave_others_their_turn),
		T(a_file_has_as_many_bytes_of_what_is_left_as_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
