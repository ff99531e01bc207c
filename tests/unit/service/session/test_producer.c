#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/service/session/fixture.h"

#define RING "buffers { size_kb: 64 } "
#define ONE_SOURCE RING "data_sources { config { name: \"src\" } } "

static const char *
try_register(struct fake_producer *p, const char *name)
{
	struct pb_writer w;
	const char *why;

	pb_writer_init(&w);
	pb_put_string(&w, 1, name);
	why = producer_register(p->p, w.data, w.len);
	pb_writer_done(&w);
	return why;
}

static void
limits_are_errors_that_name_them(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct producer_hello hello = { .name = "name" };
	const char *why = NULL;

	hello.machine = &f->service->host;
	f->settings.limits.max_name_bytes = 3;
	assert_null(producer_new(f->service, &hello, NULL, NULL,
	    &why));
	assert_non_null(strstr(why, "max_name_bytes"));
	f->settings.limits.max_name_bytes = 4;
	f->settings.limits.max_producers = 1;
	f->settings.limits.max_data_sources_per_producer = 2;
	fake_producer_init(&p, f, "name", true);
	assert_null(producer_new(f->service, &hello, NULL, NULL, &why));
	assert_non_null(strstr(why, "max_producers"));
	assert_non_null(strstr(try_register(&p, "12345"), "max_name_bytes"));
	assert_non_null(try_register(&p, ""));
	assert_null(try_register(&p, "one"));
	assert_null(try_register(&p, "two"));
	assert_non_null(strstr(try_register(&p, "3"),
	    "max_data_sources_per_producer"));
	producer_unregister(p.p, "one", 3);
	assert_null(try_register(&p, "3"));
	assert_int_equal(f->service->counters.data_sources_seen, 3);
	fake_producer_done(&p);
	fake_producer_init(&p, f, "name", true);
	assert_int_equal(f->service->counters.producers_seen, 2);
	fake_producer_done(&p);
}

static void
data_sources_are_bounded_per_peer_and_in_all(void **state)
{
	struct producer_hello of_7 = { .name = "7", .peer = 7 };
	struct producer_hello of_8 = { .name = "8", .peer = 8 };
	struct fixture *f = *state;
	struct fake_producer a, b, c;

	f->settings.limits.max_data_sources = 3;
	f->settings.limits.max_data_sources_per_peer = 2;
	fake_producer_hello(&a, f, &of_7);
	fake_producer_hello(&b, f, &of_7);
	fake_producer_hello(&c, f, &of_8);
	assert_null(try_register(&a, "one"));
	assert_null(try_register(&b, "two"));
	assert_non_null(strstr(try_register(&a, "three"),
	    "limits.max_data_sources_per_peer"));
	/* Another peer has room of its own, until all is taken. */
	assert_null(try_register(&c, "one"));
	assert_non_null(strstr(try_register(&c, "two"),
	    "limits.max_data_sources is reached"));
	/* What goes makes room: one that is unregistered, one that leaves. */
	producer_unregister(a.p, "one", 3);
	assert_null(try_register(&a, "three"));
	assert_non_null(try_register(&a, "four"));
	fake_producer_done(&b);
	assert_null(try_register(&a, "four"));
	assert_int_equal(f->service->n_data_sources, 3);
	fake_producer_done(&a);
	fake_producer_done(&c);
	assert_int_equal(f->service->n_data_sources, 0);
	assert_int_equal(f->service->data_sources.peers.n, 0);
}

static void
descriptors_that_do_not_parse_or_name_nothing_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "\x0a\x09x", 3 }, { "\x0b", 1 }, { "\x08\x05", 2 },
		{ "\x10\x01", 2 }, { "", 0 }, { NULL, 0 },
		{ "\x0d\1\2\3\4", 5 },
	};
	struct fixture *f = *state;
	struct fake_producer p;
	size_t i;

	fake_producer_init(&p, f, "p", true);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_non_null(producer_register(p.p,
		    (const uint8_t *)cases[i].bytes, cases[i].len));
		producer_update(p.p, (const uint8_t *)cases[i].bytes,
		    cases[i].len);
	}
	assert_int_equal(p.p->n_data_sources, 0);
	fake_producer_done(&p);
}

static void
the_same_name_twice_gives_two_instances(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_int_equal(fake_producer_count(&p, "start"), 2);
	assert_int_equal(c.s->n_instances, 2);
	fake_end(f, &c);
	assert_int_equal(fake_producer_count(&p, "stop"), 2);
	fake_producer_done(&p);
}

