/*
 * relay_end: a relay's end of a link, driven by hand over a port_fixture client.
 */
#ifndef TESTS_UNIT_SERVICE_PORT_RELAY_END_H
#define TESTS_UNIT_SERVICE_PORT_RELAY_END_H

#include "protos/link.pb-c.h"
#include "tests/unit/service/port/port_fixture.h"
#include "transport/link/link_clock.h"
#include "transport/link/link_wire.h"

enum { L_OPEN = 1, L_UP, L_DOWN, L_MOVE };

struct relay_end {
	struct client c;
	struct ports *ports;
	/* What LinkOpen says; changed by tests. */
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	uint8_t collector_id[LINK_ID_BYTES];
	bool knows_collector;
	const char *hint; /* NULL: none */
	const char *name;
	const char *software;
	const void *info; /* SystemInfo; NULL: none */
	size_t info_len;
	const struct peer *as;
	bool zstd; /* offered */
	bool can_move;
	uint32_t buffer_tag;      /* of relay_end_open_moved() */
	uint64_t consumed_before; /* the same */
	struct link_compressor *compressor;
	/* As LinkOpened said. */
	Tributary__LinkOpened *opened;
	/* Up. */
	uint64_t sent;
	uint64_t acked;
	/* Down. */
	uint64_t down;     /* the call's id; 0: not called */
	size_t seen;       /* of its replies */
	uint64_t received; /* the last block */
	uint64_t consumed_in_all;
	uint64_t consumed[16]; /* by channel */
	size_t frames;
	size_t pongs;
	uint8_t pong[LINK_CLOCK_MAX];
	size_t pong_len;
	/* What is left of the block that relay_end_expect() is in. */
	const uint8_t *pending;
	size_t pending_len;
	uint32_t pending_channel;
};

/* A relay that has never been linked; n tells several apart. */
void relay_end_init(struct relay_end *r, struct ports *p, uint8_t n);
/* Closes the connection; what is known of the link is kept. */
void relay_end_cut(struct relay_end *r);
void relay_end_done(struct relay_end *r);

/*
 * Connects and opens.  Returns what LinkOpened says, why is below 0 when it was
 * refused; then calls Down.
 */
int relay_end_open(struct relay_end *r);
/*
 * The same on the connection that MOVES came on, as the Open that moves the
 * link; down blocks begin with 1 where it was MOVED.
 */
int relay_end_open_moved(struct relay_end *r);
/* Calls Move; w is done with. */
void relay_end_move(struct relay_end *r, struct pb_writer *w);

/* Messages of a block. */
void block_put(struct pb_writer *w, enum link_up kind, const void *data,
    size_t len);
void block_put_varint(struct pb_writer *w, enum link_up kind, uint64_t v);
void block_put_open(struct pb_writer *w, const char *name);
void block_put_source(struct pb_writer *w, const char *name);
/* A chunk with one packet {for_testing {str}}, as a commit. */
void block_put_packet(struct pb_writer *w, uint32_t buffer, uint16_t writer,
    uint32_t chunk, const char *str);
void block_put_flush_ack(struct pb_writer *w, uint64_t flush);
void block_put_loss(struct pb_writer *w, const struct link_loss *l);

/* Sends it as the next block, or again as this one; w is done with. */
void relay_end_up(struct relay_end *r, uint32_t channel, struct pb_writer *w);
void relay_end_up_as(struct relay_end *r, uint64_t number, uint32_t channel,
    struct pb_writer *w);
/* Any frame, whole. */
void relay_end_frame(struct relay_end *r, const void *frame, size_t len);
/* Up.received. */
void relay_end_ack(struct relay_end *r);

/*
 * The next message down of this kind, waited for; others are skipped.  Valid
 * until the next call.
 */
void relay_end_expect(struct relay_end *r, uint32_t channel,
    enum link_down kind, struct pb_field *out);
/* The next command of this number (GetAsyncCommandResponse), its body. */
void relay_end_command(struct relay_end *r, uint32_t channel, uint32_t command,
    struct pb_field *out);
/* Until all that was sent has been taken, and applied as far as it can be. */
void relay_end_settle(struct relay_end *r);
/* Takes what has come. */
void relay_end_turn(struct relay_end *r);
void relay_end_wait(struct relay_end *r, bool (*cond)(void *arg), void *arg);

#endif /* TESTS_UNIT_SERVICE_PORT_RELAY_END_H */
