/*
 * segment_reader: the packets of one trace file in order, one at a time;
 * compressed packets are expanded.  Input is hostile.
 *
 * Memory is bounded by the largest packet, and by PACKET_EXPAND_MAX_BYTES for
 * a compressed one.  Knows files, and nothing of joining.
 */
#ifndef CLIENT_ARCHIVE_JOIN_SEGMENT_READER_H
#define CLIENT_ARCHIVE_JOIN_SEGMENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/join/segment_packet.h"
#include "transport/base/compiler.h"

struct segment_reader;

/* Identity of a file, as it says at its begin; strings are owned. */
struct segment_head {
	bool is_segment;  /* else any trace, a recording by itself */
	bool by_machine;
	uint8_t uuid[16]; /* of the recording, most significant byte first */
	bool has_uuid;
	uint32_t number;  /* 1, where it is no segment */
	uint32_t machine_id;
	uint64_t begin_realtime_ns; /* 0: not known */
	/* When the collector was booted, by its wall clock. */
	bool has_boot;
	int64_t boot_ns;
	char *recording;  /* NULL: not known */
	char *machine;
};

enum segment_read {
	SEGMENT_READ_PACKET,
	SEGMENT_READ_END,
	SEGMENT_READ_CUT_OFF, /* ends within a packet, or is damaged there */
	SEGMENT_READ_FAILED,  /* errno */
};

/* A packet, borrowed until the next one is read. */
struct segment_next {
	struct segment_packet packet;
	/*
	 * With its framing, as it is in the file; where it was compressed, with
	 * all others of its compressed packet.
	 */
	const uint8_t *stored;
	size_t stored_len;
	/* Packets of `stored` before this one, and whether it is the last. */
	size_t nth;
	bool last;
};

/* path: borrowed.  NULL with a sentence. */
struct segment_reader *segment_reader_open(const char *path, char *err,
    size_t err_size) MUST_CHECK;
void segment_reader_close(struct segment_reader *r);

enum segment_read segment_reader_next(struct segment_reader *r,
    struct segment_next *out) MUST_CHECK;
/*
 * Calls fn for the first n packets of `stored` of the last packet that was
 * read.  Returns the first answer that is not 0, or 0.
 */
int segment_reader_again(struct segment_reader *r, size_t n,
    int (*fn)(void *arg, const uint8_t *data, size_t len), void *arg)
    MUST_CHECK;
/* Bytes of the file before the packet that comes next. */
uint64_t segment_reader_offset(const struct segment_reader *r);

/*
 * Reads the head of a file.  A file that cannot be read, or that begins with
 * no packet, is a failure: -1 with a sentence.
 */
int segment_head_read(struct segment_head *out, const char *path, char *err,
    size_t err_size) MUST_CHECK;
void segment_head_done(struct segment_head *h);

#endif /* CLIENT_ARCHIVE_JOIN_SEGMENT_READER_H */
