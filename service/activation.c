#include "service/activation.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/addr.h"
#include "transport/log.h"

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

/* Takes "-tls" off a name; whether it was there. */
static bool
cut_tls(char *name)
{
	static const char suffix[] = "-tls";
	size_t len = strlen(name), n = sizeof(suffix) - 1;

	if (len < n || strcmp(name + len - n, suffix) != 0)
		return false;
	name[len - n] = '\0';
	return true;
}

static bool
is_unix_socket(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	return getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
	    sa.ss_family == AF_UNIX;
}

static int
find_port(const char *name, size_t position, enum listen_port *out)
{
	if (strcmp(name, "producer") == 0)
		*out = LISTEN_PRODUCER;
	else if (strcmp(name, "consumer") == 0)
		*out = LISTEN_CONSUMER;
	else if (strcmp(name, "relay") == 0)
		*out = LISTEN_RELAY;
	else if (position == 0)
		*out = LISTEN_PRODUCER;
	else if (position == 1)
		*out = LISTEN_CONSUMER;
	else
		return -1;
	return 0;
}

static int
take_sockets(struct activation *a, size_t n, const char *names, char *err,
    size_t err_size)
{
	char name[64], shown[128];
	size_t i;

	for (i = 0; i < n; i++) {
		name_at(names, i, name, sizeof(name));
		log_escape(shown, sizeof(shown), name, strlen(name));
		a->sockets[i].tls = cut_tls(name);
		/* Where a socket stands says nothing about TLS. */
		if (find_port(name, a->sockets[i].tls ? SIZE_MAX : i,
			&a->sockets[i].port) != 0) {
			snprintf(err, err_size, "the service manager passed "
			    "socket %zu with the name \"%s\": name it "
			    "producer, consumer or relay, with -tls behind it "
			    "for TLS (FileDescriptorName=)", i + 1, shown);
			return -1;
		}
		a->sockets[i].fd = FIRST_FD + (int)i;
		if (fcntl(a->sockets[i].fd, F_SETFD, FD_CLOEXEC) != 0) {
			snprintf(err, err_size, "the service manager promised "
			    "%zu sockets, but descriptor %d is not open", n,
			    a->sockets[i].fd);
			return -1;
		}
		if (a->sockets[i].tls && is_unix_socket(a->sockets[i].fd)) {
			snprintf(err, err_size, "the service manager passed a "
			    "UNIX socket with the name \"%s\": TLS is for TCP "
			    "sockets", shown);
			return -1;
		}
	}
	a->n = n;
	return 0;
}

int
activation_from_environment(struct activation *a, char *err, size_t err_size)
{
	const char *names = getenv("LISTEN_FDNAMES");
	long pid = number_from(getenv("LISTEN_PID"));
	long n = number_from(getenv("LISTEN_FDS"));
	int rc = 0;

	memset(a, 0, sizeof(*a));
	if (pid == (long)getpid() && n > (long)ACTIVATION_MAX) {
		snprintf(err, err_size, "the service manager passed %ld "
		    "sockets, more than %u", n, ACTIVATION_MAX);
		rc = -1;
	} else if (pid == (long)getpid() && n > 0) {
		rc = take_sockets(a, (size_t)n, names, err, err_size);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return rc;
}

void
activation_done(struct activation *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->sockets[i].fd != -1)
			close(a->sockets[i].fd);
	a->n = 0;
}

bool
activation_has(const struct activation *a, enum listen_port port)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->sockets[i].port == port)
			return true;
	return false;
}

bool
activation_has_tls(const struct activation *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->sockets[i].tls)
			return true;
	return false;
}

bool
activation_is_bound_to(const struct activation *a,
    const struct sockaddr_storage *sa, socklen_t len)
{
	const struct sockaddr_un *want = (const struct sockaddr_un *)sa;
	struct sockaddr_un un;
	socklen_t un_len;
	size_t i;

	if (sa->ss_family != AF_UNIX || len > sizeof(un))
		return false;
	for (i = 0; i < a->n; i++) {
		memset(&un, 0, sizeof(un));
		un_len = sizeof(un);
		if (a->sockets[i].fd != -1 &&
		    getsockname(a->sockets[i].fd, (struct sockaddr *)&un,
			&un_len) == 0 &&
		    un.sun_family == AF_UNIX &&
		    memcmp(un.sun_path, want->sun_path,
			sizeof(un.sun_path)) == 0)
			return true;
	}
	return false;
}

void
activation_address(int fd, char *out, size_t out_size)
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
