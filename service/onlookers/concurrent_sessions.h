/*
 * concurrent_sessions: writes events of other sessions into the trace of a
 * session that runs (BuiltinDataSource.enable_concurrent_session_events).
 *
 * Only sessions that its owner may see are told of (session_is_visible()).
 */
#ifndef SERVICE_ONLOOKERS_CONCURRENT_SESSIONS_H
#define SERVICE_ONLOOKERS_CONCURRENT_SESSIONS_H

extern const struct session_observer concurrent_sessions_observer;

#endif /* SERVICE_ONLOOKERS_CONCURRENT_SESSIONS_H */
