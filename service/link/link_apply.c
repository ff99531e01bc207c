/* Applies the messages of a block in place. */
#include <string.h>

#include "protos/fields.h"
#include "service/ingest/commit.h"
#include "service/ingest/writers.h"
#include "service/link/link_internal.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/producer.h"
#include "service/session/trigger.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Messages between two looks at the clock. */
#define MESSAGES_PER_CLOCK 128u

struct turn {
	uint64_t began_ms; /* 0: not looked yet */
	unsigned messages;
	unsigned triggers;
};

/* Whether this link's turn is over. */
static bool
turn_is_over(struct turn *t)
{
	if (++t->messages % MESSAGES_PER_CLOCK != 0)
		return false;
	if (t->began_ms == 0) {
		t->began_ms = loop_now_ms();
		return false;
	}
	return loop_now_ms() - t->began_ms >= LINK_TURN_MS;
}

static bool
is_varint(uint32_t kind)
{
	switch (kind) {
	case LINK_UP_UNREGISTER_WRITER:
	case LINK_UP_STARTED:
	case LINK_UP_STOPPED:
	case LINK_UP_CLOSE_BELOW:
		return true;
	default:
		return false;
	}
}

static bool
has_right_wire(const struct pb_field *f)
{
	if (f->number > LINK_UP_LEAVE)
		return true; /* newer than we: skipped */
	return f->wire == (is_varint(f->number) ? PB_VARINT : PB_BYTES);
}

static void
tell_refused_source(struct link_channel *c, const uint8_t *descriptor,
    size_t len, const char *why)
{
	struct pb_reader r;
	struct pb_field f;
	struct pb_writer w;

	pb_writer_init(&w);
	PB_FOREACH(&f, &r, descriptor, len)
		if (f.number == DataSourceDescriptor_name &&
		    f.wire == PB_BYTES && f.len <= MACHINE_INFO_MAX)
			pb_put_bytes(&w, LinkSourceRefused_name, f.data, f.len);
	pb_put_string(&w, LinkSourceRefused_reason, why);
	log_limited(&c->link->service->refused_log, loop_now_ms(),
	    LOG_LEVEL_WARN, "machine %u: data source of producer %u refused: "
	    "%s", c->link->machine->id, c->producer->id, why);
	if (!w.failed)
		link_tell(c, LINK_DOWN_SOURCE_REFUSED, w.data, w.len);
	pb_writer_done(&w);
}

void
link_register_source(struct link_channel *c, const uint8_t *descriptor,
    size_t len)
{
	const char *error = producer_register(c->producer, descriptor, len);

	if (error != NULL)
		tell_refused_source(c, descriptor, len, error);
}

/*
 * A data source of a channel that was moved here may have been told already:
 * the block with its registration waited for its acknowledgement.
 */
static bool
is_told_again(const struct link_channel *c, const struct pb_field *f)
{
	const char *name;
	size_t n;

	if (!c->moved)
		return false;
	name = source_descriptor_name(f->data, f->len, &n);
	return name != NULL &&
	    producer_find_data_source(c->producer, name, n) != NULL;
}

/* False: it does not parse. */
static bool
register_writer(struct producer *p, const struct pb_field *f)
{
	uint32_t writer = 0, buffer = 0;
	struct pb_reader r;
	struct pb_field g;

	PB_FOREACH(&g, &r, f->data, f->len) {
		if (g.number == LinkWriter_writer)
			writer = (uint32_t)g.value;
		else if (g.number == LinkWriter_buffer)
			buffer = (uint32_t)g.value;
	}
	if (!r.bad)
		writers_register(p, writer, buffer);
	return !r.bad;
}

static void
notify(struct producer *p, uint64_t id, void (*ack)(struct ds_instance *))
{
	struct ds_instance *i = producer_find_instance(p, id);

	if (i != NULL)
		ack(i);
}

/* LINK_LATER: a file has to catch up first. */
static enum link_applied
apply_commit(struct link_channel *c, const struct pb_field *f)
{
	uint64_t flush_id;

	switch (commit_data(c->producer, f->data, f->len, &flush_id)) {
	case COMMIT_OK:
		if (flush_id != 0)
			flush_ack(c->producer, flush_id);
		break;
	case COMMIT_BAD:
		break; /* counted, like a producer's own */
	case COMMIT_AGAIN:
		c->waiting = true;
		return LINK_LATER;
	}
	return LINK_APPLIED;
}

/* Applies a message of a channel that has a producer. */
static enum link_applied
apply_to_producer(struct link_channel *c, const struct pb_field *f,
    struct turn *t)
{
	struct producer *p = c->producer;

