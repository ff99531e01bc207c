#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/machine/machine_clock.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/session/cut.h"
#include "service/session/trigger.h"
#include "service/sink/file_sink.h"
#include "tests/unit/service/session/fixture.h"

#define BASE "buffers { size_kb: 256 } data_sources { config { name: \"src\" } } "
#define KIND(k) PERFETTO__PROTOS__TRACE_PACKET__DATA_##k
#define PHASE(p) PERFETTO__PROTOS__SEGMENT_CUT__PHASE__##p
#define CAUSE(c) PERFETTO__PROTOS__SEGMENT_CUT__CAUSE__##c

typedef Perfetto__Protos__TracePacket packet_pb;
typedef Perfetto__Protos__SegmentCut cut_pb;

/* A session with a producer that clears its state, and one that cannot. */
struct stage {
	struct fixture *f;
	struct fake_producer clears;
	struct fake_producer plain;
	struct fake_consumer c;
	struct fake_trace t; /* the last read */
};

static void
register_clearing(struct fake_producer *fp)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, 1, "src");
	pb_put_uint(&w, 4, 1); /* handles_incremental_state_clear */
	assert_null(producer_register(fp->p, w.data, w.len));
	pb_writer_done(&w);
}

static void
stage_init(struct stage *st, struct fixture *f, const char *config)
{
	memset(st, 0, sizeof(*st));
	st->f = f;
	fake_producer_init(&st->clears, f, "clears", true);
	fake_producer_init(&st->plain, f, "plain", true);
	register_clearing(&st->clears);
	fake_producer_register(&st->plain, "src", false, false);
	assert_non_null(fake_enable(f, &st->c, config, -1));
}

static void
stage_done(struct stage *st)
{
	fake_trace_done(&st->t);
	if (st->c.s != NULL)
		session_free(st->c.s);
	fake_producer_done(&st->clears);
	fake_producer_done(&st->plain);
}

static void
read_all(struct stage *st)
{
	fake_trace_done(&st->t);
	memset(&st->t, 0, sizeof(st->t));
	fake_read(st->c.s, &st->t);
}

static void
write(struct fake_producer *fp, uint32_t chunk, const char *text)
{
	assert_int_equal(fake_commit(fp, fp->last_buffer, 1, chunk, chunk + 1,
	    text), 0);
}

static void
ack(struct fake_producer *fp)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 3, fp->last_flush);
	assert_int_equal(fake_commit_request(fp, &w), 0);
}

/* The place of the first mark of a phase from `from` on; -1: none. */
static int
mark_from(const struct fake_trace *t, size_t from, int phase)
{
	const cut_pb *c;
	size_t i;

	for (i = from; i < t->n; i++)
		if ((c = t->packets[i]->tributary_segment_cut) != NULL &&
		    (int)c->phase == phase)
			return (int)i;
	return -1;
}

static const cut_pb *
mark_of(const struct fake_trace *t, int phase)
{
	int at = mark_from(t, 0, phase);

	return at < 0 ? NULL : t->packets[at]->tributary_segment_cut;
}

static bool
was_flushed(void *arg)
{
	return ((struct fake_producer *)arg)->last_flush != 0;
}

/* Reads BEGIN, and waits until both producers were asked. */
static void
read_begin(struct stage *st)
{
	st->clears.last_flush = st->plain.last_flush = 0;
	read_all(st);
	assert_true(mark_from(&st->t, 0, PHASE(BEGIN)) >= 0);
	assert_int_equal(mark_from(&st->t, 0, PHASE(END)), -1);
	fixture_wait(st->f, was_flushed, &st->clears);
	fixture_wait(st->f, was_flushed, &st->plain);
}

static bool
has_read_end(void *arg)
{
	struct stage *st = arg;

	read_all(st);
	return mark_of(&st->t, PHASE(END)) != NULL;
}

static void
answer_and_read_end(struct stage *st)
{
	ack(&st->clears);
	ack(&st->plain);
	fixture_wait(st->f, has_read_end, st);
}

static size_t
line_of(const struct fake_producer *fp, const char *prefix)
{
	size_t i;

	for (i = 0; i < fp->n_log; i++)
		if (strncmp(fp->log[i], prefix, strlen(prefix)) == 0)
			return i;
	fail_msg("%s was not seen", prefix);
	return 0;
}

