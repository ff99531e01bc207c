#include "transport/link/link_wire.h"

#include <string.h>

#include "transport/link/link_zstd.h"
#include "transport/wire/pb_writer.h"

/* Fields of LinkFrame, LinkConsumed and LinkLoss (protos/link.proto). */
enum {
	FRAME_NUMBER = 1,
	FRAME_CHANNEL = 2,
	FRAME_BLOCK = 3,
	FRAME_ZSTD_BLOCK = 4,
	FRAME_RAW_SIZE = 5,
	FRAME_RECEIVED = 6,
	FRAME_CONSUMED = 7,
	FRAME_CONSUMED_IN_ALL = 8,
	FRAME_CLOCK = 9,
	FRAME_STATUS = 10,
};
enum { CONSUMED_CHANNEL = 1, CONSUMED_BYTES = 2 };
enum {
	LOSS_WRITER = 1,
	LOSS_BUFFER = 2,
	LOSS_CAUSE = 3,
	LOSS_CHUNKS = 4,
	LOSS_PACKETS = 5,
	LOSS_BYTES = 6,
	LOSS_OLD_CHANNEL = 7,
	LOSS_FIRST_CHUNK = 8,
	LOSS_LAST_CHUNK = 9,
};

/* ---- reading ---- */

static int
take_u64(const struct pb_field *field, uint64_t *out)
{
	if (field->wire != PB_VARINT)
		return -1;
	*out = field->value;
	return 0;
}

static int
take_u32(const struct pb_field *field, uint32_t *out)
{
	if (field->wire != PB_VARINT || field->value > UINT32_MAX)
		return -1;
	*out = (uint32_t)field->value;
	return 0;
}

static int
take_bytes(const struct pb_field *field, const uint8_t **data, size_t *len)
{
	if (field->wire != PB_BYTES)
		return -1;
	*data = field->data;
	*len = field->len;
	return 0;
}

static int
take_consumed(const struct pb_field *field, uint32_t *channel, uint64_t *bytes)
{
	struct pb_reader r;
	struct pb_field f;
	int rc = 0;

	if (field->wire != PB_BYTES)
		return -1;
	*channel = 0;
	*bytes = 0;
	pb_init(&r, field->data, field->len);
	while (rc == 0 && pb_next(&r, &f)) {
		if (f.number == CONSUMED_CHANNEL)
			rc = take_u32(&f, channel);
		else if (f.number == CONSUMED_BYTES)
			rc = take_u64(&f, bytes);
	}
	return r.bad ? -1 : rc;
}

static int
frame_field(struct link_frame *f, const struct pb_field *field)
{
	uint64_t bytes, size;
	uint32_t channel;

	switch (field->number) {
	case FRAME_NUMBER:
		return take_u64(field, &f->number);
	case FRAME_CHANNEL:
		return take_u32(field, &f->channel);
	case FRAME_BLOCK:
	case FRAME_ZSTD_BLOCK:
		if (f->block != NULL)
			return -1;
		f->compressed = field->number == FRAME_ZSTD_BLOCK;
		return take_bytes(field, &f->block, &f->len);
	case FRAME_RAW_SIZE:
		if (take_u64(field, &size) != 0 || size > LINK_BLOCK_MAX)
			return -1;
		f->raw_size = (size_t)size;
		return 0;
	case FRAME_RECEIVED:
		f->has_received = true;
		return take_u64(field, &f->received);
	case FRAME_CONSUMED: /* link_next_consumed() need not look again */
		return take_consumed(field, &channel, &bytes);
	case FRAME_CONSUMED_IN_ALL:
		f->has_consumed_in_all = true;
		return take_u64(field, &f->consumed_in_all);
	case FRAME_CLOCK:
		return take_bytes(field, &f->clock, &f->clock_len);
	case FRAME_STATUS:
		return take_bytes(field, &f->status, &f->status_len);
	default:
		return 0;
	}
}

int
link_parse_frame(struct link_frame *f, const uint8_t *data, size_t len)
{
	struct link_frame got = { 0 };
	struct pb_reader r;
	struct pb_field field;

	pb_init(&r, data, len);
	while (pb_next(&r, &field))
		if (frame_field(&got, &field) != 0)
			return -1;
	if (r.bad || (got.block != NULL) != (got.number != 0))
		return -1;
	if (got.block != NULL && got.len == 0)
		return -1;
	if (got.compressed) {
		if (got.raw_size == 0 || got.len > LINK_ZSTD_BLOCK_MAX)
			return -1;
	} else {
		if (got.len > LINK_BLOCK_MAX)
			return -1;
		got.raw_size = 0;
	}
	pb_init(&got.consumed, data, len);
	*f = got;
	return 0;
}

bool
link_next_consumed(struct link_frame *f, uint32_t *channel, uint64_t *bytes)
{
	struct pb_field field;

	while (pb_next(&f->consumed, &field))
		if (field.number == FRAME_CONSUMED &&
		    take_consumed(&field, channel, bytes) == 0)
			return true;
	return false;
}

