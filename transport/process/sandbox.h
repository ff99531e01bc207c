/*
 * sandbox: drops privileges once the sockets are open: root, and the system
 * calls that a program does not need.
 *
 * Plain system calls on the whole process; knows nothing of loops or settings.
 * Nothing here can be taken back.
 */
#ifndef TRANSPORT_PROCESS_SANDBOX_H
#define TRANSPORT_PROCESS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* Room for any sentence of this module. */
#define SANDBOX_ERROR_SIZE 1024

/*
 * Becomes another user (name or number), with that user's groups, and makes
 * sure that there is no way back: all three uids and gids, no capability left.
 * Does nothing where it is that user already.  To be called while there is
 * one thread.  -1 with a sentence in err: not root, no such user, root itself,
 * or a step failed; the process may then be half-way and should end.
 */
int sandbox_become_user(const char *user, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Checks that the process, as its present user, can read a file.  what: the
 * file's name in the message ("the TLS key").  -1 with a sentence in err that
 * names the file's owner and a remedy.
 */
int sandbox_check_file(const char *what, const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* Checks that files can be created in a directory. */
int sandbox_check_directory(const char *what, const char *path, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Forbids core dumps, and other processes of the same user to trace this one:
 * there are keys and traces in its memory.  -1 with a sentence in err.
 */
int sandbox_memory(char *err, size_t err_size) MUST_CHECK;

/* System calls beside those of a collector. */
enum sandbox_also {
	SANDBOX_NOTHING_ELSE,
	/* Makes connections to other machines. */
	SANDBOX_INTERNET,
	/* Makes them, and writes a SQLite database. */
	SANDBOX_INTERNET_AND_DATABASE,
};

/*
 * Has the C library load the modules that find the addresses of this host,
 * before sandbox_system_calls(): no memory becomes executable later.
 */
void sandbox_load_resolver(const char *host);

/*
 * From now on the process, its threads and its children gain no privileges
 * (no_new_privs) and may only do the system calls that a collector needs, or
 * these and some more (seccomp).  Calls that an attacker would want (execve,
 * ptrace, mount, bpf, modules, ...) kill the process; any other call fails with
 * EPERM.  Sockets that are open already work; new ones are UNIX sockets, unless
 * `also` allows others, and no memory becomes executable.  *filtered false: a
 * build with a sanitizer, which needs more calls; it gets no_new_privs alone,
 * and the log says so.  -1 with a sentence.
 */
int sandbox_system_calls(enum sandbox_also also, bool *filtered, char *err,
    size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_PROCESS_SANDBOX_H */
