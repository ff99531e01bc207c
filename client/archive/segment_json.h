/*
 * segment_json: a row of the catalogue, with all that belongs to it, as one line
 * of JSON, and back: the description that lies beside a segment in an object
 * store, from which a catalogue can be made without reading segments.
 *
 * The line has no "pinned", no "local" and nothing of the store.
 */
#ifndef CLIENT_ARCHIVE_SEGMENT_JSON_H
#define CLIENT_ARCHIVE_SEGMENT_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;
struct catalog_stored;

/* The line, the caller's.  NULL with a sentence: no such row, no memory. */
char *segment_json_write(struct catalog *c, int64_t id, char *err,
    size_t err_size) MUST_CHECK;

enum segment_json_put {
	SEGMENT_JSON_FAILED = -1, /* err has a sentence; nothing has changed */
	SEGMENT_JSON_ADDED,       /* a row that is not local */
	SEGMENT_JSON_KNOWN,       /* it was there; `stored` is set now */
	SEGMENT_JSON_OTHER,       /* its path is another file's; no change */
};

/*
 * Puts the row of a line that segment_json_write() made, elsewhere perhaps, with
 * where it is stored.  Input is hostile: what is no description, or names a path
 * outside of an archive, fails.
 */
enum segment_json_put segment_json_put(struct catalog *c, const char *line,
    const struct catalog_stored *stored, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_ARCHIVE_SEGMENT_JSON_H */