static void
data_lies_before_and_between_the_marks_as_it_was_written(void **state)
{
	char text[64];
	struct stage st;
	int end;

	stage_init(&st, *state, BASE);
	write(&st.clears, 0, "before");
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 2);
	assert_int_equal(fake_producer_count(&st.clears, "clear"), 0);
	read_begin(&st);
	fake_trace_text(&st.t, text, sizeof(text));
	assert_string_equal(text, "before ");
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->number, 2);
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->cause, CAUSE(REQUEST));
	assert_true(mark_of(&st.t, PHASE(BEGIN))->realtime_ns > 0);

	write(&st.clears, 1, "between");
	answer_and_read_end(&st);
	fake_trace_text(&st.t, text, sizeof(text));
	assert_string_equal(text, "between ");
	end = mark_from(&st.t, 0, PHASE(END));
	assert_int_equal(st.t.packets[end - 1]->data_case, KIND(TRACE_STATS));
	assert_int_equal(mark_of(&st.t, PHASE(END))->number, 2);
	assert_int_equal(mark_of(&st.t, PHASE(END))->n_unanswered, 0);
	assert_int_equal(cut_number(st.c.s), 2);
	stage_done(&st);
}

static void
producers_clear_before_they_flush_and_only_those_that_can(void **state)
{
	struct stage st;

	stage_init(&st, *state, BASE);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_begin(&st);
	assert_int_equal(fake_producer_count(&st.clears, "clear"), 1);
	assert_true(line_of(&st.clears, "clear") <
	    line_of(&st.clears, "flush"));
	assert_int_equal(fake_producer_count(&st.plain, "clear"), 0);
	stage_done(&st);
}

/* Marks and data are no repetitions; all others behind BEGIN are. */
static void
what_a_segment_needs_is_repeated_right_behind_the_begin(void **state)
{
	static const uint8_t info[] = { 0x12, 1, 'x' }; /* a field of SystemInfo */
	bool seen[200] = { false };
	const packet_pb *p;
	struct machine *m;
	struct stage st;
	size_t i;

	stage_init(&st, *state, BASE "trace_attributes { attribute { key: "
	    "\"k\" string_value: \"v\" } }");
	m = fake_machine(st.f, 7, "kiosk-7");
	assert_int_equal(machine_set_system_info(m, info, sizeof(info)), 0);
	readback_saw_machine(st.c.s->readback, m);
	read_all(&st);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_all(&st);
	i = (size_t)mark_from(&st.t, 0, PHASE(BEGIN));
	assert_false(st.t.packets[i]->tributary_repeated);
	assert_int_equal(st.t.packets[i + 1]->data_case, KIND(CLOCK_SNAPSHOT));
	for (i++; i < st.t.n; i++) {
		p = st.t.packets[i];
		assert_true(p->tributary_repeated);
		assert_int_equal(p->trusted_packet_sequence_id, 1);
		assert_true(p->data_case < 200);
		seen[p->data_case] = true;
		if (p->data_case == KIND(SYSTEM_INFO) && p->machine_id == 7)
			seen[0] = true;
	}
	assert_true(seen[KIND(TRACE_CONFIG)]);
	assert_true(seen[KIND(TRACE_ATTRIBUTES)]);
	assert_true(seen[KIND(TRACE_PROVENANCE)]);
	assert_true(seen[KIND(SERVICE_EVENT)]);
	assert_true(seen[0]);
	assert_false(seen[KIND(TRACE_UUID)]);
	machine_unref(m);
	stage_done(&st);
}

static void
who_asks_before_the_begin_joins_and_later_one_more_follows(void **state)
{
	struct stage st;

	stage_init(&st, *state, BASE);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_TIME), 2);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 2);
	read_begin(&st);
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->cause, CAUSE(TIME));
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_SIZE), 3);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 3);
	answer_and_read_end(&st);
	assert_int_equal(cut_number(st.c.s), 2);
	loop_run_once(st.f->loop);
	read_begin(&st);
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->number, 3);
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->cause, CAUSE(SIZE));
	answer_and_read_end(&st);
	assert_int_equal(mark_of(&st.t, PHASE(END))->number, 3);
	read_all(&st);
	assert_int_equal(mark_from(&st.t, 0, PHASE(BEGIN)), -1);
	stage_done(&st);
}

