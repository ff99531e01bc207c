/*
 * session_report: a session's properties, state and statistics, for people
 * (SessionState of protos/control.proto).
 */
#ifndef SERVICE_ONLOOKERS_SESSION_REPORT_H
#define SERVICE_ONLOOKERS_SESSION_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct pb_writer;
struct session;

/* The most bytes of a report with statistics; it fits a frame. */
#define SESSION_REPORT_MAX (96u * 1024u)

/*
 * Appends the fields of the session's SessionState.  The statistics are left
 * out where the report would be longer than SESSION_REPORT_MAX with them.
 */
void session_report(struct session *s, bool with_stats, struct pb_writer *w);

/* Returns the session's SessionState.State. */
uint64_t session_report_state(const struct session *s);
/* Unread bytes in its buffers. */
uint64_t session_report_used(const struct session *s);

#endif /* SERVICE_ONLOOKERS_SESSION_REPORT_H */
