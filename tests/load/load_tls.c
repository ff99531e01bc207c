#include "tests/load/load_tls.h"

#include <fcntl.h>
#include <poll.h>

#include "tests/load/load_conn.h"

static struct tls_context *client_context;

struct tls_context *
load_tls_context(const char *dir, enum tls_side side)
{
	struct tls_options options = { .side = side, .dir = dir };
	struct tls_context *c;
	char err[TLS_ERROR_SIZE];

	if ((c = tls_context_new(&options, err, sizeof(err))) == NULL)
		load_die("%s", err);
	return c;
}

void
load_tls_use(struct tls_context *clients)
{
	client_context = clients;
}

struct tls_conn *
load_tls_new(int fd, const char *host)
{
	struct tls_conn *t;

	if (client_context == NULL)
		load_die("TLS without certificates: give a --tls-dir");
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
		load_die("cannot make a socket non-blocking");
	if ((t = tls_conn_new(client_context, fd, host, host)) == NULL)
		load_die("no memory");
	return t;
}

void
load_tls_wait(int fd, const struct tls_conn *t)
{
	struct pollfd pfd = { fd, tls_conn_wants_write(t) ? POLLOUT : POLLIN,
		0 };

	(void)poll(&pfd, 1, -1);
}

struct tls_conn *
load_tls_open(int fd, const char *host)
{
	struct tls_conn *t = load_tls_new(fd, host);
	int rc;

	while ((rc = tls_conn_handshake(t)) == 0)
		load_tls_wait(fd, t);
	if (rc < 0)
		load_die("%s", tls_conn_error(t));
	return t;
}
