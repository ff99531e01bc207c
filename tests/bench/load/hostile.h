/*
 * hostile: peers that no collector deserves.  They come again when they are
 * thrown out.
 */
#ifndef TESTS_BENCH_LOAD_HOSTILE_H
#define TESTS_BENCH_LOAD_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/load_options.h"
#include "transport/base/compiler.h"

struct hostile;
struct loop;
struct place;

/* Keys of packets that must never be in a trace (one for each kind). */
#define HOSTILE_KEY 0xfffffff0u

struct hostile_counts {
	uint64_t connections, thrown_out, bytes;
};

/* Those of o->hostile.  places are borrowed.  NULL: no memory. */
struct hostile *hostile_new(struct loop *l, const struct load_options *o,
    const struct place *places, size_t n_places) MUST_CHECK;
void hostile_free(struct hostile *h);
void hostile_start(struct hostile *h);
void hostile_stop(struct hostile *h);
/* All of one kind together. */
void hostile_look(const struct hostile *h, enum load_hostile kind,
    struct hostile_counts *out);

#endif /* TESTS_BENCH_LOAD_HOSTILE_H */
