/*
 * sink_path: creates a trace file where a consumer asked for it, and nowhere
 * else.
 *
 * The path comes from a consumer and the directories below may be writable by
 * others, so it is resolved by the kernel beneath the trace directory (openat2)
 * or, on a kernel without that, component by component; links are not followed
 * and `..` is refused, whether it would lead outside or not.
 */
#ifndef TRANSPORT_SINK_SINK_PATH_H
#define TRANSPORT_SINK_SINK_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* Bytes that are enough for every sentence of this folder. */
#define SINK_ERR_MAX 160

/*
 * A directory that files are created in.  As it may be removed and made again,
 * or unmounted and mounted, path is opened anew for each file; where the
 * process has no permission for that (any more), fd is used.
 */
struct sink_dir {
	const char *path; /* borrowed; NULL: only the descriptor */
	int fd;           /* borrowed, an O_PATH one will do */
	unsigned mode;    /* of the files, whatever the umask is; 0: 0600 */
};

/*
 * Creates path below dir for writing: it must not exist yet, and is given to
 * uid/gid where the process is root and uid is not -1.  May block.
 * Returns the descriptor (close-on-exec), the caller's to close; or -1 with a
 * sentence in err, and no file is left.
 */
int sink_path_create(const struct sink_dir *dir, const char *path, long uid,
    long gid, char *err, size_t err_size) MUST_CHECK;

/* Mode and owner of new files, and from these of new folders. */
struct sink_owner {
	unsigned mode; /* of files, whatever the umask is; 0: 0600 */
	long uid, gid; /* where the process is root; -1: as it is */
};

/*
 * Opens the folder `path` below dir (NULL or "": dir itself) and makes those
 * folders of the path that are missing: for all who may read its files.  Same
 * rules as above.  Returns a descriptor that can be read, the caller's to
 * close; or -1 with a sentence in err.
 */
int sink_path_open_folder(const struct sink_dir *dir, const char *path,
    const struct sink_owner *owner, char *err, size_t err_size) MUST_CHECK;

/*
 * Opens the directory of path, below the folder dirfd, as
 * sink_path_open_parent() does, and makes it where it is missing.  -1: see
 * errno.
 */
int sink_path_make_parent(int dirfd, const char *path,
    const struct sink_owner *owner, const char **name) MUST_CHECK;

/*
 * Creates `name` in the directory dirfd, for writing; it must not exist yet.
 * The caller's to close.  -1: see errno; then no file is left.
 */
int sink_path_create_at(int dirfd, const char *name,
    const struct sink_owner *owner) MUST_CHECK;

/* Text for errno after a path was not opened or created. */
const char *sink_path_error(int e);

/*
 * Opens the directory of path.  Returns an O_PATH descriptor, the caller's to
 * close, and the last component in *name, which points into path.  use_openat2
 * false: as on a kernel without it.  -1: see errno.
 */
int sink_path_open_parent(int dirfd, const char *path, bool use_openat2,
    const char **name) MUST_CHECK;

#endif /* TRANSPORT_SINK_SINK_PATH_H */
