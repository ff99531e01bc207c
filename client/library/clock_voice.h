/*
 * clock_voice: has a collector measure this machine's clocks, for producers
 * that do not speak for their machine: behind a tunnel, or simulated.
 *
 * A producer without data sources, which connects again after each loss.
 */
#ifndef CLIENT_LIBRARY_CLOCK_VOICE_H
#define CLIENT_LIBRARY_CLOCK_VOICE_H

#include "transport/base/compiler.h"

struct addr;
struct clock_voice;
struct dial_options;
struct loop;

struct clock_voice_setup {
	const struct addr *to;          /* borrowed until clock_voice_free() */
	const struct dial_options *how; /* the same; NULL: defaults */
	const char *name;               /* the producer's; the same */
	/* NULL: the host name, and the clocks say which machine it is. */
	const char *machine_name;       /* the same */
};

/* Begins to connect.  NULL: no memory. */
struct clock_voice *clock_voice_new(struct loop *l,
    const struct clock_voice_setup *setup) MUST_CHECK;
/* NULL is fine. */
void clock_voice_free(struct clock_voice *v);

#endif /* CLIENT_LIBRARY_CLOCK_VOICE_H */
