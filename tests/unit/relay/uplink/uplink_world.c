#include "tests/unit/relay/uplink/uplink_world.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Turns of the loop after which nothing moves: all is on this machine. */
#define SETTLE_TURNS 40

struct uplink_world *world;

static void
ready(void *arg)
{
	uplink_outbox_ready(world->u);
}

static void
overflow(void *arg)
{
	uplink_outbox_overflow(world->u);
}

static void
make_relay(void)
{
	static const struct outbox_ops ops = {
		.ready = ready,
		.overflow = overflow,
	};
	struct outbox_setup boxed = {
		.loop = world->loop,
		.state_dirfd = world->state_dirfd,
		.memory_bytes = 1u << 20,
		.synchronous = true,
		.ops = &ops,
	};
	struct uplink_setup setup = {
		.state_dirfd = -1,
		.loop = world->loop,
		.settings = &world->settings,
		.to = &world->to,
		.n_to = 1,
	};
	char err[256] = "";

	world->outbox = outbox_open(&boxed, err, sizeof(err));
	if (world->outbox == NULL)
		fail_msg("%s", err);
	setup.outbox = world->outbox;
	world->u = uplink_new(&setup, err, sizeof(err));
	if (world->u == NULL)
		fail_msg("%s", err);
}

static void
end_relay(void)
{
	uplink_free(world->u);
	world->u = NULL;
	outbox_close(world->outbox);
}

int
world_setup(void **state)
{
	char err[256] = "";

	log_init("test", LOG_LEVEL_ERROR);
	fakes_reset();
	fake_time_reset();
	assert_non_null(world = calloc(1, sizeof(*world)));
	assert_non_null(world->loop = loop_new());
	strcpy(world->dir, "/tmp/test_uplink.XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	snprintf(world->path, sizeof(world->path), "%s/relay", world->dir);
	world->state_dirfd = open(world->dir,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(world->state_dirfd >= 0);
	assert_int_equal(addr_parse(&world->to, world->path, err,
	    sizeof(err)), 0);
	world->settings.machine_name = (char *)"device-7";
	world->settings.machine_id = (char *)"boot-7";
	world->settings.min_retry_ms = 200;
	world->settings.max_retry_ms = 15000;
	collector_init(&world->collector, world->loop);
	make_relay();
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

int
world_teardown(void **state)
{
	end_relay();
	assert_int_equal(fakes.classics, 0);
	assert_false(fakes.clocks_run);
	collector_done(&world->collector);
	close(world->state_dirfd);
	loop_free(world->loop);
	nftw(world->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(world);
	return 0;
}

void
world_settle(void)
{
	int i;

	for (i = 0; i < SETTLE_TURNS; i++)
		loop_run_once(world->loop);
}

void
world_pass(uint64_t ms)
{
	fake_time_pass(ms, world_settle);
}

void
world_start(void)
{
	uplink_start(world->u, (struct producers *)&fakes);
	world_settle();
}

void
world_link(void)
{
	collector_listen(&world->collector, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect("recover remove; announce 0; ");
	collector_expect(&world->collector, "");
	world->collector.why = TRIBUTARY__LINK_OPENED__WHY__RESUMED;
}

void
world_restart(void)
{
	end_relay();
	world_settle();
	fakes.clocks_run = false;
	make_relay();
	world_start();
}

const struct uplink_view *
world_view(void)
{
	static struct uplink_view v;

	uplink_view(world->u, &v);
	return &v;
}

static void
stopped(void *arg)
{
	world->stopped++;
}

void
world_stop(uint64_t linger_ms)
{
	uplink_stop(world->u, linger_ms, stopped, NULL);
}

void
world_put(uint32_t channel, enum link_up kind, const char *text)
{
	struct upstream up = uplink_upward(world->u);

	up.ops->put(up.arg, channel, kind, text, strlen(text), 0);
}

void
world_commit(uint32_t channel, size_t len)
{
	struct upstream up = uplink_upward(world->u);
	uint8_t *out;

	assert_int_equal(up.ops->reserve(up.arg, channel, len, 1, &out),
	    UPSTREAM_ROOM);
	/* Fields of a message: LinkUpBlock is checked to be one. */
	memset(out, 0, len);
	up.ops->commit(up.arg, channel, len);
}
