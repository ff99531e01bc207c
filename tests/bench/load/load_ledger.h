/*
 * load_ledger: the book of a run: for each sequence of packets what was
 * written, in a file that is complete at any moment.
 *
 * The file is mapped: a generator that is killed leaves what it had booked,
 * and a verifier may read it while it is being written.  A sequence's key is
 * in each of its packets (tests/bench/load/numbered.h); keys of a ledger are
 * consecutive.
 */
#ifndef TESTS_BENCH_LOAD_LOAD_LEDGER_H
#define TESTS_BENCH_LOAD_LOAD_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define LOAD_LEDGER_MAGIC "tribload"
#define LOAD_LEDGER_VERSION 1u
/* Sequences of a ledger. */
#define LOAD_LEDGER_MAX (8u << 20)

enum load_end {
	LOAD_WRITING, /* or whoever wrote it was killed */
	LOAD_STOPPED, /* its session ended, and all was taken before */
	LOAD_CLOSED,  /* its producer went, when all had been taken */
	LOAD_CUT,     /* its connection was cut */
	/*
	 * Written by those who cut sessions short, into a copy: its session may
	 * have been one, so that nothing of it has to be there.
	 */
	LOAD_LOST,
	LOAD_ENDS
};

/* As in the file. */
struct load_entry {
	uint32_t session;  /* the tag in its data source's config; 0: none */
	uint32_t producer; /* of the run, from 0 */
	uint64_t written;  /* packets 0 .. written-1 may arrive */
	uint64_t sure;     /* 0 .. sure-1 must: the collector took them */
	uint64_t bytes;    /* of what was written */
	uint32_t end;      /* enum load_end */
	uint32_t connection; /* of the producer, from 1 */
	/*
	 * 0 .. kept-1 must be there, though the session was cut short: they had
	 * been taken long before.  Written as LOAD_LOST.
	 */
	uint64_t kept;
	uint64_t reserved[2];
};

struct load_ledger_header {
	char magic[8];
	uint32_t version;
	uint32_t first_key;
	uint64_t n; /* entries; grows */
	uint64_t reserved[5];
};

struct load_ledger;

/*
 * Makes the file, anew.  path NULL: in memory only.  The first sequence has
 * first_key.  NULL with a sentence in err.
 */
struct load_ledger *load_ledger_new(const char *path, uint32_t first_key,
    char *err, size_t err_size) MUST_CHECK;
/* Maps one that is there, for reading.  NULL with a sentence in err. */
struct load_ledger *load_ledger_open(const char *path, char *err,
    size_t err_size) MUST_CHECK;
void load_ledger_free(struct load_ledger *l);

/* A new sequence: its key, or 0: no memory, no room on the disk, too many. */
uint32_t load_ledger_add(struct load_ledger *l, uint32_t session,
    uint32_t producer, uint32_t connection) MUST_CHECK;
/* Borrowed until the next load_ledger_add().  NULL: no such key. */
struct load_entry *load_ledger_at(struct load_ledger *l, uint32_t key);
uint32_t load_ledger_first(const struct load_ledger *l);
uint64_t load_ledger_count(const struct load_ledger *l);
const char *load_end_text(uint32_t end);

#endif /* TESTS_BENCH_LOAD_LOAD_LEDGER_H */
