/*
 * commit_chunk: the chunks in a CommitDataRequest, as far as losses are counted
 * by them.  Pure; the bytes may be anything.
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
	uint32_t fragments; /* whole ones */
	bool continues; /* the first belongs to a packet of the chunk before */
	bool goes_on;   /* the last one does to one of the chunk behind, too */
	bool incomplete;
	uint32_t bytes;
};

/*
 * Steps through a CommitDataRequest: the next field; *is_chunk tells whether it
 * is a chunk, described in *c (fragments 0 when it is none that can be read).
 */
bool commit_chunk_next_field(struct pb_reader *commit, struct pb_field *f,
    bool *is_chunk, struct commit_chunk *c);
/* Steps to the next chunk. */
bool commit_chunk_next(struct pb_reader *commit, struct commit_chunk *c);

#endif /* RELAY_OUTBOX_COMMIT_CHUNK_H */
