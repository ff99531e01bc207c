/*
 * Bytes of a hostile host, in pieces, to an rpc_client with calls pending.
 *
 * input: 1 byte, the size of the pieces, less one; then the bytes.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/clients/clients.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/frame.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

static struct loop *loop;
static int ready, down;
static int open_calls;
static unsigned sum;

static void
on_reply(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	size_t i;

	CHECK(ok || !more);
	for (i = 0; i < len; i++)
		sum += msg[i];
	if (fd >= 0)
		close(fd);
	if (!more)
		open_calls--;
	CHECK(open_calls >= 0);
}

static void
on_ready(struct rpc_client *c, void *arg)
{
	ready++;
	open_calls += 3;
	rpc_invoke(c, "A", "args", 4, on_reply, NULL);
	rpc_invoke(c, "B", NULL, 0, on_reply, NULL);
	rpc_invoke(c, "Missing", NULL, 0, on_reply, NULL);
	rpc_invoke(c, "A", NULL, 0, NULL, NULL);
}

static void
on_down(struct rpc_client *c, const char *text, void *arg)
{
	CHECK(text[0] != '\0');
	CHECK(open_calls == 0);
	down++;
}

static const struct rpc_client_ops ops = {
	.ready = on_ready,
	.down = on_down,
};

void
fuzz_rpc_client(const uint8_t *data, size_t size)
{
	struct rpc_client *c;
	size_t piece, n;
	int sv[2], turns;

	if (size < 1 || size > 4 * FRAME_MAX_BYTES)
		return;
	if (loop == NULL) {
		log_init("fuzz", LOG_LEVEL_ERROR);
		CHECK((loop = loop_new()) != NULL);
	}
	ready = down = open_calls = 0;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	c = rpc_client_from_fd(loop, sv[0], "ProducerPort", &ops, NULL);
	CHECK(c != NULL);
	loop_run_once(loop);
	piece = (size_t)data[0] + 1 + size / 256;
	for (data++, size--; size > 0 && !down; data += n, size -= n) {
		n = size < piece ? size : piece;
		if (send(sv[1], data, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		loop_run_once(loop);
	}
	close(sv[1]);
	for (turns = 0; !down && turns < 100; turns++)
		loop_run_once(loop);
	CHECK(down == 1 && ready <= 1 && open_calls == 0);
	rpc_client_free(c);
	loop_run_once(loop);
	loop_run_once(loop);
}
