#include "transport/shm/commit_wire.h"

#include <string.h>

#include "protos/fields.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

/* Lengths up to 2 MiB, as varints that are longer than they need to be. */
#define LENGTH_BYTES 3u

bool
commit_parse_move(struct commit_move *m, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	memset(m, 0, sizeof(*m));
	PB_FOREACH(&f, &r, data, len) {
		switch (f.number) {
		case ChunksToMove_page:
			m->page = (uint32_t)f.value;
			break;
		case ChunksToMove_chunk:
			m->chunk = (uint32_t)f.value;
			break;
		case ChunksToMove_target_buffer:
			m->buffer = (uint32_t)f.value;
			break;
		case ChunksToMove_data:
			if (f.wire != PB_BYTES)
				return false;
			m->data = f.data;
			m->len = f.len;
			break;
		case ChunksToMove_chunk_incomplete:
			m->incomplete = f.value != 0;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

bool
commit_parse_patch(struct commit_patch *p, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	*p = (struct commit_patch){ .data = data, .len = len };
	PB_FOREACH(&f, &r, data, len) {
		switch (f.number) {
		case ChunkToPatch_target_buffer:
			p->buffer = (uint32_t)f.value;
			break;
		case ChunkToPatch_writer_id:
			p->writer = (uint32_t)f.value;
			break;
		case ChunkToPatch_chunk_id:
			p->chunk = (uint32_t)f.value;
			break;
		case ChunkToPatch_has_more_patches:
			p->more = f.value != 0;
			break;
		case ChunkToPatch_patches:
			if (f.wire != PB_BYTES || !pb_well_formed(f.data, f.len))
				return false;
			p->patches++;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

size_t
commit_put_patch(uint8_t *out, const uint8_t *data, size_t len,
    uint32_t buffer)
{
	struct pb_reader r;
	struct pb_field f;
	uint8_t head[8];
	size_t head_len, body, n = 0;

	head[0] = PB_TAG(ChunkToPatch_target_buffer, PB_VARINT);
	head_len = 1 + pb_encode_varint(head + 1, buffer);
	body = head_len;
	PB_FOREACH(&f, &r, data, len)
		if (f.number != ChunkToPatch_target_buffer)
			body += (size_t)(r.p - f.start);
	out[n++] = PB_TAG(CommitDataRequest_chunks_to_patch, PB_BYTES);
	n += pb_encode_varint(out + n, body);
	memcpy(out + n, head, head_len);
	n += head_len;
	PB_FOREACH(&f, &r, data, len) {
		if (f.number == ChunkToPatch_target_buffer)
			continue;
		memcpy(out + n, f.start, (size_t)(r.p - f.start));
		n += (size_t)(r.p - f.start);
	}
	return n;
}

static size_t
put_length(uint8_t *out, size_t len)
{
	out[0] = (uint8_t)(len | 0x80);
	out[1] = (uint8_t)(len >> 7 | 0x80);
	out[2] = (uint8_t)(len >> 14 & 0x7f);
	return LENGTH_BYTES;
}

/* Bytes of the fields before the data. */
static size_t
fields_size(const struct commit_chunk *c)
{
	return 1 + pb_varint_size(c->buffer) + (c->incomplete ? 2 : 0);
}

size_t
commit_chunk_head_size(const struct commit_chunk *c)
{
	return 1 + LENGTH_BYTES + fields_size(c) + 1 + LENGTH_BYTES +
	    SHM_CHUNK_HEADER_BYTES;
}

void
commit_put_chunk_head(uint8_t *out, const struct commit_chunk *c, size_t len)
{
	size_t n = 0, data = SHM_CHUNK_HEADER_BYTES + len;

	out[n++] = PB_TAG(CommitDataRequest_chunks_to_move, PB_BYTES);
	n += put_length(out + n, fields_size(c) + 1 + LENGTH_BYTES + data);
	out[n++] = PB_TAG(ChunksToMove_target_buffer, PB_VARINT);
	n += pb_encode_varint(out + n, c->buffer);
	if (c->incomplete) {
		out[n++] = PB_TAG(ChunksToMove_chunk_incomplete, PB_VARINT);
		out[n++] = 1;
	}
	out[n++] = PB_TAG(ChunksToMove_data, PB_BYTES);
	n += put_length(out + n, data);
	/* Little-endian hosts only. */
	memcpy(out + n, &c->chunk_id, 4);
	memcpy(out + n + 4, &c->writer, 2);
	memcpy(out + n + 6, &c->packets, 2);
}

size_t
commit_put_flush(uint8_t out[COMMIT_FLUSH_MAX], uint64_t request_id)
{
	out[0] = PB_TAG(CommitDataRequest_flush_request_id, PB_VARINT);
	return 1 + pb_encode_varint(out + 1, request_id);
}
