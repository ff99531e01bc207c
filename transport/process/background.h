/*
 * background: a daemon that leaves its terminal once it serves, as with
 * --background of Perfetto's programs.
 */
#ifndef TRANSPORT_PROCESS_BACKGROUND_H
#define TRANSPORT_PROCESS_BACKGROUND_H

#include <stdio.h>
#include <sys/types.h>

#include "transport/base/compiler.h"

/*
 * Forks, before there are threads.  0: in the child, a session of its own, whose
 * log is held (log.h); *fd is for background_detach().  In the parent: the
 * child; *fd is for background_wait().  -1: neither, and was logged.
 */
pid_t background_fork(int *fd) MUST_CHECK;

/*
 * Waits until the child serves and prints its process id to out, before it logs
 * anything: scripts read the first line, whatever standard error is.  out NULL:
 * prints nothing.  Closes fd.
 * 0, or the status that the child ended with, which has said why on standard
 * error.  Of a child that a signal ended, whose held lines are lost, the signal
 * is logged.
 */
int background_wait(pid_t child, int fd, FILE *out) MUST_CHECK;

/*
 * The child serves: tells the parent, releases the log and leaves the terminal;
 * closes fd.  Standard error stays when it is a file: somebody wants the log
 * there.  The working directory stays too, as socket paths may be relative to it
 * and are removed at the end.
 */
void background_detach(int fd);

#endif /* TRANSPORT_PROCESS_BACKGROUND_H */
