#include "client/trace/trace_follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/trace/trace_summary.h"
#include "transport/base/failure.h"

#define PIECE (256u * 1024u)

struct trace_follow {
	int fd;                        /* borrowed */
	struct trace_summary *summary; /* borrowed */
	uint64_t offset;
	uint8_t piece[PIECE];
};

struct trace_follow *
trace_follow_new(int fd, struct trace_summary *summary)
{
	struct trace_follow *f;

	if ((f = malloc(sizeof(*f))) == NULL)
		return NULL;
	f->fd = fd;
	f->offset = 0;
	f->summary = summary;
	return f;
}

void
trace_follow_free(struct trace_follow *f)
{
	free(f);
}

int
trace_follow_read(struct trace_follow *f, uint64_t max, char *err,
    size_t err_size)
{
	uint64_t end = f->offset + max;
	ssize_t n;

	while (f->offset < end) {
		n = pread(f->fd, f->piece, PIECE, (off_t)f->offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return FAILURE(err, err_size, "reading it back failed: "
			    "%s", strerror(errno));
		if (n == 0)
			return 0;
		if (trace_summary_feed(f->summary, f->piece, (size_t)n, err,
		    err_size) < 0)
			return -1;
		f->offset += (uint64_t)n;
	}
	return 1;
}
