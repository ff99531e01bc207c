/*
 * last_collector: a file in a relay's state folder with the address of the
 * collector that it is linked to, of several: what waits for that one is not
 * another's to take, so that a successor asks there first.
 */
#ifndef RELAY_UPLINK_LAST_COLLECTOR_H
#define RELAY_UPLINK_LAST_COLLECTOR_H

#include <stdbool.h>

#include "transport/base/compiler.h"

/* Longest address that is kept, and its NUL. */
#define LAST_COLLECTOR_MAX 512

/* A failure is logged: the successor begins with home then. */
void last_collector_write(int state_dirfd, const char *address);
/* False: none is known. */
bool last_collector_read(int state_dirfd, char out[LAST_COLLECTOR_MAX])
    MUST_CHECK;

#endif /* RELAY_UPLINK_LAST_COLLECTOR_H */
