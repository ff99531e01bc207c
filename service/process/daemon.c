#include "service/process/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/access/trust.h"
#include "service/collector/service.h"
#include "service/front/activation.h"
#include "service/front/certificates.h"
#include "service/front/dialler.h"
#include "service/front/gate.h"
#include "service/front/handover.h"
#include "service/front/listeners.h"
#include "service/front/overload_watch.h"
#include "service/port/consumer_port.h"
#include "service/port/control_port.h"
#include "service/port/link_port.h"
#include "service/port/producer_port.h"
#include "service/port/relay_port.h"
#include "service/process/front_report.h"
#include "service/process/upgrade.h"
#include "service/recordings/recordings.h"
#include "service/session/session.h"
#include "service/session/shutdown.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/process/fd_limit.h"
#include "transport/process/sd_notify.h"
#include "transport/rpc/rpc_host.h"
#include "transport/stream/io_pool.h"

/* Turns of the loop in which closed connections take their leave. */
#define LAST_TURNS 16

#define DAEMON_ERROR_SIZE 1024

enum daemon_state {
	DAEMON_SERVING,
	DAEMON_TRYING,    /* serves, and `trial` is under way */
	DAEMON_UPGRADING, /* sessions end; then `next` is executed */
	DAEMON_STOPPING,
};

struct daemon {
	const struct settings *settings; /* borrowed */
	struct loop *loop;
	struct service *service;
	struct rpc_service producer_port;
	struct rpc_service consumer_port;
	struct rpc_service relay_port;
	struct rpc_service control_port;
	struct rpc_service link_port;
	struct trust *trust;
	struct certificates *certificates; /* NULL: no listener has TLS */
	struct io_pool *io; /* NULL: the loop carries all connections */
	struct gate *gate;
	struct listeners *doors;
	struct dialler *dialler;
	struct overload_watch *overload;
	struct recordings *recordings;
	struct front_report report;
	struct loop_timer *watchdog; /* NULL: not asked for */
	enum daemon_state state;
	bool unclean; /* a session was left behind */
	const struct successor *next; /* borrowed */
	struct upgrade *trial;        /* while TRYING */
};

/* ---- certificates ---- */

/* Ends connections whose certificates the new CRL revokes. */
static void
renewed_cb(void *arg)
{
	struct daemon *d = arg;

	gate_close_revoked(d->gate, certificates_context(d->certificates));
}

static void
reload_cb(void *arg)
{
	struct daemon *d = arg;

	if (d->certificates != NULL)
		certificates_reload(d->certificates);
	if (d->settings->file != NULL)
		recordings_reload(d->recordings);
	if (d->certificates == NULL && d->settings->file == NULL)
		log_info("nothing to reload: there is neither a settings file, "
		    "nor are certificates in use");
}

static bool
is_tls(const struct listen_setting *l)
{
	return strncmp(l->address, "tls://", 6) == 0;
}

/* Certificates are read only where a listener or dial uses them. */
static int
read_certificates(struct daemon *d, const struct activation *a, char *err,
    size_t err_size)
{
	const struct settings *s = d->settings;
	size_t i;

	for (i = 0; i < s->n_listen && !is_tls(&s->listen[i]); i++)
		;
	if (i == s->n_listen && !activation_has_tls(a))
		return 0;
	if (s->tls.dir == NULL && s->tls.certificate == NULL)
		return FAILURE(err, err_size, "the service manager passed a "
		    "socket for TLS, which needs certificates: name their "
		    "directory with --tls-dir, or `tls { dir }` in the "
		    "settings");
	d->certificates = certificates_new(d->loop, &s->tls, renewed_cb, d,
	    err, err_size);
	return d->certificates != NULL ? 0 : -1;
}

/* ---- an upgrade ---- */

static void idle_cb(void *arg);

static void
refuse_upgrade(const char *why)
{
	char text[1200];

	log_error("no upgrade: %s", why);
	snprintf(text, sizeof(text), "STATUS=no upgrade: %s", why);
	(void)sd_notify_send(text);
}

/* A disk hangs: files of new sessions may be on another. */
static void
call_off_upgrade(struct daemon *d)
{
	d->state = DAEMON_SERVING;
	d->unclean = false;
	service_resume(d->service);
	refuse_upgrade("sessions were not done in time; the daemon goes on");
	dialler_resume(d->dialler);
	listeners_wake(d->doors);
	(void)sd_notify_send("READY=1");
}

