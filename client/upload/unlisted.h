/*
 * unlisted: the segments in the store that a shared catalogue has not got yet,
 * remembered in the archive's own catalogue, in a table of this program's.
 *
 * A segment gets there in the transaction that says that the store has it, and
 * leaves once the shared catalogue has it: whatever ends in between, it is
 * listed again, which changes nothing.
 */
#ifndef CLIENT_UPLOAD_UNLISTED_H
#define CLIENT_UPLOAD_UNLISTED_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;

/* All calls: -1 with a sentence. */

/*
 * Makes the table for the shared catalogue of this name: of all that the store
 * has, unless it was made for that one before.  NULL: removes the table.
 */
int unlisted_prepare(struct catalog *c, const char *name, char *err,
    size_t err_size) MUST_CHECK;
int unlisted_add(struct catalog *c, int64_t id, char *err, size_t err_size)
    MUST_CHECK;
/* Reads up to max ids behind the cursor; returns how many. */
int unlisted_next(struct catalog *c, int64_t cursor, int64_t *ids, int max,
    char *err, size_t err_size) MUST_CHECK;
int unlisted_remove(struct catalog *c, int64_t id, char *err, size_t err_size)
    MUST_CHECK;
/* Refused: it waits for unlisted_retry(). */
int unlisted_refuse(struct catalog *c, int64_t id, const char *why, char *err,
    size_t err_size) MUST_CHECK;
int unlisted_retry(struct catalog *c, char *err, size_t err_size) MUST_CHECK;

struct unlisted_count {
	uint64_t waiting, refused;
};
int unlisted_count(struct catalog *c, struct unlisted_count *out, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_UPLOAD_UNLISTED_H */
