/*
 * collector_clock: how far a collector's wall clock is ahead of this machine's,
 * measured by a few questions over the control connection (Cristian's
 * algorithm: the answer with the shortest round trip counts).
 */
#ifndef CLIENT_LIBRARY_COLLECTOR_CLOCK_H
#define CLIENT_LIBRARY_COLLECTOR_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct addr;
struct collector_clock;
struct dial_options;
struct loop;

struct collector_clock_reading {
	int64_t ahead_ns;       /* their wall clock less ours */
	uint64_t within_ns;     /* half of the round trip */
};

/*
 * The outcome, once, from the loop.  r NULL: it cannot be measured, as the
 * collector does not know TributaryControl or cannot be reached.
 */
typedef void (*collector_clock_fn)(void *arg,
    const struct collector_clock_reading *r);

/* Begins to connect.  NULL with a sentence. */
struct collector_clock *collector_clock_new(struct loop *l,
    const struct addr *a, const struct dial_options *how,
    collector_clock_fn fn, void *arg, char *err, size_t err_size) MUST_CHECK;
/* Legal inside fn.  NULL is fine. */
void collector_clock_free(struct collector_clock *c);

#endif /* CLIENT_LIBRARY_COLLECTOR_CLOCK_H */
