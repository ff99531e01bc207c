/*
 * text_error: an error in a text: its line and column, and a sentence about it.
 */
#ifndef PROTOS_TEXT_ERROR_H
#define PROTOS_TEXT_ERROR_H

#include <stddef.h>

/* Sizes of an error's parts and of a formatted error, NUL included. */
#define TEXT_ERROR_WORD_SIZE    64
#define TEXT_ERROR_MESSAGE_SIZE 320
#define TEXT_ERROR_FORMAT_SIZE  1024

/*
 * The strings are valid UTF-8 without control characters: safe to print,
 * whatever the text was.
 */
struct text_error {
	unsigned line;   /* 1 is the first; 0: about the text as a whole */
	unsigned column; /* in characters, a tab is one; 1 is the first */
	char word[TEXT_ERROR_WORD_SIZE]; /* offending, may be cut; or "" */
	char message[TEXT_ERROR_MESSAGE_SIZE];
};

/*
 * Writes the error for people, as compilers do (no newline at its end):
 *
 *	FILE:LINE:COLUMN: error: what is wrong
 *	the line of text
 *	     ^
 *
 * text and len are those that were parsed; file is their name in the message.
 * Cut to size, for which TEXT_ERROR_FORMAT_SIZE is enough, and always
 * NUL-terminated.
 */
void text_error_format(const struct text_error *err, const char *file,
    const char *text, size_t len, char *out, size_t size);

#endif /* PROTOS_TEXT_ERROR_H */
