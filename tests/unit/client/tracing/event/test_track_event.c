/*
 * Events of a thread, as packets in memory that a service reads: what a
 * sequence's state begins with, what is told once, and what after a loss.  Time
 * is the test's.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tributary/data_source.h>
#include <tributary/track_event.h>
#include <cmocka.h>

#include "client/tracing/event/interning.h"
#include "client/tracing/event/track_event.h"
#include "client/tracing/memory/own_memory.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"
#include "tests/unit/client/tracing/memory/chunk_reader.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

TRIBUTARY_CATEGORY(net, "net", "", "");

/* TracePacket's fields, and those of what is in it. */
#define TIMESTAMP  8
#define EVENT      11
#define INTERNED   12
#define FLAGS      13
#define DROPPED    42
#define CLOCK_ID   58
#define DEFAULTS   59
#define DESCRIPTOR 60
#define CLEARED    1u
#define NEEDS      2u

static uint64_t fake_ns;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ts->tv_sec = (time_t)(fake_ns / 1000000000u);
	ts->tv_nsec = (long)(fake_ns % 1000000000u);
	return 0;
}

static struct endpoint endpoint;
static struct chunk_memory *memory;
static struct chunk_reader reader;
static struct tributary_instance *instance;

static void
wake(void *arg)
{
}

/* An instance with this TrackEventConfig, in a memory of so many bytes. */
static void
begin(size_t size, const char *config, size_t len)
{
	struct instance_setup setup = { .endpoint = &endpoint, .id = 1,
	    .buffer = 1 };
	struct tributary_source *s;
	struct pb_writer w;
	struct shm *shm;

	assert_int_equal(track_event_init(), 0);
	fake_ns = 5000000000u;
	shm = shm_new(size, 4096);
	assert_non_null(shm);
	memory = chunk_memory_new(shm, wake, NULL);
	assert_non_null(memory);
	chunk_reader_init(&reader, memory);
	pb_writer_init(&w);
	pb_put_bytes(&w, 113, config, len);
	setup.memory = memory;
	setup.config = w.data;
	setup.config_len = w.len;
	registry_lock();
	s = registry_find("track_event", strlen("track_event"));
	registry_unlock();
	instance = instance_new(s, &setup);
	assert_non_null(instance);
	pb_writer_done(&w);
	instance_start(instance);
}

/* What was written since the last time. */
static void
take(void)
{
	chunk_reader_forget(&reader);
	instance_hand_over(instance);
	chunk_reader_run(&reader);
}

static void
end(void)
{
	instance_free(instance);
	chunk_reader_done(&reader);
	chunk_memory_unref(memory);
}

/* A field of a packet; false: it has none. */
static bool
field(size_t packet, uint32_t number, struct pb_field *f)
{
	struct pb_reader r;

	assert_true(packet < reader.n_packets);
	pb_init(&r, reader.packets[packet].data, reader.packets[packet].len);
	while (pb_next(&r, f))
		if (f->number == number)
			return true;
	return false;
}

static uint64_t
number(size_t packet, uint32_t n)
{
	struct pb_field f;

	return field(packet, n, &f) ? f.value : 0;
}

static bool
has(size_t packet, uint32_t n)
{
	struct pb_field f;

	return field(packet, n, &f);
}

/* Whether the bytes of a packet hold this text. */
static bool
says(size_t packet, const char *text)
{
	return memmem(reader.packets[packet].data, reader.packets[packet].len,
	    text, strlen(text)) != NULL;
}

static void
event(void)
{
	TRIBUTARY_BEGIN(net, "name");
}

static void
a_sequence_begins_with_its_clock_its_track_and_its_descriptors(void **state)
{
	begin(65536, "", 0);
	event();
	take();
	assert_int_equal(reader.n_packets, 4);
	assert_int_equal(number(0, FLAGS), CLEARED);
	assert_true(has(0, DEFAULTS));
	assert_int_equal(number(0, TIMESTAMP), fake_ns);
	assert_int_equal(number(0, CLOCK_ID), 6);
	assert_true(has(1, DESCRIPTOR) && has(2, DESCRIPTOR));
	assert_int_equal(number(1, FLAGS), NEEDS);
	assert_true(says(2, "test_track_event"));
	assert_true(has(3, EVENT));
	assert_int_equal(number(3, FLAGS), NEEDS);
	assert_true(says(3, "name") && says(3, "net"));
	end();
}

static void
names_are_told_once_and_times_are_differences(void **state)
{
	int i;

	begin(65536, "", 0);
	event();
	take();
	for (i = 0; i < 10; i++) {
		fake_ns += 100;
		event();
	}
	TRIBUTARY_INSTANT(net, "another");
	fake_ns += 7000;
	TRIBUTARY_INSTANT(net, "another", tributary_int("i", 1));
	take();
	assert_int_equal(reader.n_packets, 12);
	for (i = 0; i < 10; i++) {
		assert_int_equal(number((size_t)i, TIMESTAMP), 100);
		assert_false(has((size_t)i, INTERNED));
	}
	assert_int_equal(number(10, TIMESTAMP), 0);
	assert_true(says(10, "another") && !says(10, "net"));
	assert_int_equal(number(11, TIMESTAMP), 7000);
	assert_true(says(11, "i") && !says(11, "another"));
	end();
}

