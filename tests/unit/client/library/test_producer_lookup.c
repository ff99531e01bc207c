#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/library/producer_lookup.h"
#include "protos/service_state.pb-c.h"

#define MANY 100

typedef Perfetto__Protos__TracingServiceState service_state;
typedef Perfetto__Protos__TracingServiceState__Producer producer;

static producer producers[MANY];
static producer *list[MANY];

/* Ids 10, 20 ... */
static service_state
many(void)
{
	service_state s = PERFETTO__PROTOS__TRACING_SERVICE_STATE__INIT;
	int i;

	for (i = 0; i < MANY; i++) {
		perfetto__protos__tracing_service_state__producer__init(
		    &producers[i]);
		producers[i].id = 10 * (i + 1);
		list[i] = &producers[i];
	}
	s.producers = list;
	s.n_producers = MANY;
	return s;
}

static void
each_is_found_in_any_order(void **state)
{
	service_state s = many();
	size_t at = 0;
	int i;

	for (i = 0; i < MANY; i++)
		assert_ptr_equal(producer_lookup(&s, producers[i * 37 %
		    MANY].id, &at), &producers[i * 37 % MANY]);
}

/* So that those in order are a step away from each other. */
static void
it_goes_on_where_the_last_one_was(void **state)
{
	service_state s = many();
	size_t at = 0;
	int i;

	for (i = 0; i < MANY; i++) {
		assert_non_null(producer_lookup(&s, 10 * (i + 1), &at));
		assert_int_equal(at, i);
	}
	/* The first of two of the same id, from there. */
	producers[3].id = 10;
	at = 2;
	assert_ptr_equal(producer_lookup(&s, 10, &at), &producers[3]);
}

static void
what_is_not_there_is_not_found(void **state)
{
	service_state s = many();
	size_t at = 5;

	assert_null(producer_lookup(&s, 11, &at));
	assert_int_equal(at, 5);
	s.n_producers = 0;
	assert_null(producer_lookup(&s, 10, &at));
	/* From another state. */
	s.n_producers = 2;
	at = 50;
	assert_ptr_equal(producer_lookup(&s, 20, &at), &producers[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found_in_any_order),
		cmocka_unit_test(it_goes_on_where_the_last_one_was),
		cmocka_unit_test(what_is_not_there_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
