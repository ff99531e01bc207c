#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/packet/sequence_map.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_parts.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_reader.h"

/* The id in the trailer of {producer, writer}; the trailer is checked. */
static uint32_t
id_of(struct sequence_map *m, uint64_t producer, uint32_t writer)
{
	struct tb_origin o = { .producer = producer, .writer = writer,
	    .uid = 7, .pid = 8, .machine = 9 };
	uint32_t loss = 0;
	const struct packet_trailer *t = sequence_map_trailer(m, &o, &loss);
	struct pb_reader r;
	struct pb_field f;
	uint32_t id = 0;

	assert_non_null(t);
	pb_init(&r, t->bytes, t->len);
	while (pb_next(&r, &f)) {
		if (f.number == 3)
			assert_int_equal(f.value, 7);
		else if (f.number == 79)
			assert_int_equal(f.value, 8);
		else if (f.number == 98)
			assert_int_equal(f.value, 9);
		else if (f.number == 10)
			id = (uint32_t)f.value;
	}
	assert_false(r.bad);
	return id;
}

static void
count(struct sequence_map *m, uint64_t producer, uint32_t writer,
    uint32_t buffer, size_t payload)
{
	struct tb_origin o = { .producer = producer, .writer = writer };

	sequence_map_count_chunk(m, &o, buffer, payload);
}

static void
ids_begin_at_two_and_stay(void **state)
{
	struct sequence_map *m = sequence_map_new(false);

	assert_int_equal(id_of(m, 1, 1), 2);
	assert_int_equal(id_of(m, 1, 2), 3);
	assert_int_equal(id_of(m, 2, 1), 4);
	assert_int_equal(id_of(m, 1, 1), 2);
	assert_int_equal(id_of(m, 2, 1), 4);
	assert_int_equal(sequence_map_size(m), 3);
	sequence_map_free(m);
}

static void
a_writer_without_packets_takes_no_id(void **state)
{
	struct sequence_map *m = sequence_map_new(true);
	struct service_sequence list[4];
	struct packet_writer_stats stats[4];

	count(m, 1, 1, 0, 100);
	assert_int_equal(sequence_map_list(m, list, 4), 0);
	assert_int_equal(sequence_map_writer_stats(m, stats, 4), 0);
	assert_int_equal(id_of(m, 1, 2), 2);
	assert_int_equal(id_of(m, 1, 1), 3);
	assert_int_equal(sequence_map_list(m, list, 4), 2);
	assert_int_equal(sequence_map_writer_stats(m, stats, 4), 1);
	assert_int_equal(stats[0].sequence, 3);
	sequence_map_free(m);
}

static void
thousands_of_sequences_keep_their_ids(void **state)
{
	struct sequence_map *m = sequence_map_new(false);
	uint32_t p, w, id = 2;

	for (p = 1; p <= 100; p++)
		for (w = 1; w <= 100; w++)
			assert_int_equal(id_of(m, p, w), id++);
	id = 2;
	for (p = 1; p <= 100; p++)
		for (w = 1; w <= 100; w++)
			assert_int_equal(id_of(m, p, w), id++);
	assert_int_equal(sequence_map_size(m), 10000);
	sequence_map_free(m);
}

static void
a_sweep_drops_only_what_is_gone_and_reuses_no_id(void **state)
{
	struct sequence_map *m = sequence_map_new(true);
	struct service_sequence list[300];
	uint32_t w;
	size_t i;

	for (w = 1; w <= 100; w++) {
		count(m, 1, w, 0, 1);
		(void)id_of(m, 1, w);
		(void)id_of(m, 2, w);
	}
	sequence_map_sweep(m);
	assert_int_equal(sequence_map_size(m), 200);
	sequence_map_producer_gone(m, 1);
	sequence_map_producer_gone(m, 1);
	/* Still to be read: */
	assert_int_equal(id_of(m, 1, 1), 2);
	assert_int_equal(sequence_map_size(m), 200);
	sequence_map_sweep(m);
	assert_int_equal(sequence_map_size(m), 100);
	assert_int_equal(sequence_map_list(m, list, 300), 100);
	for (i = 0; i < 100; i++)
		assert_int_equal(list[i].producer, 2);
	assert_int_equal(id_of(m, 2, 1), 3);
	assert_int_equal(id_of(m, 3, 1), 202);
	sequence_map_free(m);
}

static void
chunk_sizes_are_counted_per_writer(void **state)
{
	struct sequence_map *m = sequence_map_new(true);
	struct packet_writer_stats s[4];

	count(m, 1, 1, 3, 8);
	count(m, 1, 1, 3, 9);
	count(m, 1, 1, 3, 1000000);
	(void)id_of(m, 1, 1);
	(void)id_of(m, 1, 2);
	assert_int_equal(sequence_map_writer_stats(m, s, 4), 1);
	assert_int_equal(s[0].sequence, 2);
	assert_int_equal(s[0].buffer, 3);
	assert_int_equal(s[0].histogram.count[0], 1);
	assert_int_equal(s[0].histogram.count[1], 1);
	assert_int_equal(s[0].histogram.count[CHUNK_HISTOGRAM_BOUNDS], 1);
	assert_int_equal(s[0].histogram.sum[1], 9);
	sequence_map_free(m);
}

