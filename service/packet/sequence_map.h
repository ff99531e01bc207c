/*
 * sequence_map: the sequence ids of one session.
 *
 * Gives each {producer, writer} that has a packet in the trace its
 * trusted_packet_sequence_id and keeps the trailer of trusted fields that goes
 * with it, and counts the payload sizes of its chunks.  Ids are never reused
 * within a session; entries of producers that are gone can be dropped once
 * nothing of them is left to read.
 */
#ifndef SERVICE_PACKET_SEQUENCE_MAP_H
#define SERVICE_PACKET_SEQUENCE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct packet_trailer;
struct packet_writer_stats;
struct sequence_map;
struct service_sequence;
struct tb_origin;

/* A writer, and how much it wrote. */
struct sequence_writer {
	uint64_t producer;
	uint32_t sequence; /* 0: nothing of it was read yet */
	uint32_t buffer;   /* index in the config */
	uint32_t machine;
	int32_t pid;
	uint64_t chunks;
	uint64_t bytes;
};

/* histograms: whether to count chunk payloads. */
struct sequence_map *sequence_map_new(bool histograms) MUST_CHECK;
void sequence_map_free(struct sequence_map *m);
struct sequence_map *sequence_map_clone(const struct sequence_map *m)
    MUST_CHECK;

/*
 * The trailer of a sequence, given an id when it is new, for its next packet:
 * what that one has to say is added to *loss, once.  NULL: no memory.
 */
const struct packet_trailer *sequence_map_trailer(struct sequence_map *m,
    const struct tb_origin *o, uint32_t *loss);
/* A packet of the sequence was dropped: the next one says why (enum tb_loss). */
void sequence_map_dropped(struct sequence_map *m, const struct tb_origin *o,
    uint32_t loss);

/* The id of a sequence, given when it is new.  0: no memory. */
uint32_t sequence_map_id(struct sequence_map *m, const struct tb_origin *o);
/* The id of a sequence that has written something, or 0. */
uint32_t sequence_map_find_id(struct sequence_map *m, uint64_t producer,
    uint32_t writer);

/* A chunk of so many payload bytes was stored in the config's buffer. */
void sequence_map_count_chunk(struct sequence_map *m,
    const struct tb_origin *o, uint32_t buffer, size_t payload);

/* The producer is gone: its entries go at the next sweep. */
void sequence_map_producer_gone(struct sequence_map *m, uint64_t producer);
/*
 * Drops entries of producers that are gone; call when every buffer was read
 * empty.
 */
void sequence_map_sweep(struct sequence_map *m);

size_t sequence_map_size(const struct sequence_map *m);
/* The most writers that sequence_map_writer_stats() returns. */
size_t sequence_map_writers(const struct sequence_map *m);
/* Grows with each sequence that gets an id, and never shrinks. */
uint32_t sequence_map_last_id(const struct sequence_map *m);
/*
 * Up to max writers with a histogram: those that are there, and of those that
 * were dropped the last 1024.  Returns how many.
 */
size_t sequence_map_writer_stats(const struct sequence_map *m,
    struct packet_writer_stats *out, size_t max);
/*
 * Up to max writers with a histogram, those first that wrote most.  Returns how
 * many.
 */
size_t sequence_map_top_writers(const struct sequence_map *m,
    struct sequence_writer *out, size_t max);
/* Up to max sequences for TraceProvenance.  Returns how many. */
size_t sequence_map_list(const struct sequence_map *m,
    struct service_sequence *out, size_t max);

#endif /* SERVICE_PACKET_SEQUENCE_MAP_H */
