/*
 * listener: accepts connections on one address.
 *
 * A stale UNIX socket file is removed before bind; a live one (a program
 * accepts on it) and a path that is no socket are refused with a sentence.
 * When descriptors run out, accepting pauses for 100 ms instead of spinning.  A
 * socket file of ours that is removed (by a cleaner of /tmp, say) is made anew
 * a second later, as often as it takes, as clients could not connect without
 * it.
 */
#ifndef TRANSPORT_CONNECT_LISTENER_H
#define TRANSPORT_CONNECT_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct loop;
struct listener;

/* Sockets of one listener: a name may have that many addresses. */
#define LISTENER_SOCKETS_MAX 8

/* fd is a connected, non-blocking, close-on-exec socket; the callee owns it. */
typedef void (*listener_fn)(struct listener *l, int fd, void *arg);

struct listener_setup {
	const struct addr *addr; /* borrowed for the call */
	/*
	 * False: TCP addresses off the loopback interface are refused, with a
	 * sentence that says which flag allows them.
	 */
	bool allow_remote;
	listener_fn fn;
	void *arg;
};

/*
 * One listener may have several sockets (a name that resolves to v4 and v6).
 * NULL with a sentence in err.
 */
struct listener *listener_new(struct loop *l,
    const struct listener_setup *setup, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Wraps a listening socket that was passed in (socket activation).  Owns fd on
 * success, leaves it open on failure: NULL with a sentence in err.
 */
struct listener *listener_adopt(struct loop *l, int fd, listener_fn fn,
    void *arg, char *err, size_t err_size) MUST_CHECK;

/*
 * Takes over n sockets that listener_new() of the previous process opened at
 * setup->addr, under the same rules, and the file of a UNIX socket, which
 * listener_free() then removes.  Owns the sockets on success, leaves them open
 * on failure: NULL with a sentence in err.
 */
struct listener *listener_take_over(struct loop *l,
    const struct listener_setup *setup, const int *fds, size_t n, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Closes the sockets, and removes the UNIX socket file if it is still the
 * listener's.  Legal inside its listener_fn.  NULL is fine.
 */
void listener_free(struct listener *l);

/* Stops accepting: connections wait in the backlog, until listener_wake(). */
void listener_rest(struct listener *l);
void listener_wake(struct listener *l);

/*
 * Rate limit: paced, the listener accepts a few connections; more wait in the
 * backlog until listener_let_some_in().  l NULL is fine.
 */
void listener_pace(struct listener *l, bool paced);
void listener_let_some_in(struct listener *l);

/* Copies the descriptors, which stay the listener's; returns how many. */
size_t listener_sockets(const struct listener *l,
    int fds[LISTENER_SOCKETS_MAX]);
/*
 * As listener_free(), but the sockets stay open and the file stays: the caller
 * has got them by listener_sockets().
 */
void listener_leave(struct listener *l);

/* The port in use (TCP port 0 was resolved by the kernel), else 0. */
int listener_port(const struct listener *l);

/* UNIX path: set mode and, when group != -1, group. 0, or -1 and a sentence. */
int listener_set_permissions(struct listener *l, unsigned mode, long gid,
    char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_LISTENER_H */
