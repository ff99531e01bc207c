/*
 * concurrent_sessions: what other sessions do while one runs, for its trace
 * (BuiltinDataSource.enable_concurrent_session_events).
 *
 * A session learns of those that its owner may see anyway (session_is_visible).
 */
#ifndef SERVICE_SESSION_CONCURRENT_SESSIONS_H
#define SERVICE_SESSION_CONCURRENT_SESSIONS_H

struct session;

/* The session has its state, or a new one: told to those that want to know. */
void concurrent_tell(const struct session *s);
/* It is going: what was not said to have ended has. */
void concurrent_gone(const struct session *s);
/* The session starts: it is told which others there are. */
void concurrent_begin(struct session *s);

#endif /* SERVICE_SESSION_CONCURRENT_SESSIONS_H */
