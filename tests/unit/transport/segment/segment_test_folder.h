/*
 * segment_test_folder: a folder that a test writes segments in, and what is in
 * it afterwards.
 */
#ifndef TESTS_UNIT_SEGMENT_TEST_FOLDER_H
#define TESTS_UNIT_SEGMENT_TEST_FOLDER_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct segment_folder;
struct segment_folder_options;

/* A new folder, and everything in it removed at the end.  Fail the test. */
void test_folder_make(char path[PATH_MAX]);
void test_folder_remove(const char *path);

/* The folder as segment_folder_open() gives it; o NULL: with all defaults. */
struct segment_folder *test_folder_open(const char *path,
    const struct segment_folder_options *o);

/* Contents of a file, malloc()ed; NULL: there is none. */
uint8_t *test_folder_read(const char *folder, const char *name, size_t *len);
void test_folder_write(const char *folder, const char *name, const void *data,
    size_t len);
/* Mode of a file or folder; 0: there is none. */
unsigned test_folder_mode(const char *folder, const char *name);

/* A Trace.packet with n bytes of payload, whose first says which it is. */
size_t test_packet(uint8_t *out, size_t n, uint8_t which);

#endif /* TESTS_UNIT_SEGMENT_TEST_FOLDER_H */
