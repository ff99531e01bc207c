/*
 * machine_names: what the machine ids of a trace stand for: its SystemInfo
 * packets, and until there is one, what the collector's state said.  Pure.
 */
#ifndef CLIENT_TRACE_MACHINE_NAMES_H
#define CLIENT_TRACE_MACHINE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Most names; more are not kept. */
#define MACHINE_NAMES_MAX 16384u

struct machine_name {
	uint32_t id;
	char *name;
};

/* Zero-initialised is empty. */
struct machine_names {
	struct machine_name *all;
	size_t n;
	size_t cap;
};

void machine_names_done(struct machine_names *m);
/*
 * Takes a name from a SystemInfo of the trace: the last one of an id wins.
 * Without memory nothing changes.
 */
void machine_names_put(struct machine_names *m, uint32_t id, const char *name);
/* Takes a name from elsewhere: for an id that has no name yet. */
void machine_names_suggest(struct machine_names *m, uint32_t id,
    const char *name);
/* NULL: not known. */
const char *machine_names_find(const struct machine_names *m, uint32_t id);

#endif /* CLIENT_TRACE_MACHINE_NAMES_H */
