/*
 * model: both ends of a link and the wires between them, driven by a random
 * schedule: what test_link_model.c is made of.
 *
 * The relay's end is its real outbox; the collector's end is what the protocol
 * demands of it (docs/link-protocol.md), over the same link_* parts as the real
 * one.  A book, which neither end knows, says what has to arrive.
 */
#ifndef TESTS_UNIT_LINK_MODEL_H
#define TESTS_UNIT_LINK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_in.h"
#include "transport/link/link_out.h"
#include "transport/link/link_wire.h"

/* ---- chance ---- */

extern uint64_t model_seed; /* of the world that runs */
extern unsigned model_step;

void model_srand(uint64_t seed);
uint32_t model_below(uint32_t n);   /* 0..n-1 */
bool model_chance(uint32_t percent);
/* Ends the test; says the seed and the step. */
void model_fail(const char *file, int line, const char *what)
    __attribute__((__noreturn__));
#define MODEL_CHECK(cond)                                                      \
	do {                                                                   \
		if (!(cond))                                                   \
			model_fail(__FILE__, __LINE__, #cond);                 \
	} while (0)

/* ---- the book ---- */

#define WRITERS_MAX 3

/* A chunk, as it was said. */
struct said_chunk {
	uint32_t bytes;   /* of its payload */
	uint8_t fragments;
	bool continues;   /* the packet of the chunk before */
	bool goes_on;     /* in the next one */
	uint64_t first;   /* number of its first packet, where they have one */
	bool refused;     /* the outbox had no room for it */
	uint32_t controls; /* of the channel, said before it */
};

struct said_writer {
	struct said_chunk *chunks;
	size_t said;
	uint64_t packets; /* in them */
	size_t cap;
	size_t got;     /* arrived, or counted as lost */
	bool tail_is_lost; /* the packet that goes on in the next chunk */
	/*
	 * Packets that were told to be lost, beyond those that are: one may be
	 * told with the chunk behind, if that was dropped first.
	 */
	int64_t ahead;
	int64_t unsure; /* may be told or not */
	size_t settled; /* of them, what the relay knows of */
	uint64_t old_told; /* chunks, of a link that was over: settled ones */
};

/* A channel of one link. */
struct said_channel {
	struct said_channel *next;
	uint32_t epoch; /* of its link */
	uint32_t number;
	uint32_t buffer; /* that its chunks are for; 0: not told yet */
	struct said_writer writers[WRITERS_MAX];
	uint32_t controls_said;
	uint32_t controls_got;
	/* For each control: chunks of each writer that were said before it. */
	uint32_t (*before)[WRITERS_MAX];
	bool closed_said;
	bool opened_got;
	bool closed_got;
};

/* What an up block changed, until the relay knows that it did. */
struct effect {
	struct effect *next;
	uint64_t number;
	struct said_channel *channel;
	int writer;
	size_t got;      /* of the writer */
	uint64_t old_told; /* or more of this */
};

struct book {
	/*
	 * The collector is the real one: chunks hold whole packets of
	 * said_packet(), and what arrives is read from its trace.
	 */
	bool real;
	struct said_channel *channels;
	uint32_t epoch; /* of the link that is, or comes next */
	struct effect *effects;
	struct effect **effects_end;
	/* Down, of this epoch's link. */
	uint64_t commands_said;
	uint64_t commands_got;
	/* For people, and to see that a schedule does something. */
	uint64_t chunks_arrived;
	uint64_t chunks_lost;
	uint64_t controls_arrived;
	uint64_t commands_arrived;
	uint64_t old_chunks;
};

/* for_testing.str of a packet: 26 characters, and some to fill it up. */
#define SAID_PACKET "%08u.%06u.%u.%08llu"
#define SAID_PACKET_TEXT 80

void book_init(struct book *b);
void book_done(struct book *b);
/* A channel of this link begins. */
struct said_channel *book_channel(struct book *b, uint32_t number);
/* The link is over: what it had is lost, or of no worth. */
void book_new_link(struct book *b);

/* Describes the writer's next chunk; encoded, it takes up to this. */
#define CHUNK_COMMIT_MAX(bytes) ((bytes) + 64u)
struct said_chunk book_think_of_chunk(const struct book *b,
    struct said_channel *c, int writer, bool whole_packets,
    uint32_t bytes_max);
/* Its CommitDataRequest. */
size_t book_encode_chunk(const struct book *b, struct said_channel *c,
    int writer, const struct said_chunk *chunk, uint8_t *out);
void book_say_chunk(struct said_channel *c, int writer,
    const struct said_chunk *chunk);
/* The same, and it was refused: what is lost with it. */
void book_say_refused(struct said_channel *c, int writer,
    struct said_chunk *chunk, struct link_loss *loss);
/* The text of the channel's next control; counts it. */
size_t book_say_control(struct said_channel *c, char *out, size_t size);

/*
 * An up block of the epoch's link was taken: all of it is checked.  It may be
 * late: the relay has begun a newer link meanwhile.
 */
void book_take_block(struct book *b, uint32_t epoch, uint64_t number,
    uint32_t channel, const uint8_t *data, size_t len);
/* The relay heard that blocks up to number have arrived. */
void book_settle(struct book *b, uint64_t number);
/* Nothing is on its way, nothing waits: everything is accounted for. */
void book_check_all(struct book *b);

size_t book_say_command(struct book *b, uint32_t channel, uint8_t *out,
    size_t size);
void book_take_command(struct book *b, uint32_t channel, const uint8_t *data,
    size_t len);

/* ---- wires ---- */

/* What is on the way in one direction; frames of transport/wire/frame.h. */
struct pipe {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t arrived; /* of len; not taken yet, as no frame is whole */
};

/* Kinds of frames on the wire: their first byte. */
enum wire_kind { WIRE_OPEN = 'O', WIRE_OPENED = 'A', WIRE_FRAME = 'F' };

/* A frame of three parts. */
void pipe_put(struct pipe *p, enum wire_kind kind, const void *a, size_t a_len,
    const void *b, size_t b_len);
/* So many more bytes get through. */
void pipe_move(struct pipe *p, size_t bytes);
/* The next whole frame that has arrived; until pipe_took(). */
bool pipe_next(struct pipe *p, enum wire_kind *kind, const uint8_t **data,
    size_t *len);
void pipe_took(struct pipe *p);
static inline size_t
pipe_on_the_way(const struct pipe *p)
{
	return p->len - p->arrived;
}
void pipe_clear(struct pipe *p);

struct wire {
	struct wire *next;
	struct pipe up;
	struct pipe down;
	bool relay_hung_up;
	bool collector_hung_up;
};

/* What LinkOpen and LinkOpened say, as far as it matters here. */
struct wire_open {
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	uint8_t collector_id[LINK_ID_BYTES];
	bool knows_collector;
	uint64_t last_sent;
	uint64_t last_acknowledged;
	uint64_t received;
	int level; /* of compression; 0: none */
	uint32_t epoch; /* for the book: of the link, if it begins anew */
};

#define WIRE_CONSUMED_MAX 64
struct wire_opened {
	uint8_t collector_id[LINK_ID_BYTES];
	int why; /* LinkOpened.Why */
	uint64_t received;
	uint64_t window;
	int level;
	size_t n_consumed;
	struct { uint32_t channel; uint64_t bytes; }
	    consumed[WIRE_CONSUMED_MAX];
	uint64_t consumed_in_all;
};

/* ---- the relay ---- */

struct relay_plan {
	size_t memory_bytes;
	uint64_t spool_bytes; /* 0: none */
	bool drop_newest;
	uint32_t chunk_max; /* longest payload */
	int level;
};

struct relay;

struct relay *relay_new(struct book *b, const struct relay_plan *plan);
void relay_free(struct relay *r);
/* The process is killed and started again. */
void relay_kill(struct relay *r);
/* The wire that it speaks over, or NULL. */
struct wire *relay_wire(const struct relay *r);
bool relay_is_open(const struct relay *r); /* LinkOpened has come */
void relay_connect(struct relay *r, struct wire *w);
void relay_hang_up(struct relay *r);

void relay_begin_producer(struct relay *r);
void relay_end_producer(struct relay *r);
void relay_say_chunks(struct relay *r, unsigned n);
void relay_say_control(struct relay *r);
/* Up to so many blocks, as far as credit goes. */
void relay_send(struct relay *r, unsigned blocks);
/* What has arrived on its wire. */
void relay_receive(struct relay *r);
/*
 * Producers 1.. flood, each with a backlog of this; 0 says one chunk when all it
 * said before has arrived.
 */
void relay_flood(struct relay *r, uint64_t backlog, uint32_t bytes);
/*
 * Most bytes of others that were sent while the first block of an empty channel
 * waited; and blocks so sent.
 */
uint64_t relay_longest_wait(const struct relay *r, uint64_t *waits);
/* Whether all it had has been acknowledged. */
bool relay_is_empty(const struct relay *r);
/* Blocks that were sent for the first time, and again. */
uint64_t relay_sent_new(const struct relay *r);
uint64_t relay_sent_again(const struct relay *r);

/* ---- the collector ---- */

struct collector;

struct collector *collector_new(struct book *b, uint64_t window);
void collector_free(struct collector *c);
/* It is killed and started again. */
void collector_restart(struct collector *c);
/* A link without a connection has waited too long. */
void collector_end_grace(struct collector *c);
/* The link is given up, connected or not. */
void collector_give_up(struct collector *c);
/* What has arrived on a wire, its end too. */
void collector_receive(struct collector *c, struct wire *w);
/* Hangs up on its relay. */
void collector_hang_up(struct collector *c);
/* Some of what waits is consumed; all: all of it. */
void collector_consume(struct collector *c, bool all);
/* The same, but these channels wait for ever. */
void collector_consume_all_but(struct collector *c, uint32_t from,
    uint32_t to);
void collector_say_command(struct collector *c);
void collector_send(struct collector *c, unsigned blocks);
bool collector_is_empty(const struct collector *c);

#endif /* TESTS_UNIT_LINK_MODEL_H */
