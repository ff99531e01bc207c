/*
 * machine_names: what the machine ids of a trace stand for, as the collector
 * said.  Pure.
 */
#ifndef CLIENT_MACHINE_NAMES_H
#define CLIENT_MACHINE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* More names are not kept. */
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
/* The first name of an id stays.  Without memory it has none. */
void machine_names_add(struct machine_names *m, uint32_t id, const char *name);
/* NULL: not known. */
const char *machine_names_find(const struct machine_names *m, uint32_t id);

#endif /* CLIENT_MACHINE_NAMES_H */
