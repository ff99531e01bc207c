/*
 * sink_writer: writes whole packets to a descriptor of any kind, and puts the
 * file right when that fails.
 *
 * All calls may block; file_sink calls them from the thread of the file.  Knows
 * nothing of threads or the loop.  SIGPIPE and SIGXFSZ must be blocked or
 * ignored in the calling thread.
 */
#ifndef TRANSPORT_SINK_SINK_WRITER_H
#define TRANSPORT_SINK_SINK_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct sink_writer {
	int fd;
	/*
	 * Whether to give up: asked before each write() and, for a descriptor
	 * that does not block, every SINK_WRITER_STEP_MS while it takes
	 * nothing.  NULL: never.  A write() to a blocking descriptor waits in
	 * the kernel: only a signal with a handler and without SA_RESTART ends
	 * it.
	 */
	bool (*give_up)(void *arg);
	void *give_up_arg;
	bool regular;  /* a regular file */
	bool at_end;   /* a regular file, written at its end */
	bool appends;  /* O_APPEND: the offset does not count */
	bool owned;    /* the caller created it: see sink_writer_init() */
	uint64_t total; /* bytes that were written and stayed in the file */
	size_t kept;    /* bytes of the last write, in whole packets */
};

#define SINK_WRITER_STEP_MS 100

/*
 * Prepares for writing to fd, at its present offset; fd is closed by
 * sink_writer_close() only.  owned: the caller created the file, so that
 * writing to it fails once its last name is removed: it could never be read.
 */
void sink_writer_init(struct sink_writer *w, int fd, bool owned);

/*
 * Appends data, which is whole packets: with one write() to a regular file, as
 * long as the kernel takes all of it.  Returns 0, or -1 with a sentence in err;
 * then a regular file was cut back, so that it ends with the last packet that
 * was written whole (where it cannot be cut back, the sentence says so), and
 * nothing more must be written.  A file that another program removed (owned) or
 * made shorter meanwhile is an error, too.
 */
int sink_writer_write(struct sink_writer *w, const uint8_t *data, size_t len,
    char *err, size_t err_size) MUST_CHECK;

/* fdatasync() of a regular file.  0, or -1 with a sentence in err. */
int sink_writer_sync(struct sink_writer *w, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Closes fd; some file systems report lost writes only here.  check: it is an
 * error, too, if another program removed or cut the file.  0, or -1 with a
 * sentence in err; fd is closed all the same.
 */
int sink_writer_close(struct sink_writer *w, bool check, char *err,
    size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_SINK_SINK_WRITER_H */
