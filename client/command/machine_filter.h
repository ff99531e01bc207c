/*
 * machine_filter: adds the machines of --machine and --all-machines to a trace
 * config that names none itself.  Pure.
 */
#ifndef CLIENT_COMMAND_MACHINE_FILTER_H
#define CLIENT_COMMAND_MACHINE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;

/* Names on one command line. */
#define MACHINE_FILTER_MAX 64u

struct machine_filter {
	/*
	 * Names or patterns, or "host", the collector's own.  Borrowed.
	 */
	const char *names[MACHINE_FILTER_MAX];
	size_t n_names;
	bool all;
};

/*
 * Appends the encoded config to out, with the machines in every data source.
 * -1 with a sentence in err: the config chooses machines itself, or no memory.
 */
int machine_filter_put(const struct machine_filter *m, const uint8_t *config,
    size_t len, struct pb_writer *out, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_COMMAND_MACHINE_FILTER_H */
