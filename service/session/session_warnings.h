/*
 * session_warnings: what a session's config asks for and does not get, a
 * sentence each: for the log, for whoever asks for the session (QuerySessions),
 * and for its consumer at the end (EnableTracingResponse.warnings).
 */
#ifndef SERVICE_SESSION_SESSION_WARNINGS_H
#define SERVICE_SESSION_SESSION_WARNINGS_H

struct session;

/*
 * Warns of fields of its config without effect.  Once, when the session is
 * made.
 */
void session_warn_of_config(struct session *s);
/*
 * Notes and logs one more; sentence (without a full stop at its end) is copied.
 * After SESSION_WARNINGS_MAX, and without memory, it is only logged.
 */
void session_warn(struct session *s, const char *sentence);
#define SESSION_WARNINGS_MAX 40u
void session_warnings_free(struct session *s);

#endif /* SERVICE_SESSION_SESSION_WARNINGS_H */
