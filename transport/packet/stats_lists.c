#include "transport/packet/stats_lists.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "transport/base/hash_map.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define KEY_NUMBERS 3u

/* How the entries of a list are told apart, and what is counted in them. */
struct list {
	uint32_t field;
	uint32_t key[KEY_NUMBERS]; /* 0: no more */
	uint32_t name;             /* a string that is part of the key; 0 */
	uint32_t counters;
	uint32_t packed[2];        /* counters in buckets; 0: none */
};

static const struct list writers = {
	.field = TraceStats_writer_stats,
	.key = { WriterStats_sequence_id, WriterStats_buffer },
	.packed = { WriterStats_chunk_payload_histogram_counts,
	    WriterStats_chunk_payload_histogram_sum },
};

#define LOSS_COUNTERS \
	(STATS_BIT(LinkLossStats_chunks) | STATS_BIT(LinkLossStats_packets) | \
	STATS_BIT(LinkLossStats_bytes))

static const struct list losses = {
	.field = TraceStats_tributary_link_losses,
	.key = { LinkLossStats_machine_id, LinkLossStats_cause,
	    LinkLossStats_trusted_packet_sequence_id },
	.name = LinkLossStats_producer_name,
	.counters = LOSS_COUNTERS,
};

/* Losses of a reading in the short form, which has no sequences. */
static const struct list machine_losses = {
	.field = TraceStats_tributary_link_losses,
	.key = { LinkLossStats_machine_id, LinkLossStats_cause },
	.counters = LOSS_COUNTERS,
};

static const struct list clocks = {
	.field = TraceStats_tributary_foreign_clocks,
	.key = { ForeignClock_producer_id },
	.name = ForeignClock_producer_name,
	.counters = STATS_BIT(ForeignClock_packets),
};

struct entry {
	struct hash_link link;
	uint64_t key[KEY_NUMBERS];
	struct stats_reading name;
	struct stats_reading message;
	bool matched;
};

/* The entries of one reading, in their order, and by key. */
struct entries {
	struct entry *all;
	size_t n;
	struct hash_map by_key;
};

static uint64_t
key_hash(const struct entry *e)
{
	uint64_t h = hash_numbers(e->key[0], e->key[1]);

	h = hash_numbers(h, e->key[2]);
	return e->name.len == 0 ? h :
	    hash_numbers(h, hash_bytes(e->name.data, e->name.len));
}

static bool
is_key(const struct entry *a, const struct entry *b)
{
	return memcmp(a->key, b->key, sizeof(a->key)) == 0 &&
	    a->name.len == b->name.len && (a->name.len == 0 ||
	    memcmp(a->name.data, b->name.data, a->name.len) == 0);
}

static struct entry *
find(const struct entries *in, const struct entry *key)
{
	struct entry *e;

	HASH_MAP_FOREACH_OF(e, &in->by_key, key_hash(key), link)
		if (is_key(e, key))
			return e;
	return NULL;
}

static void
read_key(struct entry *e, const struct list *l)
{
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	PB_FOREACH(&f, &r, e->message.data, e->message.len) {
		if (f.wire == PB_BYTES && f.number == l->name)
			e->name = (struct stats_reading){ f.data, f.len };
		if (f.wire != PB_VARINT)
			continue;
		for (i = 0; i < KEY_NUMBERS; i++)
			if (l->key[i] == f.number)
				e->key[i] = f.value;
	}
}

static void
entries_done(struct entries *in)
{
	hash_map_done(&in->by_key);
	free(in->all);
}

/* -1: no memory; entries_done() is due in any case. */
static int
entries_read(struct entries *in, const struct list *l, struct stats_reading of)
{
	struct pb_reader r;
	struct pb_field f;
	size_t n = 0;
	struct entry *e;

	memset(in, 0, sizeof(*in));
	PB_FOREACH(&f, &r, of.data, of.len)
		n += f.number == l->field && f.wire == PB_BYTES;
	if ((in->all = calloc(n + 1, sizeof(*in->all))) == NULL)
		return -1;
	PB_FOREACH(&f, &r, of.data, of.len) {
		if (f.number != l->field || f.wire != PB_BYTES)
			continue;
		e = &in->all[in->n++];
		e->message = (struct stats_reading){ f.data, f.len };
		read_key(e, l);
		hash_map_put(&in->by_key, &e->link, key_hash(e));
	}
	return 0;
}

