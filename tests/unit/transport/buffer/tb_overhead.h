/* Bytes of memory that a trace buffer takes beside its ring. */
#ifndef TESTS_UNIT_TRANSPORT_BUFFER_TB_OVERHEAD_H
#define TESTS_UNIT_TRANSPORT_BUFFER_TB_OVERHEAD_H

#include "transport/buffer/tb_share.h"
#include "transport/buffer/tb_state.h"

static inline size_t
tb_overhead(const struct trace_buffer *tb)
{
	const struct tb_sequences *t = &tb->seqs;
	const struct tb_shares *shares = t->shares;
	const struct tb_sequence *s;
	size_t n = sizeof(*tb) + tb->slices_cap * sizeof(*tb->slices);
	uint32_t i;

	n += ((size_t)t->hash_mask + 1) * sizeof(*t->hash);
	n += t->n_blocks * (sizeof(*t->blocks) + TB_SEQ_BLOCK * sizeof(*s));
	for (i = 0; i < t->n_slots; i++) {
		s = tb_sequence_at(t, i);
		if (s->queue != s->small)
			n += ((size_t)s->mask + 1) * sizeof(*s->queue);
	}
	if (shares != NULL)
		n += sizeof(*shares) + shares->cap * sizeof(*shares->all) +
		    ((size_t)shares->mask + 1) * sizeof(*shares->chains);
	return n;
}

#endif /* TESTS_UNIT_TRANSPORT_BUFFER_TB_OVERHEAD_H */
