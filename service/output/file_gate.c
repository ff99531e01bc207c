#include "service/output/file_gate.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "service/model/model.h"
#include "transport/buffer/trace_buffer.h"

/* Room shared out at a time among producers that wait for it. */
#define WAKE_BYTES    (1024u * 1024u)
#define WAKE_OVERHEAD 64u /* a chunk's header, rounded up */

/* A buffer of the session, as its file sees it. */
struct file_buffer {
	struct file_gate *gate; /* back-pointer */
	uint64_t floor;     /* bytes left unread by the last pass */
	size_t wanted;      /* bytes that wait since a pass began; 0: none */
	size_t asked;       /* bytes that waited when it began; 0: none */
	bool may_overwrite; /* what is left cannot be read: one chunk may */
};

struct file_gate {
	struct session *session;
	loop_fn want_pass;
	void *arg;
	bool lossless; /* counts in service.n_lossless */
	bool watches;
	struct fair_queue waiters; /* producers, by their at_gate */
	struct file_buffer buffers[]; /* by the session's indices */
};

static bool
must_wait(const struct session_buffer *b, size_t len)
{
	const struct file_buffer *fb = b->gate_arg;

	if (!fb->gate->lossless || !b->ring ||
	    !trace_buffer_would_lose(b->tb, len))
		return false;
	/* A patch may have come since the pass found data that lacks one. */
	return !fb->may_overwrite || trace_buffer_needs_pass(b->tb);
}

static void
wait_for_room(struct session_buffer *b, struct producer *p, size_t len)
{
	struct file_buffer *fb = b->gate_arg;
	struct file_gate *g = fb->gate;
	bool asked_already = fb->wanted > 0;

	if (len > fb->wanted)
		fb->wanted = len;
	if (p != NULL) {
		p->waits_for = b;
		fair_queue_wait(&g->waiters, &p->at_gate, len);
	}
	/* A scrape asks for each of its chunks, a crowd for each producer. */
	if (!asked_already)
		g->want_pass(g->arg);
}

static void
wrote(struct session_buffer *b)
{
	struct file_buffer *fb = b->gate_arg;
	uint64_t unread;

	fb->may_overwrite = false;
	if (!fb->gate->watches)
		return;
	unread = trace_buffer_unread(b->tb);
	/* Stalled data that the last pass left does not count again. */
	if (unread > fb->floor && (unread - fb->floor) * 2 >= b->size)
		fb->gate->want_pass(fb->gate->arg);
}

static const struct write_gate gate_ops = {
	.must_wait = must_wait,
	.wait = wait_for_room,
	.wrote = wrote,
};

struct file_gate *
file_gate_new(struct session *s, bool lossless, loop_fn want_pass, void *arg)
{
	struct file_gate *g;
	size_t i;

	g = calloc(1, sizeof(*g) + s->n_buffers * sizeof(g->buffers[0]));
	if (g == NULL)
		return NULL;
	g->session = s;
	g->want_pass = want_pass;
	g->arg = arg;
	g->lossless = lossless;
	s->service->n_lossless += lossless;
	fair_queue_init(&g->waiters);
	for (i = 0; i < s->n_buffers; i++) {
		g->buffers[i].gate = g;
		s->buffers[i].gate = &gate_ops;
		s->buffers[i].gate_arg = &g->buffers[i];
	}
	return g;
}

void
file_gate_free(struct file_gate *g)
{
	size_t i;

	if (g == NULL)
		return;
	file_gate_open(g);
	for (i = 0; i < g->session->n_buffers; i++)
		g->session->buffers[i].gate = NULL;
	file_gate_wake(g);
	free(g);
}

void
file_gate_open(struct file_gate *g)
{
	g->session->service->n_lossless -= g->lossless;
	g->lossless = false;
}

void
file_gate_watch(struct file_gate *g, bool on)
{
	g->watches = on;
}

bool
file_gate_wants_pass(const struct file_gate *g)
{
	size_t i;

	for (i = 0; i < g->session->n_buffers; i++)
		if (g->buffers[i].wanted > 0)
			return true;
	return false;
}

static const struct session_buffer *
buffer_of(const struct fair_place *at)
{
	return ((const struct producer *)at->arg)->waits_for;
}

void
file_gate_wake(struct file_gate *g)
{
	struct fair_place *at, *next;

	TAILQ_FOREACH_SAFE(at, &g->waiters.places, link, next)
		if (!must_wait(buffer_of(at), at->wants))
			fair_queue_wake(at);
}

void
file_gate_wake_some(struct file_gate *g)
{
	const struct session_buffer *b = NULL;
	struct fair_place *at;
	uint64_t left = 0, need;

	while ((at = fair_queue_first(&g->waiters)) != NULL) {
		if (buffer_of(at) != b) {
			b = buffer_of(at);
			left = trace_buffer_room(b->tb, WAKE_BYTES);
		}
		need = at->wants + WAKE_OVERHEAD;
		if (need > left)
			return;
		left -= need;
		fair_queue_wake(at);
	}
}

void
file_gate_begin_pass(struct file_gate *g)
{
	struct file_buffer *fb;
	size_t i;

	for (i = 0; i < g->session->n_buffers; i++) {
		fb = &g->buffers[i];
		fb->may_overwrite = false;
		fb->asked = fb->wanted;
		fb->wanted = 0;
	}
}

/*
 * Answers for what waited when the pass began.  A pass that ended without making
 * room for it has read all that could be read, unless the missing chunk or patch
 * of a sequence came after the pass had left it.  Else what is left waits for
 * its producer, so waiting for it would be for ever.  It is moved out of the
 * way; where that cannot help, it is overwritten, and counted.
 *
 * What began to wait during the pass has the next one: data that came behind its
 * back can be read then.
 */
static void
settle(struct session_buffer *b, struct file_buffer *fb)
{
	size_t asked = fb->asked;

	fb->asked = 0;
	if (asked > 0 && trace_buffer_would_lose(b->tb, asked)) {
		/* All of it at once would take the copy as long. */
		if (trace_buffer_is_copied(b->tb)) {
			fb->wanted = asked > fb->wanted ? asked : fb->wanted;
			return;
		}
		if (trace_buffer_needs_pass(b->tb)) {
			fb->wanted = asked > fb->wanted ? asked : fb->wanted;
		} else {
			(void)trace_buffer_compact(b->tb);
			fb->may_overwrite =
			    trace_buffer_would_lose(b->tb, asked);
		}
	}
	if (fb->wanted > 0 && trace_buffer_would_lose(b->tb, fb->wanted))
		fb->gate->want_pass(fb->gate->arg);
	else
		fb->wanted = 0;
}

void
file_gate_end_pass(struct file_gate *g)
{
	struct session *s = g->session;
	size_t i;

	for (i = 0; i < s->n_buffers; i++) {
		settle(&s->buffers[i], &g->buffers[i]);
		g->buffers[i].floor = trace_buffer_unread(s->buffers[i].tb);
	}
}
