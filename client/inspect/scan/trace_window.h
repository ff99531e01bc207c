/*
 * trace_window: buffered look-ahead over a file or pipe: a window of bytes that
 * slides forward and grows as wide as asked for.  Knows nothing of traces.
 */
#ifndef CLIENT_INSPECT_SCAN_TRACE_WINDOW_H
#define CLIENT_INSPECT_SCAN_TRACE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/base/compiler.h"

struct progress;

/* Reads like read(2): bytes stored, 0 at the end, -1 with errno. */
typedef ssize_t (*trace_window_read_fn)(void *arg, uint8_t *buf, size_t len);

struct trace_window {
	trace_window_read_fn read;
	void *arg;
	uint8_t *data; /* owned */
	size_t cap, start, end;
	uint64_t offset; /* of the window's first byte, in the file */
	bool at_end;     /* the window reaches to the end of the file */
	/* Shown the bytes that were read; NULL: none.  Borrowed. */
	struct progress *progress;
};

void trace_window_init(struct trace_window *w, trace_window_read_fn read,
    void *arg);
/* Reads a descriptor; *fd is borrowed until trace_window_done(). */
void trace_window_init_fd(struct trace_window *w, const int *fd);
void trace_window_done(struct trace_window *w);

/*
 * Widens the window to n bytes, or to the end of the file.  Memory grows with
 * the bytes read, not with n.  -1 with errno: unreadable, or no memory.
 */
int trace_window_want(struct trace_window *w, size_t n) MUST_CHECK;
/* Bytes in the window; borrowed until the next trace_window_want(). */
const uint8_t *trace_window_bytes(const struct trace_window *w, size_t *len);
/* Slides the window over its first n bytes. */
void trace_window_skip(struct trace_window *w, size_t n);

#endif /* CLIENT_INSPECT_SCAN_TRACE_WINDOW_H */
