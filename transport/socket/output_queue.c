#include "transport/socket/output_queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Small frames share chunks of at least this many bytes. */
#define OUTQ_CHUNK_BYTES 4096u

struct output_queue_chunk {
	struct output_queue_chunk *next;
	size_t off; /* first byte not sent */
	size_t len; /* end of the bytes */
	size_t cap;
	int fd; /* owned; goes with byte 0; -1: none or sent */
	int sealed; /* began with an fd: takes no more bytes */
	char data[];
};

void
output_queue_init(struct output_queue *q)
{
	memset(q, 0, sizeof(*q));
}

static void
outq_drop_head(struct output_queue *q)
{
	struct output_queue_chunk *c = q->head;

	q->head = c->next;
	if (q->head == NULL)
		q->tail = NULL;
	q->bytes -= c->len - c->off;
	q->memory -= sizeof(*c) + c->cap;
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

void
output_queue_done(struct output_queue *q)
{
	while (q->head != NULL)
		outq_drop_head(q);
}

static struct output_queue_chunk *
outq_append_chunk(struct output_queue *q, size_t cap, int fd)
{
	struct output_queue_chunk *c;

	if ((c = malloc(sizeof(*c) + cap)) == NULL)
		return NULL;
	c->next = NULL;
	c->off = c->len = 0;
	c->cap = cap;
	c->fd = fd;
	c->sealed = fd >= 0;
	if (q->tail != NULL)
		q->tail->next = c;
	else
		q->head = c;
	q->tail = c;
	q->memory += sizeof(*c) + cap;
	return c;
}

static void
chunk_put(struct output_queue_chunk *c, const void *data, size_t len)
{
	if (len == 0)
		return;
	memcpy(c->data + c->len, data, len);
	c->len += len;
}

int
output_queue_add(struct output_queue *q, const void *a, size_t alen,
    const void *b, size_t blen, int fd)
{
	struct output_queue_chunk *c = q->tail;
	size_t len = alen + blen;

	if (c == NULL || fd >= 0 || c->sealed || c->cap - c->len < len) {
		size_t cap = len;

		if (fd < 0 && cap < OUTQ_CHUNK_BYTES)
			cap = OUTQ_CHUNK_BYTES;
		if ((c = outq_append_chunk(q, cap, fd)) == NULL)
			return -1;
	}
	chunk_put(c, a, alen);
	chunk_put(c, b, blen);
	q->bytes += len;
	return 0;
}

int
output_queue_peek(const struct output_queue *q, struct iovec *iov, int max,
    int *fd)
{
	const struct output_queue_chunk *c;
	int n = 0;

	*fd = -1;
	for (c = q->head; c != NULL && n < max; c = c->next) {
		if (c->fd >= 0) {
			if (n > 0)
				break;
			*fd = c->fd;
		}
		iov[n].iov_base = (void *)(c->data + c->off);
		iov[n].iov_len = c->len - c->off;
		n++;
		if (*fd >= 0)
			break;
	}
	return n;
}

void
output_queue_consume(struct output_queue *q, size_t n)
{
	struct output_queue_chunk *c;

	while (n > 0 && (c = q->head) != NULL) {
		size_t left = c->len - c->off;

		if (n >= left) {
			n -= left;
			outq_drop_head(q);
			continue;
		}
		c->off += n;
		q->bytes -= n;
		if (c->fd >= 0) {
			close(c->fd);
			c->fd = -1;
		}
		n = 0;
	}
}
