/*
 * sys_text: parses the kernel's texts about the whole machine into fields of a
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

#include "protos/fields.h"

struct pb_writer;
struct sys_keys;

/* Wanted parts of /proc/stat: bits 1 << SysStatsConfig.StatCounters. */
enum sys_stat_wanted {
	SYS_STAT_CPU_TIMES = 1 << SysStatsConfig_STAT_CPU_TIMES,
	SYS_STAT_IRQ_COUNTS = 1 << SysStatsConfig_STAT_IRQ_COUNTS,
	SYS_STAT_SOFTIRQ_COUNTS = 1 << SysStatsConfig_STAT_SOFTIRQ_COUNTS,
	SYS_STAT_FORK_COUNT = 1 << SysStatsConfig_STAT_FORK_COUNT,
};

/* SysStats.PsiSample.PsiResource: "some"; "full" is the one after it. */
enum sys_psi {
	SYS_PSI_CPU = PsiSample_PSI_RESOURCE_CPU_SOME,
	SYS_PSI_IO = PsiSample_PSI_RESOURCE_IO_SOME,
	SYS_PSI_MEMORY = PsiSample_PSI_RESOURCE_MEMORY_SOME,
};

/* /proc/meminfo or /proc/vmstat; field is the SysStats field. */
void sys_text_counters(struct pb_writer *w, uint32_t field,
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

/* Parses a file that holds one number, maybe negative; false: it does not. */
bool sys_text_number(const char *text, size_t len, int64_t *out);
/* pp_dpm_sclk of an AMD GPU: "1: 800Mhz *" is the current frequency. */
bool sys_text_amd_clock(const char *text, size_t len, uint64_t *mhz);

#endif /* CLIENT_PROBES_SYS_TEXT_H */
