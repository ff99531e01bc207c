/*
 * Connections over a TLS that is off (tests/unit/transport/tls/fake_tls.h) but
 * demands whatever it likes, under a guard that refuses, limits that are
 * reached and an owner that pauses, sweeps and closes, by a script.
 *
 * input: a byte of each field of struct plan, then steps of a byte (what, and
 * five bits of how much), some with bytes of their own.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protos/fields.h"
#include "tests/fuzz/rpc_host/parts.h"
#include "tests/unit/transport/tls/fake_tls.h"
#include "transport/base/budget.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/tls/tls.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

#define N_CONNS   2
#define STEPS_MAX 400

#define BUDGET_GONE ((size_t)0xa5a5a5a5)

struct plan {
	/* Bit i: connection i is over TLS; 2: small buffers; 3: a server. */
	uint8_t over;
	uint8_t shake_steps, shake_wants_write, shake_bytes;
	uint8_t receive_every, send_every, receive_max, send_max;
	uint8_t alert_after;
	uint8_t guard; /* GUARD_*, and what for */
	uint8_t memory, rate;
};

enum {
	GUARD_REFUSES_ADMIT = 1,
	GUARD_REFUSES_BIND = 2,
	GUARD_CLOSES_ADMIT = 4,
	GUARD_CLOSES_BIND = 8,
	GUARD_FAILS_SHAKE = 16,
};

struct conn {
	struct rpc_conn *c; /* NULL: gone */
	int fd;
	bool admitted, bound, tls;
	struct rpc_call kept;
	struct budget budget;
};

static struct {
	struct loop *loop;
	struct plan plan;
	struct rpc_stats stats;
	struct budget of_all;
	struct conn conns[N_CONNS];
	int again;
	unsigned sum;
	const uint8_t *data;
	size_t left;
} f;

static uint8_t
next_byte(void)
{
	if (f.left == 0)
		return 0;
	f.left--;
	return *f.data++;
}

/* ---- the service and its guard ---- */

static bool
on_admit(struct rpc_conn *c, const struct peer *p, void *arg, char *why)
{
	struct conn *k = arg;

	CHECK(!k->admitted);
	CHECK((p->cert != NULL) == k->tls);
	CHECK((p->auth == PEER_CERT) == k->tls);
	k->admitted = true;
	if (k->c == NULL)
		k->c = c; /* at once: rpc_conn_new() has not returned */
	if (f.plan.guard & GUARD_CLOSES_ADMIT)
		rpc_conn_close(c, f.plan.guard & 32 ? "in admit" : NULL);
	snprintf(why, RPC_WHY_MAX, "full");
	return !(f.plan.guard & GUARD_REFUSES_ADMIT);
}

static bool
on_may_bind(struct rpc_conn *c, const struct rpc_service *s, void *arg,
    char *why)
{
	struct conn *k = arg;

	CHECK(k->admitted && k->c == c);
	if (f.plan.guard & GUARD_CLOSES_BIND)
		rpc_conn_close(c, f.plan.guard & 32 ? "in may_bind" : NULL);
	snprintf(why, RPC_WHY_MAX, "not with that role");
	return !(f.plan.guard & GUARD_REFUSES_BIND);
}

static void
on_guard_gone(struct rpc_conn *c, void *arg)
{
	struct conn *k = arg;

	CHECK(k->c == c);
	CHECK(!k->bound);
	CHECK(rpc_conn_peer(c)->text[0] != '\0');
	CHECK(k->budget.memory == 0);
	/* It may go away now: nobody may touch it. */
	k->budget.memory = BUDGET_GONE;
	k->c = NULL;
}

static struct conn *
conn_of(struct rpc_conn *c)
{
	int i;

	for (i = 0; i < N_CONNS; i++)
		if (f.conns[i].c == c)
			return &f.conns[i];
	abort();
}

static void *
on_bind(struct rpc_conn *c, void *arg)
{
	struct conn *k = conn_of(c);

	CHECK(k->admitted && !k->bound);
	f.sum += (unsigned)rpc_conn_identity(c)->pid;
	k->bound = true;
	return k;
}

static void
on_gone(void *ctx)
{
	struct conn *k = ctx;

	CHECK(k->bound);
	k->bound = false;
	k->kept.conn = NULL;
}

