/*
 * tb_model: the trace buffer once more, slow and obvious, to compare with.
 *
 * The ring is a map of 8-byte cells that say what they belong to; chunks know
 * their fragments from who made them and are never tokenized; the order of the
 * buffer is a running number; every fragment that is overwritten is stepped
 * through.  Nothing is cached, merged or skipped.
 */
#ifndef TESTS_UNIT_TRANSPORT_BUFFER_TB_MODEL_H
#define TESTS_UNIT_TRANSPORT_BUFFER_TB_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/buffer/trace_buffer.h"

#define MODEL_CHUNK_BYTES 1400u
#define MODEL_FRAGMENTS   12u
#define MODEL_PACKET_MAX  65536u
#define MODEL_SIZE_MAX    8192u

struct model;

/* What follows the last well-formed fragment. */
enum model_rest { MODEL_NOTHING, MODEL_BAD, MODEL_DROPPED };

/* A commit, with its fragments laid bare. */
struct model_commit {
	uint64_t producer;
	uint32_t writer;
	uint32_t id;
	uint8_t flags;
	bool complete;
	enum model_rest rest;
	uint32_t n; /* well-formed fragments, the held back one included */
	/* Fragment i: size at [at[i], begin[i]), bytes at [begin[i], end[i]) */
	uint32_t begin[MODEL_FRAGMENTS];
	uint32_t end[MODEL_FRAGMENTS];
	size_t len;
	uint8_t bytes[MODEL_CHUNK_BYTES];
};

struct model_packet {
	uint64_t producer;
	uint32_t writer;
	uint32_t loss;
	size_t size;
	uint8_t bytes[MODEL_PACKET_MAX];
};

/* size: a multiple of 8, at most MODEL_SIZE_MAX */
struct model *model_new(size_t size, enum tb_policy policy);
/* Of all that is in the ring, read or not: the ring changes hands. */
struct model *model_take(const struct model *m);
/*
 * A copy, which at first has nothing: what is in the ring up to a position (in
 * bytes that were ever passed) is taken as it is by then.  To be ended once all
 * was taken; then it can be read.  One of a model at a time.
 */
struct model *model_clone(struct model *m);
void model_clone_up_to(struct model *c, struct model *m, uint64_t position);
void model_clone_end(struct model *c, struct model *m);
void model_free(struct model *m);

bool model_write(struct model *m, const struct model_commit *c);
bool model_patch(struct model *m, uint64_t producer, uint32_t writer,
    uint32_t id, const struct tb_patch *patches, size_t n, bool more);
void model_begin_read(struct model *m);
bool model_read(struct model *m, struct model_packet *out);
void model_clear(struct model *m);
bool model_compact(struct model *m);

uint64_t model_unread(const struct model *m);
bool model_would_lose(const struct model *m, size_t len);
size_t model_sequences(const struct model *m);
const struct tb_stats *model_stats(const struct model *m);

#endif /* TESTS_UNIT_TRANSPORT_BUFFER_TB_MODEL_H */
