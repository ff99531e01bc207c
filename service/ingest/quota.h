/*
 * quota: what one machine, and each of its producers, may take (settings.h,
 * quota_setting): trace data per second, producers, connections, data sources,
 * sequences.  Machines that one certificate or dial invents are one here
 * (machine.h, machine_account).
 *
 * Limits of peers (who connects) are elsewhere: peer_limits.h,
 * per_peer_count.h.  Here it is for whom they speak.  What is refused costs
 * nobody else anything; it is counted for the machine, and the caller logs the
 * sentence.
 */
#ifndef SERVICE_INGEST_QUOTA_H
#define SERVICE_INGEST_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct machine;
struct machine_quota;
struct producer;
struct producer_quota;
struct service;
struct session_buffer;
struct shm_chunk;

/* ---- who comes ---- */

/*
 * Somebody speaks for the machine: from now on the first quota that fits it
 * counts, by the name that it has now.
 */
void quota_meet(struct service *s, struct machine *m);
/* Percent of each trace buffer that is guaranteed to its machines. */
uint32_t quota_guaranteed_percent(const struct service *s,
    const struct machine *m);

/*
 * NULL: one more may come; else a sentence with the limit's name.  replaced:
 * connections that the newcomer stands in for.
 */
const char *quota_refuses_connection(struct machine *m, uint32_t replaced)
    MUST_CHECK;
/*
 * The same of a producer, which is not counted in its machine yet; if it may
 * come it has a place in the quotas, until quota_producer_gone().
 */
const char *quota_refuses_producer(struct producer *p) MUST_CHECK;
void quota_producer_gone(struct producer *p);
const char *quota_refuses_data_source(struct producer *p) MUST_CHECK;

/* ---- sequences; only when p->quota is not NULL ---- */

/* False: one too many.  Logged and counted. */
bool quota_takes_sequence(struct producer *p, uint32_t writer) MUST_CHECK;
/* The writer is no more. */
void quota_gives_sequence(struct producer *p, uint32_t writer);

/* ---- trace data; only when p->quota is not NULL ---- */

/*
 * Whether so many bytes for a buffer have to wait; then the producer is resumed
 * later (COMMIT_AGAIN).  0: they are for none, and what waited is no more.
 */
bool quota_holds(struct producer *p, size_t len);
/*
 * Whether the chunk is not to be written, because its producer may have no such
 * sequence, or because it is over a rate and cannot wait; then it was counted,
 * with its cause, in the session and everywhere.  complete: as in tb_chunk.
 * last: it is scraped, and nobody will commit it any more.
 */
bool quota_drops(struct producer *p, struct session_buffer *b,
    const struct shm_chunk *c, bool complete, bool last);
/* So many bytes were written. */
void quota_charge(struct producer *p, size_t n);
/* It has something that waits for its rate. */
bool quota_is_held(const struct producer *p);
/* Buffers are going away: whoever waits for its rate tries again. */
void quota_wake_all(struct service *s);

/* ---- for people ---- */

struct quota_counts {
	bool limited;              /* a quota fits */
	uint64_t bytes_per_second; /* 0: no limit */
	uint64_t held_times;
	uint64_t held_ms;
	uint64_t dropped_chunks;
	uint64_t dropped_packets;
	uint64_t dropped_bytes;
	uint32_t sequences;        /* where they are counted */
	uint64_t refused_producers;
	uint64_t refused_connections;
	uint64_t refused_data_sources;
	uint64_t refused_sequences;
};
/* Machines of one account have it together. */
void quota_counts_of_machine(const struct machine *m, struct quota_counts *out);
/* Refusals stand with its machine. */
void quota_counts_of_producer(const struct producer *p,
    struct quota_counts *out);

#endif /* SERVICE_INGEST_QUOTA_H */