static enum rpc_verdict
method_any(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	static const uint8_t big[60000];
	struct conn *k = ctx;
	size_t i;

	CHECK(k->bound);
	for (i = 0; i < len; i++)
		f.sum += args[i];
	switch (len > 0 ? args[0] % 8 : 7) {
	case 0:
		rpc_reply(call, big, sizeof(big), true, -1);
		return RPC_OK;
	case 1:
		return f.again++ % 3 == 0 ? RPC_OK : RPC_AGAIN;
	case 2:
		rpc_conn_pause(call.conn);
		return RPC_REJECT;
	case 3:
		rpc_conn_close(call.conn, len > 1 ? "in a method" : NULL);
		return RPC_OK;
	case 4:
		return RPC_BAD_ARGS;
	case 5:
		k->kept = call;
		return RPC_OK;
	default:
		rpc_reply(call, args, len, false, -1);
		return RPC_OK;
	}
}

static const struct rpc_method methods[] = { { "Any", method_any } };
static const struct rpc_service service = {
	.name = "ProducerPort",
	.methods = methods,
	.n_methods = 1,
	.bind = on_bind,
	.gone = on_gone,
};
static const struct rpc_service *const services[] = { &service };

/* ---- the script ---- */

static void
say(struct conn *k, const void *bytes, size_t len)
{
	(void)!send(k->fd, bytes, len, MSG_NOSIGNAL);
}

static void
say_frame(struct conn *k, enum ipc_kind kind, unsigned how)
{
	struct pb_writer w;
	uint8_t args[32];
	size_t mark, n;

	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, how, kind);
	if (kind == IPC_BIND_SERVICE) {
		pb_put_string(&w, 1, how == 31 ? "Other" : "ProducerPort");
	} else if (kind == IPC_SET_PEER_IDENTITY) {
		pb_put_int(&w, 1, (int)how);
		pb_put_string(&w, 4, "machine");
		pb_put_uint(&w, SetPeerIdentity_tributary_forwarded, how & 1);
	} else {
		for (n = 0; n < how; n++)
			args[n] = next_byte();
		pb_put_uint(&w, 1, 1);
		pb_put_uint(&w, 2, 1);
		pb_put_bytes(&w, 3, args, how);
	}
	ipc_frame_end(&w, mark);
	say(k, w.data, w.len);
	pb_writer_done(&w);
}

static void
listen_to(struct conn *k, unsigned how)
{
	uint8_t sink[4096];

	while (how-- > 0 && recv(k->fd, sink, sizeof(sink), 0) > 0)
		;
}

static void
sweep(unsigned how)
{
	struct rpc_timeouts t = { 0 };

	t.handshake_ms = how & 1 ? 1000 : 0;
	t.bind_ms = how & 2 ? 1000 : 0;
	t.idle_ms = how & 4 ? 1000 : 0;
	t.stalled_ms = how & 8 ? 1000 : 0;
	rpc_conns_sweep(&f.stats, &t, loop_now_ms() + (how & 16 ? 2000 : 0));
}

/* What the owner does. */
static void
own(struct conn *k, unsigned how)
{
	if (k->c == NULL)
		return;
	switch (how % 8) {
	case 0:
		rpc_conn_pause(k->c);
		return;
	case 1:
	case 2:
	case 3:
		rpc_conn_resume(k->c);
		return;
	case 4:
		if (k->kept.conn != NULL)
			rpc_reply(k->kept, "later", 5, true, -1);
		return;
	case 5:
		stream_set_budgets(rpc_conn_stream(k->c), NULL, NULL);
		stream_set_budgets(rpc_conn_stream(k->c), &k->budget,
		    &f.of_all);
		return;
	case 6:
		rpc_conn_close(k->c, how & 8 ? "by the owner" : NULL);
		return;
	case 7:
		shutdown(k->fd, how & 8 ? SHUT_RDWR : SHUT_WR);
		return;
	}
}

