/*
 * sink_path: creates a trace file where a consumer asked for it, and nowhere
 * else.
 *
 * The path comes from a consumer and the directories below may be writable by
 * others, so it is resolved by the kernel beneath the trace directory (openat2)
 * or, on a kernel without that, component by component; links are not followed
 * and `..` is refused, whether it would lead outside or not.
 */
#ifndef SERVICE_SINK_SINK_PATH_H
#define SERVICE_SINK_SINK_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* Long enough for every sentence of this folder. */
#define SINK_ERR_MAX 160

/*
 * A directory that files are made in.  It may be removed and made again,
 * unmounted and mounted, and is looked up by its name each time; where we may
 * not do that (any more), it is the one that was opened.
 */
struct sink_dir {
	const char *path; /* borrowed; NULL: only the descriptor */
	int fd;           /* borrowed, an O_PATH one will do */
	unsigned mode;    /* of the files, whatever the umask is; 0: 0600 */
};

/*
 * Creates path below dir for writing: it must not exist yet, owner uid/gid
 * when we are root and uid is not -1.  May block.
 * Returns the descriptor (close-on-exec), or -1 with a sentence in err; then
 * nothing was created.
 */
int sink_path_create(const struct sink_dir *dir, const char *path, long uid,
    long gid, char *err, size_t err_size) MUST_CHECK;

/*
 * The directory of path, as an O_PATH descriptor, and its last component in
 * *name.  use_openat2 false: as on a kernel without it.  -1: see errno.
 */
int sink_path_open_parent(int dirfd, const char *path, bool use_openat2,
    const char **name) MUST_CHECK;

#endif /* SERVICE_SINK_SINK_PATH_H */
