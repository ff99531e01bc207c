/*
 * source_details: the categories in a data source's descriptor, for people.
 * Pure but for printing.
 */
#ifndef CLIENT_SHOW_SOURCE_DETAILS_H
#define CLIENT_SHOW_SOURCE_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct Perfetto__Protos__DataSourceDescriptor;

/* A category of track events, or of Android's atrace. */
struct source_category {
	const char *name; /* may be NULL; untrusted text, as the others */
	const char *description;
	char **tags;
	size_t n_tags;
};

size_t source_details_n_categories(
    const struct Perfetto__Protos__DataSourceDescriptor *d);
/* i is below their number; borrowed from d. */
struct source_category source_details_category(
    const struct Perfetto__Protos__DataSourceDescriptor *d, size_t i);

/*
 * Prints the names of the categories in a row, cut to about columns (0: all of
 * them).  false: there are none, and nothing is printed.
 */
bool source_details_categories(FILE *out,
    const struct Perfetto__Protos__DataSourceDescriptor *d, int columns);

#endif /* CLIENT_SHOW_SOURCE_DETAILS_H */
