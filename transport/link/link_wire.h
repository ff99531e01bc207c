/*
 * link_wire: the frames of the link between a relay and its collector, read and
 * written in place (protos/link.proto, docs/link-protocol.md).
 *
 * Pure and without allocation.  What a parser returns points into its input.
 * LinkOpen and LinkOpened, which come once a connection, are left to generated
 * code.
 */
#ifndef TRANSPORT_LINK_LINK_WIRE_H
#define TRANSPORT_LINK_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/fields.h"
#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"

#define LINK_VERSION 1u
/* The methods of the service are Open, Up, Down and Move, in this order. */
#define LINK_METHOD_UP 2u
#define LINK_ID_BYTES 16u
/* LinkOrigin.session. */
#define LINK_ORIGIN_BYTES 16u
/*
 * LinkOpen.buffer_tag stands above so many bits of a buffer's id; the greatest
 * there is.
 */
#define LINK_TAG_SHIFT 16u
#define LINK_TAG_MAX   UINT16_MAX
/*
 * Most bytes of all LinkMoves of an Open together, each counted with so many
 * more: a relay that has more to tell begins a new link.
 */
#define LINK_MOVES_MAX (4u * 1024u * 1024u)
#define LINK_MOVE_COST 64u

/*
 * Most bytes of a block, uncompressed: with what zstd adds at worst, and all
 * heads, its frame stays below FRAME_MAX_BYTES.
 */
#define LINK_BLOCK_MAX (96u * 1024u)
/* A message of a block, without its tag and length. */
#define LINK_MESSAGE_MAX (LINK_BLOCK_MAX - 16u)

/*
 * Kinds of messages in a block that goes up.  UNREGISTER_WRITER, STARTED,
 * STOPPED and CLOSE_BELOW carry a varint, the others bytes.
 */
enum link_up {
	LINK_UP_COMMIT = LinkUpBlock_commit,
	LINK_UP_OPEN = LinkUpBlock_open,
	LINK_UP_CLOSE = LinkUpBlock_close,
	LINK_UP_REGISTER_SOURCE = LinkUpBlock_register_source,
	LINK_UP_UPDATE_SOURCE = LinkUpBlock_update_source,
	LINK_UP_UNREGISTER_SOURCE = LinkUpBlock_unregister_source,
	LINK_UP_REGISTER_WRITER = LinkUpBlock_register_writer,
	LINK_UP_UNREGISTER_WRITER = LinkUpBlock_unregister_writer,
	LINK_UP_STARTED = LinkUpBlock_started,
	LINK_UP_STOPPED = LinkUpBlock_stopped,
	LINK_UP_TRIGGER = LinkUpBlock_trigger,
	LINK_UP_LOSS = LinkUpBlock_loss,
	LINK_UP_CLOSE_BELOW = LinkUpBlock_close_below,
	LINK_UP_LEAVE = LinkUpBlock_leave,
};

/* Kinds of messages in a block that goes down. */
enum link_down {
	LINK_DOWN_COMMAND = LinkDownBlock_command,
	LINK_DOWN_REFUSED = LinkDownBlock_refused,
	LINK_DOWN_SOURCE_REFUSED = LinkDownBlock_source_refused,
	LINK_DOWN_ORIGIN = LinkDownBlock_origin,
	LINK_DOWN_DRAIN = LinkDownBlock_drain,
};

struct link_frame {
	uint64_t number;  /* 0: no block */
	uint32_t channel;
	const uint8_t *block; /* as on the wire, compressed or not */
	size_t len;
	bool compressed;
	size_t raw_size;      /* compressed: bytes of the plain block */
	bool has_received;
	uint64_t received;
	bool has_consumed_in_all;
	uint64_t consumed_in_all;
	const uint8_t *clock;  /* LinkClock, or NULL */
	size_t clock_len;
	const uint8_t *status; /* LinkStatus, or NULL */
	size_t status_len;
	struct pb_reader consumed; /* for link_next_consumed() */
};

/*
 * -1: malformed; a block without a number or a number without a block; longer
 * than LINK_BLOCK_MAX, said or real; both a plain and a compressed one.
 */
int link_parse_frame(struct link_frame *f, const uint8_t *data, size_t len)
    MUST_CHECK;
/* The next of the frame's `consumed` fields; false: no more. */
bool link_next_consumed(struct link_frame *f, uint32_t *channel,
    uint64_t *bytes);

/*
 * Writes all of a frame but the bytes of its block, which come last; clock and
 * status are in the head, too.  Ignores f->consumed: see below.  Returns the
 * bytes written.
 */
#define LINK_HEAD_MAX 1024u
#define LINK_CLOCK_MAX 512u  /* an encoded LinkClock */
#define LINK_STATUS_MAX 256u /* an encoded LinkStatus */
size_t link_put_head(uint8_t out[LINK_HEAD_MAX], const struct link_frame *f);

/* One LinkFrame.consumed, to stand before or behind a head.  Returns bytes. */
#define LINK_CONSUMED_MAX 24u
size_t link_put_consumed(uint8_t out[LINK_CONSUMED_MAX], uint32_t channel,
    uint64_t bytes);

/*
 * The tag and length of a message of so many bytes in a block; or tag and value
 * for the kinds that are a varint.  Room for 16 bytes; returns the bytes.
 */
#define LINK_MESSAGE_HEAD_MAX 16u
size_t link_put_message_head(uint8_t out[LINK_MESSAGE_HEAD_MAX], uint32_t kind,
    size_t len);
size_t link_put_varint(uint8_t out[LINK_MESSAGE_HEAD_MAX], uint32_t kind,
    uint64_t value);

/* LinkLoss, decoded: fixed size, as it is read and written on full disks. */
struct link_loss {
	uint32_t writer;
	uint32_t buffer;
	uint32_t cause; /* LinkLossCause */
	uint64_t chunks;
	uint64_t packets;
	uint64_t bytes;
	uint32_t old_channel; /* 0: none */
	uint32_t first_chunk;
	uint32_t last_chunk;
};
#define LINK_LOSS_MAX 80u
#define LINK_LOSS_CAUSES 10u /* LinkLossCause is below */
/* Causes that relays count: a part of their file format, and so fixed. */
#define LINK_LOSS_OF_RELAYS 8u
/* -1: malformed.  A cause that no relay may report reads as 0. */
int link_parse_loss(struct link_loss *l, const uint8_t *data, size_t len)
    MUST_CHECK;
size_t link_put_loss(uint8_t out[LINK_LOSS_MAX], const struct link_loss *l);
/* Writes a loss as a message of a block, LINK_UP_LOSS. */
#define LINK_LOSS_MESSAGE_MAX (LINK_MESSAGE_HEAD_MAX + LINK_LOSS_MAX)
size_t link_put_loss_message(uint8_t out[LINK_LOSS_MESSAGE_MAX],
    const struct link_loss *l);
/* For people: "spool full"; also for causes that only the collector reports. */
const char *link_loss_text(uint32_t cause);

#endif /* TRANSPORT_LINK_LINK_WIRE_H */
