/*
 * config: a consumer's TraceConfig, checked and made ready for matching data
 * sources and producers.
 *
 * Keeps the encoded bytes beside the decoded message: a DataSourceConfig must
 * reach its producer with every field the consumer set, known to the collector
 * or not (behaviour.md, "Producer port"), so it is rewritten field by field on
 * the wire format and never re-encoded from decoded structs.
 */
#ifndef SERVICE_CONFIG_CONFIG_H
#define SERVICE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/trace_config.pb-c.h"
#include "transport/base/compiler.h"
#include "transport/wire/frame.h"

/* Bytes of struct config's digest. */
#define CONFIG_DIGEST_BYTES 16u

struct limits;
struct name_filter;
struct pb_writer;

struct config_data_source {
	const char *name;       /* in the decoded message */
	const uint8_t *config;  /* encoded DataSourceConfig, in bytes[] or owned */
	size_t config_len;
	uint8_t *joined;        /* owned: config came in several pieces */
	uint32_t buffer;        /* index into the config's buffers */
	struct name_filter *producers;
	char **machines;        /* in the decoded message */
	bool wants_vm;          /* protovm_config is set */
	uint32_t vm_memory_kb;  /* its memory_limit_kb; 0: left out */
	size_t n_machines;
	/* The result of config_keep_for_producers(); owned, NULL until then. */
	uint8_t *for_producers;
	size_t for_producers_len;
};

struct config {
	uint8_t *bytes;         /* owned, as the consumer sent it */
	size_t len;
	Perfetto__Protos__TraceConfig *pb; /* owned */
	struct config_data_source *data_sources;
	size_t n_data_sources;
	uint64_t added; /* counts towards CONFIG_MAX_ADDED */
	/*
	 * The first bytes of the SHA-256 of bytes without output_path: the same
	 * for two collectors that were given the same config.
	 */
	uint8_t digest[CONFIG_DIGEST_BYTES];
};

/*
 * Most bytes of an encoded config: it must fit a frame, with the fields that
 * the service adds, when it goes to a consumer that attaches or, in part, to a
 * producer.
 */
#define CONFIG_MAX_BYTES (FRAME_MAX_BYTES - 1024u)
/* Data sources of one config: a bound on the matching that a start costs. */
#define CONFIG_MAX_DATA_SOURCES 4096u
/* Patterns of one config: each may cost its match limit for each producer. */
#define CONFIG_MAX_PATTERNS 256u
#define CONFIG_MAX_TRIGGERS 1024u
/* tributary_segments.every_ms. */
#define CONFIG_SEGMENT_LEAST_MS 1000u
#define CONFIG_SEGMENT_LEAST_BYTES (64u * 1024u)
#define CONFIG_SEGMENT_MOST_MS  (31u * 24 * 3600 * 1000)
/* Semaphores of one config: each is compared with all of every session. */
#define CONFIG_MAX_SEMAPHORES 64u
/* Most bytes that ChangeTraceConfig may add to a session; cost of an item. */
#define CONFIG_MAX_ADDED    (16u * 1024u * 1024u)
#define CONFIG_NAME_COST    32u
#define CONFIG_PATTERN_COST (16u * 1024u)

/*
 * Decodes and checks a TraceConfig, and copies its bytes (behaviour.md, "Config
 * errors are refused").  has_fd: a descriptor came with EnableTracing.  NULL
 * with the sentence for EnableTracingResponse.error in err.
 */
struct config *config_new(const uint8_t *bytes, size_t len, bool has_fd,
    const struct limits *limits, char *err, size_t err_size) MUST_CHECK;
void config_free(struct config *c);
/* Copies a config for a clone, without the data sources.  NULL: no memory. */
struct config *config_copy(const struct config *c) MUST_CHECK;

/*
 * ChangeTraceConfig: adds the producer name filters of the new config (bytes)
 * to the data sources of c with the same name; everything else in it is
 * ignored.  -1 with a sentence in err.
 */
int config_add_filters(struct config *c, const uint8_t *bytes, size_t len,
    char *err, size_t err_size) MUST_CHECK;

/*
 * The DataSourceConfig for a producer: the consumer's bytes with the fields
 * that the service fills in replaced (target_buffer, trace_duration_ms,
 * tracing_session_id, enable_extra_guardrails, stop_timeout_ms,
 * session_initiator, and prefer_suspend_clock_for_duration where it is set).
 * No initiator is trusted; one would be Android's statsd.
 */
void config_for_producer(const struct config *c,
    const struct config_data_source *ds, uint16_t buffer, uint64_t session,
    struct pb_writer *out);
/*
 * Keeps the result of config_for_producer() in ds->for_producers, made at the
 * first call: thousands of producers get the same bytes, several times.  buffer
 * and session do not change in a session's life.  -1: no memory.
 */
int config_keep_for_producers(struct config *c,
    const struct config_data_source *ds, uint16_t buffer, uint64_t session)
    MUST_CHECK;

/* Time-outs of the config, with the defaults of behaviour.md. */
uint32_t config_stop_timeout_ms(const struct config *c);
uint32_t config_flush_timeout_ms(const struct config *c);
/* The sizes that TraceConfig.producers asks for this producer; 0: none. */
void config_shm_sizes(const struct config *c, const char *producer,
    uint32_t *shm_kb, uint32_t *page_kb);
/* The effective trigger mode: use_clone_snapshot_if_available is applied. */
Perfetto__Protos__TraceConfig__TriggerConfig__TriggerMode config_trigger_mode(
    const struct config *c);

#endif /* SERVICE_CONFIG_CONFIG_H */
