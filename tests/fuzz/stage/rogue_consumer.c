#include "tests/fuzz/stage/rogue_consumer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/stage/rogue_config.h"
#include "tests/fuzz/stage/stage.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Methods, by their place in wire-format.md. */
enum {
	ENABLE = 1, DISABLE, READ, FREE, FLUSH, START, CHANGE, DETACH, ATTACH,
	STATS, OBSERVE, STATE, CAPABILITIES, BUGREPORT, CLONE,
};

#define CONTROL_METHODS 6u

static void
on_reply(void *arg, uint64_t request, bool ok, bool more, const uint8_t *msg,
    size_t len, int fd)
{
	struct rogue_consumer *c = arg;

	stage_require(fd < 0, "a descriptor for a consumer");
	stage_require(pb_well_formed(msg, len), "a reply does not parse");
	c->packets += more;
}

void
rogue_consumer_init(struct rogue_consumer *c, struct stage *s)
{
	memset(c, 0, sizeof(*c));
	c->stage = s;
	wire_init(&c->wire);
	c->wire.reply = on_reply;
	c->wire.arg = c;
	stage_add(s, &c->wire);
}

void
rogue_consumer_leave(struct rogue_consumer *c)
{
	wire_close(&c->wire);
}

static void
arrive(struct rogue_consumer *c, bool control)
{
	rogue_consumer_leave(c);
	c->control = control;
	stage_open(c->stage, &c->wire, control ? STAGE_CONTROL :
	    STAGE_CONSUMER, &stage_stranger);
}

/* For a file: full, swallowing, small, a pipe that nobody reads, none. */
static int
some_fd(unsigned how)
{
	int fd[2];

	switch (how % 8) {
	case 0:
		return open("/dev/full", O_WRONLY | O_CLOEXEC);
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
	case 3:
		return memfd_create("fuzz", MFD_CLOEXEC);
	case 4:
		if (pipe2(fd, O_CLOEXEC) != 0)
			abort();
		close(fd[0]); /* EPIPE */
		return fd[1];
	case 5:
		return open("/", O_RDONLY | O_CLOEXEC);
	default:
		return -1;
	}
}

/* ---- arguments ---- */

/* Which session: a late one mostly, the neighbour's, none. */
static uint64_t
some_session(const struct rogue_consumer *c, uint8_t b)
{
	uint64_t last = c->stage->service->last_session_id;

	return b < 200 ? last - b % 4 : script_number(b);
}

static void
put_clone(struct rogue_consumer *c, struct pb_writer *a, const uint8_t how[6])
{
	pb_put_uint(a, 1, some_session(c, how[1]));
	pb_put_uint(a, 3, how[0] & 1);
	pb_put_uint(a, 2, how[0] >> 3 & 1);
	if (how[0] & 2)
		pb_put_string(a, 4, script_name(how[2]));
	if (how[0] & 4) {
		pb_put_string(a, 5, script_name(how[3]));
		pb_put_string(a, 6, script_name(how[4]));
		pb_put_uint(a, 9, how[4]);
	}
}

static void
put_args(struct rogue_consumer *c, struct pb_writer *a, uint32_t method,
    const uint8_t how[6])
{
	switch (method) {
	case ENABLE:
		rogue_config_put(a, 1, how);
		if (how[4] > 250)
			pb_put_uint(a, 2, 1);
		break;
	case CHANGE:
		rogue_config_put(a, 1, how);
		break;
	case FLUSH:
		pb_put_uint(a, 1, how[0] < 200 ? how[0] % 3 :
		    script_number(how[1]));
		pb_put_uint(a, 2, how[2]);
		break;
	case FREE:
		pb_put_uint(a, 1, how[0]);
		break;
	case DETACH:
	case ATTACH:
		pb_put_string(a, 1, script_name(how[0]));
		break;
	case OBSERVE:
		pb_put_uint(a, 1, how[0]);
		break;
	case STATE:
		pb_put_uint(a, 1, how[0] & 1);
		break;
	case CLONE:
		put_clone(c, a, how);
		break;
	default:
		break;
	}
}

static void
put_control_args(struct rogue_consumer *c, struct pb_writer *a,
    uint32_t method, const uint8_t how[6])
{
	if (how[0] & 1)
		pb_put_uint(a, 1, some_session(c, how[1]));
	if (how[0] & 2)
		pb_put_string(a, 2, script_name(how[2]));
	if (how[0] & 4)
		pb_put_uint(a, 3, how[3] % 3);
	if (method > 2)
		pb_put_uint(a, 4, how[0] >> 3 & 1);
}

static void
call(struct rogue_consumer *c, uint32_t method, const uint8_t how[6])
{
	struct pb_writer a;
	int fd = -1;

	pb_writer_init(&a);
	if (c->control)
		put_control_args(c, &a, method, how);
	else
		put_args(c, &a, method, how);
	if (how[5] >= 250 && a.len > 0)
		a.len -= 1 + how[5] % a.len % 3;
	if (method == ENABLE || method == CLONE)
		fd = some_fd(how[4]);
	wire_call(&c->wire, method, &a, fd, how[5] % 32 == 31);
	if (fd >= 0)
		close(fd);
	pb_writer_done(&a);
}

static void
say_nonsense(struct rogue_consumer *c, const uint8_t how[6])
{
	struct pb_writer a;
	uint8_t bytes[64];

	script_fill(bytes, sizeof(bytes), how[1]);
	if (how[0] >= 224) {
		wire_send(&c->wire, bytes, 1 + how[2] % sizeof(bytes), -1);
		return;
	}
	pb_writer_init(&a);
	if (how[0] & 1)
		pb_put_raw(&a, how + 2, 4);
	else
		pb_put_raw(&a, bytes, how[2] % sizeof(bytes));
	wire_call(&c->wire, 1 + how[0] % 17, &a, -1, false);
	pb_writer_done(&a);
}

static void
come_and_go(struct rogue_consumer *c, const uint8_t how[6])
{
	switch (how[0] % 8) {
	case 0:
	case 1:
		rogue_consumer_leave(c);
		break;
	case 2:
		c->wire.deaf = how[1] & 1;
		break;
	case 3:
		if (c->wire.fd >= 0)
			shutdown(c->wire.fd, how[1] & 1 ? SHUT_WR : SHUT_RD);
		break;
	case 4:
	case 5:
		arrive(c, true);
		break;
	default:
		arrive(c, false);
		break;
	}
}

void
rogue_consumer_act(struct rogue_consumer *c, const struct script_op *op)
{
	/* Those that make something happen come more often. */
	static const uint8_t methods[] = { ENABLE, ENABLE, ENABLE, DISABLE, READ,
		READ, FREE, FLUSH, START, CHANGE, DETACH, ATTACH, STATS,
		OBSERVE, STATE, CAPABILITIES, BUGREPORT, CLONE, CLONE };
	unsigned what = op->what % 24;

	if (c->wire.fd < 0 && what != 22)
		arrive(c, c->operator);
	if (what == 22)
		come_and_go(c, op->how);
	else if (what == 23)
		say_nonsense(c, op->how);
	else if (c->control)
		call(c, 1 + what % CONTROL_METHODS, op->how);
	else if (what < sizeof(methods))
		call(c, methods[what], op->how);
	else
		call(c, ENABLE, op->how);
}
