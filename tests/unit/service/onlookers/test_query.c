#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/onlookers/query.h"
#include "service/output/session_stats.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_reader.h"

#define ONE_SOURCE "buffers { size_kb: 64 } data_sources { config { name: "   \
	"\"src\" } } "

struct answer {
	struct pb_writer all; /* parts, concatenated */
	size_t parts;
	size_t largest;
	bool last;
	/* look_inside() */
	uint64_t sessions;
	bool secret;
};

/* How often each field of TracingServiceState stands in a part or in all. */
static void
count_fields(const uint8_t *data, size_t len, size_t n[16])
{
	struct pb_reader r, q;
	struct pb_field f, g;

	memset(n, 0, 16 * sizeof(n[0]));
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		assert_int_equal(f.number, 1);
		pb_init(&q, f.data, f.len);
		while (pb_next(&q, &g)) {
			assert_true(g.number < 16);
			n[g.number]++;
		}
		assert_false(q.bad);
	}
	assert_false(r.bad);
}

/* Takes one part; false: it was the last. */
static bool
take_part(struct query *q, size_t max, struct answer *a)
{
	const struct pb_writer *part;
	size_t n[16];

	part = query_next(q, max, &a->last);
	assert_non_null(part);
	count_fields(part->data, part->len, n);
	a->parts++;
	if (part->len > a->largest)
		a->largest = part->len;
	pb_put_raw(&a->all, part->data, part->len);
	return !a->last;
}

static void
take_all(struct fixture *f, const struct principal *who, bool sessions_only,
    size_t max, struct answer *a)
{
	struct query *q = query_new(f->service, who, sessions_only);

	assert_non_null(q);
	memset(a, 0, sizeof(*a));
	pb_writer_init(&a->all);
	while (take_part(q, max, a))
		;
	query_free(q);
}

/* The number of sessions, and whether the name "secret" is anywhere. */
static void
look_inside(struct answer *a)
{
	struct pb_reader r, q;
	struct pb_field f, g;

	pb_init(&r, a->all.data, a->all.len);
	while (pb_next(&r, &f)) {
		pb_init(&q, f.data, f.len);
		while (pb_next(&q, &g))
			if (g.number == 3)
				a->sessions = g.value;
	}
	a->secret = memmem(a->all.data, a->all.len, "secret", 6) != NULL;
}

static void
ask_as(struct fixture *f, const struct principal *who, struct answer *a,
    size_t n[16])
{
	take_all(f, who, true, 65536, a);
	count_fields(a->all.data, a->all.len, n);
	look_inside(a);
	pb_writer_done(&a->all);
}

static void
ask(struct fixture *f, bool sessions_only, size_t max, size_t n[16],
    struct answer *a)
{
	take_all(f, fake_user(1000), sessions_only, max, a);
	count_fields(a->all.data, a->all.len, n);
	pb_writer_done(&a->all);
}

static void
an_idle_service_answers_in_one_part(void **state)
{
	struct answer a;
	size_t n[16];

	ask(*state, false, 65536, n, &a);
	assert_int_equal(a.parts, 1);
	assert_int_equal(n[1], 0);
	assert_int_equal(n[3], 1);
	assert_int_equal(n[5], 1);
	assert_int_equal(n[7], 1);
}

static void
parts_are_valid_alone_and_whole_together(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p[20];
	struct fake_consumer c;
	struct answer a;
	size_t n[16], i, k, max;
	char name[32];

	for (i = 0; i < 20; i++) {
		fake_producer_init(&p[i], f, "some.producer", true);
		for (k = 0; k < 10; k++) {
			snprintf(name, sizeof(name), "source.%zu", k);
			fake_producer_register(&p[i], name, false, false);
		}
	}
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	for (max = 120; max < 20000; max = max * 2 + 1) {
		ask(f, false, max, n, &a);
		assert_true(a.largest <= max);
		assert_int_equal(n[1], 20);
		assert_int_equal(n[2], 200);
		assert_int_equal(n[3], 1);
		assert_int_equal(n[6], 1);
		assert_true(max > 3000 || a.parts > 1);
	}
	ask(f, true, 65536, n, &a);
	assert_int_equal(n[1], 0);
	assert_int_equal(n[2], 0);
	assert_int_equal(n[6], 1);
	session_free(c.s);
	for (i = 0; i < 20; i++)
		fake_producer_done(&p[i]);
}

