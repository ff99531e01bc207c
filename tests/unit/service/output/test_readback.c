#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/config/config.h"
#include "service/ingest/commit.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/sink/file_sink.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"

#define RING "buffers { size_kb: 256 } "
#define SOURCE "data_sources { config { name: \"src\" } } "
#define ONE_SOURCE RING SOURCE
#define KIND(k) PERFETTO__PROTOS__TRACE_PACKET__DATA_##k

static size_t
count_kind(const struct fake_trace *t, int kind)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++)
		n += (int)t->packets[i]->data_case == kind;
	return n;
}

/* Where the first packet of a kind stands; fails when there is none. */
static size_t
place_of(const struct fake_trace *t, int kind)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if ((int)t->packets[i]->data_case == kind)
			return i;
	fail_msg("no packet of kind %d", kind);
	return 0;
}

static bool
reads_nothing(struct session *s)
{
	struct fake_trace t;
	size_t n;

	fake_read(s, &t);
	n = t.n;
	fake_trace_done(&t);
	return n == 0;
}

static void
the_service_speaks_first_and_the_statistics_stand_last(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "data");
	fake_read(c.s, &t);
	assert_int_equal(place_of(&t, KIND(CLOCK_SNAPSHOT)), 0);
	assert_true(place_of(&t, KIND(CLOCK_SNAPSHOT)) <
	    place_of(&t, KIND(SYNCHRONIZATION_MARKER)));
	assert_true(place_of(&t, KIND(SYNCHRONIZATION_MARKER)) <
	    place_of(&t, KIND(TRACE_CONFIG)));
	assert_true(place_of(&t, KIND(TRACE_CONFIG)) <
	    place_of(&t, KIND(TRACE_UUID)));
	assert_true(place_of(&t, KIND(TRACE_UUID)) <
	    place_of(&t, KIND(SYSTEM_INFO)));
	assert_true(place_of(&t, KIND(SYSTEM_INFO)) <
	    place_of(&t, KIND(SERVICE_EVENT)));
	assert_true(place_of(&t, KIND(SERVICE_EVENT)) <
	    place_of(&t, KIND(FOR_TESTING)));
	assert_int_equal(place_of(&t, KIND(TRACE_STATS)), t.n - 1);
	fake_trace_done(&t);
	/* Said once; nothing new, nothing more. */
	fake_read(c.s, &t);
	assert_int_equal(t.n, 0);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
markers_and_statistics_come_again_when_asked_for(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_read(c.s, &t);
	fake_trace_done(&t);
	readback_want_marker(c.s->readback);
	fake_read(c.s, &t);
	assert_int_equal(count_kind(&t, KIND(SYNCHRONIZATION_MARKER)), 1);
	assert_int_equal(count_kind(&t, KIND(TRACE_CONFIG)), 0);
	assert_int_equal(count_kind(&t, KIND(TRACE_STATS)), 0);
	fake_trace_done(&t);
	readback_want_stats(c.s->readback);
	fake_read(c.s, &t);
	assert_int_equal(count_kind(&t, KIND(TRACE_STATS)), 1);
	fake_trace_done(&t);
	session_free(c.s);
}

static void
what_the_config_switches_off_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE "builtin_data_sources { "
	    "disable_clock_snapshotting: true disable_trace_config: true "
	    "disable_system_info: true disable_service_events: true "
	    "disable_chunk_usage_histograms: true }", -1));
	fake_read(c.s, &t);
	assert_int_equal(count_kind(&t, KIND(CLOCK_SNAPSHOT)), 0);
	assert_int_equal(count_kind(&t, KIND(TRACE_CONFIG)), 0);
	assert_int_equal(count_kind(&t, KIND(SYSTEM_INFO)), 0);
	assert_int_equal(count_kind(&t, KIND(SERVICE_EVENT)), 0);
	assert_int_equal(count_kind(&t, KIND(TRACE_UUID)), 1);
	fake_trace_done(&t);
	session_free(c.s);
}

