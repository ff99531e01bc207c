/* selection_terms: the terms of a catalogue that a name or pattern means. */
#ifndef CLIENT_ARCHIVE_SELECTION_TERMS_H
#define CLIENT_ARCHIVE_SELECTION_TERMS_H

#include <stddef.h>
#include <stdint.h>

#include "client/archive/catalog.h"
#include "transport/base/compiler.h"

/* Zero-initialised is empty. */
struct selection_terms {
	int64_t *ids; /* owned */
	size_t n;
};

/*
 * Reads the terms of a kind.  A process is meant by the last part of its path
 * as well.  -1 with a sentence, and out is empty.
 */
int selection_terms_read(struct selection_terms *out, struct catalog *c,
    enum catalog_kind kind, const char *name, char *err, size_t err_size)
    MUST_CHECK;
void selection_terms_done(struct selection_terms *t);

#endif /* CLIENT_ARCHIVE_SELECTION_TERMS_H */
