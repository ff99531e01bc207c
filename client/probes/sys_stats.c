#include "client/probes/sys_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/probes/sensors.h"
#include "client/probes/sys_keys.h"
#include "client/probes/sys_text.h"
#include "client/probes/text_file.h"
#include "protos/fields.h"
#include "transport/base/log.h"
#include "transport/wire/pb_writer.h"

/* Kinds of counters, each with a period of its own. */
enum kind {
	MEMINFO,
	VMSTAT,
	STAT,
	BUDDYINFO,
	DISKSTAT,
	SLAB,
	PSI,
	/* from here on: sensors */
	CPUFREQ,
	CPUIDLE,
	DEVFREQ,
	GPUFREQ,
	THERMAL,
	KINDS,
};

/* Files below /proc; a kind may have more than one. */
enum file {
	FILE_MEMINFO,
	FILE_VMSTAT,
	FILE_STAT,
	FILE_BUDDYINFO,
	FILE_DISKSTATS,
	FILE_SLABINFO,
	FILE_PSI_CPU,
	FILE_PSI_IO,
	FILE_PSI_MEMORY,
	FILES,
};

static const char *const file_names[FILES] = {
	[FILE_MEMINFO] = "meminfo",
	[FILE_VMSTAT] = "vmstat",
	[FILE_STAT] = "stat",
	[FILE_BUDDYINFO] = "buddyinfo",
	[FILE_DISKSTATS] = "diskstats",
	[FILE_SLABINFO] = "slabinfo",
	[FILE_PSI_CPU] = "pressure/cpu",
	[FILE_PSI_IO] = "pressure/io",
	[FILE_PSI_MEMORY] = "pressure/memory",
};

#define NOT_OPENED (-1)
#define UNREADABLE (-2) /* said so once; not tried again */

struct sys_stats {
	struct probe_env *env; /* borrowed */
	probe_packet_fn fn;
	void *arg;

	uint32_t period_ms; /* of the polls */
	uint32_t polls_per[KINDS]; /* 0: not configured */
	uint64_t polls;
	unsigned stat_wanted;
	struct sys_keys *meminfo_keys;
	struct sys_keys *vmstat_keys;

	int fds[FILES];
	struct sensors *sensors[KINDS]; /* from CPUFREQ on */
	struct text text;
	struct pb_writer w;
};

/* Reads a file into s->text; says once why it cannot. */
static int
read_file(struct sys_stats *s, enum file f)
{
	char path[512];

	if (s->fds[f] == UNREADABLE)
		return -1;
	snprintf(path, sizeof(path), "%s/%s", s->env->proc, file_names[f]);
	if (s->fds[f] == NOT_OPENED)
		s->fds[f] = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fds[f] >= 0 && text_read_fd(&s->text, s->fds[f]) == 0)
		return 0;
	log_warn("cannot read %s: %s", path, strerror(errno));
	if (s->fds[f] >= 0)
		close(s->fds[f]);
	s->fds[f] = UNREADABLE;
	return -1;
}

static void
put_psi(struct sys_stats *s, enum file f, enum sys_psi resource)
{
	if (read_file(s, f) == 0)
		sys_text_psi(&s->w, resource, s->text.data, s->text.len);
}

static void
put_kind(struct sys_stats *s, enum kind k)
{
	switch (k) {
	case MEMINFO:
		if (read_file(s, FILE_MEMINFO) == 0)
			sys_text_counters(&s->w, SysStats_meminfo,
			    s->meminfo_keys, s->text.data, s->text.len);
		break;
	case VMSTAT:
		if (read_file(s, FILE_VMSTAT) == 0)
			sys_text_counters(&s->w, SysStats_vmstat,
			    s->vmstat_keys, s->text.data, s->text.len);
		break;
	case STAT:
		if (read_file(s, FILE_STAT) == 0)
			sys_text_stat(&s->w, s->stat_wanted,
			    s->env->ns_per_tick, s->text.data, s->text.len);
		break;
	case BUDDYINFO:
		if (read_file(s, FILE_BUDDYINFO) == 0)
			sys_text_buddyinfo(&s->w, s->text.data, s->text.len);
		break;
	case DISKSTAT:
		if (read_file(s, FILE_DISKSTATS) == 0)
			sys_text_diskstats(&s->w, s->text.data, s->text.len);
		break;
	case SLAB:
		if (read_file(s, FILE_SLABINFO) == 0)
			sys_text_slabinfo(&s->w, s->text.data, s->text.len);
		break;
	case PSI:
		put_psi(s, FILE_PSI_CPU, SYS_PSI_CPU);
		put_psi(s, FILE_PSI_IO, SYS_PSI_IO);
		put_psi(s, FILE_PSI_MEMORY, SYS_PSI_MEMORY);
		break;
	case CPUFREQ:
	case CPUIDLE:
	case DEVFREQ:
	case GPUFREQ:
	case THERMAL:
		sensors_read(s->sensors[k], &s->text, &s->w);
		break;
	case KINDS:
		break;
	}
}

