/*
 * file: the file, pipe or folder of segments that `tributary record` writes a
 * trace to.
 *
 * Takes whole packets and writes them as Trace.packet, so that the file ends on
 * a whole packet even after a failure: when the disk is full or writing
 * fails, a regular file is cut behind the last packet that fits.  Pipes never
 * block the loop: bytes that a pipe does not take are queued, and
 * record_file_full() asks for back-pressure.  All calls belong to the loop's
 * thread.
 */
#ifndef CLIENT_RECORD_FILE_H
#define CLIENT_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct loop;
struct record_file;
struct record_live;
struct record_segments;
struct record_segments_ops;

/* Bytes collected before a regular file is written to. */
#define RECORD_FILE_BATCH (256u * 1024u)
/* High-water mark of bytes queued for a pipe. */
#define RECORD_FILE_FULL (1024u * 1024u)

/*
 * Opens path ("-": standard output, duplicated); creates it with mode 0600.
 * The contents of a file that exists stay until record_file_begin().  NULL
 * with a sentence in err.
 */
struct record_file *record_file_open(const char *path, bool no_clobber,
    char *err, size_t err_size) MUST_CHECK;

/* Writes into segments, which it owns: all packets go there. */
struct record_file *record_file_of_segments(struct record_segments *segments)
    MUST_CHECK;
/* NULL: not of segments. */
struct record_segments *record_file_segments(const struct record_file *f);

/* Closes; NULL is fine.  Collected bytes are not written any more. */
void record_file_free(struct record_file *f);

/* Descriptor to pass to the service, or to read back from; stays owned by f. */
int record_file_fd(const struct record_file *f);
/* The path, or "standard output". */
const char *record_file_name(const struct record_file *f);
/*
 * Whether the service may write the trace into the file, from its beginning,
 * and this program can read it back: a regular file that was named, not
 * standard output.
 */
bool record_file_can_be_shared(const struct record_file *f);

typedef void (*record_file_fn)(void *arg);

/*
 * Empties a regular file that was named by path, and readies it for packets.
 * drained is called on the loop whenever the bytes queued for a pipe are all
 * written, or dropped as writing failed: then record_file_error() tells.  Not
 * needed when the service writes to the descriptor, except to empty the file.
 * Returns 0, or -1 with the error set.
 */
int record_file_begin(struct record_file *f, struct loop *l,
    record_file_fn drained, void *arg) MUST_CHECK;
/*
 * Begins a file of segments instead, of which live is told.  drained is called
 * when the command for the last segment has ended, full when a segment is.
 */
int record_file_begin_segments(struct record_file *f, struct loop *l,
    struct record_live *live, const struct record_segments_ops *ops, void *arg)
    MUST_CHECK;

/*
 * Appends one packet, without framing; copied.  0, or -1 now and for all later
 * packets: see record_file_error().
 */
int record_file_packet(struct record_file *f, const uint8_t *data, size_t len)
    MUST_CHECK;
/* Back-pressure: wait for drained.  Never true for a regular file. */
bool record_file_full(const struct record_file *f);
/* Writes collected packets to a regular file; a pipe takes them when it can. */
int record_file_flush(struct record_file *f) MUST_CHECK;

/*
 * Writes out collected packets and syncs a regular file to disk.  1: done; 0: a
 * pipe still has to take bytes, or commands run for segments: call again from
 * drained; -1: failed.
 */
int record_file_finish(struct record_file *f) MUST_CHECK;

/*
 * Syncs to disk the data that the service wrote to the descriptor.  -1 also
 * when the file was removed meanwhile.
 */
int record_file_sync(struct record_file *f) MUST_CHECK;

/*
 * Removes a regular file that is empty and that record_file_open() created;
 * returns whether it did.
 */
bool record_file_remove_if_empty(struct record_file *f);

/* A sentence about the first failure; "" when there was none. */
const char *record_file_error(const struct record_file *f);

/*
 * Sets the number and bytes of whole packets that record_file_packet() brought
 * into the file or pipe.  If that was never called, leaves both unchanged.
 */
void record_file_kept(const struct record_file *f, uint64_t *packets,
    uint64_t *bytes);

#endif /* CLIENT_RECORD_FILE_H */
