/*
 * session_report: what a session is and how it fares, for people
 * (SessionState of protos/control.proto).
 */
#ifndef SERVICE_ONLOOKERS_SESSION_REPORT_H
#define SERVICE_ONLOOKERS_SESSION_REPORT_H

#include <stdbool.h>

struct pb_writer;
struct session;

/* No report is longer, in bytes: it fits a frame. */
#define SESSION_REPORT_MAX (96u * 1024u)

/*
 * Appends the fields of its SessionState.  Where it would be longer than
 * SESSION_REPORT_MAX the statistics are left out.
 */
void session_report(struct session *s, bool with_stats, struct pb_writer *w);

#endif /* SERVICE_ONLOOKERS_SESSION_REPORT_H */
