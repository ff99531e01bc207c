/*
 * text_file: reads a settings file as a whole.
 */
#ifndef PROTOS_TEXT_FILE_H
#define PROTOS_TEXT_FILE_H

#include <stddef.h>

/* Limit of a file's size, in bytes; a larger one is no settings file. */
#define TEXT_FILE_MAX (1u << 20)

/*
 * The file's *len bytes, not terminated, for the caller to free().  NULL with a
 * sentence in err, which begins with the path.
 */
char *text_file_read(const char *path, size_t *len, char *err,
    size_t err_size) __attribute__((__warn_unused_result__));

#endif /* PROTOS_TEXT_FILE_H */
