/*
 * session_warnings: sentences about things that a session's config asks for and
 * does not get: for the log, for QuerySessions, and for the session's consumer
 * at the end (EnableTracingResponse.warnings).
 */
#ifndef SERVICE_SESSION_SESSION_WARNINGS_H
#define SERVICE_SESSION_SESSION_WARNINGS_H

struct session;

/*
 * Warns of fields of the config that have no effect.  Called once, when the
 * session is made.
 */
void session_warn_of_config(struct session *s);
/*
 * Notes and logs a warning; sentence (without a full stop at its end) is
 * copied.  After SESSION_WARNINGS_MAX, and without memory, it is only logged.
 */
void session_warn(struct session *s, const char *sentence);
#define SESSION_WARNINGS_MAX 40u
void session_warnings_free(struct session *s);

#endif /* SERVICE_SESSION_SESSION_WARNINGS_H */
