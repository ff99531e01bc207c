#include "transport/stream/stream_far.h"

#include <stdlib.h>
#include <string.h>

#include "transport/loop/loop.h"
#include "transport/stream/stream_internal.h"
#include "transport/tls/tls.h"

/*
 * Output on its way to the thread counts, in memory and against the limit,
 * beyond so much: it is there for a turn of two loops.
 */
#define TRANSIT_FREE    (16u * 1024u)
#define TRANSIT_BURST   (256u * 1024u)
/* Small writes of one turn share a block of so much, then of more. */
#define WRITE_BLOCK     2000u
#define WRITE_BLOCK_BIG (32u * 1024u)

/* ---- the thread ---- */

static void
send_bye(struct io_line *line)
{
	io_thread_leave(line->thread);
	stream_far_post(line, &line->bye, 0);
}

static void
far_hurry(struct stream *s)
{
	struct stream_far *f = s->lower;

	if (f->line != NULL && !f->closed)
		stream_far_post(f->line, &f->line->urgent, 0);
}

/* ---- output ---- */

/*
 * Bytes that the socket has not taken; of them, in *in_transit, those that its
 * thread has not received yet.
 */
static size_t
queued_bytes(const struct stream_far *f, size_t *in_transit)
{
	struct io_line *line = f->line;
	uint64_t accepted, taken;

	if (line == NULL) {
		*in_transit = 0;
		return 0;
	}
	taken = atomic_load_explicit(&line->taken, memory_order_acquire);
	accepted = atomic_load_explicit(&line->accepted, memory_order_relaxed);
	*in_transit = (size_t)(f->given - accepted);
	return (size_t)(f->given - taken);
}

static size_t
far_queued(const struct stream *s)
{
	size_t in_transit;

	return queued_bytes(s->lower, &in_transit);
}

static size_t
far_memory(const struct stream *s)
{
	const struct stream_far *f = s->lower;

	return f->blocks + f->counted;
}

/* Counts output that the thread has, and that is on its way there. */
static void
far_recount(struct stream *s)
{
	struct stream_far *f = s->lower;
	size_t in_transit, queued = queued_bytes(f, &in_transit);
	bool wants;

	if (in_transit <= TRANSIT_FREE)
		in_transit = 0;
	f->counted = in_transit;
	if (f->line != NULL) {
		f->counted += atomic_load_explicit(&f->line->memory,
		    memory_order_relaxed);
		if (queued > s->low)
			s->output = OUT_OVER_LOW;
		wants = s->output == OUT_OVER_LOW || in_transit > 0;
		if (atomic_load_explicit(&f->line->wants_look,
		    memory_order_relaxed) != wants)
			atomic_store(&f->line->wants_look, wants);
	}
	stream_count(s);
}

/* A block of the next batch with room for len more bytes.  NULL: no memory. */
static struct io_block *
block_with_room(struct stream_far *f, size_t len)
{
	struct mailbox *in = &f->line->thread->in;
	bool is_first = f->open == NULL || f->open_batch != in->batch;
	size_t cap = is_first ? WRITE_BLOCK : WRITE_BLOCK_BIG;
	struct io_block *b;

	if (!is_first && f->open->cap - f->open->len >= len)
		return f->open;
	if ((b = io_block_new(cap > len ? cap : len)) == NULL)
		return NULL;
	b->head.kind = IO_WRITE;
	b->head.line = f->line;
	return b;
}

static void
put(struct io_block *b, const void *data, size_t len)
{
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
}

