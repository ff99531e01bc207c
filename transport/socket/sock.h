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
 * TCP: sends small writes at once, and finds a peer that vanished within a
 * minute.  Between two ends of this machine the kernel's buffers are kept
 * small, so that an answer does not wait behind megabytes; elsewhere the kernel
 * finds their size by itself.  What the kernel refuses is left out.
 */
void sock_tune_tcp(int sock);

/*
 * Ends a TCP connection whose other end acknowledges nothing of what was sent,
 * or has no room for it, for so long.  Without it the kernel goes on for a
 * quarter of an hour: keep-alive looks only while nothing is on the way.
 */
void sock_give_up_after(int sock, unsigned ms);

/*
 * As sendmsg(2) with these flags, never with a signal.  fd >= 0 travels with the
 * first byte, and stays the caller's.
 */
ssize_t sock_send(int sock, struct iovec *iov, int niov, int fd, int flags)
    MUST_CHECK;

/*
 * As readv(2).  fds NULL: the socket cannot carry descriptors.  Else those
 * that came (close-on-exec) are stored in it and are the caller's; *n_fds says
 * how many, 0 on failure; -1: one came, and this process has none left for it.
 */
ssize_t sock_receive(int sock, struct iovec *iov, int niov,
    int fds[SOCK_FDS_MAX], int *n_fds) MUST_CHECK;

/* Whether the same call may work later. */
bool sock_error_is_transient(int error);

#endif /* TRANSPORT_SOCKET_SOCK_H */
