#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/join/segment_reader.h"
#include "protos/fields.h"
#include "transport/base/failure.h"

/* A trace's uuid and its first clocks come among its first packets. */
#define HEAD_WITHIN 64u

#define REALTIME 1u
#define BOOTTIME 6u

/* -1: no memory. */
static int
take_text(char **out, const struct pb_field *f)
{
	free(*out);
	*out = strndup((const char *)f->data, f->len);
	return *out == NULL ? -1 : 0;
}

static int
take_segment(struct segment_head *h, const struct pb_field *segment)
{
	struct pb_reader r;
	struct pb_field f;
	int rc = 0;

	h->is_segment = true;
	PB_FOREACH(&f, &r, segment->data, segment->len) {
		if (f.number == Segment_recording_uuid && f.len == 16) {
			memcpy(h->uuid, f.data, 16);
			h->has_uuid = true;
		} else if (f.number == Segment_recording &&
		    f.wire == PB_BYTES) {
			rc |= take_text(&h->recording, &f);
		} else if (f.number == Segment_machine && f.wire == PB_BYTES) {
			rc |= take_text(&h->machine, &f);
		} else if (f.number == Segment_number) {
			h->number = (uint32_t)f.value;
		} else if (f.number == Segment_machine_id) {
			h->machine_id = (uint32_t)f.value;
		} else if (f.number == Segment_split) {
			h->by_machine = f.value == SegmentConfig_BY_MACHINE;
		} else if (f.number == Segment_begin_realtime_ns) {
			h->begin_realtime_ns = f.value;
		}
	}
	return rc;
}

static void
take_uuid(struct segment_head *h, const struct pb_field *uuid)
{
	struct pb_reader r;
	struct pb_field f;
	size_t i, at;

	h->has_uuid = true;
	PB_FOREACH(&f, &r, uuid->data, uuid->len) {
		if (f.number != TraceUuid_msb && f.number != TraceUuid_lsb)
			continue;
		at = f.number == TraceUuid_msb ? 0 : 8;
		for (i = 0; i < 8; i++)
			h->uuid[at + i] = (uint8_t)(f.value >> (56 - 8 * i));
	}
}

/* 0 where the snapshot does not have the clock. */
static uint64_t
clock_in(const struct pb_field *snapshot, uint32_t id)
{
	struct pb_reader r, inner;
	uint64_t its_id, value;
	struct pb_field f, g;

	PB_FOREACH(&f, &r, snapshot->data, snapshot->len) {
		if (f.number != ClockSnapshot_clocks || f.wire != PB_BYTES)
			continue;
		its_id = value = 0;
		PB_FOREACH(&g, &inner, f.data, f.len) {
			if (g.number == ClockSnapshot_Clock_clock_id)
				its_id = g.value;
			else if (g.number == ClockSnapshot_Clock_timestamp)
				value = g.value;
		}
		if (its_id == id)
			return value;
	}
	return 0;
}

static void
take_clocks(struct segment_head *h, const struct pb_field *snapshot)
{
	uint64_t wall = clock_in(snapshot, REALTIME);
	uint64_t boot = clock_in(snapshot, BOOTTIME);

	if (wall == 0 || boot == 0 || h->has_boot)
		return;
	h->has_boot = true;
	h->boot_ns = (int64_t)(wall - boot);
}

/* 1: read on; 0: that is all; -1: no memory. */
static int
take_packet(struct segment_head *h, const struct segment_packet *p)
{
	if (!segment_packet_is_common(p))
		return 1;
	if (p->segment.start != NULL && take_segment(h, &p->segment) < 0)
		return -1;
	if (p->payload == TracePacket_clock_snapshot)
		take_clocks(h, &p->content);
	/* The uuid of a segment is its own. */
	if (p->payload == TracePacket_trace_uuid && !h->is_segment)
		take_uuid(h, &p->content);
	return !h->has_uuid || !h->has_boot;
}

int
segment_head_read(struct segment_head *out, const char *path, char *err,
    size_t err_size)
{
	struct segment_head h = { .number = 1 };
	enum segment_read got = SEGMENT_READ_END;
	struct segment_reader *r;
	struct segment_next next;
	size_t n = 0;
	int rc = 1;

	if ((r = segment_reader_open(path, err, err_size)) == NULL)
		return -1;
	while (rc == 1 && n < HEAD_WITHIN && (got = segment_reader_next(r,
	    &next)) == SEGMENT_READ_PACKET) {
		n++;
		rc = take_packet(&h, &next.packet);
	}
	if (rc < 0)
		snprintf(err, err_size, "out of memory");
	else if (got == SEGMENT_READ_FAILED)
		rc = FAILURE(err, err_size, "cannot read %s: %s", path,
		    strerror(errno));
	else if (n == 0)
		rc = FAILURE(err, err_size, "%s is no trace", path);
	segment_reader_close(r);
	if (rc < 0) {
		segment_head_done(&h);
		return -1;
	}
	*out = h;
	return 0;
}

void
segment_head_done(struct segment_head *h)
{
	free(h->recording);
	free(h->machine);
	memset(h, 0, sizeof(*h));
}
