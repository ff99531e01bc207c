#include "relay/daemon/daemon.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "relay/daemon/listeners.h"
#include "relay/outbox/outbox.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/state/private_socket.h"
#include "relay/state/state_dir.h"
#include "relay/status/report.h"
#include "relay/status/status_server.h"
#include "relay/uplink/uplink.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/process/fd_limit.h"
#include "transport/process/sd_notify.h"
#include "transport/process/startup_pages.h"
#include "transport/socket/addr.h"
#include "transport/socket/passed_sockets.h"

/* Time for which the relay, at its end, waits for acknowledgements. */
#define LINGER_MS 3000u
/* Time in which producers notice that their connection has ended. */
#define LET_GO_MS 200u
/* Turns of the loop in which closed connections take their leave. */
#define LAST_TURNS 16
/* Number of looks for a collector in each dialled_idle_ms. */
#define IDLE_LOOKS 4

struct relay_daemon {
	const struct relay_settings *settings; /* borrowed */
	int state_dirfd;
	int lock;
	struct loop *loop;
	struct outbox *outbox;
	struct addr *to; /* settings->n_to; NULL: none */
	struct dial_options how;
	struct uplink *uplink;
	struct producers *producers;
	struct relay_listeners *doors;
	struct status_server *control;
	struct private_socket *dialled;  /* NULL: we connect */
	struct loop_timer *watchdog; /* NULL: systemd has no watchdog for us */
	struct loop_timer *idle;     /* NULL: the daemon stays when idle */
	struct loop_timer *let_go;   /* at the end: producers have noticed */
	bool stopping;
	int turns_left;
	struct loop_call leave_call;
};

/* ---- the end ---- */

static void
done_cb(void *arg)
{
	struct relay_daemon *d = arg;

	loop_stop(d->loop);
}

/* Producers have taken their leave before the link does. */
static void
leave_cb(void *arg)
{
	struct relay_daemon *d = arg;

	if (d->turns_left-- > 0)
		loop_defer(d->loop, &d->leave_call, leave_cb, d);
	else
		uplink_stop(d->uplink, LINGER_MS, done_cb, d);
}

/*
 * Goes on when producers have noticed: chunks written until then go up as well.
 */
static void
let_go_cb(void *arg)
{
	struct relay_daemon *d = arg;

	producers_let_go(d->producers);
	d->turns_left = LAST_TURNS;
	loop_defer(d->loop, &d->leave_call, leave_cb, d);
}

static void
stop(struct relay_daemon *d)
{
	d->stopping = true;
	(void)sd_notify_send("STOPPING=1");
	relay_listeners_close(d->doors);
	producers_hold(d->producers);
	relay_listeners_send_away(d->doors);
	loop_timer_set(d->let_go, producers_count(d->producers) > 0 ?
	    LET_GO_MS : 0, 0);
}

static void
stop_cb(void *arg)
{
	struct relay_daemon *d = arg;

	if (d->stopping) {
		log_warn("a second signal: leaving at once");
		_exit(1);
	}
	log_info("stopping");
	stop(d);
}

static void
hup_cb(void *arg)
{
	struct relay_daemon *d = arg;

	log_info("SIGHUP: trying the collector now; certificates are read "
	    "with each attempt, settings when the relay is started");
	uplink_try_now(d->uplink);
}

/* ---- without a collector ---- */

static bool
is_idle(const struct relay_daemon *d)
{
	struct outbox_stats stats;
	struct uplink_view view;

	uplink_view(d->uplink, &view);
	outbox_stats(d->outbox, &stats);
	return view.state == UPLINK_WAITING && stats.memory_bytes == 0 &&
	    stats.spool_bytes == 0 &&
	    loop_now_ms() - view.since_ms >= d->settings->dialled_idle_ms;
}

static void
idle_cb(void *arg)
{
	struct relay_daemon *d = arg;

	if (d->stopping || !is_idle(d))
		return;
	log_info("no collector dialled for %llu ms, and nothing waits for one",
	    (unsigned long long)d->settings->dialled_idle_ms);
	loop_timer_clear(d->idle);
	stop(d);
}

