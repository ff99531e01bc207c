#include "client/probes/process_stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/probes/process_stats_internal.h"
#include "transport/base/log.h"

static void
scan_all(struct process_stats *s,
    void (*fn)(struct process_stats *s, struct process *p))
{
	struct process *p;
	int32_t pid;

	process_packet_begin_scan(&s->packet);
	s->round++;
	rewinddir(s->dir.proc);
	while ((pid = process_dir_next(s->dir.proc)) != 0) {
		if ((p = process_table_get(&s->table, pid)) == NULL)
			continue;
		p->round = s->round;
		fn(s, p);
	}
	process_packet_end(&s->packet);
	process_table_sweep(&s->table, s->round, &s->env->fds_left);
}

static void
describe_new(struct process *p, void *arg)
{
	if (!p->described)
		process_tree_describe(arg, p);
}

static void
forget_values(struct process *p, void *arg)
{
	process_forget_values(p);
}

static void
forget_all(struct process *p, void *arg)
{
	process_forget_values(p);
	p->described = false;
	p->no_memory = false;
}

static void
describe_all(struct process_stats *s)
{
	scan_all(s, process_tree_describe);
	if (s->resolve_fds)
		scan_all(s, process_counters_open_files);
}

void
process_stats_start(struct process_stats *s)
{
	if (s->scan_on_start)
		describe_all(s);
}

uint32_t
process_stats_period_ms(const struct process_stats *s)
{
	return s->period_ms;
}

void
process_stats_poll(struct process_stats *s)
{
	scan_all(s, process_counters_poll);
	process_packet_begin_scan(&s->packet);
	process_table_each(&s->table, describe_new, s);
	process_packet_end(&s->packet);
	if (++s->polls >= s->ttl_polls) {
		s->polls = 0;
		process_table_each(&s->table, forget_values, NULL);
	}
}

void
process_stats_clear_incremental_state(struct process_stats *s)
{
	process_table_each(&s->table, forget_all, NULL);
	tid_set_clear(&s->told);
	s->polls = 0;
	s->packet.cleared = true;
	if (s->period_ms == 0)
		process_stats_start(s);
}

void
process_stats_retell(struct process_stats *s)
{
	if (!s->packet.dropped)
		return;
	s->packet.dropped = false;
	process_stats_clear_incremental_state(s);
	process_packet_begin_scan(&s->packet);
	process_table_each(&s->table, describe_new, s);
	process_packet_end(&s->packet);
}

/* ---- life ---- */

static void
read_config(struct process_stats *s,
    const Perfetto__Protos__ProcessStatsConfig *c)
{
	size_t i;

	s->scan_on_start = c->scan_all_processes_on_start;
	s->on_demand = true;
	for (i = 0; i < c->n_quirks; i++) {
		if (c->quirks[i] == PERFETTO__PROTOS__PROCESS_STATS_CONFIG__QUIRKS__DISABLE_INITIAL_DUMP)
			s->scan_on_start = false;
		if (c->quirks[i] == PERFETTO__PROTOS__PROCESS_STATS_CONFIG__QUIRKS__DISABLE_ON_DEMAND)
			s->on_demand = false;
	}
	s->thread_names = c->record_thread_names;
	s->main_threads = !c->skip_main_thread_message;
	s->smaps_rollup = c->scan_smaps_rollup;
	s->age = c->record_process_age;
	s->runtime = c->record_process_runtime;
	s->dmabuf_rss = c->record_process_dmabuf_rss;
	s->resolve_fds = c->resolve_process_fds;
	s->period_ms = c->proc_stats_poll_ms;
	if (s->period_ms > 0 && s->period_ms < PROCESS_STATS_MIN_PERIOD_MS)
		s->period_ms = PROCESS_STATS_MIN_PERIOD_MS;
	if (s->period_ms > 0)
		s->ttl_polls = c->proc_stats_cache_ttl_ms / s->period_ms;
}

struct process_stats *
process_stats_new(struct probe_env *env,
    const Perfetto__Protos__ProcessStatsConfig *config, probe_packet_fn fn,
    void *arg)
{
	Perfetto__Protos__ProcessStatsConfig empty =
	    PERFETTO__PROTOS__PROCESS_STATS_CONFIG__INIT;
	struct process_stats *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->env = env;
	process_packet_init(&s->packet, env, fn, arg);
	read_config(s, config != NULL ? config : &empty);
	if (process_dir_init(&s->dir, env) < 0) {
		log_error("cannot open %s: %s", env->proc, strerror(errno));
		process_stats_free(s);
		return NULL;
	}
	return s;
}

void
process_stats_free(struct process_stats *s)
{
	if (s == NULL)
		return;
	process_table_done(&s->table, &s->env->fds_left);
	process_dir_done(&s->dir);
	process_packet_done(&s->packet);
	tid_set_done(&s->told);
	free(s);
}