/*
 * A begin and an end without arguments, with the byte of their size: 24 bytes,
 * or 22 where less than 128 ns pass between events.
 */
static void
events_without_arguments_take_twelve_bytes(void **state)
{
	size_t i, at, bytes, n;
	uint64_t step;

	begin(1024 * 1024, "", 0);
	for (step = 100; step <= 10000; step *= 100) {
		event();
		TRIBUTARY_END(net);
		take();
		bytes = n = 0;
		for (i = 0; i < 1000000; i++) {
			fake_ns += step;
			if (i % 2 == 0)
				TRIBUTARY_BEGIN(net, "name");
			else
				TRIBUTARY_END(net);
			if (i % 1000 != 999)
				continue;
			take();
			n += reader.n_packets;
			for (at = 0; at < reader.n_packets; at++)
				bytes += reader.packets[at].len + 1;
		}
		assert_int_equal(n, 1000000);
		assert_int_equal(bytes, n * (step == 100 ? 11 : 12));
	}
	end();
}

static void
all_is_told_anew_after_the_state_was_cleared(void **state)
{
	begin(65536, "", 0);
	event();
	take();
	instance_clear_state(instance);
	fake_ns += 1000;
	event();
	event();
	take();
	assert_int_equal(reader.n_packets, 5);
	assert_int_equal(number(0, FLAGS), CLEARED);
	assert_int_equal(number(0, TIMESTAMP), fake_ns);
	assert_true(says(3, "name") && says(3, "net"));
	assert_int_equal(number(3, TIMESTAMP), 0);
	assert_false(says(4, "name"));
	end();
}

static void
all_is_told_anew_after_a_category_is_gone(void **state)
{
	struct tributary_category other = { 0, "other", "", "", NULL };

	begin(65536, "", 0);
	event();
	tributary_category_add(&other);
	take();
	tributary_category_remove(&other);
	event();
	take();
	assert_int_equal(reader.n_packets, 4);
	assert_true(says(3, "name"));
	end();
}

static void
all_is_told_anew_after_a_loss(void **state)
{
	size_t i;

	begin(16384, "", 0);
	event();
	for (i = 0; i < 10000 && tributary_instance_dropped(instance) == 0;
	    i++)
		TRIBUTARY_INSTANT(net, "lost");
	assert_int_equal(tributary_instance_dropped(instance), 1);
	take();
	chunk_reader_forget(&reader);
	event();
	TRIBUTARY_INSTANT(net, "lost");
	take();
	assert_int_equal(reader.n_packets, 5);
	assert_int_equal(number(0, FLAGS), CLEARED);
	assert_int_equal(number(0, DROPPED), 257);
	assert_true(says(3, "name") && says(4, "lost"));
	end();
}

/* Each with a track of its own: more than a sequence remembers. */
static void
a_full_memory_of_names_loses_nothing(void **state)
{
	struct tributary_track t;
	size_t i, at, events = 0, begins = 0;

	begin(1024 * 1024, "", 0);
	for (i = 0; i < 2 * INTERNING_HARD_MAX; i++) {
		t = tributary_track("track", i, NULL);
		TRIBUTARY_INSTANT(net, "name", tributary_on(&t));
		if (i % 1000 != 0 && i + 1 < 2 * INTERNING_HARD_MAX)
			continue;
		take();
		for (at = 0; at < reader.n_packets; at++) {
			events += has(at, EVENT);
			begins += number(at, FLAGS) == CLEARED;
			assert_false(has(at, DROPPED));
		}
	}
	assert_int_equal(events, 2 * INTERNING_HARD_MAX);
	assert_int_equal(begins, 1 + 2 * INTERNING_HARD_MAX / INTERNING_MAX);
	assert_int_equal(tributary_instance_dropped(instance), 0);
	end();
}

static void
tracks_are_told_with_their_parents_and_once(void **state)
{
	struct tributary_track top = tributary_track("top", 0, NULL);
	struct tributary_track low = tributary_track("low", 0, &top);

	begin(65536, "", 0);
	event();
	take();
	TRIBUTARY_INSTANT(net, "name", tributary_on(&low));
	TRIBUTARY_INSTANT(net, "name", tributary_on(&top));
	TRIBUTARY_INSTANT(net, "name", tributary_on(tributary_process_track()));
	take();
	assert_int_equal(reader.n_packets, 5);
	assert_true(says(0, "low") && says(1, "top"));
	assert_true(has(2, EVENT) && has(3, EVENT) && has(4, EVENT));
	end();
}

