/*
 * text_width: columns that UTF-8 takes on a terminal: two for a wide character
 * (Chinese, Japanese, Korean, emoji), none for a combining mark.  A byte that
 * is no UTF-8 counts as one column.  Any locale.
 */
#ifndef CLIENT_TEXT_TEXT_WIDTH_H
#define CLIENT_TEXT_TEXT_WIDTH_H

#include <stddef.h>

int text_width(const char *text);

/*
 * Bytes of the longest beginning of text that takes at most so many columns:
 * whole characters, with the marks that combine with the last one.  *width is
 * set to its columns.
 */
size_t text_width_fit(const char *text, int columns, int *width);

#endif /* CLIENT_TEXT_TEXT_WIDTH_H */