static void
unregistering_ends_the_instances_of_that_name(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	fake_producer_register(&p, "two", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "data_sources { config {"
	    " name: \"two\" } }", -1));
	producer_unregister(p.p, "unknown", 7);
	producer_unregister(p.p, "sr", 2);
	assert_int_equal(c.s->n_instances, 2);
	producer_unregister(p.p, "src", 3);
	assert_int_equal(c.s->n_instances, 1);
	/* Both before their start, and one now. */
	assert_int_equal(c.stopped, 3);
	assert_null(producer_find_data_source(p.p, "src", 3));
	/* Again there, it joins the running session again. */
	fake_producer_register(&p, "src", false, false);
	assert_int_equal(c.s->n_instances, 2);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
an_update_replaces_the_descriptor(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct pb_writer w;
	struct data_source *ds;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", true, false);
	pb_writer_init(&w);
	pb_put_string(&w, 1, "src");
	pb_put_uint(&w, 2, 1);
	pb_put_uint(&w, 4, 1);
	pb_put_uint(&w, 9, 1);
	pb_put_string(&w, 99, "new");
	producer_update(p.p, w.data, w.len);
	ds = producer_find_data_source(p.p, "src", 3);
	assert_false(ds->descriptor.will_notify_on_start);
	assert_true(ds->descriptor.will_notify_on_stop);
	assert_true(ds->descriptor.handles_incremental_state_clear);
	assert_true(ds->descriptor.no_flush);
	assert_int_equal(ds->descriptor.len, w.len);
	assert_memory_equal(ds->descriptor.encoded, w.data, w.len);
	/* Unknown, or not even a message: nothing happens. */
	pb_writer_reset(&w);
	pb_put_string(&w, 1, "other");
	producer_update(p.p, w.data, w.len);
	producer_update(p.p, (const uint8_t *)"\x0a\x03src\x0b", 6);
	assert_int_equal(p.p->n_data_sources, 1);
	assert_true(ds->descriptor.no_flush);
	pb_writer_done(&w);
	fake_producer_done(&p);
}

static void
writers_are_bound_only_to_buffers_of_their_producer(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	uint64_t *wrong = &f->service->counters.wrong_buffer;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	writers_register(p.p, 1, 1);
	assert_int_equal(*wrong, 1);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	writers_register(p.p, 0, p.last_buffer);
	writers_register(p.p, 32768, p.last_buffer);
	writers_register(p.p, UINT32_MAX, p.last_buffer);
	writers_register(p.p, 1, 0);
	writers_register(p.p, 1, p.last_buffer + 65536u);
	writers_register(p.p, 1, p.last_buffer + 1u);
	assert_int_equal(*wrong, 7);
	assert_int_equal(p.p->n_writers, 0);
	writers_register(p.p, 1, p.last_buffer);
	writers_register(p.p, 1, p.last_buffer);
	writers_register(p.p, 32767, p.last_buffer);
	assert_int_equal(p.p->n_writers, 2);
	assert_int_equal(writers_buffer_of(p.p, 1), p.last_buffer);
	assert_int_equal(writers_buffer_of(p.p, 32767), p.last_buffer);
	assert_int_equal(writers_buffer_of(p.p, 2), 0);
	assert_int_equal(writers_buffer_of(p.p, 40000), 0);
	writers_unregister(p.p, 1);
	writers_unregister(p.p, 1);
	writers_unregister(p.p, 0);
	writers_unregister(p.p, 99999);
	assert_int_equal(writers_buffer_of(p.p, 1), 0);
	assert_int_equal(p.p->n_writers, 1);
	session_free(c.s);
	/* The buffer is gone, and so is the binding. */
	assert_int_equal(writers_buffer_of(p.p, 32767), 0);
	assert_int_equal(p.p->n_writers, 0);
	fake_producer_done(&p);
}

