#include "transport/link/link_out.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define BLOCK_FIRST_BYTES 128u

struct kept_block {
	TAILQ_ENTRY(kept_block) link;
	uint64_t number; /* 0: not sent yet, so it may still grow */
	uint32_t channel;
	uint8_t *data;
	size_t len;
	size_t cap;
};
TAILQ_HEAD(kept_blocks, kept_block);

/*
 * Blocks with numbers come first, in their order; only the last one grows.
 * next is the first block that was not sent on this connection: it, and blocks
 * behind it, may have numbers from an earlier connection.
 */
struct link_out {
	struct kept_blocks blocks;
	struct kept_block *next; /* NULL: all were sent */
	size_t limit;
	size_t bytes;
	uint64_t last_sent;
	uint64_t acked;
};

/* The charge for a block, more than its bytes: small ones must not be free. */
static size_t
block_cost(const struct kept_block *b)
{
	return b->len + sizeof(*b);
}

static void
drop_block(struct link_out *o, struct kept_block *b)
{
	if (o->next == b)
		o->next = TAILQ_NEXT(b, link);
	TAILQ_REMOVE(&o->blocks, b, link);
	o->bytes -= block_cost(b);
	free(b->data);
	free(b);
}

struct link_out *
link_out_new(size_t limit)
{
	struct link_out *o;

	if ((o = calloc(1, sizeof(*o))) == NULL)
		return NULL;
	TAILQ_INIT(&o->blocks);
	o->limit = limit;
	return o;
}

void
link_out_free(struct link_out *o)
{
	struct kept_block *b;

	if (o == NULL)
		return;
	while ((b = TAILQ_FIRST(&o->blocks)) != NULL)
		drop_block(o, b);
	free(o);
}

static int
grow_block(struct kept_block *b, size_t len)
{
	size_t cap = b->cap > 0 ? b->cap : BLOCK_FIRST_BYTES;
	uint8_t *data;

	if (b->data != NULL && len <= b->cap)
		return 0;
	while (cap < len)
		cap *= 2;
	if ((data = realloc(b->data, cap)) == NULL)
		return -1;
	b->data = data;
	b->cap = cap;
	return 0;
}

/* The last block, if so many bytes more of the channel can join it. */
static struct kept_block *
open_block(struct link_out *o, uint32_t channel, size_t len)
{
	struct kept_block *b = TAILQ_LAST(&o->blocks, kept_blocks);

	if (b == NULL || b->number != 0 || b->channel != channel)
		return NULL;
	return b->len + len <= LINK_BLOCK_MAX ? b : NULL;
}

static struct kept_block *
new_block(struct link_out *o, uint32_t channel, size_t len)
{
	struct kept_block *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	if (grow_block(b, len) != 0) {
		free(b);
		return NULL;
	}
	b->channel = channel;
	TAILQ_INSERT_TAIL(&o->blocks, b, link);
	o->bytes += block_cost(b);
	if (o->next == NULL)
		o->next = b;
	return b;
}

int
link_out_put(struct link_out *o, uint32_t channel, enum link_down kind,
    const void *data, size_t len)
{
	uint8_t head[LINK_MESSAGE_HEAD_MAX];
	struct kept_block *b;
	size_t head_len, cost;

	if (len > LINK_MESSAGE_MAX)
		return -1;
	head_len = link_put_message_head(head, kind, len);
	b = open_block(o, channel, head_len + len);
	cost = head_len + len + (b == NULL ? sizeof(*b) : 0);
	if (o->bytes > o->limit || cost > o->limit - o->bytes)
		return -1;
	if (b != NULL) {
		if (grow_block(b, b->len + head_len + len) != 0)
			return -1;
	} else if ((b = new_block(o, channel, head_len + len)) == NULL) {
		return -1;
	}
	memcpy(b->data + b->len, head, head_len);
	if (len > 0)
		memcpy(b->data + b->len + head_len, data, len);
	b->len += head_len + len;
	o->bytes += head_len + len;
	return 0;
}

bool
link_out_next(struct link_out *o, struct link_out_block *out)
{
	struct kept_block *b = o->next;

	if (b == NULL)
		return false;
	if (b->number == 0)
		b->number = ++o->last_sent;
	o->next = TAILQ_NEXT(b, link);
	out->number = b->number;
	out->channel = b->channel;
	out->data = b->data;
	out->len = b->len;
	return true;
}

int
link_out_acked(struct link_out *o, uint64_t number)
{
	struct kept_block *b;

	if (number > o->last_sent)
		return -1;
	while ((b = TAILQ_FIRST(&o->blocks)) != NULL && b->number != 0 &&
	    b->number <= number)
		drop_block(o, b);
	if (number > o->acked)
		o->acked = number;
	return 0;
}

int
link_out_resume(struct link_out *o, uint64_t received)
{
	if (received < o->acked || link_out_acked(o, received) != 0)
		return -1;
	o->next = TAILQ_FIRST(&o->blocks);
	return 0;
}

size_t
link_out_bytes(const struct link_out *o)
{
	return o->bytes;
}