	switch ((enum link_up)f->number) {
	case LINK_UP_COMMIT:
		return apply_commit(c, f);
	case LINK_UP_REGISTER_SOURCE:
		if (is_told_again(c, f))
			producer_update(p, f->data, f->len);
		else
			link_register_source(c, f->data, f->len);
		break;
	case LINK_UP_UPDATE_SOURCE:
		producer_update(p, f->data, f->len);
		break;
	case LINK_UP_UNREGISTER_SOURCE:
		producer_unregister(p, (const char *)f->data, f->len);
		break;
	case LINK_UP_REGISTER_WRITER:
		if (!register_writer(p, f))
			return LINK_MALFORMED;
		break;
	case LINK_UP_UNREGISTER_WRITER:
		writers_unregister(p, (uint32_t)f->value);
		break;
	case LINK_UP_STARTED:
		notify(p, f->value, instance_ack_started);
		break;
	case LINK_UP_STOPPED:
		notify(p, f->value, instance_ack_stopped);
		break;
	case LINK_UP_TRIGGER:
		if (t->triggers++ < LINK_TRIGGERS_MAX)
			trigger_activate(p, (const char *)f->data, f->len);
		break;
	case LINK_UP_CLOSE:
		link_channel_close(c);
		break;
	case LINK_UP_OPEN:
	case LINK_UP_LOSS:
	case LINK_UP_CLOSE_BELOW:
	case LINK_UP_LEAVE:
		break;
	}
	return LINK_APPLIED;
}

static enum link_applied
apply_loss(struct link *l, struct link_channel *c, const struct pb_field *f)
{
	struct link_loss loss;

	if (link_parse_loss(&loss, f->data, f->len) != 0)
		return LINK_MALFORMED;
	link_loss_take(l, c, &loss);
	return LINK_APPLIED;
}

static enum link_applied
apply_one(struct link *l, struct link_channel *c, const struct pb_field *f,
    struct turn *t)
{
	if (!has_right_wire(f))
		return LINK_MALFORMED;
	if (f->number == LINK_UP_LOSS)
		return apply_loss(l, c, f);
	if (c == &l->own) {
		if (f->number == LINK_UP_CLOSE_BELOW)
			link_channels_close_below(l, (uint32_t)f->value);
		l->left |= f->number == LINK_UP_LEAVE;
		return LINK_APPLIED;
	}
	if (c->producer != NULL)
		return apply_to_producer(c, f, t);
	/* The producer was refused: only LINK_UP_CLOSE has an effect. */
	if (f->number == LINK_UP_CLOSE)
		link_channel_close(c);
	return LINK_APPLIED;
}

/*
 * Opens an unknown channel by its first message.  NULL: a violation, or no
 * memory (piece->why), or the channel was closed, and its blocks are skipped
 * (piece->why NULL).
 */
static struct link_channel *
begin_channel(struct link *l, struct link_piece *piece,
    const struct pb_field *f)
{
	piece->why = NULL;
	if (f->number != LINK_UP_OPEN)
		return NULL;
	piece->why = "malformed";
	if (f->wire != PB_BYTES)
		return NULL;
	return link_channel_open(l, piece->number, f->data, f->len,
	    &piece->why);
}

enum link_applied
link_apply(struct link *l, struct link_piece *piece)
{
	struct turn t = { 0 };
	enum link_applied a;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, piece->data, piece->len) {
		if (piece->channel == NULL) {
			piece->channel = begin_channel(l, piece, &f);
			if (piece->channel == NULL && piece->why != NULL)
				return LINK_MALFORMED;
			if (piece->channel == NULL)
				break;
			continue;
		}
		piece->why = "a channel that begins twice";
		if (f.number == LINK_UP_OPEN && piece->channel->moved) {
			/* Told already; a real second one comes to nothing. */
			piece->used = (size_t)(f.start - piece->data);
			continue;
		}
		if (f.number == LINK_UP_OPEN)
			return LINK_MALFORMED;
		if (turn_is_over(&t)) {
			piece->used = (size_t)(f.start - piece->data);
			return LINK_LATER;
		}
		piece->why = "a malformed message";
		a = apply_one(l, piece->channel, &f, &t);
		piece->used = (size_t)(f.start - piece->data);
		if (a != LINK_APPLIED)
			return a;
		if (piece->channel->state == CHANNEL_CLOSED)
			break;
	}
	piece->why = "a malformed block";
	if (r.bad)
		return LINK_MALFORMED;
	piece->used = piece->len;
	return LINK_APPLIED;
}
