/*
 * config_from_names: a TraceConfig out of the names of what to record, as in
 * `tributary record linux.sys_stats track_event sched/sched_switch`.
 *
 * Pure.  A name with a slash is an event of the kernel's ftrace, any other the
 * name of a data source.  Data sources that record nothing without a config of
 * their own get a useful one.
 */
#ifndef CLIENT_RECORD_CONFIG_FROM_NAMES_H
#define CLIENT_RECORD_CONFIG_FROM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;

#define CONFIG_FROM_NAMES_DURATION_MS  10000u
#define CONFIG_FROM_NAMES_BUFFER_BYTES (32ull << 20)

struct config_from_names {
	const char *const *names; /* borrowed; at least one */
	size_t n_names;
	uint32_t duration_ms;    /* 0: until it is stopped */
	uint64_t buffer_bytes;   /* one ring buffer; rounded up to 1 KiB */
	uint64_t max_file_bytes; /* 0: no file, the buffer is read at the end */
};

/*
 * Appends the encoded TraceConfig to out.  -1 with a sentence in err: no or a
 * bad name, a size of 0 or one that does not fit, no memory.
 */
int config_from_names(const struct config_from_names *c, struct pb_writer *out,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_RECORD_CONFIG_FROM_NAMES_H */
