/*
 * flush: asking every producer of a session to commit what it holds, and
 * waiting, with a time-out, until all have.
 *
 * When the last producer has answered, or the flush has timed out, the
 * producers' shared memory is scraped, and then done() is called, on a later
 * turn than flush_start() at the earliest.  A scrape that would overwrite data
 * that a file has not got yet is retried as the file proceeds, until the
 * time-out.
 *
 * A flush that times out while only producers of relays have not answered is
 * counted as failed only when the session ends and they still have not: a relay
 * that is cut off keeps their data.  done() is told at the time-out that the
 * flush failed all the same.
 *
 * The final flush of a session (FLUSH_TRACE_STOP) waits after its time-out, up
 * to link.end_wait_ms in all, for producers whose link was cut off or is
 * silent, and for no others; data that they had not sent by then is marked as
 * lost.  A local producer that has owed an answer to an earlier flush for as
 * long as the final flush's own time-out is asked, but not waited for.
 */
#ifndef SERVICE_SESSION_FLUSH_H
#define SERVICE_SESSION_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

struct flush;
struct producer;
struct service;
struct session;

/* Reason and initiator: Flush.flags, as producers see it on the wire. */
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

/* success: every producer that was asked has answered. */
typedef void (*flush_fn)(struct session *s, bool success, void *arg);

typedef void (*flush_unanswered_fn)(struct session *s,
    const struct producer *p, void *arg);

/*
 * Starts a flush.  done may be NULL; it is called once, but never when the
 * session is freed first.  From inside this call it is told of a failure when
 * memory is missing, and when a periodic flush is left out: so many of the
 * session's are under way that one more would only end another early.
 */
void flush_start(struct session *s, uint32_t timeout_ms, uint64_t flags,
    flush_fn done, void *arg);
/*
 * As above, for a cut: with FLUSH_EXPLICIT; each producer is told to clear
 * incremental state right before; they are asked at the pace of
 * a walk that has time, and the time-out is longer by as much.  unanswered is
 * called, just before done, for each producer that was asked and has not
 * answered.
 */
void flush_start_cut(struct session *s, uint32_t timeout_ms, flush_fn done,
    flush_unanswered_fn unanswered, void *arg);
/*
 * Clears done of the session's flush with this arg, which goes on, and calls its
 * unanswered at once.
 */
void flush_give_up(struct session *s, void *arg);
/*
 * Shortens the wait that the session's final flush is in, be it for answers or
 * the extra one for cut links, to timeout_ms.  An extra wait that has not begun
 * stays as it is, or is left out when the daemon ends or the session is
 * discarded.
 */
void flush_hurry(struct session *s, uint32_t timeout_ms);
/* Takes the producer's answer to this request and all before it. */
void flush_ack(struct producer *p, uint64_t request_id);
/* No flush of any session waits for the producer any more. */
void flush_producer_gone(struct service *s, struct producer *p);
/* Whether a flush that p has not answered has timed out and is still kept. */
bool flush_has_given_up_on(const struct session *s, const struct producer *p);
/* The session's file has caught up a little: retries scrapes that waited. */
void flush_retry(struct session *s);
/* Clears done of every flush of the session with this arg; they go on. */
void flush_forget(struct session *s, void *arg);
/* Frees all flushes of a session that is being freed, without done(). */
void flush_drop_all(struct session *s);

#endif /* SERVICE_SESSION_FLUSH_H */
