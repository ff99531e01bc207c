/*
 * file_sink: one trace file and the writer thread that feeds it.
 *
 * Everything that can block on a disk (open, write, fdatasync, close) happens
 * on the sink's own thread; the loop hands it batches of bytes that are whole
 * packets (Trace.packet fields) and gets a callback on the loop when a batch is
 * on its way to the disk.  One sink a file, so a hung disk stops no other
 * session.  Knows nothing of sessions.
 *
 * Nothing is buffered in this process: what written() told is in the file even
 * if the process is killed at once.  A batch under way at that moment may be in
 * it in part, down to a cut last packet: some file systems (tmpfs) end a
 * write() early for a process that is being killed.  That holds for compressed
 * files, too: each batch is a packet of its own, and needs no other.
 *
 * All calls come from the loop's thread.
 */
#ifndef SERVICE_SINK_FILE_SINK_H
#define SERVICE_SINK_FILE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/sink/packet_compressor.h"
#include "transport/base/compiler.h"

struct file_sink;
struct loop;
struct sink_dir;

/*
 * A batch is complete when it holds SINK_BATCH_BYTES (compressed files:
 * PACKET_BATCH_BYTES) or more; the packet that made it so may be of any size.
 * At most SINK_BATCHES of a sink exist at a time: that bounds its memory.  (A
 * batch that grew is shrunk once written.)  A compressed file has a
 * packet_compressor besides: 2 MiB in all with deflate, 3 MiB with zstd at its
 * usual level, 4.2 MiB at most.
 */
#define SINK_BATCH_BYTES (128u * 1024u)
#define SINK_BATCHES 2u

/*
 * Giving up.  While a session runs, a reader may take its time.  From
 * file_sink_hurry() or file_sink_close() on, a file that finishes no batch for
 * so long is given up, whatever the writer waits for: it fails like one whose
 * disk is full.
 */
#define SINK_WAIT_MS      5000u  /* pipes, sockets */
#define SINK_DISK_WAIT_MS 60000u /* regular files: the disk may be slow */
/*
 * Giving up interrupts the writer with a signal (SIGURG), once every
 * SINK_CANCEL_STEP_MS: waiting for a reader ends with it.  A writer that does
 * not come back within SINK_CANCEL_MS hangs in the kernel (a disk that does not
 * answer, a file or pipe that another program keeps locked).  It is left there
 * with its batches until the kernel lets it go.  While one owner has
 * SINK_ORPHANS_OF_OWNER of them, or all have SINK_ORPHANS_MAX, he gets no new
 * sink.
 */
#define SINK_CANCEL_STEP_MS   100u
#define SINK_CANCEL_MS        1000u
#define SINK_ORPHANS_OF_OWNER 8u
#define SINK_ORPHANS_MAX      256u

struct sink_batch {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t nominal; /* complete from this length on */
};

/* NULL instead of it: none of them. */
struct file_sink_options {
	/* Batches are compressed on the writer thread, one by one. */
	struct packet_compression compression;
	/*
	 * Bytes of the file that it never passes (as this sink writes them,
	 * so compressed); 0: no limit.  See full().
	 */
	uint64_t max_bytes;
	/*
	 * Bytes of max_bytes kept for what file_sink_submit_last() hands over.
	 */
	uint64_t last_bytes;
	/* Key of the owner, whose hanging writers count against this sink. */
	uint64_t owner;
};

