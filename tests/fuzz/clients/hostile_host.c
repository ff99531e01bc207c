/*
 * A hostile service, at each client of ours in turn: libtributary's consumer and
 * producer, the operator's calls, a relay over the link and in Perfetto's way.
 * It answers BindService as it should, so that calls come, and then answers
 * them as the input says: in any order, twice, never, with messages of the right
 * kind, cut ones, or bytes.
 *
 * input: records (tests/fuzz/stage/script.h); the first chooses the client.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/clients/clients.h"
#include "tests/fuzz/clients/hostile_replies.h"
#include "tests/fuzz/clients/victims.h"
#include "tests/fuzz/stage/script.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

#define PENDING_MAX 16u

static struct {
	struct loop *loop;
	int fd; /* -1: nobody is connected */
	enum victim victim;
	uint8_t *in;
	size_t in_len;
	struct call {
		uint64_t id;
		uint32_t method;
	} pending[PENDING_MAX];
	size_t n_pending;
	uint8_t *shm;
	size_t shm_len;
	unsigned flags;
} h;

/* ---- what the client says ---- */

static void
send_all(const void *data, size_t len, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (h.fd < 0)
		return;
	if (fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	(void)!sendmsg(h.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* All methods but the one that the input leaves out. */
static void
answer_bind(uint64_t request)
{
	const char *const *names = victim_methods(h.victim);
	struct pb_writer w;
	size_t mark, one;
	uint32_t i;

	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, request, IPC_BIND_SERVICE_REPLY);
	pb_put_uint(&w, 1, 1);
	pb_put_uint(&w, 2, 1);
	for (i = 0; names[i] != NULL; i++) {
		if (h.flags >= 200 && h.flags % 8 == i)
			continue;
		one = pb_nest_begin(&w, 3);
		pb_put_uint(&w, 1, i + 1);
		pb_put_string(&w, 2, names[i]);
		pb_nest_end(&w, one);
	}
	ipc_frame_end(&w, mark);
	send_all(w.data, w.len, -1);
	pb_writer_done(&w);
}

static void
take_frame(const uint8_t *payload, size_t len)
{
	struct ipc_invoke call;
	struct ipc_frame f;

	if (ipc_parse_frame(&f, payload, len) != 0)
		abort(); /* ours are well-formed */
	if (f.kind == IPC_BIND_SERVICE)
		answer_bind(f.request_id);
	if (f.kind != IPC_INVOKE_METHOD)
		return;
	if (ipc_parse_invoke(&call, f.body) != 0)
		abort();
	if (call.drop_reply)
		return;
	if (h.n_pending == PENDING_MAX)
		memmove(h.pending, h.pending + 1,
		    --h.n_pending * sizeof(h.pending[0]));
	h.pending[h.n_pending++] =
	    (struct call){ f.request_id, call.method_id };
}

static void
listen_to_it(void)
{
	static uint8_t buf[65536];
	const uint8_t *payload;
	size_t len, used, need, at = 0;
	ssize_t n;

	if (h.fd < 0 && (h.fd = victim_accept()) < 0)
		return;
	n = recv(h.fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n <= 0)
		return;
	if ((h.in = realloc(h.in, h.in_len + (size_t)n)) == NULL)
		abort();
	memcpy(h.in + h.in_len, buf, (size_t)n);
	h.in_len += (size_t)n;
	while (frame_next(h.in + at, h.in_len - at, &payload, &len, &used,
	    &need) == FRAME_OK) {
		take_frame(payload, len);
		at += used;
	}
	memmove(h.in, h.in + at, h.in_len - at);
	h.in_len -= at;
}

static void
turn(unsigned n)
{
	while (n-- > 0) {
		loop_run_once(h.loop);
		listen_to_it();
	}
}

/* ---- what it is told ---- */

/* Memory for a producer: good, unsealed, of a wrong size. */
static int
some_memory(unsigned how)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at;

	if (fd < 0 || ftruncate(fd, how % 8 == 7 ? 5000 : 65536) != 0)
		abort();
	if (how % 8 != 6)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	if (h.shm != NULL)
		return fd;
	at = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED && how % 8 != 7) {
		h.shm = at;
		h.shm_len = 65536;
	} else if (at != MAP_FAILED) {
		munmap(at, 65536);
	}
	return fd;
}

static void
reply(const struct script_op *op)
{
	struct call c = { op->how[0], 1 };
	bool more = op->who & 1;
	uint8_t head[IPC_HEAD_MAX];
	struct pb_writer m, w;
	size_t i = op->who / 2;
	int fd = -1;

	if (h.n_pending > 0) {
		i %= h.n_pending;
		c = h.pending[i];
		if (!more)
			memmove(h.pending + i, h.pending + i + 1,
			    (--h.n_pending - i) * sizeof(h.pending[0]));
	}
	pb_writer_init(&m);
	pb_writer_init(&w);
	if (hostile_reply(&m, h.victim, c.method, op) == HOSTILE_WITH_MEMORY)
		fd = some_memory(op->how[5]);
	pb_put_raw(&w, head, ipc_put_reply_head(head, c.id,
	    op->what / 16 % 16 != 15, more, m.len));
	if (m.len > 0)
		pb_put_raw(&w, m.data, m.len);
	send_all(w.data, w.len, fd);
	if (fd >= 0)
		close(fd);
	pb_writer_done(&m);
	pb_writer_done(&w);
}

static void
tell_error(const struct script_op *op)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, op->how[0], IPC_REQUEST_ERROR);
	pb_put_bytes(&w, 1, op->how, 6);
	ipc_frame_end(&w, mark);
	send_all(w.data, w.len, -1);
	pb_writer_done(&w);
}

static void
act(const struct script_op *op)
{
	switch (op->what % 16) {
	case 0:
		turn(1 + op->how[0] % 4);
		break;
	case 1:
		victim_act(op->how[0]);
		break;
	case 2:
		if (h.shm_len > 0)
			script_fill(h.shm + (op->how[0] % 16u) * 4096u +
			    op->how[1] % 16u, 16, op->how[2]);
		break;
	case 3:
		if (op->how[0] >= 240)
			tell_error(op);
		else if (op->how[0] >= 230)
			send_all(op->how, 6, -1);
		break;
	case 4:
		if (op->how[0] >= 240 && h.fd >= 0)
			shutdown(h.fd, SHUT_WR);
		break;
	default:
		reply(op);
		if (op->how[5] & 1)
			turn(1);
		break;
	}
}

void
fuzz_hostile_host(const uint8_t *data, size_t size)
{
	struct script_op op;
	size_t i;

	if (size < SCRIPT_RECORD)
		return;
	log_init("fuzz", LOG_LEVEL_ERROR);
	memset(&h, 0, sizeof(h));
	if ((h.loop = loop_new()) == NULL)
		abort();
	h.victim = (enum victim)(data[0] % VICTIMS);
	h.flags = data[1];
	h.fd = victim_begin(h.loop, h.victim);
	turn(3);
	for (i = 1; script_op(data, size, i, &op); i++)
		act(&op);
	turn(3);
	if (h.fd >= 0)
		close(h.fd);
	turn(3);
	victim_end();
	loop_free(h.loop);
	free(h.in);
	if (h.shm != NULL)
		munmap(h.shm, h.shm_len);
}
