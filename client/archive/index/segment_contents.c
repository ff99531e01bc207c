#include "client/archive/index/segment_contents.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/index/segment_marks.h"
#include "client/archive/trim/event_kinds.h"
#include "client/clock/clock_graph.h"
#include "client/clock/trace_clocks.h"
#include "client/inspect/report/session_log.h"
#include "client/trace/packet_facts.h"
#include "client/trace/trace_summary.h"
#include "protos/fields.h"
#include "transport/base/machine_word.h"
#include "transport/wire/pb_reader.h"

struct machine {
	struct hash_link link;
	uint32_t id;
	uint64_t packets, bytes;
	struct segment_span span; /* in the trace clock */
};

static void
widen(struct segment_span *s, uint64_t at)
{
	int64_t ns = (int64_t)at;

	if (!s->known || ns < s->first_ns)
		s->first_ns = ns;
	if (!s->known || ns > s->last_ns)
		s->last_ns = ns;
	s->known = true;
}

static struct machine *
machine_of(struct segment_contents *c, uint32_t id)
{
	uint64_t hash = hash_number(id);
	struct machine *m;

	HASH_MAP_FOREACH_OF(m, &c->machines, hash, link)
		if (m->id == id)
			return m;
	if (c->machines.n == SEGMENT_MACHINES_MAX)
		return NULL;
	if ((m = calloc(1, sizeof(*m))) == NULL) {
		c->no_memory = true;
		return NULL;
	}
	m->id = id;
	hash_map_put(&c->machines, &m->link, hash);
	return m;
}

/* When the packet's events were, in the trace clock: known or not. */
static struct segment_span
span_of(struct segment_contents *c, const struct inspection_packet *p)
{
	struct trace_clocks *clocks = inspection_clocks(c->inspection);
	struct clock_at at[2];
	struct segment_span s = { .known = false };
	uint64_t ns;
	int i;

	if (p->moment->result == TRACE_TIME_OK)
		widen(&s, p->moment->ns);
	if (event_kind_of(p->facts) != EVENT_FTRACE ||
	    !event_ftrace_span(p->facts, &at[0].ns, &at[1].ns))
		return s;
	for (i = 0; i < 2; i++) {
		at[i].clock = clock_key_of(p->facts->machine_id, 0,
		    ClockSnapshot_Clock_BOOTTIME);
		if (trace_clocks_convert(clocks, &at[i], &ns) == CLOCK_OK)
			widen(&s, ns);
	}
	return s;
}

static void
set_text(struct segment_contents *c, char **out, const struct pb_field *f)
{
	size_t len = f->len < SEGMENT_NAME_MAX ? f->len : SEGMENT_NAME_MAX;

	if (f->wire != PB_BYTES || *out != NULL)
		return;
	*out = strndup(f->len == 0 ? "" : (const char *)f->data, len);
	if (*out == NULL)
		c->no_memory = true;
}

/* A snapshot's trigger is told twice: that it was hit, and what it caused. */
static bool
is_known(const struct segment_entry *e, const struct segment_trigger *t)
{
	const struct segment_trigger *o;
	size_t i;

	for (i = 0; i < e->n_triggers; i++) {
		o = &e->triggers[i];
		if (!o->begun_by && o->has_wall == t->has_wall &&
		    o->wall_ns == t->wall_ns && o->name != NULL &&
		    t->name != NULL && strcmp(o->name, t->name) == 0)
			return true;
	}
	return false;
}

static void
add_trigger(struct segment_contents *c, struct segment_trigger *t)
{
	struct segment_entry *e = c->entry;
	struct segment_trigger *grown;

	if (c->no_memory || e->n_triggers >= SEGMENT_TRIGGERS_MAX ||
	    is_known(e, t))
		goto out;
	grown = realloc(e->triggers, (e->n_triggers + 1) * sizeof(*grown));
	if (grown == NULL) {
		c->no_memory = true;
		goto out;
	}
	e->triggers = grown;
	grown[e->n_triggers++] = *t;
	return;

out:
	free(t->name);
	free(t->producer);
}

/* Keeps the trigger's time in the trace clock until segment_contents_finish(). */
static void
take_trigger(struct segment_contents *c, const struct inspection_packet *p)
{
	struct segment_trigger t = { .machine_id = p->facts->machine_id };
	struct pb_reader r;
	struct pb_field f;

	if (p->moment->result == TRACE_TIME_OK) {
		t.has_wall = true;
		t.wall_ns = (int64_t)p->moment->ns;
	}
	PB_FOREACH(&f, &r, p->facts->payload.data, p->facts->payload.len) {
		if (f.number == Trigger_trigger_name)
			set_text(c, &t.name, &f);
		else if (f.number == Trigger_producer_name)
			set_text(c, &t.producer, &f);
	}
	add_trigger(c, &t);
}

static void
take_service(struct segment_contents *c, const struct inspection_packet *p)
{
	if (segment_marks_take(c->entry, &c->begin_ns, p->data, p->len) < 0)
		c->no_memory = true;
	if ((p->facts->type == TracePacket_trigger ||
	    p->facts->type == TracePacket_clone_snapshot_trigger) &&
	    p->facts->payload.wire == PB_BYTES && !p->facts->repeated)
		take_trigger(c, p);
}

