/*
 * Data sources that take their time to start, or never do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "service/session/instance.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"

#define ONE_SOURCE                                                             \
	"buffers { size_kb: 64 } data_sources { config { name: \"src\" } } "
#define SLOW_MS 20000u

/* How many data sources the trace names as slow to start. */
static size_t
named_slow(struct session *s)
{
	Perfetto__Protos__TracingServiceEvent *e;
	struct fake_trace t;
	size_t i, n = 0;

	fake_read(s, &t);
	for (i = 0; i < t.n; i++) {
		e = t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_SERVICE_EVENT ?
		    t.packets[i]->service_event : NULL;
		if (e != NULL && e->event_type_case ==
		    PERFETTO__PROTOS__TRACING_SERVICE_EVENT__EVENT_TYPE_SLOW_STARTING_DATA_SOURCES)
			n += e->slow_starting_data_sources->n_data_source;
	}
	fake_trace_done(&t);
	return n;
}

static void
a_source_that_is_slow_is_named_and_waited_for(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "slow", true);
	fake_producer_register(&p, "src", true, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_time_pass(SLOW_MS - 1, NULL);
	assert_int_equal(named_slow(c.s), 0);
	fake_time_pass(1, NULL);
	assert_int_equal(named_slow(c.s), 1);
	/* Nobody is told what is not so, however long it takes. */
	fake_time_pass(100 * SLOW_MS, NULL);
	assert_false(c.all_started);
	assert_int_equal(named_slow(c.s), 0);
	instance_ack_started(TAILQ_FIRST(&c.s->instances));
	assert_true(c.all_started);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_source_that_never_starts_is_waited_for_until_it_goes(void **state)
{
	struct fixture *f = *state;
	struct fake_producer quick, p;
	struct fake_consumer c;

	fake_producer_init(&quick, f, "quick", true);
	fake_producer_register(&quick, "src", false, false);
	fake_producer_init(&p, f, "hangs", true);
	fake_producer_register(&p, "src", true, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_time_pass(2 * SLOW_MS, NULL);
	assert_false(c.all_started);
	fake_producer_done(&p);
	assert_true(c.all_started);
	session_free(c.s);
	fake_producer_done(&quick);
}

#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_source_that_is_slow_is_named_and_waited_for),
		T(a_source_that_never_starts_is_waited_for_until_it_goes),
	};

	fixture_pass_time = fake_time_tick;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
