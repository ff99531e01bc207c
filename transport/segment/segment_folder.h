/*
 * segment_folder: opens a folder for segments, and gives them names there.
 *
 * A segment is called NAME.pftrace.part until it is whole.  Each writer in the
 * folder holds a shared lock on its file .writers, so that a process which gets
 * the lock exclusively knows that all parts were left by a crash: the first one
 * that opens the folder closes them at their last whole packet.  Folders for
 * segments may lie in each other: parts are closed where none of those that a
 * part lies in has a writer.
 *
 * The folder may belong to a user who is not trusted: no link is followed, no
 * file is written over, and only files of the owner that have one name are
 * taken for parts.  All calls may block.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_FOLDER_H
#define TRANSPORT_SEGMENT_SEGMENT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/segment/segment_path.h"
#include "transport/sink/sink_path.h"

struct segment_folder;

#define SEGMENT_LOCK_FILE ".writers"

struct segment_folder_options {
	struct sink_owner owner;
	/* Asked while the lock is waited for; NULL: never. */
	bool (*give_up)(void *arg);
	/* Tells of each part that a crash left and is closed; or NULL. */
	void (*recovered)(const char *path, void *arg);
	void *arg;
};

/*
 * Takes fd, a directory that can be read, in every case.  Waits while another
 * process closes parts here.  NULL with a sentence in err.
 */
struct segment_folder *segment_folder_open(int fd,
    const struct segment_folder_options *o, char *err, size_t err_size)
    MUST_CHECK;
void segment_folder_free(struct segment_folder *f);

/*
 * Opens a folder that the user of this process named, and makes it where it is
 * missing: for segment_folder_open().  -1 with a sentence in err.
 */
int segment_folder_of_user(const char *path, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Creates path with ".part" behind it, and the folders that lead there.  Where
 * a file has the name already, path becomes one that none has.  Returns a
 * descriptor for writing, the caller's to close.  -1: errno.
 */
int segment_folder_create(struct segment_folder *f,
    char path[SEGMENT_PATH_MAX]) MUST_CHECK;

/* Opens the part of path again, to append to it.  -1: errno. */
int segment_folder_reopen(struct segment_folder *f, const char *path)
    MUST_CHECK;

/*
 * Gives a part its name; as segment_folder_create() where another file has got
 * that meanwhile.  -1: errno.
 */
int segment_folder_publish(struct segment_folder *f,
    char path[SEGMENT_PATH_MAX]) MUST_CHECK;

/* Removes the part of a segment that has nothing in it. */
void segment_folder_remove(struct segment_folder *f, const char *path);

/* Syncs the directory that path is in, and those up to the folder. */
void segment_folder_sync(struct segment_folder *f, const char *path);
/* Syncs all files and directories of its file system.  -1: errno. */
int segment_folder_sync_all(struct segment_folder *f) MUST_CHECK;

#endif /* TRANSPORT_SEGMENT_SEGMENT_FOLDER_H */
