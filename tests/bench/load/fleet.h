/*
 * fleet: all devices of a run: connects them at their pace, and again when
 * they are gone, and ends some of them where there is churn.
 */
#ifndef TESTS_BENCH_LOAD_FLEET_H
#define TESTS_BENCH_LOAD_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/load_options.h"
#include "transport/base/compiler.h"

struct fleet;
struct load_ledger;
struct load_totals;
struct loop;
struct place;

struct fleet_state {
	size_t devices;
	size_t connected, ready;
	size_t writing;  /* have a sequence */
	size_t quiet;    /* wait for nothing */
	size_t finished; /* wrote all of --packets */
	size_t most_connected; /* ever */
};

/* A spread over devices. */
struct fleet_spread {
	uint64_t min, max, total;
};

/*
 * places (borrowed): devices are dealt out to them in turn.  changed is called
 * when a device became ready or is gone.  NULL: no memory.
 */
struct fleet *fleet_new(struct loop *l, const struct load_options *o,
    const struct place *places, size_t n_places, struct load_ledger *ledger,
    struct load_totals *totals, void (*changed)(void *arg), void *arg)
    MUST_CHECK;
void fleet_free(struct fleet *f);

void fleet_start(struct fleet *f);
/* Churn begins. */
void fleet_churn(struct fleet *f);
/* And ends; those who are gone come again. */
void fleet_calm(struct fleet *f);
/* Nobody writes any more or comes again; all commit what they have. */
void fleet_finish(struct fleet *f);
void fleet_look(const struct fleet *f, struct fleet_state *out);
void fleet_packets(const struct fleet *f, struct fleet_spread *out);
void fleet_bytes(const struct fleet *f, struct fleet_spread *out);

#endif /* TESTS_BENCH_LOAD_FLEET_H */
