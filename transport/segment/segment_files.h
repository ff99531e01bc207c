/*
 * segment_files: writes many segments at once, with bounded memory and bounded
 * descriptors.
 *
 * Packets are collected for each segment, at most SEGMENT_PENDING_BYTES in all,
 * and written in large pieces (compressed: each is one packet).  Most files are
 * open, the rest is opened again to be appended to.  A segment that was ended
 * is synced and gets its name in segment_files_settle(), many at a time.
 *
 * The first error is sticky: nothing more is written then, and packets are
 * taken in all the same, so that segment_files_lost() can say which ones are
 * not in the files.  Knows nothing of what is in segments.  Calls block.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_FILES_H
#define TRANSPORT_SEGMENT_SEGMENT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/segment/segment_path.h"
#include "transport/sink/packet_compressor.h"

struct segment_file;
struct segment_files;
struct segment_folder;

/* Bytes collected for all segments, before the largest are written. */
#define SEGMENT_PENDING_BYTES (16u << 20)
/* Bytes collected for one segment (compressed: PACKET_BATCH_BYTES). */
#define SEGMENT_BATCH_BYTES (128u * 1024u)
/* Most files that are open at a time. */
#define SEGMENT_FDS 256u
/* Ended segments that are synced one by one; more: the file system at once. */
#define SEGMENT_SYNC_EACH 8u

/* Bytes that are enough for every sentence. */
#define SEGMENT_ERR_MAX 256

struct segment_files_options {
	struct packet_compression compression;
	size_t pending_bytes; /* 0: SEGMENT_PENDING_BYTES */
	unsigned fds;         /* 0: SEGMENT_FDS */
	/* As sink_writer's; NULL: never. */
	bool (*give_up)(void *arg);
	/* The segment is on the disk at path below the folder. */
	void (*settled)(void *arg, void *tag, const char *path, uint64_t bytes);
	void *arg;
};

/* Takes the folder on success.  NULL: no memory. */
struct segment_files *segment_files_new(struct segment_folder *folder,
    const struct segment_files_options *o) MUST_CHECK;
/*
 * Closes segments that were not settled: they end with their last whole packet,
 * and get their names; those without a packet are removed.  Only free() may
 * follow, and calls that ask.
 */
void segment_files_leave(struct segment_files *f);
/* Leaves, and frees. */
void segment_files_free(struct segment_files *f);

/*
 * Begins a segment at path; tag is for settled().  After an error its packets
 * go nowhere.  NULL: no memory.
 */
struct segment_file *segment_files_begin(struct segment_files *f,
    const char *path, void *tag) MUST_CHECK;
/* Appends whole packets.  -1: no memory; they are not taken. */
int segment_files_put(struct segment_files *f, struct segment_file *file,
    const uint8_t *packets, size_t len) MUST_CHECK;
/* The segment is whole; file is for segment_files_settle() from now on. */
void segment_files_end(struct segment_files *f, struct segment_file *file);

/* Writes all that was collected. */
void segment_files_flush(struct segment_files *f);
/* Flushes, and syncs all segments. */
void segment_files_sync(struct segment_files *f);
/* Syncs segments that were ended, and gives them their names. */
void segment_files_settle(struct segment_files *f);

/* The first error, a sentence; NULL: none. */
const char *segment_files_error(const struct segment_files *f);
/* Passes on whole packets that are in no file, after an error. */
void segment_files_lost(const struct segment_files *f,
    void (*lost)(void *arg, const uint8_t *packets, size_t len), void *arg);

/* Bytes in all files. */
uint64_t segment_files_total(const struct segment_files *f);
/* Bytes in one file. */
uint64_t segment_file_bytes(const struct segment_file *file);
/* Bytes collected and not written yet, of all segments. */
size_t segment_files_pending(const struct segment_files *f);

#endif /* TRANSPORT_SEGMENT_SEGMENT_FILES_H */
