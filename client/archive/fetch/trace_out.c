#include "client/archive/fetch/trace_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define BATCH (1u << 20)

struct trace_out {
	int fd;
	char *path, *part;  /* owned; part NULL: written in place */
	int error;          /* errno of the first failure */
	uint64_t bytes;     /* with those in the batch */
	struct pb_writer batch;
};

/*
 * Opens path.part, or the path itself where that is a device or a FIFO, which
 * must not be replaced by a file.
 */
static int
open_output(struct trace_out *o, char *err, size_t err_size)
{
	struct stat st;

	if (strcmp(o->path, "-") == 0)
		return 0;
	if ((stat(o->path, &st) < 0 || S_ISREG(st.st_mode)) &&
	    asprintf(&o->part, "%s.part", o->path) < 0) {
		o->part = NULL;
		return FAILURE(err, err_size, "out of memory");
	}
	o->fd = o->part == NULL ? open(o->path, O_WRONLY | O_CLOEXEC |
	    O_NOCTTY) : open(o->part, O_WRONLY | O_CREAT | O_TRUNC |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	if (o->fd >= 0)
		return 0;
	(void)FAILURE(err, err_size, "cannot write %s: %s", o->part != NULL ?
	    o->part : o->path, strerror(errno));
	free(o->part);
	o->part = NULL;
	o->fd = STDOUT_FILENO;
	return -1;
}

struct trace_out *
trace_out_open(const char *path, char *err, size_t err_size)
{
	struct trace_out *o;

	if ((o = calloc(1, sizeof(*o))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	pb_writer_init(&o->batch);
	o->fd = STDOUT_FILENO;
	if ((o->path = strdup(path)) == NULL)
		snprintf(err, err_size, "out of memory");
	else if (open_output(o, err, err_size) == 0)
		return o;
	trace_out_close(o);
	return NULL;
}

struct trace_out *
trace_out_into(int fd, char *err, size_t err_size)
{
	struct trace_out *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	pb_writer_init(&o->batch);
	o->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (o->fd >= 0 && (o->path = strdup("the trace")) != NULL)
		return o;
	snprintf(err, err_size, "cannot write the trace: %s", strerror(errno));
	if (o->fd < 0)
		o->fd = STDOUT_FILENO;
	trace_out_close(o);
	return NULL;
}

void
trace_out_close(struct trace_out *o)
{
	if (o == NULL)
		return;
	if (o->part != NULL)
		unlink(o->part);
	if (o->fd != STDOUT_FILENO)
		close(o->fd);
	pb_writer_done(&o->batch);
	free(o->part);
	free(o->path);
	free(o);
}

static int
flush_batch(struct trace_out *o)
{
	size_t at = 0;
	ssize_t n;

	if (o->batch.failed && o->error == 0)
		o->error = ENOMEM;
	while (o->error == 0 && at < o->batch.len) {
		n = write(o->fd, o->batch.data + at, o->batch.len - at);
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EINTR)
			o->error = errno;
	}
	pb_writer_reset(&o->batch);
	return o->error == 0 ? 0 : -1;
}

int
trace_out_packet(struct trace_out *o, const uint8_t *data, size_t len)
{
	size_t before = o->batch.len;

	pb_put_bytes(&o->batch, Trace_packet, data, len);
	o->bytes += o->batch.len - before;
	return o->batch.len < BATCH && o->error == 0 ? 0 : flush_batch(o);
}

int
trace_out_put(struct trace_out *o, const void *data, size_t len)
{
	pb_put_raw(&o->batch, data, len);
	o->bytes += len;
	return o->batch.len < BATCH && o->error == 0 ? 0 : flush_batch(o);
}

int
trace_out_error(const struct trace_out *o)
{
	return o->error;
}

uint64_t
trace_out_bytes(const struct trace_out *o)
{
	return o->bytes;
}

int
trace_out_patch(struct trace_out *o, uint64_t at, const void *data, size_t len)
{
	ssize_t n;

	if (flush_batch(o) == 0 && (n = pwrite(o->fd, data, len,
	    (off_t)at)) != (ssize_t)len)
		o->error = n < 0 ? errno : EIO;
	return o->error == 0 ? 0 : -1;
}

int
trace_out_finish(struct trace_out *o, char *err, size_t err_size)
{
	(void)flush_batch(o);
	if (o->error == 0 && o->part != NULL && fdatasync(o->fd) < 0 &&
	    errno != EINVAL)
		o->error = errno;
	if (o->error == 0 && o->part != NULL && rename(o->part, o->path) < 0)
		o->error = errno;
	if (o->error != 0)
		return FAILURE(err, err_size, "cannot write %s: %s",
		    strcmp(o->path, "-") == 0 ? "standard output" : o->path,
		    strerror(o->error));
	free(o->part);
	o->part = NULL;
	return 0;
}
