/*
 * tid_set: a set of threads, by their ids; a bit for each id up to the largest.
 */
#ifndef CLIENT_PROBES_TID_SET_H
#define CLIENT_PROBES_TID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids of Linux are below it (PID_MAX_LIMIT); others are in no set. */
#define TID_SET_MAX (1 << 22)

/* Zero-initialised is an empty set. */
struct tid_set {
	uint8_t *bits; /* owned */
	size_t n_bytes;
};

void tid_set_done(struct tid_set *s);
bool tid_set_has(const struct tid_set *s, int32_t tid);
/* Without memory the set stays as it is. */
void tid_set_add(struct tid_set *s, int32_t tid);
void tid_set_remove(struct tid_set *s, int32_t tid);
void tid_set_clear(struct tid_set *s);

#endif /* CLIENT_PROBES_TID_SET_H */
