#include "tests/unit/relay/outbox/outbox_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/relay/outbox/outbox_world.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

#define WINDOW (512u * 1024u)

/*
 * The payload of a chunk says what packets its fragments belong to: the number
 * of the first one, then bytes that follow from the chunk's id.
 */

uint32_t
model_random(struct model *m, uint32_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (uint32_t)(m->random >> 11) % below;
}

void
model_init(struct model *m, uint64_t seed, struct outbox *o)
{
	unsigned i;

	memset(m, 0, sizeof(*m));
	m->random = seed * 2654435761u + 88172645463325252u;
	for (i = 0; i < MODEL_CHANNELS; i++)
		m->channels[i].id = outbox_new_channel(o);
	outbox_set_window(o, WINDOW);
}

struct sent {
	uint32_t writer;
	uint32_t id;
	uint32_t fragments; /* as in the header */
	uint32_t flags;
	uint32_t first;     /* packet of the first fragment */
	bool incomplete;
	uint32_t payload;
};

static void
put_chunk(struct model *m, struct outbox *o, unsigned channel,
    const struct sent *s)
{
	struct chunk c = { .writer = s->writer, .buffer = 7, .id = s->id,
		.fragments = s->fragments, .flags = s->flags,
		.payload = s->payload, .incomplete = s->incomplete,
		.mark = s->first };
	uint8_t encoded[40000], *p;
	size_t len;

	len = chunk_encode(encoded, &c);
	p = outbox_reserve(o, m->channels[channel].id, len, true);
	assert_non_null(p);
	memcpy(p, encoded, len);
	outbox_commit(o, m->channels[channel].id, len);
}

/* Makes up the next chunk of a writer, or more of the one that was scraped. */
static void
next_chunk(struct model *m, struct model_writer *writer, struct sent *s)
{
	struct model_writer_state *w = &writer->state;
	uint32_t i, added;

	memset(s, 0, sizeof(*s));
	if (!w->scraped) {
		w->first = w->packets - (w->open ? 1 : 0);
		w->continues = w->open;
		w->scraped_fragments = 0;
	}
	added = m->stretched ? 1 : 1 + model_random(m, 5);
	s->id = w->next_chunk;
	s->first = w->first;
	s->fragments = w->scraped_fragments + added;
	s->incomplete = s->fragments < MODEL_CHUNK_PACKETS - 8 &&
	    model_random(m, 6) == 0 && !m->stretched;
	if (w->continues)
		s->flags |= SHM_FIRST_CONTINUES_FROM_PREV;
	/* Fragments of packets, as many as are whole. */
	for (i = w->scraped_fragments; i < s->fragments; i++) {
		uint32_t packet = w->first + i;

		assert_true(packet < MODEL_PACKETS);
		if (s->incomplete && i == s->fragments - 1)
			break; /* it is still being written */
		writer->out[packet]++;
		if (packet >= w->packets)
			w->packets = packet + 1;
	}
	w->scraped = s->incomplete;
	if (s->incomplete) {
		w->scraped_fragments = s->fragments - 1;
	} else {
		w->next_chunk++;
		w->open = m->stretched ? model_random(m, 40) != 0 :
		    model_random(m, 3) == 0;
		if (w->open)
			s->flags |= SHM_LAST_CONTINUES_ON_NEXT;
	}
	s->payload = 40 + model_random(m, model_random(m, 8) == 0 ? 30000 :
	    4000);
}

static void
put_trigger(struct model *m, struct outbox *o, unsigned channel, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	outbox_put(o, m->channels[channel].id, LINK_UP_TRIGGER, text,
	    strlen(text), 0);
}

/* The process may be killed at any time: what is written must not move. */
static void
now_doing(struct model *m, int what)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->doing = what;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void
forget(struct model *m)
{
	struct model_writer *w =
	    &m->channels[m->channel].writers[m->writer];

	w->state = m->before;
	memcpy(&w->out[w->state.packets > 0 ? w->state.packets - 1 : 0],
	    m->before_out, sizeof(m->before_out));
}

static void
remember(struct model *m)
{
	const struct model_writer *w =
	    &m->channels[m->channel].writers[m->writer];

	m->before = w->state;
	memcpy(m->before_out,
	    &w->out[w->state.packets > 0 ? w->state.packets - 1 : 0],
	    sizeof(m->before_out));
}

bool
model_has_room(const struct model *m)
{
	unsigned i, j;

	for (i = 0; i < MODEL_CHANNELS; i++)
		for (j = 0; j < MODEL_WRITERS; j++)
			if (m->channels[i].writers[j].state.packets +
			    8 * MODEL_CHUNK_PACKETS > MODEL_PACKETS)
				return false;
	return true;
}