static void
a_producer_that_does_not_answer_is_named_at_the_end(void **state)
{
	const cut_pb *end;
	struct stage st;

	stage_init(&st, *state, BASE "flush_timeout_ms: 1");
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_begin(&st);
	ack(&st.clears);
	fixture_wait(st.f, has_read_end, &st);
	end = mark_of(&st.t, PHASE(END));
	assert_int_equal(end->n_unanswered, 1);
	assert_string_equal(end->unanswered[0]->producer, "plain");
	assert_int_equal(end->unanswered[0]->producer_id, st.plain.p->id);
	assert_false(end->unanswered[0]->has_machine_id);
	stage_done(&st);
}

static void
a_trigger_cuts_and_is_named_even_where_it_joins(void **state)
{
	const cut_pb *begin;
	struct stage st;
	size_t i, n = 0;

	stage_init(&st, *state, BASE "tributary_segments { at_trigger: \"other\" "
	    "at_trigger: \"drop\" }");
	trigger_activate(st.plain.p, "nobody waits", 12);
	read_all(&st);
	assert_null(mark_of(&st.t, PHASE(BEGIN)));
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_TIME), 2);
	trigger_activate(st.plain.p, "drop", 4);
	read_begin(&st);
	begin = mark_of(&st.t, PHASE(BEGIN));
	assert_int_equal(begin->cause, CAUSE(TRIGGER));
	assert_string_equal(begin->trigger, "drop");
	assert_string_equal(begin->trigger_producer, "plain");
	for (i = 0; i < st.t.n; i++)
		n += st.t.packets[i]->data_case == KIND(TRIGGER);
	assert_int_equal(n, 1);
	stage_done(&st);
}

static void
the_sessions_end_drops_a_cut_that_has_not_begun(void **state)
{
	struct stage st;

	stage_init(&st, *state, BASE);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 2);
	st.clears.ack_flushes = st.plain.ack_flushes = true;
	session_disable(st.c.s, NULL);
	fixture_wait(st.f, fake_disabled, &st.c);
	read_all(&st);
	assert_null(mark_of(&st.t, PHASE(BEGIN)));
	assert_int_equal(cut_number(st.c.s), 1);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 0);
	stage_done(&st);
}

/* Reads a packet; true: it is TraceStats. */
static bool
reads_stats(void *arg)
{
	struct sink_batch one = { .nominal = 1 };
	struct packet_out *out = packet_out_new_file();
	struct stage *st = arg;
	struct pb_reader r;
	struct pb_field f, g = { .number = 0 };
	bool is = false;

	assert_non_null(out);
	packet_out_set_batch(out, &one);
	readback_begin(st->c.s->readback);
	(void)readback_fill(st->c.s->readback, out, NULL);
	pb_init(&r, one.data, one.len);
	if (pb_next(&r, &f)) {
		PB_FOREACH(&g, &r, f.data, f.len)
			is |= g.number == KIND(TRACE_STATS);
	}
	packet_out_free(out);
	free(one.data);
	return is;
}

static void
the_sessions_end_leaves_an_end_that_was_read_in_part(void **state)
{
	struct stage st;

	stage_init(&st, *state, BASE);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_begin(&st);
	ack(&st.clears);
	ack(&st.plain);
	fixture_wait(st.f, reads_stats, &st);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 3);
	st.clears.ack_flushes = st.plain.ack_flushes = true;
	session_disable(st.c.s, NULL);
	fixture_wait(st.f, fake_disabled, &st.c);
	read_all(&st);
	assert_non_null(mark_of(&st.t, PHASE(END)));
	assert_null(mark_of(&st.t, PHASE(BEGIN)));
	stage_done(&st);
}

static bool
has_read_begin(void *arg)
{
	struct stage *st = arg;

	read_all(st);
	return mark_of(&st->t, PHASE(BEGIN)) != NULL;
}

static void
drop(struct stage *st)
{
	trigger_activate(st->plain.p, "drop", 4);
}

static void
a_storm_of_triggers_cuts_once_a_second(void **state)
{
	struct stage st;
	uint64_t begun;

	stage_init(&st, *state, BASE "tributary_segments { at_trigger: "
	    "\"drop\" }");
	st.clears.ack_flushes = st.plain.ack_flushes = true;
	drop(&st);
	fixture_wait(st.f, has_read_begin, &st);
	begun = loop_now_ms();
	drop(&st);
	fixture_wait(st.f, has_read_end, &st);
	drop(&st);
	fixture_wait(st.f, has_read_begin, &st);
	assert_true(loop_now_ms() - begun >= CUT_REST_MS);
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->number, 3);
	fixture_wait(st.f, has_read_end, &st);
	/* Behind an end, too; and who asks does not wait for it. */
	drop(&st);
	read_all(&st);
	assert_null(mark_of(&st.t, PHASE(BEGIN)));
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 4);
	read_all(&st);
	assert_int_equal(mark_of(&st.t, PHASE(BEGIN))->cause, CAUSE(TRIGGER));
	fixture_wait(st.f, has_read_end, &st);
	drop(&st);
	session_disable(st.c.s, NULL);
	fixture_wait(st.f, fake_disabled, &st.c);
	read_all(&st);
	assert_null(mark_of(&st.t, PHASE(BEGIN)));
	stage_done(&st);
}