/* A data source whose descriptor has so many bytes. */
static void
register_long(struct fake_producer *p, const char *name, size_t len)
{
	static uint8_t zeroes[FRAME_MAX_BYTES];
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, 1, name);
	/* Tag and length of a field that nobody knows. */
	pb_put_bytes(&w, 10, zeroes, len - w.len - 4);
	assert_int_equal(w.len, len);
	assert_null(producer_register(p->p, w.data, w.len));
	pb_writer_done(&w);
}

static void
entries_that_are_longer_than_a_part_come_alone(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	struct fake_producer p;
	struct answer a;
	size_t n[16], i;

	fake_producer_init(&p, *state, "p", true);
	for (i = 0; i < 5; i++)
		register_long(&p, names[i], FRAME_MAX_BYTES - 64);
	fake_producer_register(&p, "short", false, false);
	ask(*state, false, 65536, n, &a);
	assert_int_equal(n[2], 6);
	assert_int_equal(a.parts, 7);
	assert_true(a.largest > 65536);
	assert_true(a.largest + 27 <= FRAME_MAX_BYTES); /* the head */
	fake_producer_done(&p);
}

/* Names so long, and parts so small, that each holds one entry. */
#define LONG  "a.name.that.fills.more.than.the.half.of.a.part"
#define SMALL 90u

static void
what_goes_while_a_query_rests_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p[3];
	struct fake_consumer c[2];
	struct answer a = { 0 };
	struct query *q;
	size_t n[16], i;

	for (i = 0; i < 3; i++) {
		fake_producer_init(&p[i], f, LONG, true);
		fake_producer_register(&p[i], LONG ".1", false, false);
		fake_producer_register(&p[i], LONG ".2", false, false);
	}
	for (i = 0; i < 2; i++)
		assert_non_null(fake_enable(f, &c[i], ONE_SOURCE, -1));
	q = query_new(f->service, fake_user(1000), false);
	assert_non_null(q);
	pb_writer_init(&a.all);
	/* The numbers, all producers, the first data source. */
	do {
		assert_true(take_part(q, SMALL, &a));
		count_fields(a.all.data, a.all.len, n);
	} while (n[2] == 0);
	assert_int_equal(n[1], 3);
	/* The entry that waits is made already: that of the next producer. */
	producer_unregister(p[0].p, LONG ".2", strlen(LONG) + 2);
	fake_producer_done(&p[1]);
	session_free(c[0].s);
	while (take_part(q, SMALL, &a))
		;
	count_fields(a.all.data, a.all.len, n);
	assert_int_equal(n[1], 3);
	assert_int_equal(n[2], 4);
	assert_int_equal(n[6], 1);
	pb_writer_done(&a.all);
	query_free(q);
	session_free(c[1].s);
	fake_producer_done(&p[0]);
	fake_producer_done(&p[2]);
}

static void
a_producer_that_goes_while_a_query_rests_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p[3];
	struct answer a = { 0 };
	struct query *q;
	size_t n[16], i;

	for (i = 0; i < 3; i++) {
		fake_producer_init(&p[i], f, LONG, true);
		fake_producer_register(&p[i], LONG, false, false);
	}
	q = query_new(f->service, fake_user(1000), false);
	assert_non_null(q);
	pb_writer_init(&a.all);
	do {
		assert_true(take_part(q, SMALL, &a));
		count_fields(a.all.data, a.all.len, n);
	} while (n[1] == 0);
	/* The second one's entry is made already; the cursor is at the third. */
	fake_producer_done(&p[2]);
	while (take_part(q, SMALL, &a))
		;
	count_fields(a.all.data, a.all.len, n);
	assert_int_equal(n[1], 2);
	assert_int_equal(n[2], 2);
	pb_writer_done(&a.all);
	query_free(q);
	fake_producer_done(&p[0]);
	fake_producer_done(&p[1]);
}

