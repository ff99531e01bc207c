/*
 * What the protocol demands of a collector.  A block is checked when it is
 * taken; how long it then waits for credit is chance.
 */
#include <stdlib.h>
#include <string.h>

#include "protos/link.pb-c.h"
#include "tests/unit/link/model.h"
#include "transport/link/link_zstd.h"

#define CHANNELS_MAX 512
#define COMMANDS_BYTES (1u << 20)
#define FORMER_MAX 64

#define WHY(name) TRIBUTARY__LINK_OPENED__WHY__##name

struct far_channel {
	uint32_t number;
	uint64_t taken;
	uint64_t consumed;
	bool open;   /* may be told something */
	bool report;
};

struct far_link {
	struct far_link *next;
	uint8_t id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	uint32_t epoch;
	int why;    /* it began */
	bool heard; /* so the relay knows that it did */
	struct link_in in;
	struct link_out *out;
	struct far_channel channels[CHANNELS_MAX];
	size_t n_channels;
	uint64_t taken;
	uint64_t consumed;
	uint64_t consumed_told;
	struct wire *wire; /* NULL: cut off */
	struct link_compressor *zip; /* NULL: plain */
	struct link_decompressor *unzip;
};

struct former {
	uint8_t id[LINK_ID_BYTES];
	int why;
};

struct collector {
	struct book *book;
	uint64_t window;
	uint8_t id[LINK_ID_BYTES];
	struct far_link *links;
	struct former former[FORMER_MAX];
	size_t n_former;
};

static void
new_id(struct collector *c)
{
	size_t i;

	for (i = 0; i < LINK_ID_BYTES; i++)
		c->id[i] = (uint8_t)model_below(256);
}

struct collector *
collector_new(struct book *b, uint64_t window)
{
	struct collector *c = calloc(1, sizeof(*c));

	MODEL_CHECK(c != NULL);
	c->book = b;
	c->window = window;
	new_id(c);
	return c;
}

static void
drop_connection(struct far_link *l)
{
	if (l->wire != NULL)
		l->wire->collector_hung_up = true;
	l->wire = NULL;
	link_compressor_free(l->zip);
	link_decompressor_free(l->unzip);
	l->zip = NULL;
	l->unzip = NULL;
}

static void
end_link(struct collector *c, struct far_link *l, int why)
{
	struct far_link **at;
	struct former *f;

	for (at = &c->links; *at != l; at = &(*at)->next)
		;
	*at = l->next;
	drop_connection(l);
	f = &c->former[c->n_former++ % FORMER_MAX];
	memcpy(f->id, l->id, sizeof(f->id));
	f->why = why;
	link_out_free(l->out);
	free(l);
}

void
collector_restart(struct collector *c)
{
	while (c->links != NULL)
		end_link(c, c->links, 0);
	c->n_former = 0;
	new_id(c);
}

void
collector_free(struct collector *c)
{
	if (c == NULL)
		return;
	collector_restart(c);
	free(c);
}

static struct far_link *
connected(const struct collector *c)
{
	struct far_link *l;

	for (l = c->links; l != NULL; l = l->next)
		if (l->wire != NULL)
			return l;
	return NULL;
}

void
collector_end_grace(struct collector *c)
{
	struct far_link *l, *next;

	for (l = c->links; l != NULL; l = next) {
		next = l->next;
		if (l->wire == NULL)
			end_link(c, l, WHY(GRACE_OVER));
	}
}

void
collector_give_up(struct collector *c)
{
	if (c->links != NULL)
		end_link(c, c->links, WHY(GIVEN_UP));
}

void
collector_hang_up(struct collector *c)
{
	struct far_link *l = connected(c);

	if (l != NULL)
		drop_connection(l);
}

/* ---- Open ---- */

static bool
same(const uint8_t a[LINK_ID_BYTES], const uint8_t b[LINK_ID_BYTES])
{
	return memcmp(a, b, LINK_ID_BYTES) == 0;
}

