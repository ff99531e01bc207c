/*
 * bench_scale: placement and failover of fleets, simulated; prints JSON:
 *
 *	bench_scale [NAMES]
 *
 * NAMES are those of the largest fleets (1000000).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "protos/json_out.h"
#include "tests/bench/scale/census.h"
#include "tests/bench/scale/storm.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
/* A relay's defaults, but for move_after_ms. */
#define TIMES(move_after) { \
	.move_after_ms = (move_after), .min_retry_ms = 200, \
	.max_retry_ms = 15000 }

static const struct rules {
	const char *name;
	bool restarts; /* devices come to the collector that ended */
	struct storm_rules storm;
} all_rules[] = {
	{ "moves", false, { TIMES(30000), 0, true } },
	{ "moves without jitter", false, { TIMES(30000), 0, false } },
	{ "moves after 60 s", false, { TIMES(60000), 0, true } },
	{ "haproxy", false, { TIMES(30000), 30000, true } },
	{ "restart", true, { TIMES(30000), 5000, true } },
	{ "restart without jitter", true, { TIMES(30000), 5000, false } },
};

static uint32_t
most(const uint32_t *counts, uint32_t n)
{
	uint32_t i, found = 0;

	for (i = 0; i < n; i++)
		if (counts[i] > found)
			found = counts[i];
	return found;
}

static void
print_spread(struct json_out *j, const char *key, const uint32_t *counts,
    uint32_t n)
{
	struct spread s = census_spread(counts, n);

	json_object(j, key);
	json_number(j, "least", s.least);
	json_number(j, "most", s.most);
	json_number(j, "sigmas", s.sigmas);
	json_object_end(j);
}

static void
print_counts(struct json_out *j, const char *key, const uint32_t *counts,
    uint32_t n)
{
	uint32_t i;

	json_array(j, key);
	for (i = 0; i < n; i++)
		json_uint(j, NULL, counts[i]);
	json_array_end(j);
}

static void
print_census(struct json_out *j, const struct census *c)
{
	print_spread(j, "spread", c->at, c->n);
	print_spread(j, "heirs_spread", c->heirs, c->n - 1);
	json_uint(j, "moved_to_added", c->moved_to_added);
	json_uint(j, "moved_from_removed", c->moved_from_removed);
	json_uint(j, "moved_otherwise", c->moved_otherwise);
	print_counts(j, "at", c->at, c->n);
	print_counts(j, "heirs", c->heirs, c->n - 1);
}

/* At the collector that gets most. */
static void
print_storm(struct json_out *j, const struct rules *r, const struct census *c)
{
	struct storm s;

	storm_run(&s, &r->storm, r->restarts ? most(c->at, c->n) :
	    most(c->heirs, c->n - 1));
	json_object(j, r->name);
	json_uint(j, "devices", s.devices);
	json_uint(j, "late", s.late);
	json_uint(j, "most_in_100_ms", s.most_in_100_ms);
	print_counts(j, "in", s.in, STORM_SECONDS);
	json_object_end(j);
}

static int
print_fleet(struct json_out *j, uint32_t names, uint32_t collectors)
{
	struct census c;
	char err[256];
	size_t i;

	if (census_take(&c, names, collectors, err, sizeof(err)) != 0) {
		fprintf(stderr, "bench_scale: %s\n", err);
		return -1;
	}
	json_object(j, NULL);
	json_uint(j, "names", c.names);
	json_uint(j, "collectors", c.n);
	print_census(j, &c);
	json_object(j, "storms");
	for (i = 0; i < N(all_rules); i++)
		print_storm(j, &all_rules[i], &c);
	json_object_end(j);
	json_object_end(j);
	return 0;
}

int
main(int argc, char **argv)
{
	uint32_t million = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) :
	    1000000;
	const struct { uint32_t names, collectors; } fleets[] = {
		{ million / 100, 3 }, { million / 10, 10 }, { million, 3 },
		{ million, 10 }, { million, 100 },
	};
	struct json_out j = { .out = stdout };
	size_t i;

	if (argc > 2 || million < 1000) {
		fprintf(stderr, "usage: bench_scale [NAMES, at least 1000]\n");
		return 2;
	}
	json_array(&j, NULL);
	for (i = 0; i < N(fleets); i++)
		if (print_fleet(&j, fleets[i].names, fleets[i].collectors) != 0)
			return 1;
	json_array_end(&j);
	putchar('\n');
	return fflush(stdout) != 0;
}
