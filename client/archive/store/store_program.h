/*
 * store_program: what is in an object store, through the program
 * tributary-upload, which alone knows HTTP and the keys of a store.
 *
 * The program is looked up in PATH; what it has to say about a failure it says
 * on standard error by itself.  Blocks.
 */
#ifndef CLIENT_ARCHIVE_STORE_STORE_PROGRAM_H
#define CLIENT_ARCHIVE_STORE_STORE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Line of --help for the flag that gives `settings`. */
#define STORE_PROGRAM_HELP                                                    \
    "      --store FILE  settings of tributary-upload, for its endpoint and\n" \
    "                    keys; default: $TRIBUTARY_STORE, else Amazon's store\n" \
    "                    and the keys of the environment\n"

/*
 * Makes a file without a name of the object, below $TMPDIR or /var/tmp, which
 * exists as long as the descriptor.  settings: a file, or NULL for the default;
 * sha256: what the bytes must have.  tick is called a few times a second with
 * the bytes that are there.  Returns the descriptor; -1 with a sentence.
 */
int store_program_get(const char *settings, const char *url,
    const uint8_t *sha256, size_t sha256_len,
    void (*tick)(void *arg, uint64_t bytes), void *arg, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Calls fn with each line of `tributary-upload --descriptions` for a place
 * "s3://bucket/prefix".  fn returns -1 with a sentence in err to end it.  -1
 * with a sentence; fn may have been called.
 */
int store_program_each(const char *settings, const char *url,
    int (*fn)(void *arg, const char *line, char *err, size_t err_size),
    void *arg, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_STORE_STORE_PROGRAM_H */
