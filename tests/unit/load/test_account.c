#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/bench/load/account.h"
#include "tests/bench/load/load_ledger.h"
#include "tests/bench/load/numbered.h"
#include "transport/wire/pb_writer.h"

#define FIRST 100u

/* A ledger of two sequences, of 10 packets each, and a trace. */
struct fixture {
	struct load_ledger *ledger;
	struct account *account;
	struct account_options options;
	struct account_result r;
	struct pb_writer w, stats;
};

static uint32_t
add(struct fixture *f, uint32_t session, uint64_t written, uint64_t sure)
{
	uint32_t key = load_ledger_add(f->ledger, session, 0, 1);
	struct load_entry *e = load_ledger_at(f->ledger, key);

	assert_non_null(e);
	e->written = written;
	e->sure = sure;
	return key;
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char err[64];

	f->ledger = load_ledger_new(NULL, FIRST, err, sizeof(err));
	pb_writer_init(&f->w);
	pb_writer_init(&f->stats);
	assert_int_equal(add(f, 1, 10, 10), FIRST);
	assert_int_equal(add(f, 1, 10, 10), FIRST + 1);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	account_free(f->account);
	load_ledger_free(f->ledger);
	pb_writer_done(&f->w);
	pb_writer_done(&f->stats);
	free(f);
	return 0;
}

/* Before the first packet. */
static void
begin(struct fixture *f)
{
	f->account = account_new(&f->options);
	assert_non_null(f->account);
	assert_int_equal(account_add_ledger(f->account, f->ledger), 0);
}

static void
put(struct fixture *f, uint32_t key, uint64_t number)
{
	(void)numbered_put(&f->w, key, number, 1, 0, 120);
	pb_put_uint(&f->w, 10, key + 1000);
}

static void
packets(struct fixture *f, uint32_t key, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		put(f, key, from);
		account_packet(f->account, f->w.data, f->w.len);
	}
}

static void
marked(struct fixture *f, uint32_t key, uint64_t number, uint32_t mask)
{
	put(f, key, number);
	pb_put_uint(&f->w, 42, mask);
	account_packet(f->account, f->w.data, f->w.len);
}

/* A tributary_link_losses of the stats. */
static void
loss(struct fixture *f, uint32_t key, uint32_t cause, uint64_t n)
{
	size_t mark = pb_nest_begin(&f->stats, 1001);

	if (key != 0)
		pb_put_uint(&f->stats, 2, key + 1000);
	pb_put_uint(&f->stats, 4, cause);
	if (n > 0)
		pb_put_uint(&f->stats, 6, n);
	pb_nest_end(&f->stats, mark);
}

static bool
end(struct fixture *f)
{
	pb_writer_reset(&f->w);
	pb_put_bytes(&f->w, 35, f->stats.data, f->stats.len);
	account_packet(f->account, f->w.data, f->w.len);
	account_finish(f->account, &f->r);
	return account_is_good(&f->r);
}

static void
a_whole_trace_is_good(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 4);
	packets(f, FIRST + 1, 0, 10);
	packets(f, FIRST, 4, 10);
	assert_true(end(f));
	assert_int_equal(f->r.present, 20);
	assert_int_equal(f->r.sequences, 2);
	assert_int_equal(f->r.written, 20);
	assert_int_equal(f->r.missing, 0);
}

static void
a_packet_that_was_taken_out_is_missed(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST + 1, 0, 10);
	packets(f, FIRST, 0, 4);
	packets(f, FIRST, 5, 10);
	assert_false(end(f));
	assert_int_equal(f->r.missing, 1);
	assert_int_equal(f->r.untold, 1);
}

static void
a_missing_first_or_last_packet_is_missed(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 1, 10);
	packets(f, FIRST + 1, 0, 9);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 2);
}

static void
a_sequence_that_is_not_there_is_missed(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	assert_false(end(f));
	assert_int_equal(f->r.sequences_seen, 1);
	assert_int_equal(f->r.untold, 10);
}

static void
a_packet_that_is_there_twice_is_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 6);
	packets(f, FIRST + 1, 5, 10);
	assert_false(end(f));
	assert_int_equal(f->r.doubled, 1);
	assert_int_equal(f->r.present, 20);
}