static int
why_anew(const struct collector *c, const struct wire_open *o)
{
	size_t i;

	if (!o->knows_collector)
		return WHY(NEW);
	if (!same(o->collector_id, c->id))
		return WHY(COLLECTOR_RESTARTED);
	for (i = 0; i < FORMER_MAX && i < c->n_former; i++)
		if (same(c->former[i].id, o->link_id))
			return c->former[i].why;
	return WHY(GRACE_OVER);
}

static struct far_link *
find_link(const struct collector *c, const struct wire_open *o)
{
	struct far_link *l;

	for (l = c->links; l != NULL; l = l->next)
		if (same(l->id, o->link_id))
			return l;
	return NULL;
}

enum judgement { RESUMES, BEGINS_ANEW, BEGINS_AS_BEFORE, IS_STALE };

/*
 * An Open may be late: its relay has connected anew meanwhile.  Nothing that is
 * known to go on may end for it.
 */
static enum judgement
judge(const struct collector *c, struct far_link *l, const struct wire_open *o)
{
	bool knows_us = o->knows_collector && same(o->collector_id, c->id);

	if (l == NULL)
		return BEGINS_ANEW;
	MODEL_CHECK(same(l->relay_id, o->relay_id));
	/* Does it know that this link has begun?  Or the one before it? */
	if (!l->heard && (!knows_us || l->why == WHY(GRACE_OVER) ||
	    l->why == WHY(GIVEN_UP)))
		return BEGINS_AS_BEFORE;
	if (!knows_us || o->last_sent < l->in.received ||
	    o->last_acknowledged > l->in.received)
		return IS_STALE;
	return link_out_resume(l->out, o->received) == 0 ? RESUMES : IS_STALE;
}

static struct far_link *
begin_link(struct collector *c, const struct wire_open *o)
{
	struct far_link *l, *old, *next;

	for (old = c->links; old != NULL; old = next) {
		next = old->next;
		if (old->wire == NULL && same(old->relay_id, o->relay_id))
			end_link(c, old, WHY(GRACE_OVER));
	}
	MODEL_CHECK((l = calloc(1, sizeof(*l))) != NULL);
	MODEL_CHECK((l->out = link_out_new(COMMANDS_BYTES)) != NULL);
	memcpy(l->id, o->link_id, sizeof(l->id));
	memcpy(l->relay_id, o->relay_id, sizeof(l->relay_id));
	l->epoch = o->epoch;
	l->channels[0].number = 0;
	l->n_channels = 1;
	l->next = c->links;
	c->links = l;
	return l;
}

static void
tell_consumed(const struct far_link *l, struct wire_opened *a)
{
	size_t i;

	/* What does not fit, or by chance, is reported behind it. */
	for (i = 0; i < l->n_channels; i++) {
		if (a->n_consumed == WIRE_CONSUMED_MAX)
			break;
		a->consumed[a->n_consumed].channel = l->channels[i].number;
		a->consumed[a->n_consumed++].bytes = l->channels[i].consumed;
	}
	a->consumed_in_all = l->consumed;
}

static void
take_open(struct collector *c, struct wire *w, const struct wire_open *o)
{
	struct far_link *l = find_link(c, o);
	struct wire_opened a = { .window = c->window, .level = o->level };
	size_t i;

	memcpy(a.collector_id, c->id, sizeof(a.collector_id));
	switch (judge(c, l, o)) {
	case RESUMES:
		drop_connection(l); /* the newer one wins */
		a.why = WHY(RESUMED);
		break;
	case BEGINS_AS_BEFORE:
		drop_connection(l);
		a.why = l->why;
		l->epoch = o->epoch;
		break;
	case BEGINS_ANEW:
		a.why = why_anew(c, o);
		l = begin_link(c, o);
		l->why = a.why;
		break;
	case IS_STALE:
		w->collector_hung_up = true;
		return;
	}
	l->wire = w;
	l->in.told = l->in.received;
	a.received = l->in.received;
	tell_consumed(l, &a);
	l->consumed_told = l->consumed;
	for (i = 0; i < l->n_channels; i++)
		l->channels[i].report = i >= WIRE_CONSUMED_MAX;
	if (o->level > 0) {
		MODEL_CHECK((l->zip = link_compressor_new(1)) != NULL);
		MODEL_CHECK((l->unzip = link_decompressor_new()) != NULL);
	}
	pipe_put(&w->down, WIRE_OPENED, &a, sizeof(a), NULL, 0);
}

