#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/link.pb-c.h"
#include "tests/unit/link/model.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Of CommitDataRequest. */
enum { MOVE = 1, MOVE_BUFFER = 3, MOVE_DATA = 4 };
#define BUFFER 7u
/*
 * A packet of SAID_PACKET in a chunk: its size, the tag and size of for_testing
 * (900), the tag and size of its str, and that.
 */
#define PACKET_BYTES (1 + 3 + 2 + SAID_PACKET_TEXT)
#define PACKETS_MAX  40

void
book_init(struct book *b)
{
	memset(b, 0, sizeof(*b));
	b->effects_end = &b->effects;
}

static void
drop_effects(struct book *b)
{
	struct effect *e;

	while ((e = b->effects) != NULL) {
		b->effects = e->next;
		free(e);
	}
	b->effects_end = &b->effects;
}

void
book_done(struct book *b)
{
	struct said_channel *c;
	int w;

	drop_effects(b);
	while ((c = b->channels) != NULL) {
		b->channels = c->next;
		for (w = 0; w < WRITERS_MAX; w++)
			free(c->writers[w].chunks);
		free(c->before);
		free(c);
	}
}

static struct said_channel *
find(struct book *b, uint32_t epoch, uint32_t number)
{
	struct said_channel *c;

	for (c = b->channels; c != NULL; c = c->next)
		if (c->epoch == epoch && c->number == number)
			return c;
	return NULL;
}

struct said_channel *
book_channel(struct book *b, uint32_t number)
{
	struct said_channel *c;

	MODEL_CHECK(find(b, b->epoch, number) == NULL);
	MODEL_CHECK((c = calloc(1, sizeof(*c))) != NULL);
	c->epoch = b->epoch;
	c->number = number;
	c->buffer = b->real ? 0 : BUFFER;
	c->next = b->channels;
	b->channels = c;
	return c;
}

void
book_new_link(struct book *b)
{
	/* What arrived without the relay's knowledge counts as lost there. */
	drop_effects(b);
	b->epoch++;
	b->commands_said = b->commands_got = 0;
}

/* ---- chunks ---- */

struct said_chunk
book_think_of_chunk(const struct book *b, struct said_channel *c, int writer,
    bool whole_packets, uint32_t bytes_max)
{
	struct said_writer *w = &c->writers[writer];
	struct said_chunk k = { .controls = c->controls_said,
		.first = w->packets };

	if (b->real) {
		k.fragments = (uint8_t)(1 + model_below(PACKETS_MAX));
		k.bytes = k.fragments * PACKET_BYTES;
		return k;
	}
	k.bytes = model_chance(20) ? model_below(200) :
	    model_below(bytes_max + 1);
	k.continues = w->said > 0 && w->chunks[w->said - 1].goes_on;
	k.fragments = (uint8_t)(1 + model_below(20));
	k.goes_on = !whole_packets && model_chance(30);
	return k;
}

/* The bytes of a chunk are a function of whose it is. */
static uint8_t
byte_of(const struct said_channel *c, int writer, size_t chunk, size_t i)
{
	return (uint8_t)(c->number * 31u + c->epoch * 17u +
	    (uint32_t)writer * 7u + chunk * 5u + i + (i >> 7));
}

static void
put_packets(const struct said_channel *c, int writer,
    const struct said_chunk *chunk, uint8_t *out)
{
	static const uint8_t head[] = { PACKET_BYTES - 1, 0xa2, 0x38,
		2 + SAID_PACKET_TEXT, 0x0a, SAID_PACKET_TEXT };
	char text[SAID_PACKET_TEXT + 1];
	unsigned i, n;

	for (i = 0; i < chunk->fragments; i++) {
		n = (unsigned)snprintf(text, sizeof(text), SAID_PACKET,
		    c->epoch, c->number, (unsigned)writer,
		    (unsigned long long)chunk->first + i);
		memset(text + n, '-', SAID_PACKET_TEXT - n);
		memcpy(out, head, sizeof(head));
		memcpy(out + sizeof(head), text, SAID_PACKET_TEXT);
		out += PACKET_BYTES;
	}
}

