/*
 * segment_kept: packets that the next segments will need again, the last of
 * each kind and sequence.
 *
 * Descriptions by producers are bounded: SEGMENT_KEPT_EACH bytes each and
 * SEGMENT_KEPT_ALL in all, of which the oldest go.  The service's own are not:
 * there are a few for each machine.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_KEPT_H
#define TRANSPORT_SEGMENT_SEGMENT_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/base/hash_map.h"

struct segment_look;

#define SEGMENT_KEPT_EACH (64u << 10)
#define SEGMENT_KEPT_ALL  (4u << 20)

struct kept_packet {
	struct hash_link link;
	TAILQ_ENTRY(kept_packet) in_all; /* the oldest first; not the service's */
	TAILQ_ENTRY(kept_packet) in_list;
	struct kept_list *list;
	uint32_t machine;
	uint32_t sequence;
	uint32_t payload;
	uint64_t which; /* more of the key: of what it is a description */
	bool if_stateless;
	/* The newest segment that has it.  Set by the caller. */
	uint32_t number;
	size_t len;
	uint8_t *bytes; /* Trace.packet with tributary_repeated; owned */
};

/* Packets in the order in which they were first kept; zero: not ready. */
TAILQ_HEAD(kept_list, kept_packet);

/* Zero-initialised is not ready either: segment_kept_init(). */
struct segment_kept {
	struct hash_map by_key;
	struct kept_list all;
	size_t bytes;
	uint64_t given_up;
};

void segment_kept_init(struct segment_kept *k);
/* After all lists were emptied. */
void segment_kept_done(struct segment_kept *k);

/*
 * Keeps a copy, in the place of the one before, for which list is the same.
 * number: of the segment that has the packet.  Without memory, or where it is
 * too large, the old one is dropped, too.
 */
void segment_kept_put(struct segment_kept *k, struct kept_list *list,
    const struct segment_look *of, uint32_t number);
/* Drops one packet, or all of a list. */
void segment_kept_drop(struct segment_kept *k, struct kept_packet *p);
void segment_kept_drop_list(struct segment_kept *k, struct kept_list *list);

#endif /* TRANSPORT_SEGMENT_SEGMENT_KEPT_H */
