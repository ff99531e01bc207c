/*
 * commit_plan: checks a CommitDataRequest as a whole before any of it is
 * applied, and then hands out its moves and patches one by one.  Pure; knows
 * neither shared memory nor buffers.
 */
#ifndef TRANSPORT_SHM_COMMIT_PLAN_H
#define TRANSPORT_SHM_COMMIT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/shm/commit_wire.h"
#include "transport/wire/pb_reader.h"

/* Kept in the plan, so that the usual request is parsed once. */
#define COMMIT_PLAN_MOVES 32u

/* On the caller's stack; borrows the request. */
struct commit_plan {
	uint64_t flush_id; /* flush that the request acknowledges; 0: none */

	/* Private from here. */
	struct commit_move moves[COMMIT_PLAN_MOVES];
	size_t n_moves;          /* in moves */
	struct commit_move more; /* the current move of rest */
	struct pb_reader rest;   /* the request behind `moves`, unparsed */
	struct pb_reader patches;
};

/* False: the request does not parse, and nothing of it may be applied. */
bool commit_plan_make(struct commit_plan *plan, const uint8_t *request,
    size_t len) MUST_CHECK;
/*
 * The move with this index, or NULL behind the last one.  Call it for each
 * index once, in order; the move is valid until the next call.
 */
const struct commit_move *commit_plan_move(struct commit_plan *plan,
    size_t index);
/* The next patch; false: that was the last one. */
bool commit_plan_patch(struct commit_plan *plan, struct commit_patch *out)
    MUST_CHECK;

#endif /* TRANSPORT_SHM_COMMIT_PLAN_H */
