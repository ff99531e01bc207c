/*
 * utf8: characters in bytes that may or may not be UTF-8.
 */
#ifndef PROTOS_UTF8_H
#define PROTOS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Bytes of the character at s, 1 to 4; 0 when len is 0 or the bytes are not
 * UTF-8 (overlong forms and surrogates are not).
 */
size_t utf8_char(const char *s, size_t len);

/*
 * The same for a character that is safe to show on a terminal; 0 for control
 * characters, C1 ones included, and for those that turn the direction of
 * writing.
 */
size_t utf8_printable(const char *s, size_t len);

/*
 * Copies s to out, NUL-terminated, with '?' for each byte that is no part of
 * a printable character; what does not fit size (at least 4) is cut off at a
 * character and ends in "...".
 */
void utf8_sanitize(const char *s, size_t len, char *out, size_t size);

#endif /* PROTOS_UTF8_H */