static void
packets_that_changed_places_are_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 4);
	packets(f, FIRST + 1, 5, 6);
	packets(f, FIRST + 1, 4, 5);
	packets(f, FIRST + 1, 6, 10);
	assert_false(end(f));
	assert_int_equal(f->r.disordered, 1);
	assert_int_equal(f->r.doubled, 0);
}

static void
a_packet_that_was_altered_is_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 9);
	put(f, FIRST + 1, 9);
	f->w.data[80] ^= 4; /* in its text */
	account_packet(f->account, f->w.data, f->w.len);
	assert_false(end(f));
	assert_int_equal(f->r.altered, 1);
	assert_int_equal(f->r.untold, 0);
}

static void
what_nobody_wrote_is_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 11);
	packets(f, FIRST + 1, 0, 10);
	packets(f, FIRST + 2, 0, 1);
	assert_false(end(f));
	assert_int_equal(f->r.never_written, 1);
	assert_int_equal(f->r.strangers, 1);
}

static void
a_key_in_two_sequences_is_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 9);
	put(f, FIRST + 1, 9);
	pb_put_uint(&f->w, 10, 4711);
	account_packet(f->account, f->w.data, f->w.len);
	assert_false(end(f));
	assert_int_equal(f->r.mixed_up, 1);
}

static void
a_mark_behind_a_gap_tells_of_it(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 3);
	marked(f, FIRST, 7, 1 | 64);
	packets(f, FIRST, 8, 10);
	marked(f, FIRST + 1, 5, 1 | 1u << 16);
	packets(f, FIRST + 1, 6, 10);
	assert_true(end(f));
	assert_int_equal(f->r.missing, 9);
	assert_int_equal(f->r.told, 9);
	assert_int_equal(f->r.n_causes, 2);
	assert_string_equal(f->r.causes[0].name, "overwritten");
	assert_int_equal(f->r.causes[0].packets, 4);
	assert_string_equal(f->r.causes[1].name, "spool full");
}

static void
a_mark_tells_of_its_own_gap_only(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 2);
	packets(f, FIRST + 1, 4, 6);
	marked(f, FIRST + 1, 7, 1);
	packets(f, FIRST + 1, 8, 10);
	assert_false(end(f));
	assert_int_equal(f->r.told, 1);
	assert_int_equal(f->r.untold, 2);
}

static void
losses_of_the_stats_tell_of_an_end_that_is_missing(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 7);
	loss(f, FIRST + 1, 4, 3);
	assert_true(end(f));
	assert_int_equal(f->r.told, 3);
}

static void
losses_of_the_stats_tell_of_no_more_than_they_say(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 8);
	packets(f, FIRST + 1, 0, 7);
	loss(f, FIRST + 1, 4, 2);
	assert_false(end(f));
	assert_int_equal(f->r.told, 2);
	assert_int_equal(f->r.untold, 3);
}

static void
what_a_buffer_lost_may_be_an_end(void **state)
{
	struct fixture *f = *state;
	size_t mark;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 7);
	mark = pb_nest_begin(&f->stats, 1);
	pb_put_uint(&f->stats, 18, 1); /* chunks_discarded */
	pb_nest_end(&f->stats, mark);
	assert_true(end(f));
	assert_int_equal(f->r.told, 3);
}

static void
losses_of_another_machine_tell_of_nothing(void **state)
{
	struct fixture *f = *state;
	size_t mark;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 7);
	mark = pb_nest_begin(&f->stats, 1001);
	pb_put_uint(&f->stats, 1, 5); /* machine_id */
	pb_put_uint(&f->stats, 4, 7);
	pb_nest_end(&f->stats, mark);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 3);
}

static void
a_cut_at_the_end_tells_of_what_nobody_counted(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 7);
	loss(f, 0, 7, 0);
	assert_true(end(f));
	assert_int_equal(f->r.told, 3);
}

static void
a_flush_that_failed_at_the_end_tells_of_the_end(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST + 1, 0, 7);
	pb_put_uint(&f->stats, 15, 2);
	assert_true(end(f));
	assert_int_equal(f->r.told, 13);
}

static void
a_flush_that_failed_does_not_excuse_a_gap(void **state)
{
	struct fixture *f = *state;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 3);
	packets(f, FIRST + 1, 5, 10);
	pb_put_uint(&f->stats, 15, 2);
	assert_false(end(f));
}

