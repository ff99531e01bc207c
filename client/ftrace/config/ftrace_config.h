/*
 * ftrace_config: the config of an instance of linux.ftrace, checked, with its
 * defaults filled in.
 *
 * Knows neither the kernel's events nor tracefs: a name that passes here may
 * still be one that the kernel does not have.  Untrusted input.  Pure.
 */
#ifndef CLIENT_FTRACE_CONFIG_FTRACE_CONFIG_H
#define CLIENT_FTRACE_CONFIG_FTRACE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Milliseconds between two readings of the kernel's buffers. */
#define FTRACE_DRAIN_DEFAULT_MS 100u
#define FTRACE_DRAIN_MAX_MS     60000u

/* "sched/sched_switch", "irq/softirq*", "sched_waking". */
struct ftrace_event_name {
	const char *group; /* a pattern of glob.h; "*" where none was named */
	const char *name;  /* a pattern as well */
	const char *text;  /* as the config has it, to name it to people */
	char *cut;         /* what both are in; NULL: text */
};

/* Texts of ftrace/print that a rule is about. */
enum ftrace_print_match {
	FTRACE_PRINT_PREFIX, /* that begin with prefix */
	FTRACE_PRINT_ATRACE, /* "TYPE|pid|PREFIX..." */
};

struct ftrace_print_rule {
	enum ftrace_print_match match;
	const char *type; /* of FTRACE_PRINT_ATRACE, else "" */
	const char *prefix;
	bool allow;
};

struct ftrace_option {
	const char *name; /* as in tracefs/options */
	bool on;
};

/* The strings belong to the config. */
struct ftrace_config {
	/* tracefs/instances/NAME; NULL: tracefs itself. */
	const char *instance;

	struct ftrace_event_name *events;
	size_t n_events;
	bool leave_out_generic; /* events without a message of their own */
	bool throttle_rss_stat; /* kmem/rss_stat_throttled where it is there */

	char **syscalls; /* "sys_read"; 0: all, where raw_syscalls are asked */
	size_t n_syscalls;
	uint32_t *tids; /* 0: all threads */
	size_t n_tids;
	struct ftrace_print_rule *print_rules; /* the first that fits decides */
	size_t n_print_rules;

	uint32_t buffer_kb; /* 0: not said; see ftrace_config_buffer_kb() */
	bool buffer_at_least;
	uint32_t drain_ms;
	uint32_t drain_percent; /* 1 to 100; 0: not said */
	bool preserve_buffer;
	bool monotonic_raw;
	struct ftrace_option *options;
	size_t n_options;
	const char *cpumask; /* hexadecimal, with commas; NULL: not said */

	bool compact_sched;
	bool dense_generic; /* descriptors of generic events in bundles */
	bool symbolize;
	bool keep_symbols; /* after the last session, for the next */

	/*
	 * One sentence for each field without effect, and for each value that
	 * makes no sense and is left out; for the log and for the trace.
	 */
	char **warnings;
	size_t n_warnings;

	void *message; /* what the strings are in; its own */
};

/* Room for the reason of a refusal. */
#define FTRACE_CONFIG_WHY_MAX 256u
/*
 * From an encoded DataSourceConfig, borrowed for the call; one without an
 * ftrace_config has the defaults and no events.  NULL: malformed, no memory, or
 * what it asks for cannot be: why is a sentence.
 */
struct ftrace_config *ftrace_config_new(const uint8_t *data_source_config,
    size_t len, char why[FTRACE_CONFIG_WHY_MAX]) MUST_CHECK;
/* NULL is fine. */
void ftrace_config_free(struct ftrace_config *c);

/*
 * KiB of the kernel's buffer of each processor, for a machine with this many
 * bytes of memory; Perfetto's defaults.
 */
uint32_t ftrace_config_buffer_kb(const struct ftrace_config *c,
    uint64_t memory_bytes);

#endif /* CLIENT_FTRACE_CONFIG_FTRACE_CONFIG_H */
