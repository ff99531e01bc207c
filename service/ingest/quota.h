/*
 * quota: limits of one machine, and of each of its producers (settings.h,
 * quota_setting): trace data per second, producers, connections, data sources,
 * sequences.  Machines that one certificate or dial invents share one account,
 * and one quota (machine.h, machine_account).
 *
 * Limits of peers, the ends of connections, are elsewhere: peer_limits.h,
 * per_peer_count.h.  Quotas are for the machines that peers speak for.  A
 * refusal is counted for the machine, and the caller logs the sentence.
 *
 * Belongs to the loop's thread.
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

/* ---- machines and producers ---- */

/*
 * Applies the first quota of the settings that fits the machine, by its present
 * name.  To be called for every connection that speaks for the machine.
 * Without memory the machine goes without a quota (logged).
 */
void quota_meet(struct service *s, struct machine *m);
/* Percent of each trace buffer that is guaranteed to its machines. */
uint32_t quota_guaranteed_percent(const struct service *s,
    const struct machine *m);

/*
 * NULL: the machine may have one more connection.  Else a sentence with the
 * limit's name, a static string, and the refusal is counted.  replaced:
 * connections that end for the new one.
 */
const char *quota_admit_connection(struct machine *m, uint32_t replaced)
    MUST_CHECK;
/*
 * As above for a producer, which is not counted in its machine yet.  Where it
 * is limited, an admitted one gets p->quota, until quota_producer_gone().
 */
const char *quota_admit_producer(struct producer *p) MUST_CHECK;
void quota_producer_gone(struct producer *p);
const char *quota_admit_data_source(struct producer *p) MUST_CHECK;

/* ---- sequences; only when p->quota is not NULL ---- */

/*
 * Counts the writer's sequence, once.  False: one too many, logged and counted,
 * or no memory.
 */
bool quota_take_sequence(struct producer *p, uint32_t writer) MUST_CHECK;
/* Takes the sequence of a writer that is gone out of the count. */
void quota_return_sequence(struct producer *p, uint32_t writer);

/* ---- trace data; only when p->quota is not NULL ---- */

/*
 * Back-pressure: queues the producer when len bytes for a buffer have to wait
 * for tokens, its own or its machine's; it is resumed when there are some
 * (COMMIT_AGAIN).  True: held.  len 0: the bytes are for no buffer, and the
 * producer leaves the queues.
 */
bool quota_hold(struct producer *p, size_t len);
/*
 * Whether the chunk is dropped: its producer may have no such sequence, or is
 * over a rate and the chunk cannot wait.  True: dropped, and counted as a loss
 * for producer, machine and session.  complete: as in tb_chunk.  last: the
 * chunk is scraped, and no commit of it will follow.
 */
bool quota_drop(struct producer *p, struct session_buffer *b,
    const struct shm_chunk *c, bool complete, bool last);
/* Takes n tokens from the producer's and its machine's bucket, for n bytes. */
void quota_charge(struct producer *p, size_t n);
/* Whether a commit of the producer waits for its rate. */
bool quota_is_held(const struct producer *p);
/* Resumes all producers that wait for a rate, as buffers are going away. */
void quota_wake_all(struct service *s);

/* ---- for people ---- */

struct quota_counts {
	bool limited;              /* has limits; else all below is 0 */
	uint64_t bytes_per_second; /* 0: no limit */
	uint64_t held_times;
	uint64_t held_ms;
	uint64_t dropped_chunks;
	uint64_t dropped_packets;
	uint64_t dropped_bytes;
	uint32_t sequences;        /* 0 where they are not limited */
	uint64_t refused_producers;
	uint64_t refused_connections;
	uint64_t refused_data_sources;
	uint64_t refused_sequences;
};
/* Machines of one account share the counts. */
void quota_counts_of_machine(const struct machine *m, struct quota_counts *out);
/* Without refusals, which are counted for the producer's machine. */
void quota_counts_of_producer(const struct producer *p,
    struct quota_counts *out);

#endif /* SERVICE_INGEST_QUOTA_H */
