#include "relay/daemon/listeners.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/connect/socket_owner.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/addr.h"
#include "transport/socket/passed_sockets.h"

/* Addresses that a name may stand for. */
#define RESOLVED_MAX 16

/* Period in which open connections are looked at for time-outs. */
#define SWEEP_MS 10000u

static const struct rpc_timeouts timeouts = {
	.bind_ms = 30000,
	.stalled_ms = 60000,
};

struct relay_listeners {
	struct loop *loop;                       /* borrowed, as the next two */
	const struct relay_settings *settings;
	const struct rpc_service *services[1];
	const struct rpc_guard *guard;
	struct rpc_stats stats;
	struct listener *all[RELAY_SOCKETS_MAX + PASSED_SOCKETS_MAX];
	size_t n;
	int passed[PASSED_SOCKETS_MAX]; /* for comparing, the listeners' */
	size_t n_passed;
	struct loop_timer *sweep;
	bool sweeping;
};

/* ---- connections ---- */

static void
sweep_cb(void *arg)
{
	struct relay_listeners *d = arg;

	rpc_conns_sweep(&d->stats, &timeouts, loop_now_ms());
	d->sweeping = d->stats.n_conns > 0;
	if (d->sweeping)
		loop_timer_set(d->sweep, SWEEP_MS, 0);
}

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct relay_listeners *d = arg;
	const struct rpc_conn_setup setup = {
		.services = d->services,
		.n_services = 1,
		.stats = &d->stats,
		.guard = d->guard,
	};

	if (rpc_conn_new(d->loop, fd, &setup) == NULL) {
		close(fd);
		return;
	}
	if (d->sweeping)
		return;
	d->sweeping = true;
	loop_timer_set(d->sweep, SWEEP_MS, 0);
}

/* ---- opening ---- */

/* Whether only this machine reaches it. */
static int
check_reach(const struct addr *a, char *err, size_t err_size)
{
	struct sockaddr_storage sa[RESOLVED_MAX];
	socklen_t len[RESOLVED_MAX];
	bool remote = a->kind == ADDR_VSOCK;
	int i, n = 0;

	if (a->kind == ADDR_TCP &&
	    (n = addr_resolve(a, sa, len, RESOLVED_MAX, err, err_size)) < 0)
		return -1;
	for (i = 0; i < n; i++)
		remote |= !addr_is_local(&sa[i]);
	if (!remote)
		return 0;
	return FAILURE(err, err_size, "other machines can reach %s, and peers "
	    "are not authenticated there: use a UNIX socket or 127.0.0.1, or "
	    "permit it with `allow_remote_producers: true` in the settings",
	    a->text);
}

static void
log_door(const struct addr *a, const struct listener *l)
{
	if (a->kind == ADDR_TCP && listener_port(l) != 0)
		log_info("listening for producers on %s%s%s:%d",
		    strchr(a->host, ':') != NULL ? "[" : "", a->host,
		    strchr(a->host, ':') != NULL ? "]" : "",
		    listener_port(l));
	else
		log_info("listening for producers on %s", a->text);
}

static int
open_door(struct relay_listeners *d, const char *address, char *err,
    size_t err_size)
{
	const struct relay_settings *s = d->settings;
	bool owned = s->socket_mode >= 0;
	struct listener *l;
	struct addr a;
	mode_t old = 0;

	if (addr_parse(&a, address, err, err_size) != 0 ||
	    (!s->allow_remote_producers && check_reach(&a, err,
		err_size) != 0))
		return -1;
	owned = owned && socket_owner_has_file(&a);
	/* No connection is possible between bind() and chmod(). */
	if (owned)
		old = umask(0177);
	l = listener_new(d->loop, &(struct listener_setup){ .addr = &a,
	    .allow_remote = s->allow_remote_producers, .fn = accept_cb,
	    .arg = d }, err, err_size);
	if (owned)
		umask(old);
	if (l == NULL)
		return -1;
	d->all[d->n++] = l;
	if (owned && socket_owner_set(l, s->socket_group,
		(unsigned)s->socket_mode, err, err_size) != 0)
		return -1;
	log_door(&a, l);
	return 0;
}

/* ---- passed sockets ---- */

static int
adopt_door(struct relay_listeners *d, int fd, char *err, size_t err_size)
{
	char text[ADDR_TEXT_MAX];
	struct listener *l;

	passed_socket_address(fd, text, sizeof(text));
	if ((l = listener_adopt(d->loop, fd, accept_cb, d, err,
		err_size)) == NULL) {
		close(fd);
		return -1;
	}
	d->all[d->n++] = l;
	d->passed[d->n_passed++] = fd;
	log_info("listening for producers on %s", text);
	return 0;
}

static int
adopt_doors(struct relay_listeners *d, const struct passed_sockets *p,
    char *err, size_t err_size)
{
	size_t i;
	int fd;

	for (i = 0; i < p->n; i++)
		if ((fd = passed_sockets_take(p, i, err, err_size)) < 0 ||
		    adopt_door(d, fd, err, err_size) != 0)
			return -1;
	return 0;
}

static bool
was_passed(const struct relay_listeners *d, const char *address)
{
	char err[ADDR_TEXT_MAX + 256];
	struct addr a;
	size_t i;

	if (addr_parse(&a, address, err, sizeof(err)) != 0)
		return false;
	for (i = 0; i < d->n_passed; i++)
		if (passed_socket_is_bound_to(d->passed[i], &a.sa, a.sa_len))
			return true;
	return false;
}

/* ---- all of them ---- */

static int
open_doors(struct relay_listeners *d, char *err, size_t err_size)
{
	const struct relay_settings *s = d->settings;
	size_t i;

	if (d->n_passed > 0 && !s->named_sockets)
		return 0;
	for (i = 0; i < s->n_producer_sockets; i++)
		if (!was_passed(d, s->producer_sockets[i]) &&
		    open_door(d, s->producer_sockets[i], err, err_size) != 0)
			return -1;
	return 0;
}

struct relay_listeners *
relay_listeners_new(struct loop *l, const struct relay_settings *s,
    const struct passed_sockets *passed, struct producers *ps, char *err,
    size_t err_size)
{
	struct relay_listeners *d;

	snprintf(err, err_size, "no memory");
	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->loop = l;
	d->settings = s;
	d->services[0] = producers_service(ps);
	d->guard = producers_guard(ps);
	if ((d->sweep = loop_timer_new(l, sweep_cb, d)) == NULL)
		goto fail;
	if (adopt_doors(d, passed, err, err_size) != 0 ||
	    open_doors(d, err, err_size) != 0)
		goto fail;
	return d;

fail:
	relay_listeners_free(d);
	return NULL;
}

void
relay_listeners_close(struct relay_listeners *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		listener_free(d->all[i]);
	d->n = 0;
}

void
relay_listeners_send_away(struct relay_listeners *d)
{
	rpc_conns_close_all(&d->stats);
}

void
relay_listeners_free(struct relay_listeners *d)
{
	if (d == NULL)
		return;
	relay_listeners_close(d);
	loop_timer_free(d->sweep);
	free(d);
}
