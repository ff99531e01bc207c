/* shell_word: words of commands that are shown, for people to copy. */
#ifndef CLIENT_TEXT_SHELL_WORD_H
#define CLIENT_TEXT_SHELL_WORD_H

#include <stddef.h>

/*
 * For a line of shell: text as it is where that is safe, else in quotes.
 * Returns out; 4 times the length of text and 3 bytes are enough.
 */
const char *shell_word(const char *text, char *out, size_t out_size);

#endif /* CLIENT_TEXT_SHELL_WORD_H */
