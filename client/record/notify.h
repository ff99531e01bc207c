/*
 * notify: forks into the background, and reports how a recording began: to the
 * parent, the process in front that the user started (-d, -D), and to the
 * reader of --notify-fd.
 *
 * Each gets exactly one byte, an enum record_status.
 */
#ifndef CLIENT_RECORD_NOTIFY_H
#define CLIENT_RECORD_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* Longest start of data sources before RECORD_STATUS_TIMEOUT is sent. */
#define RECORD_NOTIFY_TIMEOUT_MS 30000

/* The byte that is sent; also the exit status of the process in front. */
enum record_status {
	RECORD_STATUS_OK = 0,
	RECORD_STATUS_FAILED = 1,
	RECORD_STATUS_TIMEOUT = 2,
};

struct record_notify {
	int front_fd;        /* pipe to the process in front; -1: none, sent */
	int user_fd;         /* --notify-fd; owned; -1: none, sent */
	bool front_waits_for_start; /* -D; else only for the connection */
};

/* No process in front; takes over user_fd (-1: none). */
void record_notify_init(struct record_notify *n, int user_fd);

/*
 * Forks.  Returns 0 in the child, in a session (setsid(2)) of its own, with
 * standard input and output on /dev/null; standard error follows once the
 * process in front has got its byte.  The process in front never returns: it
 * waits for the byte, prints the child's process id unless the status is
 * FAILED, and exits with the status.  -1 with a sentence in err when it cannot
 * fork.  Call before there is a loop.
 */
int record_notify_background(struct record_notify *n, bool wait_for_start,
    char *err, size_t err_size) MUST_CHECK;

/* Whether the process in front or --notify-fd waits for the start. */
bool record_notify_wants_start(const struct record_notify *n);

/* Reports OK to a process in front that waits only for the connection. */
void record_notify_connected(struct record_notify *n);
/* Reports that all data sources started, or (status not OK) did not in time. */
void record_notify_started(struct record_notify *n, enum record_status status);
/* The end: reports status where nothing was sent; closes the descriptors. */
void record_notify_done(struct record_notify *n, enum record_status status);

#endif /* CLIENT_RECORD_NOTIFY_H */
