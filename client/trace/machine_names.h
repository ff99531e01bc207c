/*
 * machine_names: names of machines by their ids in a trace, from its SystemInfo
 * packets and, for machines without one, from the collector's state.  Pure.
 */
#ifndef CLIENT_TRACE_MACHINE_NAMES_H
#define CLIENT_TRACE_MACHINE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most names; more are not kept. */
#define MACHINE_NAMES_MAX 16384u

struct machine_name {
	uint32_t id;
	bool seen;  /* a packet of it was */
	char *name; /* owned; NULL: not known */
};

/* Zero-initialised is empty. */
struct machine_names {
	struct machine_name *all; /* owned; ascending by id */
	size_t n;
	size_t cap;
};

/* Frees the names; the table is empty and ready to use again. */
void machine_names_done(struct machine_names *m);
/*
 * Sets the name of an id, from a SystemInfo of the trace; replaces an earlier
 * name.  The name is copied; without memory nothing changes.
 */
void machine_names_put(struct machine_names *m, uint32_t id, const char *name);
/* Sets the name, from another source, of an id that has none yet; copied. */
void machine_names_suggest(struct machine_names *m, uint32_t id,
    const char *name);
/* Notes a packet of this machine. */
void machine_names_see(struct machine_names *m, uint32_t id);
/* Valid until the id's name is set again.  NULL: not known. */
const char *machine_names_find(const struct machine_names *m, uint32_t id);

#endif /* CLIENT_TRACE_MACHINE_NAMES_H */
