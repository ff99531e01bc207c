/*
 * trace_scan: the packets of a trace file, in one pass, whatever happened to
 * the file.
 *
 * A file is Trace.packet over and over, without a header, a footer or check
 * sums.  Where no packet begins, or one is malformed, is damage; behind it the
 * next place is searched from which packets follow each other again.  Memory is
 * bounded by TRACE_SCAN_MAX_PACKET, and by a few MiB where packets are small.
 * Untrusted input.
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
/* Longer packets do not count as a place from which it goes on. */
#define TRACE_SCAN_MAX_LANDING (1u << 20)
/*
 * Fields that are read in search of such places, in all: about a second.  Then
 * the search ends, as what is left was made to be slow.
 */
#define TRACE_SCAN_MAX_WORK (100u << 20)
/* Places that are kept; all are counted. */
#define TRACE_SCAN_PLACES 16u

enum trace_damage_kind {
	TRACE_DAMAGE_NO_PACKET, /* the bytes do not begin one */
	TRACE_DAMAGE_TOO_LONG,  /* more than TRACE_SCAN_MAX_PACKET */
	TRACE_DAMAGE_PAST_END,  /* longer than the file, with packets inside */
	TRACE_DAMAGE_MALFORMED, /* no well-formed message */
	TRACE_DAMAGE_ZEROS,     /* nothing but zeros, up to the end */
};

struct trace_damage {
	uint64_t offset;
	uint64_t skipped; /* bytes from there that belong to no packet */
	enum trace_damage_kind kind;
	uint64_t claims;  /* the length that is wrong; 0: none */
	uint8_t byte;     /* that is at offset */
};

struct trace_scan {
	uint64_t bytes;     /* of the file, as far as it was read */
	uint8_t first[4];   /* its first ones; zeros where there are fewer */
	uint64_t packets;   /* whole and well-formed */
	uint64_t malformed; /* whole, going by their length */
	/*
	 * Bytes of packets, malformed ones too.  With skipped and tail_bytes,
	 * all of the file.
	 */
	uint64_t packet_bytes;
	uint64_t n_damages;
	struct trace_damage damages[TRACE_SCAN_PLACES];
	uint64_t skipped;   /* bytes that belong to no packet, damage only */
	/* Packets and bytes behind the first damage. */
	uint64_t packets_behind, bytes_behind;
	/* The file ends within a packet. */
	uint64_t tail_offset;
	uint64_t tail_bytes; /* 0: it does not */
	uint64_t tail_wants; /* bytes that it would have had; 0: unknown */
	bool gave_up;       /* MAX_WORK: what is behind was not searched */
};

struct trace_scan_ops {
	/*
	 * A packet without its framing, borrowed; with it, it has `bytes` and
	 * begins at offset.  false: it is malformed, and was not taken.
	 */
	bool (*packet)(void *arg, const uint8_t *data, size_t len,
	    uint64_t bytes, uint64_t offset);
	void *arg; /* borrowed */
};

/*
 * Reads all of it.  size: of the file; 0: not known, as of a pipe.  -1 with a
 * sentence in err where it is unreadable (out says how far it went).
 */
int trace_scan_run(struct trace_scan *out, struct trace_window *w,
    uint64_t size, const struct trace_scan_ops *ops, char *err,
    size_t err_size) MUST_CHECK;

/* "no packet begins there (the byte is 0x42)": reads after "byte 17: ". */
void trace_damage_text(char *out, size_t size, const struct trace_damage *d);

#endif /* CLIENT_INSPECT_SCAN_TRACE_SCAN_H */
