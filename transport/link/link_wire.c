#include "transport/link/link_wire.h"

#include <string.h>

#include "protos/fields.h"
#include "transport/link/link_zstd.h"
#include "transport/wire/pb_writer.h"

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
		if (f.number == LinkConsumed_channel)
			rc = take_u32(&f, channel);
		else if (f.number == LinkConsumed_bytes)
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
	case LinkFrame_number:
		return take_u64(field, &f->number);
	case LinkFrame_channel:
		return take_u32(field, &f->channel);
	case LinkFrame_block:
	case LinkFrame_zstd_block:
		if (f->block != NULL)
			return -1;
		f->compressed = field->number == LinkFrame_zstd_block;
		return take_bytes(field, &f->block, &f->len);
	case LinkFrame_raw_size:
		if (take_u64(field, &size) != 0 || size > LINK_BLOCK_MAX)
			return -1;
		f->raw_size = (size_t)size;
		return 0;
	case LinkFrame_received:
		f->has_received = true;
		return take_u64(field, &f->received);
	case LinkFrame_consumed: /* link_next_consumed() need not look again */
		return take_consumed(field, &channel, &bytes);
	case LinkFrame_consumed_in_all:
		f->has_consumed_in_all = true;
		return take_u64(field, &f->consumed_in_all);
	case LinkFrame_clock:
		return take_bytes(field, &f->clock, &f->clock_len);
	case LinkFrame_status:
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

	PB_FOREACH(&field, &r, data, len)
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
		if (field.number == LinkFrame_consumed &&
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
		case LinkLoss_writer:
			rc = take_u32(&f, &got.writer);
			break;
		case LinkLoss_buffer:
			rc = take_u32(&f, &got.buffer);
			break;
		case LinkLoss_cause:
			rc = take_u32(&f, &got.cause);
			break;
		case LinkLoss_chunks:
			rc = take_u64(&f, &got.chunks);
			break;
		case LinkLoss_packets:
			rc = take_u64(&f, &got.packets);
			break;
		case LinkLoss_bytes:
			rc = take_u64(&f, &got.bytes);
			break;
		case LinkLoss_old_channel:
			rc = take_u32(&f, &got.old_channel);
			break;
		case LinkLoss_first_chunk:
			rc = take_u32(&f, &got.first_chunk);
			break;
		case LinkLoss_last_chunk:
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

/* Leaves out 0, which an absent field reads as. */
static size_t
put_uint_unless_0(uint8_t *out, uint32_t number, uint64_t value)
{
	return value != 0 ? put_uint(out, number, value) : 0;
}

/* Puts tag and length of a bytes field, without the bytes. */
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

	n += put_uint_unless_0(out + n, LinkFrame_number, f->number);
	n += put_uint_unless_0(out + n, LinkFrame_channel, f->channel);
	if (f->has_received)
		n += put_uint(out + n, LinkFrame_received, f->received);
	if (f->has_consumed_in_all)
		n += put_uint(out + n, LinkFrame_consumed_in_all,
		    f->consumed_in_all);
	if (f->clock != NULL && f->clock_len <= LINK_CLOCK_MAX)
		n += put_bytes(out + n, LinkFrame_clock, f->clock,
		    f->clock_len);
	if (f->status != NULL && f->status_len <= LINK_STATUS_MAX)
		n += put_bytes(out + n, LinkFrame_status, f->status,
		    f->status_len);
	if (f->number == 0)
		return n;
	if (f->compressed)
		n += put_uint(out + n, LinkFrame_raw_size, f->raw_size);
	n += put_length(out + n,
	    f->compressed ? LinkFrame_zstd_block : LinkFrame_block, f->len);
	return n;
}

size_t
link_put_consumed(uint8_t out[LINK_CONSUMED_MAX], uint32_t channel,
    uint64_t bytes)
{
	uint8_t inner[LINK_CONSUMED_MAX];
	size_t n;

	n = put_uint_unless_0(inner, LinkConsumed_channel, channel);
	n += put_uint(inner + n, LinkConsumed_bytes, bytes);
	return put_bytes(out, LinkFrame_consumed, inner, n);
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

	n += put_uint_unless_0(out + n, LinkLoss_writer, l->writer);
	n += put_uint_unless_0(out + n, LinkLoss_buffer, l->buffer);
	n += put_uint_unless_0(out + n, LinkLoss_cause, l->cause);
	n += put_uint_unless_0(out + n, LinkLoss_chunks, l->chunks);
	n += put_uint_unless_0(out + n, LinkLoss_packets, l->packets);
	n += put_uint_unless_0(out + n, LinkLoss_bytes, l->bytes);
	n += put_uint_unless_0(out + n, LinkLoss_old_channel, l->old_channel);
	n += put_uint_unless_0(out + n, LinkLoss_first_chunk, l->first_chunk);
	n += put_uint_unless_0(out + n, LinkLoss_last_chunk, l->last_chunk);
	return n;
}

size_t
link_put_loss_message(uint8_t out[LINK_LOSS_MESSAGE_MAX],
    const struct link_loss *l)
{
	uint8_t bytes[LINK_LOSS_MAX];
	size_t len = link_put_loss(bytes, l), n;

	n = link_put_message_head(out, LINK_UP_LOSS, len);
	memcpy(out + n, bytes, len);
	return n + len;
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
		"not all had come at the end",
		"trace file failed",
		"over its quota",
	};

	_Static_assert(sizeof(text) / sizeof(text[0]) == LINK_LOSS_CAUSES,
	    "a text for each cause");
	return text[cause < LINK_LOSS_CAUSES ? cause : 0];
}
