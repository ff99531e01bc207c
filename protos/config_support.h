/*
 * config_support: which fields of a TraceConfig this project serves, and how.
 *
 * One table for all: the collector and `tributary record` name in a warning
 * whatever a config sets and nobody serves, and docs/config.md is checked
 * against it.  Pure.
 *
 * A field is one path: "buffers.size_kb", "trigger_config.triggers.name".  What
 * is inside of data_sources.config is the producer's and never warned about.
 */
#ifndef PROTOS_CONFIG_SUPPORT_H
#define PROTOS_CONFIG_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

enum config_support_kind {
	CONFIG_SERVED,  /* by the collector */
	CONFIG_CLIENT,  /* by who starts the trace: `tributary record` */
	CONFIG_ANDROID, /* Android only: kept in the trace, without effect */
	CONFIG_IGNORED, /* without effect here: a warning */
};

struct config_support {
	const char *path;
	enum config_support_kind kind;
	const char *since; /* version of ours that served it; NULL: none does */
	const char *note;  /* how, or why not: a phrase without a full stop */
};

/* In the order of the schema.  *n: how many. */
const struct config_support *config_support_table(size_t *n);

/*
 * Told once for each path that an encoded TraceConfig sets without effect, that
 * is not in the schema ("field 4711", "buffers field 99"), or whose value
 * contradicts another's (DISCARD with write_into_file): text is a whole sentence
 * that names the field and says why, borrowed.
 */
typedef void (*config_support_fn)(void *arg, const char *path,
    const char *text);

/* The most warnings for one config; the last one says that there are more. */
#define CONFIG_SUPPORT_MAX 32u

/*
 * Malformed bytes give what was found before them.  A field that has the value
 * which it has when it is left out gives none.
 */
void config_support_check(const uint8_t *config, size_t len,
    config_support_fn fn, void *arg);

#endif /* PROTOS_CONFIG_SUPPORT_H */
