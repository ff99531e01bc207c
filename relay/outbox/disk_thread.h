/*
 * disk_thread: the thread that reads and writes the spool's files.
 *
 * Jobs are done in the order in which they are given; each is answered on the
 * loop, in the same order, from disk_reap().  Knows nothing of channels.
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
	DISK_WRITE,  /* record (but for its crc) and data at offset */
	DISK_READ,   /* of the record, into data; damaged tells */
	DISK_PUNCH,  /* len bytes at offset are not needed any more */
	DISK_SYNC,
	DISK_UNLINK,
};

struct disk_job {
	TAILQ_ENTRY(disk_job) link;
	enum disk_kind kind;
	uint64_t segment;
	uint64_t offset;
	struct spool_record record;
	uint8_t *data;
	uint64_t len;  /* PUNCH */
	bool sync;     /* WRITE: fdatasync() as well */

	int error;     /* an errno; 0: done */
	bool damaged;  /* READ: it is not what was written */
	void (*done)(struct disk_job *j); /* the job's memory is the callee's */
	void *owner;
	void *arg;
};

/*
 * Files are in dirfd, which stays the caller's.  reap() is called on the loop
 * when there are answers.  synchronous: no thread, all is done in
 * disk_submit(), and the caller has to look for answers by itself.
 */
struct disk *disk_new(struct loop *l, int dirfd, bool synchronous,
    void (*reap)(void *arg), void *arg) MUST_CHECK;
/* Waits for the job that is being done; the others are given up, unanswered. */
void disk_free(struct disk *d);
/* A job, for disk_submit(); done() frees it.  NULL: no memory. */
struct disk_job *disk_job_new(enum disk_kind kind, uint64_t segment,
    void (*done)(struct disk_job *j), void *owner) MUST_CHECK;
void disk_submit(struct disk *d, struct disk_job *j);
/* Answers what is done.  Returns how many. */
unsigned disk_reap(struct disk *d);

/* A segment's file name. */
#define DISK_NAME_BYTES 32u
void disk_name(char out[DISK_NAME_BYTES], uint64_t segment);
/* False: it is not a segment's. */
bool disk_is_segment(const char *name, uint64_t *segment);

#endif /* RELAY_OUTBOX_DISK_THREAD_H */
