/*
 * sock: the few system calls on a connected socket that need more than a line:
 * descriptors in control messages, and its settings.
 */
#ifndef TRANSPORT_SOCKET_SOCK_H
#define TRANSPORT_SOCKET_SOCK_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "transport/base/compiler.h"

/* Descriptors one read returns; the kernel closes those beyond. */
#define SOCK_FDS_MAX 4

/* Non-blocking and close-on-exec. */
int sock_prepare(int sock) MUST_CHECK;

/*
 * TCP: sends small writes at once (TCP_NODELAY), and finds a peer that vanished
 * within a minute (keep-alive).  Between two ends on this machine the kernel's
 * buffers are kept small, so that an answer does not wait behind megabytes;
 * elsewhere the kernel tunes their size.  Options that the kernel refuses are
 * left out.
 */
void sock_tune_tcp(int sock);

/*
 * Ends a TCP connection whose peer acknowledges none of the output, or has no
 * room for it, for so long (TCP_USER_TIMEOUT).  Without it the kernel goes on
 * for a quarter of an hour: keep-alive probes only while nothing is on the way.
 */
void sock_give_up_after(int sock, unsigned ms);

/*
 * As sendmsg(2) with these flags, never with a signal.  fd >= 0 travels with
 * the first byte, and stays the caller's.
 */
ssize_t sock_send(int sock, struct iovec *iov, int niov, int fd, int flags)
    MUST_CHECK;

/*
 * As readv(2).  fds NULL: the socket cannot carry descriptors.  Else
 * descriptors that came (close-on-exec) are stored in fds and are the caller's.
 * *n_fds is their number, 0 on failure, or -1: one came, but the limit of open
 * files left no room for it.
 */
ssize_t sock_receive(int sock, struct iovec *iov, int niov,
    int fds[SOCK_FDS_MAX], int *n_fds) MUST_CHECK;

/* Whether the same call may work later. */
bool sock_error_is_transient(int error);

#endif /* TRANSPORT_SOCKET_SOCK_H */
