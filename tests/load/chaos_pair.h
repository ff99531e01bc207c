/*
 * chaos_pair: one connection through the chaos proxy: a client's socket, a
 * socket to the target, and what a bad network does between them.
 *
 * Bytes keep their order, as TCP's do; they come late, slowly, or no more.
 * Knows nothing of listeners and commands.
 */
#ifndef TESTS_LOAD_CHAOS_PAIR_H
#define TESTS_LOAD_CHAOS_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct chaos_pair;
struct loop;

enum chaos_way { CHAOS_UP, CHAOS_DOWN, CHAOS_WAYS }; /* UP: to the target */

/* Shared by the pairs of a route; read anew for each piece of data. */
struct chaos_rules {
	uint32_t delay_ms[CHAOS_WAYS];
	uint32_t jitter_ms[CHAOS_WAYS]; /* 0 .. this, on top of the delay */
	uint64_t rate[CHAOS_WAYS];      /* bytes per second; 0: any */
	uint64_t random;                /* state, seeded */
};
/* 0 .. below-1. */
uint64_t chaos_random(uint64_t *state, uint64_t below);

enum chaos_cut {
	CHAOS_RST,         /* both ends are reset; what was queued is gone */
	CHAOS_CLOSE,       /* both ends see an orderly end, in mid sentence */
	CHAOS_DROP,        /* bytes vanish, nobody is told of anything */
	CHAOS_HALF_CLIENT, /* the client is reset, the target never told */
	CHAOS_HALF_TARGET, /* the target is reset, the client never told */
	CHAOS_STALL,       /* nothing is read, until chaos_pair_go_on() */
	CHAOS_CUTS
};
const char *chaos_cut_text(enum chaos_cut c);
/* False: there is no cut of this name. */
bool chaos_cut_parse(const char *text, enum chaos_cut *out) MUST_CHECK;

struct chaos_pair_ops {
	void (*carried)(void *arg, enum chaos_way way, size_t bytes);
	/* Both sockets are closed; the pair goes on the next turn. */
	void (*gone)(void *arg, struct chaos_pair *p);
};

/*
 * Takes the client's socket, also on failure (NULL).  hold: connects to the
 * target only at chaos_pair_let_through(), and delivers then what the client
 * said, even when it has hung up meanwhile.
 */
struct chaos_pair *chaos_pair_new(struct loop *l, int client,
    const struct addr *target, struct chaos_rules *rules, bool hold,
    const struct chaos_pair_ops *ops, void *arg) MUST_CHECK;
void chaos_pair_let_through(struct chaos_pair *p);
void chaos_pair_cut(struct chaos_pair *p, enum chaos_cut how);
/* What is stalled goes on; the client of what vanishes is reset at last. */
void chaos_pair_go_on(struct chaos_pair *p);

#endif /* TESTS_LOAD_CHAOS_PAIR_H */
