#include "service/sink/sink_fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "transport/base/failure.h"

/* Character devices of memory, by number (Documentation/admin-guide/devices). */
#define MEM_MAJOR  1u
#define NULL_MINOR 3u
#define FULL_MINOR 7u

enum sink_fd
sink_fd_kind(int fd)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
	    &x) != 0)
		return SINK_FD_OTHER;
	if (S_ISREG(x.stx_mode))
		return SINK_FD_FILE;
	if (S_ISFIFO(x.stx_mode) || S_ISSOCK(x.stx_mode))
		return SINK_FD_STREAM;
	if (S_ISCHR(x.stx_mode) && x.stx_rdev_major == MEM_MAJOR &&
	    (x.stx_rdev_minor == NULL_MINOR || x.stx_rdev_minor == FULL_MINOR))
		return SINK_FD_DEVICE;
	return SINK_FD_OTHER;
}

int
sink_fd_check(int fd, char *err, size_t err_size)
{
	if (sink_fd_kind(fd) != SINK_FD_OTHER)
		return 0;
	return FAILURE(err, err_size, "a trace cannot be written into that "
	    "descriptor: pass a regular file (not of another user's FUSE), a "
	    "pipe, a FIFO, a socket, or /dev/null");
}