static void
tried_cb(void *arg, const char *why)
{
	struct daemon *d = arg;
	char text[128];

	if (why != NULL) {
		d->state = DAEMON_SERVING;
		refuse_upgrade(why);
	} else {
		log_info("upgrading: sessions end, sockets stay");
		snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%"
		    PRIu64 "\nSTATUS=upgrading", loop_now_ms() * 1000);
		(void)sd_notify_send(text);
		d->state = DAEMON_UPGRADING;
		listeners_rest(d->doors);
		dialler_stop(d->dialler);
		service_shutdown(d->service, idle_cb, d);
	}
	upgrade_free(d->trial);
	d->trial = NULL;
}

static void
upgrade_cb(void *arg)
{
	struct daemon *d = arg;
	char err[DAEMON_ERROR_SIZE];
	struct handover h = { 0 };
	struct upgrade_answer answer = { .told = tried_cb, .arg = d };

	if (d->state != DAEMON_SERVING) {
		log_info("an upgrade or the end is under way already");
		return;
	}
	if (d->settings->seccomp) {
		refuse_upgrade("system calls are confined (seccomp), so no "
		    "program can be started: let the service manager hold the "
		    "sockets (tributaryd.socket), and restart");
		return;
	}
	if (handover_begin(&h) != 0 || listeners_list(d->doors, &h) != 0)
		refuse_upgrade("no memory");
	else if ((d->trial = upgrade_try(d->loop, d->next, &h, &answer, err,
	    sizeof(err))) == NULL)
		refuse_upgrade(err);
	else
		d->state = DAEMON_TRYING;
	handover_done(&h);
}

/* ---- the end ---- */

static void
idle_cb(void *arg)
{
	struct daemon *d = arg;
	const struct session *s;

	TAILQ_FOREACH (s, &d->service->sessions, link)
		d->unclean |= session_is_unfinished(s);
	if (d->unclean && d->state == DAEMON_UPGRADING)
		call_off_upgrade(d);
	else
		loop_stop(d->loop);
}

static void
stop_cb(void *arg)
{
	struct daemon *d = arg;

	if (d->state == DAEMON_STOPPING) {
		log_warn("a second signal: leaving at once");
		_exit(1);
	}
	d->state = DAEMON_STOPPING;
	upgrade_free(d->trial);
	d->trial = NULL;
	log_info("stopping");
	(void)sd_notify_send("STOPPING=1");
	listeners_close(d->doors);
	dialler_stop(d->dialler);
	service_shutdown(d->service, idle_cb, d);
}

/*
 * Ends connections first: consumers free their sessions with them, and detached
 * ones are left.  Files were closed before, so that no session is waited for.
 */
static void
say_goodbye(struct daemon *d)
{
	struct session *s;
	int i;

	recordings_free(d->recordings);
	d->recordings = NULL;
	gate_close_all(d->gate);
	for (i = 0; i < LAST_TURNS; i++)
		loop_run_once(d->loop);
	while ((s = TAILQ_FIRST(&d->service->sessions)) != NULL)
		session_free(s);
	for (i = 0; i < LAST_TURNS; i++)
		loop_run_once(d->loop);
}

static enum daemon_end
leave(struct daemon *d, struct handover *h)
{
	upgrade_hold_signals();
	if (handover_begin(h) != 0 || listeners_list(d->doors, h) != 0) {
		/*
		 * Without the list the next program would not know what the
		 * sockets are.
		 */
		log_error("no memory for the upgrade: stopped");
		handover_done(h);
		return DAEMON_ENDED;
	}
	listeners_leave(d->doors);
	return DAEMON_UPGRADE;
}

