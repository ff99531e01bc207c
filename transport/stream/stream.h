/*
 * stream: one connected byte stream on a loop, non-blocking both ways.
 *
 * Knows nothing of frames.  Input: bytes land in the loop's scratch buffer and
 * are handed to ops->data(), which says how many it consumed; only the rest is
 * kept (copied) in the stream.  Output: written at once where the socket takes
 * it, else queued up to a limit.  Descriptors travel over UNIX sockets.  A
 * stream ends in stream_close() or in one ops->closed(); either way the stream
 * frees itself on a later turn.
 *
 * What lies between the stream and its socket is the stream's business:
 * nothing, TLS (transport/tls/tls.h), a child that carries the bytes on
 * (transport/process/child.h), or another thread, which has the socket and TLS
 * (transport/stream/io_pool.h).
 */
#ifndef TRANSPORT_STREAM_STREAM_H
#define TRANSPORT_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/socket/peer.h"

struct budget;
struct child;
struct io_pool;
struct loop;
struct stream;
struct tls_conn;

enum stream_end {
	STREAM_EOF,         /* the peer closed */
	STREAM_RESET,       /* the connection broke */
	STREAM_SLOW,        /* output stayed over its limit */
	STREAM_REFUSED,     /* handshake failed, or child: stream_end_detail() */
	STREAM_BUDGET,      /* memory of the peer's, or of all's, is used up */
	STREAM_PROTOCOL,    /* data() took no more frames, and did not pause */
	STREAM_NO_MEMORY,
	STREAM_SHUTDOWN,    /* this process ends */
};
/* For people: "connection lost"; static. */
const char *stream_end_text(enum stream_end why);

struct stream_ops {
	/*
	 * Bytes arrived.  Returns how many were consumed (0..len).  The rest is
	 * shown again, from its first byte, together with what arrives next.
	 * When data() stops short because a unit (a frame, say) is incomplete,
	 * it calls stream_want() with the total bytes of that unit.  When it
	 * stops short because it cannot take more now, it has called
	 * stream_pause().  May close the stream (the return value is then
	 * ignored).
	 */
	size_t (*data)(struct stream *s, const uint8_t *buf, size_t len,
	    void *arg);
	/*
	 * TLS: the handshake is done and stream_peer() is complete; data() is
	 * not called before.  May close the stream.  Not called for other
	 * streams, which are open from the start.  May be NULL.
	 */
	void (*opened)(struct stream *s, void *arg);
	/* Output that was over stream_low_water() fell to it.  May be NULL. */
	void (*drained)(struct stream *s, void *arg);
	/*
	 * The stream has ended; called once, and not after stream_close().  s
	 * is valid until it returns.
	 */
	void (*closed)(struct stream *s, enum stream_end why, void *arg);
	/*
	 * Bytes were read, shown again or taken: stream_queued(),
	 * stream_memory(), stream_idle_ms() and stream_stalled_ms() may have
	 * changed.  Must not close the stream.  May be NULL.
	 */
	void (*moved)(struct stream *s, void *arg);
};

/*
 * Takes ownership of fd (made non-blocking, close-on-exec) on success and
 * leaves it alone on failure (NULL).  Reading starts at once.
 */
struct stream *stream_new(struct loop *l, int fd, const struct stream_ops *ops,
    void *arg) MUST_CHECK;

/* How the bytes get from the stream to the socket and back. */
struct stream_setup {
	/*
	 * TLS connection made for this descriptor; NULL: none.  The stream does
	 * the handshake; output waits meanwhile.
	 */
	struct tls_conn *tls;
	/*
	 * Child at the descriptor's other end; NULL: none.  Not together with
	 * tls.  When the stream ends by itself, closed() is put off (for a
	 * second at most) until the child's messages were read.
	 */
	struct child *child;
	struct addr *child_addr; /* where it leads, for messages; copied */
	/* The peer, instead of what the kernel says; copied. */
	const struct peer *peer;
	/*
	 * I/O threads, one of which gets the socket, and TLS; NULL: the loop's
	 * own thread keeps them.  The stream carries frames then, and no
	 * descriptors.  Not together with a child.  Borrowed: the pool outlives
	 * the stream.
	 */
	struct io_pool *io;
};

/*
 * As stream_new(); setup, borrowed for the call, may be NULL.  Takes ownership
 * of setup->tls and setup->child, too, on success.
 */
struct stream *stream_new_over(struct loop *l, int fd,
    const struct stream_setup *setup, const struct stream_ops *ops, void *arg)
    MUST_CHECK;

/* Whether a TLS handshake is still under way. */
bool stream_is_opening(const struct stream *s);
/*
 * Inside closed(): a sentence for people that says more than the reason (why
 * the handshake failed, what ssh said), or "".  What the peer wrote in it is
 * escaped already (transport/base/log.h).
 */
const char *stream_end_detail(const struct stream *s);

/*
 * Ends it: idempotent, legal inside any callback, memory goes away on a later
 * turn.  Queued output is dropped, unless flush is set: then what is queued is
 * still written for at most one second.
 */
void stream_close(struct stream *s, bool flush);

const struct peer *stream_peer(const struct stream *s);
/*
 * Inside opened(): moves the identity that peer->cert points to out of the
 * stream, for an owner that outlives it.  The caller frees it
 * (tls_identity_free()); NULL: no memory.
 */
