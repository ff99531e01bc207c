/*
 * folder_watch: tells of names that may have changed in a tree of folders, by
 * inotify; folders that appear are watched as well.
 *
 * A hint, and no more: the callee looks at the file itself.  A change that is not
 * told by its name is told as the folder that has it, in the end as the whole
 * tree.  Knows no files' contents.
 */
#ifndef CLIENT_ARCHIVER_FOLDER_WATCH_H
#define CLIENT_ARCHIVER_FOLDER_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct folder_watch;
struct loop;

struct folder_watch_setup {
	struct loop *loop;
	const char *root;   /* copied; links to it are followed, others not */
	/*
	 * Whether a file is told, by its path.  Folders whose names begin with a
	 * dot are not looked into.
	 */
	bool (*is_meant)(const char *path);
	/*
	 * path: below the root; "" is the root.  is_folder: anything below may
	 * have changed.
	 */
	void (*changed)(const char *path, bool is_folder, void *arg);
	void *arg;
};

/*
 * Watches all folders that are there; changed() is called for later changes
 * only, on the loop.  NULL with a sentence: the root cannot be watched.
 */
struct folder_watch *folder_watch_new(const struct folder_watch_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
void folder_watch_free(struct folder_watch *w);

/*
 * Number of folders that could not be watched since the tree was last looked
 * through, as a system has a limit of them (fs.inotify.max_user_watches).
 */
size_t folder_watch_unwatched(const struct folder_watch *w);

/* Looks through the tree anew: for folders that could not be watched. */
void folder_watch_again(struct folder_watch *w);

#endif /* CLIENT_ARCHIVER_FOLDER_WATCH_H */
