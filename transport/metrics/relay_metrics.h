/*
 * relay_metrics: the numbers of a relay as Prometheus reads them
 * (tributary_relay_*), whether the relay itself says them (--metrics) or its
 * collector does.  Pure, but for the file that it prints to.  The report may be
 * hostile.
 */
#ifndef TRANSPORT_METRICS_RELAY_METRICS_H
#define TRANSPORT_METRICS_RELAY_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct Tributary__RelayReport;
struct metrics_out;

/* Prints the families that the report has something about, and no end. */
void relay_metrics_print(const struct metrics_out *m,
    const struct Tributary__RelayReport *r);
/*
 * Prints those, and what only the relay knows: its producers, its losses, and
 * whether its spool works.
 */
void relay_metrics_print_own(const struct metrics_out *m,
    const struct Tributary__RelayReport *r);

#endif /* TRANSPORT_METRICS_RELAY_METRICS_H */
