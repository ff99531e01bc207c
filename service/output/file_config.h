/*
 * file_config: the options of a session's file, from its config and the
 * settings, with defaults filled in.  Pure; knows nothing of the file's state.
 */
#ifndef SERVICE_OUTPUT_FILE_CONFIG_H
#define SERVICE_OUTPUT_FILE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct file_sink_segments;
struct session;

uint32_t file_config_write_period_ms(const struct session *s);
/* Whether each periodic write is preceded by a flush. */
bool file_config_flushes_each_write(const struct session *s);
/* The period of flushes apart from writes; 0: there are none. */
uint32_t file_config_flush_period_ms(const struct session *s);
/* Whether the file is synced behind each periodic write. */
bool file_config_syncs(const struct session *s);

/* The output_path relative to the trace directory; points into the config. */
const char *file_config_path(const struct session *s);
/* The uid that is to own the file at output_path; -1: the daemon's. */
long file_config_owner(const struct session *s);
/*
 * How the file is split into segments; its strings point into the config.
 * False: it is one file.
 */
bool file_config_segments(const struct session *s,
    struct file_sink_segments *out);
/* Part of max_bytes that is kept for the statistics at the end of the file. */
uint64_t file_config_stats_bytes(const struct session *s, uint64_t max_bytes);

#endif /* SERVICE_OUTPUT_FILE_CONFIG_H */
