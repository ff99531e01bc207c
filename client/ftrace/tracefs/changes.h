/*
 * changes: files of tracefs that were changed, with the values that they had,
 * so that all of it can be put back: at the end, or after this process was
 * killed, by the next one.
 *
 * For the next one the old values also are in a file below /run, each before
 * its file is changed.  Like the kernel's settings it does not outlive a
 * reboot.  The caller holds tracefs_lock().
 */
#ifndef CLIENT_FTRACE_TRACEFS_CHANGES_H
#define CLIENT_FTRACE_TRACEFS_CHANGES_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct changes;
struct tracefs;

/*
 * Path of the file, in a folder that only this process's user can write: that of
 * the unit (RUNTIME_DIRECTORY), /run/tributary-probes, made if need be, or that
 * of the user (XDG_RUNTIME_DIR).  -1: there is none.
 */
int changes_path(char *path, size_t size) MUST_CHECK;

/*
 * t and path are borrowed; path NULL: nothing is kept for the next process.
 * NULL: no memory.
 */
struct changes *changes_new(struct tracefs *t, const char *path) MUST_CHECK;
/* Puts nothing back. */
void changes_free(struct changes *c);

/*
 * Puts back what an earlier process left.  The number of files put back; 0 when
 * it left nothing, -1 when its notes cannot be read (errno).  One that could not
 * be put back is in failed, which is empty otherwise.
 */
int changes_recover(struct changes *c, char *failed, size_t size) MUST_CHECK;

/*
 * Writes the value, and remembers the one before if the path is changed for the
 * first time.  -1, with errno: the file has its value still.
 */
int changes_set(struct changes *c, const char *path, const char *value)
    MUST_CHECK;
/* Makes an instance, which is removed when all is put back. */
int changes_make_instance(struct changes *c, const char *path) MUST_CHECK;
/* Puts one file back; without effect on one that was not changed. */
void changes_undo(struct changes *c, const char *path);
/*
 * Puts everything back, the last change first, and forgets it.  The number of
 * files that could not be put back; the name of one is in failed.
 */
unsigned changes_undo_all(struct changes *c, char *failed, size_t size);
/*
 * Puts back the files of one instance alone, prefix being "instances/NAME/", or,
 * with "", all that lie in no instance.
 */
unsigned changes_undo_below(struct changes *c, const char *prefix,
    char *failed, size_t size);
/* -1: a process that is killed leaves its changes (errno at its first note). */
int changes_noted(const struct changes *c);

#endif /* CLIENT_FTRACE_TRACEFS_CHANGES_H */
