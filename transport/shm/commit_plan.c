#include "transport/shm/commit_plan.h"

#include "protos/fields.h"

static bool
plan_move(struct commit_plan *plan, const struct pb_field *f,
    const struct pb_reader *behind)
{
	struct commit_move *m = plan->n_moves < COMMIT_PLAN_MOVES ?
	    &plan->moves[plan->n_moves] : &plan->more;

	if (f->wire != PB_BYTES || !commit_parse_move(m, f->data, f->len))
		return false;
	if (m != &plan->more && ++plan->n_moves == COMMIT_PLAN_MOVES)
		plan->rest = *behind;
	return true;
}

bool
commit_plan_make(struct commit_plan *plan, const uint8_t *request, size_t len)
{
	struct commit_patch patch;
	struct pb_reader r;
	struct pb_field f;
	bool has_patches = false;

	plan->flush_id = 0;
	plan->n_moves = 0;
	pb_init(&plan->rest, NULL, 0);
	PB_FOREACH(&f, &r, request, len) {
		switch (f.number) {
		case CommitDataRequest_chunks_to_move:
			if (!plan_move(plan, &f, &r))
				return false;
			break;
		case CommitDataRequest_chunks_to_patch:
			if (f.wire != PB_BYTES ||
			    !commit_parse_patch(&patch, f.data, f.len))
				return false;
			has_patches = true;
			break;
		case CommitDataRequest_flush_request_id:
			plan->flush_id = f.value;
			break;
		default:
			break;
		}
	}
	pb_init(&plan->patches, request, has_patches ? len : 0);
	return !r.bad;
}

/* The next field with this number of a request that was found well-formed. */
static bool
next_field(struct pb_reader *r, uint32_t number, struct pb_field *f)
{
	while (pb_next(r, f))
		if (f->number == number)
			return true;
	return false;
}

const struct commit_move *
commit_plan_move(struct commit_plan *plan, size_t index)
{
	struct pb_field f;

	if (LIKELY(index < plan->n_moves))
		return &plan->moves[index];
	if (!next_field(&plan->rest, CommitDataRequest_chunks_to_move, &f) ||
	    !commit_parse_move(&plan->more, f.data, f.len))
		return NULL;
	return &plan->more;
}

bool
commit_plan_patch(struct commit_plan *plan, struct commit_patch *out)
{
	struct pb_field f;

	return next_field(&plan->patches,
	    CommitDataRequest_chunks_to_patch, &f) &&
	    commit_parse_patch(out, f.data, f.len);
}