static void
the_sessions_end_ends_a_cut_that_has_begun(void **state)
{
	struct stage st;
	int end;

	stage_init(&st, *state, BASE);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_begin(&st);
	assert_int_equal(cut_ask(st.c.s, SERVICE_CUT_REQUEST), 3);
	st.clears.ack_flushes = true;
	st.plain.ack_flushes = true;
	session_disable(st.c.s, NULL);
	fixture_wait(st.f, fake_disabled, &st.c);
	read_all(&st);
	end = mark_from(&st.t, 0, PHASE(END));
	assert_true(end > 0);
	assert_int_equal(mark_from(&st.t, 0, PHASE(BEGIN)), -1);
	assert_int_equal(st.t.packets[st.t.n - 1]->data_case,
	    KIND(TRACE_STATS));
	assert_true((size_t)end < st.t.n - 1);
	stage_done(&st);
}

static void
a_session_is_freed_at_any_point_of_a_cut(void **state)
{
	struct stage st;

	stage_init(&st, *state, BASE);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	stage_done(&st);
	stage_init(&st, *state, BASE);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_all(&st);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	stage_done(&st);
	stage_init(&st, *state, BASE);
	(void)cut_ask(st.c.s, SERVICE_CUT_REQUEST);
	read_begin(&st);
	stage_done(&st);
}

static void
a_session_is_cut_every_so_often(void **state)
{
	struct stage st;

	stage_init(&st, *state, BASE "tributary_segments { every_ms: 1000 }");
	st.clears.ack_flushes = st.plain.ack_flushes = true;
	/* Waits for the timer, then for the producers. */
	fixture_wait(st.f, has_read_end, &st);
	assert_int_equal(mark_of(&st.t, PHASE(END))->cause, CAUSE(TIME));
	stage_done(&st);
}

static bool
is_cut(void *arg)
{
	return cut_number(((struct stage *)arg)->c.s) == 2;
}

static bool
is_asked(void *arg)
{
	return cut_ask(((struct stage *)arg)->c.s, SERVICE_CUT_REQUEST) != 0;
}

static void
a_file_is_cut_without_waiting_for_its_write_period(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct stage st;

	stage_init(&st, f, BASE "write_into_file: true output_path: \"x\" "
	    "file_write_period_ms: 3600000");
	st.clears.ack_flushes = st.plain.ack_flushes = true;
	fixture_wait(f, is_asked, &st); /* once the file is open */
	fixture_wait(f, is_cut, &st);
	fake_end(f, &st.c);
	snprintf(path, sizeof(path), "%s/x", f->dir);
	fake_read_file(path, &st.t);
	assert_non_null(mark_of(&st.t, PHASE(BEGIN)));
	assert_non_null(mark_of(&st.t, PHASE(END)));
	stage_done(&st);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup,       \
	    fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(data_lies_before_and_between_the_marks_as_it_was_written),
		CASE(producers_clear_before_they_flush_and_only_those_that_can),
		CASE(what_a_segment_needs_is_repeated_right_behind_the_begin),
		CASE(who_asks_before_the_begin_joins_and_later_one_more_follows),
		CASE(a_producer_that_does_not_answer_is_named_at_the_end),
		CASE(a_trigger_cuts_and_is_named_even_where_it_joins),
		CASE(the_sessions_end_drops_a_cut_that_has_not_begun),
		CASE(the_sessions_end_leaves_an_end_that_was_read_in_part),
		CASE(a_storm_of_triggers_cuts_once_a_second),
		CASE(the_sessions_end_ends_a_cut_that_has_begun),
		CASE(a_session_is_freed_at_any_point_of_a_cut),
		CASE(a_session_is_cut_every_so_often),
		CASE(a_file_is_cut_without_waiting_for_its_write_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
