/*
 * varint: numbers of 64 bits in protobuf's encoding, seven bits a byte, least
 * significant first.  All inline, for hot paths; input is untrusted.
 */
#ifndef PROTOS_VARINT_H
#define PROTOS_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define PB_VARINT_MAX 10u /* bytes */

/*
 * A varint of up to 10 bytes from [p, end).  Returns the byte after it, or
 * NULL when it is cut short or longer than 10 bytes.
 */
static inline const uint8_t *
pb_varint(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
	uint64_t v;
	unsigned shift;

	if (__builtin_expect(p < end && *p < 0x80, 1)) {
		*out = *p;
		return p + 1;
	}
	v = 0;
	for (shift = 0; shift < 70; shift += 7) {
		if (p >= end)
			return NULL;
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (*p++ < 0x80) {
			*out = v;
			return p;
		}
	}
	return NULL;
}

/* Writes v to out, which has room for PB_VARINT_MAX; returns the bytes. */
static inline size_t
pb_encode_varint(uint8_t *out, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		out[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	out[n++] = (uint8_t)v;
	return n;
}

#endif /* PROTOS_VARINT_H */