void
model_put(struct model *m, struct outbox *o)
{
	struct model_channel *c;
	struct sent s;

	m->channel = model_random(m, MODEL_CHANNELS);
	m->writer = model_random(m, MODEL_WRITERS);
	/* The first one floods. */
	if (model_random(m, 3) != 0)
		m->channel = 0;
	c = &m->channels[m->channel];
	m->trigger = model_random(m, 12) == 0;
	if (m->trigger) {
		m->number = c->put;
		now_doing(m, MODEL_PUTTING);
		put_trigger(m, o, m->channel, m->number);
		c->put = m->number + 1;
		now_doing(m, MODEL_IDLE);
		return;
	}
	remember(m);
	now_doing(m, MODEL_THINKING);
	next_chunk(m, &c->writers[m->writer], &s);
	s.writer = m->writer + 1;
	memcpy(m->chunk, &s, sizeof(s));
	now_doing(m, MODEL_PUTTING);
	put_chunk(m, o, m->channel, &s);
	now_doing(m, MODEL_IDLE);
}

void
model_put_again(struct model *m, struct outbox *o)
{
	struct model_channel *c = &m->channels[m->channel];
	struct sent s;

	if (m->doing == MODEL_THINKING)
		forget(m);
	if (m->doing == MODEL_PUTTING && m->trigger) {
		c->twice[c->n_twice++ % 32] = m->number;
		c->put = m->number + 1;
		put_trigger(m, o, m->channel, m->number);
	} else if (m->doing == MODEL_PUTTING) {
		memcpy(&s, m->chunk, sizeof(s));
		c->writers[m->writer].again += s.fragments;
		put_chunk(m, o, m->channel, &s);
	}
	m->doing = MODEL_IDLE;
}

void
model_finish(struct model *m, struct outbox *o)
{
	unsigned i, j;
	struct model_writer *w;
	struct sent s;

	for (i = 0; i < MODEL_CHANNELS; i++) {
		for (j = 0; j < MODEL_WRITERS; j++) {
			w = &m->channels[i].writers[j];
			do {
				next_chunk(m, w, &s);
				s.writer = j + 1;
				put_chunk(m, o, i, &s);
			} while (w->state.scraped || w->state.open);
		}
		outbox_put(o, m->channels[i].id, LINK_UP_CLOSE, NULL, 0, 0);
	}
}

/* ---- the collector ---- */

static void
take_chunk(struct model_channel *c, const struct pb_field *commit)
{
	const uint8_t *data = NULL;
	size_t len = 0, i;
	struct model_writer *w;
	struct shm_chunk chunk;
	struct pb_reader r;
	struct pb_field f;
	bool incomplete = false;
	uint32_t first, n, from;

	pb_init(&r, commit->data, commit->len);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, 1);
	pb_init(&r, f.data, f.len);
	while (pb_next(&r, &f)) {
		if (f.number == 4) {
			data = f.data;
			len = f.len;
		}
		if (f.number == 5)
			incomplete = f.value != 0;
	}
	assert_int_equal(shm_chunk_from_bytes(data, len, &chunk), 0);
	memcpy(&first, chunk.payload, 4);
	for (i = 4; i < chunk.len; i++)
		assert_int_equal(chunk.payload[i], (uint8_t)(chunk.chunk_id + i));
	assert_in_range(chunk.writer_id, 1, MODEL_WRITERS);
	w = &c->writers[chunk.writer_id - 1];

	from = 0;
	if (w->any && chunk.chunk_id == w->last_chunk) {
		from = w->last_fragments; /* more of the same */
	} else if (w->any) {
		assert_true(chunk.chunk_id > w->last_chunk);
		if (chunk.chunk_id != w->last_chunk + 1 || !w->last_whole)
			assert_true(w->loss_since);
	} else if (chunk.chunk_id != 0) {
		assert_true(w->loss_since);
	}
	n = chunk.num_fragments - (incomplete ? 1 : 0);
	for (i = from; i < n; i++)
		w->in[first + i]++;
	w->any = true;
	w->last_chunk = chunk.chunk_id;
	w->last_fragments = n > from ? n : from;
	w->last_whole = !incomplete;
	w->loss_since = false;
}

static void
take_loss(struct model_channel *c, const struct pb_field *m)
{
	struct link_loss l;
	struct model_writer *w;

	assert_int_equal(link_parse_loss(&l, m->data, m->len), 0);
	if (l.writer == 0) {
		c->whole_losses += l.packets;
		for (l.writer = 0; l.writer < MODEL_WRITERS; l.writer++)
			c->writers[l.writer].loss_since = true;
		return;
	}
	w = &c->writers[l.writer - 1];
	w->lost += l.packets;
	w->lost_chunks += l.chunks;
	w->loss_since = true;
}

static struct model_channel *
channel_of(struct model *m, uint32_t id)
{
	unsigned i;

	for (i = 0; i < MODEL_CHANNELS; i++)
		if (m->channels[i].id == id)
			return &m->channels[i];
	fail_msg("a block of channel %u", id);
	return NULL;
}

static bool
is_number(const struct pb_field *f, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return f->len == strlen(text) && memcmp(f->data, text, f->len) == 0;
}

