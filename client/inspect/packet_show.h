/*
 * packet_show: the packets of a trace as protobuf text, for people.
 *
 * A comment before each packet tells its time in the trace clock, its machine's
 * name, and its offset in the file.  Of compressed packets the inner packets
 * are shown.  Safe on a terminal.  Bounded; untrusted input.
 */
#ifndef CLIENT_INSPECT_PACKET_SHOW_H
#define CLIENT_INSPECT_PACKET_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/base/compiler.h"

struct packet_filter;
struct packet_show;
struct trace_clocks;

/*
 * out and filter are borrowed.  out NULL: shows nothing and only learns the
 * clocks.  NULL: no memory.
 */
struct packet_show *packet_show_new(FILE *out,
    const struct packet_filter *filter) MUST_CHECK;
void packet_show_free(struct packet_show *p);

/*
 * Takes the next packet, without its framing; offset: of the packet in the
 * file.  false: the packet is malformed.
 */
bool packet_show_take(struct packet_show *p, const uint8_t *data, size_t len,
    uint64_t offset);
/* A sentence when showing had to end, errno for errors of out; NULL: none. */
const char *packet_show_failed(const struct packet_show *p);

/* The clocks as learned so far; borrowed. */
struct trace_clocks *packet_show_clocks(struct packet_show *p);
/* The trace's start: the first time known in the trace clock; false: none. */
bool packet_show_start(const struct packet_show *p, uint64_t *ns);
/* The first machine that `machine` means (packet_filter).  false: none. */
bool packet_show_machine(const struct packet_show *p, const char *machine,
    uint32_t *id);
/* Packets shown, and packets taken. */
uint64_t packet_show_shown(const struct packet_show *p);
uint64_t packet_show_seen(const struct packet_show *p);
/* Damaged compressed packets, plus malformed packets inside compressed ones. */
uint64_t packet_show_damaged(const struct packet_show *p);

#endif /* CLIENT_INSPECT_PACKET_SHOW_H */
