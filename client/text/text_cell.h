/* text_cell: untrusted text of peers in the tables that commands print. */
#ifndef CLIENT_TEXT_TEXT_CELL_H
#define CLIENT_TEXT_TEXT_CELL_H

#include <stdio.h>

#define TEXT_CELL_MAX 512

/*
 * Copies text to out with control characters escaped and returns out; returns
 * "-" when text is NULL or empty.
 */
const char *text_cell_plain(const char *text, char out[TEXT_CELL_MAX]);

/* Prints text, spaces up to width, and two more between columns. */
void text_cell_put(FILE *out, const char *text, int width);

/* The larger of width and the columns of text. */
int text_cell_widen(int width, const char *text);

#endif /* CLIENT_TEXT_TEXT_CELL_H */
