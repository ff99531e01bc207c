#include "client/archive/index/segment_marks.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/segment_entry.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

static const char *
cause_text(uint64_t cause)
{
	switch (cause) {
	case SegmentCut_TIME:
		return "time";
	case SegmentCut_SIZE:
		return "size";
	case SegmentCut_TRIGGER:
		return "trigger";
	case SegmentCut_REQUEST:
		return "request";
	default:
		return NULL;
	}
}

/* Replaces a name by the field's text.  -1: no memory. */
static int
set_name(char **name, const struct pb_field *f)
{
	size_t len = f->len < SEGMENT_NAME_MAX ? f->len : SEGMENT_NAME_MAX;
	char *copy;

	if (f->wire != PB_BYTES)
		return 0;
	if ((copy = strndup(f->len == 0 ? "" : (const char *)f->data,
	    len)) == NULL)
		return -1;
	free(*name);
	*name = copy;
	return 0;
}

/* Starts the list of triggers with the cut's, and takes its names. */
static int
add_trigger(struct segment_entry *e, const struct segment_trigger *t)
{
	if ((e->triggers = malloc(sizeof(*e->triggers))) == NULL)
		return -1;
	e->triggers[0] = *t;
	e->n_triggers = 1;
	return 0;
}

static int
take_cut(struct segment_entry *e, const struct pb_field *cut)
{
	struct segment_trigger t = { .begun_by = true };
	struct pb_reader r;
	struct pb_field f;
	int rc = 0;

	PB_FOREACH(&f, &r, cut->data, cut->len) {
		if (f.number == SegmentCut_cause) {
			e->cause = cause_text(f.value);
		} else if (f.number == SegmentCut_realtime_ns) {
			t.wall_ns = (int64_t)f.value;
			t.has_wall = true;
		} else if (f.number == SegmentCut_trigger) {
			rc |= set_name(&t.name, &f);
		} else if (f.number == SegmentCut_trigger_producer) {
			rc |= set_name(&t.producer, &f);
		} else if (f.number == SegmentCut_trigger_machine_id) {
			t.machine_id = (uint32_t)f.value;
		}
	}
	/* Only a forged segment has triggers before its first packet. */
	if (rc == 0 && t.name != NULL && e->n_triggers == 0 &&
	    (rc = add_trigger(e, &t)) == 0)
		return 0;
	free(t.name);
	free(t.producer);
	return rc;
}

static void
take_end(struct segment_entry *e, const struct pb_field *end)
{
	struct pb_reader r;
	struct pb_field f;

	e->is_last = true;
	PB_FOREACH(&f, &r, end->data, end->len) {
		if (f.number == End_unanswered) {
			e->unanswered = (uint32_t)f.value;
		} else if (f.number == End_cause) {
			e->end_cause = cause_text(f.value);
			e->is_last = false;
		}
	}
}

static void
take_uuid(struct segment_entry *e, const struct pb_field *f)
{
	if (f->wire != PB_BYTES || f->len != SEGMENT_UUID)
		return;
	memcpy(e->recording_uuid, f->data, SEGMENT_UUID);
	e->has_recording_uuid = true;
}

static int
take_segment(struct segment_entry *e, uint64_t *begin_ns,
    const struct pb_field *segment)
{
	/* The last packet of a segment says again what the first one said. */
	bool first = e->number == 0;
	struct pb_reader r;
	struct pb_field f;
	int rc = 0;

	PB_FOREACH(&f, &r, segment->data, segment->len) {
		if (f.number == Segment_end && f.wire == PB_BYTES)
			take_end(e, &f);
		if (!first)
			continue;
		if (f.number == Segment_number)
			e->number = (uint32_t)f.value;
		else if (f.number == Segment_recording_uuid)
			take_uuid(e, &f);
		else if (f.number == Segment_recording)
			rc |= set_name(&e->recording, &f);
		else if (f.number == Segment_machine)
			rc |= set_name(&e->machine, &f);
		else if (f.number == Segment_begin_realtime_ns)
			*begin_ns = f.value;
		else if (f.number == Segment_begun_by && f.wire == PB_BYTES)
			rc |= take_cut(e, &f);
	}
	return rc == 0 ? 0 : -1;
}

int
segment_marks_take(struct segment_entry *e, uint64_t *begin_ns,
    const uint8_t *packet, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, packet, len) {
		if (f.number == TracePacket_tributary_segment &&
		    f.wire == PB_BYTES)
			return take_segment(e, begin_ns, &f);
	}
	return 0;
}
