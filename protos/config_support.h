/*
 * config_support: which fields of a TraceConfig this project serves, and how.
 *
 * One table for all: the collector and `tributary record` warn of each field
 * that a config sets without effect, and docs/config.md is checked against the
 * table.  Pure.
 *
 * A field is a path: "buffers.size_kb", "trigger_config.triggers.name".  Fields
 * inside of data_sources.config are the producer's, and never warned about: but
 * for ftrace_config, of which the table says what tributary-probes does, and for
 * protovm_config, which the collector reads.
 */
#ifndef PROTOS_CONFIG_SUPPORT_H
#define PROTOS_CONFIG_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

enum config_support_kind {
	CONFIG_SERVED,  /* by the collector */
	CONFIG_CLIENT,  /* by the consumer: `tributary record` */
	CONFIG_PROBES,  /* by tributary-probes */
	CONFIG_ANDROID, /* Android only: kept in the trace, without effect */
	CONFIG_IGNORED, /* without effect here: a warning */
};

struct config_support {
	const char *path;
	enum config_support_kind kind;
	const char *since; /* first version of ours to serve it; NULL: none */
	const char *note;  /* how, or why not: a phrase without a full stop */
};

/* The *n rows of the table, in the order of the schema; static. */
const struct config_support *config_support_table(size_t *n);

/*
 * Called once for each path that an encoded TraceConfig sets without effect,
 * that is not in the schema ("field 4711", "buffers field 99"), or whose value
 * contradicts another's (DISCARD with write_into_file): text is a whole
 * sentence that names the field and says why.  path and text are borrowed for
 * the call.
 */
typedef void (*config_support_fn)(void *arg, const char *path,
    const char *text);

/* The most warnings for one config; the last one says that there are more. */
#define CONFIG_SUPPORT_MAX 32u

/*
 * Stops at malformed bytes; fields before them are reported.  A field that is
 * set to its default is not reported.
 */
void config_support_check(const uint8_t *config, size_t len,
    config_support_fn fn, void *arg);
/* Checks an encoded FtraceConfig alone; paths are those of the table. */
void config_support_check_ftrace(const uint8_t *config, size_t len,
    config_support_fn fn, void *arg);

#endif /* PROTOS_CONFIG_SUPPORT_H */
