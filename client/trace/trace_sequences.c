#include "client/trace/trace_sequences.h"

#include <stdlib.h>
#include <string.h>

#include "client/trace/packet_facts.h"

#define SMB_FULL 256u /* DATA_LOSS_SMB_FULL */

struct name {
	int32_t id; /* of the producer */
	uint32_t machine_id;
	int32_t pid;
	char *text; /* owned */
};

struct trace_sequences {
	struct trace_sequence *slots; /* open addressing; id 0 is free */
	size_t n, cap;                /* at most half of them are taken */
	uint64_t overflow;
	struct name *names;
	size_t n_names;
	struct trace_producer *producers; /* as handed out last */
};

struct trace_sequences *
trace_sequences_new(void)
{
	return calloc(1, sizeof(struct trace_sequences));
}

void
trace_sequences_free(struct trace_sequences *t)
{
	size_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->n_names; i++)
		free(t->names[i].text);
	for (i = 0; i < t->cap; i++)
		ftrace_losses_done(&t->slots[i].ftrace);
	free(t->names);
	free(t->producers);
	free(t->slots);
	free(t);
}

static uint32_t
mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	return x;
}

/* The slot that holds id, or the free one where it belongs. */
static struct trace_sequence *
slot_of(struct trace_sequence *slots, size_t cap, uint32_t id)
{
	size_t i = mix(id) & (cap - 1);

	while (slots[i].id != 0 && slots[i].id != id)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static int
grow(struct trace_sequences *t)
{
	size_t i, cap = t->cap == 0 ? 64 : t->cap * 2;
	struct trace_sequence *slots;

	if ((slots = calloc(cap, sizeof(*slots))) == NULL)
		return -1;
	for (i = 0; i < t->cap; i++) {
		if (t->slots[i].id != 0)
			*slot_of(slots, cap, t->slots[i].id) = t->slots[i];
	}
	free(t->slots);
	t->slots = slots;
	t->cap = cap;
	return 0;
}

struct trace_sequence *
trace_sequences_find(struct trace_sequences *t, uint32_t id)
{
	struct trace_sequence *q;

	if (t->cap != 0) {
		q = slot_of(t->slots, t->cap, id);
		if (q->id != 0)
			return q;
	}
	if (t->n == TRACE_SEQUENCES_MAX ||
	    ((t->n + 1) * 2 > t->cap && grow(t) < 0)) {
		t->overflow++;
		return NULL;
	}
	q = slot_of(t->slots, t->cap, id);
	q->id = id;
	t->n++;
	return q;
}

/*
 * Perfetto's service marks the first packet of every sequence, as it cannot know
 * whether something came before: that is no loss.  The writer itself can: where
 * it had no room before its first packet, as of one that goes on where another
 * has ended.
 */
static bool
follows_gap(const struct trace_sequence *q, const struct packet_facts *f)
{
	if ((f->dropped & SMB_FULL) != 0)
		return true;
	return f->dropped != 0 && !f->divided && !f->first_on_sequence &&
	    !(f->dropped == 1 && q->packets == 0);
}

bool
trace_sequence_take(struct trace_sequence *q, const struct packet_facts *f,
    uint64_t bytes)
{
	bool gap = follows_gap(q, f);

	if (q->packets == 0) {
		q->machine_id = f->machine_id;
		q->pid = f->pid;
		q->uid = f->uid;
	}
	q->packets++;
	q->bytes += bytes;
	if (gap) {
		q->gaps++;
		q->reasons |= f->dropped;
	}
	/* As importers do: clearing makes the incremental state valid. */
	if ((f->flags & PACKET_STATE_CLEARED) != 0)
		q->state_valid = true;
	else if (f->dropped != 0)
		q->state_valid = false;
	if ((f->flags & PACKET_NEEDS_STATE) != 0 && !q->state_valid)
		q->without_state++;
	ftrace_losses_take(&q->ftrace, f);
	return gap;
}

const struct trace_sequence *
trace_sequences_next(const struct trace_sequences *t, size_t *at)
{
	while (*at < t->cap) {
		const struct trace_sequence *q = &t->slots[(*at)++];

		if (q->packets != 0)
			return q;
	}
	return NULL;
}

uint64_t
trace_sequences_overflow(const struct trace_sequences *t)
{
	return t->overflow;
}

void
trace_sequences_name(struct trace_sequences *t, int32_t id,
    uint32_t machine_id, int32_t pid, const char *name)
{
	struct name *grown;
	char *copy;
	size_t i;

	if ((copy = strdup(name)) == NULL)
		return;
	for (i = 0; i < t->n_names; i++) {
		if (t->names[i].id != id)
			continue;
		free(t->names[i].text);
		t->names[i].text = copy;
		return;
	}
	if (t->n_names == TRACE_SEQUENCES_MAX_NAMES ||
	    (grown = realloc(t->names, (i + 1) * sizeof(*grown))) == NULL) {
		free(copy);
		return;
	}
	t->names = grown;
	t->names[t->n_names++] = (struct name){
		.id = id, .machine_id = machine_id, .pid = pid, .text = copy };
}

static const char *
name_of(const struct trace_sequences *t, const struct trace_producer *p)
{
	const struct name *n;
	size_t i;

	for (i = 0; i < t->n_names; i++) {
		n = &t->names[i];
		if (p->id != 0 ? n->id == p->id : n->pid == p->pid &&
		    n->machine_id == p->machine_id)
			return n->text;
	}
	return NULL;
}

static int
compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* qsort() order in which entries of the same producer compare equal. */
static int
by_identity(const void *a, const void *b)
{
	const struct trace_producer *x = a, *y = b;
	int r = compare((uint32_t)x->id, (uint32_t)y->id);

	if (r != 0 || x->id != 0)
		return r;
	if ((r = compare(x->machine_id, y->machine_id)) != 0)
		return r;
	if ((r = compare((uint32_t)x->pid, (uint32_t)y->pid)) != 0)
		return r;
	return compare((uint32_t)x->uid, (uint32_t)y->uid);
}

static int
by_bytes(const void *a, const void *b)
{
	const struct trace_producer *x = a, *y = b;
	int r = compare(y->bytes, x->bytes);

	return r != 0 ? r : by_identity(a, b);
}

/* Merges neighbours of the same identity; returns how many are left. */
static size_t
merge(struct trace_producer *p, size_t n)
{
	size_t i, out = 0;

	for (i = 1; i < n; i++) {
		if (by_identity(&p[out], &p[i]) != 0) {
			p[++out] = p[i];
			continue;
		}
		p[out].packets += p[i].packets;
		p[out].bytes += p[i].bytes;
		p[out].gaps += p[i].gaps;
		p[out].sequences++;
	}
	return n == 0 ? 0 : out + 1;
}

size_t
trace_sequences_producers(struct trace_sequences *t,
    const struct trace_producer **out)
{
	const struct trace_sequence *q;
	struct trace_producer *p;
	size_t i, n = 0;

	free(t->producers);
	t->producers = p = calloc(t->n + 1, sizeof(*p));
	*out = p;
	if (p == NULL)
		return 0;
	for (i = 0; i < t->cap; i++) {
		q = &t->slots[i];
		if (q->packets == 0)
			continue;
		p[n++] = (struct trace_producer){
			.id = q->producer_id, .machine_id = q->machine_id,
			.pid = q->pid, .uid = q->uid, .packets = q->packets,
			.bytes = q->bytes, .sequences = 1, .gaps = q->gaps,
		};
	}
	qsort(p, n, sizeof(*p), by_identity);
	n = merge(p, n);
	for (i = 0; i < n; i++)
		p[i].name = name_of(t, &p[i]);
	qsort(p, n, sizeof(*p), by_bytes);
	return n;
}
