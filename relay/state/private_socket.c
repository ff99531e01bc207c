#include "relay/state/private_socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "relay/state/state_dir.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"

struct private_socket {
	struct listener *listener;
	private_socket_fn fn;
	void *arg;
	struct log_limit limit;
};

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct private_socket *o = arg;
	struct peer p;

	peer_from_socket(&p, fd);
	if (p.auth == PEER_UNIX && (p.uid == 0 || p.uid == geteuid())) {
		o->fn(o->arg, fd);
		return;
	}
	log_limited(&o->limit, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s connected to a socket of the state folder: refused", p.text);
	close(fd);
}

struct private_socket *
private_socket_new(const struct private_socket_setup *setup, char *err,
    size_t err_size)
{
	char path[STATE_DIR_PATH_MAX];
	struct private_socket *o;
	struct addr a;
	mode_t old;

	if (state_dir_path(path, setup->state_dir, setup->name, err,
	    err_size) != 0 ||
	    addr_parse(&a, path, err, err_size) != 0)
		return NULL;
	if ((o = calloc(1, sizeof(*o))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	o->fn = setup->fn;
	o->arg = setup->arg;
	old = umask(0177);
	o->listener = listener_new(setup->loop,
	    &(struct listener_setup){ .addr = &a, .fn = accept_cb, .arg = o },
	    err, err_size);
	umask(old);
	if (o->listener == NULL) {
		free(o);
		return NULL;
	}
	return o;
}

void
private_socket_free(struct private_socket *o)
{
	if (o == NULL)
		return;
	listener_free(o->listener);
	free(o);
}
