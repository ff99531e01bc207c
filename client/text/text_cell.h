/* text_cell: untrusted text of peers in the tables that commands print. */
#ifndef CLIENT_TEXT_TEXT_CELL_H
#define CLIENT_TEXT_TEXT_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/text/colour.h"

#define TEXT_CELL_MAX 512

/*
 * Copies text to out with control characters escaped and returns out; returns
 * "-" when text is NULL or empty.
 */
const char *text_cell_plain(const char *text, char out[TEXT_CELL_MAX]);

/*
 * As above with less room: longer text is cut between characters, and ends in
 * "...".
 */
const char *text_cell_cut(const char *text, char *out, size_t size);

/* Prints text, spaces up to width columns, and two more between cells. */
void text_cell_put(FILE *out, const char *text, int width);
/* As above, in a colour; coloured: by colour_is_on(). */
void text_cell_put_in(FILE *out, const char *text, int width, bool coloured,
    enum colour c);

/* The larger of width and the columns of text. */
int text_cell_widen(int width, const char *text);

#endif /* CLIENT_TEXT_TEXT_CELL_H */
