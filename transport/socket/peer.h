/*
 * peer: the program at the other end of a stream, as the kernel or a
 * certificate says.
 *
 * Claimed identities (SetPeerIdentity) are not here: they label data and
 * belong to the connection that received them (transport/rpc/rpc_host.h).
 */
#ifndef TRANSPORT_SOCKET_PEER_H
#define TRANSPORT_SOCKET_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/socket/addr.h"

/* The uid of an unauthenticated peer: that of "nobody", never 0. */
#define PEER_UID_UNKNOWN 65534
#define PEER_PID_UNKNOWN 0

/* How the peer was authenticated. */
enum peer_auth {
	PEER_NOBODY, /* not at all */
	PEER_UNIX, /* the kernel (SO_PEERCRED): uid, gid, pid */
	PEER_CERT, /* a certificate that we verified: cert */
};

struct tls_identity;

struct peer {
	/* ADDR_TLS: over a TCP socket; ADDR_SSH: a socket pair with a child. */
	enum addr_kind kind;
	enum peer_auth auth;
	bool can_pass_fds;  /* UNIX, unless forwarded */
	/*
	 * UNIX, but the process there is the end of a tunnel (sshd, socat): uid
	 * and gid are the tunnel's, descriptors do not travel, and the claimed
	 * identity of the client behind it labels its data.
	 */
	bool forwarded;
	uint32_t uid;       /* PEER_UID_UNKNOWN unless PEER_UNIX */
	uint32_t gid;
	int32_t pid;
	/*
	 * PEER_CERT: what the certificate says (transport/tls/tls.h); the
	 * stream's, and lives as long.  Else NULL.
	 */
	const struct tls_identity *cert;
	/*
	 * ADDR_SSH: the machine's name in the settings of a dial; borrowed from
	 * these.  NULL elsewhere.
	 */
	const char *machine_name;
	uint64_t addr_hash; /* of the address without its port; UNIX: 0 */
	/*
	 * As addr_hash for the whole site: of an IPv6 address only the first 64
	 * bits, as one site has all addresses of such a network.
	 */
	uint64_t net_hash;
	/*
	 * For logs: "unix pid 42 uid 1000", "10.0.0.7:4711",
	 * "device-7 at 10.0.0.7:4711", "ssh://device-7".
	 */
	char text[112];
};

/*
 * Asks the kernel about a connected socket; never fails (unknown stays
 * unknown).  A UNIX peer whose program is known to be the end of a tunnel is
 * forwarded.
 */
void peer_from_socket(struct peer *p, int fd);
/* An ssh child that we started to reach a->host: PEER_NOBODY. */
void peer_from_ssh(struct peer *p, const struct addr *a);

#endif /* TRANSPORT_SOCKET_PEER_H */
