#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/segment/segment_look.h"
#include "transport/segment/segment_state.h"
#include "transport/wire/pb_reader.h"

struct cut_mark {
	uint32_t phase;
	uint32_t number;
	uint32_t cause;
	uint64_t realtime_ns;
};

static struct cut_mark
read_mark(const struct segment_look *k)
{
	struct cut_mark m = { .phase = SegmentCut_PHASE_UNSPECIFIED };
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, k->mark, k->mark_len) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == SegmentCut_phase)
			m.phase = (uint32_t)f.value;
		else if (f.number == SegmentCut_number)
			m.number = (uint32_t)f.value;
		else if (f.number == SegmentCut_cause)
			m.cause = (uint32_t)f.value;
		else if (f.number == SegmentCut_realtime_ns)
			m.realtime_ns = f.value;
	}
	return m;
}

static void
begin_cut(struct segment_splitter *s, const struct segment_look *k,
    const struct cut_mark *mark)
{
	struct split_cut *c;

	if (s->cutting)
		splitter_end_cut(s, NULL);
	s->newest = !s->newest;
	s->cutting = true;
	c = splitter_new_cut(s);
	c->number = mark->number;
	c->cause = mark->cause;
	c->realtime_ns = mark->realtime_ns;
	pb_writer_reset(&c->mark);
	pb_put_raw(&c->mark, k->mark, k->mark_len);
	if (c->mark.failed)
		splitter_fail(s, SEGMENT_NO_MEMORY);
	/* The collector's has it all, so it is there even if empty. */
	if (splitter_open(s, c, &s->host) == NULL)
		return;
}

/* Counts the producers that did not answer, each for its machine. */
static void
count_unanswered(struct segment_splitter *s, const struct segment_look *k)
{
	struct pb_reader r, inner;
	struct pb_field f, g;
	struct split_machine *m;
	uint32_t id;

	PB_FOREACH(&f, &r, k->mark, k->mark_len) {
		if (f.number != SegmentCut_unanswered || f.wire != PB_BYTES)
			continue;
		id = 0;
		PB_FOREACH(&g, &inner, f.data, f.len)
			if (g.number == Unanswered_machine_id &&
			    g.wire == PB_VARINT)
				id = (uint32_t)g.value;
		m = splitter_find_machine(s, id);
		if (m == NULL || splitter_opened(s, splitter_old_cut(s), m) ==
		    NULL)
			m = &s->host;
		m->unanswered++;
	}
}

void
splitter_end_cut(struct segment_splitter *s, const struct segment_look *k)
{
	struct split_cut *old = splitter_old_cut(s);
	struct split_cut *c = splitter_new_cut(s);
	struct open_segment *o;

	TAILQ_FOREACH(o, &c->open, in_cut)
		splitter_put_kept(s, c, o);
	if (k != NULL)
		count_unanswered(s, k);
	splitter_end(s, old, false);
	splitter_next_stats(s);
	s->cutting = false;
	splitter_forget(s, old->number);
}

/* False: the mark is not believed. */
static bool
take_mark(struct segment_splitter *s, const struct segment_look *k)
{
	struct cut_mark mark = read_mark(k);
	struct open_segment *o;

	switch (mark.phase) {
	case SegmentCut_BEGIN:
		if (mark.number <= splitter_new_cut(s)->number)
			return false;
		begin_cut(s, k, &mark);
		return true;
	case SegmentCut_END:
		if (!s->cutting || mark.number != splitter_new_cut(s)->number)
			return false;
		splitter_end_cut(s, k);
		o = splitter_open(s, splitter_new_cut(s), &s->host);
		if (o != NULL)
			splitter_put(s, o, k);
		return true;
	default:
		return false;
	}
}

/* A machine's name, by its SystemInfo. */
static void
learn_name(struct split_machine *m, const struct segment_look *k)
{
	struct pb_reader r;
	struct pb_field f;
	char *name;

	PB_FOREACH(&f, &r, k->content, k->content_len) {
		if (f.number != SystemInfo_machine_name || f.wire != PB_BYTES ||
		    f.len == 0)
			continue;
		/* Without memory it stays as it was. */
		name = strndup((const char *)f.data, f.len);
		if (name != NULL) {
			free(m->name);
			m->name = name;
		}
	}
}

/* Puts a packet of no machine into the segments of all machines but ours. */
static void
put_shared(struct segment_splitter *s, struct split_cut *c,
    const struct segment_look *k)
{
	struct open_segment *o;

	TAILQ_FOREACH(o, &c->open, in_cut) {
		if (o->machine == &s->host)
			continue;
		segment_packets_repeated(&s->built, k);
		splitter_put_built(s, o);
	}
}

/*
 * Packets that the service repeats about a machine make no file for it: they
 * are kept until it has packets of its own.
 */
static void
take_by_machine(struct segment_splitter *s, const struct segment_look *k)
{
	struct split_cut *c = splitter_new_cut(s);
	struct split_machine *m = splitter_machine(s, k->machine);
	struct open_segment *o = splitter_opened(s, c, m);

	m->seen = c->number;
	if (k->payload == TracePacket_system_info && m != &s->host)
		learn_name(m, k);
	if (o == NULL && (!k->repeated || m == &s->host) &&
	    (o = splitter_open(s, c, m)) == NULL)
		return;
	if (o != NULL) {
		o->packets += !k->repeated;
		splitter_put(s, o, k);
	}
	if (m == &s->host && (k->kind == SEGMENT_NEEDED ||
	    k->kind == SEGMENT_SHARED))
		put_shared(s, c, k);
	if (k->kind == SEGMENT_NEEDED)
		segment_kept_put(&s->kept, &m->kept, k, c->number);
}

void
splitter_take_service(struct segment_splitter *s, const struct segment_look *k)
{
	struct open_segment *o;

	if (k->mark != NULL && take_mark(s, k))
		return;
	if (k->kind == SEGMENT_UUID)
		return;
	if (k->kind == SEGMENT_STATS) {
		splitter_take_stats(s, k);
	} else if (s->by_machine) {
		take_by_machine(s, k);
	} else if ((o = splitter_open(s, splitter_new_cut(s), &s->host)) !=
	    NULL) {
		o->packets += !k->repeated;
		splitter_put(s, o, k);
	}
}
