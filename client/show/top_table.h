/*
 * top_table: a table of text on a screen of any width.  Where the screen is too
 * narrow, columns are left out by rank, and then the first one is cut.  Pure.
 */
#ifndef CLIENT_SHOW_TOP_TABLE_H
#define CLIENT_SHOW_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/text/colour.h"

#define TOP_CELL        64
#define TOP_MAX_COLUMNS 13u
/* Most rows; of more the heaviest are kept, and all are counted. */
#define TOP_MAX_ROWS    512u

struct top_column {
	const char *title;
	int rank;   /* the highest rank is left out first */
	bool right; /* aligned to the right, as numbers are */
};

struct top_row {
	double weight; /* sort key: the heaviest on top */
	char cells[TOP_MAX_COLUMNS][TOP_CELL];
	enum colour colours[TOP_MAX_COLUMNS];
};

/* Zero-initialised with columns set is ready to use. */
struct top_table {
	const char *title;
	const struct top_column *columns; /* borrowed */
	size_t n_columns;
	bool coloured; /* else colours are not printed */
	struct top_row *rows; /* owned */
	size_t n_rows;
	size_t all; /* rows added, also those not kept */
};

void top_table_done(struct top_table *t);
void top_table_clear(struct top_table *t);
/*
 * Adds a row of empty cells, for the caller to fill; owned by t.  A full table
 * gives up its lightest row.  NULL: no row is lighter, or no memory.
 */
struct top_row *top_table_add(struct top_table *t, double weight);
/* Heaviest first, equal ones by their first cell. */
void top_table_sort(struct top_table *t);

/*
 * Copies untrusted text, without control sequences, cut to a cell with "...".
 * Returns out.
 */
char *top_cell(char out[TOP_CELL], const char *text);

/*
 * Prints a title line and up to max_rows lines (0: nothing at all), the last of
 * them "... and N more" where rows are left out.  width 0: unlimited.  end goes
 * behind each line.  Returns the lines printed.
 */
size_t top_table_print(FILE *out, const struct top_table *t, int width,
    size_t max_rows, const char *end);

#endif /* CLIENT_SHOW_TOP_TABLE_H */
