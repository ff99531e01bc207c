/* Timestamps against the time of arrival, in time that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/ingest/arrivals.h"
#include "service/machine/machine.h"
#include "service/model/model.h"
#include "service/session/session.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_stats.h"
#include "transport/wire/pb_writer.h"

#define SECOND 1000000000ull

uint64_t __wrap_loop_boottime_ns(void);

static struct service service;
static struct session session, clone;
static struct producer producer;
static uint64_t now_ns;
static struct packet_foreign_clock found[4];

uint64_t
__wrap_loop_boottime_ns(void)
{
	return now_ns;
}

static int
setup(void **state)
{
	memset(&service, 0, sizeof(service));
	memset(&session, 0, sizeof(session));
	memset(&clone, 0, sizeof(clone));
	memset(&producer, 0, sizeof(producer));
	service.machines = machine_table_new();
	session.service = clone.service = &service;
	producer.service = &service;
	producer.machine = &service.host;
	producer.id = 3;
	producer.name = strdup("sdk");
	now_ns = 10000 * SECOND;
	producer.arrivals = arrival_watch_new();
	return service.machines == NULL || producer.arrivals == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	arrivals_free(session.arrivals);
	arrivals_free(clone.arrivals);
	arrival_watch_free(producer.arrivals);
	machine_table_free(service.machines);
	free(producer.name);
	return 0;
}

static void
chunk(uint32_t writer, uint64_t at_s, const uint64_t *stamps, size_t n,
    uint8_t flags)
{
	struct tb_chunk c = { .num_fragments = (uint16_t)n, .flags = flags,
		.complete = true };
	struct pb_writer packet, w;
	size_t i;

	now_ns = at_s * SECOND;
	pb_writer_init(&w);
	pb_writer_init(&packet);
	for (i = 0; i < n; i++) {
		pb_writer_reset(&packet);
		pb_put_uint(&packet, 8, stamps[i] * SECOND);
		pb_put_raw(&w, &(uint8_t){ (uint8_t)packet.len }, 1);
		pb_put_raw(&w, packet.data, packet.len);
	}
	c.payload = w.data;
	c.len = w.len;
	arrivals_look(&producer, &session, writer, &c);
	pb_writer_done(&packet);
	pb_writer_done(&w);
}

#define CHUNK(writer, at, ...)                                                 \
	chunk(writer, at, (uint64_t[]){ __VA_ARGS__ },                         \
	    sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), 0)

/* A packet that has nothing but a reading of the boot clock, in a chunk. */
static void
reading(uint32_t writer, uint64_t at_s, uint64_t stamp_s)
{
	struct tb_chunk c = { .num_fragments = 1, .complete = true };
	struct pb_writer clock, snapshot, packet, w;

	now_ns = at_s * SECOND;
	pb_writer_init(&clock);
	pb_writer_init(&snapshot);
	pb_writer_init(&packet);
	pb_writer_init(&w);
	pb_put_uint(&clock, 1, 6);
	pb_put_uint(&clock, 2, stamp_s * SECOND);
	pb_put_bytes(&snapshot, 1, clock.data, clock.len);
	pb_put_bytes(&packet, 6, snapshot.data, snapshot.len);
	pb_put_raw(&w, &(uint8_t){ (uint8_t)packet.len }, 1);
	pb_put_raw(&w, packet.data, packet.len);
	c.payload = w.data;
	c.len = w.len;
	arrivals_look(&producer, &session, writer, &c);
	pb_writer_done(&clock);
	pb_writer_done(&snapshot);
	pb_writer_done(&packet);
	pb_writer_done(&w);
}

static size_t
listed(void)
{
	return arrivals_list(&session, found, 4);
}

static void
what_is_older_than_its_writers_last_word_is_not_ours(void **state)
{
	/* Nobody knows since when it waited: it connected at 10000 s. */
	CHUNK(1, 11000, 10500, 10501);
	assert_int_equal(listed(), 0);
	CHUNK(1, 11001, 10502, 10503);
	assert_int_equal(listed(), 1);
	assert_int_equal(found[0].producer, 3);
	assert_string_equal(found[0].name, "sdk");
	assert_int_equal(found[0].packets, 2);
	assert_true(found[0].offset_ns == -498 * (int64_t)SECOND);
}

static void
what_is_older_than_its_connection_is_not_ours(void **state)
{
	CHUNK(1, 10002, 7, 8);
	assert_int_equal(listed(), 1);
	assert_true(found[0].offset_ns == -9994 * (int64_t)SECOND);
}

static void
old_events_of_a_producer_that_is_on_time_are_old_events(void **state)
{
	CHUNK(1, 10002, 7, 8, 9);
	CHUNK(1, 10003, 10003);
	assert_int_equal(listed(), 0);
}

static void
each_writer_waits_by_itself(void **state)
{
	CHUNK(1, 11000, 10999);
	CHUNK(2, 11000, 10200, 10300);
	CHUNK(2, 11500, 11001, 11002);
	assert_int_equal(listed(), 0);
}