static void
step(void)
{
	uint8_t b = next_byte();
	struct conn *k = &f.conns[next_byte() % N_CONNS];
	unsigned how = b >> 3, n;

	switch (b & 7) {
	case 0:
		n = how < f.left ? how : (unsigned)f.left;
		say(k, f.data, n);
		f.data += n;
		f.left -= n;
		return;
	case 1:
		say_frame(k, IPC_BIND_SERVICE, how);
		return;
	case 2:
		say_frame(k, IPC_INVOKE_METHOD, how);
		return;
	case 3:
		say_frame(k, IPC_SET_PEER_IDENTITY, how);
		return;
	case 4:
		own(k, how);
		return;
	case 5:
		listen_to(k, how);
		return;
	case 6:
		sweep(how);
		return;
	case 7:
		for (n = 0; n <= how % 4; n++)
			loop_run_once(f.loop);
		return;
	}
}

/* ---- a run ---- */

static void
make_plan(void)
{
	const struct plan *p = &f.plan;

	memset(&fake_tls_plan, 0, sizeof(fake_tls_plan));
	fake_tls_plan.shake_steps = p->shake_steps % 8;
	fake_tls_plan.shake_wants_write = p->shake_wants_write;
	fake_tls_plan.shake_bytes = p->shake_bytes % 16;
	fake_tls_plan.speaks_last = p->over & 8;
	fake_tls_plan.shake_fails = p->guard & GUARD_FAILS_SHAKE;
	fake_tls_plan.receive_wants_write_every =
	    p->receive_every == 1 ? 2 : p->receive_every;
	fake_tls_plan.send_wants_read_every =
	    p->send_every == 1 ? 2 : p->send_every;
	fake_tls_plan.receive_max = p->receive_max * 4u;
	fake_tls_plan.send_max = p->send_max * 16u;
	fake_tls_plan.alert_after = p->alert_after * 4u;
}

static void
begin(struct conn *k, struct rpc_guard *guard, bool tls)
{
	struct stream_setup over = { 0 };
	struct rpc_conn_setup setup = {
		.services = services,
		.n_services = 1,
		.stats = &f.stats,
		.guard = guard,
		.stream = &over,
	};
	int sv[2], small = 2048;
	struct rpc_conn *c;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	CHECK(fcntl(sv[1], F_SETFL, O_NONBLOCK) == 0);
	if (f.plan.over & 4)
		setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &small,
		    sizeof(small));
	k->fd = sv[1];
	k->tls = tls;
	k->budget.memory_max = f.plan.memory * 256u;
	k->budget.bytes_per_second = f.plan.rate * 4096u;
	if (tls)
		over.tls = tls_conn_new(NULL, sv[0], NULL, "fuzz");
	CHECK((c = rpc_conn_new(f.loop, sv[0], &setup)) != NULL);
	k->c = c;
	stream_set_budgets(rpc_conn_stream(c), &k->budget, &f.of_all);
	rpc_conn_set_limits(c, 200000, 10000);
}

void
fuzz_tls_frames(const uint8_t *data, size_t size)
{
	struct rpc_guard guards[N_CONNS];
	int i, steps;

	if (size < sizeof(f.plan) || size > 4096)
		return;
	log_init("fuzz", LOG_LEVEL_ERROR);
	memset(&f, 0, sizeof(f));
	memcpy(&f.plan, data, sizeof(f.plan));
	f.data = data + sizeof(f.plan);
	f.left = size - sizeof(f.plan);
	CHECK((f.loop = loop_new()) != NULL);
	make_plan();
	for (i = 0; i < N_CONNS; i++) {
		guards[i] = (struct rpc_guard){ on_admit, on_may_bind,
			on_guard_gone, &f.conns[i] };
		begin(&f.conns[i], &guards[i], f.plan.over >> i & 1);
	}
	for (steps = 0; f.left > 0 && steps < STEPS_MAX; steps++)
		step();
	rpc_conns_close_all(&f.stats);
	loop_free(f.loop);
	for (i = 0; i < N_CONNS; i++) {
		CHECK(f.conns[i].c == NULL && !f.conns[i].bound);
		CHECK(f.conns[i].budget.memory == BUDGET_GONE);
		close(f.conns[i].fd);
	}
	CHECK(f.of_all.memory == 0);
	CHECK(f.stats.n_conns == 0);
	CHECK(fake_tls_live == 0);
}
