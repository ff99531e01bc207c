/*
 * state_dir: the folder of a relay, for what it keeps for its successor, and
 * for the sockets by which its own program finds it.  One relay at a time has
 * it.
 */
#ifndef RELAY_STATE_STATE_DIR_H
#define RELAY_STATE_STATE_DIR_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* Names in the folder. */
#define STATE_DIR_CONTROL "control" /* socket: --status */
#define STATE_DIR_UPLINK  "uplink"  /* socket: --stdio */

/* Room for the path of any of them. */
#define STATE_DIR_PATH_MAX 108

/*
 * Opens the folder, and makes it if it is missing (0700).  Refuses a folder
 * that another user owns or may write to.  Returns a descriptor; -1 with a
 * sentence.
 */
int state_dir_open(const char *path, char *err, size_t err_size) MUST_CHECK;

/*
 * Opens a folder in which no other user can plant files or links: it must be
 * our user's, and writable by no other; a symbolic link to it must be root's or
 * our user's.  Returns a descriptor; -1 with a sentence.  what: the folder's
 * kind for the sentence, such as "state".
 */
int state_dir_open_ours(const char *what, const char *path, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Returns a descriptor that keeps other relays out until it is closed; -1
 * with a sentence that names the one that has it.
 */
int state_dir_lock(int dirfd, const char *path, char *err, size_t err_size)
    MUST_CHECK;

/* Writes the path of a socket in the folder; -1 with a sentence: too long. */
int state_dir_path(char out[STATE_DIR_PATH_MAX], const char *path,
    const char *name, char *err, size_t err_size) MUST_CHECK;

/*
 * Connects to a socket in the folder of a relay that runs; a blocking connect,
 * as the kernel completes it without the relay.  Returns the descriptor; -1
 * with the errno in *error: EACCES where neither root nor our own user listens
 * (unless we are root).
 */
int state_dir_connect(const char *path, const char *name, int *error)
    MUST_CHECK;

#endif /* RELAY_STATE_STATE_DIR_H */
