/*
 * dial_name: the server name of a TLS connection: what the collector's
 * certificate must be for, and what a proxy on the way sees (SNI).
 */
#ifndef TRANSPORT_CONNECT_DIAL_NAME_H
#define TRANSPORT_CONNECT_DIAL_NAME_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;

/* Room for any server name. */
#define DIAL_NAME_MAX 256

/*
 * The server name for a, a tls:// address: how->tls_name or the address's host,
 * and with how->sni_machine the machine's name and a dot in front of it.  -1
 * with a sentence in err where that is no name of DNS: the machine's name is
 * not a single label, or what follows is an IP address.
 */
int dial_server_name(const struct dial_options *how, const struct addr *a,
    char out[DIAL_NAME_MAX], char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_DIAL_NAME_H */
