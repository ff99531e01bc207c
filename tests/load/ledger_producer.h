/*
 * ledger_producer: a producer that writes numbered packets for as long as it
 * is asked to, connects again when its service is gone, goes on with new
 * sequences, and keeps a book of all of them (tests/load/ledger_stream.h).
 *
 * Needs shared memory.  What the service refuses ends the process with a
 * sentence; that it is gone does not.
 */
#ifndef TESTS_LOAD_LEDGER_PRODUCER_H
#define TESTS_LOAD_LEDGER_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/socket/addr.h"

struct ledger_producer;
struct loop;

struct ledger_options {
	struct loop *loop;
	struct addr address;
	const char *name;      /* copied */
	const char *source;    /* borrowed */
	uint32_t shm_bytes;    /* 0: the service's default */
	uint32_t writers;      /* sequences of an instance */
	uint32_t packet_bytes; /* typical */
	uint64_t packets;      /* of a sequence; 0: any */
	bool patches;          /* of packets that span chunks */
	bool text;             /* packets compress as real ones do */
	/* Numbers of sequences, over all producers: *next is the next. */
	uint32_t *next_seq_value;
};

struct ledger_producer *ledger_producer_new(const struct ledger_options *o);
void ledger_producer_free(struct ledger_producer *p);

/*
 * A turn: writes about so many bytes, spread over the sequences, and commits
 * what is full.
 */
void ledger_producer_write(struct ledger_producer *p, size_t bytes);
/* Completes what is begun and commits all of it.  False: memory is full yet. */
bool ledger_producer_finish(struct ledger_producer *p);
/* Connected, and its source known. */
bool ledger_producer_is_ready(const struct ledger_producer *p);
/* Sequences being written now. */
size_t ledger_producer_writing(const struct ledger_producer *p);
/* Everything was acted on. */
bool ledger_producer_is_quiet(const struct ledger_producer *p);
/* The book: a line of JSON for each sequence there ever was. */
void ledger_producer_print(const struct ledger_producer *p, FILE *out);

#endif /* TESTS_LOAD_LEDGER_PRODUCER_H */