size_t
book_encode_chunk(const struct book *b, struct said_channel *c, int writer,
    const struct said_chunk *chunk, uint8_t *out)
{
	uint32_t id = (uint32_t)c->writers[writer].said;
	uint16_t packets = (uint16_t)(chunk->fragments |
	    (chunk->continues ? SHM_FIRST_CONTINUES_FROM_PREV : 0) << 10 |
	    (chunk->goes_on ? SHM_LAST_CONTINUES_ON_NEXT : 0) << 10);
	size_t len = SHM_CHUNK_HEADER_BYTES + chunk->bytes, n = 0, inner, i;
	uint8_t *p;

	inner = 1 + pb_varint_size(c->buffer) + 1 + pb_varint_size(len) + len;
	out[n++] = MOVE << 3 | PB_BYTES;
	n += pb_encode_varint(out + n, inner);
	out[n++] = MOVE_BUFFER << 3 | PB_VARINT;
	n += pb_encode_varint(out + n, c->buffer);
	out[n++] = MOVE_DATA << 3 | PB_BYTES;
	n += pb_encode_varint(out + n, len);
	p = out + n;
	memcpy(p, &id, 4);
	p[4] = (uint8_t)(writer + 1);
	p[5] = 0;
	memcpy(p + 6, &packets, 2);
	if (b->real)
		put_packets(c, writer, chunk, p + SHM_CHUNK_HEADER_BYTES);
	for (i = 0; !b->real && i < chunk->bytes; i++)
		p[SHM_CHUNK_HEADER_BYTES + i] = byte_of(c, writer, id, i);
	return n + len;
}

void
book_say_chunk(struct said_channel *c, int writer,
    const struct said_chunk *chunk)
{
	struct said_writer *w = &c->writers[writer];

	if (w->said == w->cap) {
		w->cap = w->cap > 0 ? w->cap * 2 : 64;
		w->chunks = realloc(w->chunks, w->cap * sizeof(*w->chunks));
		MODEL_CHECK(w->chunks != NULL);
	}
	w->chunks[w->said++] = *chunk;
	w->packets += chunk->fragments;
}

void
book_say_refused(struct said_channel *c, int writer, struct said_chunk *chunk,
    struct link_loss *loss)
{
	const struct said_writer *w = &c->writers[writer];

	memset(loss, 0, sizeof(*loss));
	loss->writer = (uint32_t)writer + 1;
	loss->buffer = c->buffer;
	loss->chunks = 1;
	loss->bytes = chunk->bytes;
	loss->packets = chunk->fragments;
	if (chunk->continues && w->chunks[w->said - 1].refused)
		loss->packets--;
	chunk->refused = true;
	book_say_chunk(c, writer, chunk);
}

static int
writer_of(uint32_t id)
{
	MODEL_CHECK(id >= 1 && id <= WRITERS_MAX);
	return (int)id - 1;
}

static void
add_effect(struct book *b, uint64_t number, struct said_channel *c, int writer,
    uint64_t old_told)
{
	struct effect *e;

	if (c->epoch != b->epoch && old_told == 0)
		return; /* late: nobody will hear of it */
	MODEL_CHECK((e = calloc(1, sizeof(*e))) != NULL);
	e->number = number;
	e->channel = c;
	e->writer = writer;
	e->got = c->writers[writer].got;
	e->old_told = old_told;
	*b->effects_end = e;
	b->effects_end = &e->next;
}

static void
take_chunk(struct book *b, uint64_t number, struct said_channel *c,
    const uint8_t *data, size_t len)
{
	struct shm_chunk got;
	struct said_writer *w;
	struct said_chunk *said;
	int writer;
	size_t i;

	MODEL_CHECK(shm_chunk_from_bytes(data, len, &got) == 0);
	writer = writer_of(got.writer_id);
	w = &c->writers[writer];
	/* exactly once, in order, or counted before */
	MODEL_CHECK(got.chunk_id == w->got);
	MODEL_CHECK(w->got < w->said);
	said = &w->chunks[w->got];
	MODEL_CHECK(said->controls == c->controls_got);
	MODEL_CHECK(got.num_fragments == said->fragments);
	MODEL_CHECK(got.len == said->bytes);
	for (i = 0; i < got.len; i++)
		if (got.payload[i] != byte_of(c, writer, w->got, i))
			model_fail(__FILE__, __LINE__, "the chunk's bytes");
	/* a fragment alone may be of a packet that was lost before */
	if (!said->goes_on || !said->continues || said->fragments > 1)
		w->tail_is_lost = false;
	w->got++;
	b->chunks_arrived++;
	add_effect(b, number, c, writer, 0);
}

