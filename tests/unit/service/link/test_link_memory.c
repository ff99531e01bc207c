/* What links keep, as the limits for memory count it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "service/link/link_internal.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/base/budget.h"

#define BLOCKS 1000u

static void
op_wake(void *port)
{
}

static void
op_close(void *port, const char *why)
{
}

static const struct link_port_ops ops = { op_wake, op_close };

static bool
no_links(void *arg)
{
	return TAILQ_EMPTY(&((struct service *)arg)->links->ended);
}

static void
blocks_of_a_byte_that_wait_count_for_what_they_take(void **state)
{
	struct fixture *f = *state;
	struct link_request q = { .machine = fake_machine(f, 7, "door") };
	struct budget *before = f->service->connection_memory;
	struct budget b = { 0 };
	const char *refused;
	enum link_why why;
	struct link *l;
	uint32_t i;

	f->service->connection_memory = &b;
	l = link_open(f->service->links, &q, &ops, NULL, &why, &refused);
	assert_non_null(l);
	for (i = 0; i < BLOCKS; i++)
		assert_int_equal(link_channel_queue(&l->own,
		    (const uint8_t *)"", 1), 0);
	assert_true(b.memory >= BLOCKS * sizeof(struct link_queued));
	assert_int_equal(l->machine->contact.bytes_waiting, BLOCKS);
	for (i = 0; i < BLOCKS; i++)
		link_channel_unqueue(&l->own);
	assert_int_equal(b.memory, 0);
	link_give_up(l, "the test is over");
	fixture_wait(f, no_links, f->service);
	f->service->connection_memory = before;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    blocks_of_a_byte_that_wait_count_for_what_they_take,
		    fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
