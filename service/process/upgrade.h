/*
 * upgrade: replaces the daemon by another version of its program.  First the
 * new program tries the settings and the sockets, as a child process that
 * inherits both (`--check-config`, service/front/handover.h); then, when
 * sessions have ended and everything is closed but the sockets that are
 * listened on, it is executed in this process.
 */
#ifndef SERVICE_PROCESS_UPGRADE_H
#define SERVICE_PROCESS_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct handover;
struct loop;
struct upgrade;

/* The program to be started: borrowed, but for the path. */
struct successor {
	char *path;  /* of the program, owned; NULL: unknown */
	char **argv; /* this process's; path is executed, not argv[0] */
	int argc;
};

/*
 * To be called before the working directory changes.  The path is the one that
 * this program was started by, so that a symbolic link to a new version is
 * followed.
 */
void successor_init(struct successor *s, int argc, char **argv);
void successor_done(struct successor *s);

/* Time-out of a trial. */
#define UPGRADE_TRIAL_MS 10000u

struct upgrade_answer {
	/* why: NULL when the program would serve, else a borrowed sentence. */
	void (*told)(void *arg, const char *why);
	void *arg;
};

/*
 * Starts the trial, which is answered once, on a later turn.  s and h are
 * borrowed for this call, answer is copied.  NULL with a sentence in err.
 */
struct upgrade *upgrade_try(struct loop *l, const struct successor *s,
    const struct handover *h, const struct upgrade_answer *answer, char *err,
    size_t err_size) MUST_CHECK;
/* Ends a trial without an answer; legal in told().  NULL is fine. */
void upgrade_free(struct upgrade *u);

/*
 * Blocks the daemon's signals, whose default is to end the process: they stay
 * pending over upgrade_become() until the new program, which has handlers by
 * then, calls upgrade_let_signals_in().
 */
void upgrade_hold_signals(void);
void upgrade_let_signals_in(void);

/*
 * Executes the new program or, when that fails, the running one again, with the
 * sockets of h.  Returns only when neither can be executed: a sentence in err.
 */
void upgrade_become(const struct successor *s, const struct handover *h,
    char *err, size_t err_size);

#endif /* SERVICE_PROCESS_UPGRADE_H */
