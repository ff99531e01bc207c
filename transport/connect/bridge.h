/*
 * bridge: carries bytes between two descriptors (standard input and output) and
 * a socket, both ways, and knows nothing of what they mean.
 *
 * One buffer a direction: a side that does not take stops the other from being
 * read.  The end of the input is passed on to the socket, which may answer
 * still; the end of the socket ends the bridge, once what came from it was
 * written, because an ssh that carries us on would not tell its other end of
 * half an end.
 */
#ifndef TRANSPORT_CONNECT_BRIDGE_H
#define TRANSPORT_CONNECT_BRIDGE_H

#include "transport/base/compiler.h"

struct bridge;
struct loop;

/* A direction's buffer. */
#define BRIDGE_BUFFER_BYTES 65536u
/* After the end of the input the socket may be silent for so long. */
#define BRIDGE_HALF_MS 10000u

struct bridge_ops {
	/*
	 * The input ended before there was a socket.  Nothing else follows.
	 */
	void (*abandoned)(void *arg);
	/*
	 * The bridge is over; error is an errno where the socket broke, else 0.
	 * Called once; nothing else follows.
	 */
	void (*ended)(void *arg, int error);
};

/*
 * Starts to read in, into its buffer.  in and out stay the caller's and are
 * non-blocking.  NULL: no memory.
 */
struct bridge *bridge_new(struct loop *l, int in, int out,
    const struct bridge_ops *ops, void *arg) MUST_CHECK;
/* A connected, non-blocking socket; the bridge's from now on. */
void bridge_attach(struct bridge *b, int fd);
/* Legal inside the callbacks.  NULL is fine. */
void bridge_free(struct bridge *b);

#endif /* TRANSPORT_CONNECT_BRIDGE_H */
