#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tributary/data_source.h>
#include <tributary/session.h>
#include <tributary/track_event.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define WAIT_MS 60000

TRIBUTARY_CATEGORY(unit, "unit", "", "");

struct seen {
	unsigned packets, events, stats, snapshots, service;
	unsigned end_after; /* 0: all are wanted */
};

static bool
see(const void *data, size_t len, void *arg)
{
	struct seen *s = arg;
	struct pb_reader r;
	struct pb_field f;

	s->packets++;
	PB_FOREACH(&f, &r, data, len) {
		s->events += f.number == TracePacket_track_event;
		s->stats += f.number == TracePacket_trace_stats;
		s->snapshots += f.number == TracePacket_clock_snapshot;
		s->service += f.number ==
		    TracePacket_trusted_packet_sequence_id && f.value == 1;
	}
	assert_false(r.bad);
	return s->end_after == 0 || s->packets < s->end_after;
}

static struct tributary_local *
begin(void)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l;
	char why[200];

	l = tributary_session_local_simple(&o, why, sizeof(why));
	assert_non_null(l);
	assert_true(tributary_local_start(l));
	return l;
}

static void
events_are_read(void **state)
{
	struct tributary_local *l = begin();
	struct seen s = { 0 };

	TRIBUTARY_INSTANT(unit, "one");
	assert_true(tributary_local_stop(l, WAIT_MS));
	TRIBUTARY_INSTANT(unit, "too late");
	assert_true(tributary_local_read(l, see, &s));
	assert_int_equal(s.events, 1);
	assert_int_equal(s.stats, 1);
	/* The first, and that of the end. */
	assert_true(s.snapshots >= 2);
	assert_true(s.service >= 6);
	tributary_local_free(l);
}

static void
a_reading_may_end_early(void **state)
{
	struct tributary_local *l = begin();
	struct seen s = { .end_after = 2 };

	assert_false(tributary_local_read(l, see, &s));
	assert_int_equal(s.packets, 2);
	assert_string_not_equal(tributary_local_why(l), "");
	tributary_local_free(l);
}

static void
a_session_that_runs_is_read_on(void **state)
{
	struct tributary_local *l = begin();
	struct seen first = { 0 }, second = { 0 };

	TRIBUTARY_INSTANT(unit, "one");
	assert_true(tributary_local_read(l, see, &first));
	TRIBUTARY_INSTANT(unit, "two");
	assert_true(tributary_local_read(l, see, &second));
	assert_int_equal(first.events, 1);
	assert_int_equal(second.events, 1);
	tributary_local_free(l);
}

static void
a_clone_has_all_that_the_session_has(void **state)
{
	struct tributary_local *l = begin(), *copy;
	struct seen s = { 0 };

	TRIBUTARY_INSTANT(unit, "one");
	assert_true(tributary_local_read(l, see, &s));
	TRIBUTARY_INSTANT(unit, "two");
	copy = tributary_local_clone(l, WAIT_MS);
	assert_non_null(copy);
	TRIBUTARY_INSTANT(unit, "three");
	memset(&s, 0, sizeof(s));
	assert_true(tributary_local_read(copy, see, &s));
	assert_int_equal(s.events, 2);
	assert_false(tributary_local_start(copy));
	tributary_local_free(copy);
	tributary_local_free(l);
}

static void
calls_out_of_order_are_refused(void **state)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l;
	char why[200];

	l = tributary_session_local_simple(&o, why, sizeof(why));
	assert_non_null(l);
	assert_false(tributary_local_flush(l, WAIT_MS));
	assert_false(tributary_local_stop(l, WAIT_MS));
	assert_true(tributary_local_start(l));
	assert_false(tributary_local_start(l));
	assert_true(tributary_local_flush(l, WAIT_MS));
	tributary_local_free(l);
}

/* A source that is done with its stop later. */
static struct tributary_instance *stopping;

static bool
stop_later(struct tributary_instance *i, void *context)
{
	stopping = i;
	tributary_stop_done(i);
	return false;
}

static void
put_test(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	/* A field that the service alone may write. */
	if (arg != NULL)
		tributary_put_uint(p, TracePacket_trusted_uid, 0);
	tributary_put_uint(p, TracePacket_timestamp, 1);
}

static void
a_late_source_of_ones_own(void **state)
{
	static const struct tributary_source_ops ops = { .size = sizeof(ops),
	    .stop = stop_later };
	struct tributary_source_options o = { .size = sizeof(o),
	    .name = "test.late" };
	struct tributary_local_stats stats = { .size = sizeof(stats) };
	struct tributary_source *source;
	struct tributary_local *l;
	struct pb_writer w;
	struct seen s = { 0 };
	char why[200];
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, TraceConfig_buffers);
	pb_put_uint(&w, BufferConfig_size_kb, 64);
	pb_nest_end(&w, mark);
	/* data_sources { config { name: "test.late" } } */
	pb_put_bytes(&w, TraceConfig_data_sources, "\x0a\x0b\x0a\x09test.late",
	    13);
	l = tributary_session_local(w.data, w.len, why, sizeof(why));
	pb_writer_done(&w);
	assert_non_null(l);
	assert_true(tributary_local_start(l));
	source = tributary_source_add(&o, &ops);
	assert_non_null(source);
	/* The thread's next turn begins it. */
	assert_true(tributary_local_flush(l, WAIT_MS));
	assert_true(tributary_source_enabled(source));
	tributary_source_write(source, put_test, NULL);
	tributary_source_write(source, put_test, &stats);
	assert_true(tributary_local_stop(l, WAIT_MS));
	assert_non_null(stopping);
	assert_true(tributary_local_read(l, see, &s));
	tributary_local_stats(l, &stats);
	assert_int_equal(stats.written, 2);
	assert_int_equal(stats.read, 1);
	assert_int_equal(stats.invalid, 1);
	assert_int_equal(stats.overwritten, 0);
	tributary_local_free(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_read),
		cmocka_unit_test(a_reading_may_end_early),
		cmocka_unit_test(a_session_that_runs_is_read_on),
		cmocka_unit_test(a_clone_has_all_that_the_session_has),
		cmocka_unit_test(calls_out_of_order_are_refused),
		cmocka_unit_test(a_late_source_of_ones_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
