#include "tests/bench/tracing/events.h"

#include <string.h>
#include <time.h>
#include <tributary/track_event.h>

#define LIMIT_BYTES 12u
#define LIMIT_RING (256u * 1024u)
/* Disabled events cost little: more of them for one reading of the clock. */
#define DISABLED (100u * EVENTS)

TRIBUTARY_CATEGORY(bench, "bench", "Measured events", "");
/* Categories with this tag are off unless a session names it. */
TRIBUTARY_CATEGORY(off, "bench.off", "Events that no session wants", "slow");

static unsigned evaluated;

static double
processor_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

double
events_clock(int clock_id)
{
	double began = processor_ns();
	struct timespec ts;
	unsigned i;

	for (i = 0; i < EVENTS; i++)
		clock_gettime(clock_id, &ts);
	return (processor_ns() - began) / EVENTS;
}

double
events_limit(void)
{
	static uint8_t ring[LIMIT_RING];
	static size_t at;
	uint8_t event[LIMIT_BYTES] = { 0 };
	double began = processor_ns();
	struct timespec ts;
	unsigned i;

	for (i = 0; i < EVENTS; i++) {
		clock_gettime(CLOCK_BOOTTIME, &ts);
		memcpy(event, &ts.tv_nsec, sizeof(ts.tv_nsec));
		memcpy(ring + at, event, sizeof(event));
		at += LIMIT_BYTES;
		if (at + LIMIT_BYTES > sizeof(ring))
			at = 0;
		/* Each copy is made. */
		__asm__ volatile("" : : "r"(ring) : "memory");
	}
	return (processor_ns() - began) / EVENTS;
}

static double
ends(void)
{
	double began = processor_ns();
	unsigned i;

	for (i = 0; i < EVENTS; i++)
		TRIBUTARY_END(bench);
	return (processor_ns() - began) / EVENTS;
}

void
events_slices(double *begin, double *end)
{
	double began = processor_ns();
	unsigned i;

	for (i = 0; i < EVENTS; i++)
		TRIBUTARY_BEGIN(bench, "slice");
	*begin = (processor_ns() - began) / EVENTS;
	*end = ends();
}

void
events_slices_with_argument(double *begin, double *end)
{
	double began = processor_ns();
	unsigned i;

	for (i = 0; i < EVENTS; i++)
		TRIBUTARY_BEGIN(bench, "slice", tributary_int("i", i));
	*begin = (processor_ns() - began) / EVENTS;
	*end = ends();
}

static int64_t
evaluate(void)
{
	return ++evaluated;
}

static double
empty_loop(void)
{
	double began = processor_ns();
	unsigned i;

	for (i = 0; i < DISABLED; i++)
		__asm__ volatile("" : : : "memory");
	return processor_ns() - began;
}

double
events_disabled(void)
{
	double began = processor_ns(), all;
	unsigned i;

	for (i = 0; i < DISABLED; i++) {
		TRIBUTARY_BEGIN(off, "slice", tributary_int("i", evaluate()));
		__asm__ volatile("" : : : "memory");
	}
	all = processor_ns() - began;
	return (all - empty_loop()) / DISABLED;
}

unsigned
events_evaluated(void)
{
	return evaluated;
}

bool
events_enabled(void)
{
	return TRIBUTARY_ENABLED(bench);
}
