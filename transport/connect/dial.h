/*
 * dial: connects to an address without blocking, trying each address that a
 * name stands for in turn; wraps it in TLS, or starts an ssh, where the address
 * says so.
 */
#ifndef TRANSPORT_CONNECT_DIAL_H
#define TRANSPORT_CONNECT_DIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct child;
struct dial;
struct loop;
struct peer;
struct tls_conn;

/* Room for any sentence of this module. */
#define DIAL_TEXT_MAX 1024

/* How to reach an address, beyond what the address says; all borrowed. */
struct dial_options {
	/*
	 * tls://: directory of our certificate, its key, and the authority that
	 * we trust.  NULL: one that dial_tls_dir() finds.  All dials of a loop
	 * with the same directory share one TLS context and resume each other's
	 * TLS sessions; files that changed are read anew by the next dial.
	 */
	const char *tls_dir;
	/* tls://: the name in the peer's certificate.  NULL: the address's. */
	const char *tls_name;
	/*
	 * tls://: the machine's name and a dot are put in front of that name, so
	 * that a proxy can tell machines apart (dial_server_name()).
	 */
	bool sni_machine;
	/* The machine's name.  NULL: $PERFETTO_MACHINE_NAME, else the host's. */
	const char *machine_name;
	bool allow_tls12;
	/* ssh://host: command to run there; NULL: see ssh_args_connect(). */
	const char *ssh_command;
	/* "producer", "consumer" or "relay": the argument of that command. */
	const char *service;
	/*
	 * Names are resolved on a thread, so that the loop does not wait for a
	 * name server.  A name that is not found is then reported to dial_fn,
	 * not by dial_new().
	 */
	bool in_background;
};

/*
 * The outcome of a dial.  fd is a connected, non-blocking, close-on-exec
 * socket; tls and child, where not NULL, belong to it.  These three are the
 * callee's, for stream_new_over().  peer, where not NULL, describes the peer
 * better than the socket can.
 */
struct dial_result {
	int fd;
	struct tls_conn *tls;
	struct child *child;
	const struct peer *peer; /* borrowed for the call */
};

/*
 * The outcome, once, never from inside dial_new(): r, or NULL with the errno of
 * the last address that failed.  Afterwards the dial does nothing more;
 * dial_free() is legal inside.
 *
 * Behind an ssh, success says only that ssh runs: a command that is missing, or
 * a socket on which no program listens, ends the stream later
 * (stream_end_detail()).
 */
typedef void (*dial_fn)(const struct dial_result *r, int error, void *arg);

/* Borrowed for the call. */
struct dial_request {
	const struct addr *addr;
	const struct dial_options *how; /* NULL: defaults */
	dial_fn fn;
	void *arg;
};

/*
 * Resolves at once (may block on a name server), unless it is to be done in the
 * background, and reads certificates.
 * NULL with a sentence in err when the name does not resolve, certificates
 * cannot be read, ssh cannot be started, or memory is short.
 */
struct dial *dial_new(struct loop *l, const struct dial_request *request,
    char *err, size_t err_size) MUST_CHECK;

/*
 * Where a client finds its certificates when no directory is named:
 * $TRIBUTARY_TLS_DIR, whether it exists or not, else the first that exists of
 * $XDG_CONFIG_HOME/tributary/tls (~/.config/tributary/tls) and
 * /etc/tributary/tls; into out.  -1 with a sentence that
 * says where it looked and how to get one.
 */
int dial_tls_dir(char *out, size_t out_size, char *err, size_t err_size)
    MUST_CHECK;

/* Also cancels a dial that is under way.  NULL is fine. */
void dial_free(struct dial *d);

/*
 * Inside dial_fn: why it failed, as a sentence for people, where more than the
 * errno is known (ssh, names); else "".
 */
const char *dial_error_detail(const struct dial *d);

/*
 * A sentence for people about an error of dial_fn: what is wrong at a and what
 * to do; variable is the environment variable that names such an address.
 */
void dial_error_text(const struct addr *a, int error, const char *variable,
    char *out, size_t out_size);

#endif /* TRANSPORT_CONNECT_DIAL_H */
