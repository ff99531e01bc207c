/*
 * ledger_stream: one sequence of numbered packets in shared memory, and the
 * book that is kept of it: what was written whole, and what only may arrive.
 *
 * Writes as trace writers do: packets one behind the other in chunks, an open
 * chunk that is scraped when somebody looks, packets that span chunks, whose
 * size is patched in when it is known.  Knows nothing of connections.
 */
#ifndef TESTS_LOAD_LEDGER_STREAM_H
#define TESTS_LOAD_LEDGER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

enum ledger_end {
	LEDGER_WRITING,
	LEDGER_STOPPED, /* its session ended */
	LEDGER_LOST,    /* its connection did */
};

/* A packet of which a part of its size is still to be patched. */
struct ledger_patch {
	uint64_t packet;
	uint32_t chunk;
	uint32_t offset;
	uint8_t size[4];
	bool whole;      /* the packet is written: it may go */
	uint64_t commit; /* the one that it went with; 0: none yet */
};
#define LEDGER_PATCHES_MAX 64u

struct ledger_stream {
	struct shm *shm; /* borrowed; NULL once it is over */
	uint64_t instance;
	uint32_t buffer;
	uint16_t writer;
	enum shm_layout layout;
	uint32_t seq_value;
	uint32_t size; /* typical bytes of a packet */
	uint64_t packets_max; /* 0: any */
	bool patching; /* sizes of packets that span chunks */
	bool text;     /* packets are filled with sample_text(), not zeros */
	bool open;     /* the service knows the writer */
	bool stopping;
	enum ledger_end end;

	struct shm_slot slot;
	bool has_slot;
	size_t used;       /* of the slot */
	uint16_t fragments;
	uint32_t next_chunk;

	uint64_t next_packet;
	struct pb_writer packet; /* the one being written */
	size_t size_at;          /* where its size stands */
	size_t written;          /* of it */

	struct ledger_patch patches[LEDGER_PATCHES_MAX];
	size_t n_patches;

	/* The book. */
	uint64_t whole;     /* packets 0 .. whole-1 were written */
	uint64_t bytes;     /* of them */
	uint64_t *unsure;   /* owned: of them, those that may or may not arrive */
	size_t n_unsure;
};

void ledger_stream_init(struct ledger_stream *s, struct shm *shm,
    uint32_t seq_value, uint32_t size);
void ledger_stream_done(struct ledger_stream *s);

/*
 * Writes about so many bytes of packets; fewer when the memory is full.  Adds
 * the chunks that are full to a CommitDataRequest.  Returns the bytes.
 */
size_t ledger_stream_write(struct ledger_stream *s, size_t bytes,
    struct pb_writer *commit);
/* In the middle of a packet. */
bool ledger_stream_is_within(const struct ledger_stream *s);
/* Completes the open chunk, as a flush does, and adds it. */
void ledger_stream_flush(struct ledger_stream *s, struct pb_writer *commit);
/* Adds the patches of whole packets to the commit with this number. */
void ledger_stream_patch(struct ledger_stream *s, struct pb_writer *commit,
    uint64_t number);
/* Whether something waits to be added by ledger_stream_patch(). */
bool ledger_stream_has_patches(const struct ledger_stream *s);
/* The service has acted on the commits up to this one. */
void ledger_stream_acted(struct ledger_stream *s, uint64_t number);

/*
 * No more is written.  LEDGER_LOST, also after LEDGER_STOPPED: the patches that
 * were not acted on are booked as unsure.
 */
void ledger_stream_close(struct ledger_stream *s, enum ledger_end end);
/* The book, as a line of JSON without its braces. */
void ledger_stream_print(const struct ledger_stream *s, FILE *out);

#endif /* TESTS_LOAD_LEDGER_STREAM_H */