struct file_sink_ops {
	/*
	 * Path given: the file is open, or was refused (err, a sentence).
	 * After a refusal only file_sink_close() may follow.
	 */
	void (*opened)(struct file_sink *s, const char *err, void *arg);
	/*
	 * Tells that all that was submitted is written (and synced, if asked):
	 * file_sink_batch() will give a batch again.  One call may stand for
	 * several submissions.  total: bytes in the file so far that this sink
	 * wrote.
	 */
	void (*written)(struct file_sink *s, uint64_t total, void *arg);
	/*
	 * Tells that a packet would have passed max_bytes: neither it nor
	 * anything submitted behind it is in the file.  Called once, just
	 * before the written() of what still had room.  May be NULL without
	 * max_bytes.
	 */
	void (*full)(struct file_sink *s, void *arg);
	/*
	 * An error ended the file: a sentence (disk full, I/O error, given
	 * up).  What is in the file ends on a whole packet (it was cut back to
	 * the last batch boundary or packet).  Only file_sink_close() may
	 * follow.
	 */
	void (*failed)(struct file_sink *s, const char *err, void *arg);
	/*
	 * Whole packets that were submitted and are not in the file, after an
	 * error; borrowed.  Before failed(), and after file_sink_close() until
	 * closed().  May be NULL.
	 */
	void (*lost)(struct file_sink *s, const uint8_t *data, size_t len,
	    void *arg);
	/*
	 * After file_sink_close(): the file is closed.  err NULL: everything
	 * submitted is in it; otherwise the sentence of the error that ended
	 * it, told before or not.  s is freed when this returns.
	 */
	void (*closed)(struct file_sink *s, const char *err, void *arg);
};

/*
 * Takes ownership of fd (a regular file, a pipe, ...) on success.  Its flags
 * are not changed, as others may share it; writes go where its offset is.
 */
struct file_sink *file_sink_new_fd(struct loop *l, int fd,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg) MUST_CHECK;

/* A file that is to be made; borrowed. */
struct file_sink_place {
	const struct sink_dir *dir; /* as it is now: see sink_path.h */
	const char *path;           /* below dir */
	long uid, gid;              /* its owner, when we are root; -1: ours */
};

/* Creates a file.  Answers through opened(); batches may be submitted before. */
struct file_sink *file_sink_new_path(struct loop *l,
    const struct file_sink_place *place,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg) MUST_CHECK;

/*
 * An empty batch to fill, or NULL while all are with the writer thread.  A
 * batch not submitted is given again.  file_sink_reserve() makes room for at
 * least n more bytes (false: no memory).
 */
struct sink_batch *file_sink_batch(struct file_sink *s);
bool file_sink_reserve(struct sink_batch *b, size_t n) MUST_CHECK;

/*
 * Hands the current batch to the writer thread, which writes it (compressed:
 * as one packet) with a single write() where the file lets it.  sync: fdatasync
 * after it.  Empty or no batch: only syncs, and without sync does nothing.
 */
void file_sink_submit(struct file_sink *s, bool sync);

/*
 * Submits the end of the file, once, which a full file takes too: it has
 * last_bytes of its own.  Nothing submitted later gets there.
 */
void file_sink_submit_last(struct file_sink *s, bool sync);

/* True: written() or failed() has answered all that was submitted. */
bool file_sink_idle(const struct file_sink *s);

/* Bytes in the file, as far as was told; inside of closed(): all. */
uint64_t file_sink_total(const struct file_sink *s);

/*
 * Bounds the time that the file is waited for: see SINK_WAIT_MS, which ms
 * replaces for all but regular files.  The shortest counts.
 */
void file_sink_hurry(struct file_sink *s, uint64_t ms);
/*
 * Gives all that was and will be submitted ms, from now on, to get into a file
 * that is not a regular one, whatever file_sink_hurry() allows.  A reader that
 * takes a little now and then cannot draw it out.  The earliest end counts.
 */
void file_sink_last_call(struct file_sink *s, uint64_t ms);

/*
 * Writes what was submitted (the current batch was not), closes the file, joins
 * the thread (or leaves it, see SINK_CANCEL_MS), tells closed() on a later turn
 * and frees itself after it.  No other callback but lost() comes after this
 * call.  Legal in any callback but closed().
 */
void file_sink_close(struct file_sink *s);

#endif /* SERVICE_SINK_FILE_SINK_H */
