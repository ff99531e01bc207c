/*
 * program: a program of ours with fail_malloc before it, whose memory the test
 * commands.  What goes wrong fails the test.
 */
#ifndef TESTS_OOM_PROGRAM_H
#define TESTS_OOM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fail_malloc;

struct program {
	pid_t pid; /* 0: not running */
	struct fail_malloc *memory;
	/* What program_settle() found. */
	long bytes;
	int descriptors;
};

/* How it is started. */
struct program_start {
	const char *fail_malloc;   /* the library */
	const char *dir, *name;    /* its control file: dir/name */
	const char *variable;      /* gets the descriptor that hears of it */
	const char *const *argv;
	unsigned long first;       /* the call that fails; 0: none */
};

/* The descriptor to wait at, for program_is_ready(). */
int program_begin(struct program *p, const struct program_start *how);
/* False: it ended instead.  Closes fd. */
bool program_is_ready(int fd);
/* Its exit status; a signal is none. */
int program_wait(struct program *p);
/* Asks for its end, which has to be a good one.  Not running: fine. */
void program_stop(struct program *p);

/*
 * What it holds when nobody is connected.  Waits until all its threads sleep
 * and go on holding the same: what clients left behind is cleared away.
 */
void program_settle(struct program *p);
/*
 * It comes back to what it held then, and so many bytes more at most.  False,
 * with a sentence in err: it does not.
 */
bool program_comes_back(struct program *p, long more, char *err,
    size_t err_size);

#endif /* TESTS_OOM_PROGRAM_H */
