/*
 * tb_fragment: the tokenizer of a chunk's payload (the specification's
 * FragIterator): varint size, bytes, repeated.
 *
 * The bytes are untrusted and may be shared memory that changes while it is
 * read: each byte is loaded once, and a result must be checked again on the
 * copy of the bytes.
 */
#ifndef TRANSPORT_BUFFER_TB_FRAGMENT_H
#define TRANSPORT_BUFFER_TB_FRAGMENT_H

#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * The size that a writer puts in place of the last fragment's when it had to
 * give the packet up (shared memory full in the middle of it).
 */
#define TB_DROP_MARKER 0x0fffffffu

enum tb_token {
	TB_TOKEN_FRAGMENT,
	TB_TOKEN_DROPPED, /* TB_DROP_MARKER: the rest is void */
	TB_TOKEN_BAD,     /* no varint, or a size beyond the end */
};

/* Offsets within the payload. */
struct tb_fragment {
	uint32_t begin; /* first byte after the size */
	uint32_t end;
};

/* Decodes a varint of at most 10 bytes.  Returns its length; 0: no varint. */
static inline uint32_t
tb_varint_slow(const volatile uint8_t *p, uint32_t avail, uint64_t *value)
{
	uint64_t v = 0;
	uint32_t i;
	uint8_t b;

	for (i = 0; i < avail && i < 10; i++) {
		b = p[i];
		v |= (uint64_t)(b & 0x7f) << (7 * i);
		if ((b & 0x80) == 0) {
			*value = v;
			return i + 1;
		}
	}
	return 0;
}

struct tb_unaligned {
	uint32_t v;
} __attribute__((__packed__, __may_alias__));

/*
 * Decodes the fragment whose size begins at `at`; at < len.  Sizes of one to
 * four bytes, all that well-behaved writers use, are decoded without a branch
 * on their length.  *f is set for TB_TOKEN_FRAGMENT only.
 */
static inline enum tb_token
tb_fragment_at(const uint8_t *payload, uint32_t at, uint32_t len,
    struct tb_fragment *f)
{
	const uint8_t *p = payload + at;
	uint32_t n, w, stop;
	uint64_t size;

	if (LIKELY(len - at >= 4)) {
		w = ((const volatile struct tb_unaligned *)p)->v;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
		w = __builtin_bswap32(w);
#endif
		stop = ~w & 0x80808080u;
		if (LIKELY(stop != 0)) {
			n = ((uint32_t)__builtin_ctz(stop) >> 3) + 1;
			w &= stop ^ (stop - 1);
			size = (w & 0x7f) | (w >> 1 & 0x3f80) |
			    (w >> 2 & 0x1fc000) | (w >> 3 & 0xfe00000);
			goto decoded;
		}
	}
	if ((n = tb_varint_slow(p, len - at, &size)) == 0)
		return TB_TOKEN_BAD;
decoded:
	if (UNLIKELY(size > len - at - n))
		return size == TB_DROP_MARKER ? TB_TOKEN_DROPPED : TB_TOKEN_BAD;
	f->begin = at + n;
	f->end = f->begin + (uint32_t)size;
	return TB_TOKEN_FRAGMENT;
}

#endif /* TRANSPORT_BUFFER_TB_FRAGMENT_H */