static struct stats_reading
bytes_field(struct stats_reading of, uint32_t field)
{
	struct stats_reading found = { NULL, 0 };
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, of.data, of.len)
		if (f.number == field && f.wire == PB_BYTES)
			found = (struct stats_reading){ f.data, f.len };
	return found;
}

/* The next bucket; false, and 0, when there is none. */
static bool
next_bucket(struct stats_reading *of, uint64_t *value)
{
	const uint8_t *end, *p;

	*value = 0;
	if (of->len == 0)
		return false; /* data may be NULL, which has no offsets */
	end = of->data + of->len;
	if ((p = pb_varint(of->data, end, value)) == NULL)
		return false;
	*of = (struct stats_reading){ p, (size_t)(end - p) };
	return true;
}

static bool
put_packed(struct pb_writer *w, uint32_t field, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	size_t mark = pb_nest_begin(w, field);
	uint64_t l, e, v;
	bool any = false, has_l, has_e;

	for (;;) {
		has_l = next_bucket(&later, &l);
		has_e = next_bucket(&earlier, &e);
		if (!has_l && (!has_e || how == STATS_SUBTRACT))
			break;
		v = stats_combined(how, l, e);
		any |= v != 0;
		pb_put_varint(w, v);
	}
	pb_nest_end(w, mark);
	return any;
}

/*
 * An entry, combined with the earlier one of its key (NULL: none).  False, and
 * nothing is written: the span has nothing of it.
 */
static bool
put_entry(struct pb_writer *w, const struct list *l, enum stats_how how,
    const struct entry *later, const struct entry *earlier)
{
	static const struct stats_reading nothing = { NULL, 0 };
	struct stats_reading was = earlier != NULL ? earlier->message : nothing;
	struct stats_numbers n, e;
	size_t i, begin = w->len, mark = pb_nest_begin(w, l->field);
	bool any = how == STATS_ADD || earlier == NULL;

	stats_numbers_read(&n, later->message.data, later->message.len);
	stats_numbers_read(&e, was.data, was.len);
	stats_numbers_combine(&n, how, &e, ~l->counters);
	any |= stats_numbers_any(&n, l->counters);
	for (i = 0; i < 2; i++)
		n.present &= l->packed[i] != 0 ? ~STATS_BIT(l->packed[i]) : ~0u;
	stats_numbers_put(w, &n);
	if (later->name.len > 0)
		pb_put_bytes(w, l->name, later->name.data, later->name.len);
	for (i = 0; i < 2; i++)
		if (l->packed[i] != 0)
			any |= put_packed(w, l->packed[i], how,
			    bytes_field(later->message, l->packed[i]),
			    bytes_field(was, l->packed[i]));
	if (w->failed)
		return false;
	if (!any) {
		w->len = begin;
		return false;
	}
	pb_nest_end(w, mark);
	return true;
}

/* Returns whether anything was written. */
static bool
put_entries(struct pb_writer *w, const struct list *l, enum stats_how how,
    struct entries *later, struct entries *earlier)
{
	struct entry *e, *was;
	size_t i;
	bool any = false;

	for (i = 0; i < later->n; i++) {
		e = &later->all[i];
		/* The second entry with one key is no counter. */
		if ((was = find(earlier, e)) != NULL && was->matched)
			was = NULL;
		if (was != NULL)
			was->matched = true;
		any |= put_entry(w, l, how, e, was);
	}
	for (i = 0; how == STATS_ADD && i < earlier->n; i++)
		if (!earlier->all[i].matched)
			any |= put_entry(w, l, how, &earlier->all[i], NULL);
	return any;
}

