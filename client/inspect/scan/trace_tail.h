/*
 * trace_tail: reads a file that grows, and waits at its end for more: until
 * SIGINT or SIGTERM, until the reader of our output is gone, or until the file
 * was truncated, replaced or removed.
 *
 * Waits by inotify, and polls the file besides, for file systems that do not
 * notify.  One at a time in a process: it owns the handlers of both signals.
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
 * fd is borrowed; path (borrowed) is the one it was opened by, or NULL.  idle,
 * which may be NULL, is called before each wait, and at most once a second
 * while reading without a wait; it returns false to end the reading.
 */
struct trace_tail *trace_tail_new(int fd, const char *path,
    bool (*idle)(void *arg), void *arg) MUST_CHECK;
/* Gives the signals back, but SIGINT stays ignored after an end by signal. */
void trace_tail_free(struct trace_tail *t);

/* A trace_window_read_fn that blocks until there are bytes; 0: it ended. */
ssize_t trace_tail_read(void *arg, uint8_t *buf, size_t len);

/* "was truncated while it was read"; NULL: no trouble with the file. */
const char *trace_tail_trouble(const struct trace_tail *t);

#endif /* CLIENT_INSPECT_SCAN_TRACE_TAIL_H */
