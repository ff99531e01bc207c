/*
 * file_sink: one trace file and the writer thread that feeds it.
 *
 * Everything that can block on a disk (open, write, fdatasync, close) happens
 * on the sink's own thread.  The loop hands this thread batches of bytes that
 * are whole packets (Trace.packet fields), and is called back when a batch was
 * written.  Each file has a sink of its own, so that a hung disk stops no other
 * session.  Knows nothing of sessions.
 *
 * Nothing is buffered in this process: the batches that written() reported are
 * in the file even if the process is killed at once.  A batch under way at that
 * moment may be in the file in part, down to a cut last packet: some file
 * systems (tmpfs) end a write() early for a process that is being killed.  That
 * holds for compressed files, too: each batch is a packet that can be read
 * without the others.
 *
 * All calls come from the loop's thread, and so do all callbacks.
 */
#ifndef SERVICE_SINK_FILE_SINK_H
#define SERVICE_SINK_FILE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/sink/packet_compressor.h"

struct file_sink;
struct loop;
struct sink_dir;

/*
 * A batch is complete when it holds SINK_BATCH_BYTES (compressed files:
 * PACKET_BATCH_BYTES) or more; the packet that completes it may be of any size.
 * A sink has SINK_BATCHES batches, which bounds its memory; a batch that grew
 * is shrunk once written.  A compressed file has a packet_compressor besides: 2
 * MiB in all with deflate, 3 MiB with zstd at its usual level, 4.2 MiB at most.
 */
#define SINK_BATCH_BYTES (128u * 1024u)
#define SINK_BATCHES 2u

/*
 * Time-outs.  While a session runs, the reader of a pipe may take its time.
 * From file_sink_hurry() or file_sink_close() on, a file for which no job
 * finishes in so many milliseconds is given up, whatever its thread waits for:
 * it fails like a file whose disk is full.
 */
#define SINK_WAIT_MS      5000u  /* pipes, sockets */
#define SINK_DISK_WAIT_MS 60000u /* regular files: the disk may be slow */
/*
 * Giving up interrupts the writer thread with a signal (SIGURG), once every
 * SINK_CANCEL_STEP_MS: waiting for a reader ends with it.  A thread that does
 * not return within SINK_CANCEL_MS hangs in the kernel (a disk that does not
 * answer, a file or pipe that another program keeps locked).  As an orphan it
 * stays there with its batches until the kernel lets it go.  An owner with
 * SINK_ORPHANS_OF_OWNER orphans gets no new sink, and while there are
 * SINK_ORPHANS_MAX of all owners, no owner does.
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

/*
 * The stream is split into segments (segment_splitter.h): the path is a folder,
 * which is created where it is missing.  There is no max_bytes then.
 */
struct file_sink_segments {
	const char *pattern; /* as segment_path_check() wants it */
	const char *recording;
	bool by_machine;
	/* SegmentCut that the first segment begins by; NULL: none */
	const uint8_t *begun_by;
	size_t begun_by_len;
};

/* Options of a new sink, copied; NULL instead: all zero, plain batches. */
struct file_sink_options {
	const struct file_sink_segments *segments; /* copied; NULL: a file */
	/* Batches are compressed on the writer thread, one by one. */
	struct packet_compression compression;
	/*
	 * Most bytes that this sink writes, counted as they are in the file
	 * (compressed); 0: no limit.  See full().
	 */
	uint64_t max_bytes;
	/* Part of max_bytes that is kept for file_sink_submit_last(). */
	uint64_t last_bytes;
	/* Key of the owner, by which orphans are counted. */
	uint64_t owner;
};

