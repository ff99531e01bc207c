/*
 * Bytes of a hostile peer, in pieces, to an rpc_host whose methods do all that
 * methods may do.
 *
 * input: 1 byte, bit 0: over TCP; bits 1..7: size of the pieces, less one;
 * then the bytes.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/rpc_host/parts.h"
#include "tests/unit/transport/socket/tcp_pair.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"
#include "transport/wire/frame.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

static struct loop *loop;
static struct rpc_conn *conn; /* NULL: gone */
static int bound, gone, again, admitted, all_over;
static struct rpc_call kept;
static unsigned sum;

static void *
on_bind(struct rpc_conn *c, void *arg)
{
	sum += (unsigned)rpc_conn_identity(c)->pid;
	bound++;
	return c;
}

static void
on_gone(void *ctx)
{
	CHECK(ctx == conn);
	CHECK(rpc_conn_peer(conn)->text[0] != '\0');
	gone++;
	kept.conn = NULL;
}

static bool
on_admit(struct rpc_conn *c, const struct peer *p, void *arg, char *why)
{
	CHECK(p->text[0] != '\0');
	admitted++;
	return true;
}

static bool
on_may_bind(struct rpc_conn *c, const struct rpc_service *s, void *arg,
    char *why)
{
	int32_t pid = rpc_conn_identity(c)->pid;

	CHECK(admitted == 1 && !all_over);
	if (pid == 13)
		rpc_conn_close(c, "in may_bind");
	snprintf(why, RPC_WHY_MAX, "not with process %d", (int)pid);
	return pid % 2 == 0;
}

static void
on_all_over(struct rpc_conn *c, void *arg)
{
	CHECK(c == conn && gone == bound);
	all_over++;
}

static void
read_all(const uint8_t *args, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		sum += args[i];
}

static enum rpc_verdict
method_echo(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	if (len > FRAME_MAX_BYTES - 64)
		len = FRAME_MAX_BYTES - 64;
	rpc_reply(call, args, len, false, -1);
	return RPC_OK;
}

static enum rpc_verdict
method_keep(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	read_all(args, len);
	kept = call;
	return RPC_OK;
}

static enum rpc_verdict
method_again(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	read_all(args, len);
	if (again++ % 3 != 2)
		return RPC_AGAIN;
	rpc_reject(call);
	return RPC_OK;
}

static enum rpc_verdict
method_close(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	rpc_conn_close(call.conn, len > 2 ? "in a method" : NULL);
	read_all(args, len);
	return len % 2 ? RPC_OK : RPC_AGAIN;
}

static enum rpc_verdict
method_pause(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	rpc_conn_pause(call.conn);
	if (len % 2)
		rpc_conn_resume(call.conn);
	return len % 3 ? RPC_REJECT : RPC_BAD_ARGS;
}

static const struct rpc_method methods[] = {
	{ "Echo", method_echo },
	{ "Keep", method_keep },
	{ "Again", method_again },
	{ "Close", method_close },
	{ "Pause", method_pause },
};

static const struct rpc_service service = {
	.name = "ProducerPort",
	.alias = "p",
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.bind = on_bind,
	.gone = on_gone,
};

static const struct rpc_service *const services[] = { &service };

static void
feed(int fd, struct rpc_stats *stats, const uint8_t *data, size_t size,
    size_t piece)
{
	uint8_t sink[4096];
	ssize_t n;

	while (size > 0 && stats->conns != NULL) {
		n = send(fd, data, size < piece ? size : piece, MSG_NOSIGNAL);
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
		loop_run_once(loop);
		while (recv(fd, sink, sizeof(sink), 0) > 0)
			;
		if (kept.conn != NULL)
			rpc_reply(kept, "later", 5, true, -1);
		/* Whatever paused it: go on, as an owner would. */
		if (stats->conns != NULL)
			rpc_conn_resume(conn);
	}
}

static void
make_pair(bool tcp, int sv[2])
{
	/* No TIME_WAIT: a long run would use up all ports. */
	struct linger hard = { 1, 0 };

	/* Even so they may be used up, by others: that is no finding. */
	if (tcp && tcp_pair(sv) == 0) {
		CHECK(setsockopt(sv[0], SOL_SOCKET, SO_LINGER, &hard,
		    sizeof(hard)) == 0);
		CHECK(setsockopt(sv[1], SOL_SOCKET, SO_LINGER, &hard,
		    sizeof(hard)) == 0);
	} else {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	}
	CHECK(fcntl(sv[1], F_SETFL, O_NONBLOCK) == 0);
}

void
fuzz_rpc_host(const uint8_t *data, size_t size)
{
	static const struct rpc_guard guard = { on_admit, on_may_bind,
		on_all_over, NULL };
	struct rpc_stats stats = { 0 };
	struct rpc_conn_setup setup = {
		.services = services,
		.n_services = 1,
		.stats = &stats,
		.guard = &guard,
	};
	int sv[2], turns;

	if (size < 1 || size > 4 * FRAME_MAX_BYTES)
		return;
	if (loop == NULL) {
		log_init("fuzz", LOG_LEVEL_ERROR);
		CHECK((loop = loop_new()) != NULL);
	}
	bound = gone = again = admitted = all_over = 0;
	kept.conn = NULL;
	make_pair(data[0] & 1, sv);
	CHECK((conn = rpc_conn_new(loop, sv[0], &setup)) != NULL);
	/* Long inputs in longer pieces, else they take for ever. */
	feed(sv[1], &stats, data + 1, size - 1,
	    (size_t)(data[0] >> 1) + 1 + size / 256);
	shutdown(sv[1], SHUT_WR);
	for (turns = 0; stats.conns != NULL && turns < 100; turns++) {
		rpc_conn_resume(conn);
		loop_run_once(loop);
	}
	rpc_conns_close_all(&stats);
	for (turns = 0; turns < 4; turns++)
		loop_run_once(loop);
	close(sv[1]);
	CHECK(bound <= 1 && gone == bound);
	CHECK(admitted == 1 && all_over == 1);
}
