#include "transport/loop/loop.h"
#include "transport/stream/stream_far.h"
#include "transport/stream/stream_internal.h"

/* ---- the thread ---- */

/* Resumes the back when its window has room again and it is not held. */
static void
relieve(struct io_line *line)
{
	if (atomic_load(&line->starved) && !atomic_load(&line->held) &&
	    atomic_load(&line->unconsumed) <= IO_LINE_LOW &&
	    atomic_exchange(&line->starved, false))
		stream_far_post(line, &line->resume, 0);
}

static void
give_back(struct io_line *line, struct io_block *b)
{
	atomic_fetch_sub(&line->unconsumed, io_block_size(b));
	io_block_give_back(line->thread, b);
}

/* Counts bytes off `ahead`; lets a thread that waits for that read on. */
static void
come_nearer(struct io_thread *t, size_t bytes)
{
	if (bytes > 0 &&
	    atomic_fetch_sub(&t->ahead, bytes) - bytes <= IO_AHEAD_LOW &&
	    atomic_load(&t->waiting) && atomic_exchange(&t->waiting, false))
		loop_post(t->loop, &t->nearer, io_back_go_on, t);
}

/* Input that is held, for any reason, must not hold up other streams. */
static void
come_to_all(struct stream_far *f)
{
	size_t bytes = f->ahead;

	f->ahead = 0;
	come_nearer(f->line->thread, bytes);
}

static void
come_to_first(struct stream_far *f)
{
	size_t bytes = io_block_size(f->first);

	if (f->ahead < f->blocks)
		return; /* it was there before */
	f->ahead -= bytes;
	come_nearer(f->line->thread, bytes);
}

/* ---- what waits ---- */

static struct io_block *
pop(struct stream_far *f)
{
	struct io_block *b = f->first;

	if ((f->first = b->next) == NULL)
		f->end = &f->first;
	f->blocks -= io_block_size(b);
	return b;
}

void
stream_far_return(struct io_line *line, struct io_block *b)
{
	come_nearer(line->thread, io_block_size(b));
	give_back(line, b);
}

void
stream_far_drop_input(struct stream_far *f)
{
	struct io_line *line = f->line;

	come_to_all(f);
	if (f->showing) {
		f->in_hands = pop(f);
		atomic_fetch_sub(&line->unconsumed, io_block_size(f->in_hands));
	}
	while (f->first != NULL)
		give_back(line, pop(f));
}

/* ---- showing it ---- */

/* Bytes to show at once: whole frames, and what may follow the last. */
static size_t
piece(const uint8_t *data, size_t len, size_t most)
{
	const uint8_t *payload;
	size_t at = 0, payload_len, used, need;

	if (len <= most)
		return len;
	while (at < most) {
		if (frame_next(data + at, len - at, &payload, &payload_len,
		    &used, &need) != FRAME_OK)
			return len;
		at += used;
	}
	return at;
}

/*
 * Shows of the first one about *most bytes, which become fewer.  Returns
 * whether to go on: all of that was consumed, and the stream goes on.
 */
static bool
show_first(struct stream *s, size_t *most)
{
	struct stream_far *f = s->lower;
	struct io_block *b = f->first;
	size_t len, n;

	come_to_first(f);
	if (b->shown == 0)
		stream_spend(s, b->len, loop_turn_ms(s->loop));
	if (!stream_is_live(s))
		return false;
	len = piece(b->data + b->shown, b->len - b->shown, *most);
	f->showing = true;
	n = stream_show(s, b->data + b->shown, len);
	f->showing = false;
	if (!stream_is_live(s))
		return false;
	b->shown += n;
	*most -= n < *most ? n : *most;
	if (b->shown == b->len) {
		give_back(f->line, pop(f));
		relieve(f->line);
	}
	if (n == len)
		return true;
	/* Whole frames were left though nothing keeps it from them. */
	if (!stream_held(s))
		stream_end_later(s, STREAM_PROTOCOL);
	return false;
}

static bool
may_show(const struct stream *s)
{
	const struct stream_far *f = s->lower;

	return stream_is_live(s) && !stream_held(s) && s->rest == NULL &&
	    f->first != NULL;
}

static void
turn_cb(void *arg)
{
	stream_far_feed(arg);
}

void
stream_far_feed(struct stream *s)
{
	struct stream_far *f = s->lower;
	size_t most = s->urgent ? LOOP_SCRATCH_BYTES : loop_read_bytes(s->loop);

	while (most > 0 && may_show(s))
		if (!show_first(s, &most))
			break;
	stream_count(s);
	if (may_show(s))
		stream_defer_input(s, &s->read_call, turn_cb);
	else if (stream_is_live(s) && f->closed && f->first == NULL)
		stream_end_now(s, f->why);
}

void
stream_far_take(struct stream *s, struct io_block *b)
{
	struct stream_far *f = s->lower;

	b->next = NULL;
	*f->end = b;
	f->end = &b->next;
	f->blocks += io_block_size(b);
	f->ahead += io_block_size(b);
	if (s->flow == FLOW_PAUSED || s->rest != NULL)
		come_to_all(f);
	if (may_show(s) && !loop_call_waits(&s->read_call)) {
		if (loop_may_read(s->loop, s->urgent)) {
			stream_far_feed(s);
			return;
		}
		stream_defer_input(s, &s->read_call, turn_cb);
	}
	stream_count(s);
}

void
stream_far_hold(struct stream *s)
{
	struct stream_far *f = s->lower;
	bool held = s->flow == FLOW_PAUSED || s->rest != NULL;

	if (f->line == NULL || atomic_load_explicit(&f->line->held,
	    memory_order_relaxed) == held)
		return;
	atomic_store(&f->line->held, held);
	if (held)
		come_to_all(f);
	else
		relieve(f->line);
}
