/*
 * addr: where a socket listens or connects, as people write it.
 *
 *   /path, unix:/path, @abstract, unix:@abstract    UNIX stream socket
 *   host:port, [v6]:port, tcp:host:port             TCP
 *   vsock://CID:PORT, vsock:CID:PORT                AF_VSOCK
 *   tls://host:port, tls://[v6]:port                TLS over TCP
 *   ssh://[user@]host[:port][/path | /host:port]    through an ssh child
 *
 * A relative path without a colon is a UNIX path too.  (reference
 * behaviour.md, "Sockets and frames".)  The part behind the host of an ssh
 * address says where the far side forwards to: a UNIX socket, or a port as
 * reached from there; without it a program on the far side is run.  Pure: no
 * I/O except name resolution in addr_resolve().
 */
#ifndef TRANSPORT_SOCKET_ADDR_H
#define TRANSPORT_SOCKET_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transport/base/compiler.h"

enum addr_kind { ADDR_UNIX, ADDR_TCP, ADDR_VSOCK, ADDR_TLS, ADDR_SSH };

/* Long enough for any parsed address. */
#define ADDR_TEXT_MAX 300

struct addr {
	enum addr_kind kind;
	char text[ADDR_TEXT_MAX]; /* as written, for messages */
	char host[256];           /* TCP, TLS, SSH: name or literal, no brackets */
	char port[32];            /* TCP, TLS; SSH: of sshd, empty: the default */
	char user[64];            /* SSH: empty: ssh's own choice */
	char path[256];           /* SSH: "/path", "host:port" or empty */
	struct sockaddr_storage sa; /* UNIX, VSOCK: complete after parse */
	socklen_t sa_len;         /* 0 for an unresolved name, and for SSH */
};

/*
 * Returns 0, or -1 with a sentence in err that says what is wrong with the
 * text and what is accepted (path too long for sun_path, port not a number or
 * over 65535, brackets, empty host, ...).
 */
int addr_parse(struct addr *a, const char *text, char *err, size_t err_size)
    MUST_CHECK;

/*
 * The next item of a comma-separated list of addresses; blanks around it and
 * empty items are skipped.  *list starts at the list and is advanced.  Returns
 * 1, 0 at the end, -1 when the item is longer than item_size.
 */
int addr_list_next(const char **list, char *item, size_t item_size) MUST_CHECK;

/*
 * TCP, TLS: resolves host and port (may block on a name server; call at
 * start-up or in clients only) and stores up to max addresses.  UNIX, VSOCK:
 * copies sa.  Not for SSH, which resolves by itself.  Returns the number
 * stored, or -1 with a sentence in err.
 */
int addr_resolve(const struct addr *a, struct sockaddr_storage *out,
    socklen_t *out_len, int max, char *err, size_t err_size) MUST_CHECK;

/* Whether a host is an address as it stands (IPv4, IPv6 without brackets). */
bool addr_host_is_number(const char *host);

/* The number of a port, from 1 to 65535.  -1: text is none. */
int addr_port(const char *text, uint16_t *out) MUST_CHECK;

/* Whether a resolved address can be reached from this machine only. */
bool addr_is_local(const struct sockaddr_storage *sa);

/* Text of a peer address: "127.0.0.1:5000", "unix", "vsock:2:9000". */
void addr_format(const struct sockaddr_storage *sa, socklen_t len, char *out,
    size_t out_size);

/* Default socket names and the PERFETTO_* variables (behaviour.md). */
const char *addr_default_producer(void); /* env or default; may be a list */
const char *addr_default_consumer(void);

#endif /* TRANSPORT_SOCKET_ADDR_H */