/* Takes all bytes: the socket's thread queues them. */
static ssize_t
far_write(struct stream *s, struct iovec *iov, int niov, int fd)
{
	struct stream_far *f = s->lower;
	size_t len = 0, in_transit, queued;
	struct io_block *block, *before = f->open;
	uint64_t batch;
	int i;

	for (i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (f->line == NULL || f->closed)
		return (ssize_t)len; /* dropped: the socket is gone */
	batch = f->open_batch;
	if ((block = block_with_room(f, len)) == NULL) {
		stream_end_later(s, STREAM_NO_MEMORY);
		return (ssize_t)len;
	}
	queued = queued_bytes(f, &in_transit);
	if (queued == 0)
		f->waits_since_ms = loop_turn_ms(s->loop);
	for (i = 0; i < niov; i++)
		put(block, iov[i].iov_base, iov[i].iov_len);
	f->given += len;
	queued += len;
	in_transit += len;
	if (queued - in_transit + (in_transit > TRANSIT_BURST ?
	    in_transit - TRANSIT_BURST : 0) > s->hard)
		stream_end_later(s, STREAM_SLOW);
	else
		far_recount(s);
	if (block != before || batch != f->line->thread->in.batch) {
		f->open = block;
		f->open_batch = f->line->thread->in.batch;
		stream_far_post(f->line, &block->head, len);
	}
	return (ssize_t)len;
}

static void
move_up(uint64_t *ms, uint64_t to_ms)
{
	if (*ms < to_ms)
		*ms = to_ms;
}

static void
far_times(const struct stream *s, uint64_t *in_ms, uint64_t *out_ms)
{
	const struct stream_far *f = s->lower;

	move_up(out_ms, f->waits_since_ms);
	if (f->line == NULL)
		return;
	move_up(in_ms, atomic_load_explicit(&f->line->in_ms,
	    memory_order_relaxed));
	move_up(out_ms, atomic_load_explicit(&f->line->out_ms,
	    memory_order_relaxed));
}

/* ---- messages ---- */

static void
take_opened(struct stream *s, struct io_line *line)
{
	struct stream_far *f = s->lower;

	f->identity = line->identity;
	line->identity = NULL;
	s->last_in_ms = loop_turn_ms(s->loop);
	stream_tls_name_peer(s, f->identity);
	stream_set_state(s, ST_OPEN);
	if (s->ops->opened != NULL)
		s->ops->opened(s, s->arg);
}

static void
take_look(struct stream *s)
{
	far_recount(s);
	if (s->output != OUT_OVER_LOW || far_queued(s) > s->low)
		return;
	stream_tell_drained(s);
	if (stream_is_live(s))
		far_recount(s);
}

static void
take_closed(struct stream *s, struct io_line *line)
{
	struct stream_far *f = s->lower;
	bool orderly = line->why == STREAM_EOF || line->why == STREAM_RESET;

	f->closed = true;
	f->why = line->why;
	f->detail = line->detail;
	line->detail = NULL;
	if (stream_is_live(s) && (f->first == NULL || !orderly))
		stream_end_now(s, f->why);
}

static void
deliver_to(struct io_line *line, struct io_mail *m)
{
	struct stream *s = line->front;

	switch (m->kind) {
	case IO_OPENED:
		if (s != NULL && stream_is_live(s))
			take_opened(s, line);
		return;
	case IO_DATA:
		if (s != NULL && stream_is_live(s))
			stream_far_take(s, (struct io_block *)m);
		else
			stream_far_return(line, (struct io_block *)m);
		return;
	case IO_LOOK:
		/* First: what is stored from now on makes another one. */
		(void)atomic_exchange(&line->look_due, false);
		if (s != NULL && stream_is_live(s))
			take_look(s);
		return;
	case IO_CLOSED:
		if (s != NULL)
			take_closed(s, line);
		else
			send_bye(line);
		return;
	case IO_START:
	case IO_WRITE:
	case IO_RESUME:
	case IO_UNPACK:
	case IO_URGENT:
	case IO_CLOSE:
	case IO_BYE:
	case IO_STOP:
		return; /* the other way */
	}
}

void
stream_far_deliver(struct mail *m, void *thread)
{
	struct io_mail *im = (struct io_mail *)m;

	deliver_to(im->line, im);
}

/* ---- its life ---- */

static struct io_line *
line_new(struct io_thread *t, const struct stream *s, struct tls_conn *tls)
{
	static const enum io_kind kinds[] = {
		IO_START, IO_RESUME, IO_UNPACK, IO_URGENT, IO_CLOSE, IO_BYE,
		IO_OPENED, IO_LOOK, IO_CLOSED,
	};
	struct io_line *line = calloc(1, sizeof(*line));
	struct io_mail *mails[] = {
		&line->start, &line->resume, &line->unpack, &line->urgent,
		&line->close, &line->bye, &line->opened, &line->look,
		&line->closed,
	};
	size_t i;

	if (line == NULL || (line->begin = malloc(sizeof(*line->begin))) == NULL) {
		free(line);
		return NULL;
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		mails[i]->kind = kinds[i];
		mails[i]->line = line;
	}
	line->thread = t;
	line->begin->fd = s->fd;
	line->begin->tls = tls;
	line->begin->peer = s->peer;
	return line;
}

static void
far_flush(struct stream *s)
{
	struct stream_far *f = s->lower;

	f->line->flush = true;
}

static void
far_drop(struct stream *s)
{
	struct stream_far *f = s->lower;
	struct io_line *line = f->line;

	stream_far_drop_input(f);
	f->line = NULL;
	line->front = NULL;
	if (f->closed)
		send_bye(line);
	else
		stream_far_post(line, &line->close, 0);
}

static const char *
far_detail(const struct stream *s)
{
	const struct stream_far *f = s->lower;

	return f->detail != NULL ? f->detail : "";
}

static void
far_free(struct stream *s)
{
	struct stream_far *f = s->lower;

	free(f->in_hands);
	free(f->detail);
	tls_identity_free(f->identity);
	free(f);
}

static const struct stream_backend far = {
	.write = far_write,
	.arm_input = stream_far_hold,
	.go_on = stream_far_feed,
	.hurry = far_hurry,
	.queued = far_queued,
	.memory = far_memory,
	.times = far_times,
	.flush = far_flush,
	.drop = far_drop,
	.free = far_free,
	.detail = far_detail,
};

int
stream_far_begin(struct stream *s, const struct stream_setup *setup)
{
	struct io_thread *t = io_pool_choose(setup->io);
	struct stream_far *f = calloc(1, sizeof(*f));
	struct io_line *line = NULL;

	s->peer.can_pass_fds = false;
	if (f == NULL || (line = line_new(t, s, setup->tls)) == NULL) {
		io_thread_leave(t);
		free(f);
		return -1;
	}
	f->end = &f->first;
	f->line = line;
	line->front = s;
	s->backend = &far;
	s->lower = f;
	s->fd = -1;
	if (setup->tls != NULL)
		stream_tls_await(s);
	stream_far_post(line, &line->start, 0);
	return 0;
}

bool
stream_set_unpack(struct stream *s, const struct stream_unpack *u)
{
	struct stream_far *f = s->lower;

	if (s->backend != &far || !stream_is_live(s) || f->line == NULL ||
	    f->closed || f->line->unpacking.frame != NULL)
		return false;
	f->line->unpacking = *u;
	stream_far_post(f->line, &f->line->unpack, 0);
	return true;
}
