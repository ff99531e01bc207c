/*
 * peer: who is at the other end of a stream, as the kernel or a certificate
 * says.
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

/* The uid of a peer that nobody vouches for: "nobody", never 0. */
#define PEER_UID_UNKNOWN 65534
#define PEER_PID_UNKNOWN 0

/* The authority that vouches for the peer. */
enum peer_auth {
	PEER_NOBODY,
	PEER_UNIX, /* the kernel (SO_PEERCRED): uid, gid, pid */
	PEER_CERT, /* a certificate that we verified: cert */
};

struct tls_identity;

struct peer {
	/* ADDR_TLS, ADDR_SSH: the socket is TCP, or a pair with a child. */
	enum addr_kind kind;
	enum peer_auth auth;
	bool can_pass_fds;  /* UNIX, unless forwarded */
	/*
	 * UNIX, but the process there is a tunnel's end (sshd, socat): uid and
	 * gid are the tunnel's, descriptors do not travel, and what the client
	 * behind it claims about itself labels its data.
	 */
	bool forwarded;
	uint32_t uid;       /* PEER_UID_UNKNOWN unless PEER_UNIX */
	uint32_t gid;
	int32_t pid;
	/*
	 * PEER_CERT: the stream's, lives as long; else NULL.
	 * (transport/tls/tls.h)
	 */
	const struct tls_identity *cert;
	/*
	 * ADDR_SSH: what the settings of a dial call the machine; lives as long
	 * as they.  NULL elsewhere.
	 */
	const char *machine_name;
	uint64_t addr_hash; /* of the address without its port; UNIX: 0 */
	/*
	 * As above for the whole site: an IPv6 address counts by its first 64
	 * bits, as whoever has one of them has all.
	 */
	uint64_t net_hash;
	/*
	 * For logs: "unix pid 42 uid 1000", "10.0.0.7:4711",
	 * "device-7 at 10.0.0.7:4711", "ssh://device-7".
	 */
	char text[112];
};

/*
 * Reads it off a connected socket; never fails (unknown stays unknown).  A
 * UNIX peer whose program is known to be a tunnel's end is forwarded.
 */
void peer_from_socket(struct peer *p, int fd);
/* An ssh child that we started to reach a->host; nobody vouches for it. */
void peer_from_ssh(struct peer *p, const struct addr *a);

#endif /* TRANSPORT_SOCKET_PEER_H */
