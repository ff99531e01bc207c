#include "service/front/dialler.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/front/gate.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"
#include "transport/ssh/ssh.h"

#define PAUSE_MIN_MS 500u
/* A call that lasted that long resets the backoff. */
#define REACHED_MS 30000u
/* Time to wait for the last output of a child that has ended. */
#define LAST_WORDS_MS 1000u

#define REASON_MAX 640

/* A device.  Between two calls it has neither child nor connection. */
struct dialled {
	struct dialler *dialler;
	const struct dial_setting *setting; /* borrowed */
	struct addr addr;
	struct peer peer; /* of its connections, for the gate */
	struct entrance entrance;
	struct child *child;
	bool connected;            /* the gate serves the child's stream */
	int pipe;                  /* else our end of that; -1: none */
	struct listener *listener; /* for sshd, where addr has a path */
	char path[96];
	struct loop_timer *retry;
	struct loop_call now_call;
	uint64_t called_ms;
	bool reached; /* a peer bound a service since the last call */
	unsigned failures; /* in a row */
	char reason[REASON_MAX]; /* of a failure, logged last */
};

struct dialler {
	struct loop *loop;               /* borrowed, as the next two */
	const struct settings *settings;
	struct gate *gate;
	char folder[64]; /* of the sockets; "": none */
	struct dialled *all;
	size_t n;
	bool stopping;
};

uint64_t
dialler_pause_ms(unsigned failures, uint64_t max_ms, uint32_t random)
{
	uint64_t ms = PAUSE_MIN_MS;

	while (failures-- > 1 && ms < max_ms)
		ms *= 2;
	if (ms > max_ms)
		ms = max_ms;
	return ms - (uint64_t)((double)random / UINT32_MAX * (double)ms / 2);
}

/* ---- where sshd leads connections to ---- */

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct dialled *c = arg;

	(void)gate_take(&c->entrance, fd, &c->peer);
}

/* Makes a directory that only the daemon's user can enter. */
static int
make_folder(struct dialler *d, char *err, size_t err_size)
{
	static const char *const variables[] = {
		"RUNTIME_DIRECTORY", /* of systemd: may be a list */
		"XDG_RUNTIME_DIR",
	};
	const char *parent = NULL;
	size_t i;

	if (d->folder[0] != '\0')
		return 0;
	for (i = 0; i < 2 && (parent == NULL || *parent != '/' ||
		 strlen(parent) > 32 || strchr(parent, ':') != NULL ||
		 access(parent, W_OK | X_OK) != 0); i++)
		parent = getenv(variables[i]);
	if (parent == NULL || *parent != '/' || strlen(parent) > 32 ||
	    strchr(parent, ':') != NULL || access(parent, W_OK | X_OK) != 0)
		parent = "/tmp";
	snprintf(d->folder, sizeof(d->folder), "%s/tributaryd.XXXXXX", parent);
	if (mkdtemp(d->folder) == NULL) {
		snprintf(err, err_size, "cannot make a folder for the sockets "
		    "of dials in %s: %s", parent, strerror(errno));
		d->folder[0] = '\0';
		return -1;
	}
	return 0;
}

/* Called first from the loop: the daemon has its final user by then. */
static int
listen_for(struct dialled *c, char *err, size_t err_size)
{
	struct dialler *d = c->dialler;
	struct addr a;

	if (c->listener != NULL)
		return 0;
	if (make_folder(d, err, err_size) != 0)
		return -1;
	snprintf(c->path, sizeof(c->path), "%s/%zu", d->folder,
	    (size_t)(c - d->all));
	if (addr_parse(&a, c->path, err, err_size) != 0)
		return -1;
	c->listener = listener_new(c->dialler->loop,
	    &(struct listener_setup){ .addr = &a, .fn = accept_cb, .arg = c },
	    err, err_size);
	return c->listener != NULL ? 0 : -1;
}

/* ---- one call ---- */

