/*
 * file: where `tributary record` puts a trace.
 *
 * Takes whole packets and writes them as Trace.packet, so that the file ends on
 * a whole packet even after a failure: when the disk is full or writing
 * fails, a regular file is cut behind the last packet that fits.  Pipes never
 * block the loop: bytes that they do not take wait here, and record_file_full()
 * tells when to hold the collector back.
 */
#ifndef CLIENT_RECORD_FILE_H
#define CLIENT_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct loop;
struct record_file;

/* Bytes collected before a regular file is written to. */
#define RECORD_FILE_BATCH (256u * 1024u)
/* Bytes waiting for a pipe above which it counts as full. */
#define RECORD_FILE_FULL (1024u * 1024u)

/*
 * Opens path ("-": standard output, duplicated); creates it with mode 0600.
 * The contents of a file that exists stay until record_file_begin().  NULL
 * with a sentence in err.
 */
struct record_file *record_file_open(const char *path, bool no_clobber,
    char *err, size_t err_size) MUST_CHECK;

/* Closes; NULL is fine.  Bytes that still wait are not written. */
void record_file_free(struct record_file *f);

/* To pass on, or to read back; stays the file's. */
int record_file_fd(const struct record_file *f);
/* The path, or "standard output". */
const char *record_file_name(const struct record_file *f);
/*
 * Whether the service may write the trace into it, from its beginning, and
 * it can be read back: a regular file that was named, not standard output.
 */
bool record_file_can_be_shared(const struct record_file *f);

typedef void (*record_file_fn)(void *arg);

/*
 * Empties a file that was named by path, and readies it for packets.  drained
 * is called on the loop whenever all that waited for a pipe is written.  Not
 * needed when the service writes to the descriptor, except to empty it.
 * Returns 0, or -1 with the error set.
 */
int record_file_begin(struct record_file *f, struct loop *l,
    record_file_fn drained, void *arg) MUST_CHECK;

/* One packet, without framing; copied.  0, or -1 for good: see the error. */
int record_file_packet(struct record_file *f, const uint8_t *data, size_t len)
    MUST_CHECK;
/* Hold back: wait for drained.  Never for a regular file. */
bool record_file_full(const struct record_file *f);
/* Hands collected packets to the file; a pipe takes them when it can. */
int record_file_flush(struct record_file *f) MUST_CHECK;

/*
 * Writes out collected packets and makes them durable.  1: done; 0: a pipe
 * still has to take it, call again from drained; -1: failed.
 */
int record_file_finish(struct record_file *f) MUST_CHECK;

/* Makes data durable that the service wrote to the descriptor. */
int record_file_sync(struct record_file *f) MUST_CHECK;

/* Removes the file if it is empty and this program created it; says if so. */
bool record_file_remove_if_empty(struct record_file *f);

/* A sentence about the first failure; "" when there was none. */
const char *record_file_error(const struct record_file *f);

/*
 * The whole packets that record_file_packet() brought into the file (a pipe:
 * handed to its reader), and their bytes.  Unless it was never called: then
 * both stay as they are.
 */
void record_file_kept(const struct record_file *f, uint64_t *packets,
    uint64_t *bytes);

#endif /* CLIENT_RECORD_FILE_H */
