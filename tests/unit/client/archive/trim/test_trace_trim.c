/* Traces are written by field numbers, as a second opinion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/archive/trim/trace_trim.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* The wall clock is this much ahead of the boot clock. */
#define WALL 1000000000000ull

enum { STAYS, GOES, EMPTIED };

struct fixture {
	struct trace_trim *trim;
	struct pb_writer w;
	/* Of the packet that came out last. */
	uint64_t timestamp;
	bool has_event;
};

/* From boot time 1000 to 2000. */
static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->trim = trace_trim_new(WALL + 1000, WALL + 2000);
	pb_writer_init(&f->w);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	trace_trim_free(f->trim);
	pb_writer_done(&f->w);
	free(f);
	return 0;
}

static struct pb_writer *
begin(struct fixture *f, uint32_t sequence)
{
	pb_writer_reset(&f->w);
	pb_put_uint(&f->w, 10, sequence);
	return &f->w;
}

static bool
is_event(uint32_t field)
{
	return field == 11 || field == 1 || field == 900 || field == 9;
}

static int
take(struct fixture *f)
{
	const uint8_t *out;
	struct pb_reader r;
	struct pb_field e;
	size_t len;

	f->has_event = false;
	f->timestamp = 0;
	assert_int_equal(trace_trim_packet(f->trim, f->w.data, f->w.len, &out,
	    &len), 0);
	if (out == NULL)
		return GOES;
	PB_FOREACH(&e, &r, out, len) {
		if (e.number == 8)
			f->timestamp = e.value;
		if (is_event(e.number))
			f->has_event = true;
	}
	assert_false(r.bad);
	return f->has_event ? STAYS : EMPTIED;
}

static void
put_clock(struct pb_writer *w, uint32_t id, uint64_t value, bool increments,
    uint64_t unit)
{
	size_t clock = pb_nest_begin(w, 1);

	pb_put_uint(w, 1, id);
	pb_put_uint(w, 2, value);
	if (increments)
		pb_put_uint(w, 3, 1);
	if (unit != 1)
		pb_put_uint(w, 4, unit);
	pb_nest_end(w, clock);
}

/* Of the service: wall and boot clock. */
static void
clocks(struct fixture *f)
{
	struct pb_writer *w = begin(f, 1);
	size_t snapshot = pb_nest_begin(w, 6);

	put_clock(w, 1, WALL, false, 1);
	put_clock(w, 6, 0, false, 1);
	pb_nest_end(w, snapshot);
	assert_int_equal(take(f), EMPTIED); /* as it was */
	assert_int_equal(trace_trim_counts(f->trim).emptied, 0);
}

/* A track event of boot time ns; extra: 41, 59 and others, with value 1. */
static int
event(struct fixture *f, uint64_t ns, uint32_t extra)
{
	struct pb_writer *w = begin(f, 5);
	size_t event;

	pb_put_uint(w, 8, ns);
	event = pb_nest_begin(w, 11);
	pb_put_uint(w, 9, 1);
	pb_nest_end(w, event);
	if (extra == 12 || extra == 59)
		pb_put_bytes(w, extra, "", 0);
	else if (extra != 0)
		pb_put_uint(w, extra, 1);
	return take(f);
}

static void
events_outside_of_the_time_go(void **state)
{
	struct fixture *f = *state;

	clocks(f);
	assert_int_equal(event(f, 999, 0), GOES);
	assert_int_equal(event(f, 1000, 0), STAYS);
	assert_int_equal(event(f, 2000, 0), STAYS);
	assert_int_equal(event(f, 2001, 0), GOES);
	assert_int_equal(trace_trim_counts(f->trim).dropped, 2);
}

static void
without_a_wall_clock_everything_stays(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(event(f, 1, 0), STAYS);
	assert_int_equal(trace_trim_counts(f->trim).timeless, 1);
}

static void
the_state_of_a_sequence_stays_without_the_event(void **state)
{
	struct fixture *f = *state;

	clocks(f);
	assert_int_equal(event(f, 5000, 13), EMPTIED); /* flags: cleared */
	assert_int_equal(event(f, 5000, 41), EMPTIED);
	assert_int_equal(event(f, 5000, 42), EMPTIED); /* a loss */
	assert_int_equal(event(f, 5000, 87), EMPTIED); /* the first */
	assert_int_equal(event(f, 5000, 12), EMPTIED); /* interned data */
	assert_int_equal(trace_trim_counts(f->trim).emptied, 5);
}

static void
what_is_no_event_stays(void **state)
{
	struct fixture *f = *state;
	struct pb_writer *w;

	clocks(f);
	w = begin(f, 5);
	pb_put_uint(w, 8, 5000);
	pb_put_bytes(w, 60, "", 0); /* a track descriptor */
	assert_int_equal(take(f), EMPTIED);
	w = begin(f, 5);
	pb_put_uint(w, 8, 5000);
	pb_put_bytes(w, 37, "", 0); /* a kind that may have state */
	assert_int_equal(take(f), EMPTIED);
	assert_int_equal(trace_trim_counts(f->trim).emptied, 0);
	assert_int_equal(trace_trim_counts(f->trim).dropped, 0);
}

