/*
 * haproxy: the settings of an HAProxy that spreads devices over collectors by
 * the server name that each asks for, and passes their TLS through.  Pure.
 */
#ifndef CLIENT_FLEET_HAPROXY_H
#define CLIENT_FLEET_HAPROXY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/base/compiler.h"

/* Most collectors behind one HAProxy. */
#define HAPROXY_COLLECTORS_MAX 256u

struct haproxy_settings {
	const char *const *collectors; /* HOST:PORT, each */
	size_t n;
	const char *listen;    /* HOST:PORT; the host may be * */
	uint16_t health_port;  /* of tributary-web beside each collector */
	const char *health_ca; /* file of its CA; NULL: plain HTTP */
	uint64_t grace_ms;     /* how long a collector may be silent */
};

/*
 * Checks everything before it prints.  -1 with a sentence in err: an address
 * that HAProxy could not use, or two collectors that it could not tell apart;
 * then nothing is printed.  A failure to write is left to ferror(out).
 */
int haproxy_print(const struct haproxy_settings *s, FILE *out, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_FLEET_HAPROXY_H */
