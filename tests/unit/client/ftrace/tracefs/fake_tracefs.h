/*
 * fake_tracefs: a folder with the files of a tracefs that tests need.  Files
 * keep what was written into them last, and lists do not grow.
 */
#ifndef TESTS_UNIT_CLIENT_FTRACE_TRACEFS_FAKE_TRACEFS_H
#define TESTS_UNIT_CLIENT_FTRACE_TRACEFS_FAKE_TRACEFS_H

#include <stddef.h>

/* Path of the folder, until fake_tracefs_remove(). */
const char *fake_tracefs_make(void);
void fake_tracefs_remove(void);
/* Folders on the way are made, too. */
void fake_tracefs_put_bytes(const char *path, const void *data, size_t len);
void fake_tracefs_put(const char *path, const char *text);
/* Fails the test unless the file holds this text. */
void fake_tracefs_holds(const char *path, const char *text);

#endif /* TESTS_UNIT_CLIENT_FTRACE_TRACEFS_FAKE_TRACEFS_H */
