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

#endif /* SERVICE_OUTPUT_READBACK_H */
