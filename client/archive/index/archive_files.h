/*
 * archive_files: which files of a folder are segments, and the marks of those
 * that are pinned.
 *
 * A segment is a regular file NAME.pftrace or NAME.perfetto-trace whose path has
 * no hidden part; links are not followed.  A mark is an empty file with
 * ".pinned" behind the segment's name: so a pin outlives the catalogue.
 */
#ifndef CLIENT_ARCHIVE_INDEX_ARCHIVE_FILES_H
#define CLIENT_ARCHIVE_INDEX_ARCHIVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;
struct stat;

#define ARCHIVE_PIN_SUFFIX ".pinned"

struct archive_file {
	char *path; /* below the folder; owned */
	uint64_t bytes;
	int64_t mtime_ns;
};

struct archive_files {
	struct archive_file *all; /* owned; by path */
	size_t n;
	size_t cap;
	/* Folders that cannot be read; the first one's path, owned, and errno. */
	size_t n_unread;
	char *unread;
	int unread_error;
};

/* The time of change in nanoseconds; 0: beyond what can be said. */
int64_t archive_files_mtime(const struct stat *st);

/*
 * fd: the folder.  A folder below it that cannot be read is no failure.  -1
 * with a sentence in err.
 */
int archive_files_list(struct archive_files *out, int fd, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Lists the files that the catalogue has in the folder, as it has them: copied,
 * so that rows may be changed meanwhile.  -1 with a sentence.
 */
int archive_files_catalogued(struct archive_files *out, struct catalog *c,
    char *err, size_t err_size) MUST_CHECK;
void archive_files_done(struct archive_files *f);

bool archive_files_is_pinned(int fd, const char *path);
/* Sets or removes the mark, on the disk when this returns. */
int archive_files_pin(int fd, const char *path, bool pinned, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_INDEX_ARCHIVE_FILES_H */