static void
take_commit(struct book *b, uint64_t number, struct said_channel *c,
    const struct pb_field *m)
{
	struct pb_reader r, move;
	struct pb_field f, g;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f)) {
		MODEL_CHECK(f.number == MOVE);
		pb_init(&move, f.data, f.len);
		while (pb_next(&move, &g)) {
			if (g.number == MOVE_BUFFER)
				MODEL_CHECK(g.value == BUFFER);
			else
				take_chunk(b, number, c, g.data, g.len);
		}
	}
	MODEL_CHECK(!r.bad);
}

/* ---- losses ---- */

/* Packets that are lost with the next chunk, which is. */
static uint64_t
lose_next(struct said_writer *w)
{
	const struct said_chunk *k = &w->chunks[w->got++];
	uint64_t n = k->fragments;

	/* one that was lost before, though parts of it may have arrived */
	if (k->continues && w->tail_is_lost)
		n--;
	w->tail_is_lost = k->goes_on;
	return n;
}

static void
take_loss_here(struct book *b, uint64_t number, struct said_channel *c,
    const struct link_loss *l)
{
	int writer = writer_of(l->writer);
	struct said_writer *w = &c->writers[writer];
	uint64_t bytes = 0, i;

	w->ahead += (int64_t)l->packets;
	MODEL_CHECK(l->cause != 0 && l->buffer == c->buffer);
	MODEL_CHECK(l->chunks > 0 && l->chunks <= w->said - w->got);
	for (i = 0; i < l->chunks; i++) {
		/* who refused it cannot know what became of the one before */
		w->unsure += w->chunks[w->got].refused &&
		    w->chunks[w->got].continues;
		bytes += w->chunks[w->got].bytes;
		w->ahead -= (int64_t)lose_next(w);
	}
	MODEL_CHECK(w->ahead >= -1 && w->ahead <= w->unsure + 1);
	MODEL_CHECK(l->bytes == bytes);
	b->chunks_lost += l->chunks;
	add_effect(b, number, c, writer, 0);
}

/*
 * Of a link that is over; of several, when channels have the same number: then
 * it is noted with the newest.
 */
static void
take_old_loss(struct book *b, uint32_t epoch, uint64_t number,
    const struct link_loss *l)
{
	int writer = writer_of(l->writer);
	struct said_channel *c;

	MODEL_CHECK(l->cause != 0);
	for (c = b->channels; c != NULL; c = c->next)
		if (c->number == l->old_channel && c->epoch < epoch)
			break;
	MODEL_CHECK(c != NULL);
	if (epoch == b->epoch)
		add_effect(b, number, c, writer, l->chunks);
}

/* ---- controls ---- */

size_t
book_say_control(struct said_channel *c, char *out, size_t size)
{
	uint32_t n = c->controls_said++;
	int w, len;

	c->before = realloc(c->before, c->controls_said * sizeof(*c->before));
	MODEL_CHECK(c->before != NULL);
	for (w = 0; w < WRITERS_MAX; w++)
		c->before[n][w] = (uint32_t)c->writers[w].said;
	len = snprintf(out, size, "%u.%u %u", c->epoch, c->number, n);
	MODEL_CHECK(len > 0 && (size_t)len < size);
	return (size_t)len;
}

static void
take_control(struct book *b, struct said_channel *c, const struct pb_field *m)
{
	char want[64];
	int w, len;

	MODEL_CHECK(c->controls_got < c->controls_said);
	len = snprintf(want, sizeof(want), "%u.%u %u", c->epoch, c->number,
	    c->controls_got);
	MODEL_CHECK(m->len >= (size_t)len);
	MODEL_CHECK(memcmp(m->data, want, (size_t)len) == 0);
	/* what was said before it is there, or counted, and nothing else */
	for (w = 0; w < WRITERS_MAX; w++)
		MODEL_CHECK(c->writers[w].got ==
		    c->before[c->controls_got][w]);
	c->controls_got++;
	b->controls_arrived++;
}

/* ---- blocks ---- */

static void
take_message(struct book *b, uint64_t number, struct said_channel *c,
    const struct pb_field *m)
{
	struct link_loss l;

	MODEL_CHECK(!c->closed_got);
	MODEL_CHECK(c->opened_got == (m->number != LINK_UP_OPEN));
	switch (m->number) {
	case LINK_UP_OPEN:
		c->opened_got = true;
		break;
	case LINK_UP_COMMIT:
		take_commit(b, number, c, m);
		break;
	case LINK_UP_TRIGGER:
		take_control(b, c, m);
		break;
	case LINK_UP_LOSS:
		MODEL_CHECK(link_parse_loss(&l, m->data, m->len) == 0);
		MODEL_CHECK(l.old_channel == 0);
		take_loss_here(b, number, c, &l);
		break;
	case LINK_UP_CLOSE:
		MODEL_CHECK(c->closed_said);
		c->closed_got = true;
		break;
	default:
		model_fail(__FILE__, __LINE__, "a kind that was never said");
	}
}

