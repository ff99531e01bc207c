#include "relay/daemon/stdio_bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "protos/plain_text.h"
#include "relay/settings/settings.h"
#include "relay/state/state_dir.h"
#include "transport/connect/bridge.h"
#include "transport/loop/loop.h"
#include "transport/process/background.h"

struct session {
	struct loop *loop;
	struct bridge *bridge;
	int status;
};

/* Prints a sentence, which ssh shows at its other end. */
static void
complain(const char *sentence)
{
	plain_printf(stderr, "tributary-relay --stdio: %s\n", sentence);
}

/* ---- the resident relay ---- */

static int
connect_relay(const struct relay_settings *s, int *error)
{
	return state_dir_connect(s->state_dir, STATE_DIR_UPLINK, error);
}

/*
 * Prints why no relay can be reached.  A relay that connects by itself has no
 * socket for this bridge, which the dialling collector has to learn.
 */
static void
complain_of(const struct relay_settings *s, int error)
{
	char text[512];
	int fd, other;

	if (error == EACCES) {
		snprintf(text, sizeof(text), "the relay here is another "
		    "user's (%s): dial as that user", s->state_dir);
	} else if ((fd = state_dir_connect(s->state_dir, STATE_DIR_CONTROL,
	    &other)) >= 0) {
		close(fd);
		snprintf(text, sizeof(text), "the relay that runs here was "
		    "told where its collector is; start it with --dialled, "
		    "without --to, or do not dial it");
	} else {
		snprintf(text, sizeof(text), "%s/" STATE_DIR_UPLINK ": %s",
		    s->state_dir, strerror(error));
	}
	complain(text);
}

/*
 * Starts a relay that a collector dials: the settings' own collector does not
 * count.
 */
static int
start_relay(struct relay_settings *s, stdio_bridge_serve_fn serve)
{
	char err[RELAY_SETTINGS_ERROR_SIZE];
	pid_t pid;
	int fd;

	relay_settings_drop_collectors(s);
	s->dialled = true;
	if (relay_settings_check(s, err, sizeof(err)) != 0) {
		complain(err);
		return -1;
	}
	if ((pid = background_fork(&fd)) < 0)
		return -1;
	if (pid == 0)
		exit(serve(s, true, fd));
	return background_wait(pid, fd, NULL) == 0 ? 0 : -1;
}

/* Another may have started one at the same time: the last word is connect's. */
static int
reach_relay(struct relay_settings *s, stdio_bridge_serve_fn serve)
{
	int fd, other, error, control;

	if ((fd = connect_relay(s, &error)) >= 0)
		return fd;
	control = state_dir_connect(s->state_dir, STATE_DIR_CONTROL, &other);
	if (control >= 0)
		close(control);
	else if (error == ENOENT || error == ECONNREFUSED)
		(void)!start_relay(s, serve);
	if ((fd = connect_relay(s, &error)) < 0)
		complain_of(s, error);
	return fd;
}

/* ---- bytes ---- */

static void
finish(struct session *x, int status)
{
	x->status = status;
	loop_stop(x->loop);
}

static void
abandoned_cb(void *arg)
{
	finish(arg, 0);
}

static void
ended_cb(void *arg, int error)
{
	if (error != 0)
		complain(strerror(error));
	finish(arg, error != 0);
}

static void
signal_cb(void *arg)
{
	finish(arg, 0);
}

static const struct bridge_ops bridge_ops = {
	.abandoned = abandoned_cb,
	.ended = ended_cb,
};

static int
start_bridge(struct session *x, int fd)
{
	if ((x->loop = loop_new()) == NULL ||
	    loop_on_signal(x->loop, SIGTERM, signal_cb, x) != 0 ||
	    loop_on_signal(x->loop, SIGINT, signal_cb, x) != 0 ||
	    loop_on_signal(x->loop, SIGHUP, signal_cb, x) != 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		goto fail;
	x->bridge = bridge_new(x->loop, STDIN_FILENO, STDOUT_FILENO,
	    &bridge_ops, x);
	if (x->bridge == NULL)
		goto fail;
	bridge_attach(x->bridge, fd);
	return 0;

fail:
	close(fd);
	complain("out of memory");
	return -1;
}

static int
carry(int fd)
{
	struct session x = { .status = 1 };
	int flags[2], i;

	/*
	 * The process name by which a service recognises a carrier of another's
	 * bytes.
	 */
	prctl(PR_SET_NAME, "tributary");
	for (i = 0; i < 2; i++) {
		flags[i] = fcntl(i, F_GETFL);
		(void)fcntl(i, F_SETFL, flags[i] | O_NONBLOCK);
	}
	if (start_bridge(&x, fd) == 0)
		loop_run(x.loop);
	bridge_free(x.bridge);
	if (x.loop != NULL)
		loop_free(x.loop);
	/* Other processes may share the descriptors. */
	for (i = 0; i < 2; i++)
		(void)fcntl(i, F_SETFL, flags[i]);
	return x.status;
}

int
stdio_bridge_run(struct relay_settings *s, stdio_bridge_serve_fn serve)
{
	int fd;

	if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO)) {
		complain("the data that it carries is not for people: a "
		    "collector runs it through ssh, without a terminal (its "
		    "setting `dial`)");
		return 1;
	}
	if (fcntl(STDIN_FILENO, F_GETFL) < 0 ||
	    fcntl(STDOUT_FILENO, F_GETFL) < 0) {
		complain("it needs a standard input and output");
		return 1;
	}
	if ((fd = reach_relay(s, serve)) < 0)
		return 1;
	return carry(fd);
}
