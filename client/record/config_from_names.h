/*
 * config_from_names: makes a TraceConfig of names of data sources and ftrace
 * events, as in `tributary record linux.sys_stats sched/sched_switch`.
 *
 * Pure.  A name with a slash is an event of the kernel's ftrace, any other the
 * name of a data source.  Data sources that record nothing without a config of
 * their own get a useful one.
 */
#ifndef CLIENT_RECORD_CONFIG_FROM_NAMES_H
#define CLIENT_RECORD_CONFIG_FROM_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;

#define CONFIG_FROM_NAMES_DURATION_MS  10000u
#define CONFIG_FROM_NAMES_BUFFER_BYTES (32ull << 20)

struct config_from_names {
	const char *const *names; /* borrowed; at least one */
	size_t n_names;
	uint32_t duration_ms;    /* 0: until the session is stopped */
	uint64_t buffer_bytes;   /* one ring buffer; rounded up to 1 KiB */
	uint64_t max_file_bytes; /* of write_into_file; 0: no such file */
};

/*
 * Appends the encoded TraceConfig to out.  -1 with a sentence in err: no name,
 * a malformed one, a size of 0 or out of range, no memory.
 */
int config_from_names(const struct config_from_names *c, struct pb_writer *out,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_RECORD_CONFIG_FROM_NAMES_H */
