/*
 * bridge: carries bytes between two descriptors (standard input and output) and
 * a socket, both ways, without looking into them.
 *
 * Back-pressure: one buffer a direction; a side that takes no output stops the
 * other from being read.  The end of the input shuts down the socket's sending
 * side, and the peer may still answer; the end of the socket ends the bridge,
 * once all that came from it was written, as an ssh around us does not pass on
 * an end of one direction.
 */
#ifndef TRANSPORT_CONNECT_BRIDGE_H
#define TRANSPORT_CONNECT_BRIDGE_H

#include "transport/base/compiler.h"

struct bridge;
struct loop;

/* A direction's buffer. */
#define BRIDGE_BUFFER_BYTES 65536u
/* The bridge ends when the socket is silent so long after the input's end. */
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
/* fd: a connected, non-blocking socket; the bridge owns it from now on. */
void bridge_attach(struct bridge *b, int fd);
/* Legal inside the callbacks.  NULL is fine. */
void bridge_free(struct bridge *b);

#endif /* TRANSPORT_CONNECT_BRIDGE_H */
