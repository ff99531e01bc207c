/*
 * notify: going into the background, and telling others how a recording
 * began: the process that was put into the background's stead (-d, -D), and
 * the reader of --notify-fd.
 *
 * Each is told once, with one byte.
 */
#ifndef CLIENT_RECORD_NOTIFY_H
#define CLIENT_RECORD_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* Longest start of data sources before "time-out" is told. */
#define RECORD_NOTIFY_TIMEOUT_MS 30000

/* The byte that is told; also the exit status of the process in front. */
enum record_status {
	RECORD_STATUS_OK = 0,
	RECORD_STATUS_FAILED = 1,
	RECORD_STATUS_TIMEOUT = 2,
};

struct record_notify {
	int front_fd;        /* to the process in front; -1: none or told */
	int user_fd;         /* --notify-fd; -1 */
	bool front_waits_for_start; /* -D; else only for the connection */
};

/*
 * Begins with user_fd (-1: none), which is taken over, as the only one to be
 * told.
 */
void record_notify_init(struct record_notify *n, int user_fd);

/*
 * Forks.  Returns 0 in the child, in a session of its own, with standard input
 * and output on /dev/null; standard error stays until the process in front was
 * told.  The process in front never returns: it prints the child's process id
 * once it is told that all is well or timed out, and exits with the status.
 * -1 with a sentence in err when it cannot fork.  Call before there is a loop.
 */
int record_notify_background(struct record_notify *n, bool wait_for_start,
    char *err, size_t err_size) MUST_CHECK;

/* Whether one of them waits for the data sources to start. */
bool record_notify_wants_start(const struct record_notify *n);

/* The collector was reached. */
void record_notify_connected(struct record_notify *n);
/* All data sources started, or (status not OK) will not. */
void record_notify_started(struct record_notify *n, enum record_status status);
/* The end: tells status where nothing was told; closes the descriptors. */
void record_notify_done(struct record_notify *n, enum record_status status);

#endif /* CLIENT_RECORD_NOTIFY_H */
