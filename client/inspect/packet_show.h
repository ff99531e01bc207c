/*
 * packet_show: the packets of a trace as protobuf text, for people.
 *
 * A comment before each says what the packet itself does not: its time in the
 * trace clock, its machine's name, where it lies.  Those that hold others
 * compressed are shown as what they hold.  Safe on a terminal.  Bounded;
 * untrusted input.
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
 * out and filter are borrowed.  out: NULL shows nothing, and learns the clocks
 * only.
 */
struct packet_show *packet_show_new(FILE *out,
    const struct packet_filter *filter) MUST_CHECK;
void packet_show_free(struct packet_show *p);

/*
 * The next packet, without its framing, that begins at this byte of the file.
 * false: it is malformed.
 */
bool packet_show_take(struct packet_show *p, const uint8_t *data, size_t len,
    uint64_t offset);
/* A sentence, when it cannot go on; NULL: all is well.  errno for out's. */
const char *packet_show_failed(const struct packet_show *p);

/* The clocks as learned so far; borrowed. */
struct trace_clocks *packet_show_clocks(struct packet_show *p);
/* The first time that the trace says; false: none. */
bool packet_show_start(const struct packet_show *p, uint64_t *ns);
/* The first machine that the word means (packet_filter).  false: none. */
bool packet_show_machine(const struct packet_show *p, const char *machine,
    uint32_t *id);
/* Packets that were shown, and packets that there were. */
uint64_t packet_show_shown(const struct packet_show *p);
uint64_t packet_show_seen(const struct packet_show *p);
/* Compressed ones that are damaged, or hold what is malformed. */
uint64_t packet_show_damaged(const struct packet_show *p);

#endif /* CLIENT_INSPECT_PACKET_SHOW_H */
