/*
 * packet_out: turns packets into output: batches of Trace.packet fields for a
 * file, or ReadBuffersResponse messages for a consumer (reference
 * wire-format.md).
 *
 * Appends the trusted fields to each packet.  One copy per slice, no allocation
 * per packet.  Pure: it never writes to a file or a connection; the session
 * takes the batch or the reply when there is no more room and passes it on:
 *
 *	while (packet_out_room(o) && trace_buffer_read(tb, &p)) {
 *		if (!packet_check(p.slices, p.n_slices, p.size))
 *			invalid++;
 *		else if (!packet_out_put(o, &parts))
 *			lost_no_memory++;
 *	}
 *	file:     file_sink_submit(); packet_out_set_batch(o, next or NULL);
 *	consumer: packet_out_reply(o, &len); rpc_reply(...); packet_out_next(o);
 *
 * Where there is room, the next packet is taken whatever its size.  So a file
 * batch may be longer than its nominal size by one packet, and a reply output
 * keeps a copy of the part of a packet that did not fit into the reply (at most
 * one packet, freed when it is sent); there is no room until all of it is in a
 * reply.
 */
#ifndef SERVICE_OUTPUT_PACKET_OUT_H
#define SERVICE_OUTPUT_PACKET_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/packet/packet_parts.h"
#include "transport/wire/frame.h"

struct packet_out;
struct sink_batch;

/*
 * The bytes of a reply (rpc_reply's msg) never exceed this, which leaves 512
 * for the envelope: the frame stays within FRAME_MAX_BYTES.
 */
#define PACKET_REPLY_MAX (FRAME_MAX_BYTES - 512u)

/* For a file: batches.  NULL: no memory. */
struct packet_out *packet_out_new_file(void) MUST_CHECK;
/*
 * For a consumer: replies.  NULL: no memory.  Holds PACKET_REPLY_MAX bytes:
 * make it when a read begins and free it when the read ends.
 */
struct packet_out *packet_out_new_reply(void) MUST_CHECK;
void packet_out_free(struct packet_out *o);

/*
 * File: sets the batch that packets are appended to, behind its bytes.
 * Borrowed until the next call; NULL: none, and no room.
 */
void packet_out_set_batch(struct packet_out *o, struct sink_batch *b);

/* Whether the next packet will be taken, of whatever size it is. */
bool packet_out_room(const struct packet_out *o);

/*
 * Appends one packet: its slices, the trailer, the loss.  Only while there is
 * room.  False when memory for an unusually large packet is missing: the output
 * is as it was before, and the packet is the caller's to count.
 */
bool packet_out_put(struct packet_out *o, const struct packet_parts *packet)
    MUST_CHECK;
/* packet_out_put() of a packet of one slice without a trailer. */
bool packet_out_put_whole(struct packet_out *o, const struct tb_slice *s)
    MUST_CHECK;

/* Bytes that packet_out_put() of such a packet adds to a file. */
size_t packet_out_size(size_t size, const struct packet_trailer *trailer,
    uint32_t loss);

/* True: no packet was put since the last batch or reply, and none is left. */
bool packet_out_empty(const struct packet_out *o);

/*
 * Reply: the ReadBuffersResponse built so far; *len may be 0 (an empty message
 * is a valid one).  Borrowed until the next call that is not const.
 */
const uint8_t *packet_out_reply(const struct packet_out *o, size_t *len);
/* A cut packet goes on in the next reply: has_more must be true on this one. */
bool packet_out_pending(const struct packet_out *o);
/*
 * The reply was passed on: begins the next one, with the rest of a cut packet
 * first.  After it, as long as there is no room, the new reply is complete.
 */
void packet_out_next(struct packet_out *o);

#endif /* SERVICE_OUTPUT_PACKET_OUT_H */
