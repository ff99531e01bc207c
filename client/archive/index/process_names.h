/*
 * process_names: the processes that a trace describes: those of process trees
 * and of the tracks of programs.  Bounded; untrusted input.  Pure.
 */
#ifndef CLIENT_ARCHIVE_INDEX_PROCESS_NAMES_H
#define CLIENT_ARCHIVE_INDEX_PROCESS_NAMES_H

#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"

struct packet_facts;
struct segment_process;

/* Most processes of a segment; further ones are left out. */
#define PROCESS_NAMES_MAX 65536u
/* Longer names are cut. */
#define PROCESS_NAME_MAX  255u

/* Zero-initialised is empty. */
struct process_names {
	struct hash_map all; /* by machine, pid and name; items owned */
};

void process_names_done(struct process_names *p);
/* Takes a packet of any kind.  -1: no memory. */
int process_names_take(struct process_names *p, const struct packet_facts *f)
    MUST_CHECK;
/*
 * Hands the processes over, by machine, pid and name, as an array that the
 * caller frees; a pid that was used twice is there twice.  -1: no memory.
 */
int process_names_list(struct process_names *p, struct segment_process **out,
    size_t *n) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_INDEX_PROCESS_NAMES_H */
