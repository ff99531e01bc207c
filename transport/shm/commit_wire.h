/*
 * commit_wire: CommitDataRequest, read in place and written (reference
 * wire-format.md, common/commit_data_request.proto).  Pure.
 */
#ifndef TRANSPORT_SHM_COMMIT_WIRE_H
#define TRANSPORT_SHM_COMMIT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"

/* ChunksToMove */
struct commit_move {
	uint32_t page;
	uint32_t chunk;
	uint32_t buffer;
	const uint8_t *data; /* borrowed; NULL: the chunk is in shared memory */
	size_t len;
	bool incomplete;
};
bool commit_parse_move(struct commit_move *m, const uint8_t *data, size_t len)
    MUST_CHECK;

/* ChunkToPatch; its patches are messages in data. */
struct commit_patch {
	uint32_t buffer;
	uint32_t writer;
	uint32_t chunk;
	bool more;      /* patches of later requests are to come */
	size_t patches; /* how many there are in data */
	const uint8_t *data;
	size_t len;
};
/* p borrows data.  False: the message, or one of its patches, is malformed. */
bool commit_parse_patch(struct commit_patch *p, const uint8_t *data,
    size_t len) MUST_CHECK;
/*
 * Writes a request with one ChunkToPatch (data, as in commit_patch), with its
 * buffer replaced.  out has room for len + COMMIT_PATCH_MORE bytes; returns the
 * bytes written.
 */
#define COMMIT_PATCH_MORE 24u
size_t commit_put_patch(uint8_t *out, const uint8_t *data, size_t len,
    uint32_t buffer);

/*
 * A request with one chunk as data: its head, the bytes before a payload of len
 * bytes.  The head can be written after the payload, once len is known, as its
 * size does not depend on len.
 */
struct commit_chunk {
	uint32_t buffer;
	uint32_t chunk_id;
	uint16_t writer;
	uint16_t packets; /* the chunk's count of fragments, and flags */
	bool incomplete;
};
/* Bytes of the head of this chunk. */
size_t commit_chunk_head_size(const struct commit_chunk *c);
void commit_put_chunk_head(uint8_t *out, const struct commit_chunk *c,
    size_t len);

/* A request that acknowledges a flush.  Returns the bytes. */
#define COMMIT_FLUSH_MAX 12u
size_t commit_put_flush(uint8_t out[COMMIT_FLUSH_MAX], uint64_t request_id);

#endif /* TRANSPORT_SHM_COMMIT_WIRE_H */
