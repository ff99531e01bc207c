#include "service/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "service/activation.h"
#include "service/port/consumer_port.h"
#include "service/port/producer_port.h"
#include "service/port/relay_port.h"
#include "service/session/service.h"
#include "service/session/session.h"
#include "service/session/settings.h"
#include "transport/addr.h"
#include "transport/listener.h"
#include "transport/log.h"
#include "transport/loop.h"
#include "transport/rpc_host.h"
#include "transport/sd_notify.h"

/* What a connection may have queued before its writers are told to wait. */
#define LOW_WATER_BYTES (64u * 1024u)

/* Turns of the loop in which closed connections take their leave. */
#define LAST_TURNS 16

/* A socket that is listened on, and what is offered there. */
struct door {
	struct daemon *daemon;
	struct listener *listener;
	const struct rpc_service *services[2];
	size_t n_services;
};

struct daemon {
	const struct settings *settings; /* borrowed */
	struct loop *loop;
	struct service *service;
	struct rpc_service producer_port;
	struct rpc_service consumer_port;
	struct rpc_service relay_port;
	struct rpc_stats stats;
	struct door doors[SETTINGS_LISTEN_MAX + ACTIVATION_MAX];
	size_t n_doors;
	struct loop_timer *watchdog; /* NULL: nobody asks */
	uint64_t refused;            /* connections over the limit */
	struct log_limit refused_log;
	bool stopping;
	bool unclean; /* a session was left behind */
};

/* ---- connections ---- */

static void
refuse(struct daemon *d, int fd)
{
	uint32_t swallowed;

	close(fd);
	d->refused++;
	if (!log_allowed(&d->refused_log, loop_now_ms(), &swallowed))
		return;
	log_warn("connection refused: %zu are open, which is the limit "
	    "(limits.max_connections); %llu refused so far", d->stats.n_conns,
	    (unsigned long long)d->refused);
}

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct door *door = arg;
	struct daemon *d = door->daemon;
	size_t hard = (size_t)d->settings->limits.max_send_queue_kb * 1024;
	struct rpc_conn *c;

	if (d->stats.n_conns >= d->settings->limits.max_connections) {
		refuse(d, fd);
		return;
	}
	c = rpc_conn_new(d->loop, fd, door->services, door->n_services,
	    &d->stats);
	if (c == NULL) {
		close(fd);
		return;
	}
	rpc_conn_set_limits(c, hard,
	    hard / 2 < LOW_WATER_BYTES ? hard / 2 : LOW_WATER_BYTES);
}

/* ---- sockets ---- */

static bool
accepts_relays(const struct settings *s, const struct listen_setting *l)
{
	size_t i;

	if (l->port == LISTEN_RELAY)
		return true;
	if (l->port != LISTEN_PRODUCER)
		return false;
	if (s->enable_relay_endpoint)
		return true;
	for (i = 0; i < s->n_listen; i++)
		if (s->listen[i].port == LISTEN_RELAY &&
		    strcmp(s->listen[i].address, l->address) == 0)
			return true;
	return false;
}

/* A relay's socket that is a producer's too is opened as the latter. */
static bool
is_opened_as_producer(const struct settings *s, const struct listen_setting *l)
{
	size_t i;

	if (l->port != LISTEN_RELAY)
		return false;
	for (i = 0; i < s->n_listen; i++)
		if (s->listen[i].port == LISTEN_PRODUCER &&
		    strcmp(s->listen[i].address, l->address) == 0)
			return true;
	return false;
}

/* The next door, offering what belongs to the port. */
static struct door *
new_door(struct daemon *d, enum listen_port port, bool relays)
{
	struct door *door = &d->doors[d->n_doors];

	memset(door, 0, sizeof(*door));
	door->daemon = d;
	if (port == LISTEN_CONSUMER) {
		door->services[door->n_services++] = &d->consumer_port;
	} else {
		/* A relay brings its producers through the same socket. */
		door->services[door->n_services++] = &d->producer_port;
		if (relays)
			door->services[door->n_services++] = &d->relay_port;
	}
	return door;
}

static void
log_door(enum listen_port port, bool relays, const char *address)
{
	log_info("listening for %s on %s", listen_port_name(port), address);
	if (relays && port != LISTEN_RELAY)
		log_info("listening for %s on %s",
		    listen_port_name(LISTEN_RELAY), address);
}

