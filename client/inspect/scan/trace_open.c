#include "client/inspect/scan/trace_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
trace_open(const char *path, uint64_t *size, char *err, size_t err_size)
{
	struct stat st;
	int fd = STDIN_FILENO;

	*size = 0;
	if (strcmp(path, "-") != 0 &&
	    (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		goto fail;
	if (fstat(fd, &st) < 0)
		goto fail;
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		goto fail;
	}
	if (S_ISREG(st.st_mode))
		*size = (uint64_t)st.st_size;
	return fd;

fail:
	snprintf(err, err_size, "%s: %s", path, strerror(errno));
	if (fd > STDIN_FILENO)
		close(fd);
	return -1;
}
