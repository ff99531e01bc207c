#include "relay/uplink/last_collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/log.h"

#define NAME "collector"
#define NEXT "collector.next"

void
last_collector_write(int state_dirfd, const char *address)
{
	size_t len = strlen(address);
	int fd;

	fd = openat(state_dirfd, NEXT, O_WRONLY | O_CREAT | O_TRUNC |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		goto fail;
	if (write(fd, address, len) != (ssize_t)len) {
		close(fd);
		goto fail;
	}
	close(fd);
	if (renameat(state_dirfd, NEXT, state_dirfd, NAME) == 0)
		return;
fail:
	log_warn("the state folder does not take a note of the collector: %s",
	    strerror(errno));
}

bool
last_collector_read(int state_dirfd, char out[LAST_COLLECTOR_MAX])
{
	ssize_t n;
	int fd;

	fd = openat(state_dirfd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
	    O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, out, LAST_COLLECTOR_MAX - 1);
	close(fd);
	if (n <= 0)
		return false;
	out[n] = '\0';
	return true;
}
