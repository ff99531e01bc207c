/*
 * The model with the real collector's links and a session that records: what the
 * trace has in the end.  Environment: as for test_link_model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/link/model_session.h"
#include "tests/unit/link/model_world.h"

#define COUNT 12
#define STEPS 1200

static void
run(bool ends)
{
	uint64_t seed = model_number("seed", 1), count, i;
	unsigned steps = (unsigned)model_number("steps", STEPS);
	uint64_t packets = 0, lost = 0, again = 0, commands = 0;
	struct world w;

	count = model_count(COUNT);
	for (i = 0; i < count; i++) {
		model_srand(seed + i);
		world_init(&w, true);
		w.ends = ends ? 1 : 0;
		for (model_step = 0; model_step < steps; model_step++)
			world_step(&w);
		world_settle(&w);
		collector_check_trace(w.collector, w.book.epoch == 0);
		packets += w.book.chunks_arrived;
		lost += w.book.chunks_lost;
		commands += w.book.commands_arrived;
		again += relay_sent_again(w.relay);
		world_done(&w);
	}
	print_message("%llu schedules from seed %llu: %llu packets in the "
	    "trace, %llu counted as lost, %llu blocks sent again, %llu "
	    "commands\n", (unsigned long long)count,
	    (unsigned long long)seed, (unsigned long long)packets,
	    (unsigned long long)lost, (unsigned long long)again,
	    (unsigned long long)commands);
	if (count >= COUNT && steps >= STEPS) {
		assert_true(packets > 10000);
		assert_true(again > 50);
		assert_true(commands > 100);
	}
}

static void
a_trace_has_every_packet_once_or_its_loss_to_the_unit(void **state)
{
	run(false);
}

static void
links_that_end_lose_nothing_that_is_not_counted(void **state)
{
	run(true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_trace_has_every_packet_once_or_its_loss_to_the_unit),
		cmocka_unit_test(
		    links_that_end_lose_nothing_that_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