static void
what_comes_before_it_was_written_is_not_ours(void **state)
{
	CHUNK(1, 10001, 10030, 10031);
	assert_int_equal(listed(), 1);
	assert_true(found[0].offset_ns == 30 * (int64_t)SECOND);
	/* It waits, and seems to be on time now and then. */
	CHUNK(1, 10040, 10035);
	assert_int_equal(listed(), 1);
	/* A few strange ones among many are no clock. */
	CHUNK(1, 10041, 10041, 10041, 10041);
	assert_int_equal(listed(), 0);
}

static void
a_few_seconds_and_one_packet_prove_nothing(void **state)
{
	CHUNK(1, 10001, 9995, 9996, 10001, 10002);
	assert_int_equal(listed(), 0);
	CHUNK(2, 10001, 20000);
	assert_int_equal(listed(), 0);
}

static void
parts_of_packets_are_not_looked_at(void **state)
{
	const uint64_t stamps[] = { 7, 8 };

	chunk(1, 10001, stamps, 2, TB_FIRST_CONTINUES_FROM_PREV |
	    TB_LAST_CONTINUES_ON_NEXT);
	assert_int_equal(listed(), 0);
	assert_non_null(session.arrivals);
}

static void
a_clone_says_the_same(void **state)
{
	CHUNK(1, 10002, 7, 8);
	assert_int_equal(arrivals_copy(&clone, &session), 0);
	assert_int_equal(arrivals_list(&clone, found, 4), 1);
	assert_string_equal(found[0].name, "sdk");
}

static void
a_machine_that_was_measured_is_right(void **state)
{
	const struct machine_claim claim = { .id = 77, .name = "pump" };
	struct machine *m = machine_claim(service.machines, &claim);

	assert_non_null(m);
	producer.machine = m;
	CHUNK(1, 10002, 7, 8);
	assert_int_equal(listed(), 1);
	assert_int_equal(found[0].machine, 77);
	m->clock.known = true;
	assert_int_equal(listed(), 0);
}

static void
chunks_that_are_cut_short_are_harmless(void **state)
{
	struct tb_chunk c = { .num_fragments = 9, .complete = true,
		.payload = (const uint8_t[]){ 0x05, 0x40, 0x01 }, .len = 3 };

	arrivals_look(&producer, &session, 1, &c);
	c.len = 0;
	arrivals_look(&producer, &session, 1, &c);
	arrivals_look(&producer, &session, 30000, &c);
	assert_int_equal(listed(), 0);
}

static void
one_reading_of_the_clock_is_enough(void **state)
{
	reading(1, 10002, 7);
	assert_int_equal(listed(), 1);
	assert_int_equal(found[0].packets, 1);
	assert_true(found[0].offset_ns == -9995 * (int64_t)SECOND);
}

static void
one_reading_ahead_is_enough(void **state)
{
	reading(1, 10002, 10030);
	assert_int_equal(listed(), 1);
}

static void
one_reading_proves_nothing_beside_those_that_are_on_time(void **state)
{
	reading(1, 10002, 7);
	reading(2, 10002, 10001);
	assert_int_equal(listed(), 0);
}

static void
no_reading_is_from_before_its_session(void **state)
{
	session.start_boottime_ns = 10899 * SECOND;
	/* Its program may have begun some seconds earlier. */
	reading(1, 10901, 10890);
	assert_int_equal(listed(), 0);
	/* Events may be from before. */
	CHUNK(2, 10902, 10700, 10701);
	assert_int_equal(listed(), 0);
	reading(3, 10903, 10888);
	assert_int_equal(listed(), 1);
}

static void
producers_that_are_gone_take_no_place(void **state)
{
	uint32_t i;

	CHUNK(1, 10002, 7, 8);
	arrivals_producer_gone(&session, producer.id);
	for (i = 0; i < ARRIVALS_MAX + 1; i++) {
		producer.id = 5000 - i;
		CHUNK(2, 10002, 10001, 10002);
		arrivals_producer_gone(&session, producer.id);
		arrivals_producer_gone(&session, producer.id);
	}
	producer.id = 10000;
	CHUNK(3, 10003, 7, 8);
	assert_int_equal(listed(), 2);
	assert_int_equal(found[0].producer, 3);
	assert_int_equal(found[1].producer, 10000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_older_than_its_writers_last_word_is_not_ours),
		CASE(what_is_older_than_its_connection_is_not_ours),
		CASE(old_events_of_a_producer_that_is_on_time_are_old_events),
		CASE(each_writer_waits_by_itself),
		CASE(what_comes_before_it_was_written_is_not_ours),
		CASE(a_few_seconds_and_one_packet_prove_nothing),
		CASE(parts_of_packets_are_not_looked_at),
		CASE(one_reading_of_the_clock_is_enough),
		CASE(one_reading_ahead_is_enough),
		CASE(one_reading_proves_nothing_beside_those_that_are_on_time),
		CASE(no_reading_is_from_before_its_session),
		CASE(producers_that_are_gone_take_no_place),
		CASE(a_clone_says_the_same),
		CASE(a_machine_that_was_measured_is_right),
		CASE(chunks_that_are_cut_short_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
