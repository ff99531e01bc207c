/*
 * background: a daemon that detaches from its terminal once it serves, as with
 * --background of Perfetto's programs.
 */
#ifndef TRANSPORT_PROCESS_BACKGROUND_H
#define TRANSPORT_PROCESS_BACKGROUND_H

#include <stdio.h>
#include <sys/types.h>

#include "transport/base/compiler.h"

/*
 * Forks, before there are threads.  Returns 0 in the child, which has a session
 * (setsid()) of its own and holds its log (log_hold()); *fd is for
 * background_detach().  In the parent returns the child's process id; *fd is
 * for background_wait().  -1: failed, which was logged.
 */
pid_t background_fork(int *fd) MUST_CHECK;

/*
 * Waits until the child serves and prints its process id to out, before the
 * child logs anything, as scripts read the first line even where out and
 * standard error are one file.  out NULL: prints nothing.  Closes fd.
 * Returns 0, or the exit status of a child that failed, which has said why on
 * standard error.  A signal that ended the child is logged, as the lines that
 * the child held are then lost.
 */
int background_wait(pid_t child, int fd, FILE *out) MUST_CHECK;

/*
 * The child serves: tells the parent, releases the log and detaches from the
 * terminal; closes fd.  Standard error stays open when it is a file, for the
 * log.  The working directory stays too, as socket paths may be relative to it
 * and are removed at the end.
 */
void background_detach(int fd);

#endif /* TRANSPORT_PROCESS_BACKGROUND_H */
