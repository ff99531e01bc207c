#include "transport/packet/packet_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/buffer/trace_buffer.h"

/*
 * Checks in one pass with two speeds.  scan() runs over whole fields of one
 * slice with nothing but pointers.  Where a field header straddles slices, its
 * bytes are gathered into a few bytes on the stack and that one field is
 * scanned there.
 */

#define TAG_MAX    5u /* a tag has 32 bits */
#define VARINT_MAX 10u
/* Tag and value, or tag and length: nothing longer must be seen at once. */
#define HEADER_MAX (TAG_MAX + VARINT_MAX)

/* Behind a packet, what to fetch: a few packets ahead (measured). */
#define PREFETCH_BYTES 320u

enum {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

/* Fields that only the service may write; 64 fields of TracePacket a word. */
#define BIT(field) (1ull << ((field)&63))
static const uint64_t trusted_fields[] = {
	BIT(TracePacket_trusted_uid) |
	    BIT(TracePacket_trusted_packet_sequence_id) |
	    BIT(TracePacket_trace_config) | BIT(TracePacket_trace_stats) |
	    BIT(TracePacket_synchronization_marker) |
	    BIT(TracePacket_compressed_packets),
	BIT(TracePacket_service_event) | BIT(TracePacket_trusted_pid) |
	    BIT(TracePacket_machine_id) | BIT(TracePacket_trace_provenance) |
	    BIT(TracePacket_protovms),
	BIT(TracePacket_zstd_compressed_packets),
};
#define TRUSTED_END (64u * 3u)

enum scan_result {
	SCAN_END,  /* stopped after the last whole field */
	SCAN_CUT,  /* the last field goes on behind the end */
	SCAN_BAD,
};

struct scan {
	const uint8_t *p; /* where it stopped: a field's first byte, or end */
	uint64_t skip;    /* payload bytes behind the end, with SCAN_CUT */
};

static bool
field_allowed(uint32_t field)
{
	if (field == 0)
		return false;
	if (field >= TRUSTED_END)
		return field < TracePacket_tributary_segment ||
		    field > TracePacket_tributary_divided;
	return (trusted_fields[field >> 6] & BIT(field)) == 0;
}

/*
 * The byte after the varint.  NULL: it does not end within VARINT_MAX bytes, or
 * not before end.
 */
static inline const uint8_t *
skip_varint(const uint8_t *p, const uint8_t *end)
{
	uint64_t word;
	size_t max = (size_t)(end - p), n;

	if (LIKELY(max > 0 && *p < 0x80))
		return p + 1;
	if (LIKELY(max >= sizeof(word))) {
		/* The first byte without a continuation bit, of eight */
		memcpy(&word, p, sizeof(word));
		word = ~word & 0x8080808080808080ull;
		if (LIKELY(word != 0))
			return p + (__builtin_ctzll(word) >> 3) + 1;
	}
	if (max > VARINT_MAX)
		max = VARINT_MAX;
	for (n = 0; n < max; n++) {
		if (p[n] < 0x80)
			return p + n + 1;
	}
	return NULL;
}

/*
 * Does what skip_varint() does, with the value, for a varint of at most max
 * bytes.
 */
static inline const uint8_t *
take_varint(const uint8_t *p, const uint8_t *end, unsigned max, uint64_t *out)
{
	uint64_t v = 0;
	unsigned n;

	for (n = 0; n < max && p < end; n++) {
		v |= (uint64_t)(*p & 0x7f) << (7 * n);
		if (*p++ < 0x80) {
			*out = v;
			return p;
		}
	}
	return NULL;
}

/* Why no varint could be read at p: end came first, or it is too long. */
static inline enum scan_result
varint_failure(const uint8_t *p, const uint8_t *end, unsigned max)
{
	return (size_t)(end - p) < max ? SCAN_CUT : SCAN_BAD;
}

/* Whole fields of [p, end); s->p and s->skip tell where it stopped. */
static inline __attribute__((always_inline)) enum scan_result
scan(const uint8_t *p, const uint8_t *end, struct scan *s)
{
	const uint8_t *q, *r;
	uint64_t tag, len;

	s->skip = 0;
	for (; p < end; p = q) {
		s->p = p;
		if (LIKELY(*p < 0x80)) {
			tag = *p;
			q = p + 1;
		} else if (LIKELY(end - p > 1 && p[1] < 0x80)) {
			tag = (*p & 0x7f) | (uint32_t)p[1] << 7;
			q = p + 2;
		} else {
			q = take_varint(p, end, TAG_MAX, &tag);
			if (UNLIKELY(q == NULL))
				return varint_failure(p, end, TAG_MAX);
			if (UNLIKELY(tag > UINT32_MAX))
				return SCAN_BAD;
		}
		if (UNLIKELY(!field_allowed((uint32_t)(tag >> 3))))
			return SCAN_BAD;
		r = q;
		switch (tag & 7) {
		case WIRE_VARINT:
			q = skip_varint(r, end);
			if (UNLIKELY(q == NULL))
				return varint_failure(r, end, VARINT_MAX);
			break;
		case WIRE_BYTES:
			if (LIKELY(r < end && *r < 0x80)) {
				len = *r;
				q = r + 1;
			} else {
				q = take_varint(r, end, VARINT_MAX, &len);
			}
			if (UNLIKELY(q == NULL))
				return varint_failure(r, end, VARINT_MAX);
			if (UNLIKELY(len > (size_t)(end - q))) {
				s->p = end;
				s->skip = len - (size_t)(end - q);
				return SCAN_CUT;
			}
			q += len;
			break;
		case WIRE_FIXED64:
			if (UNLIKELY(end - r < 8))
				return SCAN_CUT;
			q += 8;
			break;
		case WIRE_FIXED32:
			if (UNLIKELY(end - r < 4))
				return SCAN_CUT;
			q += 4;
			break;
		default:
			return SCAN_BAD;
		}
	}
	s->p = end;
	return SCAN_END;
}

/* A place in the slices of a packet. */
struct cursor {
	const struct tb_slice *slices;
	size_t n;
	size_t i;   /* the slice; n: at the end of the packet */
	size_t off; /* in it */
};

/* False: the packet has fewer than by bytes left. */
static bool
cursor_advance(struct cursor *c, uint64_t by)
{
	while (c->i < c->n) {
		size_t left = c->slices[c->i].len - c->off;

		if (by < left) {
			c->off += (size_t)by;
			return true;
		}
		by -= left;
		c->i++;
		c->off = 0;
	}
	return by == 0;
}

/* Copies up to max bytes from the cursor on, without moving it. */
static size_t
cursor_peek(const struct cursor *c, uint8_t *out, size_t max)
{
	size_t i = c->i, off = c->off, len = 0, n;

	while (i < c->n && len < max) {
		n = c->slices[i].len - off;
		if (n > max - len)
			n = max - len;
		if (n > 0)
			memcpy(out + len, c->slices[i].data + off, n);
		len += n;
		off = 0;
		i++;
	}
	return len;
}

/*
 * Checks a field whose header lies in more than one slice.  A field that ends
 * within the gathered bytes is followed by others there: found out by giving
 * scan() one byte more at a time, of at most HEADER_MAX.
 */
static bool
straddling_field(struct cursor *c)
{
	uint8_t bytes[HEADER_MAX];
	size_t len = cursor_peek(c, bytes, sizeof(bytes)), n;
	struct scan s;

	for (n = 1; n <= len; n++) {
		switch (scan(bytes, bytes + n, &s)) {
		case SCAN_BAD:
			return false;
		case SCAN_END:
			return cursor_advance(c, n);
		case SCAN_CUT:
			if (s.skip > 0)
				return cursor_advance(c, n) &&
				    cursor_advance(c, s.skip);
			break;
		}
	}
	return false; /* the packet ends in the middle of the header */
}

/* Kept out of line: it would cost the one-slice case its registers. */
static __attribute__((noinline)) bool
check_slices(const struct tb_slice *slices, size_t n)
{
	struct cursor c = { slices, n, 0, 0 };
	struct scan s;

	while (c.i < c.n) {
		const uint8_t *data = slices[c.i].data;
		size_t len = slices[c.i].len;

		if (len == 0) {
			c.i++;
			continue;
		}
		switch (scan(data + c.off, data + len, &s)) {
		case SCAN_BAD:
			return false;
		case SCAN_END:
			c.i++;
			c.off = 0;
			break;
		case SCAN_CUT:
			c.off = (size_t)(s.p - data);
			if (s.skip > 0) {
				if (!cursor_advance(&c, s.skip))
					return false;
			} else if (!straddling_field(&c)) {
				return false;
			}
			break;
		}
	}
	return true;
}

enum packet_verdict
packet_check(const struct tb_slice *slices, size_t n, size_t size)
{
	struct scan s;
	bool ok;

	if (UNLIKELY(size == 0))
		return PACKET_EMPTY;
	/*
	 * A buffer is read from front to back and its packets were not touched
	 * for a while: the ones after next are on their way now.
	 */
	__builtin_prefetch(slices->data + slices->len + PREFETCH_BYTES);
	__builtin_prefetch(slices->data + slices->len + PREFETCH_BYTES + 64);
	if (LIKELY(n == 1))
		ok = scan(slices->data, slices->data + slices->len, &s) ==
		    SCAN_END;
	else
		ok = check_slices(slices, n);
	return ok ? PACKET_OK : PACKET_INVALID;
}
