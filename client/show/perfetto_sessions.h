/*
 * perfetto_sessions: converts the sessions in the state of Perfetto's service
 * (QueryServiceState) into a QuerySessionsReply.  Pure.
 */
#ifndef CLIENT_SHOW_PERFETTO_SESSIONS_H
#define CLIENT_SHOW_PERFETTO_SESSIONS_H

#include "transport/base/compiler.h"

struct Perfetto__Protos__TracingServiceState;
struct Tributary__QuerySessionsReply;

/*
 * To be freed with free_unpacked.  NULL: the service does not list its sessions
 * (an old one), or no memory.
 */
struct Tributary__QuerySessionsReply *perfetto_sessions(
    const struct Perfetto__Protos__TracingServiceState *state) MUST_CHECK;

#endif /* CLIENT_SHOW_PERFETTO_SESSIONS_H */
