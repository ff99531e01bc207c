#include "service/front/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "protos/fields.h"
#include "service/access/bind_roles.h"
#include "service/front/peer_limits.h"
#include "service/limits/metric_count.h"
#include "service/limits/refusals.h"
#include "transport/base/heap_rest.h"
#include "transport/loop/loop.h"
#include "transport/process/heap_trimming.h"
#include "transport/socket/peer.h"
#include "transport/socket/sock.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_reload.h"
#include "transport/wire/pb_writer.h"

/*
 * Bytes that a connection may have queued before its writers are told to wait.
 */
#define LOW_WATER_BYTES (64u * 1024u)

#define SWEEP_MS 1000u

/* Descriptors that connections leave to files and shared memory. */
#define FDS_KEPT 32u

#define PORTS (LISTEN_RELAY + 1)

struct gate {
	struct gate_setup with; /* borrows all that is in it */
	struct peer_limits *peers;
	/* `dialled`: connections of dials, which have no bind time-out. */
	struct rpc_stats stats, dialled;
	struct loop_timer *sweep;
	int fd_max; /* descriptors of connections are below it */
	/* Connections that are open, and were, by enum listen_port. */
	size_t open[PORTS];
	uint64_t accepted[PORTS];
	uint64_t refused;
	struct log_limit refused_log;
};

/* ---- the guard ---- */

static void
use_budgets(struct gate *g, struct rpc_conn *c, struct peer_share *share)
{
	stream_set_budgets(rpc_conn_stream(c), peer_limits_budget_of(share),
	    peer_limits_budget_of_all(g->peers));
}

static bool
admit_cb(struct rpc_conn *c, const struct peer *p, void *arg, char *why)
{
	struct entrance *e = arg;
	struct peer_share *share = rpc_conn_mark(c);

	/* Without a handshake, gate_take() has counted the peer already. */
	if (share == NULL || p->auth != PEER_CERT)
		return true;
	heap_rest_came(e->gate->with.heap);
	/* The address's budget may go away with its last connection. */
	stream_set_budgets(rpc_conn_stream(c), NULL, NULL);
	/* The files may have been read anew while it shook hands. */
	if (tls_context_revokes(e->tls, p->cert)) {
		snprintf(why, RPC_WHY_MAX, "its certificate is revoked");
		return false;
	}
	if (peer_limits_opened(share, p, why, RPC_WHY_MAX) != 0) {
		refusals_count(e->gate->with.refusals, why);
		return false;
	}
	use_budgets(e->gate, c, share);
	return true;
}

static bool
may_bind_cb(struct rpc_conn *c, const struct rpc_service *s, void *arg,
    char *why)
{
	struct entrance *e = arg;

	if (!bind_roles_permit(e->gate->with.trust, s->name, rpc_conn_peer(c),
		e->plain_consumer, why, RPC_WHY_MAX))
		return false;
	if (e->bound != NULL)
		e->bound(e);
	return true;
}

static void
gone_cb(struct rpc_conn *c, void *arg)
{
	struct entrance *e = arg;

	e->gate->open[e->port]--;
	peer_limits_leave(rpc_conn_mark(c));
	heap_rest_freed(e->gate->with.heap, 1);
	if (e->gone != NULL)
		e->gone(e);
}

void
entrance_init(struct entrance *e, struct gate *g, enum listen_port port,
    bool relays)
{
	memset(e, 0, sizeof(*e));
	e->gate = g;
	e->port = port;
	e->guard.admit = admit_cb;
	e->guard.may_bind = may_bind_cb;
	e->guard.gone = gone_cb;
	e->guard.arg = e;
	if (port == LISTEN_CONSUMER) {
		/* Few, and people wait for their answers. */
		e->urgent = true;
		e->services[e->n_services++] = g->with.ports[LISTEN_CONSUMER];
		if (g->with.control != NULL)
			e->services[e->n_services++] = g->with.control;
		return;
	}
	/* A relay brings its producers through the same socket. */
	e->services[e->n_services++] = g->with.ports[LISTEN_PRODUCER];
	if (!relays && port != LISTEN_RELAY)
		return;
	e->services[e->n_services++] = g->with.ports[LISTEN_RELAY];
	e->services[e->n_services++] = g->with.link;
}

