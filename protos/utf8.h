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
 * utf8_char() of a character that is safe on a terminal; 0 for control
 * characters, C1 ones included, for bidirectional controls, and for invisible
 * characters.
 */
size_t utf8_printable(const char *s, size_t len);

/* ---- untrusted text, in the one form in which it is shown ---- */

#define UTF8_SHOWN 5

/*
 * Writes the first character of s (len bytes, at least 1) to out, with a NUL,
 * where it is printable and not in `also` (ASCII), else its first byte as \xNN.
 * Returns how many bytes of s were used.
 */
size_t utf8_show(const char *s, size_t len, const char *also,
    char out[UTF8_SHOWN]);

/*
 * Writes all of s as by utf8_show(), always with a NUL; a text that does not
 * fit size is cut between characters and ends in "...".  Returns out.
 */
char *utf8_escape(char *out, size_t size, const char *s, size_t len,
    const char *also);

#endif /* PROTOS_UTF8_H */
