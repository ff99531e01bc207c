/*
 * quota_internal: the state that quota.c (numbers of things) and quota_rate.c
 * (bytes per second) share.  For these two files only.
 */
#ifndef SERVICE_INGEST_QUOTA_INTERNAL_H
#define SERVICE_INGEST_QUOTA_INTERNAL_H

#include "service/ingest/quota.h"
#include "service/limits/fair_bucket.h"
#include "service/settings/settings.h"

/* Writers are 1..32767: 32 pages of 1024 bits, each made when first used. */
#define QUOTA_WRITER_BITS  1024u
#define QUOTA_WRITER_PAGES 32u

/*
 * Most writers of one producer whose newest chunk is remembered as dropped.
 * For others, packets lost with two versions of a chunk are counted twice.
 */
#define QUOTA_DROPPED_MAX 1024u

struct quota_amount {
	uint64_t held_times, held_ms;
	uint64_t dropped_chunks, dropped_packets, dropped_bytes;
};

struct machine_quota {
	const struct quota_setting *rule; /* borrowed; NULL: none fits now */
	struct fair_bucket bucket;
	struct quota_amount amount;
	uint32_t n_sequences; /* of all its producers */
	uint64_t refused_producers, refused_connections;
	uint64_t refused_data_sources, refused_sequences;
};

struct quota_dropped {
	uint32_t writer;
	uint32_t chunk;   /* number of its newest chunk, which was dropped */
	uint32_t packets; /* counted as lost with it */
};

struct producer_quota {
	/* Borrowed from the account; NULL: none when the producer connected. */
	struct machine_quota *machine;
	struct fair_bucket bucket;
	struct fair_place own, shared; /* in bucket, in the machine's */
	bool held;
	uint64_t held_since_ms;
	struct quota_amount amount;
	uint32_t max_sequences; /* 0: not counted */
	uint32_t n_sequences;
	uint64_t *writers[QUOTA_WRITER_PAGES]; /* bits of counted writers */
	struct quota_dropped *dropped; /* owned */
	size_t n_dropped, dropped_cap;
};

#endif /* SERVICE_INGEST_QUOTA_INTERNAL_H */
