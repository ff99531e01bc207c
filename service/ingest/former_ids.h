/*
 * former_ids: buffers and data sources that a former collector gave ids, for a
 * producer whose link was moved here (docs/link-protocol.md, "Moving").
 *
 * Its commits go on to name buffers by those ids, and instances that go on keep
 * theirs.  Ids that this collector gave have the link's tag above 16 bits in
 * the producer's messages, so that no id means two buffers.  Belongs to the
 * loop's thread; p->former is NULL for all other producers.
 */
#ifndef SERVICE_INGEST_FORMER_IDS_H
#define SERVICE_INGEST_FORMER_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct producer;

/* A data source that a former collector has set up. */
struct former_instance {
	uint64_t id;
	uint32_t buffer; /* of the former collector's; of its session */
	uint32_t source; /* its place in the session's config */
	bool runs;       /* it was started */
	bool acked;      /* its start was acknowledged */
};

/* No session here has the buffer: its data is lost (former_ids_buffer()). */
#define FORMER_IDS_NOWHERE UINT32_MAX
/* The session that had the buffer has ended: its data is late. */
#define FORMER_IDS_LATE (UINT32_MAX - 1)

/* Most of each that a relay keeps of a producer. */
#define FORMER_IDS_BUFFERS_MAX   256u
#define FORMER_IDS_INSTANCES_MAX 4096u
#define FORMER_IDS_PARTS_MAX     32768u

/* Begins, once; tag is the link's, from 1 on.  -1: no memory. */
int former_ids_begin(struct producer *p, uint32_t tag) MUST_CHECK;
/*
 * Adds a buffer: own is the id of ours that takes its place, or
 * FORMER_IDS_NOWHERE.  One that is there already stays.  -1: no memory, or
 * too many.
 */
int former_ids_add_buffer(struct producer *p, uint32_t id, uint32_t own)
    MUST_CHECK;
/* Adds a data source (copied).  -1: no memory, or too many. */
int former_ids_add_instance(struct producer *p,
    const struct former_instance *i) MUST_CHECK;

/* Notes how much of a chunk another collector has.  -1: no memory. */
int former_ids_add_part(struct producer *p, uint32_t writer, uint32_t chunk,
    uint32_t bytes) MUST_CHECK;
/* How much of the chunk it has, for tb_chunk.had. */
uint32_t former_ids_part(const struct producer *p, uint32_t writer,
    uint32_t chunk);

/*
 * The id of ours for a buffer in a message of the producer: 0 (of its writer)
 * stays 0; or NOWHERE, LATE.
 */
uint32_t former_ids_buffer(const struct producer *p, uint32_t id);
/* Whether a buffer that was added is NOWHERE: its writers name none. */
bool former_ids_has_nowhere(const struct producer *p);
/* Has data for this buffer of ours counted as late, as the buffer goes away. */
void former_ids_forget_buffer(struct producer *p, uint16_t own);
/*
 * Takes the data source of this place in the config of the session that has the
 * buffer of ours.  False: there is none.
 */
bool former_ids_take_instance(struct producer *p, uint16_t own,
    uint32_t source, struct former_instance *out);
/* Takes one that no session has taken.  False: none is left. */
bool former_ids_take_left(struct producer *p, struct former_instance *out);

/* Frees p->former; NULL is fine. */
void former_ids_free(struct producer *p);

#endif /* SERVICE_INGEST_FORMER_IDS_H */
