/*
 * forward: `tributary forward`, a local socket that leads to a collector
 * elsewhere, for programs that know no TLS and no ssh.
 *
 *	forwarder (forward.h) -> command line: forward_main()
 *
 * For every accepted connection the forwarder dials one to the collector, and
 * passes bytes both ways unread.  Before a producer's first byte it sends the
 * producer's uid, pid and machine (SetPeerIdentity), as Perfetto's own relay
 * does.  When one of the two connections ends, the other is closed.
 */
#ifndef CLIENT_TUNNEL_FORWARD_H
#define CLIENT_TUNNEL_FORWARD_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct dial_options;
struct forwarder;
struct loop;

/* Most accepted connections at a time; further ones are closed. */
#define FORWARD_MAX 4096

struct forward_options {
	const struct addr *listen; /* UNIX, or TCP on the loopback interface */
	const struct addr *to;     /* copied */
	const struct dial_options *how; /* borrowed; NULL: defaults */
	bool consumers; /* else producers, whose identity is sent */
	const char *machine_name; /* borrowed until forwarder_free() */
};

/* Listens.  NULL with a sentence in err. */
struct forwarder *forwarder_new(struct loop *l,
    const struct forward_options *o, char *err, size_t err_size) MUST_CHECK;
/* Ends all connections.  NULL is fine. */
void forwarder_free(struct forwarder *f);
/* Connections now. */
size_t forwarder_connections(const struct forwarder *f);

/* The subcommand. */
int forward_main(int argc, char **argv);

#endif /* CLIENT_TUNNEL_FORWARD_H */
