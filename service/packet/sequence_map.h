/*
 * sequence_map: the sequence ids of one session.
 *
 * Gives each {producer, writer} with a packet in the trace a
 * trusted_packet_sequence_id, keeps the trailer of trusted fields that goes
 * with the id, and counts the payload sizes of the writer's chunks.  Ids are
 * never reused within a session; entries of producers that are gone can be
 * dropped once all their data is read.
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
	uint32_t sequence; /* 0: none of its packets was read yet */
	uint32_t buffer;   /* index in the config */
	uint32_t machine;
	int32_t pid;
	uint64_t chunks;
	uint64_t bytes;
};

/* histograms: whether to count chunk payloads.  NULL: no memory. */
struct sequence_map *sequence_map_new(bool histograms) MUST_CHECK;
void sequence_map_free(struct sequence_map *m);
struct sequence_map *sequence_map_clone(const struct sequence_map *m)
    MUST_CHECK;

/*
 * The trailer for the next packet of a sequence, which gets an id when it is
 * new.  The losses noted by sequence_map_dropped() are added to *loss, once.
 * Borrowed from the entry: valid until a sweep drops it.  NULL: no memory.
 */
const struct packet_trailer *sequence_map_trailer(struct sequence_map *m,
    const struct tb_origin *o, uint32_t *loss);
/*
 * Notes that a packet of the sequence was dropped, and why (enum tb_loss), for
 * the next one to report.
 */
void sequence_map_dropped(struct sequence_map *m, const struct tb_origin *o,
    uint32_t loss);

/* The id of a sequence, given when it is new.  0: no memory. */
uint32_t sequence_map_id(struct sequence_map *m, const struct tb_origin *o);
/*
 * The id of a sequence that has written a chunk, given when it has none yet; 0:
 * no such sequence.
 */
uint32_t sequence_map_find_id(struct sequence_map *m, uint64_t producer,
    uint32_t writer);

/*
 * Gives all sequences of a producer that have written a chunk an id; returns
 * their number.
 */
size_t sequence_map_number(struct sequence_map *m, uint64_t producer);

/* Counts a chunk that was stored; buffer: index in the config. */
void sequence_map_count_chunk(struct sequence_map *m,
    const struct tb_origin *o, uint32_t buffer, size_t payload);

/* Marks the producer's entries as gone: the next sweep drops them. */
void sequence_map_producer_gone(struct sequence_map *m, uint64_t producer);
/*
 * Drops the entries of producers that are gone; to be called when every buffer
 * was read empty.
 */
void sequence_map_sweep(struct sequence_map *m);

size_t sequence_map_size(const struct sequence_map *m);
/* The most writers that sequence_map_writer_stats() returns. */
size_t sequence_map_writers(const struct sequence_map *m);
/* The id given last, which grows with each new sequence. */
uint32_t sequence_map_last_id(const struct sequence_map *m);
/*
 * Lists up to max writers with a histogram: present ones, then the last 1024 of
 * the dropped ones.  Returns how many.
 */
size_t sequence_map_writer_stats(const struct sequence_map *m,
    struct packet_writer_stats *out, size_t max);
/*
 * Lists up to max writers with a histogram, by bytes, the most first.  Returns
 * how many.
 */
size_t sequence_map_top_writers(const struct sequence_map *m,
    struct sequence_writer *out, size_t max);
/* Lists up to max sequences for TraceProvenance.  Returns how many. */
size_t sequence_map_list(const struct sequence_map *m,
    struct service_sequence *out, size_t max);

#endif /* SERVICE_PACKET_SEQUENCE_MAP_H */