static void
dialled_cb(void *arg, int fd)
{
	struct relay_daemon *d = arg;

	if (d->stopping)
		close(fd);
	else
		uplink_take(d->uplink, fd);
}

/* ---- the beginning ---- */

static void
ready_cb(void *arg)
{
	struct relay_daemon *d = arg;

	uplink_outbox_ready(d->uplink);
}

static void
overflow_cb(void *arg)
{
	struct relay_daemon *d = arg;

	uplink_outbox_overflow(d->uplink);
}

static const struct outbox_ops outbox_ops = {
	.ready = ready_cb,
	.overflow = overflow_cb,
};

static int
open_state(struct relay_daemon *d, char *err, size_t err_size)
{
	const struct relay_settings *s = d->settings;
	char why[300];
	struct outbox_setup setup = {
		.loop = d->loop,
		.memory_bytes = (size_t)s->memory_bytes,
		.spool_dir = s->spool_dir,
		.spool_bytes = s->spool_bytes,
		.fsync = s->fsync,
		.drop = s->drop,
		.ops = &outbox_ops,
		.arg = d,
	};

	d->state_dirfd = state_dir_open(s->state_dir, err, err_size);
	if (d->state_dirfd < 0)
		return -1;
	d->lock = state_dir_lock(d->state_dirfd, s->state_dir, err, err_size);
	if (d->lock < 0)
		return -1;
	setup.state_dirfd = d->state_dirfd;
	d->outbox = outbox_open(&setup, why, sizeof(why));
	if (d->outbox != NULL)
		return 0;
	return FAILURE(err, err_size, "%s (the state folder is %s)", why,
	    s->state_dir);
}

static int
make_uplink(struct relay_daemon *d, char *err, size_t err_size)
{
	const struct relay_settings *s = d->settings;
	struct uplink_setup setup = {
		.loop = d->loop,
		.settings = s,
		.n_to = s->n_to,
		.how = &d->how,
		.state_dirfd = d->state_dirfd,
		.outbox = d->outbox,
	};

	size_t i;

	relay_settings_dial(s, &d->how);
	if (s->n_to > 0 && (d->to = calloc(s->n_to, sizeof(*d->to))) == NULL)
		return FAILURE(err, err_size, "no memory");
	for (i = 0; i < s->n_to; i++)
		if (addr_parse(&d->to[i], s->to[i], err, err_size) != 0)
			return -1;
	setup.to = d->to;
	d->uplink = uplink_new(&setup, err, err_size);
	return d->uplink != NULL ? 0 : -1;
}

static uint64_t
channel_place_cb(void *arg, uint32_t channel)
{
	struct relay_daemon *d = arg;

	return outbox_channel_place(d->outbox, channel);
}

static bool
has_arrived_cb(void *arg, uint32_t channel, uint64_t place)
{
	struct relay_daemon *d = arg;

	return outbox_has_arrived(d->outbox, channel, place);
}

static uint32_t
new_channel_cb(void *arg)
{
	struct relay_daemon *d = arg;

	return outbox_new_channel(d->outbox);
}

static int
make_producers(struct relay_daemon *d, char *err, size_t err_size)
{
	struct producers_setup setup = {
		.loop = d->loop,
		.settings = d->settings,
		.state_dirfd = d->state_dirfd,
		.upward = uplink_upward(d->uplink),
		.new_channel = new_channel_cb,
		.channel_place = channel_place_cb,
		.has_arrived = has_arrived_cb,
		.channel_arg = d,
	};

	d->producers = producers_new(&setup, err, err_size);
	return d->producers != NULL ? 0 : -1;
}

