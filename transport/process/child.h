/*
 * child: a program of which standard input and output are one end of a socket
 * pair, and standard error is kept for messages: how `ssh` becomes a stream.
 *
 * The other end is a descriptor like any connected socket.  The child gets its
 * own session and process group, and no descriptor but these three (and those
 * in child_setup); child_free() terminates it, and it is always reaped.
 */
#ifndef TRANSPORT_PROCESS_CHILD_H
#define TRANSPORT_PROCESS_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct child;
struct loop;

/* Bytes kept of standard error: the last ones. */
#define CHILD_STDERR_MAX 4096

/* Given to a child beside argv. */
struct child_setup {
	char *const *environment; /* NULL: ours */
	const int *fds;           /* passed on under the same numbers */
	size_t n_fds;
};

/*
 * Starts argv[0] (looked up in PATH) with our environment, default signals and
 * no terminal.  *fd is our end, non-blocking, the caller's.  NULL with a
 * sentence in err.  No SIGCHLD handler is installed.  The child also gets a
 * signal when the thread that called this ends (PR_SET_PDEATHSIG).
 */
struct child *child_new(struct loop *l, char *const argv[], int *fd, char *err,
    size_t err_size) MUST_CHECK;
struct child *child_new_with(struct loop *l, char *const argv[],
    const struct child_setup *setup, int *fd, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Calls fn(arg) once, on a later turn, when the child has ended and its
 * standard error was read, or after within_ms, whichever is first.  Replaces an
 * earlier child_when_ended(); fn NULL: cancels it.
 */
void child_when_ended(struct child *c, unsigned within_ms,
    void (*fn)(void *arg), void *arg);

/*
 * The last CHILD_STDERR_MAX bytes of standard error so far: text, no NUL
 * inside; the child's, until child_free().
 */
const char *child_stderr(const struct child *c);
/*
 * Exit status; 128 + signal; -1: still runs; 255 also when other code in this
 * process reaped the child.
 */
int child_status(const struct child *c);

/*
 * SIGTERM to its process group, SIGKILL after two seconds; the loop reaps the
 * child later, at the latest in loop_free() (which waits for it, half a second
 * at most).  Legal in fn of child_when_ended().  NULL is fine.
 */
void child_free(struct child *c);

#endif /* TRANSPORT_PROCESS_CHILD_H */
