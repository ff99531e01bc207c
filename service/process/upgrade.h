/*
 * upgrade: how the daemon becomes another version of itself.  First the program
 * that would take its place tries its settings and sockets, as a child beside
 * us that is shown both (`--check-config`, service/front/handover.h); then,
 * when sessions have ended and everything is closed but the sockets that are
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
	char *path;  /* of the program; NULL: nobody knows */
	char **argv; /* of the one that runs; not argv[0] but path is executed */
	int argc;
};

/*
 * To be called before the working directory changes.  The program is found
 * where this one was started from, so that a link that shows to a new version
 * is followed.
 */
void successor_init(struct successor *s, int argc, char **argv);
void successor_done(struct successor *s);

/* A trial takes no longer than that. */
#define UPGRADE_TRIAL_MS 10000u

struct upgrade_answer {
	/* why is NULL when the program would serve, else a sentence. */
	void (*told)(void *arg, const char *why);
	void *arg;
};

/*
 * Starts the trial, which is answered once, on a later turn.  NULL with a
 * sentence in err.
 */
struct upgrade *upgrade_try(struct loop *l, const struct successor *s,
    const struct handover *h, const struct upgrade_answer *answer, char *err,
    size_t err_size) MUST_CHECK;
/* Legal in told.  NULL is fine. */
void upgrade_free(struct upgrade *u);

/*
 * Signals that would end a process that does not know what they mean yet wait,
 * over upgrade_become(), until upgrade_let_signals_in().
 */
void upgrade_hold_signals(void);
void upgrade_let_signals_in(void);

/*
 * Becomes the program, or when that is gone meanwhile the one that runs.
 * Returns only when neither can be: a sentence in err.
 */
void upgrade_become(const struct successor *s, const struct handover *h,
    char *err, size_t err_size);

#endif /* SERVICE_PROCESS_UPGRADE_H */