static void
crowded_out_cb(void *owner, const char *why)
{
	rpc_conn_close(owner, why);
}

/* ---- the way in ---- */

static void
refuse(struct gate *g, int fd, const struct peer *p, bool tls, const char *why)
{
	g->refused++;
	refusals_count(g->with.refusals, why);
	log_limited(&g->refused_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: connection refused: %s; %llu refused so far", p->text, why,
	    (unsigned long long)g->refused);
	/* Before a TLS handshake a sentence cannot be sent. */
	if (tls)
		close(fd);
	else
		rpc_refuse(fd, why);
}

static void
make_forwarded(struct peer *p)
{
	static const char mark[] = " (forwarded)";

	if (p->forwarded || p->kind != ADDR_UNIX)
		return;
	p->forwarded = true;
	p->can_pass_fds = false;
	if (strlen(p->text) + sizeof(mark) <= sizeof(p->text))
		strcat(p->text, mark);
}

/* The connection, or NULL: then fd is still the caller's. */
static struct rpc_conn *
connect_guest(struct entrance *e, int fd, const struct peer *p)
{
	struct stream_setup over = { .peer = p };
	struct rpc_conn_setup setup = {
		.services = e->services,
		.n_services = e->n_services,
		.stats = e->dialled ? &e->gate->dialled : &e->gate->stats,
		.guard = &e->guard,
		.stream = &over,
	};
	struct rpc_conn *c;

	/*
	 * Connections that pass descriptors, or belong to a child, stay on this
	 * thread.
	 */
	if (p->kind == ADDR_TCP)
		over.io = e->gate->with.io;
	if (e->tls != NULL) {
		over.peer = NULL; /* known by its certificate, later */
		over.tls = tls_conn_new(e->tls, fd, NULL, p->text);
		if (over.tls == NULL)
			return NULL;
	}
	if ((c = rpc_conn_new(e->gate->with.loop, fd, &setup)) == NULL)
		tls_conn_free(over.tls);
	return c;
}

static void
set_limits(struct gate *g, struct rpc_conn *c)
{
	size_t hard = (size_t)g->with.settings->limits.max_send_queue_kb * 1024;

	rpc_conn_set_limits(c, hard,
	    hard / 2 < LOW_WATER_BYTES ? hard / 2 : LOW_WATER_BYTES);
}

bool
gate_take(struct entrance *e, int fd, const struct peer *peer)
{
	struct gate *g = e->gate;
	char why[RPC_WHY_MAX];
	struct peer_share *share = NULL;
	struct rpc_conn *c;
	struct peer p;

	if (peer != NULL)
		p = *peer;
	else
		peer_from_socket(&p, fd);
	if (e->forwarded)
		make_forwarded(&p);
	if (fd >= g->fd_max) {
		snprintf(why, sizeof(why), "the collector has no more file "
		    "descriptors to give (LimitNOFILE=, ulimit -n)");
		goto fail;
	}
	share = peer_limits_enter(g->peers, &p, e->tls != NULL, why,
	    sizeof(why));
	if (share == NULL)
		goto fail;
	/*
	 * Before connect_guest(): behind it fd may be an I/O thread's, and
	 * closed.
	 */
	if (e->tls != NULL || p.kind == ADDR_TCP)
		sock_give_up_after(fd,
		    g->with.settings->limits.stalled_timeout_ms);
	if ((c = connect_guest(e, fd, &p)) == NULL) {
		snprintf(why, sizeof(why), "the collector is out of memory");
		goto fail;
	}
	g->open[e->port]++;
	g->accepted[e->port]++;
	rpc_conn_set_mark(c, share);
	peer_limits_set_owner(share, c);
	use_budgets(g, c, share);
	set_limits(g, c);
	if (e->urgent)
		stream_set_urgent(rpc_conn_stream(c));
	return true;

fail:
	peer_limits_leave(share);
	refuse(g, fd, &p, e->tls != NULL, why);
	return false;
}

struct budget *
gate_memory(struct gate *g)
{
	return peer_limits_budget_of_all(g->peers);
}

/* ---- all of them ---- */

