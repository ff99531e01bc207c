/*
 * packet_parts: a packet before its parts are put together: the slices that its
 * producer wrote, the trusted fields (trailer), and the loss before it.
 */
#ifndef TRANSPORT_PACKET_PACKET_PARTS_H
#define TRANSPORT_PACKET_PACKET_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/base/compiler.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_writer.h"

/* Tags of 1, 1, 2 and 2 bytes; varints of at most 10, 5, 10 and 5. */
#define PACKET_TRAILER_MAX 40u
/*
 * Room that packet_trailer_put() needs: a loss (tag and varint of 7 bytes) may
 * follow, and bytes behind the trailer are written but not kept.
 */
#define PACKET_TRAILER_ROOM (PACKET_TRAILER_MAX + 7u)

/* The trusted fields of one sequence; built once, appended to each packet. */
struct packet_trailer {
	uint8_t bytes[PACKET_TRAILER_MAX];
	size_t len;
};

/* Borrowed, all of it. */
struct packet_parts {
	const struct tb_slice *slices;
	size_t n;
	size_t size; /* of all slices */
	/* NULL: the slices have all fields, as in the service's own packets. */
	const struct packet_trailer *trailer;
	uint32_t loss; /* previous_packet_dropped; 0: left out */
};

/*
 * uid: always written, -1 included.  pid: left out when <= 0 (not known).
 * machine: left out when 0 (the service's own machine).
 */
void packet_trailer_init(struct packet_trailer *t, int32_t uid, int32_t pid,
    uint32_t sequence, uint32_t machine);

/* Writes previous_packet_dropped to p; returns where it ends. */
uint8_t *packet_loss_put(uint8_t *p, uint32_t loss);

/*
 * Writes the trailer (NULL: none) and the loss (0: none) to p, where there is
 * PACKET_TRAILER_ROOM; returns where they end.
 */
static inline uint8_t *
packet_trailer_put(uint8_t *p, const struct packet_trailer *t, uint32_t loss)
{
	if (LIKELY(t != NULL)) {
		/*
		 * A constant size, with the zeroes behind: a copy without a
		 * call.
		 */
		memcpy(p, t->bytes, PACKET_TRAILER_MAX);
		p += t->len;
	}
	return UNLIKELY(loss != 0) ? packet_loss_put(p, loss) : p;
}

static inline size_t
packet_trailer_size(const struct packet_trailer *t, uint32_t loss)
{
	size_t n = t != NULL ? t->len : 0;

	if (UNLIKELY(loss != 0))
		n += 2 + pb_varint_size(loss);
	return n;
}

/* The bytes of the packet as a whole. */
static inline size_t
packet_parts_size(const struct packet_parts *k)
{
	return k->size + packet_trailer_size(k->trailer, k->loss);
}

/*
 * Writes the packet to p, where there is room for its slices and
 * PACKET_TRAILER_ROOM; returns where it ends.
 */
static inline uint8_t *
packet_parts_put(uint8_t *p, const struct packet_parts *k)
{
	size_t i;

	for (i = 0; i < k->n; i++) {
		memcpy(p, k->slices[i].data, k->slices[i].len);
		p += k->slices[i].len;
	}
	return packet_trailer_put(p, k->trailer, k->loss);
}

#endif /* TRANSPORT_PACKET_PACKET_PARTS_H */
