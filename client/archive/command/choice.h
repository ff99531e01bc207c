/* choice: the segments that a command of `tributary archive` is told. */
#ifndef CLIENT_ARCHIVE_COMMAND_CHOICE_H
#define CLIENT_ARCHIVE_COMMAND_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/segment_entry.h"
#include "transport/base/compiler.h"

struct archive_open;

/* A row, copied: it outlives the walk. */
struct chosen {
	int64_t id;
	char *path; /* owned */
	uint64_t bytes;
	uint8_t sha256[SEGMENT_SHA256];
	bool local, pinned, stored;
};

struct choice {
	struct chosen *all; /* owned */
	size_t n, max;
};

/* -1: it cannot be asked, or there is none like that; told on stderr. */
int choice_make(struct choice *out, const struct archive_open *a) MUST_CHECK;
void choice_done(struct choice *c);

#endif /* CLIENT_ARCHIVE_COMMAND_CHOICE_H */
