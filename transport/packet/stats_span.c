#include "transport/packet/stats_span.h"

#include "protos/fields.h"
#include "transport/packet/stats_lists.h"
#include "transport/packet/stats_numbers.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Fields of a TraceStats below 32 that are no counters of the recording. */
#define READINGS \
	(STATS_BIT(TraceStats_producers_connected) | \
	STATS_BIT(TraceStats_producers_seen) | \
	STATS_BIT(TraceStats_data_sources_registered) | \
	STATS_BIT(TraceStats_data_sources_seen) | \
	STATS_BIT(TraceStats_tracing_sessions) | \
	STATS_BIT(TraceStats_total_buffers) | \
	STATS_BIT(TraceStats_final_flush_outcome))

static const struct stats_reading nothing = { NULL, 0 };

/* A walk over the entries of one repeated field. */
struct walk {
	struct pb_reader r;
	uint32_t field;
	enum pb_wire wire;
};

static void
walk_begin(struct walk *k, struct stats_reading of, uint32_t field,
    enum pb_wire wire)
{
	pb_init(&k->r, of.data, of.len);
	k->field = field;
	k->wire = wire;
}

static bool
walk_next(struct walk *k, struct pb_field *f)
{
	while (pb_next(&k->r, f))
		if (f->number == k->field && f->wire == k->wire)
			return true;
	return false;
}

/* The last message of this field; without one, no bytes. */
static struct stats_reading
last_message(struct stats_reading of, uint32_t field)
{
	struct stats_reading found = nothing;
	struct walk k;
	struct pb_field f;

	walk_begin(&k, of, field, PB_BYTES);
	while (walk_next(&k, &f))
		found = (struct stats_reading){ f.data, f.len };
	return found;
}

/* The last varint of this field; false: *value is left alone. */
static bool
number(struct stats_reading of, uint32_t field, uint64_t *value)
{
	struct walk k;
	struct pb_field f;
	bool found = false;

	walk_begin(&k, of, field, PB_VARINT);
	while (walk_next(&k, &f)) {
		*value = f.value;
		found = true;
	}
	return found;
}

/* Buffers are told apart by their places in the list. */
static void
put_buffers(struct pb_writer *w, enum stats_how how, struct stats_reading later,
    struct stats_reading earlier)
{
	struct walk l, e;
	struct pb_field lf, ef;
	struct stats_numbers ln, en;
	bool has_l, has_e;
	size_t mark;

	walk_begin(&l, later, TraceStats_buffer_stats, PB_BYTES);
	walk_begin(&e, earlier, TraceStats_buffer_stats, PB_BYTES);
	for (;;) {
		has_l = walk_next(&l, &lf);
		has_e = walk_next(&e, &ef);
		if (!has_l && (!has_e || how == STATS_SUBTRACT))
			return;
		stats_numbers_read(&ln, has_l ? lf.data : NULL,
		    has_l ? lf.len : 0);
		stats_numbers_read(&en, has_e ? ef.data : NULL,
		    has_e ? ef.len : 0);
		stats_numbers_combine(&ln, how, &en,
		    STATS_BIT(BufferStats_buffer_size));
		mark = pb_nest_begin(w, TraceStats_buffer_stats);
		stats_numbers_put(w, &ln);
		pb_nest_end(w, mark);
	}
}

static void
put_discarded(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	struct walk l, e;
	struct pb_field lf, ef;
	bool has_l, has_e;

	walk_begin(&l, later, FilterStats_bytes_discarded_per_buffer,
	    PB_VARINT);
	walk_begin(&e, earlier, FilterStats_bytes_discarded_per_buffer,
	    PB_VARINT);
	for (;;) {
		has_l = walk_next(&l, &lf);
		has_e = walk_next(&e, &ef);
		if (!has_l && (!has_e || how == STATS_SUBTRACT))
			return;
		pb_put_uint(w, FilterStats_bytes_discarded_per_buffer,
		    stats_combined(how, has_l ? lf.value : 0,
		    has_e ? ef.value : 0));
	}
}

static void
put_filter(struct pb_writer *w, enum stats_how how, struct stats_reading later,
    struct stats_reading earlier)
{
	struct stats_reading l = last_message(later, TraceStats_filter_stats);
	struct stats_reading e = last_message(earlier, TraceStats_filter_stats);
	struct stats_numbers ln, en;
	size_t mark;

	if (l.data == NULL && (e.data == NULL || how == STATS_SUBTRACT))
		return;
	stats_numbers_read(&ln, l.data, l.len);
	stats_numbers_read(&en, e.data, e.len);
	ln.present &= ~STATS_BIT(FilterStats_bytes_discarded_per_buffer);
	en.present &= ~STATS_BIT(FilterStats_bytes_discarded_per_buffer);
	stats_numbers_combine(&ln, how, &en, 0);
	mark = pb_nest_begin(w, TraceStats_filter_stats);
	stats_numbers_put(w, &ln);
	put_discarded(w, how, l, e);
	pb_nest_end(w, mark);
}

static void
put_numbers(struct pb_writer *w, enum stats_how how, struct stats_reading later,
    struct stats_reading earlier)
{
	struct stats_numbers ln, en;
	const uint32_t bounds =
	    STATS_BIT(TraceStats_chunk_payload_histogram_def);

	stats_numbers_read(&ln, later.data, later.len);
	stats_numbers_read(&en, earlier.data, earlier.len);
	/* A list, which goes with the writers. */
	ln.present &= ~bounds;
	en.present &= ~bounds;
	stats_numbers_combine(&ln, how, &en, READINGS);
	stats_numbers_put(w, &ln);
}

/* Fields of ours, whose numbers are beyond those of stats_numbers. */
static void
put_own_numbers(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	uint64_t l = 0, e = 0;

	if (number(later, TraceStats_tributary_discarded_of_session, &l) ||
	    (how == STATS_ADD && number(earlier,
	    TraceStats_tributary_discarded_of_session, &l)))
		pb_put_uint(w, TraceStats_tributary_discarded_of_session, l);
	l = 0;
	if (number(earlier, TraceStats_tributary_packets, &e) |
	    number(later, TraceStats_tributary_packets, &l))
		pb_put_uint(w, TraceStats_tributary_packets,
		    stats_combined(how, l, e));
}

static void
put_combined(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier)
{
	put_buffers(w, how, later, earlier);
	stats_lists_writers(w, how, later, earlier);
	put_numbers(w, how, later, earlier);
	put_filter(w, how, later, earlier);
	put_own_numbers(w, how, later, earlier);
	stats_lists_losses(w, how, later, earlier);
	stats_lists_clocks(w, how, later, earlier);
}

void
stats_span_subtract(struct pb_writer *w, struct stats_reading later,
    struct stats_reading earlier)
{
	put_combined(w, STATS_SUBTRACT, later, earlier);
}

void
stats_span_add(struct pb_writer *w, struct stats_reading earlier,
    struct stats_reading later)
{
	put_combined(w, STATS_ADD, later, earlier);
}