struct tls_identity *stream_take_identity(struct stream *s) MUST_CHECK;
/* The address of our end, as getsockname(2).  -1: the kernel does not say. */
int stream_local_address(const struct stream *s, struct sockaddr_storage *out)
    MUST_CHECK;
/*
 * The UNIX peer says that it forwards the bytes of another program: from now on
 * peer->forwarded is set, and descriptors travel in neither direction.
 */
void stream_set_forwarded(struct stream *s);

/*
 * Hook on the thread of a stream's socket that may replace each frame before it
 * is shown.  frame() and free() are called on that thread, free() once.
 */
struct stream_unpack {
	/*
	 * frame is whole, header included.  Writes its replacement, a whole
	 * frame, too, to out and returns the bytes; 0: the frame stays as it
	 * is; STREAM_UNPACK_ROOM: the replacement needs more than `room` bytes,
	 * and frame() is called again with more, FRAME_MAX_BYTES at most.
	 */
	size_t (*frame)(void *ctx, const uint8_t *frame, size_t len,
	    uint8_t *out, size_t room);
	void (*free)(void *ctx);
	void *ctx;
};
#define STREAM_UNPACK_ROOM SIZE_MAX
/*
 * Installs the hook, at most once for a stream.  Every frame that the peer
 * sends in answer to something written after this call goes through it; earlier
 * ones may or may not.  True: ctx is the thread's.  False: the stream's socket
 * is on no other thread, or is gone; ctx stays the caller's.
 */
bool stream_set_unpack(struct stream *s, const struct stream_unpack *u)
    MUST_CHECK;

/* Total bytes of the unit whose beginning data() left unconsumed. */
void stream_want(struct stream *s, size_t total);

/*
 * Stops / restarts reading.  While paused nothing is read from the socket; an
 * orderly end of the peer is still noticed when nothing that it sent waits to
 * be shown, a reset with the next write or on resume.  On resume, kept bytes
 * are shown first (on a later turn of the loop).
 */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);

/*
 * Queues len bytes (copied).  fd >= 0 travels with the first byte and stays
 * the caller's (duplicated here).  Errors are reported through closed(), never
 * from inside this call.  A stream over its hard limit for output is closed
 * with STREAM_SLOW.
 */
void stream_write(struct stream *s, const void *data, size_t len, int fd);
/*
 * While on, output over TCP goes out in whole segments only (TCP_CORK); the
 * caller turns it off again in the same turn of the loop, which sends the rest.
 */
void stream_gather_segments(struct stream *s, bool on);
/* One stream_write() of two pieces; an empty one may be NULL. */
void stream_write2(struct stream *s, const void *a, size_t alen, const void *b,
    size_t blen, int fd);

/*
 * Sends now, as far as the socket takes it, the output that was written inside
 * of data() (gathered until that returns) and the output that is queued: for an
 * owner that blocks its thread until the peer has got it.  Of ops, may call
 * moved() only.
 */
void stream_push(struct stream *s);

/*
 * The stream ends, or has ended: writes are ignored and no input is shown any
 * more (but after stream_close() what is flushed still goes out); closed() may
 * follow.
 */
bool stream_is_over(const struct stream *s);

/* Bytes of output that are queued and not yet taken by the kernel. */
size_t stream_queued(const struct stream *s);
/*
 * Reads this stream's input before that of other streams while the loop has
 * more input than time (loop_may_read()).  Cannot be taken back.
 */
void stream_set_urgent(struct stream *s);
/*
 * Limits of queued output, in bytes: over hard the stream ends with
 * STREAM_SLOW; low is the low-water mark of drained().  Defaults: 1 MiB and 64
 * KiB.
 */
void stream_set_limits(struct stream *s, size_t hard, size_t low);

/*
 * Takes the descriptor that came with a unit of the buffer that data() was
 * given (whole, header included); the caller owns it.  -1: none.  Inside data()
 * only: a descriptor whose unit data() consumed without taking it is closed.
 * At most four wait; more are closed as they come.
 *
 * Tells several units in one read apart, as long as a sender puts no unit
 * behind the descriptor's own into the same sendmsg().
 */
int stream_take_fd_of(struct stream *s, const uint8_t *unit, size_t len);

/*
 * Counts the stream's memory and input in up to two budgets (borrowed; NULL:
 * none), which live until closed() or stream_close(): memory of output that is
 * flushed after that is not counted.  A stream that takes more memory when a
 * budget's limit is passed ends with STREAM_BUDGET; when the bytes per second
 * are used up, the stream rests from reading until the bucket has tokens again.
 */
void stream_set_budgets(struct stream *s, struct budget *of_peer,
    struct budget *of_all);

/*
 * For a sweep for dead connections: milliseconds (of loop_now_ms()) since the
 * last byte arrived; since output waits without any being taken (0: none
 * waits).
 */
uint64_t stream_idle_ms(const struct stream *s, uint64_t now_ms);
uint64_t stream_stalled_ms(const struct stream *s, uint64_t now_ms);

/* Memory the stream holds beyond its own struct (kept input, queued output). */
size_t stream_memory(const struct stream *s);

#endif /* TRANSPORT_STREAM_STREAM_H */
