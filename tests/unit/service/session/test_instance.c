#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/ingest/commit.h"
#include "service/session/instance.h"
#include "tests/unit/service/session/fixture.h"

#define RING "buffers { size_kb: 64 } "
#define ONE_SOURCE RING "data_sources { config { name: \"src\" } } "
#define TWO_SOURCES ONE_SOURCE "data_sources { config { name: \"two\" } } "

static bool
asked_to_stop(void *arg)
{
	return fake_producer_count(arg, "stop") > 0;
}

static void
a_producer_that_goes_while_its_stop_is_awaited_ends_the_session(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	session_disable(c.s, NULL);
	fixture_wait(f, asked_to_stop, &p);
	assert_false(c.disabled);
	fake_producer_done(&p);
	assert_true(c.disabled);
	assert_string_equal(c.error, "");
	session_free(c.s);
}

static void
a_producer_with_two_instances_may_go_while_both_stop(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, true);
	fake_producer_register(&p, "two", false, true);
	assert_non_null(fake_enable(f, &c, TWO_SOURCES, -1));
	session_disable(c.s, NULL);
	fixture_wait(f, asked_to_stop, &p);
	fake_producer_done(&p);
	assert_true(c.disabled);
	session_free(c.s);
}

static void
an_instance_that_stopped_goes_with_its_producer_while_another_stops(
    void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	/* The first does not acknowledge: stopped, yet still there. */
	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, true);
	fake_producer_register(&p, "two", false, false);
	assert_non_null(fake_enable(f, &c, TWO_SOURCES, -1));
	session_disable(c.s, NULL);
	fixture_wait(f, asked_to_stop, &p);
	assert_false(c.disabled);
	fake_producer_done(&p);
	assert_true(c.disabled);
	session_free(c.s);
}

static void
a_source_unregistered_while_its_stop_is_awaited_ends_the_session(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	session_disable(c.s, NULL);
	fixture_wait(f, asked_to_stop, &p);
	producer_unregister(p.p, "src", 3);
	assert_true(c.disabled);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_stop_may_be_acknowledged_unasked_and_only_once(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct ds_instance *i;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	i = producer_find_instance(p.p, p.last_instance);
	instance_ack_started(i);
	instance_ack_stopped(i);
	instance_ack_stopped(i);
	instance_ack_started(i);
	assert_int_equal(c.started, 1);
	/* Before its start, and now. */
	assert_int_equal(c.stopped, 2);
	fake_end(f, &c);
	assert_int_equal(fake_producer_count(&p, "stop"), 0);
	fake_producer_done(&p);
}

static void
an_acknowledgement_before_the_start_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "deferred_start: true",
	    -1));
	instance_ack_started(producer_find_instance(p.p, p.last_instance));
	assert_int_equal(c.started, 0);
	assert_int_equal(session_start(c.s), 0);
	assert_true(fake_producer_saw(&p, "start 1"));
	assert_false(c.all_started);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
freeing_a_session_tells_its_sources_to_stop(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	session_free(c.s);
	assert_true(fake_producer_saw(&p, "stop 1"));
	assert_true(TAILQ_EMPTY(&p.p->instances));
	assert_int_equal(p.p->n_allowed, 0);
	fake_producer_done(&p);
}

static void
remote_machines_are_matched_only_when_asked_for(void **state)
{
	static const struct {
		const char *config;
		size_t local, remote;
	} cases[] = {
		{ ONE_SOURCE, 1, 0 },
		{ ONE_SOURCE "trace_all_machines: true", 1, 1 },
		{ RING "data_sources { config { name: \"src\" } "
		    "machine_name_filter: \"phone\" }", 0, 1 },
		{ RING "data_sources { config { name: \"src\" } "
		    "machine_name_filter: \"host\" }", 1, 0 },
		{ RING "data_sources { config { name: \"src\" } "
		    "machine_name_filter: \"host\" "
		    "machine_name_filter: \"phone\" }", 1, 1 },
		{ RING "data_sources { config { name: \"src\" } "
		    "machine_name_filter: \"other\" } "
		    "trace_all_machines: true", 0, 0 },
	};
	struct fixture *f = *state;
	struct fake_producer local, remote, impostor;
	struct producer_hello hello = { .name = "r", .emulated = true };
	struct fake_consumer c;
	size_t i;

	hello.machine = fake_machine(f, 7, "phone");
	fake_producer_init(&local, f, "l", true);
	fake_producer_hello(&remote, f, &hello);
	fake_producer_register(&local, "src", false, false);
	fake_producer_register(&remote, "src", false, false);
	hello.machine = fake_machine(f, 8, "host"); /* as it calls itself */
	fake_producer_hello(&impostor, f, &hello);
	fake_producer_register(&impostor, "src", false, false);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		local.n_log = remote.n_log = impostor.n_log = 0;
		assert_non_null(fake_enable(f, &c, cases[i].config, -1));
		assert_int_equal(fake_producer_count(&local, "start"),
		    cases[i].local);
		assert_int_equal(fake_producer_count(&remote, "start"),
		    cases[i].remote);
		assert_int_equal(fake_producer_count(&impostor, "start"),
		    i == 1);
		session_free(c.s);
	}
	fake_producer_done(&impostor);
	fake_producer_done(&local);
	fake_producer_done(&remote);
}

/* As Perfetto's service, which takes both of its names. */
static void
the_collectors_own_machine_is_matched_by_its_own_name(void **state)
{
	struct fixture *f = *state;
	struct fake_producer local;
	struct fake_consumer c;
	char config[256];

	fake_producer_init(&local, f, "l", true);
	fake_producer_register(&local, "src", false, false);
	snprintf(config, sizeof(config), RING "data_sources { config { name: "
	    "\"src\" } machine_name_filter: \"%s\" }",
	    f->service->host.name);
	assert_non_null(fake_enable(f, &c, config, -1));
	assert_int_equal(fake_producer_count(&local, "start"), 1);
	session_free(c.s);
	fake_producer_done(&local);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_producer_that_goes_while_its_stop_is_awaited_ends_the_session),
		T(a_producer_with_two_instances_may_go_while_both_stop),
		T(an_instance_that_stopped_goes_with_its_producer_while_another_stops),
		T(a_source_unregistered_while_its_stop_is_awaited_ends_the_session),
		T(a_stop_may_be_acknowledged_unasked_and_only_once),
		T(an_acknowledgement_before_the_start_changes_nothing),
		T(freeing_a_session_tells_its_sources_to_stop),
		T(remote_machines_are_matched_only_when_asked_for),
		T(the_collectors_own_machine_is_matched_by_its_own_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