void
sys_stats_poll(struct sys_stats *s)
{
	size_t mark;
	int k;

	pb_writer_reset(&s->w);
	pb_put_uint(&s->w, TracePacket_timestamp, s->env->now_ns());
	mark = pb_nest_begin(&s->w, TracePacket_sys_stats);
	for (k = 0; k < KINDS; k++)
		if (s->polls_per[k] != 0 && s->polls % s->polls_per[k] == 0)
			put_kind(s, (enum kind)k);
	pb_put_uint(&s->w, SysStats_collection_end_timestamp, s->env->now_ns());
	pb_nest_end(&s->w, mark);
	s->polls++;
	if (s->w.failed)
		log_warn("no memory for a packet");
	else
		s->fn(s->arg, s->w.data, s->w.len);
}

uint32_t
sys_stats_period_ms(const struct sys_stats *s)
{
	return s->period_ms;
}

/* ---- config ---- */

static uint32_t
clamp(uint32_t ms)
{
	if (ms == 0)
		return 0;
	if (ms < SYS_STATS_MIN_PERIOD_MS)
		return SYS_STATS_MIN_PERIOD_MS;
	return ms < SYS_STATS_MAX_PERIOD_MS ? ms : SYS_STATS_MAX_PERIOD_MS;
}

static void
read_periods(struct sys_stats *s, const Perfetto__Protos__SysStatsConfig *c)
{
	const uint32_t ms[KINDS] = {
		[MEMINFO] = clamp(c->meminfo_period_ms),
		[VMSTAT] = clamp(c->vmstat_period_ms),
		[STAT] = clamp(c->stat_period_ms),
		[BUDDYINFO] = clamp(c->buddyinfo_period_ms),
		[DISKSTAT] = clamp(c->diskstat_period_ms),
		[SLAB] = clamp(c->slab_period_ms),
		[PSI] = clamp(c->psi_period_ms),
		[CPUFREQ] = clamp(c->cpufreq_period_ms),
		[CPUIDLE] = clamp(c->cpuidle_period_ms),
		[DEVFREQ] = clamp(c->devfreq_period_ms),
		[GPUFREQ] = clamp(c->gpufreq_period_ms),
		[THERMAL] = clamp(c->thermal_period_ms),
	};
	int k;

	for (k = 0; k < KINDS; k++)
		if (ms[k] != 0 && (s->period_ms == 0 || ms[k] < s->period_ms))
			s->period_ms = ms[k];
	for (k = 0; k < KINDS; k++) {
		if (ms[k] == 0)
			continue;
		s->polls_per[k] = (ms[k] + s->period_ms / 2) / s->period_ms;
		if (ms[k] % s->period_ms != 0)
			log_info("a period of %u ms becomes %u ms", ms[k],
			    s->polls_per[k] * s->period_ms);
	}
}

static int
make_keys(struct sys_stats *s, const Perfetto__Protos__SysStatsConfig *c)
{
	size_t i;

	/* To protobuf-c each enum is a type of its own, as wide as int. */
	s->meminfo_keys = sys_keys_meminfo((const int *)c->meminfo_counters,
	    c->n_meminfo_counters);
	s->vmstat_keys = sys_keys_vmstat((const int *)c->vmstat_counters,
	    c->n_vmstat_counters);
	if (c->n_stat_counters == 0)
		s->stat_wanted = ~0u;
	for (i = 0; i < c->n_stat_counters; i++)
		if ((unsigned)c->stat_counters[i] < 32)
			s->stat_wanted |= 1u << (unsigned)c->stat_counters[i];
	return s->meminfo_keys != NULL && s->vmstat_keys != NULL ? 0 : -1;
}

static int
make_sensors(struct sys_stats *s)
{
	static const enum sensors_kind kind_of[KINDS] = {
		[CPUFREQ] = SENSORS_CPUFREQ,
		[CPUIDLE] = SENSORS_CPUIDLE,
		[DEVFREQ] = SENSORS_DEVFREQ,
		[GPUFREQ] = SENSORS_GPUFREQ,
		[THERMAL] = SENSORS_THERMAL,
	};
	int k;

	for (k = CPUFREQ; k < KINDS; k++) {
		if (s->polls_per[k] == 0)
			continue;
		s->sensors[k] = sensors_new(s->env, kind_of[k]);
		if (s->sensors[k] == NULL)
			return -1;
	}
	return 0;
}

struct sys_stats *
sys_stats_new(struct probe_env *env,
    const Perfetto__Protos__SysStatsConfig *config, probe_packet_fn fn,
    void *arg)
{
	Perfetto__Protos__SysStatsConfig empty =
	    PERFETTO__PROTOS__SYS_STATS_CONFIG__INIT;
	struct sys_stats *s;
	int i;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->env = env;
	s->fn = fn;
	s->arg = arg;
	for (i = 0; i < FILES; i++)
		s->fds[i] = NOT_OPENED;
	text_init(&s->text);
	pb_writer_init(&s->w);
	if (config == NULL)
		config = &empty;
	read_periods(s, config);
	if (make_keys(s, config) < 0 || make_sensors(s) < 0) {
		sys_stats_free(s);
		return NULL;
	}
	return s;
}

void
sys_stats_free(struct sys_stats *s)
{
	int i;

	if (s == NULL)
		return;
	for (i = 0; i < FILES; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	for (i = 0; i < KINDS; i++)
		sensors_free(s->sensors[i]);
	sys_keys_free(s->meminfo_keys);
	sys_keys_free(s->vmstat_keys);
	text_done(&s->text);
	pb_writer_done(&s->w);
	free(s);
}
