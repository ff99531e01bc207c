#include "tests/bench/load/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/load/line.h"
#include "tests/bench/load/numbered.h"
#include "tests/bench/load/place.h"
#include "transport/loop/loop.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define TICK_MS 10u
#define AGAIN_TICKS 20u
#define QUEUED_MAX (256u << 10)

struct peer_state {
	struct hostile *all;
	enum load_hostile kind;
	uint32_t index;
	struct line *line;
	bool up;
	uint32_t wait; /* ticks until it comes again */
	uint64_t n;    /* of what it does */
	uint32_t buffer; /* of the instance that it was given; 0: none */
};

struct hostile {
	struct loop *loop;
	const struct load_options *options;
	const struct place *places;
	size_t n_places;
	struct peer_state *peers; /* owned */
	size_t n;
	struct loop_timer *tick;
	struct hostile_counts counts[HOSTILE_KINDS];
	struct pb_writer w, packet;
	uint64_t random;
	bool stopped;
};

static uint64_t
chance(struct hostile *h)
{
	h->random ^= h->random << 13;
	h->random ^= h->random >> 7;
	h->random ^= h->random << 17;
	return h->random;
}

static void
say(struct peer_state *p, enum line_call what)
{
	struct pb_writer *w = &p->all->w;

	(void)p->line->type->call(p->line, what, w->data, w->len, false);
	p->all->counts[p->kind].bytes += w->len;
	pb_writer_reset(w);
}

static void
say_raw(struct peer_state *p, const void *data, size_t len)
{
	p->line->type->raw(p->line, data, len);
	p->all->counts[p->kind].bytes += len;
}

static void
say_id(struct peer_state *p, enum line_call what, uint64_t id)
{
	pb_put_uint(&p->all->w, 1, id);
	say(p, what);
}

/* ---- what each kind does in a tick ---- */

static void
garbage(struct peer_state *p)
{
	uint64_t bytes[128];
	size_t i;

	for (i = 0; i < 128; i++)
		bytes[i] = chance(p->all);
	/* At first a length that is possible, or nobody would read on. */
	if (p->n++ % 2 == 0)
		frame_put_header((uint8_t *)bytes, 1000);
	say_raw(p, bytes, sizeof(bytes));
}

static void
too_big(struct peer_state *p)
{
	static const uint8_t zeros[65536];
	uint8_t header[4];

	if (p->n++ == 0) {
		frame_put_header(header, FRAME_MAX_BYTES + 1);
		say_raw(p, header, 4);
	}
	say_raw(p, zeros, sizeof(zeros));
}

static void
flood(struct peer_state *p)
{
	while (p->line->type->queued(p->line) < QUEUED_MAX &&
	    p->n++ % 4096 != 4095)
		say_id(p, LINE_SYNC, p->n);
}

/* A chunk of one packet. */
static void
put_chunk(struct peer_state *p, uint32_t buffer, uint16_t writer,
    uint32_t chunk)
{
	struct pb_writer *w = &p->all->w, *packet = &p->all->packet;
	uint16_t fragments = 1;
	size_t move, n = pb_varint_size(packet->len);

	move = pb_nest_begin(w, 1);
	pb_put_uint(w, 1, 0);
	pb_put_uint(w, 2, 0);
	pb_put_uint(w, 3, buffer);
	pb_put_varint(w, 4 << 3 | 2);
	pb_put_varint(w, 8 + n + packet->len);
	pb_put_raw(w, &chunk, 4);
	pb_put_raw(w, &writer, 2);
	pb_put_raw(w, &fragments, 2);
	pb_put_varint(w, packet->len);
	pb_put_raw(w, packet->data, packet->len);
	pb_nest_end(w, move);
}

