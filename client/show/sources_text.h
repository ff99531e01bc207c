/*
 * sources_text: the data sources that a service knows, by machine and
 * producer, printed for people or as JSON.
 */
#ifndef CLIENT_SHOW_SOURCES_TEXT_H
#define CLIENT_SHOW_SOURCES_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "client/command/command_line.h"

struct Perfetto__Protos__TracingServiceState;

/*
 * Patterns ("robot-*") to select data sources by; none of a kind: all.  Machine
 * "host" is the collector's own.
 */
struct sources_filter {
	const char *const *names; /* of data sources */
	size_t n_names;
	const char *const *machines;
	size_t n_machines;
};

/* Returns how many data sources were printed. */
size_t sources_print(FILE *out,
    const struct Perfetto__Protos__TracingServiceState *state,
    const struct sources_filter *filter, enum list_form form);

#endif /* CLIENT_SHOW_SOURCES_TEXT_H */
