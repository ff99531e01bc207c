/*
 * advice: warns of data that a recording is going to lack, with the cause and
 * the setting that helps, from the config and the service's state.  Pure.
 */
#ifndef CLIENT_RECORD_ADVICE_H
#define CLIENT_RECORD_ADVICE_H

struct Perfetto__Protos__TraceConfig;
struct Perfetto__Protos__TracingServiceState;

/* Most sentences; one more tells how many were left out. */
#define RECORD_ADVICE_MAX 5

/* sentence: borrowed for the call. */
typedef void (*record_advice_fn)(void *arg, const char *sentence);

/*
 * Calls fn for each machine of the config that is not connected; for each data
 * source that no producer offers now, or only on machines or by producers that
 * the config excludes; and once when no data source is recorded at all.
 */
void record_advice(const struct Perfetto__Protos__TraceConfig *config,
    const struct Perfetto__Protos__TracingServiceState *state,
    record_advice_fn fn, void *arg);

#endif /* CLIENT_RECORD_ADVICE_H */