static bool
put_list(struct pb_writer *w, const struct list *l, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	struct entries ls, es = { .all = NULL };
	bool any = false;

	if (entries_read(&ls, l, later) < 0 || entries_read(&es, l, earlier) < 0)
		w->failed = true;
	else
		any = put_entries(w, l, how, &ls, &es);
	entries_done(&ls);
	entries_done(&es);
	return any;
}

static void
put_bounds(struct pb_writer *w, struct stats_reading of)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, of.data, of.len)
		if (f.number == TraceStats_chunk_payload_histogram_def)
			pb_put_raw(w, f.start, (size_t)(r.p - f.start));
}

void
stats_lists_writers(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	size_t begin = w->len;

	put_bounds(w, later);
	if (w->len == begin)
		put_bounds(w, earlier);
	if (!put_list(w, &writers, how, later, earlier))
		w->len = begin;
}

/* Whether all entries of the one have their counterparts in the other. */
static bool
has_all_of(const struct entries *in, const struct entries *of)
{
	size_t i;

	for (i = 0; i < of->n; i++)
		if (find(in, &of->all[i]) == NULL)
			return false;
	return true;
}

static bool
has_sequences(const struct entries *of)
{
	size_t i;

	for (i = 0; i < of->n; i++)
		if (of->all[i].key[2] != 0)
			return true;
	return false;
}

/* Whether both readings have their losses by sequence, or both by machine. */
static bool
is_comparable(struct stats_reading later, struct stats_reading earlier,
    bool *no_memory)
{
	struct entries ls, es = { .all = NULL };
	bool is = true;

	*no_memory = entries_read(&ls, &losses, later) < 0 ||
	    entries_read(&es, &losses, earlier) < 0;
	if (!*no_memory && es.n > 0)
		is = has_sequences(&ls) == has_sequences(&es) &&
		    has_all_of(&ls, &es);
	entries_done(&ls);
	entries_done(&es);
	return is;
}

/* Writes the sums of a reading's losses by machine and cause. */
static void
sum_losses(struct pb_writer *w, struct stats_reading of)
{
	struct entries es;
	struct stats_numbers n, *sums = NULL;
	size_t i, mark;

	if (entries_read(&es, &machine_losses, of) < 0 ||
	    (sums = calloc(es.n + 1, sizeof(*sums))) == NULL) {
		w->failed = true;
		goto out;
	}
	for (i = 0; i < es.n; i++) {
		stats_numbers_read(&n, es.all[i].message.data,
		    es.all[i].message.len);
		n.present &= ~STATS_BIT(
		    LinkLossStats_trusted_packet_sequence_id);
		stats_numbers_combine(&sums[find(&es, &es.all[i]) - es.all],
		    STATS_ADD, &n, ~LOSS_COUNTERS);
	}
	for (i = 0; i < es.n; i++) {
		if (sums[i].present == 0)
			continue;
		mark = pb_nest_begin(w, machine_losses.field);
		stats_numbers_put(w, &sums[i]);
		pb_nest_end(w, mark);
	}
out:
	free(sums);
	entries_done(&es);
}

static void
subtract_sums(struct pb_writer *w, struct stats_reading later,
    struct stats_reading earlier)
{
	struct pb_writer l, e;

	pb_writer_init(&l);
	pb_writer_init(&e);
	sum_losses(&l, later);
	sum_losses(&e, earlier);
	if (l.failed || e.failed)
		w->failed = true;
	else
		put_list(w, &machine_losses, STATS_SUBTRACT,
		    (struct stats_reading){ l.data, l.len },
		    (struct stats_reading){ e.data, e.len });
	pb_writer_done(&l);
	pb_writer_done(&e);
}

void
stats_lists_losses(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	bool no_memory = false;

	if (how == STATS_SUBTRACT &&
	    !is_comparable(later, earlier, &no_memory))
		subtract_sums(w, later, earlier);
	else
		put_list(w, &losses, how, later, earlier);
	w->failed |= no_memory;
}

void
stats_lists_clocks(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	put_list(w, &clocks, how, later, earlier);
}
