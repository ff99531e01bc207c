#include "protos/fields.h"
#include "transport/packet/stats_span.h"
#include "transport/segment/segment_look.h"
#include "transport/segment/segment_state.h"
#include "transport/wire/pb_reader.h"

/* A field of TraceStats, by which files it is for. */
enum share {
	SHARE_HOST,     /* the collector's, where losses of no machine are */
	SHARE_ALL,      /* no count of anything that packets can be lost by */
	SHARE_SEQUENCE, /* the file of its sequence's machine */
	SHARE_MACHINE,
};

static enum share
share_of(const struct pb_field *f)
{
	switch (f->number) {
	case TraceStats_producers_connected:
	case TraceStats_producers_seen:
	case TraceStats_data_sources_registered:
	case TraceStats_data_sources_seen:
	case TraceStats_tracing_sessions:
	case TraceStats_total_buffers:
	case TraceStats_final_flush_outcome:
	case TraceStats_chunk_payload_histogram_def:
		return SHARE_ALL;
	case TraceStats_writer_stats:
		return f->wire == PB_BYTES ? SHARE_SEQUENCE : SHARE_HOST;
	case TraceStats_tributary_link_losses:
	case TraceStats_tributary_foreign_clocks:
		return f->wire == PB_BYTES ? SHARE_MACHINE : SHARE_HOST;
	default:
		return SHARE_HOST;
	}
}

static uint32_t
number_in(const struct pb_field *message, uint32_t field)
{
	struct pb_reader r;
	struct pb_field f;
	uint32_t number = 0;

	PB_FOREACH(&f, &r, message->data, message->len)
		if (f.number == field && f.wire == PB_VARINT)
			number = (uint32_t)f.value;
	return number;
}

/* The machine's segment; the collector's where it has none of this cut. */
static struct open_segment *
of_machine(struct segment_splitter *s, struct split_cut *c, uint32_t id)
{
	const struct split_machine *m = splitter_find_machine(s, id);
	struct open_segment *o = m == NULL ? NULL : splitter_opened(s, c, m);

	return o != NULL ? o : splitter_opened(s, c, &s->host);
}

static struct open_segment *
of_sequence(struct segment_splitter *s, struct split_cut *c, uint32_t id)
{
	const struct split_sequence *q = splitter_find_sequence(s, id);

	return of_machine(s, c, q == NULL ? 0 : q->machine);
}

static void
share_field(struct segment_splitter *s, struct split_cut *c,
    const struct pb_field *f, size_t len)
{
	struct open_segment *o;

	switch (share_of(f)) {
	case SHARE_ALL:
		TAILQ_FOREACH(o, &c->open, in_cut)
			pb_put_raw(&o->share, f->start, len);
		return;
	case SHARE_SEQUENCE:
		o = of_sequence(s, c, number_in(f, WriterStats_sequence_id));
		break;
	case SHARE_MACHINE:
		/* One number in the messages of both. */
		o = of_machine(s, c, number_in(f,
		    f->number == TraceStats_tributary_link_losses ?
		    LinkLossStats_machine_id : ForeignClock_machine_id));
		break;
	case SHARE_HOST:
		o = splitter_opened(s, c, &s->host);
		break;
	}
	pb_put_raw(&o->share, f->start, len);
}

/* Gives each of the cut's segments its part of the span. */
static void
share_out(struct segment_splitter *s, struct split_cut *c,
    const struct segment_look *k, const struct pb_writer *span)
{
	struct open_segment *o;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, span->data, span->len) {
		share_field(s, c, &f, (size_t)(r.p - f.start));
	}
	TAILQ_FOREACH(o, &c->open, in_cut) {
		if (o->share.failed)
			splitter_fail(s, SEGMENT_NO_MEMORY);
		segment_packets_changed(&s->built, k, &o->share);
		splitter_put_built(s, o);
		pb_writer_done(&o->share);
		pb_writer_init(&o->share);
	}
}

static void
put_span(struct segment_splitter *s, struct split_cut *c,
    const struct segment_look *k)
{
	struct pb_writer span;

	pb_writer_init(&span);
	stats_span_subtract(&span,
	    (struct stats_reading){ k->content, k->content_len },
	    (struct stats_reading){ s->stats_before.data,
	    s->stats_before.len });
	if (span.failed)
		splitter_fail(s, SEGMENT_NO_MEMORY);
	else
		share_out(s, c, k, &span);
	pb_writer_done(&span);
}

void
splitter_take_stats(struct segment_splitter *s, const struct segment_look *k)
{
	struct split_cut *c = splitter_old_cut(s);
	struct open_segment *o = splitter_open(s, c, &s->host);

	if (o == NULL)
		return;
	o->packets++;
	pb_writer_reset(&s->stats_now);
	pb_put_raw(&s->stats_now, k->content, k->content_len);
	s->has_stats_now = true;
	if (s->stats_now.failed)
		splitter_fail(s, SEGMENT_NO_MEMORY);
	else if (s->stats_before.len == 0 && !s->by_machine)
		splitter_put(s, o, k);
	else
		put_span(s, c, k);
}

void
splitter_next_stats(struct segment_splitter *s)
{
	struct pb_writer before = s->stats_before;

	if (!s->has_stats_now)
		return;
	s->stats_before = s->stats_now;
	s->stats_now = before;
	s->has_stats_now = false;
}