/* ---- up ---- */

static struct far_channel *
channel_of(struct far_link *l, uint32_t number)
{
	size_t i;

	for (i = 0; i < l->n_channels; i++)
		if (l->channels[i].number == number)
			return &l->channels[i];
	MODEL_CHECK(l->n_channels < CHANNELS_MAX);
	l->channels[i].number = number;
	l->n_channels++;
	return &l->channels[i];
}

/* Who can be told something, as far as the collector knows. */
static void
note_life(struct far_channel *ch, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field m;

	pb_init(&r, data, len);
	while (pb_next(&r, &m)) {
		if (m.number == LINK_UP_OPEN)
			ch->open = true;
		if (m.number == LINK_UP_CLOSE)
			ch->open = false;
	}
}

static void
take_block(struct collector *c, struct far_link *l, const struct link_frame *f)
{
	const uint8_t *data = f->block;
	size_t len = f->len;
	struct far_channel *ch;

	if (f->compressed) {
		MODEL_CHECK(l->unzip != NULL);
		len = f->raw_size;
		MODEL_CHECK(link_decompress(l->unzip, f->block, f->len, len,
		    &data) == 0);
	}
	switch (link_in_take(&l->in, f->number)) {
	case LINK_IN_AGAIN:
		return;
	case LINK_IN_GAP:
		model_fail(__FILE__, __LINE__, "a gap");
	case LINK_IN_NEW:
		break;
	}
	ch = channel_of(l, f->channel);
	ch->taken += len;
	l->taken += len;
	MODEL_CHECK(l->taken - l->consumed <= c->window);
	note_life(ch, data, len);
	book_take_block(c->book, l->epoch, f->number, f->channel, data, len);
}

static void
take_frame(struct collector *c, struct far_link *l, const uint8_t *data,
    size_t len)
{
	struct link_frame f;

	MODEL_CHECK(link_parse_frame(&f, data, len) == 0);
	l->heard = true;
	if (f.has_received)
		MODEL_CHECK(link_out_acked(l->out, f.received) == 0);
	if (f.number != 0)
		take_block(c, l, &f);
}

static struct far_link *
link_on(const struct collector *c, const struct wire *w)
{
	struct far_link *l;

	for (l = c->links; l != NULL; l = l->next)
		if (l->wire == w)
			return l;
	return NULL;
}

void
collector_receive(struct collector *c, struct wire *w)
{
	struct wire_open open;
	struct far_link *l;
	enum wire_kind kind;
	const uint8_t *data;
	size_t len;

	while (!w->collector_hung_up &&
	    pipe_next(&w->up, &kind, &data, &len)) {
		if (kind == WIRE_OPEN) {
			MODEL_CHECK(len == sizeof(open));
			memcpy(&open, data, len);
			take_open(c, w, &open);
		} else {
			MODEL_CHECK((l = link_on(c, w)) != NULL);
			take_frame(c, l, data, len);
		}
		pipe_took(&w->up);
	}
	if (w->relay_hung_up && pipe_on_the_way(&w->up) == 0) {
		if ((l = link_on(c, w)) != NULL)
			drop_connection(l);
		w->collector_hung_up = true;
	}
}

/* ---- down ---- */

static void
consume(struct far_link *l, struct far_channel *ch, uint64_t n)
{
	if (n == 0)
		return;
	ch->consumed += n;
	l->consumed += n;
	ch->report = true;
}

