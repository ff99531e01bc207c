/*
 * flush: asking every producer of a session to commit what it holds, and
 * waiting, with a time-out, until all have.
 *
 * When the last one has answered, or the time is up, the producers' shared
 * memory is scraped, and then done() is called, on a later turn than
 * flush_start() at the earliest.  A scrape that would overwrite what a file has
 * not got yet is retried as the file proceeds, until the time-out.
 *
 * One whose time is up while only producers of relays have not answered counts
 * as failed when the session ends and they still have not: a relay that is cut
 * off keeps their data.  done() is told that it failed all the same.
 *
 * The flush at the end of a session (FLUSH_TRACE_STOP) waits for machines whose
 * link was cut off or is silent, and for nobody else, up to link.end_wait_ms; what they had
 * not sent then is marked as lost.  It does not wait for producers that owe an
 * answer to an earlier flush for as long as its own time-out.
 */
#ifndef SERVICE_SESSION_FLUSH_H
#define SERVICE_SESSION_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

struct flush;
struct producer;
struct service;
struct session;

/* Why and for whom: what a producer sees in Flush.flags (wire recordings). */
enum flush_flags {
	FLUSH_PERIODIC = 0x11,
	FLUSH_TRACE_STOP = 0x12,
	FLUSH_TRACE_CLONE = 0x13,
	FLUSH_BUGREPORT_CLONE = 0x113,
	FLUSH_EXPLICIT = 0x14,
};
/* The initiator's bits; the service asks with FLUSH_BY_SERVICE. */
#define FLUSH_INITIATOR_MASK 0xf0u
#define FLUSH_BY_SERVICE 0x10u

typedef void (*flush_fn)(struct session *s, bool success, void *arg);

/*
 * done may be NULL.  Dropped silently when the session is freed first.
 *
 * A periodic one is left out, and done told so at once, when so many of the
 * session wait for their answers that one more would only end another before
 * its time.
 */
void flush_start(struct session *s, uint32_t timeout_ms, uint64_t flags,
    flush_fn done, void *arg);
/*
 * The flush at the session's end takes so long at most; one that waits for a
 * link that is cut, only when the daemon ends or the session is discarded.
 */
void flush_hurry(struct session *s, uint32_t timeout_ms);
/* The producer has answered this request and all before it. */
void flush_ack(struct producer *p, uint64_t request_id);
void flush_producer_gone(struct service *s, struct producer *p);
/* The time of a flush is up that the producer has not answered, just now. */
bool flush_has_given_up_on(const struct session *s, const struct producer *p);
/* The session's file has caught up a little. */
void flush_retry(struct session *s);
/* Forgets every flush of the session that calls done with this arg. */
void flush_forget(struct session *s, void *arg);
/* The session is being freed. */
void flush_drop_all(struct session *s);

#endif /* SERVICE_SESSION_FLUSH_H */