static int
open_sockets(struct relay_daemon *d, char *err, size_t err_size)
{
	const struct relay_settings *s = d->settings;
	struct report_sources from = {
		.loop = d->loop,
		.settings = s,
		.uplink = d->uplink,
		.outbox = d->outbox,
		.producers = d->producers,
		.started_ms = loop_now_ms(),
	};
	struct passed_sockets passed;

	if (passed_sockets_find(&passed, err, err_size) != 0)
		return -1;
	d->doors = relay_listeners_new(d->loop, s, &passed, d->producers, err,
	    err_size);
	if (d->doors == NULL)
		return -1;
	d->control = status_server_new(d->loop, s->state_dir, &from, err,
	    err_size);
	if (d->control == NULL)
		return -1;
	if (!s->dialled)
		return 0;
	d->dialled = private_socket_new(&(struct private_socket_setup){
	    .loop = d->loop, .state_dir = s->state_dir,
	    .name = STATE_DIR_UPLINK, .fn = dialled_cb, .arg = d }, err,
	    err_size);
	return d->dialled != NULL ? 0 : -1;
}

static void
watchdog_cb(void *arg)
{
	(void)sd_notify_send("WATCHDOG=1");
}

static int
start_timers(struct relay_daemon *d, bool ends_idle)
{
	uint64_t watchdog_ms = sd_notify_watchdog_usec() / 2000;

	if ((d->let_go = loop_timer_new(d->loop, let_go_cb, d)) == NULL)
		return -1;
	if (watchdog_ms != 0) {
		d->watchdog = loop_timer_new(d->loop, watchdog_cb, d);
		if (d->watchdog == NULL)
			return -1;
		loop_timer_set(d->watchdog, watchdog_ms, 1);
	}
	if (!ends_idle)
		return 0;
	if ((d->idle = loop_timer_new(d->loop, idle_cb, d)) == NULL)
		return -1;
	loop_timer_set(d->idle, d->settings->dialled_idle_ms / IDLE_LOOKS + 1,
	    1);
	return 0;
}

static int
watch_signals(struct relay_daemon *d)
{
	if (loop_on_signal(d->loop, SIGTERM, stop_cb, d) != 0 ||
	    loop_on_signal(d->loop, SIGINT, stop_cb, d) != 0)
		return -1;
	return loop_on_signal(d->loop, SIGHUP, hup_cb, d);
}

struct relay_daemon *
relay_daemon_new(const struct relay_settings *settings, bool ends_idle,
    char *err, size_t err_size)
{
	struct relay_daemon *d;

	snprintf(err, err_size, "no memory");
	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->settings = settings;
	d->state_dirfd = -1;
	d->lock = -1;
	fd_limit_raise();
	if ((d->loop = loop_new()) == NULL || watch_signals(d) != 0 ||
	    start_timers(d, ends_idle) != 0)
		goto fail;
	if (open_state(d, err, err_size) != 0 ||
	    make_uplink(d, err, err_size) != 0 ||
	    make_producers(d, err, err_size) != 0 ||
	    open_sockets(d, err, err_size) != 0)
		goto fail;
	uplink_start(d->uplink, d->producers);
	return d;

fail:
	relay_daemon_free(d);
	return NULL;
}

void
relay_daemon_tell_ready(void)
{
	(void)sd_notify_send("READY=1");
	notify_fd_from_env("TRACED_RELAY_NOTIFY_FD");
}

void
relay_daemon_run(struct relay_daemon *d)
{
	startup_pages_drop();
	loop_set_paced(d->loop);
	loop_run(d->loop);
	log_info("stopped");
}

/* Producers that are connected still (start-up failed) end before theirs. */
static void
send_away(struct relay_daemon *d)
{
	int i;

	if (d->doors == NULL)
		return;
	relay_listeners_close(d->doors);
	relay_listeners_send_away(d->doors);
	for (i = 0; i < LAST_TURNS; i++)
		loop_run_once(d->loop);
}

void
relay_daemon_free(struct relay_daemon *d)
{
	if (d == NULL)
		return;
	private_socket_free(d->dialled);
	status_server_free(d->control);
	send_away(d);
	relay_listeners_free(d->doors);
	producers_free(d->producers);
	uplink_free(d->uplink);
	free(d->to);
	if (d->outbox != NULL)
		outbox_close(d->outbox);
	loop_timer_free(d->watchdog);
	loop_timer_free(d->idle);
	loop_timer_free(d->let_go);
	if (d->loop != NULL)
		loop_free(d->loop);
	if (d->lock >= 0)
		close(d->lock);
	if (d->state_dirfd >= 0)
		close(d->state_dirfd);
	free(d);
}
