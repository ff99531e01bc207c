/*
 * top_print: the screen of `tributary top`: a line for each collector, and the
 * tables of all together.  Pure.
 */
#ifndef CLIENT_SHOW_TOP_PRINT_H
#define CLIENT_SHOW_TOP_PRINT_H

#include <stddef.h>
#include <stdio.h>

struct top_model;

struct top_size {
	int width;       /* columns; 0: unlimited */
	size_t height;   /* lines; 0: unlimited */
	const char *end; /* behind each line, but the last of a full screen */
};

/*
 * Prints one screen of n collectors, at least one.  Of several, tables have a
 * column with their names.
 */
void top_print(FILE *out, struct top_model *const *models, size_t n,
    const struct top_size *size);

#endif /* CLIENT_SHOW_TOP_PRINT_H */
