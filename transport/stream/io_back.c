#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/loop/loop.h"
#include "transport/stream/io_line.h"
#include "transport/tls/tls.h"
#include "transport/wire/ipc_frame.h"

/* Change of the back's memory, in bytes, of which the owner is told. */
#define MEMORY_STEP 4096u
/* Bytes passed on of input that is no frame: enough to see why not. */
#define LAST_BYTES 64u

static void
post(struct io_line *line, struct io_mail *m, size_t bytes)
{
	mail_send(&line->thread->out, &m->mail, bytes);
}

/* Tells the front that the back has ended, or was closed by us. */
static void
line_closed(struct io_line *line, enum stream_end why, const char *detail)
{
	line->back = NULL;
	line->why = why;
	if (detail[0] != '\0')
		line->detail = strdup(detail);
	atomic_store(&line->memory, 0);
	post(line, &line->closed, 0);
}

/* Inside a call of the back, too. */
static void
line_give_up(struct io_line *line, enum stream_end why)
{
	stream_close(line->back, false);
	line_closed(line, why, "");
}

/* ---- what the owner looks at ---- */

static size_t
distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

static bool
is_worth_a_look(const struct io_line *line, size_t memory, uint64_t taken)
{
	if (distance(memory, line->told_memory) >= MEMORY_STEP ||
	    (memory == 0 && line->told_memory > 0))
		return true;
	return atomic_load(&line->wants_look) &&
	    (taken != line->told_taken || line->got != line->told_got);
}

static void
line_tell(struct io_line *line, size_t memory, uint64_t taken)
{
	line->told_memory = memory;
	line->told_taken = taken;
	line->told_got = line->got;
	/* A message that is on its way finds what was just stored. */
	if (!atomic_exchange(&line->look_due, true))
		post(line, &line->look, 0);
}

static void
back_moved(struct stream *s, void *arg)
{
	struct io_line *line = arg;
	uint64_t now = loop_turn_ms(line->thread->loop), taken;
	size_t memory = stream_memory(s), queued = stream_queued(s);

	taken = line->got - queued;
	atomic_store_explicit(&line->in_ms, now - stream_idle_ms(s, now),
	    memory_order_relaxed);
	atomic_store_explicit(&line->out_ms, now - stream_stalled_ms(s, now),
	    memory_order_relaxed);
	atomic_store_explicit(&line->memory, memory, memory_order_relaxed);
	/* In this order, so that an owner never sees `taken` > `accepted`. */
	atomic_store_explicit(&line->accepted, line->got,
	    memory_order_relaxed);
	atomic_store_explicit(&line->taken, taken, memory_order_release);
	if (is_worth_a_look(line, memory, taken))
		line_tell(line, memory, taken);
}

/* ---- input ---- */

/* -1: that ended the line. */
static int
hand_over(struct io_line *line, const uint8_t *data, size_t len, bool last)
{
	struct io_thread *t = line->thread;
	struct io_block *b = io_block_get(t, len);

	if (b == NULL) {
		line_give_up(line, STREAM_NO_MEMORY);
		return -1;
	}
	memcpy(b->data, data, len);
	b->len = len;
	b->last = last;
	b->head.kind = IO_DATA;
	b->head.line = line;
	atomic_fetch_add(&line->unconsumed, io_block_size(b));
	atomic_fetch_add(&t->ahead, io_block_size(b));
	post(line, &b->head, len);
	return 0;
}

/* Bytes of the whole frames at its beginning that fit into a block. */
static size_t
whole_frames(const uint8_t *buf, size_t len, enum frame_verdict *then,
    size_t *need)
{
	size_t at = 0, payload_len, used;
	const uint8_t *payload;

	for (;;) {
		*then = frame_next(buf + at, len - at, &payload, &payload_len,
		    &used, need);
		if (*then != FRAME_OK || at + used > IO_BLOCK_MAX)
			return at;
		at += used;
	}
}

/*
 * As whole_frames(); their replacements, *out_len bytes, go into t->unpacked.
 */
