/*
 * stream_backend: a table of operations for each thing that can lie between a
 * stream and its peer: a plain socket (stream_plain.c), TLS on a socket
 * (stream_tls.c), a child process (stream_child.c), or a socket on another
 * thread (stream_far.c, stream_far_in.c).
 *
 * The core of a stream knows its backend by this table alone; only
 * stream_new.c, which chooses one, names them.  What a backend has to remember
 * is in stream.lower.  Private to the room.
 */
#ifndef TRANSPORT_STREAM_STREAM_BACKEND_H
#define TRANSPORT_STREAM_STREAM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "transport/base/compiler.h"
#include "transport/stream/stream.h"

struct stream_backend {
	/* ---- bytes ---- */

	/*
	 * As readv(); descriptors that came along are put into s->fds, and
	 * *lost is set where one had no place there.  An error that is not
	 * transient (sock_error_is_transient()) ends the stream.  NULL: the
	 * backend brings input by itself, by calling stream_show().
	 */
	ssize_t (*read)(struct stream *s, struct iovec *iov, int niov,
	    bool *lost);
	/*
	 * As writev(), with one or two pieces or a queue of them; fd (-1: none)
	 * goes with the first byte.  Bytes that are not taken are queued by the
	 * core, and offered again when there is room.
	 */
	ssize_t (*write)(struct stream *s, struct iovec *iov, int niov, int fd);

	/* ---- readiness ---- */

	/* Watches for input as state, flow and rest of the stream demand. */
	void (*arm_input)(struct stream *s);
	/* Whether to watch for writability.  NULL: while output is queued. */
	bool (*wants_room)(const struct stream *s);
	/*
	 * The socket became readable: does what goes before reading (the
	 * handshake, say), and returns whether to read.  NULL: true.
	 */
	bool (*readable)(struct stream *s);
	/* The socket became writable: whether to send output.  NULL: true. */
	bool (*writable)(struct stream *s);
	/*
	 * Input may be shown (again): shows what the backend has buffered, for
	 * which the socket does not become readable.  NULL: it buffers none.
	 */
	void (*go_on)(struct stream *s);
	/*
	 * Whether the peer has closed, and none of its bytes is still to be
	 * shown (else those are shown on resume, before the end).  May read a
	 * little.  Not called inside a call of the owner.  NULL where read is.
	 */
	bool (*peer_left)(struct stream *s, enum stream_end *why);
	/* The stream has just become urgent.  NULL: nothing to do. */
	void (*hurry)(struct stream *s);
	/* One read() a turn, even where a second would complete a unit. */
	bool reads_once;

	/* ---- figures; NULL: the core's own are all there is ---- */

	size_t (*queued)(const struct stream *s);
	size_t (*memory)(const struct stream *s);
	/*
	 * Moves *in_ms and *out_ms up, to when the backend got input and had
	 * output taken last, where that is later.
	 */
	void (*times)(const struct stream *s, uint64_t *in_ms,
	    uint64_t *out_ms);

	/* ---- the end ---- */

	/*
	 * The stream is about to end for this reason.  True: not yet; it is in
	 * ST_LAST, and stream_end_now() follows.  NULL: false.
	 */
	bool (*put_off_end)(struct stream *s, enum stream_end why);
	/*
	 * The owner closed the stream, and output that the backend holds is to
	 * go out though the stream dies.  NULL: the backend holds none.
	 */
	void (*flush)(struct stream *s);
	/*
	 * ST_FLUSHING, and the queue is empty: the backend lets the stream die
	 * when the peer has got all.  A stream with such a backend always goes
	 * through ST_FLUSHING.  NULL: it dies now.
	 */
	void (*flushed)(struct stream *s);
	/* Stops all that goes on, as the stream dies.  NULL: nothing does. */
	void (*drop)(struct stream *s);
	/* Frees lower; no call of the owner is under way any more. */
	void (*free)(struct stream *s);
	/* As stream_end_detail().  NULL: "". */
	const char *(*detail)(const struct stream *s);
};

/*
 * Begin a stream with this backend: these set backend and lower, and watch the
 * socket.  -1: no memory; what is handed over stays the caller's.
 */
int stream_plain_begin(struct stream *s) MUST_CHECK;
int stream_tls_begin(struct stream *s, struct tls_conn *tls) MUST_CHECK;
int stream_child_begin(struct stream *s, struct child *child,
    const struct addr *a) MUST_CHECK;
int stream_far_begin(struct stream *s, const struct stream_setup *setup)
    MUST_CHECK;

/* ---- stream_plain.c: for other backends that have a plain socket ---- */

ssize_t stream_plain_read(struct stream *s, struct iovec *iov, int niov,
    bool *lost);
ssize_t stream_plain_write(struct stream *s, struct iovec *iov, int niov,
    int fd);
void stream_plain_arm_input(struct stream *s);
bool stream_plain_peer_left(struct stream *s, enum stream_end *why);
/* Closes the socket. */
void stream_plain_drop(struct stream *s);

/* ---- stream_tls.c: for a backend whose handshake is on another thread ---- */

/* The peer is known by its address only until the handshake is done. */
void stream_tls_await(struct stream *s);
/* The certificate says who it is; where it is, was known before. */
void stream_tls_name_peer(struct stream *s, const struct tls_identity *id);

#endif /* TRANSPORT_STREAM_STREAM_BACKEND_H */
