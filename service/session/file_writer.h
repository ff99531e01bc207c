/*
 * file_writer: a session that writes into a file (TraceConfig.write_into_file;
 * behaviour.md, "What the service writes into a trace").
 *
 * Reads the session's buffers in passes and hands batches to the file's sink:
 * every file_write_period_ms, at once when a buffer is half full, and for the
 * last time when the session ends.  Unless the settings say otherwise it is
 * lossless: producers that would overwrite what the file has not got yet are
 * held back until it has caught up.  It is the write_gate (model.h) of the
 * session's buffers as long as it lives.
 */
#ifndef SERVICE_SESSION_FILE_WRITER_H
#define SERVICE_SESSION_FILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct file_writer;
struct producer;
struct session;
struct session_buffer;

/*
 * fd (owned on success) or, when it is -1, the config's output_path below the
 * daemon's trace directory.  NULL with a sentence in err.
 */
struct file_writer *file_writer_new(struct session *s, int fd, char *err,
    size_t err_size) MUST_CHECK;
/* False while output_path is being created. */
bool file_writer_is_open(const struct file_writer *f);
/* At the start of tracing: arms the write period. */
void file_writer_start(struct file_writer *f);
/*
 * The session ends, and its file does so in bounded time in every state: one
 * that takes nothing for ms fails (file_sink_hurry(); regular files have the
 * time of theirs).  Legal at any time, again with less.
 */
void file_writer_hurry(struct file_writer *f, uint32_t ms);
/*
 * The same, and nobody cares for what is not in the file yet: when finishing
 * takes longer than ms in all, it fails (file_sink_last_call()).
 */
void file_writer_last_call(struct file_writer *f, uint32_t ms);
/*
 * Writes all that is left and closes the file; then session_file_closed().
 * Idempotent.
 */
void file_writer_finish(struct file_writer *f);
/* The file is closed or was never opened: frees. */
void file_writer_free(struct file_writer *f);

/* The producer does not wait any more, at whichever file it did, if any. */
void file_writer_forget(struct producer *p);

/* A clone of the session's buffers is complete, or given up. */
void file_writer_copied(struct file_writer *f);

/* Bytes written so far. */
uint64_t file_writer_bytes(const struct file_writer *f);

#endif /* SERVICE_SESSION_FILE_WRITER_H */