static size_t
unpack_frames(struct io_line *line, const uint8_t *buf, size_t len,
    size_t *out_len, enum frame_verdict *then, size_t *need)
{
	const struct stream_unpack *u = &line->unpacking;
	uint8_t *out = line->thread->unpacked;
	size_t at = 0, room, n, payload_len, used;
	const uint8_t *payload;

	for (*out_len = 0;; at += used) {
		*then = frame_next(buf + at, len - at, &payload, &payload_len,
		    &used, need);
		if (*then != FRAME_OK)
			return at;
		room = IO_BLOCK_MAX - *out_len;
		n = u->frame(u->ctx, buf + at, used, out + *out_len, room);
		if (n == STREAM_UNPACK_ROOM && *out_len > 0)
			return at;
		if (n == 0 || n == STREAM_UNPACK_ROOM) {
			if (used > room)
				return at;
			memcpy(out + *out_len, buf + at, used);
			n = used;
		}
		*out_len += n;
	}
}

/* Takes a block's worth of frames from buf.  -1: that ended the line. */
static int
take_frames(struct io_line *line, const uint8_t *buf, size_t len, size_t *used,
    enum frame_verdict *then, size_t *need)
{
	const uint8_t *frames = buf;
	size_t n;

	if (line->unpacks) {
		frames = line->thread->unpacked;
		*used = unpack_frames(line, buf, len, &n, then, need);
	} else {
		n = *used = whole_frames(buf, len, then, need);
	}
	line->begun |= n > 0;
	return n > 0 ? hand_over(line, frames, n, false) : 0;
}

/* Shows bytes that are no frame to the owner, which decides. */
static void
finish_input(struct io_line *line, const uint8_t *rest, size_t len)
{
	line->finished = true;
	stream_pause(line->back);
	(void)!hand_over(line, rest, len < LAST_BYTES ? len : LAST_BYTES, true);
}

/* Credit window used up: pauses the back until the owner gives blocks back. */
static void
starve(struct io_line *line)
{
	stream_pause(line->back);
	atomic_store(&line->starved, true);
	/* The owner may have given all back before it could see `starved`. */
	if (!atomic_load(&line->held) &&
	    atomic_load(&line->unconsumed) <= IO_LINE_LOW &&
	    atomic_exchange(&line->starved, false))
		stream_resume(line->back);
}

static bool
is_over_window(const struct io_line *line)
{
	size_t n = atomic_load(&line->unconsumed);

	return n > IO_LINE_WINDOW || (n > 0 && atomic_load(&line->held));
}

void
io_back_go_on(void *arg)
{
	struct io_thread *t = arg;

	loop_hold_input(t->loop, false);
}

/* Back-pressure: reads nothing until the owner has consumed blocks. */
static void
wait_for_owner(struct io_thread *t)
{
	loop_hold_input(t->loop, true);
	atomic_store(&t->waiting, true);
	/* The owner may have lowered `ahead` before it could see `waiting`. */
	if (atomic_load(&t->ahead) <= IO_AHEAD_LOW &&
	    atomic_exchange(&t->waiting, false))
		io_back_go_on(t);
}

static size_t
back_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct io_line *line = arg;
	enum frame_verdict then = FRAME_OK;
	size_t at = 0, n, need = 0;
	bool over = false;

	while (then == FRAME_OK && at < len && !over) {
		if (take_frames(line, buf + at, len - at, &n, &then,
			&need) != 0)
			return 0;
		at += n;
		over = is_over_window(line);
	}
	if (then == FRAME_TOO_BIG || (then == FRAME_MORE && !line->begun &&
	    ipc_begins_with_tls(buf + at, len - at))) {
		finish_input(line, buf + at, len - at);
		return len;
	}
	if (then == FRAME_MORE && at < len)
		stream_want(s, need);
	if (over)
		starve(line);
	if (atomic_load(&line->thread->ahead) > IO_AHEAD_MAX &&
	    !loop_holds_input(line->thread->loop))
		wait_for_owner(line->thread);
	return at;
}

