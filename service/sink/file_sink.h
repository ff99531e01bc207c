/*
 * file_sink: one trace file and the writer thread that feeds it.
 *
 * Everything that can block on a disk (open, write, fdatasync, close) happens
 * on the sink's own thread; the loop hands it batches of bytes that are whole
 * packets (Trace.packet fields) and gets a callback on the loop when a batch is
 * on its way to the disk.  One sink a file, so a hung disk stops no other
 * session.  Knows nothing of sessions.
 *
 * All calls come from the loop's thread.
 */
#ifndef SERVICE_SINK_FILE_SINK_H
#define SERVICE_SINK_FILE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct file_sink;
struct loop;

/*
 * A batch is SINK_BATCH_BYTES, or as large as the one packet in it.  At most
 * SINK_BATCHES of a sink exist at a time: that bounds its memory.
 */
#define SINK_BATCH_BYTES (128u * 1024u)
#define SINK_BATCHES 2u

struct sink_batch {
	uint8_t *data;
	size_t len;
	size_t cap;
};

struct file_sink_ops {
	/* The file is open (path given), or was refused: err != NULL. */
	void (*opened)(struct file_sink *s, const char *err, void *arg);
	/*
	 * A batch was written and file_sink_batch() will give one again.
	 * total: bytes in the file so far that this sink wrote.
	 */
	void (*written)(struct file_sink *s, uint64_t total, void *arg);
	/*
	 * An error ended the file: a sentence (disk full, I/O error).  What is
	 * in the file ends on a whole packet (it was cut back to the last
	 * batch boundary or packet).  Only file_sink_close() may follow.
	 */
	void (*failed)(struct file_sink *s, const char *err, void *arg);
	/* After file_sink_close(): everything is in the file, it is closed. */
	void (*closed)(struct file_sink *s, const char *err, void *arg);
};

/* Takes ownership of fd (a regular file, a pipe, ...) on success. */
struct file_sink *file_sink_new_fd(struct loop *l, int fd,
    const struct file_sink_ops *ops, void *arg) MUST_CHECK;

/*
 * Creates `path` below the directory dirfd (borrowed, stays open as long as
 * the sink): never outside it, by no `..`, absolute path or link (openat2
 * RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS); must not exist yet; mode 0600, owner
 * uid/gid when we are root and uid != -1.  Answer through opened().
 */
struct file_sink *file_sink_new_path(struct loop *l, int dirfd,
    const char *path, long uid, long gid, const struct file_sink_ops *ops,
    void *arg) MUST_CHECK;

/*
 * An empty batch to fill, or NULL while all are with the writer thread.  A
 * batch not submitted is given again.  file_sink_reserve() makes room for at
 * least n more bytes (false: no memory).
 */
struct sink_batch *file_sink_batch(struct file_sink *s);
bool file_sink_reserve(struct sink_batch *b, size_t n) MUST_CHECK;

/*
 * Hands the current batch to the writer thread (empty: only syncs).  sync:
 * fdatasync after it.
 */
void file_sink_submit(struct file_sink *s, bool sync);

/* No batch is with the writer thread. */
bool file_sink_idle(const struct file_sink *s);

/*
 * Writes what was submitted, closes the file, joins the thread, tells
 * closed() on a later turn and frees itself after it.  No other callback comes
 * after this call but failed() never does.  Legal in any callback.
 */
void file_sink_close(struct file_sink *s);

#endif /* SERVICE_SINK_FILE_SINK_H */
