#include "transport/segment/segment_splitter.h"

#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/packet/service_packets.h"
#include "transport/segment/segment_look.h"
#include "transport/segment/segment_state.h"
#include "transport/wire/pb_reader.h"

/* Packets of the service that are held back until one tells the uuid. */
#define EARLY_MAX (1u << 20)

void
splitter_fail(struct segment_splitter *s, enum segment_result why)
{
	if (s->result == SEGMENT_OK)
		s->result = why;
}

static uint64_t
big_endian(const uint8_t *bytes)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		v = v << 8 | bytes[i];
	return v;
}

static void
init(struct segment_splitter *s, const struct segment_options *o)
{
	size_t i;

	s->uid = o->uid;
	s->by_machine = o->by_machine;
	if (o->recording_uuid != NULL) {
		s->recording_uuid.msb = big_endian(o->recording_uuid);
		s->recording_uuid.lsb = big_endian(o->recording_uuid + 8);
		s->knows_uuid = true;
	}
	for (i = 0; i < 2; i++) {
		pb_writer_init(&s->cuts[i].mark);
		TAILQ_INIT(&s->cuts[i].open);
	}
	s->cuts[0].number = 1;
	s->cuts[0].realtime_ns = o->begin_realtime_ns;
	if (o->begun_by_len > 0)
		pb_put_raw(&s->cuts[0].mark, o->begun_by, o->begun_by_len);
	if (s->cuts[0].mark.failed)
		splitter_fail(s, SEGMENT_NO_MEMORY);
	TAILQ_INIT(&s->host.kept);
	segment_kept_init(&s->kept);
	pb_writer_init(&s->early);
	pb_writer_init(&s->stats_before);
	pb_writer_init(&s->stats_now);
	pb_writer_init(&s->built);
}

struct segment_splitter *
segment_splitter_new(const struct segment_options *o,
    const struct segment_ops *ops, void *arg)
{
	struct segment_splitter *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->ops = ops;
	s->arg = arg;
	init(s, o);
	if (o->recording != NULL &&
	    (s->recording = strdup(o->recording)) == NULL) {
		segment_splitter_free(s);
		return NULL;
	}
	return s;
}

void
segment_splitter_free(struct segment_splitter *s)
{
	size_t i;

	if (s == NULL)
		return;
	/* Without calls. */
	splitter_fail(s, SEGMENT_REFUSED);
	for (i = 0; i < 2; i++) {
		splitter_end(s, &s->cuts[i], true);
		pb_writer_done(&s->cuts[i].mark);
	}
	splitter_tables_done(s);
	segment_kept_done(&s->kept);
	pb_writer_done(&s->early);
	pb_writer_done(&s->stats_before);
	pb_writer_done(&s->stats_now);
	pb_writer_done(&s->built);
	free(s->recording);
	free(s);
}

/* The cut whose segment a producer's packet goes into. */
static struct split_cut *
cut_for(struct segment_splitter *s, struct split_sequence *q,
    const struct segment_look *k)
{
	struct split_cut *c = splitter_new_cut(s);

	if (LIKELY(!s->cutting))
		return c;
	if (q == NULL)
		return splitter_old_cut(s);
	if (k->clears)
		q->moved = c->number;
	return q->moved == c->number ? c : splitter_old_cut(s);
}

/* Whether this packet needs state that this segment does not have. */
static bool
lacks_state(struct split_sequence *q, const struct segment_look *k,
    uint32_t number)
{
	q->seen = number;
	if (!k->has_flags)
		return false;
	q->has_state = true;
	if (!k->clears && !k->needs)
		return false;
	if (k->clears || number == 1) {
		q->settled = number;
		return false;
	}
	if (q->settled == number)
		return false;
	q->settled = number;
	return true;
}

static void
take_producers(struct segment_splitter *s, const struct segment_look *k)
{
	struct split_sequence *q = splitter_sequence(s, k);
	struct split_cut *c = cut_for(s, q, k);
	struct split_machine *m = splitter_machine(s, k->machine);
	struct open_segment *o = splitter_open(s, c, m);

	if (UNLIKELY(o == NULL))
		return;
	m->seen = c->number;
	if (UNLIKELY(o->owes_kept))
		splitter_put_kept(s, c, o);
	o->packets++;
	o->fresh += k->field_len;
	if (UNLIKELY(q != NULL && lacks_state(q, k, c->number) &&
	    !k->has_loss)) {
		segment_packets_divided(&s->built, k);
		splitter_put_built(s, o);
	} else {
		splitter_put(s, o, k);
	}
	if (UNLIKELY(k->kind == SEGMENT_ONCE ||
	    k->kind == SEGMENT_ONCE_IF_STATELESS) && !k->has_flags)
		segment_kept_put(&s->kept, &m->kept, k, c->number);
}

