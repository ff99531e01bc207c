#include "transport/process/sd_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int
sd_notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len;
	size_t n;
	int fd, rc;

	if (path == NULL || *path == '\0')
		return 0;
	n = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof(un.sun_path)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(un.sun_path, path, n);
	if (path[0] == '@')
		un.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if ((fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
		return -1;
	rc = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
		 (struct sockaddr *)&un, len) < 0 ? -1 : 1;
	close(fd);
	return rc;
}

/* A whole decimal number, or -1. */
static long long
env_number(const char *var)
{
	const char *text = getenv(var);
	char *end;
	long long v;

	if (text == NULL || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	v = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' ? v : -1;
}

uint64_t
sd_notify_watchdog_usec(void)
{
	long long usec = env_number("WATCHDOG_USEC");
	long long pid = env_number("WATCHDOG_PID");

	if (usec <= 0 || (pid >= 0 && pid != getpid()))
		return 0;
	return (uint64_t)usec;
}

void
notify_fd_from_env(const char *var)
{
	long long fd = env_number(var);

	unsetenv(var);
	if (fd < 0 || fd > 0x7fffffff)
		return;
	if (write((int)fd, "1", 1) < 0) {
		/* The starter lost interest. */
	}
	close((int)fd);
}
