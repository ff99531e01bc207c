/*
 * commits: prebuilt CommitData frames, sent as fast as the sockets take them.
 *
 * Each frame is one 4 KiB chunk of 40 packets of 100 bytes, as a producer
 * without shared memory sends it; every 16th asks for a reply.  Per chunk only
 * its number is written before it is sent, so that the generator is not what
 * is measured.
 */
#ifndef TESTS_BENCH_INGEST_COMMITS_H
#define TESTS_BENCH_INGEST_COMMITS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/load/load_conn.h"

#define COMMITS_CHUNK_BYTES 4096u
#define COMMITS_PACKETS 40u        /* in a chunk */
#define COMMITS_PACKET_BYTES 100u
#define COMMITS_REPLY_EVERY 16u

/* What a producer needs to know to commit; a bare sink needs none of it. */
struct commits_target {
	int fd;
	struct tls_conn *tls; /* borrowed; NULL: plain */
	uint32_t service_id;
	uint32_t method_id;
	uint32_t buffer;
};

struct commits_result {
	double seconds;      /* first byte to last reply (or last byte sent) */
	uint64_t bytes;      /* on the sockets */
	uint64_t chunks;
	double p50_ms;       /* round trip of the commits that ask for a reply */
	double p99_ms;
	double max_ms;
};

/*
 * Sends chunks_each chunks (a multiple of COMMITS_REPLY_EVERY) on each of n
 * sockets, all at once.  replies: wait for them; a reply's frame is recognised
 * by its request id, commands of the service in between are skipped.
 */
void commits_run(const struct commits_target *targets, size_t n,
    uint64_t chunks_each, int replies, struct commits_result *out);

#endif /* TESTS_BENCH_INGEST_COMMITS_H */
