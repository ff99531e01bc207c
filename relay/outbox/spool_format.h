/*
 * spool_format: the bytes of the spool's files.
 *
 * A file (segment) is a row of records that begin at multiples of SPOOL_ALIGN:
 * a head, then a block.  A record that is not needed any more is punched out,
 * or gets a tombstone; a reader steps over zeros.  A head has a checksum of
 * itself, one of the block, and a tag that only the relay knows: producers
 * choose the bytes of blocks, and must not be able to forge a record in them.
 *
 * Pure; the bytes may be anything.  Numbers have this machine's byte order.
 */
#ifndef RELAY_OUTBOX_SPOOL_FORMAT_H
#define RELAY_OUTBOX_SPOOL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_wire.h"

#define SPOOL_ALIGN      4096u
#define SPOOL_HEAD_BYTES 128u

struct spool_record {
	uint8_t tag[LINK_ID_BYTES]; /* arena_link.tag */
	uint32_t channel;
	uint32_t len;               /* of the block, in bytes */
	uint64_t first;             /* sequences in the channel */
	uint64_t last;
	uint64_t time_ms;           /* CLOCK_BOOTTIME of the block's begin */
	bool closes;                /* there is a LINK_UP_CLOSE in the block */
	/* Sums of the block's chunks: the least loss if it cannot be read. */
	uint32_t chunks;
	uint32_t packets;
	uint32_t bytes;
	uint32_t crc;               /* of the block */
};

enum spool_head {
	SPOOL_RECORD,
	SPOOL_NOTHING, /* zeros (punched out), or a tombstone */
	SPOOL_DAMAGED,
};

/* CRC-32 of zlib. */
uint32_t spool_crc(const void *data, size_t len);

void spool_put_head(uint8_t out[SPOOL_HEAD_BYTES],
    const struct spool_record *r);
enum spool_head spool_read_head(const uint8_t in[SPOOL_HEAD_BYTES],
    struct spool_record *r);
/* The tombstone, which overwrites the first bytes of a head. */
#define SPOOL_DEAD_BYTES 4u
extern const uint8_t spool_dead[SPOOL_DEAD_BYTES];

/* Bytes that a record takes in its file. */
static inline uint64_t
spool_size(uint32_t len)
{
	return ((uint64_t)SPOOL_HEAD_BYTES + len + SPOOL_ALIGN - 1) &
	    ~(uint64_t)(SPOOL_ALIGN - 1);
}

/*
 * Steps through the records of a segment.  The caller sets read, arg, at (where
 * to begin) and end; the rest is zero and spool_step()'s.
 */
enum spool_step {
	SPOOL_STEP_RECORD,  /* *r at *where */
	SPOOL_STEP_DAMAGE,  /* no record at *where; stepped over */
	SPOOL_STEP_TORN,    /* torn tail: from *where on no whole record */
	SPOOL_STEP_END,
};
struct spool_walk {
	/* Copies the head at an offset of the file; false: it cannot. */
	bool (*read)(void *arg, uint64_t at, uint8_t head[SPOOL_HEAD_BYTES]);
	void *arg;
	uint64_t at;  /* offset of the next step */
	uint64_t end; /* the file's size */
	bool damaged; /* in damage, of which one step tells */
	bool hole;    /* behind zeros or a dead record */
};
enum spool_step spool_step(struct spool_walk *w, struct spool_record *r,
    uint64_t *where);

#endif /* RELAY_OUTBOX_SPOOL_FORMAT_H */
