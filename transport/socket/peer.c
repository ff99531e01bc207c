#include "transport/socket/peer.h"

#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/socket/tunnel_process.h"

static uint64_t
hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	while (len-- > 0) {
		h ^= *p++;
		h *= 0x100000001b3u;
	}
	return h;
}

/* v6_bytes: of an IPv6 address, from its beginning. */
static uint64_t
hash_address(const struct sockaddr_storage *sa, size_t v6_bytes)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_vm *vm = (const struct sockaddr_vm *)sa;

	switch (sa->ss_family) {
	case AF_INET:
		return hash_bytes(&in4->sin_addr, 4);
	case AF_INET6:
		/* One address, whichever listener the peer came through. */
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
			return hash_bytes(&in6->sin6_addr.s6_addr[12], 4);
		return hash_bytes(&in6->sin6_addr, v6_bytes);
	case AF_VSOCK:
		return hash_bytes(&vm->svm_cid, sizeof(vm->svm_cid));
	}
	return 0;
}

static void
peer_from_unix(struct peer *p, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	p->kind = ADDR_UNIX;
	p->can_pass_fds = true;
	snprintf(p->text, sizeof(p->text), "unix");
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
	    len != sizeof(cred) || cred.uid == (uid_t)-1)
		return;
	p->auth = PEER_UNIX;
	p->uid = cred.uid;
	p->gid = cred.gid;
	p->pid = cred.pid;
	p->forwarded = is_tunnel_process(cred.pid);
	p->can_pass_fds = !p->forwarded;
	snprintf(p->text, sizeof(p->text), "unix pid %d uid %u%s",
	    (int)cred.pid, (unsigned)cred.uid,
	    p->forwarded ? " (forwarded)" : "");
}

void
peer_from_socket(struct peer *p, int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	memset(p, 0, sizeof(*p));
	p->kind = ADDR_TCP;
	p->uid = PEER_UID_UNKNOWN;
	p->gid = PEER_UID_UNKNOWN;
	p->pid = PEER_PID_UNKNOWN;
	memset(&sa, 0, sizeof(sa));
	if (getpeername(fd, (struct sockaddr *)&sa, &len) != 0) {
		/* The peer left already: only the family is known. */
		len = sizeof(sa);
		if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0 ||
		    sa.ss_family != AF_UNIX) {
			snprintf(p->text, sizeof(p->text), "unknown");
			return;
		}
	}
	if (sa.ss_family == AF_UNIX) {
		peer_from_unix(p, fd);
		return;
	}
	if (sa.ss_family == AF_VSOCK)
		p->kind = ADDR_VSOCK;
	p->addr_hash = hash_address(&sa, 16);
	p->net_hash = hash_address(&sa, 8);
	addr_format(&sa, len, p->text, sizeof(p->text));
}

void
peer_from_ssh(struct peer *p, const struct addr *a)
{
	memset(p, 0, sizeof(*p));
	p->kind = ADDR_SSH;
	p->uid = PEER_UID_UNKNOWN;
	p->gid = PEER_UID_UNKNOWN;
	p->pid = PEER_PID_UNKNOWN;
	p->addr_hash = hash_bytes(a->host, strlen(a->host));
	p->net_hash = p->addr_hash;
	snprintf(p->text, sizeof(p->text), "ssh://%.90s", a->host);
}
