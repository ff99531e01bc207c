#include "tests/bench/load/chunker.h"

#include <stdlib.h>
#include <string.h>

#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

#define SIZE_BYTES NUMBERED_SIZE_BYTES /* of a fragment, too */
/* A fragment is begun where so much of it fits. */
#define FRAGMENT_MIN 32u
#define FRAGMENTS_MAX 1000u

void
chunker_init(struct chunker *c, uint32_t key, bool patching)
{
	memset(c, 0, sizeof(*c));
	c->key = key;
	c->patching = patching;
}

void
chunker_begin_anew(struct chunker *c)
{
	c->flags = NUMBERED_STATE_CLEARED | NUMBERED_NEEDS_STATE;
}

void
chunker_done(struct chunker *c)
{
	free(c->open);
	c->open = NULL;
}

static void
hand_out(struct chunker *c, uint8_t flags, chunker_fn fn, void *arg)
{
	struct chunker_chunk chunk = {
		.id = c->next_chunk++,
		.fragments = c->fragments,
		.flags = flags,
		.payload = c->open,
		.len = c->used,
	};

	c->used = 0;
	c->fragments = 0;
	fn(arg, &chunk);
}

static void
put_wide(uint8_t out[SIZE_BYTES], size_t v)
{
	unsigned i;

	for (i = 0; i < SIZE_BYTES - 1; i++, v >>= 7)
		out[i] = (uint8_t)(v | 0x80);
	out[i] = (uint8_t)(v & 0x7f);
}

/* The packet's size is not known yet, as far as anybody can tell. */
static bool
hide_size(struct chunker *c, uint8_t *fragment, size_t size_at)
{
	struct chunker_patch *p;

	if (!c->patching || c->n_patches == CHUNKER_PATCHES_MAX)
		return false;
	p = &c->patches[c->n_patches++];
	p->number = c->next_packet;
	p->chunk = c->next_chunk;
	p->offset = (uint32_t)(fragment + size_at - c->open);
	memcpy(p->size, fragment + size_at, SIZE_BYTES);
	memset(fragment + size_at, 0, SIZE_BYTES);
	return true;
}

int
chunker_packet(struct chunker *c, size_t size, uint64_t timestamp_ns,
    struct pb_writer *scratch, chunker_fn fn, void *arg)
{
	size_t size_at, at = 0, n, room;
	uint8_t flags = 0, *to;

	if (c->open == NULL && (c->open = malloc(CHUNKER_BYTES)) == NULL)
		return -1;
	size_at = numbered_put(scratch, c->key, c->next_packet, timestamp_ns,
	    c->flags, size);
	if (scratch->failed)
		return -1;
	c->flags &= ~(uint32_t)NUMBERED_STATE_CLEARED;
	if (CHUNKER_BYTES - c->used < SIZE_BYTES + FRAGMENT_MIN ||
	    c->fragments == FRAGMENTS_MAX)
		hand_out(c, 0, fn, arg);
	while (at < scratch->len) {
		room = CHUNKER_BYTES - c->used - SIZE_BYTES;
		n = scratch->len - at < room ? scratch->len - at : room;
		to = c->open + c->used;
		put_wide(to, n);
		memcpy(to + SIZE_BYTES, scratch->data + at, n);
		c->used += SIZE_BYTES + n;
		c->fragments++;
		at += n;
		if (at == scratch->len)
			break;
		if (at == n && n >= size_at + SIZE_BYTES &&
		    hide_size(c, to + SIZE_BYTES, size_at))
			flags |= SHM_NEEDS_PATCHING;
		hand_out(c, flags | SHM_LAST_CONTINUES_ON_NEXT, fn, arg);
		flags = SHM_FIRST_CONTINUES_FROM_PREV;
	}
	/* What follows a packet's rest begins in a chunk of its own. */
	if (flags != 0)
		hand_out(c, flags, fn, arg);
	c->next_packet++;
	c->bytes += scratch->len;
	return 0;
}

/* Whole packets only: a chunk that comes twice cannot go on in the next. */
static int
fill_repeated(struct chunker *c, size_t size, uint64_t timestamp_ns,
    struct pb_writer *scratch, chunker_fn fn, void *arg)
{
	do {
		if (chunker_packet(c, size, timestamp_ns, scratch, fn,
			arg) != 0)
			return -1;
	} while (c->used + SIZE_BYTES + scratch->len + FRAGMENT_MIN <=
	    CHUNKER_BYTES);
	c->repeat_len = c->used;
	c->repeat_fragments = c->fragments;
	return 0;
}

int
chunker_repeat(struct chunker *c, size_t size, uint64_t timestamp_ns,
    struct pb_writer *scratch, chunker_fn fn, void *arg)
{
	if (c->repeat_len == 0) {
		if (fill_repeated(c, size, timestamp_ns, scratch, fn, arg) !=
		    0)
			return -1;
	} else {
		c->used = c->repeat_len;
		c->fragments = c->repeat_fragments;
		c->next_packet += c->fragments;
		c->bytes += c->used - (size_t)c->fragments * SIZE_BYTES;
	}
	hand_out(c, 0, fn, arg);
	return 0;
}

bool
chunker_flush(struct chunker *c, chunker_fn fn, void *arg)
{
	if (c->fragments == 0)
		return false;
	hand_out(c, 0, fn, arg);
	return true;
}

void
chunker_put_patches(struct chunker *c, uint32_t buffer, uint16_t writer,
    struct pb_writer *commit)
{
	const struct chunker_patch *p;
	size_t i, mark, inner;

	for (i = 0; i < c->n_patches; i++) {
		p = &c->patches[i];
		mark = pb_nest_begin(commit, 2);
		pb_put_uint(commit, 1, buffer);
		pb_put_uint(commit, 2, writer);
		pb_put_uint(commit, 3, p->chunk);
		inner = pb_nest_begin(commit, 4);
		pb_put_uint(commit, 1, p->offset);
		pb_put_bytes(commit, 2, p->size, SIZE_BYTES);
		pb_nest_end(commit, inner);
		pb_nest_end(commit, mark);
	}
	c->n_patches = 0;
}

uint64_t
chunker_complete(const struct chunker *c)
{
	uint64_t n = c->next_packet - c->fragments;

	return c->n_patches > 0 && c->patches[0].number < n ?
	    c->patches[0].number : n;
}
