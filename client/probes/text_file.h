/*
 * text_file: reads the kernel's small files, again and again into the same
 * memory.
 */
#ifndef CLIENT_PROBES_TEXT_FILE_H
#define CLIENT_PROBES_TEXT_FILE_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* Bytes of a file that are read; the rest is ignored. */
#define TEXT_FILE_MAX (4u * 1024u * 1024u)

struct text {
	char *data; /* owned; not terminated */
	size_t len;
	size_t room;
};

void text_init(struct text *t);
void text_done(struct text *t);

/*
 * Reads the whole file from its beginning, replacing the text.  0, or -1 with
 * errno set and the text empty.
 */
int text_read_fd(struct text *t, int fd) MUST_CHECK;
/* Reads a file below dir (or AT_FDCWD). */
int text_read_at(struct text *t, int dir, const char *path) MUST_CHECK;

#endif /* CLIENT_PROBES_TEXT_FILE_H */
