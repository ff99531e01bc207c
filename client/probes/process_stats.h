/*
 * process_stats: the data source linux.process_stats.
 *
 * At the start, when the config asks for it, a ProcessTree of all processes
 * and threads; then at each poll the counters of each process that changed,
 * and a description of each process that is new.  Between them the threads that
 * linux.ftrace mentions, with their processes.
 */
#ifndef CLIENT_PROBES_PROCESS_STATS_H
#define CLIENT_PROBES_PROCESS_STATS_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * After a packet was dropped: clears incremental state, and describes again all
 * that was described.  Otherwise nothing.
 */
void process_stats_retell(struct process_stats *s);

/*
 * Describes threads that events mention, unless they are described already or
 * the config has the quirk DISABLE_ON_DEMAND.  changed: they are new, or have
 * other names since.
 */
void process_stats_tell_threads(struct process_stats *s, const int32_t *tids,
    size_t n, bool changed);

#endif /* CLIENT_PROBES_PROCESS_STATS_H */
