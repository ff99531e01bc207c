#include "transport/connect/dial_ssh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/socket/peer.h"
#include "transport/ssh/ssh.h"

/* Interval and limit of polling whether ssh listens for us already. */
#define DIAL_SSH_POLL_MS 20u
#define DIAL_SSH_MS      60000u
/* ssh binds while we tidy up: once more, then the directory stays. */
#define DIAL_SSH_TIDY 2

struct dial_ssh {
	struct loop *loop;
	dial_fn fn;
	void *arg;
	struct addr addr;
	struct child *child; /* NULL: given away */
	int fd;              /* a command's stream; -1: none */
	struct loop_timer *poll;
	struct loop_call command_call;
	char dir[80];        /* of our socket; "": none */
	struct sockaddr_un local;
	char detail[DIAL_TEXT_MAX];
};

static void
remove_dir(struct dial_ssh *d)
{
	int i;

	for (i = 0; i < DIAL_SSH_TIDY && d->dir[0] != '\0'; i++) {
		unlink(d->local.sun_path);
		if (rmdir(d->dir) == 0)
			break;
	}
	d->dir[0] = '\0';
}

/* Where only we can enter. */
static int
make_dir(struct dial_ssh *d, char *err, size_t err_size)
{
	static const char name[] = "/tributary-ssh-XXXXXX";
	const char *base = getenv("XDG_RUNTIME_DIR");

	if (base == NULL || !ssh_path_is_plain(base) ||
	    strlen(base) + sizeof(name) > sizeof(d->dir) ||
	    access(base, W_OK) != 0)
		base = "/tmp";
	snprintf(d->dir, sizeof(d->dir), "%s%s", base, name);
	if (mkdtemp(d->dir) == NULL) {
		snprintf(err, err_size, "cannot make a directory for ssh's "
		    "socket, %s: %s", d->dir, strerror(errno));
		d->dir[0] = '\0';
		return -1;
	}
	d->local.sun_family = AF_UNIX;
	snprintf(d->local.sun_path, sizeof(d->local.sun_path), "%s/s", d->dir);
	return 0;
}

static void
reached(struct dial_ssh *d, int fd)
{
	struct peer peer;
	struct dial_result r = { .fd = fd, .child = d->child, .peer = &peer };

	loop_timer_clear(d->poll);
	child_when_ended(d->child, 0, NULL, NULL);
	remove_dir(d);
	peer_from_ssh(&peer, &d->addr);
	d->child = NULL;
	d->fn(&r, 0, d->arg);
}

static void
failed(struct dial_ssh *d, int error)
{
	loop_timer_clear(d->poll);
	child_when_ended(d->child, 0, NULL, NULL);
	remove_dir(d);
	d->fn(NULL, error, d->arg);
}

/* Before it listened for us, or too much time went by. */
static void
ended_cb(void *arg)
{
	struct dial_ssh *d = arg;

	if (child_status(d->child) == -1 && *child_stderr(d->child) == '\0')
		snprintf(d->detail, sizeof(d->detail), "ssh to %s did not get "
		    "through in %u seconds", d->addr.host, DIAL_SSH_MS / 1000);
	else
		ssh_error_text(&d->addr, child_stderr(d->child),
		    child_status(d->child), d->detail, sizeof(d->detail));
	failed(d, child_status(d->child) == -1 ? ETIMEDOUT : ECONNABORTED);
}

static void
poll_cb(void *arg)
{
	struct dial_ssh *d = arg;
	int fd;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		failed(d, errno);
		return;
	}
	if (connect(fd, (const struct sockaddr *)&d->local,
		sizeof(d->local)) == 0)
		reached(d, fd);
	else
		close(fd);
}

static void
command_cb(void *arg)
{
	struct dial_ssh *d = arg;
	int fd = d->fd;

	d->fd = -1;
	reached(d, fd);
}

static int
start(struct dial_ssh *d, const struct dial_options *o, char *err,
    size_t err_size)
{
	struct ssh_args args;
	char why[256];
	int fd;

	if (d->addr.path[0] == '\0') {
		if (ssh_args_connect(&args, &d->addr, o->service,
			o->ssh_command, err, err_size) != 0)
			return -1;
	} else if (make_dir(d, err, err_size) != 0 ||
	    ssh_args_forward(&args, &d->addr, d->local.sun_path, err,
		err_size) != 0) {
		return -1;
	}
	d->child = child_new(d->loop, args.argv, &fd, why, sizeof(why));
	if (d->child == NULL)
		return FAILURE(err, err_size, "%s: %s on this machine: install "
		    "OpenSSH's client, or name another program with "
		    "$TRIBUTARY_SSH", d->addr.text, why);
	if (d->addr.path[0] == '\0') {
		d->fd = fd;
		loop_defer(d->loop, &d->command_call, command_cb, d);
		return 0;
	}
	close(fd); /* it carries nothing */
	child_when_ended(d->child, DIAL_SSH_MS, ended_cb, d);
	loop_timer_set(d->poll, DIAL_SSH_POLL_MS, 1);
	return 0;
}

struct dial_ssh *
dial_ssh_new(struct loop *l, const struct dial_request *request, char *err,
    size_t err_size)
{
	struct dial_ssh *d;

	if ((d = calloc(1, sizeof(*d))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	d->loop = l;
	d->fn = request->fn;
	d->arg = request->arg;
	d->addr = *request->addr;
	d->fd = -1;
	if ((d->poll = loop_timer_new(l, poll_cb, d)) == NULL) {
		snprintf(err, err_size, "out of memory");
		goto fail;
	}
	if (start(d, request->how, err, err_size) != 0)
		goto fail;
	return d;

fail:
	dial_ssh_free(d);
	return NULL;
}

const char *
dial_ssh_detail(const struct dial_ssh *d)
{
	return d->detail;
}

void
dial_ssh_free(struct dial_ssh *d)
{
	if (d == NULL)
		return;
	loop_cancel(d->loop, d);
	loop_timer_free(d->poll);
	child_free(d->child);
	if (d->fd >= 0)
		close(d->fd);
	remove_dir(d);
	free(d);
}
