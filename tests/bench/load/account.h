/*
 * account: holds the packets of a trace against the books of what was written
 * (tests/bench/load/load_ledger.h): each is there once, in order and whole; or
 * it is missing and the trace tells so; or it is not accounted for.
 *
 * One pass; memory for each sequence is fixed.  Knows no files.
 *
 * A loss is told where the packet behind it says so (previous_packet_dropped),
 * where TraceStats names the sequence or its machine (tributary_link_losses),
 * or, for what no packet follows, where TraceStats says that a buffer lost
 * chunks or that the flush at the end failed.
 *
 * Of segments (protos/segment.proto) those of all sessions of a recording may
 * come, a session behind the other and each in order: a packet is in exactly
 * one of them, and what statistics tell is of their session alone.  A session
 * that has no end was cut short: its sequences may lack theirs.  A sequence that
 * the ledger has as LOAD_LOST, from behind a relay, may go on in the session
 * that follows: what is between went with the one that was cut short.
 */
#ifndef TESTS_BENCH_LOAD_ACCOUNT_H
#define TESTS_BENCH_LOAD_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define ACCOUNT_CAUSES_MAX   32u
#define ACCOUNT_EXAMPLES_MAX 12u
#define ACCOUNT_EXAMPLE_SIZE 128u
#define ACCOUNT_LEDGERS_MAX  1024u
/* Sessions whose packets are in one trace. */
#define ACCOUNT_SESSIONS_MAX 64u

struct account;
struct load_ledger;

struct account_cause {
	char name[32];
	uint64_t packets;
};

struct account_result {
	uint64_t packets;   /* of all that the trace has */
	uint64_t present;   /* of those that are in a ledger, each once */
	uint64_t sequences; /* that were expected */
	uint64_t sequences_seen;
	uint64_t written;   /* packets that were expected */
	uint64_t missing;   /* of them, told or not */
	/* They were on the way when their connection was cut. */
	uint64_t missing_unsure;
	/* They were behind the last ones of a session that was cut short. */
	uint64_t cut_short;
	uint64_t parts;           /* sessions whose segments came */
	uint64_t parts_cut_short; /* of them */
	uint64_t told;
	struct account_cause causes[ACCOUNT_CAUSES_MAX];
	size_t n_causes;
	/* What must never be: */
	uint64_t untold;
	uint64_t doubled;
	uint64_t disordered;
	uint64_t altered;       /* the checksum does not fit */
	uint64_t never_written; /* a number behind the last */
	uint64_t strangers;     /* a key of no ledger */
	uint64_t mixed_up;      /* two sequences of the trace for one key */
	/* What cannot be read is the caller's to add. */
	char examples[ACCOUNT_EXAMPLES_MAX][ACCOUNT_EXAMPLE_SIZE];
	size_t n_examples;
};

struct account_options {
	bool prefix; /* sequences may lack their end: a clone, a killed one */
	bool has_session;
	uint32_t session; /* its tag; else those of which a packet is there */
};

/* Copies the options. */
struct account *account_new(const struct account_options *o) MUST_CHECK;
void account_free(struct account *a);

/* Borrowed.  -1: no memory, or too many. */
int account_add_ledger(struct account *a, struct load_ledger *l) MUST_CHECK;
/* The next TracePacket, expanded. */
void account_packet(struct account *a, const uint8_t *data, size_t len);
/* All was seen.  Once. */
void account_finish(struct account *a, struct account_result *out);
/* Nothing is unaccounted for. */
bool account_is_good(const struct account_result *r);

#endif /* TESTS_BENCH_LOAD_ACCOUNT_H */