int
link_parse_loss(struct link_loss *l, const uint8_t *data, size_t len)
{
	struct link_loss got = { 0 };
	struct pb_reader r;
	struct pb_field f;
	int rc = 0;

	pb_init(&r, data, len);
	while (rc == 0 && pb_next(&r, &f)) {
		switch (f.number) {
		case LOSS_WRITER:
			rc = take_u32(&f, &got.writer);
			break;
		case LOSS_BUFFER:
			rc = take_u32(&f, &got.buffer);
			break;
		case LOSS_CAUSE:
			rc = take_u32(&f, &got.cause);
			break;
		case LOSS_CHUNKS:
			rc = take_u64(&f, &got.chunks);
			break;
		case LOSS_PACKETS:
			rc = take_u64(&f, &got.packets);
			break;
		case LOSS_BYTES:
			rc = take_u64(&f, &got.bytes);
			break;
		case LOSS_OLD_CHANNEL:
			rc = take_u32(&f, &got.old_channel);
			break;
		case LOSS_FIRST_CHUNK:
			rc = take_u32(&f, &got.first_chunk);
			break;
		case LOSS_LAST_CHUNK:
			rc = take_u32(&f, &got.last_chunk);
			break;
		}
	}
	if (r.bad || rc != 0)
		return -1;
	if (got.cause >= LINK_LOSS_OF_RELAYS)
		got.cause = 0;
	*l = got;
	return 0;
}

/* ---- writing ---- */

static size_t
put_tag(uint8_t *out, uint32_t number, enum pb_wire wire)
{
	return pb_encode_varint(out, (uint64_t)number << 3 | wire);
}

static size_t
put_uint(uint8_t *out, uint32_t number, uint64_t value)
{
	size_t n = put_tag(out, number, PB_VARINT);

	return n + pb_encode_varint(out + n, value);
}

/* Leaves out what reads the same when it is not there. */
static size_t
put_uint_unless_0(uint8_t *out, uint32_t number, uint64_t value)
{
	return value != 0 ? put_uint(out, number, value) : 0;
}

/* As far as the bytes themselves. */
static size_t
put_length(uint8_t *out, uint32_t number, size_t len)
{
	size_t n = put_tag(out, number, PB_BYTES);

	return n + pb_encode_varint(out + n, len);
}

static size_t
put_bytes(uint8_t *out, uint32_t number, const uint8_t *data, size_t len)
{
	size_t n = put_length(out, number, len);

	if (len > 0)
		memcpy(out + n, data, len);
	return n + len;
}

size_t
link_put_head(uint8_t out[LINK_HEAD_MAX], const struct link_frame *f)
{
	size_t n = 0;

	n += put_uint_unless_0(out + n, FRAME_NUMBER, f->number);
	n += put_uint_unless_0(out + n, FRAME_CHANNEL, f->channel);
	if (f->has_received)
		n += put_uint(out + n, FRAME_RECEIVED, f->received);
	if (f->has_consumed_in_all)
		n += put_uint(out + n, FRAME_CONSUMED_IN_ALL,
		    f->consumed_in_all);
	if (f->clock != NULL && f->clock_len <= LINK_CLOCK_MAX)
		n += put_bytes(out + n, FRAME_CLOCK, f->clock, f->clock_len);
	if (f->status != NULL && f->status_len <= LINK_STATUS_MAX)
		n += put_bytes(out + n, FRAME_STATUS, f->status,
		    f->status_len);
	if (f->number == 0)
		return n;
	if (f->compressed)
		n += put_uint(out + n, FRAME_RAW_SIZE, f->raw_size);
	n += put_length(out + n,
	    f->compressed ? FRAME_ZSTD_BLOCK : FRAME_BLOCK, f->len);
	return n;
}

size_t
link_put_consumed(uint8_t out[LINK_CONSUMED_MAX], uint32_t channel,
    uint64_t bytes)
{
	uint8_t inner[LINK_CONSUMED_MAX];
	size_t n;

	n = put_uint_unless_0(inner, CONSUMED_CHANNEL, channel);
	n += put_uint(inner + n, CONSUMED_BYTES, bytes);
	return put_bytes(out, FRAME_CONSUMED, inner, n);
}

size_t
link_put_message_head(uint8_t out[LINK_MESSAGE_HEAD_MAX], uint32_t kind,
    size_t len)
{
	return put_length(out, kind, len);
}

size_t
link_put_varint(uint8_t out[LINK_MESSAGE_HEAD_MAX], uint32_t kind,
    uint64_t value)
{
	return put_uint(out, kind, value);
}

size_t
link_put_loss(uint8_t out[LINK_LOSS_MAX], const struct link_loss *l)
{
	size_t n = 0;

	n += put_uint_unless_0(out + n, LOSS_WRITER, l->writer);
	n += put_uint_unless_0(out + n, LOSS_BUFFER, l->buffer);
	n += put_uint_unless_0(out + n, LOSS_CAUSE, l->cause);
	n += put_uint_unless_0(out + n, LOSS_CHUNKS, l->chunks);
	n += put_uint_unless_0(out + n, LOSS_PACKETS, l->packets);
	n += put_uint_unless_0(out + n, LOSS_BYTES, l->bytes);
	n += put_uint_unless_0(out + n, LOSS_OLD_CHANNEL, l->old_channel);
	n += put_uint_unless_0(out + n, LOSS_FIRST_CHUNK, l->first_chunk);
	n += put_uint_unless_0(out + n, LOSS_LAST_CHUNK, l->last_chunk);
	return n;
}

const char *
link_loss_text(uint32_t cause)
{
	static const char *const text[] = {
		"unknown cause",
		"spool full",
		"disk full or failed",
		"spool damaged",
		"link given up by the collector",
		"collector restarted",
		"longer than a block",
		"link down at the end",
		"trace file failed",
		"over its quota",
	};

	_Static_assert(sizeof(text) / sizeof(text[0]) == LINK_LOSS_CAUSES,
	    "a text for each cause");
	return text[cause < LINK_LOSS_CAUSES ? cause : 0];
}