static void
learn_uuid(struct segment_splitter *s, const struct segment_look *k)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, k->content, k->content_len) {
		if (f.number == TraceUuid_msb && f.wire == PB_VARINT)
			s->recording_uuid.msb = f.value;
		else if (f.number == TraceUuid_lsb && f.wire == PB_VARINT)
			s->recording_uuid.lsb = f.value;
	}
}

/* A stream that says none has one all the same, by what it begins with. */
static void
make_up_uuid(struct segment_splitter *s, const struct segment_look *k)
{
	uint64_t fnv = 0xcbf29ce484222325ull;
	size_t i;

	for (i = 0; i < s->early.len; i++)
		fnv = (fnv ^ s->early.data[i]) * 0x100000001b3ull;
	for (i = 0; i < k->field_len; i++)
		fnv = (fnv ^ k->field[i]) * 0x100000001b3ull;
	s->recording_uuid.msb = fnv;
	s->recording_uuid.lsb = s->cuts[0].realtime_ns;
}

static void
take(struct segment_splitter *s, const struct segment_look *k)
{
	if (k->sequence == SERVICE_PACKETS_SEQUENCE)
		splitter_take_service(s, k);
	else
		take_producers(s, k);
}

/* The packets that were held back; their bytes go. */
static void
take_early(struct segment_splitter *s)
{
	struct pb_writer early = s->early;
	struct segment_look k;
	size_t at = 0;

	s->knows_uuid = true;
	pb_writer_init(&s->early);
	if (splitter_open(s, splitter_new_cut(s), &s->host) == NULL)
		goto out;
	while (s->result == SEGMENT_OK && at < early.len) {
		if (!segment_look(&k, early.data + at, early.len - at))
			break;
		take(s, &k);
		at += k.field_len;
	}
	splitter_flush(s);
out:
	pb_writer_done(&early);
}

/* True: the packet is held back, or was all that was wanted of it. */
static bool
is_early(struct segment_splitter *s, const struct segment_look *k)
{
	if (k->sequence == SERVICE_PACKETS_SEQUENCE &&
	    k->kind == SEGMENT_UUID) {
		learn_uuid(s, k);
		take_early(s);
		return true;
	}
	if (k->sequence == SERVICE_PACKETS_SEQUENCE &&
	    s->early.len < EARLY_MAX) {
		pb_put_raw(&s->early, k->field, k->field_len);
		if (s->early.failed)
			splitter_fail(s, SEGMENT_NO_MEMORY);
		return true;
	}
	make_up_uuid(s, k);
	take_early(s);
	return false;
}

enum segment_result
segment_splitter_put(struct segment_splitter *s, const uint8_t *packets,
    size_t len)
{
	struct segment_look k;
	size_t at;

	/* The collector's own, where losses of no machine are told. */
	if (s->knows_uuid && len > 0 &&
	    splitter_open(s, splitter_new_cut(s), &s->host) == NULL)
		return s->result;
	for (at = 0; at < len && s->result == SEGMENT_OK; at += k.field_len) {
		if (UNLIKELY(!segment_look(&k, packets + at, len - at))) {
			splitter_flush(s);
			splitter_fail(s, SEGMENT_NO_PACKETS);
			break;
		}
		if (UNLIKELY(!s->knows_uuid) && is_early(s, &k))
			continue;
		take(s, &k);
	}
	/* The caller's bytes go. */
	splitter_flush(s);
	return s->result;
}

enum segment_result
segment_splitter_finish(struct segment_splitter *s)
{
	if (!s->knows_uuid && s->early.len > 0) {
		make_up_uuid(s, &(struct segment_look){ .field_len = 0 });
		take_early(s);
	}
	if (s->cutting)
		splitter_end_cut(s, NULL);
	splitter_end(s, splitter_new_cut(s), true);
	return s->result;
}

uint32_t
segment_splitter_number(const struct segment_splitter *s)
{
	return s->cuts[s->newest].number;
}

uint64_t
segment_splitter_fresh(const struct segment_splitter *s)
{
	const struct open_segment *o;
	uint64_t most = 0;

	TAILQ_FOREACH(o, &s->cuts[s->newest].open, in_cut)
		most = o->fresh > most ? o->fresh : most;
	return most;
}

uint64_t
segment_splitter_given_up(const struct segment_splitter *s)
{
	return s->kept.given_up;
}
