/*
 * commit_chunk: reads of each chunk in a CommitDataRequest what the counting of
 * losses needs.  Pure; the bytes may be anything.
 */
#ifndef RELAY_OUTBOX_COMMIT_CHUNK_H
#define RELAY_OUTBOX_COMMIT_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/wire/pb_reader.h"

struct commit_chunk {
	uint32_t writer;
	uint32_t buffer;
	uint32_t id;
	uint32_t fragments; /* without the last one of an incomplete chunk */
	bool continues; /* the first fragment continues a packet from before */
	bool goes_on;   /* the last one's packet goes on in the next chunk */
	bool incomplete; /* scraped: the writer had not finished it */
	uint32_t bytes; /* of payload */
};

/*
 * Steps to the next field of a CommitDataRequest; false: the end, or bytes that
 * are no protobuf.  *is_chunk: the field is a chunk, described in *c, which is
 * all zero where the chunk cannot be read.
 */
bool commit_chunk_next_field(struct pb_reader *commit, struct pb_field *f,
    bool *is_chunk, struct commit_chunk *c);
/* Steps to the next chunk; false: there is none left. */
bool commit_chunk_next(struct pb_reader *commit, struct commit_chunk *c);

#endif /* RELAY_OUTBOX_COMMIT_CHUNK_H */
