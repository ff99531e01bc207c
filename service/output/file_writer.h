/*
 * file_writer: the file of a session that writes into one
 * (TraceConfig.write_into_file; behaviour.md, "What the service writes into a
 * trace").
 *
 * Reads the session's buffers in passes and hands batches to the file's sink:
 * every file_write_period_ms, at once when a buffer is half full, and for the
 * last time when the session ends.  Unless the settings say otherwise the file
 * is lossless: producers that would overwrite data that it has not got yet are
 * held back until it has caught up (file_gate.h).  Knows neither flushes nor
 * how a session ends: it calls file_ops for them.  Belongs to the loop's
 * thread.
 */
#ifndef SERVICE_OUTPUT_FILE_WRITER_H
#define SERVICE_OUTPUT_FILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct file_writer;
struct session;
struct session_buffer;

typedef void (*file_flushed_fn)(struct session *s, bool success, void *arg);

/* Calls from a file to its session. */
struct file_ops {
	/* The file at output_path was created. */
	void (*opened)(struct session *s);
	/* The file cannot be written any more; the session is to end. */
	void (*failed)(struct session *s, const char *error);
	/* The file is closed (error NULL: complete): file_writer_free() it. */
	void (*closed)(struct session *s, const char *error);
	/* max_file_size_bytes is reached; the session is to end. */
	void (*full)(struct session *s);
	/* A segment has as many bytes as the config wants at most. */
	void (*segment_full)(struct session *s);
	/*
	 * Scrapes the producers' shared memory into the buffers.  False: some
	 * chunks have to wait at the write gate.
	 */
	bool (*scrape)(struct session *s);
	/* Starts a periodic flush; done, called at its end, may be NULL. */
	void (*flush)(struct session *s, file_flushed_fn done, void *arg);
	/* There is some room: scrapes that had to wait may be tried again. */
	void (*has_room)(struct session *s);
};

/*
 * Writes to fd (owned on success) or, when it is -1, creates the config's
 * output_path below the daemon's trace directory.  s and ops are borrowed.
 * NULL with a sentence in err.
 */
struct file_writer *file_writer_new(struct session *s,
    const struct file_ops *ops, int fd, char *err, size_t err_size) MUST_CHECK;
/* False while output_path is being created. */
bool file_writer_is_open(const struct file_writer *f);
/* To be called at the start of tracing: arms the periodic timers. */
void file_writer_start(struct file_writer *f);
/*
 * Sets the file's time-out: it fails when it takes nothing for ms
 * (file_sink_hurry(); regular files have a time-out of their own).  Legal in
 * every state; of several calls the shortest counts.
 */
void file_writer_hurry(struct file_writer *f, uint32_t ms);
/*
 * As above, and the file fails when finishing takes longer than ms in all
 * (file_sink_last_call()), counted from file_writer_finish().
 */
void file_writer_last_call(struct file_writer *f, uint32_t ms);
/*
 * Writes all that is left and closes the file; then ops->closed().  Idempotent.
 */
void file_writer_finish(struct file_writer *f);
/*
 * Frees the writer, after ops->closed(), or where file_writer_new() fails; no
 * flush may call it back any more.  NULL is fine.
 */
void file_writer_free(struct file_writer *f);

/*
 * Has a pass begin on a later turn, if none is under way and the session has
 * not ended.
 */
void file_writer_want_pass(struct file_writer *f);

/* Tells that a clone of the session's buffers is complete, or given up. */
void file_writer_copied(struct file_writer *f);

/* Bytes written so far. */
uint64_t file_writer_bytes(const struct file_writer *f);

#endif /* SERVICE_OUTPUT_FILE_WRITER_H */
