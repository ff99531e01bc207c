#include "tests/unit/relay/outbox/outbox_world.h"

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

#include "relay/outbox/outbox_internal.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

static void
ready(void *arg)
{
	struct outbox_world *w = arg;

	w->ready++;
}

static void
overflow(void *arg)
{
	struct outbox_world *w = arg;

	w->overflows++;
}

static const struct outbox_ops ops = { .ready = ready, .overflow = overflow };

void
world_init(struct outbox_world *w, size_t memory_bytes)
{
	memset(w, 0, sizeof(*w));
	assert_non_null(w->loop = loop_new());
	snprintf(w->dir, sizeof(w->dir), "/tmp/outbox-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->spool, sizeof(w->spool), "%s/spool", w->dir);
	w->setup.loop = w->loop;
	w->setup.state_dirfd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->setup.state_dirfd >= 0);
	w->setup.memory_bytes = memory_bytes;
	w->setup.ops = &ops;
	w->setup.arg = w;
	w->setup.synchronous = true;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

void
world_done(struct outbox_world *w)
{
	outbox_close(w->o);
	close(w->setup.state_dirfd);
	loop_free(w->loop);
	nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void
world_spool(struct outbox_world *w, uint64_t bytes)
{
	mkdir(w->spool, 0700);
	w->setup.spool_dir = w->spool;
	w->setup.spool_bytes = bytes;
}

void
world_open(struct outbox_world *w)
{
	char err[256] = "";

	w->o = outbox_open(&w->setup, err, sizeof(err));
	if (w->o == NULL)
		fail_msg("%s", err);
}

void
world_reopen(struct outbox_world *w)
{
	outbox_close(w->o);
	world_open(w);
}

void
world_turn(struct outbox_world *w)
{
	loop_run_once(w->loop);
}

void
world_take_every_page(struct outbox_world *w)
{
	while (arena_take(&w->o->arena, 1) != ARENA_NONE)
		;
}

size_t
chunk_encode(uint8_t *out, const struct chunk *c)
{
	uint8_t head[SHM_CHUNK_HEADER_BYTES];
	uint16_t packets = (uint16_t)(c->fragments | c->flags << 10);
	struct pb_writer w;
	size_t mark, len, i;
	uint8_t *data;

	assert_non_null(data = malloc(sizeof(head) + c->payload));
	memcpy(head, &c->id, 4);
	head[4] = (uint8_t)c->writer;
	head[5] = (uint8_t)(c->writer >> 8);
	memcpy(head + 6, &packets, 2);
	memcpy(data, head, sizeof(head));
	for (i = 0; i < c->payload; i++)
		data[sizeof(head) + i] = (uint8_t)(c->id + i);
	if (c->payload >= sizeof(c->mark))
		memcpy(data + sizeof(head), &c->mark, sizeof(c->mark));
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 3, c->buffer);
	pb_put_bytes(&w, 4, data, sizeof(head) + c->payload);
	if (c->incomplete)
		pb_put_uint(&w, 5, 1);
	pb_nest_end(&w, mark);
	memcpy(out, w.data, w.len);
	len = w.len;
	pb_writer_done(&w);
	free(data);
	return len;
}

bool
world_chunk(struct outbox_world *w, uint32_t channel, const struct chunk *c)
{
	uint8_t *p = outbox_reserve(w->o, channel, c->payload + 64, true);

	if (p == NULL)
		return false;
	outbox_commit(w->o, channel, chunk_encode(p, c));
	return true;
}
