/*
 * forward: `tributary forward`, a local socket that leads to a collector
 * elsewhere, for programs that know no TLS and no ssh.
 *
 *	forwarder (forward.h) -> command line: forward_main()
 *
 * Every connection that is accepted gets one of its own to the collector, and
 * bytes pass both ways unread.  Before a producer's first byte its uid, pid and
 * machine are told (SetPeerIdentity), as Perfetto's own relay does.  Nothing is
 * kept across a cut: a connection that ends ends the other one.
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

/* Connections at a time; more are closed. */
#define FORWARD_MAX 4096

struct forward_options {
	const struct addr *listen; /* UNIX, or TCP on the loopback interface */
	const struct addr *to;     /* copied */
	const struct dial_options *how; /* borrowed; NULL: defaults */
	bool consumers; /* else producers, of which the identity is told */
	const char *machine_name; /* borrowed */
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
