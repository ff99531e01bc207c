#include "transport/sink/sink_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/sink/packet_boundary.h"

void
sink_writer_init(struct sink_writer *w, int fd, bool owned)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	w->owned = w->regular && owned;
	w->appends = flags >= 0 && (flags & O_APPEND) != 0;
	if (w->regular && flags >= 0)
		w->at_end = w->appends ||
		    lseek(fd, 0, SEEK_CUR) == st.st_size;
}

/*
 * Says how other programs changed the file; NULL: not at all.  A write behind a
 * new end would leave a hole of zeros, which no reader takes for packets.
 */
static const char *
what_was_done(const struct sink_writer *w)
{
	struct stat st;

	if (!w->regular || fstat(w->fd, &st) != 0)
		return NULL;
	if (w->owned && st.st_nlink == 0)
		return "another program removed it";
	if (w->at_end && !w->appends &&
	    st.st_size < lseek(w->fd, 0, SEEK_CUR))
		return "another program cut it off, or emptied it";
	return NULL;
}

static const char *
write_error_text(int e)
{
	switch (e) {
	case ENOSPC:
		return "no space left on the disk; free some, then start anew";
	case EDQUOT:
		return "the disk quota is used up; free some, then start anew";
	case EFBIG:
		return "it reached the largest size the system allows "
		    "(ulimit -f, LimitFSIZE=)";
	case EIO:
		return "the disk reports an I/O error (see dmesg)";
	case EPIPE:
		return "the program that reads it closed it";
	case EBADF:
		return "it was not opened for writing";
	case EROFS:
		return "the file system became read-only (see dmesg)";
	case ETIMEDOUT:
		return "the program that reads it takes nothing";
	default:
		return strerror(e);
	}
}

static bool
is_given_up(const struct sink_writer *w)
{
	return w->give_up != NULL && w->give_up(w->give_up_arg);
}

/* An error condition ends the wait, too: write() will name it. */
static void
wait_writable(const struct sink_writer *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLOUT };

	(void)poll(&p, 1, SINK_WRITER_STEP_MS);
}

/*
 * Writes as write() does, but waits where it must, interruptibly.  Whether the
 * descriptor blocks is not known beforehand: its flags are shared with other
 * processes, which may change them at any time.
 */
static ssize_t
write_some(struct sink_writer *w, const uint8_t *data, size_t len)
{
	ssize_t n;

	while (!is_given_up(w)) {
		n = write(w->fd, data, len);
		if (n > 0)
			return n;
		if (n == 0) {
			errno = EIO; /* no file does that; do not spin on it */
			return -1;
		}
		if (errno == EAGAIN)
			wait_writable(w);
		else if (errno != EINTR)
			return -1;
	}
	errno = ETIMEDOUT;
	return -1;
}

/*
 * Removes the cut packet at the end: of `written` bytes the first `whole` are
 * whole packets.  False: the file cannot be cut there.
 */
static bool
cut_back(struct sink_writer *w, size_t written, size_t whole)
{
	off_t end;

	if (written == whole)
		return true;
	if (!w->at_end)
		return false;
	end = lseek(w->fd, 0, SEEK_CUR);
	if (end < (off_t)(written - whole))
		return false;
	end -= (off_t)(written - whole);
	return ftruncate(w->fd, end) == 0 &&
	    lseek(w->fd, end, SEEK_SET) == end;
}

int
sink_writer_write(struct sink_writer *w, const uint8_t *data, size_t len,
    char *err, size_t err_size)
{
	const char *done = what_was_done(w);
	size_t written = 0, whole;
	ssize_t n;
	int e;

	w->kept = 0;
	if (done != NULL) {
		snprintf(err, err_size, "the trace file is lost: %s", done);
		return -1;
	}
	while (written < len) {
		n = write_some(w, data + written, len - written);
		if (n < 0)
			goto fail;
		written += (size_t)n;
	}
	w->total += len;
	w->kept = len;
	return 0;

fail:
	e = errno;
	whole = packet_boundary(data, written);
	w->kept = whole;
	if (cut_back(w, written, whole)) {
		w->total += whole;
		snprintf(err, err_size, "the trace file ended early: %s",
		    write_error_text(e));
	} else {
		w->total += written;
		snprintf(err, err_size,
		    "the trace file ended early, in the middle of a packet: %s",
		    write_error_text(e));
	}
	return -1;
}

int
sink_writer_sync(struct sink_writer *w, char *err, size_t err_size)
{
	int rc;

	if (!w->regular)
		return 0;
	do {
		rc = fdatasync(w->fd);
	} while (rc < 0 && errno == EINTR);
	/* EINVAL, EROFS: a file that has no disk below it */
	if (rc == 0 || errno == EINVAL || errno == EROFS)
		return 0;
	snprintf(err, err_size,
	    "a part of the trace file may not have reached the disk: %s",
	    write_error_text(errno));
	return -1;
}

int
sink_writer_close(struct sink_writer *w, bool check, char *err,
    size_t err_size)
{
	const char *done = check ? what_was_done(w) : NULL;
	int rc = close(w->fd);

	w->fd = -1;
	if (done != NULL) {
		snprintf(err, err_size, "the trace file is lost: %s", done);
		return -1;
	}
	/* EINTR: Linux has closed it all the same */
	if (rc == 0 || errno == EINTR)
		return 0;
	snprintf(err, err_size,
	    "a part of the trace file may not have reached the disk: %s",
	    write_error_text(errno));
	return -1;
}
