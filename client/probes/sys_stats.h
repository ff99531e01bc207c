/*
 * sys_stats: the data source linux.sys_stats, counters of the whole machine.
 *
 * Each kind of counter has a period of its own; the shortest is the period of
 * the polls, the others are rounded to a multiple of it.  One packet a poll.
 */
#ifndef CLIENT_PROBES_SYS_STATS_H
#define CLIENT_PROBES_SYS_STATS_H

#include <stdint.h>

#include "client/probes/probe.h"
#include "protos/probe_config.pb-c.h"
#include "transport/base/compiler.h"

struct sys_stats;

/* Periods outside of these bounds are set to the bound (10 ms, an hour). */
#define SYS_STATS_MIN_PERIOD_MS 10u
#define SYS_STATS_MAX_PERIOD_MS 3600000u

/*
 * config is read during the call; NULL is an empty one.  env is borrowed.
 * NULL: no memory.
 */
struct sys_stats *sys_stats_new(struct probe_env *env,
    const Perfetto__Protos__SysStatsConfig *config, probe_packet_fn fn,
    void *arg) MUST_CHECK;
void sys_stats_free(struct sys_stats *s);

/* 0: nothing is configured. */
uint32_t sys_stats_period_ms(const struct sys_stats *s);
void sys_stats_poll(struct sys_stats *s);

#endif /* CLIENT_PROBES_SYS_STATS_H */
