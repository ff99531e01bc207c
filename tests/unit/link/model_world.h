/*
 * model_world: both ends, the wires between them, and what chance does to them.
 */
#ifndef TESTS_UNIT_LINK_MODEL_WORLD_H
#define TESTS_UNIT_LINK_MODEL_WORLD_H

#include "tests/unit/link/model.h"

struct world {
	struct book book;
	struct relay *relay;
	struct collector *collector;
	struct wire *wires; /* the newest first */
	/* Of a hundred steps, so many are this. */
	uint32_t cuts;
	uint32_t kills;
	uint32_t ends;
};

/* A number from the environment, for longer runs and those that failed. */
uint64_t model_number(const char *name, uint64_t otherwise);

/*
 * How many schedules to play: `count`; else one where a `seed` is named; else
 * all of these, or one in MODEL_SHARE of them (slow builds play fewer).
 */
uint64_t model_count(uint64_t all);

/* Limits and dangers are chance. */
void world_init(struct world *w, bool real);
void world_done(struct world *w);
void world_step(struct world *w);
/* The relay connects; it may have been connected. */
void world_connect(struct world *w);
/* Some bytes of the wires, or all, get through. */
void world_move(struct world *w, bool all);
/* The network works, and nobody says more: all comes to its end. */
void world_settle(struct world *w);

#endif /* TESTS_UNIT_LINK_MODEL_WORLD_H */
