/*
 * inspect_clocks: what a trace's snapshots say about its clocks and machines,
 * as sections of the reports.
 */
#ifndef CLIENT_INSPECT_INSPECT_CLOCKS_H
#define CLIENT_INSPECT_INSPECT_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct clock_graph;
struct inspection;
struct json_out;

/* How far a machine's clock is ahead of the collector's. */
struct clock_distance {
	uint32_t machine;
	uint32_t clock; /* BOOTTIME, or another that both have */
	uint64_t readings;
	int64_t first, last, min, max; /* nanoseconds */
	uint64_t error; /* of the last, at most; 0: not known */
	bool has_drift;
	double drift_ppm; /* of last against first */
};

/* Those of up to max machines, by machine; how many there are. */
size_t inspect_clocks_distances(struct clock_graph *g,
    struct clock_distance *out, size_t max);

void inspect_clocks_text(FILE *out, const struct inspection *i);
void inspect_clocks_json(struct json_out *j, const struct inspection *i);

#endif /* CLIENT_INSPECT_INSPECT_CLOCKS_H */