/* The one before, once more, as it may be. */
static bool
is_twice(const struct model_channel *c, const struct pb_field *f)
{
	uint32_t i;

	for (i = 0; i < c->n_twice && i < 32; i++)
		if (c->twice[i] + 1 == c->got && is_number(f, c->twice[i]))
			return true;
	return false;
}

static void
take_block(struct model_channel *c, const struct outbox_block *b)
{
	struct pb_reader r;
	struct pb_field f;
	char text[16];

	pb_init(&r, b->data, b->len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case LINK_UP_COMMIT:
			take_chunk(c, &f);
			break;
		case LINK_UP_LOSS:
			take_loss(c, &f);
			break;
		case LINK_UP_TRIGGER:
			snprintf(text, sizeof(text), "%u", c->got);
			if (is_twice(c, &f))
				break;
			if (!is_number(&f, c->got))
				fail_msg("trigger %.*s instead of %s",
				    (int)f.len, (const char *)f.data, text);
			c->got++;
			break;
		case LINK_UP_CLOSE:
			break;
		default:
			fail_msg("a message of kind %u", f.number);
		}
	}
	assert_false(r.bad);
}

bool
model_take(struct model *m, struct outbox *o)
{
	struct model_channel *c;
	struct outbox_block b;

	if (!outbox_next(o, &b))
		return false;
	if (b.number <= m->received)
		return true;
	assert_int_equal(b.number, m->received + 1);
	c = channel_of(m, b.channel);
	take_block(c, &b);
	c->sent += b.len;
	m->sent += b.len;
	m->received = b.number;
	assert_true(m->sent - m->consumed <= WINDOW);
	return true;
}

void
model_acknowledge(struct model *m, struct outbox *o)
{
	assert_int_equal(outbox_acked(o, m->received), 0);
}

static void
say_consumed(struct model *m, struct outbox *o)
{
	unsigned i;

	for (i = 0; i < MODEL_CHANNELS; i++)
		assert_int_equal(outbox_consumed(o, m->channels[i].id,
		    m->channels[i].consumed), 0);
	assert_int_equal(outbox_consumed_in_all(o, m->consumed), 0);
}

void
model_consume(struct model *m, struct outbox *o)
{
	unsigned i;

	for (i = 0; i < MODEL_CHANNELS; i++) {
		if (model_random(m, 4) == 0)
			continue;
		m->consumed += m->channels[i].sent - m->channels[i].consumed;
		m->channels[i].consumed = m->channels[i].sent;
	}
	say_consumed(m, o);
}

void
model_resume(struct model *m, struct outbox *o)
{
	outbox_set_window(o, WINDOW);
	assert_int_equal(outbox_resume(o, m->received), 0);
	say_consumed(m, o);
}

static bool
is_empty(const struct outbox *o)
{
	struct outbox_stats s;

	outbox_stats(o, &s);
	return s.memory_bytes == 0 && s.spool_bytes == 0;
}

void
model_drain(struct model *m, struct outbox_world *w)
{
	unsigned idle = 0;

	while (idle < 4 || (idle < 1000 && !is_empty(w->o))) {
		world_turn(w);
		idle = model_take(m, w->o) ? 0 : idle + 1;
		model_acknowledge(m, w->o);
		model_consume(m, w->o);
	}
}

uint64_t
model_last_seed(uint64_t first, uint64_t n)
{
	const char *share = getenv("MODEL_SHARE");

	n /= share != NULL && atoi(share) > 0 ? (uint64_t)atoi(share) : 1;
	return first + (n > 0 ? n - 1 : 0);
}

void
model_check(const struct model *m)
{
	const struct model_writer *w;
	const struct model_channel *c;
	uint64_t whole, missing, told;
	unsigned i, j;
	uint32_t p;

	for (i = 0; i < MODEL_CHANNELS; i++) {
		c = &m->channels[i];
		if (c->got != c->put)
			fail_msg("channel %u: %u messages of %u", c->id,
			    c->got, c->put);
		missing = told = 0;
		for (j = 0; j < MODEL_WRITERS; j++) {
			w = &c->writers[j];
			whole = 0;
			for (p = 0; p < w->state.packets; p++) {
				assert_true(w->in[p] <= w->out[p]);
				whole += w->in[p] == w->out[p];
			}
			missing += w->state.packets - whole;
			told += w->lost;
			if (c->whole_losses == 0 &&
			    (w->lost < w->state.packets - whole ||
			    (!m->rough && w->lost >
			    w->state.packets - whole + w->again)))
				fail_msg("channel %u, writer %u: %u packets, "
				    "%u whole, %u told to be lost", c->id,
				    j + 1, w->state.packets, (unsigned)whole,
				    (unsigned)w->lost);
		}
		if (told + c->whole_losses < missing)
			fail_msg("channel %u: %u packets are missing, %u told",
			    c->id, (unsigned)missing,
			    (unsigned)(told + c->whole_losses));
	}
}
