/*
 * stream: one connected byte stream on a loop, non-blocking both ways.
 *
 * Knows nothing of frames.  Input: bytes land in the loop's scratch buffer and
 * are handed to ops->data(), which says how many it consumed; only what it
 * left is kept (copied) in the stream.  Output: written at once where the
 * socket takes it, else queued up to a limit.  Descriptors travel over UNIX
 * sockets.  A stream ends in stream_close() or in one ops->closed().
 *
 * What lies between the stream and its socket is the stream's business: nothing,
 * TLS (transport/tls/tls.h), a child that carries the bytes on
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
	STREAM_BUDGET,      /* its peer's, or everybody's, memory is used up */
	STREAM_PROTOCOL,    /* the owner refused what it sent */
	STREAM_NO_MEMORY,
	STREAM_SHUTDOWN,    /* we are going down */
};
const char *stream_end_text(enum stream_end why);

struct stream_ops {
	/*
	 * Bytes arrived.  Returns how many were consumed (0..len).  The rest is
	 * shown again, from its first byte, together with what arrives next.
	 * When it stops short because a unit is incomplete it calls
	 * stream_want() with the total bytes of that unit.  When it stops short
	 * because it cannot take more now, it has called stream_pause().
	 * May close the stream (the return value is then ignored).
	 */
	size_t (*data)(struct stream *s, const uint8_t *buf, size_t len,
	    void *arg);
	/*
	 * TLS: the handshake is done and stream_peer() is complete; data()
	 * follows.  May close the stream.  Not called for other streams, which
	 * are open from the start.  May be NULL.
	 */
	void (*opened)(struct stream *s, void *arg);
	/* Output that was over stream_low_water() fell to it.  May be NULL. */
	void (*drained)(struct stream *s, void *arg);
	/* The one end; not called after stream_close() by the owner. */
	void (*closed)(struct stream *s, enum stream_end why, void *arg);
	/*
	 * Bytes were read, shown again or taken: what stream_queued(),
	 * stream_memory(), stream_idle_ms() and stream_stalled_ms() say may be
	 * something else.
	 * May not close it.  May be NULL.
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
	 * Made for this descriptor.  The handshake is the stream's to do;
	 * output waits meanwhile.
	 */
	struct tls_conn *tls;
	/*
	 * The descriptor's other end is this child; not together with tls.
	 * When the stream ends by
	 * itself, closed() waits (a second at most) for the child's last words.
	 */
	struct child *child;
	struct addr *child_addr; /* where it leads, for messages; copied */
	/* The peer, instead of what the kernel says; copied. */
	const struct peer *peer;
	/*
	 * The socket, and TLS, go to one of these threads.  It carries frames
	 * then, and no descriptors.  Not together with a child; the pool
	 * outlives it.
	 */
	struct io_pool *io;
};

/*
 * As stream_new(); setup may be NULL.  Takes ownership of setup->tls and
 * setup->child, too, on success.
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
 * Inside opened(): takes away whom peer->cert names, for who outlives the
 * stream.  The caller's (transport/tls/tls.h); NULL: no memory.
 */
struct tls_identity *stream_take_identity(struct stream *s) MUST_CHECK;
/* The address of our end, as getsockname(2).  -1: the kernel does not say. */
int stream_local_address(const struct stream *s, struct sockaddr_storage *out)
    MUST_CHECK;
/*
 * The UNIX peer says that it carries another's bytes: from now on
 * peer->forwarded, and no descriptors in either direction.
 */
void stream_set_forwarded(struct stream *s);

/*
 * Hook on the thread of a stream's socket that may replace each frame before it
 * is shown.  All but ctx is called there, free() once.
 */
struct stream_unpack {
	/*
	 * frame is whole, header included.  Writes what stands for it to out
	 * (a whole frame, too) and returns its bytes; 0: it stays as it is;
	 * STREAM_UNPACK_ROOM: that needs more than `room` bytes, which is asked
	 * for again with more, and the most is FRAME_MAX_BYTES.
	 */
	size_t (*frame)(void *ctx, const uint8_t *frame, size_t len,
	    uint8_t *out, size_t room);
	void (*free)(void *ctx);
	void *ctx;
};
#define STREAM_UNPACK_ROOM SIZE_MAX
/*
 * From now on, at the latest with what the peer sends when it has got what is
 * written after this call.  Once a stream.  True: ctx is the thread's.  False:
 * the stream's socket is on no other thread, or is gone; ctx stays the caller's.
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
 * While it is on, what is written over TCP goes out in whole segments; the rest
 * when it is off again, in the same turn of the loop.
 */
void stream_gather_segments(struct stream *s, bool on);
/* As one write of two pieces; an empty one may be NULL. */
void stream_write2(struct stream *s, const void *a, size_t alen, const void *b,
    size_t blen, int fd);

/*
 * Sends now, as far as the socket takes it, what was written inside of data()
 * (it is gathered until that returns) and what is queued: for an owner that
 * blocks its thread until the peer has got it.  Calls back nobody.
 */
void stream_push(struct stream *s);

/* No output goes out and no input is shown any more; closed() may follow. */
bool stream_is_over(const struct stream *s);

/* Bytes queued and not yet taken by the kernel. */
size_t stream_queued(const struct stream *s);
/*
 * Reads its input before that of others, while the loop has more of it than
 * time (loop_may_read()).  For ever.
 */
void stream_set_urgent(struct stream *s);
/* Defaults: hard limit 1 MiB, low water 64 KiB. */
void stream_set_limits(struct stream *s, size_t hard, size_t low);

/*
 * Descriptors, inside data() only: those that came with bytes which data()
 * consumed and nobody took are closed.  At most four wait; more are closed.
 *
 * The one that came with a unit of the buffer that data() was given (whole,
 * header included); -1: none.  Tells several units in one read apart, as long
 * as a sender puts no unit behind the descriptor's own into the same sendmsg.
 */
int stream_take_fd_of(struct stream *s, const uint8_t *unit, size_t len);

/*
 * Counts its memory and its input in up to two budgets (NULL: none), which live
 * until closed() or stream_close(): what a flush still holds is not counted.
 * Where a memory limit is passed it ends with STREAM_BUDGET; where its
 * bytes per second are used up it rests from reading until there are more.
 */
void stream_set_budgets(struct stream *s, struct budget *of_peer,
    struct budget *of_all);

/*
 * For whoever sweeps for dead connections.  Milliseconds (loop_now_ms()) since
 * the last byte arrived; since output waits without any being taken (0: none
 * waits).
 */
uint64_t stream_idle_ms(const struct stream *s, uint64_t now_ms);
uint64_t stream_stalled_ms(const struct stream *s, uint64_t now_ms);

/* Memory the stream holds beyond its own struct (kept input, queued output). */
size_t stream_memory(const struct stream *s);

#endif /* TRANSPORT_STREAM_STREAM_H */