static void
packet_cb(void *arg, const struct inspection_packet *p)
{
	bool of_service = p->facts->sequence_id <= PACKET_SERVICE_SEQUENCE;
	struct segment_contents *c = arg;
	struct machine *m = NULL;
	struct segment_span s;

	if (process_names_take(&c->processes, p->facts) < 0)
		c->no_memory = true;
	if (of_service)
		take_service(c, p);
	if (p->facts->repeated) {
		c->repeated++;
		return;
	}
	if (!of_service && (m = machine_of(c, p->facts->machine_id)) != NULL) {
		m->packets++;
		m->bytes += p->bytes;
	}
	s = span_of(c, p);
	if (!s.known)
		return;
	widen(&c->span, (uint64_t)s.first_ns);
	widen(&c->span, (uint64_t)s.last_ns);
	if (m != NULL) {
		widen(&m->span, (uint64_t)s.first_ns);
		widen(&m->span, (uint64_t)s.last_ns);
	}
}

void
segment_contents_init(struct segment_contents *c, struct segment_entry *entry,
    struct inspection *inspection)
{
	*c = (struct segment_contents){ .entry = entry,
		.inspection = inspection };
	inspection_watch(inspection, packet_cb, c);
}

void
segment_contents_done(struct segment_contents *c)
{
	struct hash_cursor at;
	struct machine *m;

	HASH_MAP_FOREACH(m, &c->machines, &at, link)
		free(m);
	hash_map_done(&c->machines);
	process_names_done(&c->processes);
}

/* A time of the trace clock in a clock of the machine that has that clock. */
static bool
convert(struct segment_contents *c, int64_t ns, uint32_t clock, int64_t *out)
{
	struct trace_clocks *clocks = inspection_clocks(c->inspection);
	struct clock_at from = { trace_clocks_trace_clock(clocks),
		(uint64_t)ns };
	struct clock_key to = clock_key_of(from.clock.machine, 0, clock);
	uint64_t result;

	if (clock_graph_convert(trace_clocks_graph(clocks), &from, &to,
	    &result) != CLOCK_OK)
		return false;
	*out = (int64_t)result;
	return true;
}

/* The wall clock may have been set in between: the ends are put in order. */
static struct segment_span
convert_span(struct segment_contents *c, const struct segment_span *s,
    uint32_t clock)
{
	struct segment_span out = { .known = false };
	int64_t ns;

	if (s->known && convert(c, s->first_ns, clock, &ns))
		widen(&out, (uint64_t)ns);
	if (s->known && convert(c, s->last_ns, clock, &ns))
		widen(&out, (uint64_t)ns);
	return out;
}

static void
finish_triggers(struct segment_contents *c)
{
	struct segment_trigger *t;
	size_t i;

	for (i = 0; i < c->entry->n_triggers; i++) {
		t = &c->entry->triggers[i];
		if (!t->begun_by && t->has_wall)
			t->has_wall = convert(c, t->wall_ns,
			    ClockSnapshot_Clock_REALTIME, &t->wall_ns);
	}
}

static int
by_id(const void *a, const void *b)
{
	const struct segment_machine *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Machines that have packets, and those that the trace knows. */
static int
finish_machines(struct segment_contents *c)
{
	const struct session_log *log = inspection_log(c->inspection);
	struct trace_summary *summary = inspection_summary(c->inspection);
	struct segment_entry *e = c->entry;
	const struct session_machine *known;
	struct segment_machine *out;
	struct hash_cursor at;
	struct machine *m;
	const char *name;

	HASH_MAP_FOREACH(known, &log->machines, &at, link)
		(void)machine_of(c, known->id);
	if (c->no_memory || (e->machines = calloc(c->machines.n + 1,
	    sizeof(*e->machines))) == NULL)
		return -1;
	HASH_MAP_FOREACH(m, &c->machines, &at, link) {
		out = &e->machines[e->n_machines++];
		*out = (struct segment_machine){ .id = m->id,
			.packets = m->packets, .bytes = m->bytes };
		out->wall = convert_span(c, &m->span,
		    ClockSnapshot_Clock_REALTIME);
		name = m->id == 0 ? MACHINE_WORD_HOST :
		    trace_summary_machine_name(summary, m->id);
		if ((out->name = strdup(name == NULL ? "" : name)) == NULL)
			return -1;
	}
	qsort(e->machines, e->n_machines, sizeof(*e->machines), by_id);
	return 0;
}

int
segment_contents_finish(struct segment_contents *c)
{
	struct segment_entry *e = c->entry;

	if (c->no_memory || finish_machines(c) < 0)
		return -1;
	if (process_names_list(&c->processes, &e->processes,
	    &e->n_processes) < 0)
		return -1;
	e->packets = trace_summary_totals(inspection_summary(c->inspection))
	    ->packets - c->repeated;
	e->boot = convert_span(c, &c->span, ClockSnapshot_Clock_BOOTTIME);
	e->wall = convert_span(c, &c->span, ClockSnapshot_Clock_REALTIME);
	/* Without a clock snapshot the segment still says when it began. */
	if (!e->wall.known && c->begin_ns != 0)
		widen(&e->wall, c->begin_ns);
	finish_triggers(c);
	return 0;
}
