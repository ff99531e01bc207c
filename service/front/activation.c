#include "service/front/activation.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "service/front/handover.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/socket/passed_sockets.h"

/* Cuts "-tls" off a name; returns whether it was there. */
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
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
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
take_sockets(struct activation *a, struct passed_sockets *p, char *err,
    size_t err_size)
{
	char shown[128];
	size_t i;
	int fd;

	for (i = 0; i < p->n; i++) {
		log_escape(shown, sizeof(shown), p->names[i],
		    strlen(p->names[i]));
		a->sockets[i].tls = cut_tls(p->names[i]);
		/* A socket's address does not say whether it has TLS. */
		if (find_port(p->names[i], a->sockets[i].tls ? SIZE_MAX : i,
			&a->sockets[i].port) != 0)
			return FAILURE(err, err_size, "the service manager "
			    "passed socket %zu with the name \"%s\": name it "
			    "producer, consumer or relay, with -tls behind it "
			    "for TLS (FileDescriptorName=)", i + 1, shown);
		if ((fd = passed_sockets_take(p, i, err, err_size)) < 0)
			return -1;
		a->sockets[i].fd = fd;
		if (a->sockets[i].tls && is_unix_socket(fd))
			return FAILURE(err, err_size, "the service manager "
			    "passed a UNIX socket with the name \"%s\": TLS is "
			    "for TCP sockets", shown);
	}
	a->n = p->n;
	return 0;
}

int
activation_from_environment(struct activation *a, char *err, size_t err_size)
{
	struct passed_sockets p;

	memset(a, 0, sizeof(*a));
	if (passed_sockets_find(&p, err, err_size) != 0)
		return -1;
	if (take_sockets(a, &p, err, err_size) != 0 ||
	    handover_from_environment(a, err, err_size) != 0) {
		free(a->made);
		a->made = NULL;
		return -1;
	}
	return 0;
}

/* An address without its scheme. */
static const char *
place(const char *address)
{
	static const char *const schemes[] = { "tls://", "unix:" };
	size_t i;

	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(address, schemes[i], strlen(schemes[i])) == 0)
			return address + strlen(schemes[i]);
	return address;
}

static bool
is_at(const struct inherited_socket *s, const char *address)
{
	char bound[ADDR_TEXT_MAX];

	if (s->fd == -1)
		return false;
	if (strcmp(place(s->address), place(address)) == 0)
		return true;
	passed_socket_address(s->fd, bound, sizeof(bound));
	return strcmp(bound, place(address)) == 0;
}

/* Prefers a socket of the same listen_port: two may be at 127.0.0.1:0. */
static const struct inherited_socket *
find_made(const struct activation *a, enum listen_port port,
    const char *address)
{
	const struct inherited_socket *found = NULL;
	size_t i;

	for (i = 0; i < a->n_made; i++) {
		if (!is_at(&a->made[i], address))
			continue;
		if (a->made[i].port == port)
			return &a->made[i];
		if (found == NULL)
			found = &a->made[i];
	}
	return found;
}

size_t
activation_take_made(struct activation *a, enum listen_port port,
    const char *address, int *fds, size_t max)
{
	const struct inherited_socket *first = find_made(a, port, address);
	struct inherited_socket *s;
	size_t i, n = 0;

	/* Takes all sockets of one listener, which follow each other. */
	for (i = 0; first != NULL && i < a->n_made && n < max; i++) {
		s = &a->made[i];
		if (s->fd != -1 && s->port == first->port &&
		    strcmp(s->address, first->address) == 0) {
			fds[n++] = s->fd;
			s->fd = -1;
		}
	}
	return n;
}

void
activation_drop_made(struct activation *a)
{
	struct sockaddr_un un;
	socklen_t len;
	size_t i;

	for (i = 0; i < a->n_made; i++) {
		if (a->made[i].fd == -1)
			continue;
		memset(&un, 0, sizeof(un));
		len = sizeof(un) - 1;
		if (!a->trial && getsockname(a->made[i].fd,
			(struct sockaddr *)&un, &len) == 0 &&
		    un.sun_family == AF_UNIX && un.sun_path[0] != '\0')
			unlink(un.sun_path);
		log_info("no longer listening on %s", a->made[i].address);
		close(a->made[i].fd);
		a->made[i].fd = -1;
	}
}

void
activation_done(struct activation *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->sockets[i].fd != -1)
			close(a->sockets[i].fd);
	for (i = 0; i < a->n_made; i++)
		if (a->made[i].fd != -1)
			close(a->made[i].fd);
	free(a->made);
	a->made = NULL;
	a->n = a->n_made = 0;
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
	size_t i;

	for (i = 0; i < a->n; i++)
		if (passed_socket_is_bound_to(a->sockets[i].fd, sa, len))
			return true;
	return false;
}
