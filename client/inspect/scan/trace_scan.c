#include "client/inspect/scan/trace_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/inspect/scan/trace_window.h"
#include "client/trace/packet_splitter.h"
#include "protos/fields.h"
#include "transport/base/human_numbers.h"
#include "transport/wire/pb_reader.h"

struct scan {
	struct trace_scan *out;
	struct trace_window *w;
	uint64_t size; /* of the file; 0: not known */
	const struct trace_scan_ops *ops; /* borrowed */
	uint64_t work; /* fields read in search */
};

/* The next thing in the window. */
enum next { NEXT_END, NEXT_PACKET, NEXT_TAIL, NEXT_DAMAGE, NEXT_ERROR };

static const uint8_t *
here(const struct scan *s, size_t *len)
{
	return trace_window_bytes(s->w, len);
}

static bool
past_the_end(const struct scan *s, uint64_t total)
{
	return s->size > s->w->offset && total > s->size - s->w->offset;
}

static enum next
look(struct scan *s, size_t *header, size_t *total, struct trace_damage *d)
{
	const uint8_t *p;
	enum trace_cut cut;
	size_t len;

	if (trace_window_want(s->w, PACKET_SPLITTER_HEADER_MAX) < 0)
		return NEXT_ERROR;
	if ((p = here(s, &len), len) == 0)
		return NEXT_END;
	*d = (struct trace_damage){ .offset = s->w->offset, .byte = p[0],
		.kind = TRACE_DAMAGE_NO_PACKET };
	cut = packet_splitter_look(p, len, header, total);
	if (cut == TRACE_CUT_BAD && p[0] == PB_TAG(Trace_packet, PB_BYTES))
		d->kind = TRACE_DAMAGE_TOO_LONG;
	if (cut == TRACE_CUT_BAD)
		return NEXT_DAMAGE;
	if (cut == TRACE_CUT_OK)
		return NEXT_PACKET;
	d->claims = *total;
	if (*total == 0 || past_the_end(s, *total))
		return NEXT_TAIL;
	if (*total > TRACE_SCAN_MAX_PACKET) {
		d->kind = TRACE_DAMAGE_TOO_LONG;
		return NEXT_DAMAGE;
	}
	if (trace_window_want(s->w, *total) < 0)
		return NEXT_ERROR;
	(void)here(s, &len);
	return *total <= len ? NEXT_PACKET : NEXT_TAIL;
}

/*
 * Whether it is what a collector writes: well-formed, and of a sequence or
 * compressed.
 */
static bool
plausible(struct scan *s, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	bool known = false;

	PB_FOREACH(&f, &r, data, len) {
		s->work++;
		if (f.number == TracePacket_trusted_packet_sequence_id &&
		    f.wire == PB_VARINT)
			known = true;
		else if ((f.number == TracePacket_compressed_packets ||
		    f.number == TracePacket_zstd_compressed_packets) &&
		    f.wire == PB_BYTES && f.start == data)
			known = true;
	}
	s->work++;
	return known && !r.bad;
}

/*
 * Whether the packet of `total` bytes at the window's beginning is followed by
 * another, or by the end.  -1: unreadable.
 */
static int
goes_on(struct scan *s, size_t total)
{
	size_t len, header, next;
	const uint8_t *p;

	if (trace_window_want(s->w, total + PACKET_SPLITTER_HEADER_MAX) < 0)
		return -1;
	p = here(s, &len);
	if (len == total)
		return 1;
	if (packet_splitter_look(p + total, len - total, &header, &next) ==
	    TRACE_CUT_BAD)
		return 0;
	if (next == 0)
		return 1; /* the file ends within a length */
	if (next > TRACE_SCAN_MAX_LANDING)
		return 0;
	if (trace_window_want(s->w, total + next) < 0)
		return -1;
	p = here(s, &len);
	if (total + next > len)
		return 1; /* cut off */
	return plausible(s, p + total + header, next - header);
}

/* Whether the window's beginning is a landing: packets follow each other. */
static int
lands(struct scan *s)
{
	size_t len, header, total;
	const uint8_t *p;

	if (trace_window_want(s->w, PACKET_SPLITTER_HEADER_MAX) < 0)
		return -1;
	p = here(s, &len);
	if (packet_splitter_look(p, len, &header, &total) == TRACE_CUT_BAD ||
	    total == 0 || total > TRACE_SCAN_MAX_LANDING)
		return 0;
	if (trace_window_want(s->w, total) < 0)
		return -1;
	p = here(s, &len);
	if (total > len || !plausible(s, p + header, total - header))
		return 0;
	return goes_on(s, total);
}