void
collector_consume(struct collector *c, bool all)
{
	struct far_channel *ch;
	struct far_link *l;
	uint64_t waits;
	size_t i;

	for (l = c->links; l != NULL; l = l->next) {
		for (i = 0; i < l->n_channels; i++) {
			ch = &l->channels[i];
			waits = ch->taken - ch->consumed;
			if (all)
				consume(l, ch, waits);
			else if (waits > 0 && model_chance(40))
				consume(l, ch, model_chance(50) ? waits :
				    model_below((uint32_t)waits + 1));
		}
	}
}

void
collector_consume_all_but(struct collector *c, uint32_t from, uint32_t to)
{
	struct far_link *l = connected(c);
	struct far_channel *ch;
	size_t i;

	for (i = 0; l != NULL && i < l->n_channels; i++) {
		ch = &l->channels[i];
		if (ch->number < from || ch->number > to)
			consume(l, ch, ch->taken - ch->consumed);
	}
}

void
collector_say_command(struct collector *c)
{
	uint8_t command[2000];
	size_t i, len, chosen = 0;
	struct far_link *l;

	if ((l = c->links) == NULL || l->epoch != c->book->epoch)
		return;
	for (i = 1; i < l->n_channels; i++)
		if (l->channels[i].open && (chosen == 0 || model_chance(30)))
			chosen = i;
	if (chosen == 0 || link_out_bytes(l->out) > COMMANDS_BYTES / 2)
		return;
	len = book_say_command(c->book, l->channels[chosen].number, command,
	    16 + model_below(sizeof(command) - 15));
	MODEL_CHECK(link_out_put(l->out, l->channels[chosen].number,
	    LINK_DOWN_COMMAND, command, len) == 0);
}

static void
send_frame(struct far_link *l, struct link_frame *f, const uint8_t *consumed,
    size_t consumed_len)
{
	uint8_t head[LINK_HEAD_MAX + 256];
	size_t n;

	MODEL_CHECK(consumed_len <= 256);
	if (consumed_len > 0)
		memcpy(head, consumed, consumed_len);
	if (l->in.told != l->in.received || model_chance(10)) {
		f->has_received = true;
		f->received = l->in.told = l->in.received;
	}
	n = consumed_len + link_put_head(head + consumed_len, f);
	pipe_put(&l->wire->down, WIRE_FRAME, head, n, f->block, f->len);
}

static void
send_report(struct far_link *l)
{
	uint8_t consumed[256];
	struct link_frame f = { 0 };
	struct far_channel *ch;
	size_t n = 0, i;

	for (i = 0; i < l->n_channels; i++) {
		ch = &l->channels[i];
		if (!ch->report)
			continue;
		if (n + LINK_CONSUMED_MAX > sizeof(consumed))
			break;
		ch->report = false;
		n += link_put_consumed(consumed + n, ch->number, ch->consumed);
	}
	if (i == l->n_channels && l->consumed_told != l->consumed) {
		f.has_consumed_in_all = true;
		f.consumed_in_all = l->consumed_told = l->consumed;
	}
	if (n > 0 || f.has_consumed_in_all || l->in.told != l->in.received)
		send_frame(l, &f, consumed, n);
}

static bool
send_block(struct far_link *l)
{
	struct link_out_block b;
	struct link_frame f = { 0 };

	if (!link_out_next(l->out, &b))
		return false;
	f.number = b.number;
	f.channel = b.channel;
	f.block = b.data;
	f.len = b.len;
	if (l->zip != NULL && model_chance(80)) {
		f.compressed = true;
		f.raw_size = b.len;
		MODEL_CHECK(link_compress(l->zip, b.data, b.len, &f.block,
		    &f.len) == 0);
	}
	send_frame(l, &f, NULL, 0);
	return true;
}

void
collector_send(struct collector *c, unsigned blocks)
{
	struct far_link *l = connected(c);

	if (l == NULL)
		return;
	while (blocks-- > 0 && send_block(l))
		;
	send_report(l);
}

bool
collector_is_empty(const struct collector *c)
{
	const struct far_link *l = connected(c);

	return l != NULL && link_out_bytes(l->out) == 0 &&
	    l->taken == l->consumed && l->in.told == l->in.received;
}