static void
writers_over_the_limit_are_not_bound(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	uint32_t w;

	f->settings.limits.max_writers_per_producer = 300;
	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	for (w = 1; w <= 1000; w++)
		writers_register(p.p, w, p.last_buffer);
	assert_int_equal(p.p->n_writers, 300);
	assert_int_equal(writers_buffer_of(p.p, 300), p.last_buffer);
	assert_int_equal(writers_buffer_of(p.p, 301), 0);
	writers_unregister(p.p, 5);
	writers_register(p.p, 301, p.last_buffer);
	assert_int_equal(writers_buffer_of(p.p, 301), p.last_buffer);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_buffer_that_goes_takes_only_its_own_writers(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c, d;
	uint16_t one, two;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	one = p.last_buffer;
	assert_non_null(fake_enable(f, &d, ONE_SOURCE, -1));
	two = p.last_buffer;
	assert_int_not_equal(one, two);
	writers_register(p.p, 1, one);
	writers_register(p.p, 2, two);
	session_free(c.s);
	assert_false(writers_may_use(p.p, one));
	assert_true(writers_may_use(p.p, two));
	assert_int_equal(writers_buffer_of(p.p, 1), 0);
	assert_int_equal(writers_buffer_of(p.p, 2), two);
	session_free(d.s);
	fake_producer_done(&p);
}

static void
memory_is_set_up_once_and_as_the_config_or_the_hint_says(void **state)
{
	static const struct {
		uint32_t hint_shm, hint_page;
		const char *config;
		size_t shm, page;
	} cases[] = {
		{ 0, 0, "", 262144, 4096 },
		{ 1048576, 8192, "", 1048576, 8192 },
		{ 1048576, 8192, "producers { producer_name: \"p\" "
		    "shm_size_kb: 512 page_size_kb: 16 }", 524288, 16384 },
		{ 1000, 5000, "", 262144, 4096 },
		{ 0, 0, "producers { producer_name: \"p\" shm_size_kb: "
		    "4294967295 page_size_kb: 4294967295 }", 262144, 4096 },
		{ 33554432, 4096, "", 33554432, 4096 },
	};
	struct fixture *f = *state;
	struct producer_hello hello = { .name = "p" };
	struct fake_producer p;
	struct fake_consumer c, d;
	char text[256];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hello.shm_size_hint = cases[i].hint_shm;
		hello.page_size_hint = cases[i].hint_page;
		fake_producer_hello(&p, f, &hello);
		fake_producer_register(&p, "src", false, false);
		snprintf(text, sizeof(text), ONE_SOURCE "%s",
		    cases[i].config);
		assert_non_null(fake_enable(f, &c, text, -1));
		assert_int_equal(shm_size(p.shm), cases[i].shm);
		assert_int_equal(shm_page_size(p.shm), cases[i].page);
		assert_non_null(fake_enable(f, &d, ONE_SOURCE, -1));
		assert_int_equal(fake_producer_count(&p, "tracing"), 1);
		session_free(c.s);
		session_free(d.s);
		fake_producer_done(&p);
	}
}

static void
memory_over_the_operator_s_limit_falls_back(void **state)
{
	struct fixture *f = *state;
	struct producer_hello hello = { .name = "p",
	    .shm_size_hint = 1048576, .page_size_hint = 4096 };
	struct fake_producer p;
	struct fake_consumer c;

	f->settings.limits.max_shm_kb = 512;
	fake_producer_hello(&p, f, &hello);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_int_equal(shm_size(p.shm), SHM_SIZE_DEFAULT);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
emulated_producers_get_no_memory(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_true(fake_producer_saw(&p, "tracing 4096"));
	assert_null(p.shm);
	session_free(c.s);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

static void
descriptors_have_a_most_of_bytes_together(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct pb_writer w;
	char *huge = calloc(1, 100001), name[8];
	const char *error = NULL;
	int i;

	memset(huge, 'x', 100000);
	fake_producer_init(&p, f, "p", true);
	pb_writer_init(&w);
	for (i = 0; i < 200 && error == NULL; i++) {
		pb_writer_reset(&w);
		snprintf(name, sizeof(name), "s%d", i);
		pb_put_string(&w, 1, name);
		pb_put_string(&w, 100, huge);
		error = producer_register(p.p, w.data, w.len);
	}
	assert_non_null(error);
	assert_in_range(i, 60, 100);
	/* Shorter ones may be updated, none to more than that. */
	pb_writer_reset(&w);
	pb_put_string(&w, 1, "s0");
	producer_update(p.p, w.data, w.len);
	assert_null(producer_register(p.p, w.data, w.len));
	pb_writer_done(&w);
	fake_producer_done(&p);
	free(huge);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(limits_are_errors_that_name_them),
		T(data_sources_are_bounded_per_peer_and_in_all),
		T(descriptors_that_do_not_parse_or_name_nothing_are_refused),
		T(the_same_name_twice_gives_two_instances),
		T(unregistering_ends_the_instances_of_that_name),
		T(an_update_replaces_the_descriptor),
		T(writers_are_bound_only_to_buffers_of_their_producer),
		T(writers_over_the_limit_are_not_bound),
		T(a_buffer_that_goes_takes_only_its_own_writers),
		T(memory_is_set_up_once_and_as_the_config_or_the_hint_says),
		T(memory_over_the_operator_s_limit_falls_back),
		T(emulated_producers_get_no_memory),
		T(descriptors_have_a_most_of_bytes_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