static bool
all_zero(const uint8_t *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/*
 * Slides to the next place that lands, from behind the window's first byte on.
 * 1: found; 0: there is none up to the end; -1: unreadable.
 */
static int
search(struct scan *s, bool *zeros)
{
	const uint8_t *p, *at;
	size_t len, skip;
	int found = 0;

	p = here(s, &len);
	*zeros = p[0] == 0;
	trace_window_skip(s->w, 1);
	while (found == 0) {
		if (trace_window_want(s->w, 1) < 0)
			return -1;
		if ((p = here(s, &len), len) == 0)
			return 0;
		at = s->work < TRACE_SCAN_MAX_WORK ?
		    memchr(p, PB_TAG(Trace_packet, PB_BYTES), len) : NULL;
		skip = at == NULL ? len : (size_t)(at - p);
		*zeros = *zeros && all_zero(p, skip);
		if (skip == 0) {
			if ((found = lands(s)) != 0)
				return found;
			*zeros = false;
			skip = 1;
		}
		trace_window_skip(s->w, skip);
	}
	return found;
}

static void
add_damage(struct trace_scan *out, const struct trace_damage *d)
{
	if (out->n_damages < TRACE_SCAN_PLACES)
		out->damages[out->n_damages] = *d;
	out->n_damages++;
	out->skipped += d->skipped;
}

/*
 * Skips damage up to the next landing; tail: with none it is the incomplete
 * packet at the end.  -1: unreadable.
 */
static int
pass_over(struct scan *s, struct trace_damage *d, bool tail)
{
	bool zeros;
	int found = search(s, &zeros);

	if (found < 0)
		return -1;
	d->skipped = s->w->offset - d->offset;
	s->out->gave_up = s->work >= TRACE_SCAN_MAX_WORK;
	if (tail && found == 0) {
		s->out->tail_offset = d->offset;
		s->out->tail_bytes = d->skipped;
		s->out->tail_wants = d->claims;
		return 0;
	}
	if (tail)
		d->kind = TRACE_DAMAGE_PAST_END;
	else if (found == 0 && zeros)
		d->kind = TRACE_DAMAGE_ZEROS;
	add_damage(s->out, d);
	return 0;
}

static void
count(struct trace_scan *out, uint64_t bytes)
{
	out->packets++;
	out->packet_bytes += bytes;
	if (out->n_damages == 0)
		return;
	out->packets_behind++;
	out->bytes_behind += bytes;
}

/* Takes the packet at the window's beginning.  -1: unreadable. */
static int
take(struct scan *s, size_t header, size_t total, struct trace_damage *d)
{
	const uint8_t *p;
	size_t len;
	int fits;

	p = here(s, &len);
	if (s->ops->packet(s->ops->arg, p + header, total - header, total,
	    s->w->offset)) {
		count(s->out, total);
		trace_window_skip(s->w, total);
		return 0;
	}
	d->kind = TRACE_DAMAGE_MALFORMED;
	d->claims = total;
	/*
	 * Whether the packets go on behind it decides what is wrong: content or
	 * length.
	 */
	if ((fits = goes_on(s, total)) < 0)
		return -1;
	if (!fits)
		return pass_over(s, d, false);
	s->out->malformed++;
	s->out->packet_bytes += total;
	add_damage(s->out, d);
	trace_window_skip(s->w, total);
	return 0;
}

static int
step(struct scan *s)
{
	struct trace_damage d;
	size_t header, total;

	switch (look(s, &header, &total, &d)) {
	case NEXT_END:
		return 0;
	case NEXT_PACKET:
		return take(s, header, total, &d) < 0 ? -1 : 1;
	case NEXT_TAIL:
		return pass_over(s, &d, true) < 0 ? -1 : 1;
	case NEXT_DAMAGE:
		return pass_over(s, &d, false) < 0 ? -1 : 1;
	case NEXT_ERROR:
		return -1;
	}
	return -1;
}

static int
note_first(struct scan *s)
{
	size_t len, max = sizeof(s->out->first);
	const uint8_t *p;

	if (trace_window_want(s->w, max) < 0)
		return -1;
	p = here(s, &len);
	if (len > 0)
		memcpy(s->out->first, p, len < max ? len : max);
	return 1;
}

int
trace_scan_run(struct trace_scan *out, struct trace_window *w, uint64_t size,
    const struct trace_scan_ops *ops, char *err, size_t err_size)
{
	struct scan s = { .out = out, .w = w, .size = size, .ops = ops };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = note_first(&s);
	while (rc > 0)
		rc = step(&s);
	out->bytes = w->offset;
	if (rc < 0)
		snprintf(err, err_size, "reading it failed at byte %" PRIu64
		    ": %s", w->offset, strerror(errno));
	return rc;
}

void
trace_damage_text(char *out, size_t size, const struct trace_damage *d)
{
	char bytes[HUMAN_TEXT_MAX], limit[HUMAN_TEXT_MAX];

	switch (d->kind) {
	case TRACE_DAMAGE_NO_PACKET:
		snprintf(out, size, "no packet begins there (the byte is "
		    "0x%02x)", d->byte);
		return;
	case TRACE_DAMAGE_TOO_LONG:
		snprintf(out, size, "a packet claims to be %s long, and no "
		    "more than %s are believed", d->claims == 0 ? "more than "
		    "1 GiB" : human_bytes(bytes, d->claims),
		    human_bytes(limit, TRACE_SCAN_MAX_PACKET));
		return;
	case TRACE_DAMAGE_PAST_END:
		snprintf(out, size, "a packet claims to be %s long, more than "
		    "the file has, and other packets are found within",
		    human_bytes(bytes, d->claims));
		return;
	case TRACE_DAMAGE_MALFORMED:
		snprintf(out, size, "a packet (of %s, it claims) is malformed",
		    human_bytes(bytes, d->claims));
		return;
	case TRACE_DAMAGE_ZEROS:
		snprintf(out, size, "zeros up to the end, as a power failure "
		    "leaves them");
		return;
	}
}
