/*
 * sink_writer: writes whole packets to a descriptor of any kind, and puts the
 * file right when that fails.
 *
 * All calls may block; file_sink calls them from the thread of the file.  Knows
 * nothing of threads or the loop.  SIGPIPE and SIGXFSZ must be blocked or
 * ignored in the calling thread.
 */
#ifndef SERVICE_SINK_SINK_WRITER_H
#define SERVICE_SINK_SINK_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct sink_writer {
	int fd;
	/*
	 * Asked before each write() and, of a descriptor that does not block,
	 * every SINK_WRITER_STEP_MS while it takes nothing: true gives up.
	 * NULL: never.  One that blocks waits in the kernel: a signal with a
	 * handler and without SA_RESTART gets the thread out of there.
	 */
	bool (*give_up)(void *arg);
	void *give_up_arg;
	bool regular;  /* a regular file */
	bool at_end;   /* a regular file of which we write the end */
	bool appends;  /* O_APPEND: it has no place of its own to write to */
	bool owned;    /* the caller made it: nobody else should remove it */
	uint64_t total; /* bytes that stayed in the file */
	size_t kept;    /* of the last write, in whole packets */
};

#define SINK_WRITER_STEP_MS 100

/*
 * fd stays the caller's.  It is written to where its offset is.  owned: it was
 * made for this, so that it ends when its last name is removed: nobody could
 * ever read it.  Of another's file that is its own affair.
 */
void sink_writer_init(struct sink_writer *w, int fd, bool owned);

/*
 * Appends data, which is whole packets: with one write() to a regular file, as
 * long as the kernel takes all of it.  Returns 0, or -1 with a sentence in err;
 * then a regular file was cut back, so that it ends with the last packet that
 * was written whole, and nothing more must be written.  A file that somebody
 * removed (owned) or made shorter under us is not written any more either.
 */
int sink_writer_write(struct sink_writer *w, const uint8_t *data, size_t len,
    char *err, size_t err_size) MUST_CHECK;

/* fdatasync() where that means something.  As sink_writer_write(). */
int sink_writer_sync(struct sink_writer *w, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Closes fd; some file systems report lost writes only here.  check: and says
 * whether somebody removed or cut the file.
 */
int sink_writer_close(struct sink_writer *w, bool check, char *err,
    size_t err_size) MUST_CHECK;

#endif /* SERVICE_SINK_SINK_WRITER_H */
