/*
 * socket_owner: group and mode of a UNIX socket's file, as
 * --set-socket-permissions of Perfetto's programs takes them: "group:mode".
 */
#ifndef TRANSPORT_CONNECT_SOCKET_OWNER_H
#define TRANSPORT_CONNECT_SOCKET_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;
struct listener;

#define SOCKET_OWNER_GROUP_MAX 64

/*
 * Takes "group:mode" from the front of *text, and the colon behind it.  The
 * mode has four octal digits.  False: there is none; *text may have moved.
 */
bool socket_owner_take(const char **text, char group[SOCKET_OWNER_GROUP_MAX],
    unsigned *mode) MUST_CHECK;

/* Whether the address is a UNIX socket that has a file. */
bool socket_owner_has_file(const struct addr *a);

/* 0, or -1 with a sentence: there is no such group, or it is not permitted. */
int socket_owner_set(struct listener *l, const char *group, unsigned mode,
    char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_SOCKET_OWNER_H */
