/*
 * text_file: a settings file as a whole.
 */
#ifndef PROTOS_TEXT_FILE_H
#define PROTOS_TEXT_FILE_H

#include <stddef.h>

/* A settings file that is larger is no settings file. */
#define TEXT_FILE_MAX (1u << 20)

/*
 * All of it, to be freed by free(); *len bytes, not terminated.  NULL with the
 * sentence, which begins with the path, in err.
 */
char *text_file_read(const char *path, size_t *len, char *err,
    size_t err_size) __attribute__((__warn_unused_result__));

#endif /* PROTOS_TEXT_FILE_H */
