/*
 * process_stats: the data source linux.process_stats.
 *
 * At the start, when the config asks for it, a ProcessTree of all processes
 * and threads; then at each poll the counters of each process that changed,
 * and a description of each process that is new.  Processes that neither the
 * first scan nor a poll meets are not described: that needs ftrace.
 */
#ifndef CLIENT_PROBES_PROCESS_STATS_H
#define CLIENT_PROBES_PROCESS_STATS_H

#include <stdint.h>

#include "client/probes/probe.h"
#include "protos/probe_config.pb-c.h"
#include "transport/base/compiler.h"

struct process_stats;

/* Shorter periods are raised to this. */
#define PROCESS_STATS_MIN_PERIOD_MS 100u

/*
 * config is read during the call; NULL is an empty one.  env is borrowed, and
 * its fds_left changed.  NULL: no memory, or /proc cannot be opened.
 */
struct process_stats *process_stats_new(struct probe_env *env,
    const Perfetto__Protos__ProcessStatsConfig *config, probe_packet_fn fn,
    void *arg) MUST_CHECK;
void process_stats_free(struct process_stats *s);

/* Makes the first scan, if configured. */
void process_stats_start(struct process_stats *s);
/* 0: no polling. */
uint32_t process_stats_period_ms(const struct process_stats *s);
void process_stats_poll(struct process_stats *s);
/*
 * Describes everything anew, so that the trace can be read from here on: at
 * the next poll, or at once when there is none.
 */
void process_stats_clear_incremental_state(struct process_stats *s);

#endif /* CLIENT_PROBES_PROCESS_STATS_H */
