#include "transport/socket/passed_sockets.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/socket/addr.h"

/* The first descriptor that is passed on. */
#define FIRST_FD 3

/* A whole decimal number, or -1. */
static long
number_from(const char *text)
{
	char *end;
	long n;

	if (text == NULL || *text < '0' || *text > '9')
		return -1;
	n = strtol(text, &end, 10);
	return *end == '\0' ? n : -1;
}

/* Copies the i-th of the names that colons separate; "" when there is none. */
static void
name_at(const char *names, size_t i, char *out, size_t out_size)
{
	size_t len;

	*out = '\0';
	if (names == NULL)
		return;
	while (i-- > 0) {
		if ((names = strchr(names, ':')) == NULL)
			return;
		names++;
	}
	if ((len = strcspn(names, ":")) >= out_size)
		len = out_size - 1;
	memcpy(out, names, len);
	out[len] = '\0';
}

int
passed_sockets_find(struct passed_sockets *p, char *err, size_t err_size)
{
	const char *names = getenv("LISTEN_FDNAMES");
	long pid = number_from(getenv("LISTEN_PID"));
	long n = number_from(getenv("LISTEN_FDS"));
	int rc = 0;

	memset(p, 0, sizeof(*p));
	if (pid == (long)getpid() && n > (long)PASSED_SOCKETS_MAX) {
		snprintf(err, err_size, "the service manager passed %ld "
		    "sockets, more than %u", n, PASSED_SOCKETS_MAX);
		rc = -1;
	} else if (pid == (long)getpid() && n > 0) {
		for (; p->n < (size_t)n; p->n++)
			name_at(names, p->n, p->names[p->n], PASSED_NAME_MAX);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return rc;
}

int
passed_sockets_take(const struct passed_sockets *p, size_t i, char *err,
    size_t err_size)
{
	int fd = FIRST_FD + (int)i;

	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		return fd;
	return FAILURE(err, err_size, "the service manager promised %zu "
	    "sockets, but descriptor %d is not open", p->n, fd);
}

bool
passed_socket_is_bound_to(int fd, const struct sockaddr_storage *sa,
    socklen_t len)
{
	const struct sockaddr_un *want = (const struct sockaddr_un *)sa;
	struct sockaddr_un un;
	socklen_t un_len = sizeof(un);

	if (sa->ss_family != AF_UNIX || len > sizeof(un) || fd == -1)
		return false;
	memset(&un, 0, sizeof(un));
	return getsockname(fd, (struct sockaddr *)&un, &un_len) == 0 &&
	    un.sun_family == AF_UNIX &&
	    memcmp(un.sun_path, want->sun_path, sizeof(un.sun_path)) == 0;
}

void
passed_socket_address(int fd, char *out, size_t out_size)
{
	struct sockaddr_storage sa;
	const struct sockaddr_un *un = (const struct sockaddr_un *)&sa;
	socklen_t len = sizeof(sa);

	memset(&sa, 0, sizeof(sa));
	if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		snprintf(out, out_size, "?");
	else if (sa.ss_family == AF_UNIX && un->sun_path[0] == '\0')
		snprintf(out, out_size, "@%.*s", (int)sizeof(un->sun_path) - 1,
		    un->sun_path + 1);
	else if (sa.ss_family == AF_UNIX)
		snprintf(out, out_size, "%.*s", (int)sizeof(un->sun_path),
		    un->sun_path);
	else
		addr_format(&sa, len, out, out_size);
}
