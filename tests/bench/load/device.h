/*
 * device: one producer of a run: connects, registers its data source, and
 * writes numbered packets into whatever session asks for them, at its rate.
 *
 * Books what it writes (tests/bench/load/load_ledger.h) before it is sent, and
 * what the collector has taken when it says so.
 *
 * Plays producers of others, thousands in a process, with what libtributary, one
 * connection a process, never sends: packets whose sizes are patched in later,
 * chunks that come twice, commits of a size that the command line names, ends
 * in the middle of all that; and behind --relays it has no ProducerPort at all.
 */
#ifndef TESTS_BENCH_LOAD_DEVICE_H
#define TESTS_BENCH_LOAD_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/bench/load/line.h"
#include "tests/bench/load/load_options.h"
#include "transport/base/compiler.h"
#include "transport/wire/pb_writer.h"

struct device;
struct load_ledger;
struct load_totals;
struct loop;

/* What devices of a run share. */
struct device_shared {
	struct loop *loop;
	const struct load_options *options;
	struct load_ledger *ledger;
	struct load_totals *totals;
	struct pb_writer commit; /* the one being made */
	struct pb_writer packet;
	uint64_t rate;   /* bytes per second of each */
	uint64_t random; /* state */
	bool writing;    /* false: nobody writes any more */
	/* Of its owner. */
	struct line *(*connect)(void *arg, struct device *d,
	    const struct line_ops *ops, char *err, size_t err_size);
	/* Its data source is known, for the first time on this connection. */
	void (*ready)(void *arg, struct device *d);
	/* The connection is over; by_us: device_end() asked for it. */
	void (*gone)(void *arg, struct device *d, bool by_us);
	void *arg;
};
/* 0 .. below-1. */
uint64_t device_random(struct device_shared *s, uint64_t below);

struct device *device_new(struct device_shared *s, uint32_t index,
    enum load_slow slow) MUST_CHECK;
/* Cuts its connection. */
void device_free(struct device *d);

void device_connect(struct device *d);
/*
 * Ends its connection; gone() follows, now or when what it wrote was taken
 * (LINE_CLEAN).
 */
void device_end(struct device *d, enum line_cut how);
/* Commits what it has, as nothing more is to be written. */
void device_finish(struct device *d);

uint32_t device_index(const struct device *d);
bool device_is_connected(const struct device *d);
bool device_is_ready(const struct device *d);
/* Sequences that it writes. */
size_t device_sequences(const struct device *d);
/* All that it wrote was taken, or its connection is over. */
bool device_is_quiet(const struct device *d);
/* Nothing is left of --packets; false while it never had a sequence. */
bool device_has_written_all(const struct device *d);
uint64_t device_packets(const struct device *d);
uint64_t device_bytes(const struct device *d);

#endif /* TESTS_BENCH_LOAD_DEVICE_H */
