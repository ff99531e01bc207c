/*
 * outbox_model: producers and a collector around an outbox, which know of every
 * packet what must become of it.  Plain memory, so that it may lie where a
 * process that is killed leaves it.
 */
#ifndef TESTS_UNIT_RELAY_OUTBOX_OUTBOX_MODEL_H
#define TESTS_UNIT_RELAY_OUTBOX_OUTBOX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/outbox/outbox.h"

#define MODEL_CHANNELS 5u
#define MODEL_WRITERS  3u   /* of a channel */
#define MODEL_PACKETS  40000u /* of a writer, at most */

#define MODEL_CHUNK_PACKETS 256u

struct model_writer_state {
	uint32_t next_chunk;
	uint32_t packets;      /* begun so far */
	bool open;             /* the last one goes on in the next chunk */
	/* The chunk that was put last, unless it was complete. */
	bool scraped;
	uint32_t scraped_fragments;
	uint32_t first;        /* of the packets that begin in it */
	bool continues;
};

struct model_writer {
	struct model_writer_state state;

	/* The collector's: */
	bool any;
	uint32_t last_chunk;
	uint32_t last_fragments;
	bool last_whole;
	bool loss_since;       /* a loss was told since that chunk */
	uint64_t lost;
	uint64_t lost_chunks;
	/*
	 * Fragments that were put once more after a kill: where the first time
	 * had arrived, and was dropped at once, they may be told for nothing.
	 */
	uint64_t again;
	/* Of each packet, fragments that are out, and that arrived. */
	uint16_t out[MODEL_PACKETS];
	uint16_t in[MODEL_PACKETS];
};

struct model_channel {
	uint32_t id;
	uint32_t put;          /* triggers, numbered */
	uint32_t got;
	/* Triggers that may come twice: their numbers. */
	uint32_t twice[32];
	uint32_t n_twice;
	uint64_t sent;         /* bytes that arrived */
	uint64_t consumed;
	uint64_t whole_losses; /* packets lost of no writer in particular */
	struct model_writer writers[MODEL_WRITERS];
};

struct model {
	uint64_t random;
	bool stretched;        /* packets of many chunks, and none scraped */
	bool rough;            /* packets may be told that are there */
	uint64_t received;     /* blocks */
	uint64_t sent;         /* bytes of them */
	uint64_t consumed;
	struct model_channel channels[MODEL_CHANNELS];
	/*
	 * What is being made up (THINKING: as it was before, to be forgotten)
	 * or put (PUTTING: to be put again): a process may be killed in it.
	 */
	enum { MODEL_IDLE, MODEL_THINKING, MODEL_PUTTING } doing;
	unsigned channel;
	unsigned writer;
	struct model_writer_state before;
	uint16_t before_out[MODEL_CHUNK_PACKETS];
	bool trigger;
	uint32_t number;    /* of the trigger */
	uint8_t chunk[64];
	bool overflowed;    /* the outbox, in a process that was killed */
};

void model_init(struct model *m, uint64_t seed, struct outbox *o);
uint32_t model_random(struct model *m, uint32_t below);

/*
 * The last of the seeds from this one on, of which there are so many: one in
 * $MODEL_SHARE of them is played (slow builds play fewer).
 */
uint64_t model_last_seed(uint64_t first, uint64_t n);

/* Whether there is room in the model for more. */
bool model_has_room(const struct model *m);
/* A producer does something. */
void model_put(struct model *m, struct outbox *o);
/* What was cut short by a kill is put again. */
void model_put_again(struct model *m, struct outbox *o);
/* The collector takes a block, if there is one; asserts what it can. */
bool model_take(struct model *m, struct outbox *o);
/* It says so. */
void model_acknowledge(struct model *m, struct outbox *o);
void model_consume(struct model *m, struct outbox *o);
/* It is connected anew. */
void model_resume(struct model *m, struct outbox *o);
/* Writers put what they had not put whole. */
void model_finish(struct model *m, struct outbox *o);
/* Takes all there is.  What never comes is found by model_check(). */
struct outbox_world;
void model_drain(struct model *m, struct outbox_world *w);
/*
 * Everything was taken: nothing may be missing that was not told; nor told that
 * is not missing, but where it is rough.
 */
void model_check(const struct model *m);

#endif /* TESTS_UNIT_RELAY_OUTBOX_OUTBOX_MODEL_H */
