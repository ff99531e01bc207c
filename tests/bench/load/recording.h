/*
 * recording: the session that a run begins and ends itself, into a file; and
 * the control client that measures how long the collector takes to answer.
 */
#ifndef TESTS_BENCH_LOAD_RECORDING_H
#define TESTS_BENCH_LOAD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/bench/load/histogram.h"
#include "tests/bench/load/load_options.h"
#include "transport/base/compiler.h"

struct loop;
struct recording;

/* The tag in its data source's config, which the ledger has. */
#define RECORDING_TAG 1u

struct recording_result {
	double start_ms;     /* until recording_started() */
	double stop_ms;
	uint64_t file_bytes;
	char error[256];     /* "": ended well */
	bool has_stats;
	uint64_t lost;       /* as trace_losses_total() has it */
	uint64_t buffer_bytes, chunks_overwritten, chunks_discarded;
	uint64_t invalid_packets;
	uint64_t flush_failed;
	struct histogram flush_us, query_us;
};

/*
 * o->consumer is where; o->session NULL: only the control client.  changed is
 * called at each change of state.  NULL with a sentence in err.
 */
struct recording *recording_new(struct loop *l, const struct load_options *o,
    void (*changed)(void *arg), void *arg, char *err, size_t err_size)
    MUST_CHECK;
void recording_free(struct recording *r);

bool recording_is_connected(const struct recording *r);
/* Also where the collector would not have it. */
bool recording_has_ended(const struct recording *r);

void recording_start(struct recording *r);
/* All data sources write. */
void recording_started(struct recording *r);
/* Asks for statistics, then for the end. */
void recording_stop(struct recording *r);
const struct recording_result *recording_result(const struct recording *r);

#endif /* TESTS_BENCH_LOAD_RECORDING_H */
