/*
 * probe_source: puts the probes behind a producer: one probe, writer and timer
 * for each instance that the service sets up.
 */
#ifndef CLIENT_PROBES_PROBE_SOURCE_H
#define CLIENT_PROBES_PROBE_SOURCE_H

#include "client/library/producer.h"
#include "client/probes/probe.h"
#include "transport/base/compiler.h"

struct loop;

struct probe_sources {
	struct loop *loop;     /* borrowed */
	struct probe_env *env; /* borrowed */
	struct producer_source process_stats;
	struct producer_source sys_stats;
};

/* l and env are borrowed; s outlives the producer it is registered with. */
void probe_sources_init(struct probe_sources *s, struct loop *l,
    struct probe_env *env);
/* Registers both data sources.  -1: too many, as producer_add_source(). */
int probe_sources_register(struct probe_sources *s, struct producer *p)
    MUST_CHECK;

#endif /* CLIENT_PROBES_PROBE_SOURCE_H */