static void
what_a_buffer_lost_does_not_excuse_a_gap(void **state)
{
	struct fixture *f = *state;
	size_t mark;

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 3);
	packets(f, FIRST + 1, 5, 10);
	mark = pb_nest_begin(&f->stats, 1);
	pb_put_uint(&f->stats, 18, 1);
	pb_nest_end(&f->stats, mark);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 2);
}

static void
what_was_on_the_way_when_it_was_cut_may_be_missing(void **state)
{
	struct fixture *f = *state;
	uint32_t cut = add(f, 1, 20, 12);

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 10);
	packets(f, cut, 0, 15);
	assert_true(end(f));
	assert_int_equal(f->r.missing, 0);
	assert_int_equal(f->r.missing_unsure, 5);
}

static void
what_was_taken_before_the_cut_may_not(void **state)
{
	struct fixture *f = *state;
	uint32_t cut = add(f, 1, 20, 12);

	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 10);
	packets(f, cut, 0, 11);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 1);
	assert_int_equal(f->r.missing_unsure, 8);
}

static void
sequences_of_other_sessions_are_not_expected(void **state)
{
	struct fixture *f = *state;

	(void)add(f, 2, 50, 50);
	begin(f);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 10);
	assert_true(end(f));
	assert_int_equal(f->r.sequences, 2);
}

static void
a_session_that_is_named_is_expected(void **state)
{
	struct fixture *f = *state;

	f->options.has_session = true;
	f->options.session = 2;
	(void)add(f, 2, 50, 50);
	begin(f);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 50);
}

static void
the_end_may_lack_where_a_prefix_is_expected(void **state)
{
	struct fixture *f = *state;

	f->options.prefix = true;
	begin(f);
	packets(f, FIRST, 0, 4);
	packets(f, FIRST + 1, 0, 2);
	packets(f, FIRST + 1, 3, 5);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 1);
}

/* ---- segments ---- */

/* The head of a segment of a session, or its end; the session goes on. */
static void
segment(struct fixture *f, char session, bool is_end, bool goes_on)
{
	uint8_t uuid[16] = { (uint8_t)session };
	size_t mark, inner;

	pb_writer_reset(&f->w);
	mark = pb_nest_begin(&f->w, 1001);
	pb_put_bytes(&f->w, 1, uuid, sizeof(uuid));
	if (is_end) {
		inner = pb_nest_begin(&f->w, 9);
		if (goes_on)
			pb_put_uint(&f->w, 3, 1);
		pb_nest_end(&f->w, inner);
	}
	pb_nest_end(&f->w, mark);
	account_packet(f->account, f->w.data, f->w.len);
}

/* The statistics of a segment. */
static void
stats(struct fixture *f)
{
	pb_writer_reset(&f->w);
	pb_put_bytes(&f->w, 35, f->stats.data, f->stats.len);
	account_packet(f->account, f->w.data, f->w.len);
	pb_writer_reset(&f->stats);
}

static void
segments_of_a_session_are_one_trace(void **state)
{
	struct fixture *f = *state;

	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 4);
	packets(f, FIRST + 1, 0, 10);
	segment(f, 'a', true, true);
	segment(f, 'a', false, false);
	packets(f, FIRST, 4, 10);
	segment(f, 'a', true, false);
	assert_true(end(f));
	assert_int_equal(f->r.present, 20);
	assert_int_equal(f->r.parts, 1);
	assert_int_equal(f->r.parts_cut_short, 0);
}

static void
a_packet_in_two_segments_or_in_none_is_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 4);
	packets(f, FIRST + 1, 0, 5);
	segment(f, 'a', true, true);
	segment(f, 'a', false, false);
	packets(f, FIRST, 3, 10);
	packets(f, FIRST + 1, 6, 10);
	segment(f, 'a', true, false);
	assert_false(end(f));
	assert_int_equal(f->r.doubled, 1);
	assert_int_equal(f->r.untold, 1);
}

static void
statistics_of_segments_add_up(void **state)
{
	struct fixture *f = *state;

	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 10);
	packets(f, FIRST + 1, 0, 2);
	loss(f, FIRST + 1, 4, 2);
	stats(f);
	segment(f, 'a', true, true);
	segment(f, 'a', false, false);
	packets(f, FIRST + 1, 4, 9);
	segment(f, 'a', true, false);
	loss(f, FIRST + 1, 4, 1);
	assert_true(end(f));
	assert_int_equal(f->r.told, 3);
}

