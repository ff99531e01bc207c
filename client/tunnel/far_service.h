/*
 * far_service: a service behind TLS or ssh, of which libtributary knows
 * nothing: it gets one end of a socket pair, and a thread here carries the
 * bytes on.
 *
 * On a thread of its own, as data sources that wait for the service to take
 * their data keep their own loop from turning.
 */
#ifndef CLIENT_TUNNEL_FAR_SERVICE_H
#define CLIENT_TUNNEL_FAR_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct far_service;

/* Whether libtributary needs us to reach this address. */
bool far_service_is_needed(const struct addr *to);

/*
 * Starts the thread.  to, and what how (NULL: defaults) points to, are borrowed.
 * NULL with errno.
 */
struct far_service *far_service_new(const struct addr *to,
    const struct dial_options *how) MUST_CHECK;
/* Ends the connection and the thread.  NULL is fine. */
void far_service_free(struct far_service *f);

/*
 * Begins a connection, and ends the one before: a socket, the caller's, that
 * closes when there is none any more.  -1 with errno.
 */
int far_service_connect(struct far_service *f) MUST_CHECK;
/*
 * After that socket has closed: writes why, a sentence, to out.  false: the
 * service itself ended the connection.
 */
bool far_service_why(struct far_service *f, char *out, size_t size);

#endif /* CLIENT_TUNNEL_FAR_SERVICE_H */
