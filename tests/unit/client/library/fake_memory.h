/*
 * fake_memory: the service's side of a commit, for tests: takes the chunks of
 * CommitDataRequests and puts packets together again, strictly, as the ABI
 * says.
 */
#ifndef TESTS_UNIT_CLIENT_LIBRARY_FAKE_MEMORY_H
#define TESTS_UNIT_CLIENT_LIBRARY_FAKE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shm;

#define FAKE_WRITERS 64
#define FAKE_PACKETS 8192

struct fake_packet {
	uint16_t writer;
	uint32_t buffer;
	uint8_t *data; /* owned */
	size_t len;
};

struct fake_memory {
	struct shm *shm; /* the service's mapping; NULL under emulation */
	struct {
		bool seen;
		uint32_t next_chunk;
		uint8_t *part; /* a packet that continues, or NULL */
		size_t part_len;
	} writers[FAKE_WRITERS];
	struct fake_packet packets[FAKE_PACKETS];
	size_t n;
	size_t chunks;
	size_t requests;
	size_t longest_request;
	size_t given_up; /* packets that ended in a drop marker */
	uint64_t flush_id; /* the last one told */
	size_t chunks_at_flush;
};

void fake_memory_init(struct fake_memory *m, struct shm *shm);
void fake_memory_done(struct fake_memory *m);
/* One CommitDataRequest; asserts that it is as it must be. */
void fake_memory_commit(struct fake_memory *m, const uint8_t *msg, size_t len);

#endif /* TESTS_UNIT_CLIENT_LIBRARY_FAKE_MEMORY_H */