/* DataSource.ds_descriptor.name and producer_id, as "name/1 name/2 ". */
static void
list_sources(const struct answer *a, char *out, size_t size)
{
	struct pb_reader r, s, d, n;
	struct pb_field part, ds, f, name;

	out[0] = '\0';
	pb_init(&r, a->all.data, a->all.len);
	while (pb_next(&r, &part)) {
		pb_init(&s, part.data, part.len);
		while (pb_next(&s, &ds)) {
			if (ds.number != 2)
				continue;
			pb_init(&d, ds.data, ds.len);
			while (pb_next(&d, &f)) {
				size_t len = strlen(out);

				if (f.number == 2) {
					snprintf(out + len, size - len,
					    "/%u ", (unsigned)f.value);
					continue;
				}
				pb_init(&n, f.data, f.len);
				if (pb_next(&n, &name))
					snprintf(out + len, size - len, "%.*s",
					    (int)name.len,
					    (const char *)name.data);
			}
		}
	}
}

static void
data_sources_are_listed_by_name_as_perfetto_does(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p[3];
	struct answer a;
	char text[256];

	fake_producer_init(&p[0], f, "p", true);
	fake_producer_init(&p[1], f, "p", true);
	fake_producer_init(&p[2], f, "p", true);
	fake_producer_register(&p[1], "b", false, false);
	fake_producer_register(&p[2], "c", false, false);
	fake_producer_register(&p[0], "b", false, false);
	fake_producer_register(&p[0], "a", false, false);
	fake_producer_register(&p[0], "b", false, false);
	fake_producer_register(&p[2], "ab", false, false);
	take_all(f, fake_user(1000), false, 65536, &a);
	list_sources(&a, text, sizeof(text));
	pb_writer_done(&a.all);
	assert_string_equal(text, "a/1 ab/3 b/2 b/1 b/1 c/3 ");

	fake_producer_done(&p[2]);
	producer_unregister(p[0].p, "a", 1);
	fake_producer_done(&p[1]);
	take_all(f, fake_user(1000), false, 65536, &a);
	list_sources(&a, text, sizeof(text));
	pb_writer_done(&a.all);
	assert_string_equal(text, "b/1 b/1 ");
	fake_producer_done(&p[0]);
}

static void
who_comes_again_and_again_does_not_keep_a_query_going(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p[2], late[40];
	struct answer a = { 0 };
	struct query *q;
	size_t n[16], i;

	for (i = 0; i < 2; i++)
		fake_producer_init(&p[i], f, LONG, true);
	q = query_new(f->service, fake_user(1000), false);
	assert_non_null(q);
	pb_writer_init(&a.all);
	for (i = 0; i < 40 && take_part(q, SMALL, &a); i++)
		fake_producer_init(&late[i], f, LONG, true);
	assert_true(i < 40);
	count_fields(a.all.data, a.all.len, n);
	assert_int_equal(n[1], 2);
	pb_writer_done(&a.all);
	query_free(q);
	while (i-- > 0)
		fake_producer_done(&late[i]);
	for (i = 0; i < 2; i++)
		fake_producer_done(&p[i]);
}

