/*
 * trace_scan: reads the packets of a trace file in one pass, also of a damaged
 * file.
 *
 * A file is Trace.packet over and over, without a header, a footer or
 * checksums.  A place where no packet begins, or a malformed packet, is damage;
 * the scan resynchronises behind it, at the next landing: a place from which
 * packets follow each other again.  Memory is bounded by TRACE_SCAN_MAX_PACKET,
 * and by a few MiB where packets are small.  Untrusted input.
 */
#ifndef CLIENT_INSPECT_SCAN_TRACE_SCAN_H
#define CLIENT_INSPECT_SCAN_TRACE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_window;

/* A packet that claims to be longer is damage. */
#define TRACE_SCAN_MAX_PACKET (64u << 20)
/* Longer packets do not count as a landing. */
#define TRACE_SCAN_MAX_LANDING (1u << 20)
/*
 * Limit of fields read in search of landings in one file, about a second; then
 * the search ends, as only a hostile file needs more.
 */
#define TRACE_SCAN_MAX_WORK (100u << 20)
/* Damages that are described; all are counted. */
#define TRACE_SCAN_PLACES 16u

enum trace_damage_kind {
	TRACE_DAMAGE_NO_PACKET, /* no packet begins there */
	TRACE_DAMAGE_TOO_LONG,  /* more than TRACE_SCAN_MAX_PACKET */
	TRACE_DAMAGE_PAST_END,  /* longer than the file, with packets inside */
	TRACE_DAMAGE_MALFORMED, /* no well-formed message */
	TRACE_DAMAGE_ZEROS,     /* nothing but zeros, up to the end */
};

struct trace_damage {
	uint64_t offset;
	uint64_t skipped; /* bytes from there that belong to no packet */
	enum trace_damage_kind kind;
	uint64_t claims;  /* the wrong length that the packet states; 0: none */
	uint8_t byte;     /* the byte at offset */
};

struct trace_scan {
	uint64_t bytes;     /* of the file, as far as it was read */
	uint8_t first[4];   /* first bytes of the file, padded with zeros */
	uint64_t packets;   /* whole and well-formed */
	uint64_t malformed; /* whole by their length, but malformed */
	/*
	 * Bytes of packets, malformed ones too.  packet_bytes + skipped +
	 * tail_bytes is all of the file.
	 */
	uint64_t packet_bytes;
	uint64_t n_damages;
	struct trace_damage damages[TRACE_SCAN_PLACES];
	uint64_t skipped;   /* bytes that belong to no packet, damage only */
	/* Packets and bytes behind the first damage. */
	uint64_t packets_behind, bytes_behind;
	/* The incomplete packet at the end of the file. */
	uint64_t tail_offset;
	uint64_t tail_bytes; /* 0: there is none */
	uint64_t tail_wants; /* bytes of the complete packet; 0: unknown */
	bool gave_up;       /* TRACE_SCAN_MAX_WORK: the rest was not searched */
};

struct trace_scan_ops {
	/*
	 * A packet without its framing, borrowed for the call; bytes and offset
	 * in the file are with framing.  false: malformed, and not taken.
	 */
	bool (*packet)(void *arg, const uint8_t *data, size_t len,
	    uint64_t bytes, uint64_t offset);
	void *arg; /* borrowed */
};

/*
 * Reads the whole file.  size: of the file in bytes; 0: not known, as of a
 * pipe.  -1 with a sentence in err where it is unreadable; out then holds the
 * results up to there.
 */
int trace_scan_run(struct trace_scan *out, struct trace_window *w,
    uint64_t size, const struct trace_scan_ops *ops, char *err,
    size_t err_size) MUST_CHECK;

/* "no packet begins there (the byte is 0x42)": reads after "byte 17: ". */
void trace_damage_text(char *out, size_t size, const struct trace_damage *d);

#endif /* CLIENT_INSPECT_SCAN_TRACE_SCAN_H */
