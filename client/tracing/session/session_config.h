/*
 * session_config: TraceConfigs and events of a session, as far as the library
 * has to know what is in them.  Pure.
 */
#ifndef CLIENT_TRACING_SESSION_SESSION_CONFIG_H
#define CLIENT_TRACING_SESSION_SESSION_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_writer;
struct tributary_session_options;

/* Whether a session of this TraceConfig starts later than it is asked for. */
bool session_config_waits(const uint8_t *config, size_t len);
/* Whether ObservableEvents say that all data sources have started. */
bool session_config_has_started(const uint8_t *events, size_t len);
/* Appends the fields of a TraceConfig; options NULL: the defaults. */
void session_config_put(struct pb_writer *w,
    const struct tributary_session_options *options);

#endif /* CLIENT_TRACING_SESSION_SESSION_CONFIG_H */
