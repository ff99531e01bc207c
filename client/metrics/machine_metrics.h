/*
 * machine_metrics: one machine of a collector, as Prometheus reads it: what the
 * collector knows of it (tributary_machine_*), and what its relay said last
 * (tributary_relay_*).  Pure, but for the file that it prints to.
 */
#ifndef CLIENT_METRICS_MACHINE_METRICS_H
#define CLIENT_METRICS_MACHINE_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "transport/base/compiler.h"
#include "transport/metrics/metrics.h"

struct Tributary__MachineState;
struct Tributary__QueryMachinesReply;

enum machine_metrics_found {
	MACHINE_METRICS_ONE,
	MACHINE_METRICS_NONE,
	MACHINE_METRICS_SEVERAL, /* connected ones, of the same name */
};

/*
 * The machine with this name ("host": the collector's own): one that is
 * connected before those that are cut off or gone, and of these the newest, as a
 * machine that was started again is another one.  Stores it, borrowed, where
 * there is one.
 */
enum machine_metrics_found machine_metrics_find(
    const struct Tributary__QueryMachinesReply *r, const char *name,
    const struct Tributary__MachineState **out) MUST_CHECK;

/* now_ns: the collector's, as in the reply. */
void machine_metrics_print(FILE *out, const struct Tributary__MachineState *s,
    uint64_t now_ns, enum metrics_form form);

#endif /* CLIENT_METRICS_MACHINE_METRICS_H */
