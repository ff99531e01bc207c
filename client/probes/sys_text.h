/*
 * sys_text: the kernel's texts of the whole machine, turned into fields of a
 * SysStats message.
 *
 * Pure: each function appends to w the fields that one text gives.  A line
 * that is not understood is skipped.
 */
#ifndef CLIENT_PROBES_SYS_TEXT_H
#define CLIENT_PROBES_SYS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_writer;
struct sys_keys;

/* SysStats */
enum sys_stats_field {
	SYS_STATS_MEMINFO = 1,
	SYS_STATS_VMSTAT = 2,
	SYS_STATS_CPU_STAT = 3,
	SYS_STATS_NUM_FORKS = 4,
	SYS_STATS_NUM_IRQ_TOTAL = 5,
	SYS_STATS_NUM_IRQ = 6,
	SYS_STATS_NUM_SOFTIRQ_TOTAL = 7,
	SYS_STATS_NUM_SOFTIRQ = 8,
	SYS_STATS_COLLECTION_END = 9,
	SYS_STATS_DEVFREQ = 10,
	SYS_STATS_CPUFREQ_KHZ = 11,
	SYS_STATS_BUDDY_INFO = 12,
	SYS_STATS_DISK_STAT = 13,
	SYS_STATS_PSI = 14,
	SYS_STATS_THERMAL_ZONE = 15,
	SYS_STATS_CPUIDLE_STATE = 16,
	SYS_STATS_GPUFREQ_MHZ = 17,
	SYS_STATS_SLAB_INFO = 18,
};

/* What of /proc/stat is wanted: bits 1 << SysStatsConfig.StatCounters. */
enum sys_stat_wanted {
	SYS_STAT_CPU_TIMES = 1 << 1,
	SYS_STAT_IRQ_COUNTS = 1 << 2,
	SYS_STAT_SOFTIRQ_COUNTS = 1 << 3,
	SYS_STAT_FORK_COUNT = 1 << 4,
};

/* SysStats.PsiSample.PsiResource: "some"; "full" is the one after it. */
enum sys_psi {
	SYS_PSI_CPU = 1,
	SYS_PSI_IO = 3,
	SYS_PSI_MEMORY = 5,
};

/* /proc/meminfo or /proc/vmstat; field is the SysStats field. */
void sys_text_counters(struct pb_writer *w, enum sys_stats_field field,
    const struct sys_keys *keys, const char *text, size_t len);
/* /proc/stat; wanted: enum sys_stat_wanted; ns_per_tick of its times. */
void sys_text_stat(struct pb_writer *w, unsigned wanted, uint64_t ns_per_tick,
    const char *text, size_t len);
/* /proc/buddyinfo */
void sys_text_buddyinfo(struct pb_writer *w, const char *text, size_t len);
/* /proc/diskstats */
void sys_text_diskstats(struct pb_writer *w, const char *text, size_t len);
/* /proc/pressure/ */
void sys_text_psi(struct pb_writer *w, enum sys_psi resource, const char *text,
    size_t len);
/* /proc/slabinfo */
void sys_text_slabinfo(struct pb_writer *w, const char *text, size_t len);

/* A file that holds one number, maybe negative. */
bool sys_text_number(const char *text, size_t len, int64_t *out);
/* pp_dpm_sclk of an AMD GPU: "1: 800Mhz *" is the current frequency. */
bool sys_text_amd_clock(const char *text, size_t len, uint64_t *mhz);

#endif /* CLIENT_PROBES_SYS_TEXT_H */
