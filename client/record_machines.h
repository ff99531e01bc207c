/*
 * record_machines: says in a trace config which machines are recorded, for
 * those that say nothing about it (--machine, --all-machines).  Pure.
 */
#ifndef CLIENT_RECORD_MACHINES_H
#define CLIENT_RECORD_MACHINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct pb_writer;

/* Names on one command line. */
#define RECORD_MACHINES_MAX 64u

struct record_machines {
	/*
	 * Names or patterns, or "host", the collector's own.  Borrowed.
	 */
	const char *names[RECORD_MACHINES_MAX];
	size_t n_names;
	bool all;
};

/*
 * Appends the encoded config to out, with the machines in every data source.
 * -1 with a sentence in err: the config says itself which, or no memory.
 */
int record_machines_put(const struct record_machines *m, const uint8_t *config,
    size_t len, struct pb_writer *out, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_RECORD_MACHINES_H */
