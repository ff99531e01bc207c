/*
 * dial_ssh: the part of a dial that reaches an ssh:// address.
 *
 * Without a path, the stream is the child itself.  With one, the child listens
 * for us on a socket in a directory of our own (transport/ssh/ssh.h says why),
 * which is gone as soon as we are connected to it.
 */
#ifndef TRANSPORT_CONNECT_DIAL_SSH_H
#define TRANSPORT_CONNECT_DIAL_SSH_H

#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/connect/dial.h"

struct dial_ssh;

/* As dial_new(); request->how is not NULL. */
struct dial_ssh *dial_ssh_new(struct loop *l,
    const struct dial_request *request, char *err, size_t err_size)
    MUST_CHECK;
/* As dial_error_detail(). */
const char *dial_ssh_detail(const struct dial_ssh *d);
/* Also cancels a dial that is under way.  NULL is fine. */
void dial_ssh_free(struct dial_ssh *d);

#endif /* TRANSPORT_CONNECT_DIAL_SSH_H */
