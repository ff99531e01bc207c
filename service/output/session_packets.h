/*
 * session_packets: packets that describe a session: at the begin of its trace,
 * and again at the begin of each segment that it is cut into (cut_marks.h).
 *
 * Each function appends the body of one packet to w, or nothing where the
 * session's config switches it off or there is nothing to say.  Memory failure
 * shows in w->failed.
 */
#ifndef SERVICE_OUTPUT_SESSION_PACKETS_H
#define SERVICE_OUTPUT_SESSION_PACKETS_H

struct machine;
struct pb_writer;
struct session;

void session_packets_config(const struct session *s, struct pb_writer *w);
void session_packets_attributes(const struct session *s, struct pb_writer *w);
/* Which producer wrote which sequence, as far as is known now. */
void session_packets_provenance(struct session *s, struct pb_writer *w);
/* SystemInfo of the collector's own machine, and of a remote one. */
void session_packets_system_info(const struct session *s,
    struct pb_writer *w);
void session_packets_machine(const struct session *s, const struct machine *m,
    struct pb_writer *w);

#endif /* SERVICE_OUTPUT_SESSION_PACKETS_H */