/* The address as it was named, with the port that the kernel chose for 0. */
static void
real_address(const struct addr *a, const struct listener *l, char *out,
    size_t out_size)
{
	if (a->kind != ADDR_TCP || strcmp(a->port, "0") != 0)
		snprintf(out, out_size, "%s", a->text);
	else if (strchr(a->host, ':') != NULL)
		snprintf(out, out_size, "[%s]:%d", a->host, listener_port(l));
	else
		snprintf(out, out_size, "%s:%d", a->host, listener_port(l));
}

static bool
is_socket_file(const struct addr *a)
{
	return a->kind == ADDR_UNIX &&
	    ((const struct sockaddr_un *)&a->sa)->sun_path[0] != '\0';
}

static int
set_permissions(const struct settings *s, enum listen_port port,
    struct listener *l, char *err, size_t err_size)
{
	struct socket_permissions p;
	const struct group *g;
	const char *name;

	if (socket_permissions_parse(&p, s->socket_permissions, err,
		err_size) != 0)
		return -1;
	name = port == LISTEN_CONSUMER ? p.consumer_group : p.producer_group;
	if ((g = getgrnam(name)) == NULL) {
		snprintf(err, err_size, "there is no group \"%s\", which "
		    "--set-socket-permissions names", name);
		return -1;
	}
	return listener_set_permissions(l,
	    port == LISTEN_CONSUMER ? p.consumer_mode : p.producer_mode,
	    (long)g->gr_gid, err, err_size);
}

static int
open_door(struct daemon *d, const struct listen_setting *l, char *err,
    size_t err_size)
{
	bool with_permissions, relays = accepts_relays(d->settings, l);
	struct door *door = new_door(d, l->port, relays);
	char text[ADDR_TEXT_MAX + 16];
	struct addr a;
	mode_t old = 0;

	if (addr_parse(&a, l->address, err, err_size) != 0)
		return -1;
	if (a.kind == ADDR_TLS) {
		snprintf(err, err_size, "%s: this build cannot listen with "
		    "TLS yet", a.text);
		return -1;
	}
	with_permissions = d->settings->socket_permissions != NULL &&
	    is_socket_file(&a);
	/* Nobody slips in between bind() and chmod(). */
	if (with_permissions)
		old = umask(0177);
	door->listener = listener_new(d->loop, &a, l->allow_remote, accept_cb,
	    door, err, err_size);
	if (with_permissions)
		umask(old);
	if (door->listener == NULL)
		return -1;
	d->n_doors++;
	if (with_permissions && set_permissions(d->settings, l->port,
		door->listener, err, err_size) != 0)
		return -1;
	real_address(&a, door->listener, text, sizeof(text));
	log_door(l->port, relays, text);
	if (l->port == LISTEN_CONSUMER && a.kind != ADDR_UNIX)
		log_warn("everybody who can connect to %s reads all traces: "
		    "nobody is asked who they are there", text);
	return 0;
}

static int
adopt_door(struct daemon *d, struct activated_socket *s, char *err,
    size_t err_size)
{
	bool relays = s->port == LISTEN_RELAY ||
	    (s->port == LISTEN_PRODUCER && d->settings->enable_relay_endpoint);
	struct door *door = new_door(d, s->port, relays);
	char text[ADDR_TEXT_MAX];

	activation_address(s->fd, text, sizeof(text));
	door->listener = listener_adopt(d->loop, s->fd, accept_cb, door, err,
	    err_size);
	if (door->listener == NULL)
		return -1;
	s->fd = -1;
	d->n_doors++;
	log_door(s->port, relays, text);
	return 0;
}

static bool
is_activated(const struct activation *a, const struct listen_setting *l)
{
	struct addr addr;
	char err[ADDR_TEXT_MAX + 256];

	return addr_parse(&addr, l->address, err, sizeof(err)) == 0 &&
	    activation_is_bound_to(a, &addr.sa, addr.sa_len);
}

static int
open_doors(struct daemon *d, struct activation *a, char *err, size_t err_size)
{
	const struct settings *s = d->settings;
	size_t i;

	for (i = 0; i < s->n_listen; i++)
		if (!is_opened_as_producer(s, &s->listen[i]) &&
		    !is_activated(a, &s->listen[i]) &&
		    open_door(d, &s->listen[i], err, err_size) != 0)
			return -1;
	for (i = 0; i < a->n; i++)
		if (adopt_door(d, &a->sockets[i], err, err_size) != 0)
			return -1;
	return 0;
}

static void
close_doors(struct daemon *d)
{
	while (d->n_doors > 0)
		listener_free(d->doors[--d->n_doors].listener);
}

/* ---- the end ---- */

