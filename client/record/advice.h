/*
 * advice: warns of data that a recording is going to lack, and says why and
 * which setting helps.
 *
 * Compares a config with the state of the service.  Pure.
 */
#ifndef CLIENT_RECORD_ADVICE_H
#define CLIENT_RECORD_ADVICE_H

#include <stddef.h>

struct Perfetto__Protos__TraceConfig;
struct Perfetto__Protos__TracingServiceState;

/* Most sentences; of more only the number is said. */
#define RECORD_ADVICE_MAX 5

typedef void (*record_advice_fn)(void *arg, const char *sentence);

/*
 * Calls fn for each machine of the config that is not connected, and for each
 * data source that no producer offers now, or only on machines or by producers
 * that the config leaves out; and once where nothing is left to be recorded.
 */
void record_advice(const struct Perfetto__Protos__TraceConfig *config,
    const struct Perfetto__Protos__TracingServiceState *state,
    record_advice_fn fn, void *arg);

#endif /* CLIENT_RECORD_ADVICE_H */