static void
locations_that_are_near_each_other_have_numbers_of_their_own(void **state)
{
	static const char text[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t i;

	begin(65536, "", 0);
	/* 31 further in the text and as many lines before. */
	for (i = 0; i < 10; i++)
		TRIBUTARY_INSTANT(net, "name", tributary_location("file",
		    text + i, (uint32_t)(1000 - 31 * i)));
	take();
	assert_int_equal(reader.n_packets, 3 + 10);
	for (i = 0; i < 10; i++)
		assert_true(says(3 + i, text + i));
	end();
}

static void
nesting_too_deep_is_a_loss_and_not_an_end(void **state)
{
	struct tributary_arg args[40];
	size_t i;

	begin(65536, "", 0);
	event();
	take();
	for (i = 0; i < 40; i++)
		args[i] = tributary_dict("deeper");
	tributary_event_args(&tributary_category_net, TRIBUTARY_EVENT_INSTANT,
	    "name", args, 40);
	assert_int_equal(tributary_instance_dropped(instance), 1);
	tributary_event_args(&tributary_category_net, TRIBUTARY_EVENT_INSTANT,
	    "name", args, 20);
	assert_int_equal(tributary_instance_dropped(instance), 1);
	/* More ends than beginnings. */
	for (i = 0; i < 40; i++)
		args[i] = tributary_end_of();
	tributary_event_args(&tributary_category_net, TRIBUTARY_EVENT_INSTANT,
	    "name", args, 40);
	take();
	assert_int_equal(reader.n_packets, 5);
	assert_int_equal(number(0, FLAGS), CLEARED);
	end();
}

/* TrackEventConfig: disable_incremental_timestamps, timestamp_unit_multiplier */
#define ABSOLUTE "\x28\x01"
#define MICROSECONDS "\x30\xe8\x07"

static void
times_can_be_absolute(void **state)
{
	begin(65536, ABSOLUTE, 2);
	event();
	fake_ns += 1234;
	event();
	take();
	assert_int_equal(number(4, TIMESTAMP), fake_ns);
	end();
}

static void
parts_of_a_unit_are_not_lost(void **state)
{
	uint64_t sum = 0;
	size_t i;

	begin(65536, MICROSECONDS, 3);
	event();
	take();
	for (i = 0; i < 100; i++) {
		fake_ns += 390;
		event();
	}
	take();
	for (i = 0; i < 100; i++)
		sum += number(i, TIMESTAMP);
	assert_int_equal(sum, 39);
	end();
}

static void
time_that_goes_back_stands_still(void **state)
{
	begin(65536, "", 0);
	event();
	fake_ns -= 50;
	event();
	fake_ns += 80;
	event();
	take();
	assert_int_equal(number(4, TIMESTAMP), 0);
	assert_int_equal(number(5, TIMESTAMP), 30);
	end();
}

/* A thread, one instance, and names enough for most. */
static void *
write_names(void *arg)
{
	static const char names[16][8];
	size_t i, *bytes = arg, before = own_used();

	tributary_event(&tributary_category_net, TRIBUTARY_SLICE_BEGIN,
	    names[0]);
	bytes[0] = own_used() - before;
	for (i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		tributary_event(&tributary_category_net, TRIBUTARY_SLICE_BEGIN,
		    names[i]);
	bytes[1] = own_used() - before;
	return NULL;
}

static void
a_thread_has_less_than_a_kibibyte_for_an_instance(void **state)
{
	pthread_t thread;
	size_t bytes[2]; /* after one name, after all */

	begin(262144, "", 0);
	assert_int_equal(pthread_create(&thread, NULL, write_names, bytes),
	    0);
	pthread_join(thread, NULL);
	print_message("%zu and %zu bytes\n", bytes[0], bytes[1]);
	assert_in_range(bytes[0], 1, 511);
	assert_in_range(bytes[1], bytes[0], 1023);
	end();
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
	    a_sequence_begins_with_its_clock_its_track_and_its_descriptors),
		cmocka_unit_test(names_are_told_once_and_times_are_differences),
		cmocka_unit_test(events_without_arguments_take_twelve_bytes),
		cmocka_unit_test(all_is_told_anew_after_the_state_was_cleared),
		cmocka_unit_test(all_is_told_anew_after_a_category_is_gone),
		cmocka_unit_test(all_is_told_anew_after_a_loss),
		cmocka_unit_test(a_full_memory_of_names_loses_nothing),
		cmocka_unit_test(tracks_are_told_with_their_parents_and_once),
		cmocka_unit_test(
	    locations_that_are_near_each_other_have_numbers_of_their_own),
		cmocka_unit_test(nesting_too_deep_is_a_loss_and_not_an_end),
		cmocka_unit_test(times_can_be_absolute),
		cmocka_unit_test(parts_of_a_unit_are_not_lost),
		cmocka_unit_test(time_that_goes_back_stands_still),
		cmocka_unit_test(
		    a_thread_has_less_than_a_kibibyte_for_an_instance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
