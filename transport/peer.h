/*
 * peer: who is at the other end of a stream, as the kernel says.
 *
 * Claimed identities (SetPeerIdentity) are not here: they label data and
 * belong to the connection that received them (transport/rpc_host.h).
 */
#ifndef TRANSPORT_PEER_H
#define TRANSPORT_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/addr.h"

/* The uid of a peer that nobody vouches for: "nobody", never 0. */
#define PEER_UID_UNKNOWN 65534
#define PEER_PID_UNKNOWN 0

struct peer {
	enum addr_kind kind;
	bool authenticated; /* UNIX: by SO_PEERCRED */
	bool can_pass_fds;  /* UNIX only */
	uint32_t uid;       /* PEER_UID_UNKNOWN unless authenticated */
	uint32_t gid;
	int32_t pid;
	uint64_t addr_hash; /* of the address without its port; UNIX: 0 */
	char text[80];      /* for logs: "unix pid 42 uid 1000", "10.0.0.7:4711" */
};

/* Reads it off a connected socket; never fails (unknown stays unknown). */
void peer_from_socket(struct peer *p, int fd);

#endif /* TRANSPORT_PEER_H */
