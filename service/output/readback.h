/*
 * readback: the order in which a session's trace leaves it (behaviour.md, "What
 * the service writes into a trace"): the service's own packets, then those of
 * the buffers, then the statistics when all were read.
 *
 * Each session has one, for its file and for ReadBuffers.  Buffers are read
 * round robin, the next one whenever an output is full, so that a buffer that
 * fills as fast as it is read starves no other.  Belongs to the loop's thread.
 */
#ifndef SERVICE_OUTPUT_READBACK_H
#define SERVICE_OUTPUT_READBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct machine;
struct packet_out;
struct readback;
struct service_cut;
struct session;

enum readback_result {
	READBACK_FULL,  /* out has no room, or the turn's time is over */
	READBACK_DONE,  /* everything readable now was read */
	READBACK_LIMIT, /* a packet would have passed the limit, and is gone */
};

struct readback *readback_new(struct session *s) MUST_CHECK;
/* For a clone: with the same remote machines, but no packet written yet. */
struct readback *readback_new_clone(struct session *s,
    const struct readback *from) MUST_CHECK;
void readback_free(struct readback *r);

/* Starts a pass: buffers are visited again, also those that stalled. */
void readback_begin(struct readback *r);
/*
 * Moves packets into out until it is full.  *limit: bytes of a file that may
 * still be written, decreased here; limit NULL: no limit.
 */
enum readback_result readback_fill(struct readback *r, struct packet_out *out,
    uint64_t *limit) MUST_CHECK;

/*
 * Puts TraceStats of at most `most` bytes: short ones if need be, or nothing.
 * Only while out has room.
 */
void readback_put_stats(struct readback *r, struct packet_out *out,
    uint64_t most);

/* Has the next pass that empties the buffers end with TraceStats. */
void readback_want_stats(struct readback *r);
/* Has the next pass begin with a synchronization marker. */
void readback_want_marker(struct readback *r);
/*
 * Tells that the session has data of this remote machine: the trace will
 * describe it (SystemInfo, clocks).  Takes a reference to m; without memory,
 * does nothing.
 */
void readback_saw_machine(struct readback *r, struct machine *m);
/* The i-th remote machine, in the order in which they came; NULL: no more. */
const struct machine *readback_machine(const struct readback *r, size_t i);
bool readback_has_machine(const struct readback *r, const struct machine *m);

/*
 * Cuts (protos/segment.proto).  The marks of a cut stand where a pass has read
 * all that there was; no statistics come between them but those of the old
 * segment.
 */
struct readback_cut_ops {
	/*
	 * The mark comes next in the stream.  Called from inside
	 * readback_fill(): to be answered by plans for a later turn.
	 */
	void (*begun)(void *arg);
	void (*ended)(void *arg);
};
/*
 * Has the next pass that empties the buffers end with the mark BEGIN, and
 * behind it what the new segment needs.  mark is borrowed until the cut is
 * over; its realtime_ns is set here.  Only while no cut is under way.
 */
void readback_want_cut(struct readback *r, struct service_cut *mark,
    const struct readback_cut_ops *ops, void *arg);
/* Takes back a cut that has not begun.  False: it has, or there is none. */
bool readback_withdraw_cut(struct readback *r);
/*
 * Has a pass end with the mark END once it has read all that is in the buffers
 * now, after begun().
 */
void readback_want_cut_end(struct readback *r);
/* Forgets a cut without its marks, as the session is freed. */
void readback_drop_cut(struct readback *r);

#endif /* SERVICE_OUTPUT_READBACK_H */
