/*
 * disk_free: room that is left where a folder is.  The question would stop the
 * loop for as long as a server elsewhere does not answer, so it is asked of
 * local file systems only; which kind it is, is asked once, at the start.
 */
#ifndef SERVICE_LIMITS_DISK_FREE_H
#define SERVICE_LIMITS_DISK_FREE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the folder is on a file system that needs no network and no server. */
bool disk_is_local(int fd);
/* Bytes that this user may still write there.  False: unknown. */
bool disk_free_bytes(int fd, uint64_t *bytes);

#endif /* SERVICE_LIMITS_DISK_FREE_H */