/* Clock 64 of sequence 5, in microseconds, from boot time 0 on. */
static void
increments_begin(struct fixture *f)
{
	struct pb_writer *w = begin(f, 5);
	size_t snapshot, defaults;

	pb_put_uint(w, 13, 1);
	snapshot = pb_nest_begin(w, 6);
	put_clock(w, 6, 0, false, 1);
	put_clock(w, 64, 0, true, 100);
	pb_nest_end(w, snapshot);
	defaults = pb_nest_begin(w, 59);
	pb_put_uint(w, 58, 64);
	pb_nest_end(w, defaults);
	(void)take(f);
}

static void
timestamps_that_count_on_count_from_what_stays(void **state)
{
	struct fixture *f = *state;

	clocks(f);
	increments_begin(f);
	assert_int_equal(event(f, 3, 0), GOES);  /* 300 */
	assert_int_equal(event(f, 4, 0), GOES);  /* 700 */
	assert_int_equal(event(f, 5, 0), STAYS); /* 1200 */
	assert_int_equal(f->timestamp, 12);
	assert_int_equal(event(f, 6, 0), STAYS); /* 1800 */
	assert_int_equal(f->timestamp, 6);
	assert_int_equal(event(f, 7, 0), GOES);  /* 2500 */
	assert_int_equal(event(f, 1, 12), EMPTIED);
	assert_int_equal(f->timestamp, 8);
}

static void
a_snapshot_sets_such_a_clock_anew(void **state)
{
	struct fixture *f = *state;

	clocks(f);
	increments_begin(f);
	assert_int_equal(event(f, 3, 0), GOES);
	increments_begin(f);
	assert_int_equal(event(f, 12, 0), STAYS);
	assert_int_equal(f->timestamp, 12);
}

/* A counter's event, at a boot time. */
static int
counter(struct fixture *f, uint64_t ns)
{
	struct pb_writer *w = begin(f, 5);
	size_t event;

	pb_put_uint(w, 8, ns);
	event = pb_nest_begin(w, 11);
	pb_put_uint(w, 9, 4);
	pb_put_uint(w, 30, 17);
	pb_nest_end(w, event);
	return take(f);
}

static void
counters_that_count_on_stay(void **state)
{
	struct fixture *f = *state;
	struct pb_writer *w;
	size_t track, its;

	clocks(f);
	assert_int_equal(counter(f, 5000), GOES);
	w = begin(f, 5);
	track = pb_nest_begin(w, 60);
	its = pb_nest_begin(w, 8);
	pb_put_uint(w, 5, 1);
	pb_nest_end(w, its);
	pb_nest_end(w, track);
	(void)take(f);
	assert_int_equal(counter(f, 5000), STAYS);
	assert_int_equal(event(f, 5000, 0), GOES);
}

/* A bundle of the kernel's events at two times. */
static int
bundle(struct fixture *f, uint64_t one, uint64_t two, uint32_t extra)
{
	struct pb_writer *w = begin(f, 5);
	size_t bundle = pb_nest_begin(w, 1), event;
	uint8_t increments[20], *p = increments;

	event = pb_nest_begin(w, 2);
	pb_put_uint(w, 1, one);
	pb_nest_end(w, event);
	p += pb_encode_varint(p, two);
	p += pb_encode_varint(p, 5);
	event = pb_nest_begin(w, 4);
	pb_put_bytes(w, 1, increments, (size_t)(p - increments));
	pb_nest_end(w, event);
	if (extra != 0)
		pb_put_uint(w, extra, 2);
	pb_nest_end(w, bundle);
	return take(f);
}

static void
bundles_go_when_all_of_their_events_are_outside(void **state)
{
	struct fixture *f = *state;

	clocks(f);
	assert_int_equal(bundle(f, 500, 994, 0), GOES);
	assert_int_equal(bundle(f, 500, 995, 0), STAYS);
	assert_int_equal(bundle(f, 500, 5000, 0), STAYS);
	assert_int_equal(bundle(f, 2001, 3000, 0), GOES);
	assert_int_equal(bundle(f, 2001, 3000, 5), STAYS);  /* another clock */
	assert_int_equal(bundle(f, 2001, 3000, 11), STAYS); /* descriptors */
}

static void
damaged_packets_stay(void **state)
{
	struct fixture *f = *state;
	struct pb_writer *w;

	clocks(f);
	w = begin(f, 5);
	pb_put_raw(w, "\x42\x7f", 2);
	{
		const uint8_t *out;
		size_t len;

		assert_int_equal(trace_trim_packet(f->trim, w->data, w->len,
		    &out, &len), 0);
		assert_ptr_equal(out, w->data);
		assert_int_equal(len, w->len);
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(events_outside_of_the_time_go),
		CASE(without_a_wall_clock_everything_stays),
		CASE(the_state_of_a_sequence_stays_without_the_event),
		CASE(what_is_no_event_stays),
		CASE(timestamps_that_count_on_count_from_what_stays),
		CASE(a_snapshot_sets_such_a_clock_anew),
		CASE(counters_that_count_on_stay),
		CASE(bundles_go_when_all_of_their_events_are_outside),
		CASE(damaged_packets_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
