/*
 * witness: an honest neighbour of whoever misbehaves: a producer of numbered
 * packets and a consumer with a session of their own, who hold the collector to
 * its promises.
 *
 * Three sequences: into a buffer of their own, of which nothing may be lost;
 * into a ring that others write to as well, where what is lost has to be told
 * by the next packet; into a buffer that discards what comes when it is full,
 * which has to count it.  Every packet comes whole, once, and in order, under
 * the sequence's id, and no other sequence has that id.
 */
#ifndef TESTS_FUZZ_STAGE_WITNESS_H
#define TESTS_FUZZ_STAGE_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stage;
struct witness;

/* mapped: through shared memory, else in the commits. */
struct witness *witness_new(struct stage *s, bool mapped);
/* Writes some packets into each of its sequences. */
void witness_write(struct witness *w, unsigned packets);
/* Reads its session, and judges what came. */
void witness_read(struct witness *w);
/* Flushes its session: it is answered, well or not. */
void witness_flush(struct witness *w);
/* The global id of its shared buffers (1, 2), for others to aim at. */
uint32_t witness_buffer(const struct witness *w, unsigned i);
/*
 * Nobody else is there any more: everything has to have arrived, or to be
 * counted.  Leaves and frees it.
 */
void witness_end(struct witness *w);

#endif /* TESTS_FUZZ_STAGE_WITNESS_H */
