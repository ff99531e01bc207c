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
#include "service/sink/sink_path.h"
#include "service/sink/sink_writer.h"
#include "transport/loop/loop.h"

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

/* Messages from the writer's thread. */
struct report {
	bool posted;   /* file_sink_report_cb() will run */
	bool opened;   /* the path was opened, or refused: */
	bool refused;
	bool full;     /* max_bytes was reached */
	bool finished; /* the writer is about to end; the sink may be freed */
	uint64_t done; /* number of jobs done, in the order of submission */
	uint64_t total;
	char err[SINK_ERR_MAX]; /* the first one; empty: none */
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
	bool told_opened;
	bool told_full;
	bool told_error;
	bool closing;
	struct loop_timer *patience;
	uint64_t wait_ms; /* time-out of a job; 0: none */
	bool regular;
	uint64_t deadline_ms; /* file_sink_last_call()'s; 0: none */
	bool cancelled;
	unsigned interrupts; /* since the writer last made progress */
	bool abandoned;
	bool told_closed; /* abandoned: only to be freed */
	struct loop_call gone_call;

	/* Both sides, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job jobs[MAX_JOBS];
	unsigned n_jobs;
	bool close_asked;
	bool orphan; /* the loop's side is gone */
	LIST_ENTRY(file_sink) of_orphans;
	struct report report;
	struct loop_post report_post;

	atomic_bool give_up; /* the writer waits for nothing any more */

	/* Writer's side */
	pthread_t thread;
	int fd; /* of file_sink_new_fd(), until writer has it */
	struct sink_writer writer;
	struct packet_compressor *compressor; /* NULL: bytes as they are */
	uint64_t max_bytes;
	uint64_t last_bytes;
	uint64_t owner;
	bool full;   /* max_bytes is reached; batches are dropped */
	bool broken; /* an error ended the file; jobs are dropped */
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
