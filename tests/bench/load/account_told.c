#include "tests/bench/load/account_told.h"

#include <stdlib.h>

#include "transport/wire/pb_reader.h"

#define STATS_BUFFER      1u
#define STATS_DISCARDED   8u
#define STATS_FINAL_FLUSH 15u
#define FINAL_FLUSH_FAILED 2u
#define STATS_LINK_LOSSES 1001u
/* Link losses that are looked up by their sequence. */
#define LOSSES_MAX (1u << 20)

void
told_done(struct told *t)
{
	free(t->losses);
	t->losses = NULL;
	t->n_losses = 0;
}

static void
add_loss(struct told *t, const struct pb_field *m)
{
	struct told_loss l = { 0 }, *grown;
	bool known = false;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			l.machine = (uint32_t)f.value;
		else if (f.number == 2)
			l.sequence = (uint32_t)f.value;
		else if (f.number == 4)
			l.cause = (uint32_t)f.value;
		else if (f.number == 6) {
			l.packets = f.value;
			known = true;
		}
	}
	if (!known)
		l.packets = UINT64_MAX;
	if (t->n_losses == LOSSES_MAX)
		return;
	if ((t->n_losses & (t->n_losses - 1)) == 0) {
		grown = realloc(t->losses,
		    (t->n_losses > 0 ? 2 * t->n_losses : 1) *
		    sizeof(*t->losses));
		if (grown == NULL)
			return;
		t->losses = grown;
	}
	t->losses[t->n_losses++] = l;
}

static void
read_buffer(struct told *t, const struct pb_field *m)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f))
		/* chunks_overwritten, abi_violations, chunks_discarded */
		if (f.number == 3 || f.number == 9 || f.number == 18)
			t->chunks_lost += f.value;
}

void
told_read(struct told *t, const uint8_t *stats, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, stats, len);
	while (pb_next(&r, &f)) {
		if (f.number == STATS_BUFFER && f.wire == PB_BYTES)
			read_buffer(t, &f);
		else if (f.number == STATS_DISCARDED)
			t->chunks_lost += f.value;
		else if (f.number == STATS_FINAL_FLUSH)
			t->not_flushed = f.value == FINAL_FLUSH_FAILED;
		else if (f.number == STATS_LINK_LOSSES && f.wire == PB_BYTES)
			add_loss(t, &f);
	}
}

static int
compare_losses(const void *x, const void *y)
{
	const struct told_loss *a = x, *b = y;

	return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

void
told_sort(struct told *t)
{
	if (t->n_losses > 0)
		qsort(t->losses, t->n_losses, sizeof(*t->losses),
		    compare_losses);
}

uint64_t
told_use(struct told *t, uint32_t sequence, uint32_t machine, uint64_t want,
    told_fn tell, void *arg)
{
	size_t low = 0, high = t->n_losses, mid;
	uint64_t used = 0, n;
	struct told_loss *l;

	while (low < high) {
		mid = (low + high) / 2;
		if (t->losses[mid].sequence < sequence)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < t->n_losses && used < want &&
	    t->losses[low].sequence == sequence; low++) {
		l = &t->losses[low];
		if (sequence == 0 && l->machine != machine)
			continue;
		n = l->packets < want - used ? l->packets : want - used;
		if (l->packets != UINT64_MAX)
			l->packets -= n;
		tell(arg, link_loss_text(l->cause), n);
		used += n;
	}
	return used;
}

const char *
told_of_end(const struct told *t)
{
	if (t->chunks_lost > 0)
		return "chunks lost by a buffer";
	return t->not_flushed ? "not flushed at the end" : NULL;
}

void
told_next_part(struct told *t)
{
	const struct told_loss *l;
	size_t i;

	for (i = 0; i < t->n_losses; i++) {
		l = &t->losses[i];
		if (l->cause >= LINK_LOSS_CAUSES || l->packets == 0)
			continue;
		if (l->packets > UINT64_MAX - t->rest[l->cause])
			t->rest[l->cause] = UINT64_MAX;
		else
			t->rest[l->cause] += l->packets;
	}
	if (t->end == NULL)
		t->end = told_of_end(t);
	t->chunks_lost = 0;
	t->not_flushed = false;
	told_done(t);
}

uint64_t
told_use_rest(struct told *t, uint64_t want, told_fn tell, void *arg)
{
	uint64_t used = 0, n;
	uint32_t cause;

	for (cause = 0; cause < LINK_LOSS_CAUSES; cause++) {
		n = t->rest[cause] < want - used ? t->rest[cause] :
		    want - used;
		t->rest[cause] -= n;
		tell(arg, link_loss_text(cause), n);
		used += n;
	}
	if (used == want || t->end == NULL)
		return used;
	tell(arg, t->end, want - used);
	return want;
}
