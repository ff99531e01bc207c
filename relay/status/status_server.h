/*
 * status_server: the socket in the state folder by which `tributary-relay
 * --status` asks a relay for its report.  Serves the same user and root; a
 * client that does not read the answer within a second goes without.
 */
#ifndef RELAY_STATUS_STATUS_SERVER_H
#define RELAY_STATUS_STATUS_SERVER_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct status_server;
struct loop;
struct report_sources;

/* Copies *from and borrows its objects.  NULL with a sentence in err. */
struct status_server *status_server_new(struct loop *l, const char *state_dir,
    const struct report_sources *from, char *err, size_t err_size) MUST_CHECK;
/* NULL is fine. */
void status_server_free(struct status_server *c);

#endif /* RELAY_STATUS_STATUS_SERVER_H */
