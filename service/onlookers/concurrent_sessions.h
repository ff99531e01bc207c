/*
 * concurrent_sessions: what other sessions do while one runs, for its trace
 * (BuiltinDataSource.enable_concurrent_session_events).
 *
 * A session learns of those that its owner may see anyway (session_is_visible).
 */
#ifndef SERVICE_ONLOOKERS_CONCURRENT_SESSIONS_H
#define SERVICE_ONLOOKERS_CONCURRENT_SESSIONS_H

extern const struct session_observer concurrent_sessions_observer;

#endif /* SERVICE_ONLOOKERS_CONCURRENT_SESSIONS_H */
