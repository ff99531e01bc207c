#include <string.h>

#include "protos/fields.h"
#include "protos/utf8.h"
#include "relay/clocks/link_clocks.h"
#include "relay/producers/producers.h"
#include "relay/uplink/conn_internal.h"
#include "transport/link/link_clock.h"
#include "transport/link/link_zstd.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"

/* ---- blocks ---- */

/* Copies a reason, in the collector's words, escaped. */
static void
copy_text(char out[RPC_WHY_MAX], const uint8_t *data, size_t len)
{
	utf8_escape(out, RPC_WHY_MAX, (const char *)data, len, "");
}

static void
refuse_producer(struct uplink_conn *l, uint32_t channel,
    const struct pb_field *f)
{
	char why[RPC_WHY_MAX];

	copy_text(why, f->data, f->len);
	log_limited(&l->log_limit, loop_turn_ms(l->setup.loop),
	    LOG_LEVEL_WARN, "the collector does not serve producer %u: %s",
	    channel, why);
	producers_refused(l->setup.producers, channel, why);
}

static void
refuse_source(struct uplink_conn *l, uint32_t channel,
    const struct pb_field *f)
{
	char name[RPC_WHY_MAX] = "", why[RPC_WHY_MAX] = "";
	struct pb_reader r;
	struct pb_field part;

	PB_FOREACH(&part, &r, f->data, f->len) {
		if (part.wire == PB_BYTES &&
		    part.number == LinkSourceRefused_name)
			copy_text(name, part.data, part.len);
		else if (part.wire == PB_BYTES &&
		    part.number == LinkSourceRefused_reason)
			copy_text(why, part.data, part.len);
	}
	log_limited(&l->log_limit, loop_turn_ms(l->setup.loop),
	    LOG_LEVEL_WARN, "the collector does not take data source %s of "
	    "producer %u: %s", name, channel, why);
}

/* Acts on a LinkDownBlock.  Messages that are newer than we are: skipped. */
static void
act_on(struct uplink_conn *l, uint32_t channel, const uint8_t *block,
    size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, block, len);
	while (l->state == UL_OPEN && pb_next(&r, &f)) {
		if (f.wire != PB_BYTES)
			continue;
		switch (f.number) {
		case LINK_DOWN_COMMAND:
			producers_command(l->setup.producers, channel, f.data,
			    f.len);
			break;
		case LINK_DOWN_ORIGIN:
			producers_origin(l->setup.producers, channel, f.data,
			    f.len);
			break;
		case LINK_DOWN_DRAIN:
			l->setup.ops->leave(l->setup.arg);
			break;
		case LINK_DOWN_REFUSED:
			refuse_producer(l, channel, &f);
			break;
		case LINK_DOWN_SOURCE_REFUSED:
			refuse_source(l, channel, &f);
			break;
		}
	}
}

/*
 * Decompresses a block, even one that was taken before: the compressed stream
 * goes through all. -1: the link has ended.
 */
static int
unpack(struct uplink_conn *l, const struct link_frame *f,
    const uint8_t **block, size_t *len)
{
	*block = f->block;
	*len = f->len;
	if (!f->compressed)
		return 0;
	if (l->unzip == NULL ||
	    link_decompress(l->unzip, f->block, f->len, f->raw_size, block) !=
	    0) {
		uplink_conn_fail(l, "the collector sent a block that cannot be "
		    "decompressed");
		return -1;
	}
	*len = f->raw_size;
	return 0;
}

static void
take_block(struct uplink_conn *l, const struct link_frame *f)
{
	const uint8_t *block;
	size_t len;

	if (unpack(l, f, &block, &len) != 0)
		return;
	switch (link_in_take(&l->in, f->number)) {
	case LINK_IN_AGAIN:
		return;
	case LINK_IN_GAP:
		uplink_conn_fail(l, "the collector left out a block");
		return;
	case LINK_IN_NEW:
		break;
	}
	if (!pb_well_formed(block, len)) {
		uplink_conn_fail(l, "the collector sent a block that cannot be "
		    "parsed");
		return;
	}
	act_on(l, f->channel, block, len);
	if (l->state != UL_OPEN)
		return;
	/*
	 * Stored after the act, not before: a relay that is killed in between
	 * asks for the block again.
	 */
	outbox_set_received(l->setup.outbox, l->in.received);
	l->useful = true;
	uplink_conn_kick(l);
}

/* ---- what stands beside blocks ---- */

/* -1: the link has ended. */
static int
take_counts(struct uplink_conn *l, struct link_frame *f)
{
	struct outbox *o = l->setup.outbox;
	uint32_t channel;
	uint64_t bytes;
	bool more = false;

	if (f->has_received) {
		/*
		 * The collector may not know what was sent on an earlier
		 * connection.
		 */
		if (f->received > l->sent ||
		    outbox_acked(o, f->received) != 0) {
			uplink_conn_fail(l, "the collector acknowledged a "
			    "block that was not sent");
			return -1;
		}
		uplink_send_acked(l, f->received);
		more = true;
	}
	while (link_next_consumed(f, &channel, &bytes)) {
		if (outbox_consumed(o, channel, bytes) != 0)
			goto too_much;
		more = true;
	}
	if (f->has_consumed_in_all) {
		if (outbox_consumed_in_all(o, f->consumed_in_all) != 0)
			goto too_much;
		more = true;
	}
	if (more)
		uplink_conn_kick(l);
	return 0;

too_much:
	uplink_conn_fail(l, "the collector consumed more than was sent");
	return -1;
}

static void
take_clock(struct uplink_conn *l, const struct link_frame *f)
{
	uint32_t kind, id;

	link_clock_peek(f->clock, f->clock_len, &kind, &id);
	uplink_liveness_ponged(&l->watch);
	if (id != UPLINK_PROBE_ID)
		link_clocks_take(l->setup.clocks, f->clock, f->clock_len);
}

void
uplink_receive_frame(struct uplink_conn *l, const uint8_t *data, size_t len)
{
	struct link_frame f;

	if (link_parse_frame(&f, data, len) != 0) {
		uplink_conn_fail(l, "the collector sent a frame that cannot be "
		    "parsed");
		return;
	}
	/* First, as a clock message is worth less with each microsecond. */
	if (f.clock != NULL)
		take_clock(l, &f);
	uplink_liveness_heard(&l->watch, loop_turn_ms(l->setup.loop));
	if (take_counts(l, &f) != 0)
		return;
	if (f.number != 0)
		take_block(l, &f);
	if (f.has_received)
		l->setup.ops->acked(l->setup.arg);
}