static void
a_remote_machine_is_introduced_and_its_clocks_come_again(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_read(c.s, &t);
	fake_trace_done(&t);
	/* Of no interest as long as it has no data here. */
	assert_int_equal(machine_set_system_info(m, (const uint8_t *)"", 0),
	    0);
	assert_int_equal(machine_set_clock_sync(m,
	    (const uint8_t *)"\xda\x06\x00", 3), 0);
	assert_true(reads_nothing(c.s));
	readback_saw_machine(c.s->readback, m);
	readback_saw_machine(c.s->readback, m);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.packets[0]->data_case, KIND(SYSTEM_INFO));
	assert_int_equal(t.packets[0]->machine_id, 7);
	fake_trace_done(&t);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 0);
	fake_trace_done(&t);
	assert_int_equal(machine_set_clock_sync(m,
	    (const uint8_t *)"\xda\x06\x00", 3), 0);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 1);
	fake_trace_done(&t);
	session_free(c.s);
}

/* A producer of machine m, with one data source, in whatever runs. */
static void
add_producer_of(struct fake_producer *p, struct fixture *f, struct machine *m)
{
	struct producer_hello hello = { .name = "remote", .machine = m,
		.emulated = true };

	fake_producer_hello(p, f, &hello);
	fake_producer_register(p, "src", false, false);
}

#define EVERYWHERE ONE_SOURCE "trace_all_machines: true "

static void
a_machine_that_joins_late_is_introduced_before_its_data(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, EVERYWHERE, -1));
	fake_read(c.s, &t);
	fake_trace_done(&t);
	assert_int_equal(machine_set_system_info(m,
	    (const uint8_t *)"\x12\x01x", 3), 0);
	assert_int_equal(machine_set_clock_sync(m,
	    (const uint8_t *)"\xda\x06\x00", 3), 0);
	add_producer_of(&p, f, m);
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "data");
	fake_read(c.s, &t);
	assert_true(place_of(&t, KIND(SYSTEM_INFO)) <
	    place_of(&t, KIND(FOR_TESTING)));
	assert_true(place_of(&t, KIND(REMOTE_CLOCK_SYNC)) <
	    place_of(&t, KIND(FOR_TESTING)));
	assert_string_equal(t.packets[place_of(&t, KIND(SYSTEM_INFO))]->
	    system_info->android_build_fingerprint, "x");
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
what_a_machine_says_of_itself_after_its_first_packets_comes_too(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, EVERYWHERE, -1));
	add_producer_of(&p, f, m);
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "data");
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "data"), 1);
	/* The host, and the name alone of the machine. */
	assert_int_equal(count_kind(&t, KIND(SYSTEM_INFO)), 2);
	assert_int_equal(count_kind(&t, KIND(REMOTE_CLOCK_SYNC)), 0);
	fake_trace_done(&t);
	assert_true(reads_nothing(c.s));
	assert_int_equal(machine_set_clock_sync(m,
	    (const uint8_t *)"\xda\x06\x00", 3), 0);
	fake_read(c.s, &t);
	assert_int_equal(count_kind(&t, KIND(SYSTEM_INFO)), 0);
	assert_int_equal(count_kind(&t, KIND(REMOTE_CLOCK_SYNC)), 1);
	fake_trace_done(&t);
	assert_int_equal(machine_set_system_info(m,
	    (const uint8_t *)"\x12\x01x", 3), 0);
	fake_read(c.s, &t);
	assert_int_equal(count_kind(&t, KIND(SYSTEM_INFO)), 1);
	assert_int_equal(t.packets[0]->machine_id, 7);
	fake_trace_done(&t);
	/* The same again is nothing new; something else is. */
	assert_int_equal(machine_set_system_info(m,
	    (const uint8_t *)"\x12\x01x", 3), 0);
	assert_true(reads_nothing(c.s));
	assert_int_equal(machine_set_system_info(m,
	    (const uint8_t *)"\x12\x01y", 3), 0);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 1);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_machine_without_a_relay_is_introduced_by_its_name(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_read(c.s, &t);
	fake_trace_done(&t);
	readback_saw_machine(c.s->readback, m);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.packets[0]->machine_id, 7);
	assert_string_equal(t.packets[0]->system_info->machine_name, "phone");
	fake_trace_done(&t);
	assert_true(reads_nothing(c.s));
	session_free(c.s);
}

