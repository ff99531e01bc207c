/*
 * port_dial: from an address to a socket, without waiting for it.
 */
#ifndef CLIENT_TRACING_PORT_PORT_DIAL_H
#define CLIENT_TRACING_PORT_PORT_DIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;

/*
 * The first address of a list, as a service may listen at several.  false with
 * a sentence in err: none, or one of a kind that takes more than a socket (TLS,
 * ssh).
 */
bool port_dial_choose(struct addr *a, const char *list, char *err,
    size_t err_size) MUST_CHECK;
/*
 * A non-blocking socket that is connected or connecting, the caller's; -1 with
 * errno.  A name may stand for several addresses, *n: `at` (0..n-1) is tried.
 * Waits for a name server where the address has a name.
 */
int port_dial(const struct addr *a, unsigned at, unsigned *n) MUST_CHECK;
/* Once the socket is writable: 0 if it is connected, else the errno why not. */
int port_dial_error(int fd);
/* Whether the service's kernel is ours, and descriptors can be passed. */
bool port_dial_is_unix(int fd);
/* Whether the other end of a UNIX socket forwards to elsewhere (ssh -L). */
bool port_dial_is_tunnel(int fd);

#endif /* CLIENT_TRACING_PORT_PORT_DIAL_H */
