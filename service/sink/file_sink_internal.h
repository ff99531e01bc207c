/*
 * file_sink_internal: struct file_sink, shared by file_sink.c and sink_thread.c
 * alone.
 *
 * The loop's side (file_sink.c) fills batches, submits jobs and runs the
 * callbacks; the writer thread's side (sink_thread.c) runs jobs.  Between them,
 * under the lock: the queue of jobs one way, struct report the other.  At most
 * one loop_post() is outstanding (report.posted), so the callback that finds
 * the writer finished is the last, and may free the sink.
 *
 * Giving up has one place, the patience timer on the loop's side: first it
 * cancels the writer, and interrupts it until its system call returns; a writer
 * that does not return is abandoned.  Then the loop's side answers in its
 * place, and the thread, an orphan, frees the sink when it ends.
 */
#ifndef SERVICE_SINK_FILE_SINK_INTERNAL_H
#define SERVICE_SINK_FILE_SINK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "service/sink/file_sink.h"
#include "service/sink/sink_segments.h"
#include "transport/loop/loop.h"
#include "transport/sink/sink_path.h"
#include "transport/sink/sink_writer.h"

/* Most jobs: all batches, and one that only syncs. */
#define MAX_JOBS (SINK_BATCHES + 1)

struct batch {
	struct sink_batch pub;
	bool submitted; /* loop's side: the writer's to read until written */
	bool written;   /* under lock: the writer is done with it */
	size_t kept;    /* under lock: its first bytes, that are in the file */
};

struct job {
	struct batch *batch; /* NULL: only sync */
	bool sync;
	bool last;
};

/* Bytes of a sentence; one of segments has a path in it. */
#define FILE_ERR_MAX 256

/* States of the file for its writer; only forward. */
enum sink_file {
	FILE_OPENING, /* the path is being opened */
	FILE_REFUSED, /* err says why; jobs are dropped */
	FILE_OPEN,
	FILE_FULL,    /* max_bytes is reached; batches are dropped */
	FILE_BROKEN,  /* err ended the file; jobs are dropped */
	FILE_CLOSED,  /* the writer is about to end; the sink may be freed */
};

/* Messages from the writer's thread. */
struct report {
	bool posted;   /* file_sink_report_cb() will run */
	enum sink_file file;
	uint64_t done; /* number of jobs done, in the order of submission */
	uint64_t total;
	uint32_t number;  /* of the newest segment; 0: a file */
	uint64_t largest; /* as segment_writer_largest() */
	unsigned recovered; /* segments; written before the file is open */
	char err[FILE_ERR_MAX]; /* the first one; empty: none */
};

/* Callbacks that are still to come; only forward. */
enum sink_state {
	SINK_OPENING, /* opened(); patience is armed, with a job or not */
	SINK_OPEN,    /* written(), full(), failed(); patience, for a job */
	SINK_FULL,    /* as SINK_OPEN, but for full() */
	SINK_FAILED,  /* none; patience, for a job */
	SINK_CLOSING, /* closed(); patience, or else gone_call */
	SINK_CLOSED,  /* none: the writer is abandoned, and s only to be freed */
};

/* How far the loop's side has given up the writer; only forward. */
enum sink_trust {
	WRITER_AWAITED,   /* patience: wait_ms, or until deadline_ms */
	WRITER_CANCELLED, /* patience: interrupts it each SINK_CANCEL_STEP_MS */
	WRITER_ABANDONED, /* patience is not armed, and reports not told */
};

struct file_sink {
	struct loop *l;
	const struct file_sink_ops *ops;
	void *arg;

	/* Loop's side */
	size_t nominal; /* of a batch */
	struct batch batches[SINK_BATCHES];
	struct batch *current; /* handed out, not yet submitted */
	uint64_t submitted;    /* jobs */
	uint64_t answered;     /* of them */
	uint64_t total;        /* bytes in the file, as was reported */
	unsigned recovered;    /* as was reported */
	enum sink_state state;
	enum sink_trust trust;
	struct loop_timer *patience;
	uint64_t wait_ms; /* time-out of a job; 0: none */
	bool regular;     /* a regular file */
	uint64_t deadline_ms; /* file_sink_last_call()'s; 0: none */
	unsigned interrupts; /* since the writer last made progress */
	struct loop_call gone_call;

	/* Both sides, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job jobs[MAX_JOBS];
	unsigned n_jobs;
	enum {
		LOOP_SERVES,
		LOOP_CLOSES, /* the writer ends when no job is left */
		LOOP_LEFT,   /* the writer is an orphan, and frees s */
	} loop_side;
	LIST_ENTRY(file_sink) of_orphans;
	struct report report;
	struct loop_post report_post;

	atomic_bool give_up; /* the writer waits for nothing any more */

	/* Writer's side */
	pthread_t thread;
	int fd; /* of file_sink_new_fd(), until writer has it */
	struct sink_writer writer;
	struct packet_compressor *compressor; /* NULL: bytes as they are */
	struct sink_segments *segments; /* NULL: a file */
	uint64_t max_bytes;
	uint64_t last_bytes;
	uint64_t owner;
	enum sink_file file; /* as report.file, which follows it */
	struct sink_dir dir;
	char *path; /* NULL: a descriptor was given */
	long uid;
	long gid;
};

/* ---- sink_thread.c ---- */

/* False: too many threads of this owner, or of all, hang in the kernel. */
bool sink_thread_may_begin(uint64_t owner) MUST_CHECK;
/* Starts the writer.  False: no thread, and nothing is changed. */
bool sink_thread_start(struct file_sink *s) MUST_CHECK;
/*
 * Tells the writer to give up, and interrupts it.  To be called again until it
 * reports: a signal that comes between its look at give_up and the write() that
 * waits is taken in vain.
 */
void sink_thread_cancel(struct file_sink *s);
/* Frees s, or has the writer do so when the kernel lets it go. */
void sink_thread_leave(struct file_sink *s);

/* ---- file_sink.c ---- */

/* Runs on the loop after report was changed, and may free s. */
void file_sink_report_cb(void *arg);
/*
 * Frees what the writer does not own: it never started, was joined, or is the
 * orphan that calls this.
 */
void file_sink_destroy(struct file_sink *s);

#endif /* SERVICE_SINK_FILE_SINK_INTERNAL_H */
