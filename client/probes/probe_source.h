/*
 * probe_source: the probes as data sources of libtributary: one probe and timer
 * for each instance that the service sets up.
 *
 * The library's callbacks come on the loop, from tributary_turn().
 */
#ifndef CLIENT_PROBES_PROBE_SOURCE_H
#define CLIENT_PROBES_PROBE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/probes/probe.h"
#include "transport/base/compiler.h"
#include "transport/base/tailq.h"

struct loop;
struct probe_instance;

/*
 * Borrowed by the sources from probe_sources_add() on.  Members that are not
 * named here are zero at first.
 */
struct probe_sources {
	struct loop *loop;     /* borrowed */
	struct probe_env *env; /* borrowed */
	TAILQ_HEAD(, probe_instance) processes; /* of linux.process_stats */
};

/*
 * Registers all data sources with the library; s is borrowed for ever, and its
 * members may change while there is no instance.  -1: no memory, or they are
 * registered already.
 */
int probe_sources_add(struct probe_sources *s) MUST_CHECK;

/* Threads that events of another data source mention. */
struct probe_threads {
	const int32_t *tids;
	size_t n;
	bool changed; /* as of process_stats_tell_threads() */
};
/* Has linux.process_stats of that session describe them, if it is there. */
void probe_sources_tell_threads(struct probe_sources *s, uint64_t session,
    const struct probe_threads *threads);

#endif /* CLIENT_PROBES_PROBE_SOURCE_H */