static void
sessions_of_others_are_counted_and_not_shown(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer own, foreign, report;
	struct answer a;
	size_t n[16];

	assert_non_null(fake_enable(f, &own, ONE_SOURCE, -1));
	assert_non_null(fake_enable_as(f, &foreign, ONE_SOURCE
		"unique_session_name: \"secret\"", -1, 1001));
	ask_as(f, fake_user(1000), &a, n);
	assert_int_equal(n[6], 1);
	assert_int_equal(a.sessions, 2);
	assert_false(a.secret);
	ask_as(f, fake_user(1001), &a, n);
	assert_int_equal(n[6], 1);
	assert_true(a.secret);
	ask_as(f, fake_user(1002), &a, n);
	assert_int_equal(n[6], 0);
	assert_int_equal(a.sessions, 2);
	ask_as(f, fake_user(0), &a, n);
	assert_int_equal(n[6], 2);
	/* What everybody may clone everybody may find. */
	assert_non_null(fake_enable_as(f, &report, ONE_SOURCE
		"bugreport_score: 1", -1, 1001));
	ask_as(f, fake_user(1002), &a, n);
	assert_int_equal(n[6], 1);
	session_free(own.s);
	session_free(foreign.s);
	session_free(report.s);
}

static void
an_entry_that_fits_no_frame_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct answer a;
	size_t n[16];

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "small", false, false);
	register_long(&p, "large", FRAME_MAX_BYTES);
	ask(f, false, 65536, n, &a);
	assert_int_equal(n[2], 1);
	fake_producer_done(&p);
}

static void
capabilities_name_what_can_be_observed(void **state)
{
	struct pb_writer w;
	struct pb_reader r, q;
	struct pb_field f, g;
	uint64_t mask = 0;

	pb_writer_init(&w);
	query_capabilities(&w);
	pb_init(&r, w.data, w.len);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, 1);
	pb_init(&q, f.data, f.len);
	while (pb_next(&q, &g))
		if (g.number == 2)
			mask |= g.value;
	assert_int_equal(mask, 7);
	pb_writer_done(&w);
}

static void
statistics_count_the_session_and_the_service(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p, thief;
	struct fake_consumer c;
	Perfetto__Protos__TraceStats *st;
	struct pb_writer w;

	fake_producer_init(&p, f, "p", true);
	fake_producer_init(&thief, f, "t", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "buffers { size_kb: 32 "
	    "}", -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "x");
	(void)fake_commit(&thief, p.last_buffer, 1, 0, 1, "x");
	(void)fake_commit(&p, 60000, 1, 0, 1, "x");
	fake_producer_done(&thief);
	pb_writer_init(&w);
	session_stats_message(c.s, &w);
	st = perfetto__protos__trace_stats__unpack(NULL, w.len, w.data);
	assert_non_null(st);
	assert_int_equal(st->n_buffer_stats, 2);
	assert_int_equal(st->buffer_stats[0]->buffer_size, 65536);
	assert_int_equal(st->buffer_stats[0]->chunks_written, 1);
	assert_int_equal(st->buffer_stats[1]->chunks_written, 0);
	assert_int_equal(st->producers_connected, 1);
	assert_int_equal(st->producers_seen, 2);
	assert_int_equal(st->data_sources_registered, 1);
	assert_int_equal(st->tracing_sessions, 1);
	assert_int_equal(st->total_buffers, 2);
	assert_int_equal(st->chunks_discarded, 1);
	assert_true(st->tributary_discarded_of_session);
	perfetto__protos__trace_stats__free_unpacked(st, NULL);
	pb_writer_done(&w);
	session_free(c.s);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_idle_service_answers_in_one_part),
		T(parts_are_valid_alone_and_whole_together),
		T(entries_that_are_longer_than_a_part_come_alone),
		T(an_entry_that_fits_no_frame_is_left_out),
		T(what_goes_while_a_query_rests_is_left_out),
		T(a_producer_that_goes_while_a_query_rests_is_left_out),
		T(data_sources_are_listed_by_name_as_perfetto_does),
		T(who_comes_again_and_again_does_not_keep_a_query_going),
		T(sessions_of_others_are_counted_and_not_shown),
		T(capabilities_name_what_can_be_observed),
		T(statistics_count_the_session_and_the_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
