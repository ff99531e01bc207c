/*
 * Recordings from before a session asks: what the data source's callbacks write
 * while the session takes over, and recordings that nobody takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>
#include <tributary/tributary.h>
#include <cmocka.h>

#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"

static struct tributary_source *source;
static int ends, starts, stops;
static bool start_wrote;

static void
put(struct tributary_packet *p, struct tributary_instance *i, void *context,
    bool first, void *arg)
{
	tributary_put_uint(p, 8, 1);
}

static void
start(struct tributary_instance *i, void *context)
{
	start_wrote = tributary_instance_write(i, put, NULL);
	starts++;
}

static bool
stop(struct tributary_instance *i, void *context)
{
	stops++;
	return true;
}

static const struct tributary_source_ops ops = { .size = sizeof(ops),
	.start = start, .stop = stop };

static void
ended_cb(void *arg, bool adopted, uint64_t lost)
{
	/* Of the recording's start(). */
	assert_int_equal(lost, adopted ? 0 : 1);
	assert_int_equal(adopted, *(bool *)arg);
	ends++;
}

static void
record(bool *adopted)
{
	struct tributary_startup_options o = TRIBUTARY_STARTUP_OPTIONS;

	ends = starts = stops = 0;
	o.source = "test.takeover";
	o.timeout_ms = UINT32_MAX;
	o.ended = ended_cb;
	o.arg = adopted;
	assert_int_equal(tributary_startup(&o), 0);
	assert_int_equal(starts, 1);
}

static void
wake(void *arg)
{
}

/* The thread that wrote for the recording is the one that calls start(). */
static void
test_start_writes(void **state)
{
	struct endpoint service = { .adopts = true };
	struct shm *shm = shm_new(65536, 4096);
	struct chunk_memory *m = chunk_memory_new(shm, wake, NULL);
	struct instance_setup setup = { .endpoint = &service, .memory = m,
	    .buffer = 1 };
	struct tributary_instance *i;
	bool adopted = true;

	record(&adopted);
	tributary_source_write(source, put, NULL);
	i = instance_new(source, &setup);
	assert_non_null(i);
	start_wrote = false;
	instance_start(i);
	assert_int_equal(starts, 2);
	assert_true(start_wrote);
	assert_int_equal(ends, 1);
	assert_int_equal(stops, 1);
	assert_int_equal(tributary_instance_dropped(i), 0);
	assert_true(instance_stop(i));
	instance_free(i);
	chunk_memory_close(m);
	chunk_memory_unref(m);
}

/* The thread was the loop's once, and is not any more. */
static void
test_ended_by_the_thread_of_an_earlier_loop(void **state)
{
	struct tributary_options o = TRIBUTARY_OPTIONS;
	bool adopted = false;

	o.address = "/nowhere/p";
	o.loop = TRIBUTARY_LOOP_PROGRAM;
	assert_int_equal(tributary_start(&o), 0);
	tributary_stop(1);
	record(&adopted);
	tributary_stop(1);
	assert_int_equal(ends, 1);
}

static int
add_source(void **state)
{
	struct tributary_source_options o = { .size = sizeof(o),
		.name = "test.takeover" };

	source = tributary_source_add(&o, &ops);
	return source != NULL ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_writes),
		cmocka_unit_test(test_ended_by_the_thread_of_an_earlier_loop),
	};

	return cmocka_run_group_tests(tests, add_source, NULL);
}
