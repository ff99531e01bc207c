/*
 * config: the TraceConfig that `tributary record` sends, and the properties
 * that the command needs of it.
 *
 * Fields that this program does not know reach the service unchanged.
 */
#ifndef CLIENT_RECORD_CONFIG_H
#define CLIENT_RECORD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/sink/packet_compressor.h"

struct Perfetto__Protos__TraceConfig;
struct record_config;
struct record_options;

/*
 * Reads the config file of the options, or makes a config of their names of
 * data sources, and adds the machines and attributes of flags.  NULL with a
 * text for people in err, of several lines when it points into the file.
 */
struct record_config *record_config_load(const struct record_options *o,
    char *err, size_t err_size) MUST_CHECK;
/* Makes a config from encoded bytes (copied). */
struct record_config *record_config_decode(const uint8_t *data, size_t len,
    char *err, size_t err_size) MUST_CHECK;
void record_config_free(struct record_config *c);

/*
 * The decoded config as it was loaded, borrowed until record_config_free(); not
 * changed by record_config_stream_instead().
 */
const struct Perfetto__Protos__TraceConfig *record_config_message(
    const struct record_config *c);
/* The encoded config, to be sent; valid until the next non-const call. */
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
/* Sum of the flush and stop time-outs, which come on top of longest_ms. */
uint64_t record_config_grace_ms(const struct record_config *c);
/* deferred_start without a trigger: the consumer must call StartTracing. */
bool record_config_wants_start(const struct record_config *c);

/* Triggers cause snapshots, always or where the service supports them. */
bool record_config_takes_snapshots(const struct record_config *c);
/* CLONE_SNAPSHOT: only clones of the session have data, no own trace. */
bool record_config_only_snapshots(const struct record_config *c);
/*
 * A trigger that stops or clones a session that the service writes into a file:
 * services refuse such a config.
 */
bool record_config_file_bars_trigger(const struct record_config *c);
/*
 * Sets *ms to the delay before the session is asked for
 * (cmd_trace_start_delay); random, any number, chooses within its bounds.  -1
 * with a sentence: the bounds make no sense.
 */
int record_config_start_delay(const struct record_config *c, uint64_t random,
    uint64_t *ms, char *err, size_t err_size) MUST_CHECK;

/*
 * Period in which the buffers have to be read when the service does not write
 * the file: its file_write_period_ms, within 100 ms to 1 s.  A read that
 * brought read_soon_bytes (a quarter of the smallest buffer) is followed by the
 * next one at once.
 */
uint32_t record_config_read_period_ms(const struct record_config *c);
uint64_t record_config_read_soon_bytes(const struct record_config *c);
/*
 * Takes write_into_file and its options out of the config: the command
 * reads the buffers itself.  0, or -1 without memory.
 */
int record_config_stream_instead(struct record_config *c) MUST_CHECK;

/*
 * Whether this command writes segments: the config, with the flags, has
 * tributary_segments, and no output_path.  The stream is not compressed then:
 * the segments are.
 */
bool record_config_makes_segments(const struct record_config *c);
int record_config_stream_segments(struct record_config *c) MUST_CHECK;
/* How the config wants the trace to be compressed. */
struct packet_compression record_config_compression(
    const struct record_config *c);
/* Whether the collector has to cut the session. */
bool record_config_wants_cuts(const struct record_config *c);

#endif /* CLIENT_RECORD_CONFIG_H */
