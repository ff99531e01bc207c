#include "relay/outbox/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/base/failure.h"
#include "transport/loop/loop.h"

static int
begin(struct outbox *o, bool found, char *err, size_t err_size)
{
	if (ob_recover(o, found) != 0)
		return FAILURE(err, err_size, "no memory for the outbox");
	if ((!o->recovered && ob_new_link(o) != 0) ||
	    ob_spool_relay_id(o, found) != 0)
		return FAILURE(err, err_size, "no random numbers for a link");
	if (arena_link(&o->arena)->overflowed != 0)
		ob_overflow(o);
	ob_keep_read_reserve(o); /* first: others take pages */
	ob_keep_spare(o);
	ob_old_pump(o);
	ob_pump(o);
	return 0;
}

static void
init(struct outbox *o, const struct outbox_setup *setup)
{
	o->loop = setup->loop;
	o->ops = setup->ops;
	o->arg = setup->arg;
	o->drop = setup->drop;
	o->synchronous = setup->synchronous;
	o->arena.fd = -1;
	o->spool.dirfd = -1;
	o->spool.lock = -1;
	o->spare = ARENA_NONE;
	o->spool.next_id = 1;
	TAILQ_INIT(&o->spool.segments);
	TAILQ_INIT(&o->channels);
	TAILQ_INIT(&o->sent);
	TAILQ_INIT(&o->gone);
	TAILQ_INIT(&o->old);
	TAILQ_INIT(&o->turns[0]);
	TAILQ_INIT(&o->turns[1]);
}

static int
make_room(struct outbox *o, char *err, size_t err_size)
{
	o->unplaced = malloc(LINK_BLOCK_MAX);
	o->scratch = malloc(OB_STRIP_BYTES);
	o->rest = malloc(OB_STRIP_BYTES);
	o->left = malloc(OB_STRIP_BYTES);
	if (o->loop != NULL)
		o->trim = loop_timer_new(o->loop, ob_trim_cb, o);
	if (o->unplaced != NULL && o->scratch != NULL && o->rest != NULL &&
	    o->left != NULL && (o->trim != NULL || o->loop == NULL))
		return 0;
	return FAILURE(err, err_size, "no memory for the outbox");
}

struct outbox *
outbox_open(const struct outbox_setup *setup, char *err, size_t err_size)
{
	struct outbox *o;
	bool found = false;

	if ((o = calloc(1, sizeof(*o))) == NULL) {
		snprintf(err, err_size, "no memory for the outbox");
		return NULL;
	}
	init(o, setup);
	if (make_room(o, err, err_size) != 0 ||
	    arena_open(&o->arena, setup->state_dirfd, setup->memory_bytes,
	    &found, err, err_size) != 0 ||
	    (setup->spool_dir != NULL &&
	    (ob_spool_open(o, setup, err, err_size) != 0 ||
	    ob_spool_start(o, err, err_size) != 0)) ||
	    begin(o, found, err, err_size) != 0) {
		outbox_close(o);
		return NULL;
	}
	return o;
}

static void
free_list(struct ob_blocks *list)
{
	struct ob_block *b;

	while ((b = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, b, link);
		free(b->buffer);
		free(b);
	}
}

void
outbox_close(struct outbox *o)
{
	struct ob_channel *c;

	if (o == NULL)
		return;
	ob_spool_close(o); /* first: its thread works on the blocks */
	while ((c = TAILQ_FIRST(&o->channels)) != NULL) {
		free_list(&c->blocks);
		ob_channel_free(o, c);
	}
	hash_map_done(&o->by_id);
	free_list(&o->gone);
	free_list(&o->old);
	loop_timer_free(o->trim);
	if (o->loop != NULL)
		loop_cancel(o->loop, o);
	arena_close(&o->arena);
	free(o->unplaced);
	free(o->scratch);
	free(o->rest);
	free(o->left);
	free(o);
}

void
outbox_state(const struct outbox *o, struct outbox_state *out)
{
	const struct arena_link *l = arena_link(&o->arena);

	memset(out, 0, sizeof(*out));
	out->resumable = l->linked != 0;
	out->overflowed = l->overflowed != 0;
	memcpy(out->link_id, l->link_id, LINK_ID_BYTES);
	memcpy(out->collector_id, l->collector_id, LINK_ID_BYTES);
	memcpy(out->relay_id, o->arena.head->relay_id, LINK_ID_BYTES);
	out->last_sent = l->last_sent;
	out->last_acked = l->last_acked;
	out->sent_bytes = l->sent_bytes;
	out->received = l->received;
	out->last_channel = o->arena.head->last_channel;
}

void
outbox_linked(struct outbox *o, const uint8_t link_id[LINK_ID_BYTES],
    const uint8_t collector_id[LINK_ID_BYTES])
{
	struct arena_link l = *arena_link(&o->arena);

	memcpy(l.link_id, link_id, LINK_ID_BYTES);
	memcpy(l.collector_id, collector_id, LINK_ID_BYTES);
	l.linked = 1;
	arena_set_link(&o->arena, &l);
}

void
outbox_set_received(struct outbox *o, uint64_t number)
{
	atomic_store_explicit(&arena_link(&o->arena)->received, number,
	    memory_order_release);
}

uint32_t
outbox_new_channel(struct outbox *o)
{
	return atomic_fetch_add(&o->arena.head->last_channel, 1) + 1;
}

void
outbox_reset(struct outbox *o, uint32_t cause)
{
	ob_old_all(o, cause);
	if (ob_new_link(o) != 0)
		ob_overflow(o);
	ob_old_pump(o);
	ob_pump(o);
}

void
outbox_stats(const struct outbox *o, struct outbox_stats *out)
{
	const struct arena *a = &o->arena;
	const struct ob_spool *s = &o->spool;
	uint32_t taken;
	uint64_t oldest = UINT64_MAX, now = ob_now_ms();
	const struct ob_channel *c;
	size_t i;

	memset(out, 0, sizeof(*out));
	taken = arena_taken(a);
	if (s->read_reserve == RESERVE_FREE)
		taken -= OB_READ_RESERVE;
	if (o->spare != ARENA_NONE)
		taken--;
	out->memory_bytes = (uint64_t)taken * ARENA_PAGE;
	if (s->disk != NULL) {
		out->spool_bytes = s->used;
		out->spool_limit = s->limit;
		out->spool_cut_bytes = s->cut_bytes;
		out->spool_damaged = s->damaged;
		if (s->state != SPOOL_WORKS)
			out->spool_error = s->error;
	}
	out->memory_limit = (uint64_t)arena_usable(a) * ARENA_PAGE;
	out->blocks_on_the_way = o->sent_count;
	TAILQ_FOREACH (c, &o->channels, all)
		if (c->unsent != NULL && c->unsent->used != 0 &&
		    c->unsent->time_ms < oldest)
			oldest = c->unsent->time_ms;
	if (oldest < now)
		out->oldest_ms = now - oldest;
	for (i = 0; i < LINK_LOSS_OF_RELAYS; i++) {
		out->chunks_lost[i] = a->head->lost[0][i];
		out->packets_lost[i] = a->head->lost[1][i];
		out->bytes_lost[i] = a->head->lost[2][i];
	}
}
