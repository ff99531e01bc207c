/*
 * port: this program as a producer of one service: connects, registers the
 * sources, does what the service's commands say, and tells it of finished
 * chunks.  After the connection has ended it connects again, with backoff.
 *
 * Belongs to one thread, which waits in poll() for what port_poll() says;
 * port_wake() alone may be called from others.
 */
#ifndef CLIENT_TRACING_PORT_PORT_H
#define CLIENT_TRACING_PORT_PORT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <tributary/tributary.h>

#include "transport/base/compiler.h"

struct port;

/* o is complete (its size is not looked at); strings are copied. */
struct port *port_new(const struct tributary_options *o) MUST_CHECK;
/* Ends all instances without a word to the service. */
void port_free(struct port *p);

/* Descriptors to wait for; returns milliseconds to wait at most, -1: for ever. */
#define PORT_FDS 4
int port_poll(struct port *p, struct pollfd fds[PORT_FDS]);
/* After poll(), whatever it returned. */
void port_run(struct port *p, const struct pollfd fds[PORT_FDS]);

/* Any thread, and signal handlers: port_run() is due. */
void port_wake(struct port *p);

/* The service has taken the program's sources. */
bool port_is_connected(const struct port *p);

/* ---- Requests of the program; done on the port's thread ---- */

/* Registers sources that are new, and describes others anew. */
void port_sources_changed(struct port *p);
void port_trigger(struct port *p, const char *name);
/*
 * Hands over what all instances have written, then calls done(arg, ok): the
 * service has taken it, or (false) the connection is gone.
 */
void port_flush(struct port *p, void (*done)(void *arg, bool ok), void *arg);
/* Stops all instances, and tells the service. */
void port_stop_all(struct port *p);

/* In the child of a fork(): closes what is the parent's, without a word. */
void port_after_fork(struct port *p);

#endif /* CLIENT_TRACING_PORT_PORT_H */