static void
a_machine_has_its_name_beside_what_it_says_and_when_it_changes(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_read(c.s, &t);
	fake_trace_done(&t);
	assert_int_equal(machine_set_system_info(m,
	    (const uint8_t *)"\x12\x01x", 3), 0);
	readback_saw_machine(c.s->readback, m);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.packets[0]->system_info->
	    android_build_fingerprint, "x");
	assert_string_equal(t.packets[0]->system_info->machine_name, "phone");
	fake_trace_done(&t);
	assert_int_equal(machine_rename(m, "phone"), 0);
	assert_true(reads_nothing(c.s));
	assert_int_equal(machine_rename(m, "tablet"), 0);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.packets[0]->system_info->machine_name, "tablet");
	fake_trace_done(&t);
	session_free(c.s);
}

static void
a_session_that_wants_no_system_info_has_no_news_of_it(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE
	    "builtin_data_sources { disable_system_info: true } ", -1));
	assert_int_equal(machine_set_system_info(m, (const uint8_t *)"", 0),
	    0);
	readback_saw_machine(c.s->readback, m);
	fake_read(c.s, &t);
	assert_int_equal(count_kind(&t, KIND(SYSTEM_INFO)), 0);
	fake_trace_done(&t);
	assert_true(reads_nothing(c.s));
	assert_int_equal(machine_set_clock_sync(m,
	    (const uint8_t *)"\xda\x06\x00", 3), 0);
	assert_false(reads_nothing(c.s));
	session_free(c.s);
}

/* Marked by the id of its machine. */
static void
set_clocks(struct machine *m, uint8_t mark)
{
	const uint8_t sync[] = { 0x90, 0x06, mark, 0xda, 0x06, 0x00 };

	assert_int_equal(machine_set_clock_sync(m, sync, sizeof(sync)), 0);
}

static void
clocks_of_the_past_come_once_and_before_the_newest(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct fake_consumer c;
	struct fake_trace t;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	readback_saw_machine(c.s->readback, m);
	fake_read(c.s, &t);
	fake_trace_done(&t);
	set_clocks(m, 1);
	assert_int_equal(machine_keep_clock_sync(m), 0);
	set_clocks(m, 2);
	set_clocks(m, 3);
	assert_int_equal(machine_keep_clock_sync(m), 0);
	set_clocks(m, 4);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.packets[0]->machine_id, 1);
	assert_int_equal(t.packets[1]->machine_id, 3);
	assert_int_equal(t.packets[2]->machine_id, 4);
	fake_trace_done(&t);
	assert_true(reads_nothing(c.s));
	/* One that it has got already is not the past to it. */
	assert_int_equal(machine_keep_clock_sync(m), 0);
	set_clocks(m, 5);
	fake_read(c.s, &t);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.packets[0]->machine_id, 5);
	fake_trace_done(&t);
	session_free(c.s);
}