static void
wrong_ids(struct peer_state *p)
{
	struct hostile *h = p->all;
	uint64_t x = chance(h);

	switch (p->n++ % 6) {
	case 0:
		(void)numbered_put(&h->packet, HOSTILE_KEY + p->kind, p->n,
		    loop_boottime_ns(), 0, 100);
		put_chunk(p, x % 512, (uint16_t)(x >> 32), (uint32_t)p->n);
		say(p, LINE_COMMIT);
		return;
	case 1: /* a place that is not there */
		pb_put_raw(&h->w, "\x0a\x0a\x08\xff\xff\x03\x10\xff\x01"
		    "\x18\xff\x03", 12);
		say(p, LINE_COMMIT);
		return;
	case 2:
		pb_put_uint(&h->w, 3, x); /* a flush that nobody asked for */
		say(p, LINE_COMMIT);
		return;
	case 3:
		say_id(p, LINE_STARTED, x);
		return;
	case 4:
		say_id(p, LINE_STOPPED, x % 4096);
		return;
	case 5:
		pb_put_uint(&h->w, 2, x % 512);
		say_id(p, LINE_REGISTER_WRITER, x >> 16);
		return;
	}
}

static void
forge(struct peer_state *p)
{
	struct hostile *h = p->all;
	uint64_t n = p->n++;

	if (p->buffer == 0)
		return;
	(void)numbered_put(&h->packet, HOSTILE_KEY + p->kind, n,
	    loop_boottime_ns(), 0, 100);
	if (n % 3 == 0)
		pb_put_uint(&h->packet, 3, 0); /* trusted_uid */
	else if (n % 3 == 1)
		pb_put_uint(&h->packet, 10, 1); /* the service's sequence */
	else
		pb_put_uint(&h->packet, 98, 7); /* machine_id */
	put_chunk(p, p->buffer, 1, (uint32_t)n);
	say(p, LINE_COMMIT);
}

static void
put_source(struct pb_writer *w, const char *name)
{
	size_t mark = pb_nest_begin(w, 1);

	pb_put_string(w, 1, name);
	pb_put_uint(w, 2, 1);
	pb_nest_end(w, mark);
}

static void
registrations(struct peer_state *p)
{
	char name[64];
	unsigned i;

	for (i = 0; i < 50 && p->line->type->queued(p->line) < QUEUED_MAX;
	    i++) {
		snprintf(name, sizeof(name), "hostile.%u.%llu", p->index,
		    (unsigned long long)p->n++);
		put_source(&p->all->w, name);
		say(p, LINE_REGISTER_SOURCE);
		pb_put_uint(&p->all->w, 2, 1 + p->n % 64);
		say_id(p, LINE_REGISTER_WRITER, p->n % 40000);
	}
}

static void
act(struct peer_state *p)
{
	switch (p->kind) {
	case HOSTILE_MUTE:
	case HOSTILE_KINDS:
		return;
	case HOSTILE_HALF:
		if (p->n++ == 0)
			say_raw(p, "\x10\x00\x00\x00\x10", 5);
		return;
	case HOSTILE_GARBAGE:
		garbage(p);
		return;
	case HOSTILE_TOO_BIG:
		too_big(p);
		return;
	case HOSTILE_FLOOD:
		flood(p);
		return;
	case HOSTILE_WRONG_IDS:
		wrong_ids(p);
		return;
	case HOSTILE_FORGED:
		forge(p);
		return;
	case HOSTILE_REGISTRATIONS:
		registrations(p);
		return;
	}
}

/* ---- their connections ---- */

static bool
binds(enum load_hostile kind)
{
	return kind >= HOSTILE_FLOOD;
}

static void
up_cb(void *arg)
{
	struct peer_state *p = arg;
	struct hostile *h = p->all;

	p->up = true;
	h->counts[p->kind].connections++;
	if (!binds(p->kind))
		return;
	pb_put_string(&h->w, 3, "hostile");
	say(p, LINE_INITIALIZE);
	say(p, LINE_COMMANDS);
	/* Whose packets are forged is asked to write them. */
	put_source(&h->w, p->kind == HOSTILE_FORGED ? h->options->source :
	    "hostile");
	say(p, LINE_REGISTER_SOURCE);
}

static uint64_t
value_of(const struct pb_field *m, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f))
		if (f.number == number)
			return f.value;
	return 0;
}

static void
setup(struct peer_state *p, const struct pb_field *m)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f))
		if (f.number == 2 && f.wire == PB_BYTES)
			p->buffer = (uint32_t)value_of(&f, 2);
}

