/*
 * tracefs: the file system by which the kernel's tracer is set and read.
 *
 * Paths are relative to its root, those of an instance begin with
 * "instances/NAME/".  Knows nothing of sessions, and remembers nothing of what
 * it writes (changes.h does).
 */
#ifndef CLIENT_FTRACE_TRACEFS_TRACEFS_H
#define CLIENT_FTRACE_TRACEFS_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct tracefs;

#define TRACEFS_WHY_MAX  512u
#define TRACEFS_PATH_MAX 512u
#define TRACEFS_CPUS_MAX 4096u

/*
 * Opens the tracefs at root, or, with NULL, where it usually is.  NULL: there
 * is none (errno ENOENT), or no right to use it; why is a sentence that says
 * what to do.
 */
struct tracefs *tracefs_open(const char *root, char why[TRACEFS_WHY_MAX])
    MUST_CHECK;
/* Gives up the lock, too.  NULL is fine. */
void tracefs_close(struct tracefs *t);
const char *tracefs_root(const struct tracefs *t);

/*
 * Keeps other programs of ours from changing the kernel's tracer while we do,
 * until tracefs_unlock(): two of them would take each other's events.  The lock
 * ends with the process.  False: another process has it; why is a sentence.
 */
bool tracefs_lock(struct tracefs *t, char why[TRACEFS_WHY_MAX]) MUST_CHECK;
void tracefs_unlock(struct tracefs *t);

/*
 * The whole file, terminated; *len, which may be NULL, is its length.  To be
 * free()d.  NULL: errno says why.
 */
char *tracefs_read(const struct tracefs *t, const char *path, size_t *len)
    MUST_CHECK;
/* In place of what the file holds, where it is a list.  -1: errno says why. */
int tracefs_write(const struct tracefs *t, const char *path, const char *text)
    MUST_CHECK;
/* -1, and errno, as open(). */
int tracefs_open_file(const struct tracefs *t, const char *path, int flags)
    MUST_CHECK;
bool tracefs_exists(const struct tracefs *t, const char *path);

/*
 * Value that a file has now, as it can be written back: the word in brackets
 * where the file offers a choice ("local [global] boot"), else its lines with
 * blanks between them, without remarks of the kernel's ("7 (expanded: 1408)",
 * "none").  To be free()d.  NULL: errno says why.
 */
char *tracefs_value(const struct tracefs *t, const char *path) MUST_CHECK;
/* Whether a file that offers a choice has this word. */
bool tracefs_offers(const struct tracefs *t, const char *path,
    const char *word);

/*
 * Number of processors below prefix ("" or "instances/NAME/"), offline ones
 * included.  0: per_cpu cannot be read.
 */
unsigned tracefs_cpus(const struct tracefs *t, const char *prefix);

/* Makes or removes an instance.  -1: errno says why. */
int tracefs_make_instance(const struct tracefs *t, const char *path)
    MUST_CHECK;
int tracefs_remove_instance(const struct tracefs *t, const char *path)
    MUST_CHECK;

/*
 * Calls fn for each event whose group and name fit the patterns (glob.h), in no
 * order.  The number of calls.
 */
size_t tracefs_each_event(const struct tracefs *t, const char *prefix,
    const char *group, const char *name,
    void (*fn)(void *arg, const char *group, const char *name), void *arg);

#endif /* CLIENT_FTRACE_TRACEFS_TRACEFS_H */
