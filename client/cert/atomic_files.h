/*
 * atomic_files: several files that appear together, or not at all.
 *
 * Each file is written and synced to disk beside its place first; commit then
 * renames one after the other, in the order in which they were added.  A crash
 * between two renames leaves the first ones new: add first the files that must
 * not be missing.
 */
#ifndef CLIENT_CERT_ATOMIC_FILES_H
#define CLIENT_CERT_ATOMIC_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include "transport/base/compiler.h"

struct atomic_files;

/* Most files in one go. */
#define ATOMIC_FILES_MAX 4096

/* NULL: no memory. */
struct atomic_files *atomic_files_new(void) MUST_CHECK;
/* Removes uncommitted files.  NULL is fine. */
void atomic_files_free(struct atomic_files *s);

/* Borrowed for the call. */
struct atomic_file {
	const char *path;
	const void *data;
	size_t len;
	mode_t mode;
};

/*
 * Writes data for path, with exactly that mode; the file is created with 0600,
 * so that a secret is never readable by others.  -1 with a sentence.
 */
int atomic_files_add(struct atomic_files *s, const struct atomic_file *f,
    char *err, size_t err_size) MUST_CHECK;

/*
 * Puts all files in place, over existing ones.  -1 with a sentence that names a
 * file: that file and all later ones are not in place.
 */
int atomic_files_commit(struct atomic_files *s, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_CERT_ATOMIC_FILES_H */