/* It answers as it should: its packets are what is wrong with it. */
static void
command_cb(void *arg, const uint8_t *msg, size_t len, int fd)
{
	struct peer_state *p = arg;
	struct pb_reader r;
	struct pb_field f;

	if (fd >= 0)
		close(fd);
	pb_init(&r, msg, len);
	while (pb_next(&r, &f) && p->kind == HOSTILE_FORGED) {
		if (f.number == 6) {
			setup(p, &f);
		} else if (f.number == 2) {
			p->buffer = 0;
			say_id(p, LINE_STOPPED, value_of(&f, 1));
		} else if (f.number == 5) {
			pb_put_uint(&p->all->w, 3, value_of(&f, 2));
			say(p, LINE_COMMIT);
		}
	}
}

static void
replied_cb(void *arg, uint64_t ticket, bool ok, const uint8_t *msg, size_t len)
{
}

static void
drained_cb(void *arg)
{
}

static void
forget(struct peer_state *p)
{
	p->line = NULL;
	p->up = false;
	p->n = 0;
	p->buffer = 0;
	p->wait = AGAIN_TICKS;
}

static void
down_cb(void *arg, const char *kind, const char *text)
{
	struct peer_state *p = arg;

	p->all->counts[p->kind].thrown_out++;
	line_free(p->line, LINE_RESET);
	forget(p);
}

static void
come(struct peer_state *p)
{
	static const struct line_ops ops = {
		.up = up_cb,
		.command = command_cb,
		.replied = replied_cb,
		.drained = drained_cb,
		.down = down_cb,
	};
	struct hostile *h = p->all;
	char err[256];

	p->line = line_direct_new(h->loop, &h->places[p->index % h->n_places],
	    binds(p->kind) ? "ProducerPort" : NULL, p->index, NULL, &ops, p,
	    err, sizeof(err));
	if (p->line == NULL)
		p->wait = AGAIN_TICKS;
}

static void
tick_cb(void *arg)
{
	struct hostile *h = arg;
	struct peer_state *p;
	size_t i;

	for (i = 0; i < h->n && !h->stopped; i++) {
		p = &h->peers[i];
		if (p->line == NULL && p->wait > 0)
			p->wait--;
		else if (p->line == NULL)
			come(p);
		else if (p->up &&
		    p->line->type->queued(p->line) < QUEUED_MAX)
			act(p);
	}
}

struct hostile *
hostile_new(struct loop *l, const struct load_options *o,
    const struct place *places, size_t n_places)
{
	struct hostile *h = calloc(1, sizeof(*h));
	size_t i, k, n = 0;

	if (h == NULL)
		return NULL;
	for (i = 0; i < o->n_hostile; i++)
		h->n += o->hostile[i].count;
	h->loop = l;
	h->options = o;
	h->places = places;
	h->n_places = n_places;
	h->random = o->seed * 2 + 0x9e3779b97f4a7c15u;
	pb_writer_init(&h->w);
	pb_writer_init(&h->packet);
	h->peers = calloc(h->n + 1, sizeof(*h->peers));
	h->tick = loop_timer_new(l, tick_cb, h);
	if (h->peers == NULL || h->tick == NULL) {
		h->n = 0;
		hostile_free(h);
		return NULL;
	}
	for (i = 0; i < o->n_hostile; i++) {
		for (k = 0; k < o->hostile[i].count; k++, n++) {
			h->peers[n].all = h;
			h->peers[n].kind =
			    (enum load_hostile)o->hostile[i].kind;
			h->peers[n].index = (uint32_t)n;
		}
	}
	return h;
}

void
hostile_free(struct hostile *h)
{
	if (h == NULL)
		return;
	hostile_stop(h);
	loop_timer_free(h->tick);
	pb_writer_done(&h->w);
	pb_writer_done(&h->packet);
	free(h->peers);
	free(h);
}

void
hostile_start(struct hostile *h)
{
	if (h->n > 0)
		loop_timer_set(h->tick, TICK_MS, 1);
}

void
hostile_stop(struct hostile *h)
{
	size_t i;

	h->stopped = true;
	for (i = 0; i < h->n; i++) {
		line_free(h->peers[i].line, LINE_RESET);
		forget(&h->peers[i]);
	}
}

void
hostile_look(const struct hostile *h, enum load_hostile kind,
    struct hostile_counts *out)
{
	*out = h->counts[kind];
}
