/*
 * config: the TraceConfig that `tributary record` sends, and the command's own
 * questions about it.
 *
 * Fields that this program does not know reach the service unchanged.
 */
#ifndef CLIENT_RECORD_CONFIG_H
#define CLIENT_RECORD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct Perfetto__Protos__TraceConfig;
struct record_config;
struct record_options;

/*
 * Reads the file that the options name, or makes a config of their names.
 * NULL with a text for people in err, of several lines when it points into
 * the file.
 */
struct record_config *record_config_load(const struct record_options *o,
    char *err, size_t err_size) MUST_CHECK;
/* Makes a config from encoded bytes (copied). */
struct record_config *record_config_decode(const uint8_t *data, size_t len,
    char *err, size_t err_size) MUST_CHECK;
void record_config_free(struct record_config *c);

/* Decoded, for looking; as it was when it was loaded. */
const struct Perfetto__Protos__TraceConfig *record_config_message(
    const struct record_config *c);
/* Encoded, for sending; valid until the next call that is not const. */
const uint8_t *record_config_bytes(const struct record_config *c, size_t *len);

/* Whether the service writes the file, given by descriptor or by itself. */
bool record_config_service_writes(const struct record_config *c);
/* The file that the service is to create on its machine, or NULL. */
const char *record_config_output_path(const struct record_config *c);
/*
 * How long the session can last at most: duration_ms, or the trigger time-out
 * and the longest stop delay; 0: without end.
 */
uint64_t record_config_longest_ms(const struct record_config *c);
/* Time-outs of its flush and of its stop, on top of that. */
uint64_t record_config_grace_ms(const struct record_config *c);
/* deferred_start without a trigger: the consumer must call StartTracing. */
bool record_config_wants_start(const struct record_config *c);

/* Triggers save copies (CLONE_SNAPSHOT), at least where the service can. */
bool record_config_takes_snapshots(const struct record_config *c);
/* True: the session hands out clones only, no trace of its own. */
bool record_config_only_snapshots(const struct record_config *c);
/*
 * A trigger ends or copies a session that the service writes into a file: no
 * service takes such a config.
 */
bool record_config_file_bars_trigger(const struct record_config *c);
/*
 * How long to wait before the session is asked for (cmd_trace_start_delay);
 * random chooses within the bounds.  0, or -1 with a sentence.
 */
int record_config_start_delay(const struct record_config *c, uint64_t random,
    uint64_t *ms, char *err, size_t err_size) MUST_CHECK;

/*
 * How often the buffers have to be read when the service does not write the
 * file: as often as it would, but at least once a second; and how many bytes
 * between two reads are a sign that they come too seldom (a quarter of the
 * smallest buffer).
 */
uint32_t record_config_read_period_ms(const struct record_config *c);
uint64_t record_config_read_soon_bytes(const struct record_config *c);
/*
 * Takes write_into_file and its options out of the config: the command
 * reads the buffers itself.  0, or -1 without memory.
 */
int record_config_stream_instead(struct record_config *c) MUST_CHECK;

#endif /* CLIENT_RECORD_CONFIG_H */
