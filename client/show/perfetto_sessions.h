/*
 * perfetto_sessions: the sessions of a collector that is not ours, as far as
 * QueryServiceState tells of them, in our form.  Pure.
 */
#ifndef CLIENT_SHOW_PERFETTO_SESSIONS_H
#define CLIENT_SHOW_PERFETTO_SESSIONS_H

#include "transport/base/compiler.h"

struct Perfetto__Protos__TracingServiceState;
struct Tributary__QuerySessionsReply;

/*
 * To be freed with free_unpacked.  NULL: it tells of none (an old one), or out
 * of memory.
 */
struct Tributary__QuerySessionsReply *perfetto_sessions(
    const struct Perfetto__Protos__TracingServiceState *state) MUST_CHECK;

#endif /* CLIENT_SHOW_PERFETTO_SESSIONS_H */
