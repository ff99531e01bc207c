/*
 * trace_tail: reads a file that grows, and waits at its end for more: until a
 * signal comes (SIGINT, SIGTERM), whoever reads our output went away, or the
 * file is no longer the one it was.
 *
 * Waits for the kernel's word (inotify) and looks once a second besides, for
 * file systems that give none.  One at a time: it owns the two signals.
 */
#ifndef CLIENT_INSPECT_SCAN_TRACE_TAIL_H
#define CLIENT_INSPECT_SCAN_TRACE_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/base/compiler.h"

struct trace_tail;

/*
 * fd is borrowed; path (borrowed) is where it was opened, or NULL.  idle, which
 * may be NULL, is called before each wait, and at most once a second while
 * there is none; it returns false where nothing more is wanted.
 */
struct trace_tail *trace_tail_new(int fd, const char *path,
    bool (*idle)(void *arg), void *arg) MUST_CHECK;
void trace_tail_free(struct trace_tail *t);

/* A trace_window_read_fn; arg is the trace_tail. */
ssize_t trace_tail_read(void *arg, uint8_t *buf, size_t len);

/* "was truncated while it was read"; NULL where it ended as it should. */
const char *trace_tail_trouble(const struct trace_tail *t);

#endif /* CLIENT_INSPECT_SCAN_TRACE_TAIL_H */