static bool
is_revoked(struct rpc_conn *c, void *arg)
{
	const struct peer *p = rpc_conn_peer(c);

	return p->auth == PEER_CERT && tls_context_revokes(arg, p->cert);
}

static void
sweep_cb(void *arg)
{
	struct gate *g = arg;
	const struct limits *l = &g->with.settings->limits;
	struct rpc_timeouts t = {
		.handshake_ms = l->handshake_timeout_ms,
		.bind_ms = l->bind_timeout_ms,
		.idle_ms = l->idle_timeout_ms,
		.stalled_ms = l->stalled_timeout_ms,
	};
	uint64_t now = loop_now_ms();

	rpc_conns_sweep(&g->stats, &t, now);
	t.bind_ms = 0;
	rpc_conns_sweep(&g->dialled, &t, now);
	if (heap_rest_second(g->with.heap))
		heap_trim();
}

void
gate_close_all(struct gate *g)
{
	rpc_conns_close_all(&g->stats);
	rpc_conns_close_all(&g->dialled);
}

void
gate_close_revoked(struct gate *g, struct tls_context *tls)
{
	rpc_conns_close_those(&g->stats, is_revoked, tls,
	    "its certificate is revoked");
}

/* ---- for people ---- */

static void
report_cut_off(const struct gate *g, struct pb_writer *w)
{
	const uint32_t field = QueryMetricsReply_connections_cut_off;
	const struct rpc_stats *a = &g->stats, *b = &g->dialled;
	struct peer_limits_counts limits;

	metric_count_put(w, field, "slow", a->closed_slow + b->closed_slow);
	metric_count_put(w, field, "budget", a->closed_budget + b->closed_budget);
	metric_count_put(w, field, "handshake", a->closed_handshake +
	    b->closed_handshake);
	peer_limits_counts(g->peers, &limits);
	metric_count_put(w, field, "crowded_out", limits.crowded_out);
	metric_count_put(w, field, "unbound", a->closed_unbound + b->closed_unbound);
	metric_count_put(w, field, "idle", a->closed_idle + b->closed_idle);
	metric_count_put(w, field, "stalled", a->closed_stalled + b->closed_stalled);
}

void
gate_report(const struct gate *g, struct pb_writer *w)
{
	static const char *const ports[PORTS] = {
		[LISTEN_PRODUCER] = "producer",
		[LISTEN_CONSUMER] = "consumer",
		[LISTEN_RELAY] = "relay",
	};
	size_t i;

	for (i = 0; i < PORTS; i++) {
		metric_count_put(w, QueryMetricsReply_connections, ports[i],
		    g->open[i]);
		metric_count_put(w, QueryMetricsReply_connections_accepted, ports[i],
		    g->accepted[i]);
	}
	report_cut_off(g, w);
	pb_put_uint(w, QueryMetricsReply_tls_handshakes_failed,
	    g->stats.failed_handshake + g->dialled.failed_handshake);
	pb_put_uint(w, QueryMetricsReply_tls_handshakes_late,
	    g->stats.closed_handshake + g->dialled.closed_handshake);
}

/* ---- the gate ---- */

static int
fd_max(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > INT32_MAX)
		return INT32_MAX;
	return (int)(r.rlim_cur -
	    (r.rlim_cur / 4 < FDS_KEPT ? r.rlim_cur / 4 : FDS_KEPT));
}

struct gate *
gate_new(const struct gate_setup *setup)
{
	struct gate *g;

	if ((g = calloc(1, sizeof(*g))) == NULL)
		return NULL;
	g->with = *setup;
	g->fd_max = fd_max();
	g->peers = peer_limits_new(&setup->settings->limits, crowded_out_cb);
	if (g->peers == NULL)
		goto fail;
	if ((g->sweep = loop_timer_new(g->with.loop, sweep_cb, g)) == NULL)
		goto fail;
	loop_timer_set(g->sweep, SWEEP_MS, 1);
	return g;

fail:
	gate_free(g);
	return NULL;
}

void
gate_free(struct gate *g)
{
	if (g == NULL)
		return;
	loop_timer_free(g->sweep);
	peer_limits_free(g->peers);
	free(g);
}
