/*
 * record_advice: why a recording is going to lack something, and what to set.
 *
 * Compares a config with the state of the service.  Pure.
 */
#ifndef CLIENT_RECORD_ADVICE_H
#define CLIENT_RECORD_ADVICE_H

#include <stddef.h>

struct Perfetto__Protos__TraceConfig;
struct Perfetto__Protos__TracingServiceState;

/* More sentences than these say only how many there would have been. */
#define RECORD_ADVICE_MAX 5

typedef void (*record_advice_fn)(void *arg, const char *sentence);

/*
 * Calls fn for each data source of the config that nobody offers now, or only
 * machines that the config leaves out.
 */
void record_advice(const struct Perfetto__Protos__TraceConfig *config,
    const struct Perfetto__Protos__TracingServiceState *state,
    record_advice_fn fn, void *arg);

#endif /* CLIENT_RECORD_ADVICE_H */
