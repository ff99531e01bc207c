/*
 * events: the measured loops, each EVENTS long: what the library does, and what
 * it is held against.  All return processor time of the calling thread.
 */
#ifndef TESTS_BENCH_TRACING_EVENTS_H
#define TESTS_BENCH_TRACING_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EVENTS 1000u

/* Nanoseconds for each event. */
double events_clock(int clock_id);
/* The clock, and memcpy() of 12 bytes into memory as large as the shared. */
double events_limit(void);
/* Slices: begins, and then as many ends. */
void events_slices(double *begin, double *end);
void events_slices_with_argument(double *begin, double *end);
/* Of a category that no session has enabled; beyond that of an empty loop. */
double events_disabled(void);
/* How often an argument of a disabled event was evaluated. */
unsigned events_evaluated(void);

/* Whether a session has enabled the events. */
bool events_enabled(void);

#endif /* TESTS_BENCH_TRACING_EVENTS_H */
