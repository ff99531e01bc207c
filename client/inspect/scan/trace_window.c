#include "client/inspect/scan/trace_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/text/progress.h"

#define FIRST_SIZE (4u << 20)
/* Bytes of one read: they stay in a processor's cache. */
#define PIECE (1u << 20)
/* At most this is moved to the front at each read: the same memory again. */
#define CHEAP_TO_MOVE (64u << 10)

void
trace_window_init(struct trace_window *w, trace_window_read_fn read, void *arg)
{
	memset(w, 0, sizeof(*w));
	w->read = read;
	w->arg = arg;
}

static ssize_t
read_fd(void *arg, uint8_t *buf, size_t len)
{
	return read(*(const int *)arg, buf, len);
}

void
trace_window_init_fd(struct trace_window *w, const int *fd)
{
	trace_window_init(w, read_fd, (void *)(uintptr_t)fd);
}

void
trace_window_done(struct trace_window *w)
{
	free(w->data);
	memset(w, 0, sizeof(*w));
}

/* Room for at least one more byte, of n that are wanted in all. */
static int
make_room(struct trace_window *w, size_t n)
{
	size_t have = w->end - w->start;
	uint8_t *grown;

	if (w->start > 0 && (have < CHEAP_TO_MOVE || w->start + n > w->cap)) {
		memmove(w->data, w->data + w->start, have);
		w->start = 0;
		w->end = have;
	}
	if (w->end < w->cap)
		return 0;
	if (w->cap > SIZE_MAX / 2) {
		errno = ENOMEM;
		return -1;
	}
	have = w->cap == 0 ? FIRST_SIZE : w->cap * 2;
	if ((grown = realloc(w->data, have)) == NULL)
		return -1;
	w->data = grown;
	w->cap = have;
	return 0;
}

int
trace_window_want(struct trace_window *w, size_t n)
{
	size_t room;
	ssize_t got;

	while (w->end - w->start < n && !w->at_end) {
		if (make_room(w, n) < 0)
			return -1;
		room = w->cap - w->end;
		got = w->read(w->arg, w->data + w->end,
		    room < PIECE ? room : PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		w->at_end = got == 0;
		w->end += (size_t)got;
		if (w->progress != NULL)
			progress_show(w->progress, w->offset +
			    (w->end - w->start));
	}
	return 0;
}

const uint8_t *
trace_window_bytes(const struct trace_window *w, size_t *len)
{
	*len = w->end - w->start;
	return w->data + w->start;
}

void
trace_window_skip(struct trace_window *w, size_t n)
{
	w->start += n;
	w->offset += n;
	if (w->start == w->end)
		w->start = w->end = 0;
}