static void
malformed_and_forged_packets_are_dropped_counted_and_told(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct pb_writer chunk, w;
	/* Fragments: a good one, trusted_uid, a cut one, two good ones. */
	static const uint8_t fragments[] = { 2, 0x40, 4, 2, 0x18, 0, 2, 0x0a,
		9, 2, 0x40, 5, 2, 0x40, 6 };
	size_t i, good = 0;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	pb_writer_init(&chunk);
	pb_writer_init(&w);
	fake_raw_chunk(&chunk, 1, 0, 5, 0, fragments, sizeof(fragments));
	fake_move(&w, 0, 0, p.last_buffer, &chunk);
	pb_writer_done(&chunk);
	assert_int_equal(fake_commit_request(&p, &w), COMMIT_OK);
	fake_read(c.s, &t);
	assert_int_equal(c.s->invalid_packets, 2);
	for (i = 0; i < t.n; i++) {
		if (t.packets[i]->timestamp < 4 || t.packets[i]->timestamp > 6)
			continue;
		good++;
		assert_int_equal(t.packets[i]->previous_packet_dropped,
		    t.packets[i]->timestamp == 5 ? TB_LOSS_PRESENT |
		    TB_LOSS_CHUNK_CORRUPTED : 0);
	}
	assert_int_equal(good, 3);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
buffers_take_turns_so_that_none_starves(void **state)
{
	static char big[20000];
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct packet_out *out;
	struct fake_trace t;
	size_t unread[2];
	uint32_t i;

	memset(big, 'x', sizeof(big) - 1);
	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, "buffers { size_kb: 2048 } "
	    "buffers { size_kb: 2048 } data_sources { config { name: \"src\" "
	    "target_buffer: 0 } } data_sources { config { name: \"src\" "
	    "target_buffer: 1 } }", -1));
	fake_read(c.s, &t);
	fake_trace_done(&t);
	for (i = 0; i < 40; i++) {
		(void)fake_commit(&p, c.s->buffers[0].id, 1, i, 1, big);
		(void)fake_commit(&p, c.s->buffers[1].id, 2, i, 1, big);
	}
	out = packet_out_new_reply();
	readback_begin(c.s->readback);
	assert_int_equal(readback_fill(c.s->readback, out, NULL),
	    READBACK_FULL);
	unread[0] = trace_buffer_unread(c.s->buffers[0].tb);
	unread[1] = trace_buffer_unread(c.s->buffers[1].tb);
	while (!packet_out_room(out))
		packet_out_next(out);
	/* The other one's turn, though the first is not empty. */
	assert_int_equal(readback_fill(c.s->readback, out, NULL),
	    READBACK_FULL);
	assert_true((trace_buffer_unread(c.s->buffers[0].tb) == unread[0]) !=
	    (trace_buffer_unread(c.s->buffers[1].tb) == unread[1]));
	assert_true(trace_buffer_unread(c.s->buffers[0].tb) ==
	    trace_buffer_unread(c.s->buffers[1].tb));
	packet_out_free(out);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_limit_is_never_passed_and_ends_on_a_packet(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct packet_out *out;
	struct sink_batch b = { .nominal = SINK_BATCH_BYTES };
	enum readback_result r;
	uint64_t limit, left;
	uint32_t i;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	for (limit = 0; limit < 6000; limit += 397) {
		assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
		for (i = 0; i < 100; i++)
			(void)fake_commit(&p, p.last_buffer, 1, i, 1,
			    "about a hundred bytes of text that nobody will "
			    "ever read, and some more of it");
		b.len = 0;
		left = limit;
		out = packet_out_new_file();
		packet_out_set_batch(out, &b);
		readback_begin(c.s->readback);
		r = readback_fill(c.s->readback, out, &left);
		assert_int_equal(r, READBACK_LIMIT);
		assert_true(b.len <= limit);
		packet_out_free(out);
		session_free(c.s);
	}
	free(b.data);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_service_speaks_first_and_the_statistics_stand_last),
		T(markers_and_statistics_come_again_when_asked_for),
		T(what_the_config_switches_off_is_left_out),
		T(a_remote_machine_is_introduced_and_its_clocks_come_again),
		T(a_machine_that_joins_late_is_introduced_before_its_data),
		T(what_a_machine_says_of_itself_after_its_first_packets_comes_too),
		T(a_machine_without_a_relay_is_introduced_by_its_name),
		T(a_machine_has_its_name_beside_what_it_says_and_when_it_changes),
		T(a_session_that_wants_no_system_info_has_no_news_of_it),
		T(clocks_of_the_past_come_once_and_before_the_newest),
		T(malformed_and_forged_packets_are_dropped_counted_and_told),
		T(buffers_take_turns_so_that_none_starves),
		T(a_limit_is_never_passed_and_ends_on_a_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
