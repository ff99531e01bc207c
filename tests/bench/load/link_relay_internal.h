/*
 * link_relay_internal: what link_relay.c (the link) and line_link.c (the lines
 * of its devices) share.
 */
#ifndef TESTS_BENCH_LOAD_LINK_RELAY_INTERNAL_H
#define TESTS_BENCH_LOAD_LINK_RELAY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/link_relay.h"
#include "transport/link/link_in.h"
#include "transport/link/link_wire.h"
#include "transport/loop/loop.h"

/* Blocks that wait for credit or for the socket. */
struct link_block {
	struct link_block *next;
	uint32_t channel;
	size_t len;
	uint8_t data[];
};

struct link_line {
	struct line line;
	struct link_relay *relay; /* NULL: the relay was cut off */
	const struct line_ops *ops;
	void *arg;
	uint32_t channel; /* 0: not opened yet */
	struct loop_call up;
	struct link_line *next;
};

/* Whoever waits for a block to be taken. */
struct link_ticket {
	struct link_ticket *next;
	uint64_t number;
	struct link_line *line; /* NULL: it has ended */
};

struct link_relay {
	struct loop *loop;
	const struct place *place;
	uint32_t number;
	struct load_totals *totals;
	uint8_t relay_id[LINK_ID_BYTES];
	char id_hint[48], name[48];

	struct line *direct; /* NULL: not connected */
	uint64_t opening;    /* ticket of Open */
	bool open;
	struct link_in in;
	uint32_t last_channel;
	uint64_t numbered;   /* blocks that have a number, sent or waiting */
	uint64_t sent;       /* of them */
	uint64_t window, sent_bytes, consumed_bytes;
	struct link_block *blocks, **blocks_end;
	size_t waiting_bytes;
	struct link_ticket *tickets, **tickets_end;
	struct link_line *lines;
};

/* ---- link_relay.c ---- */

/*
 * A block of one message of the line's channel: len bytes behind its head, or
 * (data NULL) value.  Returns its number; 0: no memory, or it is cut off.
 */
uint64_t link_relay_say(struct link_line *l, enum link_up kind,
    const void *data, size_t len, uint64_t value);
/* The line is told when that block was taken.  -1: no memory. */
int link_relay_await(struct link_line *l, uint64_t number) MUST_CHECK;
/* What waits to be sent. */
size_t link_relay_queued(const struct link_relay *r);
/* Cuts it off: all lines but this one are told. */
void link_relay_cut(struct link_relay *r, enum line_cut how,
    struct link_line *but);
void link_relay_forget(struct link_line *l);

/* ---- line_link.c ---- */

extern const struct line_type link_line_type;
/* The link is open: so is the channel, soon. */
void link_line_open(struct link_line *l);

#endif /* TESTS_BENCH_LOAD_LINK_RELAY_INTERNAL_H */
