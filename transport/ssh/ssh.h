/*
 * ssh: the arguments of the system's ssh for an address, and sentences about
 * its failures.  Pure; transport/process/child.h runs it.
 *
 * The user's configuration, keys, agents, jump hosts and known_hosts are ssh's
 * own business; we add BatchMode (it never asks), keep-alives, and nothing
 * that weakens it.  $TRIBUTARY_SSH names another program than "ssh".
 */
#ifndef TRANSPORT_SSH_SSH_H
#define TRANSPORT_SSH_SSH_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

#define SSH_ARGS_MAX 48

struct ssh_args {
	char *argv[SSH_ARGS_MAX]; /* NULL-terminated, into words */
	char words[2048];
};

/* Whether ssh can listen at, or forward to, a socket of this path. */
bool ssh_path_is_plain(const char *path);

/*
 * Arguments to run a command on the far side, whose standard input and output
 * are the stream.  command: a shell line; NULL: "tributary connect" with
 * `service` ("producer", "consumer" or "relay") as its argument.  Ignores
 * a->path.  -1 with a sentence when they do not fit.
 */
int ssh_args_connect(struct ssh_args *s, const struct addr *a,
    const char *service, const char *command, char *err, size_t err_size)
    MUST_CHECK;
/*
 * Arguments to have ssh listen on the UNIX socket local_path (in a directory
 * that only we can enter) and forward every connection to a->path on the far
 * side (-N -L).  It listens as soon as we are authenticated.  Not -W: that
 * takes no UNIX socket before OpenSSH 9.4, and hides from us that the far end
 * closed, because ssh then holds two halves of one socket.
 */
int ssh_args_forward(struct ssh_args *s, const struct addr *a,
    const char *local_path, char *err, size_t err_size) MUST_CHECK;
/*
 * Arguments to have the far side listen on remote_path and forward connections
 * to the UNIX socket local_path here (-N -R), for a collector that dials.  ssh
 * ends when the far side cannot listen there.
 */
int ssh_args_listen(struct ssh_args *s, const struct addr *a,
    const char *remote_path, const char *local_path, char *err,
    size_t err_size) MUST_CHECK;

/*
 * A sentence about why ssh ended: host key unknown or changed, permission
 * denied, name or route, refused, forwarding prohibited, nothing listens
 * there, command not found; else what ssh said itself.  Says which side, which
 * file, what to do.  ended_status as child_status().
 */
void ssh_error_text(const struct addr *a, const char *stderr_text,
    int ended_status, char *out, size_t out_size);

#endif /* TRANSPORT_SSH_SSH_H */
