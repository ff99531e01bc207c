/*
 * sandbox: what the collector gives up once its sockets are open: root, and
 * the system calls that it does not need.
 *
 * Plain system calls on the whole process; knows nothing of loops or sessions.
 * Nothing here can be taken back.
 */
#ifndef SERVICE_PROCESS_SANDBOX_H
#define SERVICE_PROCESS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct settings;

/* Room for any sentence of this module. */
#define SANDBOX_ERROR_SIZE 1024

/*
 * Becomes another user (name or number), with that user's groups, and makes
 * sure that there is no way back: all three uids and gids, no capability left.
 * Nothing to do where it is that user already.  To be called while there is
 * one thread.  -1 with a sentence: not root, no such user, root itself, or a
 * step failed; the process may then be half-way and should end.
 */
int sandbox_become_user(const char *user, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Whether the process, as who it is now, can read a file again later.  what is
 * how the message names it ("the TLS key").  -1 with a sentence that says whom
 * the file belongs to and what to do.
 */
int sandbox_check_file(const char *what, const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* Checks that files can be created in a directory. */
int sandbox_check_directory(const char *what, const char *path, char *err,
    size_t err_size) MUST_CHECK;

/*
 * No core dumps, and other processes of the same user cannot look into this
 * one: there are keys and traces in its memory.
 */
int sandbox_memory(char *err, size_t err_size) MUST_CHECK;

/*
 * From now on the process, its threads and what they start gain no privileges
 * (no_new_privs) and may only do the system calls that a collector needs
 * (seccomp).  What gives a foothold (execve, ptrace, mount, bpf, modules, ...)
 * kills the process; any other call fails with EPERM.  Sockets that are open
 * already work; new ones are UNIX sockets only, and no memory becomes
 * executable.  *filtered false: a build with a sanitizer, which needs more
 * calls; it gets no_new_privs alone.  -1 with a sentence.
 */
int sandbox_system_calls(bool *filtered, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Confines the process, as far as the settings want it: the user, then that
 * this user can write to trace_dir and read the certificates again, then memory
 * and system calls.  -1 with a sentence: the daemon must not serve.
 */
int sandbox_as_set(const struct settings *s, char *err, size_t err_size)
    MUST_CHECK;

#endif /* SERVICE_PROCESS_SANDBOX_H */