enum daemon_end
daemon_run(struct daemon *d, struct handover *h)
{
	loop_set_paced(d->loop);
	loop_run(d->loop);
	if (d->unclean) {
		/* A writer thread hangs: nothing of it can be freed. */
		log_error("stopped; files may be incomplete");
		return DAEMON_UNCLEAN;
	}
	say_goodbye(d);
	if (d->state == DAEMON_UPGRADING)
		return leave(d, h);
	log_info("stopped");
	return DAEMON_ENDED;
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

static int
watch_signals(struct daemon *d)
{
	if (loop_on_signal(d->loop, SIGTERM, stop_cb, d) != 0 ||
	    loop_on_signal(d->loop, SIGINT, stop_cb, d) != 0)
		return -1;
	if (loop_on_signal(d->loop, SIGHUP, reload_cb, d) != 0 ||
	    loop_on_signal(d->loop, SIGUSR2, upgrade_cb, d) != 0)
		return -1;
	upgrade_let_signals_in();
	return 0;
}

/* *fd is -1 when no directory is set. */
static int
open_trace_dir(const char *path, int *fd, char *err, size_t err_size)
{
	int dir;

	*fd = -1;
	if (path == NULL)
		return 0;
	if ((dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return FAILURE(err, err_size, "cannot use the trace directory "
		    "%s: %s", path, strerror(errno));
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
		return FAILURE(err, err_size, "no memory");
	}
	service_begin_ids(d->service);
	d->service->trust = d->trust;
	producer_port_init(&d->producer_port, d->service);
	consumer_port_init(&d->consumer_port, d->service);
	relay_port_init(&d->relay_port, d->service);
	control_port_init(&d->control_port, d->service);
	link_port_init(&d->link_port, d->service);
	return 0;
}

static int
make_io(struct daemon *d, char *err, size_t err_size)
{
	if (d->settings->io_threads == 0)
		return 0;
	d->io = io_pool_new(d->loop, d->settings->io_threads);
	if (d->io != NULL)
		return 0;
	return FAILURE(err, err_size, "no memory, or no descriptors, for %u "
	    "threads", (unsigned)d->settings->io_threads);
}

static int
make_gate(struct daemon *d, char *err, size_t err_size)
{
	struct gate_setup setup = {
		.loop = d->loop,
		.io = d->io,
		.settings = d->settings,
		.trust = d->trust,
		.ports = {
			[LISTEN_PRODUCER] = &d->producer_port,
			[LISTEN_CONSUMER] = &d->consumer_port,
			[LISTEN_RELAY] = &d->relay_port,
		},
		.control = &d->control_port,
		.link = &d->link_port,
		.heap = &d->service->heap,
		.refusals = &d->service->refusals,
	};

	if ((d->gate = gate_new(&setup)) == NULL)
		return FAILURE(err, err_size, "no memory");
	d->service->connection_memory = gate_memory(d->gate);
	return 0;
}

/* Opens listeners, and dials devices that cannot connect to us. */
static int
open_ways_in(struct daemon *d, struct activation *a, char *err,
    size_t err_size)
{
	struct listeners_setup setup = {
		.loop = d->loop,
		.settings = d->settings,
		.gate = d->gate,
		.certificates = d->certificates,
	};

	d->doors = listeners_new(&setup, a, err, err_size);
	if (d->doors == NULL)
		return -1;
	d->dialler = dialler_new(d->loop, d->settings, d->gate, err, err_size);
	return d->dialler != NULL ? 0 : -1;
}

int
daemon_start(struct daemon *d, char *err, size_t err_size)
{
	if (d->io != NULL && io_pool_start(d->io) != 0)
		return FAILURE(err, err_size, "the system has no room for %u "
		    "threads", (unsigned)d->settings->io_threads);
	if (d->io != NULL)
		log_info("%u threads carry TCP and TLS connections",
		    (unsigned)d->settings->io_threads);
	recordings_begin(d->recordings);
	return 0;
}

struct daemon *
daemon_new(const struct settings *settings, struct activation *a,
    const struct successor *next, char *err, size_t err_size)
{
	struct daemon *d;

	snprintf(err, err_size, "no memory");
	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->settings = settings;
	d->next = next;
	fd_limit_raise();
	if ((d->loop = loop_new()) == NULL)
		goto fail;
	if ((d->trust = trust_new(settings, err, err_size)) == NULL)
		goto fail;
	if (make_service(d, err, err_size) != 0 ||
	    make_io(d, err, err_size) != 0 ||
	    (d->recordings = recordings_new(d->service, err, err_size)) ==
	    NULL ||
	    make_gate(d, err, err_size) != 0 ||
	    read_certificates(d, a, err, err_size) != 0)
		goto fail;
	front_report_init(&d->report, d->service, d->gate, d->certificates);
	if (watch_signals(d) != 0 || start_watchdog(d) != 0) {
		snprintf(err, err_size, "no memory");
		goto fail;
	}
	if (open_ways_in(d, a, err, err_size) != 0)
		goto fail;
	d->overload = overload_watch_new(d->loop, d->io,
	    &d->service->overload, d->doors, settings->overload_lag_ms);
	if (d->overload == NULL) {
		snprintf(err, err_size, "no memory");
		goto fail;
	}
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
	upgrade_free(d->trial);
	overload_watch_free(d->overload);
	recordings_free(d->recordings);
	dialler_free(d->dialler);
	listeners_free(d->doors);
	certificates_free(d->certificates);
	if (d->service != NULL)
		d->service->connection_memory = NULL; /* the gate's */
	/* Streams count with the gate until their threads are gone. */
	io_pool_free(d->io);
	gate_free(d->gate);
	loop_timer_free(d->watchdog);
	service_free(d->service);
	trust_free(d->trust);
	if (d->loop != NULL)
		loop_free(d->loop);
	free(d);
}