/* Channel 0. */
static void
take_own(struct book *b, uint32_t epoch, uint64_t number,
    const struct pb_field *m)
{
	struct said_channel *c;
	struct link_loss l;

	if (m->number == LINK_UP_CLOSE_BELOW) {
		for (c = b->channels; c != NULL; c = c->next)
			if (c->epoch == epoch && c->number < m->value)
				MODEL_CHECK(c->closed_got);
		return;
	}
	MODEL_CHECK(m->number == LINK_UP_LOSS);
	MODEL_CHECK(link_parse_loss(&l, m->data, m->len) == 0);
	take_old_loss(b, epoch, number, &l);
}

void
book_take_block(struct book *b, uint32_t epoch, uint64_t number,
    uint32_t channel, const uint8_t *data, size_t len)
{
	struct said_channel *c = find(b, epoch, channel);
	struct pb_reader r;
	struct pb_field m;

	MODEL_CHECK(channel == 0 || c != NULL);
	pb_init(&r, data, len);
	while (pb_next(&r, &m)) {
		if (channel == 0)
			take_own(b, epoch, number, &m);
		else
			take_message(b, number, c, &m);
	}
	MODEL_CHECK(!r.bad);
}

void
book_settle(struct book *b, uint64_t number)
{
	struct said_writer *w;
	struct effect *e;

	while ((e = b->effects) != NULL && e->number <= number) {
		w = &e->channel->writers[e->writer];
		if (e->old_told > 0) {
			w->old_told += e->old_told;
			b->old_chunks += e->old_told;
		} else {
			w->settled = e->got;
		}
		b->effects = e->next;
		if (b->effects == NULL)
			b->effects_end = &b->effects;
		free(e);
	}
}

/* Of all links that are over: what was said, and not known to have arrived. */
static void
check_old(struct book *b, const struct said_channel *newest, int writer)
{
	const struct said_channel *c;
	uint64_t lost = 0, told = 0;

	for (c = newest; c != NULL; c = c->next) {
		if (c->number != newest->number || c->epoch == b->epoch)
			continue;
		lost += c->writers[writer].said - c->writers[writer].settled;
		told += c->writers[writer].old_told;
	}
	MODEL_CHECK(lost == told);
}

static bool
is_newest_old(const struct book *b, const struct said_channel *wanted)
{
	const struct said_channel *c;

	for (c = b->channels; c != wanted; c = c->next)
		if (c->number == wanted->number && c->epoch != b->epoch)
			return false;
	return wanted->epoch != b->epoch;
}

void
book_check_all(struct book *b)
{
	const struct said_channel *c;
	int w;

	MODEL_CHECK(b->effects == NULL);
	MODEL_CHECK(b->commands_got == b->commands_said);
	for (c = b->channels; c != NULL; c = c->next) {
		for (w = 0; w < WRITERS_MAX; w++) {
			if (is_newest_old(b, c))
				check_old(b, c, w);
			if (c->epoch != b->epoch)
				continue;
			MODEL_CHECK(c->writers[w].settled ==
			    c->writers[w].said);
			MODEL_CHECK(c->writers[w].ahead >= 0 &&
			    c->writers[w].ahead <= c->writers[w].unsure);
		}
		if (c->epoch != b->epoch)
			continue;
		MODEL_CHECK(c->controls_got == c->controls_said);
		MODEL_CHECK(c->closed_got == c->closed_said);
	}
}

/* ---- down ---- */

size_t
book_say_command(struct book *b, uint32_t channel, uint8_t *out, size_t size)
{
	uint32_t epoch = b->epoch;

	MODEL_CHECK(size >= 16);
	memset(out, (int)b->commands_said, size);
	memcpy(out, &b->commands_said, 8);
	memcpy(out + 8, &epoch, 4);
	memcpy(out + 12, &channel, 4);
	b->commands_said++;
	return size;
}

void
book_take_command(struct book *b, uint32_t channel, const uint8_t *data,
    size_t len)
{
	MODEL_CHECK(len >= 16 && memcmp(data, &b->commands_got, 8) == 0);
	MODEL_CHECK(memcmp(data + 8, &b->epoch, 4) == 0);
	MODEL_CHECK(memcmp(data + 12, &channel, 4) == 0);
	b->commands_got++;
	b->commands_arrived++;
}