static void
idle_cb(void *arg)
{
	struct daemon *d = arg;
	const struct session *s;

	TAILQ_FOREACH (s, &d->service->sessions, link)
		d->unclean |= session_is_busy(s);
	loop_stop(d->loop);
}

static void
stop_cb(void *arg)
{
	struct daemon *d = arg;

	if (d->stopping) {
		log_warn("a second signal: leaving at once");
		_exit(1);
	}
	d->stopping = true;
	log_info("stopping");
	(void)sd_notify_send("STOPPING=1");
	close_doors(d);
	service_shutdown(d->service, idle_cb, d);
}

/*
 * Connections and sessions go in that order: consumers take theirs along, what
 * is left are detached ones.  Files were closed before, so that nothing is
 * waited for.
 */
static void
say_goodbye(struct daemon *d)
{
	struct session *s;
	int i;

	rpc_conns_close_all(&d->stats);
	for (i = 0; i < LAST_TURNS; i++)
		loop_run_once(d->loop);
	while ((s = TAILQ_FIRST(&d->service->sessions)) != NULL)
		session_free(s);
	for (i = 0; i < LAST_TURNS; i++)
		loop_run_once(d->loop);
}

int
daemon_run(struct daemon *d)
{
	loop_run(d->loop);
	if (d->unclean) {
		/* A writer thread hangs: nothing of it can be freed. */
		log_error("stopped; files may be incomplete");
		return -1;
	}
	say_goodbye(d);
	log_info("stopped");
	return 0;
}

/* ---- the beginning ---- */

static void
watchdog_cb(void *arg)
{
	(void)sd_notify_send("WATCHDOG=1");
}

void
daemon_tell_ready(struct daemon *d)
{
	(void)sd_notify_send("READY=1");
	notify_fd_from_env("TRACED_NOTIFY_FD");
}

static int
start_watchdog(struct daemon *d)
{
	uint64_t ms = sd_notify_watchdog_usec() / 2000;

	if (ms == 0)
		return 0;
	if ((d->watchdog = loop_timer_new(d->loop, watchdog_cb, d)) == NULL)
		return -1;
	loop_timer_set(d->watchdog, ms, 1);
	return 0;
}

static void
raise_fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == r.rlim_max)
		return;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) != 0)
		log_warn("cannot raise the limit of open files: %s",
		    strerror(errno));
}

/* *fd is -1 when no directory is set. */
static int
open_trace_dir(const char *path, int *fd, char *err, size_t err_size)
{
	int dir;

	*fd = -1;
	if (path == NULL)
		return 0;
	if ((dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		snprintf(err, err_size, "cannot use the trace directory %s: %s",
		    path, strerror(errno));
		return -1;
	}
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) != 0) {
		snprintf(err, err_size,
		    "cannot create files in the trace directory %s: %s", path,
		    strerror(errno));
		close(dir);
		return -1;
	}
	*fd = dir;
	return 0;
}

static int
make_service(struct daemon *d, char *err, size_t err_size)
{
	int dir;

	if (open_trace_dir(d->settings->trace_dir, &dir, err, err_size) != 0)
		return -1;
	d->service = service_new(d->loop, d->settings, dir);
	if (d->service == NULL) {
		if (dir != -1)
			close(dir);
		snprintf(err, err_size, "no memory");
		return -1;
	}
	producer_port_init(&d->producer_port, d->service);
	consumer_port_init(&d->consumer_port, d->service);
	relay_port_init(&d->relay_port, d->service);
	return 0;
}

struct daemon *
daemon_new(const struct settings *settings, struct activation *a, char *err,
    size_t err_size)
{
	struct daemon *d;

	snprintf(err, err_size, "no memory");
	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->settings = settings;
	raise_fd_limit();
	if ((d->loop = loop_new()) == NULL)
		goto fail;
	if (make_service(d, err, err_size) != 0)
		goto fail;
	if (loop_on_signal(d->loop, SIGTERM, stop_cb, d) != 0 ||
	    loop_on_signal(d->loop, SIGINT, stop_cb, d) != 0 ||
	    loop_on_signal(d->loop, SIGHUP, stop_cb, d) != 0)
		goto fail;
	if (start_watchdog(d) != 0)
		goto fail;
	if (open_doors(d, a, err, err_size) != 0)
		goto fail;
	return d;

fail:
	daemon_free(d);
	return NULL;
}

void
daemon_free(struct daemon *d)
{
	if (d == NULL)
		return;
	close_doors(d);
	loop_timer_free(d->watchdog);
	service_free(d->service);
	if (d->loop != NULL)
		loop_free(d->loop);
	free(d);
}
