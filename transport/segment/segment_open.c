#include <stdlib.h>

#include "transport/base/machine_word.h"
#include "transport/base/tailq.h"
#include "transport/packet/service_packets.h"
#include "transport/segment/segment_look.h"
#include "transport/segment/segment_state.h"

void
splitter_flush(struct segment_splitter *s)
{
	if (s->run_len > 0 && s->result == SEGMENT_OK &&
	    s->ops->put(s->arg, s->run_to->user, s->run, s->run_len) != 0)
		splitter_fail(s, SEGMENT_REFUSED);
	s->run_len = 0;
}

void
splitter_put(struct segment_splitter *s, struct open_segment *to,
    const struct segment_look *k)
{
	if (UNLIKELY(s->run_len == 0 || s->run_to != to ||
	    s->run + s->run_len != k->field)) {
		splitter_flush(s);
		s->run_to = to;
		s->run = k->field;
	}
	s->run_len += k->field_len;
}

void
splitter_put_built(struct segment_splitter *s, struct open_segment *to)
{
	if (s->built.failed)
		splitter_fail(s, SEGMENT_NO_MEMORY);
	if (s->built.len == 0)
		return;
	splitter_flush(s);
	if (s->result == SEGMENT_OK &&
	    s->ops->put(s->arg, to->user, s->built.data, s->built.len) != 0)
		splitter_fail(s, SEGMENT_REFUSED);
	pb_writer_reset(&s->built);
}

static bool
is_of_service(const struct kept_packet *p)
{
	return p->sequence == SERVICE_PACKETS_SEQUENCE;
}

/* The service's packets about a machine, which a cut does not wait for. */
static void
build_needed(struct segment_splitter *s, const struct split_machine *m)
{
	const struct kept_packet *p;

	TAILQ_FOREACH(p, &m->kept, in_list)
		if (is_of_service(p))
			pb_put_raw(&s->built, p->bytes, p->len);
}

void
splitter_put_kept(struct segment_splitter *s, struct split_cut *c,
    struct open_segment *to)
{
	struct kept_packet *p, *next;
	struct split_sequence *q;

	to->owes_kept = false;
	TAILQ_FOREACH_SAFE(p, &to->machine->kept, in_list, next) {
		if (is_of_service(p) || p->number >= c->number)
			continue;
		q = p->if_stateless ?
		    splitter_find_sequence(s, p->sequence) : NULL;
		if (q != NULL && q->has_state) {
			/* Its producer gives it again. */
			segment_kept_drop(&s->kept, p);
			continue;
		}
		p->number = c->number;
		pb_put_raw(&s->built, p->bytes, p->len);
	}
	splitter_put_built(s, to);
}

struct open_segment *
splitter_opened(const struct segment_splitter *s, const struct split_cut *c,
    const struct split_machine *m)
{
	return m->open[c - s->cuts];
}

/*
 * The collector's SystemInfo comes after its first segment has begun, so its
 * name does not depend on that.
 */
static const char *
name_of(const struct segment_splitter *s, const struct split_machine *m)
{
	return s->by_machine && m == &s->host ? MACHINE_WORD_HOST : m->name;
}

static void
build_head(struct segment_splitter *s, const struct split_cut *c,
    const struct split_machine *m)
{
	segment_packets_head(&s->built, s->uid, &(struct segment_head){
	    .recording_uuid = s->recording_uuid,
	    .recording = s->recording,
	    .number = c->number,
	    .begun_by = c->mark.len > 0 ? c->mark.data : NULL,
	    .begun_by_len = c->mark.len,
	    .by_machine = s->by_machine,
	    .machine = m->id,
	    .machine_name = name_of(s, m),
	    .begin_realtime_ns = c->realtime_ns,
	});
	if (m != &s->host) {
		build_needed(s, &s->host);
		build_needed(s, m);
	}
}

static struct open_segment *
begin(struct segment_splitter *s, struct split_cut *c, struct split_machine *m)
{
	struct segment_id id = {
		.number = c->number,
		.machine = m->id,
		.machine_name = name_of(s, m),
		.begin_realtime_ns = c->realtime_ns,
	};
	struct open_segment *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		splitter_fail(s, SEGMENT_NO_MEMORY);
		return NULL;
	}
	splitter_flush(s);
	if (s->result == SEGMENT_OK &&
	    s->ops->begin(s->arg, &id, &o->user) != 0)
		splitter_fail(s, SEGMENT_REFUSED);
	if (s->result != SEGMENT_OK) {
		free(o);
		return NULL;
	}
	o->machine = m;
	o->owes_kept = true;
	pb_writer_init(&o->share);
	m->open[c - s->cuts] = o;
	TAILQ_INSERT_TAIL(&c->open, o, in_cut);
	build_head(s, c, m);
	splitter_put_built(s, o);
	return o;
}

struct open_segment *
splitter_open(struct segment_splitter *s, struct split_cut *c,
    struct split_machine *m)
{
	struct open_segment *o = splitter_opened(s, c, m);

	return LIKELY(o != NULL) ? o : begin(s, c, m);
}

static void
end(struct segment_splitter *s, struct split_cut *c, struct open_segment *o,
    bool last)
{
	struct segment_summary summary = {
		.number = c->number,
		.machine = o->machine->id,
		.packets = o->packets,
		.unanswered = o->machine->unanswered,
		.last = last,
	};

	segment_packets_tail(&s->built, s->uid, &(struct segment_tail){
	    .recording_uuid = s->recording_uuid,
	    .number = c->number,
	    .packets = o->packets,
	    .unanswered = o->machine->unanswered,
	    .cause = last ? 0 : splitter_new_cut(s)->cause,
	});
	splitter_put_built(s, o);
	o->machine->unanswered = 0;
	if (s->result == SEGMENT_OK &&
	    s->ops->end(s->arg, o->user, &summary) != 0)
		splitter_fail(s, SEGMENT_REFUSED);
}

void
splitter_end(struct segment_splitter *s, struct split_cut *c, bool last)
{
	struct open_segment *o;

	while ((o = TAILQ_FIRST(&c->open)) != NULL) {
		if (s->result == SEGMENT_OK)
			end(s, c, o, last);
		TAILQ_REMOVE(&c->open, o, in_cut);
		o->machine->open[c - s->cuts] = NULL;
		pb_writer_done(&o->share);
		free(o);
	}
}