/* ---- its life ---- */

static void
back_opened(struct stream *s, void *arg)
{
	struct io_line *line = arg;

	line->identity = stream_take_identity(s);
	if (line->identity == NULL) {
		line_give_up(line, STREAM_NO_MEMORY);
		return;
	}
	post(line, &line->opened, 0);
}

static void
back_closed(struct stream *s, enum stream_end why, void *arg)
{
	line_closed(arg, why, stream_end_detail(s));
}

static void
line_begin(struct io_line *line)
{
	static const struct stream_ops ops = {
		.data = back_data,
		.opened = back_opened,
		.closed = back_closed,
		.moved = back_moved,
	};
	struct io_thread *t = line->thread;
	struct io_begin *b = line->begin;
	struct stream_setup over = { .tls = b->tls, .peer = &b->peer };

	line->begin = NULL;
	if ((line->next = t->lines) != NULL)
		line->next->prev = line;
	t->lines = line;
	line->back = stream_new_over(t->loop, b->fd, &over, &ops, line);
	if (line->back == NULL) {
		tls_conn_free(b->tls);
		close(b->fd);
		line_closed(line, STREAM_NO_MEMORY, "");
	} else {
		/* The front has the limit of both. */
		stream_set_limits(line->back, SIZE_MAX, SIZE_MAX);
	}
	free(b);
}

static void
line_free(struct io_line *line)
{
	if (line->prev != NULL)
		line->prev->next = line->next;
	else
		line->thread->lines = line->next;
	if (line->next != NULL)
		line->next->prev = line->prev;
	if (line->unpacking.free != NULL)
		line->unpacking.free(line->unpacking.ctx);
	tls_identity_free(line->identity);
	free(line->detail);
	free(line);
}

void
io_back_free_all(struct io_thread *t)
{
	struct io_line *line, *next;

	for (line = t->lines; line != NULL; line = next) {
		next = line->next;
		if (line->back != NULL)
			stream_close(line->back, false);
		line_free(line);
	}
}

/* ---- messages ---- */

static void
line_write(struct io_line *line, struct io_block *b)
{
	line->got += b->len;
	if (line->back != NULL) {
		stream_write(line->back, b->data, b->len, -1);
		back_moved(line->back, line);
	}
	free(b);
}

static void
line_unpack(struct io_line *line)
{
	struct io_thread *t = line->thread;

	if (line->back == NULL)
		return;
	if (t->unpacked == NULL &&
	    (t->unpacked = malloc(IO_BLOCK_MAX)) == NULL) {
		line_give_up(line, STREAM_NO_MEMORY);
		return;
	}
	line->unpacks = true;
}

static void
line_close(struct io_line *line)
{
	if (line->back == NULL)
		return; /* closed by itself, and said so */
	stream_close(line->back, line->flush);
	line_closed(line, STREAM_SHUTDOWN, "");
}

void
io_back_deliver(struct mail *m, void *arg)
{
	struct io_mail *im = (struct io_mail *)m;
	struct io_line *line = im->line;
	struct io_thread *t = arg;

	switch (im->kind) {
	case IO_START:
		line_begin(line);
		return;
	case IO_WRITE:
		line_write(line, (struct io_block *)im);
		return;
	case IO_RESUME:
		if (line->back != NULL && !line->finished)
			stream_resume(line->back);
		return;
	case IO_UNPACK:
		line_unpack(line);
		return;
	case IO_URGENT:
		if (line->back != NULL)
			stream_set_urgent(line->back);
		return;
	case IO_CLOSE:
		line_close(line);
		return;
	case IO_BYE:
		line_free(line);
		if (t->lines == NULL)
			io_blocks_free(t); /* they were kept for it */
		return;
	case IO_STOP:
		t->stopping = true;
		loop_stop(t->loop);
		return;
	case IO_OPENED:
	case IO_DATA:
	case IO_LOOK:
	case IO_CLOSED:
		return; /* the other way */
	}
}