static void
call_later(struct dialled *c)
{
	uint32_t random = 0;
	uint64_t ms;

	if (c->dialler->stopping)
		return;
	if (c->reached || loop_now_ms() - c->called_ms >= REACHED_MS)
		c->failures = 0;
	c->failures++;
	/* Without randomness there is no jitter: all dial at the same time. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	ms = dialler_pause_ms(c->failures, c->setting->max_retry_ms, random);
	loop_timer_set(c->retry, ms, 0);
}

/* Logs a failure, but not the same reason twice in a row. */
static void
tell(struct dialled *c, const char *reason)
{
	if (strcmp(c->reason, reason) == 0)
		return;
	snprintf(c->reason, sizeof(c->reason), "%s", reason);
	log_warn("dial %s: %s; will go on trying", c->addr.text, reason);
}

/* Frees the rest of a call. */
static void
hang_up(struct dialled *c)
{
	child_free(c->child);
	c->child = NULL;
	if (c->pipe >= 0)
		close(c->pipe);
	c->pipe = -1;
}

static void
ended_cb(void *arg)
{
	struct dialled *c = arg;
	char reason[REASON_MAX];

	/* A forwarding call is up until its child ends: waits on. */
	if (child_status(c->child) == -1 && c->pipe >= 0) {
		child_when_ended(c->child, UINT_MAX, ended_cb, c);
		return;
	}
	ssh_error_text(&c->addr, child_stderr(c->child),
	    child_status(c->child), reason, sizeof(reason));
	if (c->reached && child_status(c->child) <= 0)
		log_info("dial %s: the connection ended", c->addr.text);
	else if (!c->dialler->stopping)
		tell(c, reason);
	hang_up(c);
	call_later(c);
}

static void
bound_cb(struct entrance *e)
{
	struct dialled *c = (struct dialled *)
	    ((char *)e - offsetof(struct dialled, entrance));

	if (!c->reached)
		log_info("dial %s: connected", c->addr.text);
	c->reached = true;
	c->reason[0] = '\0';
}

/* The connection ended: waits for the child, which tells the reason. */
static void
gone_cb(struct entrance *e)
{
	struct dialled *c = (struct dialled *)
	    ((char *)e - offsetof(struct dialled, entrance));

	if (!c->connected)
		return;
	c->connected = false;
	if (c->child != NULL)
		child_when_ended(c->child, LAST_WORDS_MS, ended_cb, c);
}

static int
ssh_args(struct dialled *c, struct ssh_args *args, char *err, size_t err_size)
{
	const char *command = c->setting->command;

	if (c->addr.path[0] != '\0')
		return ssh_args_listen(args, &c->addr, c->addr.path, c->path,
		    err, err_size);
	return ssh_args_connect(args, &c->addr, NULL, command, err, err_size);
}

static void
call_now(void *arg)
{
	struct dialled *c = arg;
	struct ssh_args args;
	char err[REASON_MAX];
	int fd;

	c->reached = false;
	c->called_ms = loop_now_ms();
	if (c->addr.path[0] != '\0' && listen_for(c, err, sizeof(err)) != 0)
		goto fail;
	if (ssh_args(c, &args, err, sizeof(err)) != 0)
		goto fail;
	c->child = child_new(c->dialler->loop, args.argv, &fd, err,
	    sizeof(err));
	if (c->child == NULL)
		goto fail;
	if (c->addr.path[0] != '\0') {
		c->pipe = fd;
		child_when_ended(c->child, UINT_MAX, ended_cb, c);
		return;
	}
	c->connected = gate_take(&c->entrance, fd, &c->peer);
	if (c->connected)
		return;
	snprintf(err, sizeof(err), "its connection was refused");
	hang_up(c);

fail:
	tell(c, err);
	call_later(c);
}

/* ---- all of them ---- */

static int
prepare(struct dialler *d, size_t i, char *err, size_t err_size)
{
	struct dialled *c = &d->all[i];

	c->dialler = d;
	c->setting = &d->settings->dials[i];
	c->pipe = -1;
	if (addr_parse(&c->addr, c->setting->address, err, err_size) != 0)
		return -1;
	peer_from_ssh(&c->peer, &c->addr);
	c->peer.machine_name = c->setting->machine_name;
	entrance_init(&c->entrance, d->gate, c->setting->port, false);
	c->entrance.dialled = true;
	c->entrance.bound = bound_cb;
	c->entrance.gone = gone_cb;
	if ((c->retry = loop_timer_new(d->loop, call_now, c)) == NULL)
		return FAILURE(err, err_size, "no memory");
	return 0;
}

struct dialler *
dialler_new(struct loop *l, const struct settings *settings, struct gate *gate,
    char *err, size_t err_size)
{
	struct dialler *d;
	size_t i;

	snprintf(err, err_size, "no memory");
	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->loop = l;
	d->settings = settings;
	d->gate = gate;
	if (settings->n_dials > 0 &&
	    (d->all = calloc(settings->n_dials, sizeof(*d->all))) == NULL)
		goto fail;
	for (i = 0; i < settings->n_dials; i++) {
		d->n++;
		if (prepare(d, i, err, err_size) != 0)
			goto fail;
	}
	for (i = 0; i < d->n; i++)
		loop_defer(l, &d->all[i].now_call, call_now, &d->all[i]);
	return d;

fail:
	dialler_free(d);
	return NULL;
}

void
dialler_stop(struct dialler *d)
{
	size_t i;

	d->stopping = true;
	for (i = 0; i < d->n; i++) {
		if (d->all[i].retry != NULL)
			loop_timer_clear(d->all[i].retry);
		listener_free(d->all[i].listener);
		d->all[i].listener = NULL;
		loop_cancel(d->loop, &d->all[i]);
	}
}

void
dialler_resume(struct dialler *d)
{
	struct dialled *c;
	size_t i;

	d->stopping = false;
	for (i = 0; i < d->n; i++) {
		c = &d->all[i];
		/* A call that is up is redialled when it ends. */
		if (c->connected)
			continue;
		/* The services that its connections would lead to are gone. */
		hang_up(c);
		loop_defer(d->loop, &c->now_call, call_now, c);
	}
}

void
dialler_free(struct dialler *d)
{
	size_t i;

	if (d == NULL)
		return;
	dialler_stop(d);
	for (i = 0; i < d->n; i++) {
		hang_up(&d->all[i]);
		loop_timer_free(d->all[i].retry);
	}
	if (d->folder[0] != '\0')
		(void)rmdir(d->folder);
	free(d->all);
	free(d);
}
