#include "tests/fuzz/stage/turns.h"

#include <sched.h>
#include <unistd.h>

#include "tests/unit/fake_time.h"
#include "transport/loop/loop.h"

/* What answers at once does so within a time-out of two milliseconds. */
#define TURNS_A_MS 4u
/* After so many it is a timer that is waited for, */
#define IDLE_TURNS 64u
/* then a thread, */
#define LONG_TURNS 1024u
/* and after a quarter of a minute nothing that comes. */
#define MOST_TURNS 16000u

static unsigned turns;
static uint64_t budget_ns;

/* Each question takes a millisecond. */
static uint64_t
budget_clock_ns(void *arg)
{
	return budget_ns += 1000000;
}

struct loop *
turns_begin(void)
{
	struct loop *l;

	turns = 0;
	budget_ns = 0;
	fake_time_reset();
	if ((l = loop_new()) != NULL)
		loop_set_clock(l, budget_clock_ns, NULL);
	return l;
}

void
turns_pass(void)
{
	if (++turns % TURNS_A_MS == 0)
		fake_time_tick();
}

void
turns_skip(void)
{
	fake_time_tick();
}

bool
turns_wait(unsigned *n)
{
	if (++*n > IDLE_TURNS) {
		fake_time_tick();
		sched_yield();
	}
	if (*n > LONG_TURNS)
		usleep(1000);
	return *n < MOST_TURNS;
}
