/*
 * local_config: a TraceConfig, as far as a session inside of a program does what
 * it says.  Pure.
 */
#ifndef CLIENT_TRACING_LOCAL_LOCAL_CONFIG_H
#define CLIENT_TRACING_LOCAL_LOCAL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tributary/session.h>

#include "transport/base/compiler.h"

#define LOCAL_BUFFERS_MAX 32u
#define LOCAL_SOURCES_MAX 64u

struct local_buffer_config {
	uint64_t bytes;
	bool discard;
	bool transfer_on_clone;
	bool clear_before_clone;
	const uint8_t *name; /* borrowed from the config's bytes */
	size_t name_len;
};

struct local_source_config {
	const uint8_t *config; /* borrowed from the config's bytes */
	size_t len;
	const uint8_t *name;
	size_t name_len;
	uint32_t buffer; /* index */
	uint64_t policy; /* BufferExhaustedPolicy */
};

struct local_config {
	uint8_t *bytes; /* owned */
	size_t len;
	struct local_buffer_config buffers[LOCAL_BUFFERS_MAX];
	size_t n_buffers;
	struct local_source_config sources[LOCAL_SOURCES_MAX];
	size_t n_sources;
	uint64_t duration_ms; /* 0: none */
	uint64_t flush_period_ms; /* 0: none */
	uint64_t flush_timeout_ms;
	uint64_t stop_timeout_ms;
	uint64_t clear_period_ms; /* 0: none */
	uint64_t snapshot_ms;
	uint64_t memory_kb, page_kb; /* 0: default */
	uint32_t primary_clock;
	bool no_snapshots, no_config, no_system_info, no_events;
	bool has_attributes;
};

/* Copies the bytes.  NULL: why says it. */
struct local_config *local_config_new(const uint8_t *bytes, size_t len,
    char *why, size_t why_len) MUST_CHECK;
/* As tributary_session_local_simple() has it. */
struct local_config *local_config_simple(
    const struct tributary_session_options *options, char *why, size_t why_len)
    MUST_CHECK;
void local_config_free(struct local_config *c);

#endif /* CLIENT_TRACING_LOCAL_LOCAL_CONFIG_H */