static void
statistics_tell_of_their_own_session(void **state)
{
	struct fixture *f = *state;

	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 10);
	loss(f, FIRST + 1, 4, 3); /* the id means another one here */
	stats(f);
	segment(f, 'a', true, false);
	segment(f, 'b', false, false);
	packets(f, FIRST + 1, 0, 7);
	segment(f, 'b', true, false);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 3);
	assert_int_equal(f->r.parts, 2);
}

static void
a_sequence_in_two_sessions_is_found(void **state)
{
	struct fixture *f = *state;

	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 4);
	packets(f, FIRST + 1, 0, 10);
	segment(f, 'a', true, false);
	segment(f, 'b', false, false);
	packets(f, FIRST, 4, 10);
	segment(f, 'b', true, false);
	assert_false(end(f));
	assert_int_equal(f->r.mixed_up, 1);
}

static void
a_session_that_was_cut_short_may_lack_its_end(void **state)
{
	struct fixture *f = *state;
	uint32_t lost = add(f, 1, 20, 20);

	load_ledger_at(f->ledger, FIRST)->kept = 4;
	load_ledger_at(f->ledger, lost)->end = LOAD_LOST;
	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 5);
	segment(f, 'b', false, false);
	packets(f, FIRST + 1, 0, 10);
	segment(f, 'b', true, false);
	assert_true(end(f));
	assert_int_equal(f->r.parts_cut_short, 1);
	assert_int_equal(f->r.cut_short, 5 + 20);
}

static void
what_was_taken_long_before_may_not(void **state)
{
	struct fixture *f = *state;
	uint32_t lost = add(f, 1, 20, 20);

	load_ledger_at(f->ledger, FIRST)->kept = 8;
	load_ledger_at(f->ledger, lost)->end = LOAD_LOST;
	load_ledger_at(f->ledger, lost)->kept = 1;
	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 5);
	packets(f, FIRST + 1, 0, 10);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 3 + 1);
}

static void
a_gap_in_a_session_that_was_cut_short_is_missed(void **state)
{
	struct fixture *f = *state;

	begin(f);
	segment(f, 'a', false, false);
	packets(f, FIRST, 0, 5);
	packets(f, FIRST, 6, 10);
	packets(f, FIRST + 1, 0, 1);
	assert_false(end(f));
	assert_int_equal(f->r.untold, 1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_whole_trace_is_good),
		T(a_packet_that_was_taken_out_is_missed),
		T(a_missing_first_or_last_packet_is_missed),
		T(a_sequence_that_is_not_there_is_missed),
		T(a_packet_that_is_there_twice_is_found),
		T(packets_that_changed_places_are_found),
		T(a_packet_that_was_altered_is_found),
		T(what_nobody_wrote_is_found),
		T(a_key_in_two_sequences_is_found),
		T(a_mark_behind_a_gap_tells_of_it),
		T(a_mark_tells_of_its_own_gap_only),
		T(losses_of_the_stats_tell_of_an_end_that_is_missing),
		T(losses_of_the_stats_tell_of_no_more_than_they_say),
		T(what_a_buffer_lost_may_be_an_end),
		T(losses_of_another_machine_tell_of_nothing),
		T(a_cut_at_the_end_tells_of_what_nobody_counted),
		T(a_flush_that_failed_at_the_end_tells_of_the_end),
		T(a_flush_that_failed_does_not_excuse_a_gap),
		T(what_a_buffer_lost_does_not_excuse_a_gap),
		T(what_was_on_the_way_when_it_was_cut_may_be_missing),
		T(what_was_taken_before_the_cut_may_not),
		T(sequences_of_other_sessions_are_not_expected),
		T(a_session_that_is_named_is_expected),
		T(the_end_may_lack_where_a_prefix_is_expected),
		T(segments_of_a_session_are_one_trace),
		T(a_packet_in_two_segments_or_in_none_is_found),
		T(statistics_of_segments_add_up),
		T(statistics_tell_of_their_own_session),
		T(a_sequence_in_two_sessions_is_found),
		T(a_session_that_was_cut_short_may_lack_its_end),
		T(what_was_taken_long_before_may_not),
		T(a_gap_in_a_session_that_was_cut_short_is_missed),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
