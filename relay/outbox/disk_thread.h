/*
 * disk_thread: the thread that reads and writes the spool's files.
 *
 * Jobs are done in the order in which they are submitted; disk_reap() calls
 * done() of each, in the same order, on the loop's thread.  Between submit and
 * done() the job and its data belong to the disk thread.  Knows nothing of
 * channels.
 */
#ifndef RELAY_OUTBOX_DISK_THREAD_H
#define RELAY_OUTBOX_DISK_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "relay/outbox/spool_format.h"
#include "transport/base/compiler.h"

struct disk;
struct loop;

enum disk_kind {
	DISK_WRITE,  /* writes record (sets its crc) and data at offset */
	DISK_READ,   /* reads the record's block into data, and checks it */
	DISK_PUNCH,  /* frees len bytes at offset, or writes a tombstone */
	DISK_SYNC,   /* fdatasync() of the segment */
	DISK_UNLINK, /* removes the segment */
};

struct disk_job {
	TAILQ_ENTRY(disk_job) link;
	enum disk_kind kind;
	uint64_t segment; /* number in the file's name */
	uint64_t offset;  /* in the file, in bytes */
	struct spool_record record;
	uint8_t *data; /* WRITE, READ: record.len bytes, the caller's */
	uint64_t len;  /* PUNCH */
	bool sync;     /* WRITE: fdatasync() as well */

	int error;     /* an errno; 0: done */
	/*
	 * READ: another record, or the checksum is wrong.  WRITE: the file
	 * could not be cut back to before the record.  PUNCH: the tombstone
	 * failed, too.
	 */
	bool damaged;
	void (*done)(struct disk_job *j); /* frees the job */
	void *owner;
	void *arg;
};

/*
 * Starts the thread.  Files are in dirfd, which stays the caller's.  reap() is
 * called on the loop's thread when jobs are done, to call disk_reap().
 * synchronous: no thread; disk_submit() does the job, and the caller calls
 * disk_reap() unasked.  NULL: no memory or thread.
 */
struct disk *disk_new(struct loop *l, int dirfd, bool synchronous,
    void (*reap)(void *arg), void *arg) MUST_CHECK;
/*
 * Waits for the job that is being done; frees all other jobs, without done().
 * NULL is fine.
 */
void disk_free(struct disk *d);
/* A job for disk_submit(), all else zero.  NULL: no memory. */
struct disk_job *disk_job_new(enum disk_kind kind, uint64_t segment,
    void (*done)(struct disk_job *j), void *owner) MUST_CHECK;
/* Queues the job, and owns it until done(). */
void disk_submit(struct disk *d, struct disk_job *j);
/* Calls done() of every job that is done.  Returns how many. */
unsigned disk_reap(struct disk *d);

/* A segment's file name. */
#define DISK_NAME_BYTES 32u
void disk_name(char out[DISK_NAME_BYTES], uint64_t segment);
/* Whether name is a segment's; *segment is its number then. */
bool disk_is_segment(const char *name, uint64_t *segment);

#endif /* RELAY_OUTBOX_DISK_THREAD_H */