struct file_sink_ops {
	/*
	 * Answers file_sink_new_path(): the file was created (err NULL), or was
	 * refused (err, a sentence borrowed for the call, as in all below).
	 * After a refusal only file_sink_close() may follow.
	 */
	void (*opened)(struct file_sink *s, const char *err, void *arg);
	/*
	 * Tells that one or more submissions are written (and synced, if
	 * asked): file_sink_batch() will give a batch again.  total: bytes in
	 * the file so far that this sink wrote.
	 */
	void (*written)(struct file_sink *s, uint64_t total, void *arg);
	/*
	 * Tells the bytes of the newest segment's largest file, as
	 * segment_writer_largest(), and its number, just before written().  NULL: not wanted.
	 */
	void (*grown)(struct file_sink *s, uint32_t number, uint64_t bytes,
	    void *arg);
	/*
	 * Tells that a packet would have passed max_bytes: neither it nor any
	 * packet behind it is in the file, but for file_sink_submit_last().
	 * Called once, just before the written() of the packets that still had
	 * room.  May be NULL without max_bytes.
	 */
	void (*full)(struct file_sink *s, void *arg);
	/*
	 * An error ended the file: a sentence (disk full, I/O error, given
	 * up).  A regular file that this sink was appending to was cut back to
	 * its last whole packet, where that was possible: the sentence says if
	 * not.  Only file_sink_close() may follow.
	 */
	void (*failed)(struct file_sink *s, const char *err, void *arg);
	/*
	 * Hands back whole packets that were submitted and are not in the file
	 * after an error; borrowed for the call.  Comes before failed() or
	 * after it, until closed().  May be NULL.
	 */
	void (*lost)(struct file_sink *s, const uint8_t *data, size_t len,
	    void *arg);
	/*
	 * After file_sink_close(): the file is closed.  err NULL: all batches
	 * that were submitted are in it, up to max_bytes; otherwise the
	 * sentence of the error that ended the file, whether failed() has told
	 * it or not.  s is freed when this returns.
	 */
	void (*closed)(struct file_sink *s, const char *err, void *arg);
};

/*
 * Writes to fd (a regular file, a pipe, ...), which the sink owns on success.
 * Its flags are not changed, as other processes may share it; writes go to its
 * present offset.  NULL: no memory, no thread, or too many orphans.
 */
struct file_sink *file_sink_new_fd(struct loop *l, int fd,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg) MUST_CHECK;

/* A file to be created.  Copied, but dir->path and dir->fd stay borrowed. */
struct file_sink_place {
	const struct sink_dir *dir; /* see sink_path.h */
	const char *path;           /* below dir */
	long uid, gid;              /* owner, if we are root; -1: as we are */
};

/*
 * Creates a file.  Answers through opened(); batches may be submitted before.
 * NULL: as file_sink_new_fd().
 */
struct file_sink *file_sink_new_path(struct loop *l,
    const struct file_sink_place *place,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg) MUST_CHECK;

/*
 * The batch to fill, or NULL while all are with the writer thread.  A batch
 * that was not submitted is given again, with its bytes.  Borrowed until it is
 * submitted.  file_sink_reserve() makes room for at least n more bytes, which
 * may move b->data (false: no memory, nothing changed).
 */
struct sink_batch *file_sink_batch(struct file_sink *s);
bool file_sink_reserve(struct sink_batch *b, size_t n) MUST_CHECK;

/*
 * Hands the current batch to the writer thread, which writes it (compressed: as
 * one packet) with a single write() where the kernel takes all of it.  sync:
 * fdatasync() after it.  Empty or no batch: only syncs, and without sync has no
 * effect.
 */
void file_sink_submit(struct file_sink *s, bool sync);

/*
 * Submits the last batch of the file, once, which a full file takes too:
 * last_bytes are kept for it.  Batches submitted later are dropped where there
 * is a max_bytes.
 */
void file_sink_submit_last(struct file_sink *s, bool sync);

/* True: all that was submitted was answered by written() or failed(). */
bool file_sink_idle(const struct file_sink *s);

/* Bytes in the file, as last reported; inside of closed(): all. */
uint64_t file_sink_total(const struct file_sink *s);

/*
 * Segments that a crash had left in the folder, and that have their names by
 * now; inside of opened().
 */
unsigned file_sink_recovered(const struct file_sink *s);

/*
 * Sets the time-out of a job in milliseconds (see SINK_WAIT_MS); a regular file
 * has SINK_DISK_WAIT_MS whatever ms is.  Of several calls the shortest counts.
 */
void file_sink_hurry(struct file_sink *s, uint64_t ms);
/*
 * Sets a deadline, ms from now, for all that was and will be submitted to a
 * file that is not a regular one, whatever file_sink_hurry() allows: a reader
 * that takes a little now and then cannot draw it out.  Of several calls the
 * earliest deadline counts.
 */
void file_sink_last_call(struct file_sink *s, uint64_t ms);

/*
 * Writes all batches that were submitted (the current one was not), closes the
 * file, joins the thread (or leaves it as an orphan, see SINK_CANCEL_MS), calls
 * closed() on a later turn and then frees the sink.  No other callback but
 * lost() comes after this call.  Legal in any callback but closed().
 */
void file_sink_close(struct file_sink *s);

#endif /* SERVICE_SINK_FILE_SINK_H */