static void
histograms_are_left_out_when_not_wanted_and_bounded_when_they_are(void **state)
{
	struct packet_writer_stats *s = calloc(5000, sizeof(*s));
	struct sequence_map *m = sequence_map_new(false);
	uint32_t w;
	size_t n;

	count(m, 1, 1, 0, 8);
	(void)id_of(m, 1, 1);
	assert_int_equal(sequence_map_writer_stats(m, s, 10), 0);
	sequence_map_free(m);
	m = sequence_map_new(true);
	for (w = 1; w <= 4000; w++) {
		count(m, 1, w, 0, 8);
		(void)id_of(m, 1, w);
	}
	n = sequence_map_writer_stats(m, s, 5000);
	assert_true(n > 0 && n <= 1024);
	/* Room again when their producers are gone. */
	sequence_map_producer_gone(m, 1);
	sequence_map_sweep(m);
	count(m, 2, 1, 0, 8);
	(void)id_of(m, 2, 1);
	/* They are told of as before, and so is the new one. */
	assert_int_equal(sequence_map_writer_stats(m, s, 5000), n + 1);
	assert_int_equal(sequence_map_writers(m), n + 1);
	sequence_map_free(m);
	free(s);
}

static void
writers_that_are_gone_are_told_of_the_newest_longest(void **state)
{
	struct sequence_map *m = sequence_map_new(true), *c;
	struct packet_writer_stats *s = calloc(3000, sizeof(*s));
	uint32_t p, least = UINT32_MAX, most = 0;
	size_t i, n;

	assert_non_null(s);
	for (p = 1; p <= 2000; p++) {
		count(m, p, 1, p % 3, p);
		(void)id_of(m, p, 1);
		count(m, p, 2, 0, 1); /* has no packet: not told of */
		sequence_map_producer_gone(m, p);
		sequence_map_sweep(m);
		assert_int_equal(sequence_map_size(m), 0);
	}
	n = sequence_map_writer_stats(m, s, 3000);
	assert_int_equal(n, 1024);
	for (i = 0; i < n; i++) {
		/* Ids were given in order: the id tells who it was. */
		p = (uint32_t)s[i].sequence - 1;
		assert_int_equal(s[i].buffer, p % 3);
		assert_int_equal(s[i].histogram.sum[0] +
		    s[i].histogram.sum[1] + s[i].histogram.sum[2] +
		    s[i].histogram.sum[3] + s[i].histogram.sum[4] +
		    s[i].histogram.sum[5], p);
		least = p < least ? p : least;
		most = p > most ? p : most;
	}
	assert_int_equal(least, 2000 - 1024 + 1);
	assert_int_equal(most, 2000);
	assert_int_equal(sequence_map_writer_stats(m, s, 10), 10);
	c = sequence_map_clone(m);
	assert_non_null(c);
	sequence_map_free(m);
	count(c, 1, 9, 0, 1);
	(void)id_of(c, 1, 9);
	sequence_map_producer_gone(c, 1);
	sequence_map_sweep(c);
	assert_int_equal(sequence_map_writer_stats(c, s, 3000), 1024);
	sequence_map_free(c);
	free(s);
}

static void
a_list_is_cut_where_the_room_ends(void **state)
{
	struct sequence_map *m = sequence_map_new(true);
	struct service_sequence list[3];
	struct packet_writer_stats stats[3];
	uint32_t w;

	for (w = 1; w <= 10; w++) {
		(void)id_of(m, 1, w);
		count(m, 1, w, 0, 1);
	}
	assert_int_equal(sequence_map_list(m, list, 3), 3);
	assert_int_equal(sequence_map_writer_stats(m, stats, 3), 3);
	assert_int_equal(sequence_map_list(m, NULL, 0), 0);
	sequence_map_free(m);
}

static void
a_clone_knows_the_same_and_goes_its_own_way(void **state)
{
	struct sequence_map *m = sequence_map_new(true), *c;
	struct packet_writer_stats s[8];
	uint32_t w;

	for (w = 1; w <= 200; w++)
		(void)id_of(m, 1, w);
	count(m, 1, 5, 1, 8);
	sequence_map_producer_gone(m, 1);
	c = sequence_map_clone(m);
	assert_non_null(c);
	assert_int_equal(sequence_map_size(c), 200);
	assert_int_equal(id_of(c, 1, 5), 6);
	assert_int_equal(sequence_map_writer_stats(c, s, 8), 1);
	count(c, 1, 5, 1, 8);
	assert_int_equal(sequence_map_writer_stats(m, s, 8), 1);
	assert_int_equal(s[0].histogram.count[0], 1);
	/* An id that both give next is given for different sequences. */
	assert_int_equal(id_of(m, 2, 1), 202);
	assert_int_equal(id_of(c, 3, 1), 202);
	sequence_map_sweep(c);
	assert_int_equal(sequence_map_size(c), 1);
	assert_int_equal(sequence_map_size(m), 201);
	sequence_map_free(m);
	sequence_map_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_begin_at_two_and_stay),
		cmocka_unit_test(a_writer_without_packets_takes_no_id),
		cmocka_unit_test(thousands_of_sequences_keep_their_ids),
		cmocka_unit_test(a_sweep_drops_only_what_is_gone_and_reuses_no_id),
		cmocka_unit_test(chunk_sizes_are_counted_per_writer),
		cmocka_unit_test(histograms_are_left_out_when_not_wanted_and_bounded_when_they_are),
		cmocka_unit_test(writers_that_are_gone_are_told_of_the_newest_longest),
		cmocka_unit_test(a_list_is_cut_where_the_room_ends),
		cmocka_unit_test(a_clone_knows_the_same_and_goes_its_own_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
