/*
 * sink_fd: kinds of descriptors, and which of them a trace may be written to.
 */
#ifndef SERVICE_SINK_SINK_FD_H
#define SERVICE_SINK_SINK_FD_H

#include <stddef.h>

#include "transport/base/compiler.h"

enum sink_fd {
	SINK_FD_FILE,   /* a regular file: a disk, which may be slow */
	SINK_FD_STREAM, /* a pipe, FIFO or socket: its reader may be slow */
	SINK_FD_DEVICE, /* /dev/null or /dev/full: never waits */
	SINK_FD_OTHER,  /* anything else: refused, a write may do anything */
};

/*
 * Never waits for a file system.  A file whose file system does not tell us the
 * kind (FUSE of another user) is SINK_FD_OTHER: that user could hold up a write
 * for ever.
 */
enum sink_fd sink_fd_kind(int fd);

/* 0, or -1 for SINK_FD_OTHER with a sentence in err. */
int sink_fd_check(int fd, char *err, size_t err_size) MUST_CHECK;

#endif /* SERVICE_SINK_SINK_FD_H */
