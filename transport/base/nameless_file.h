/*
 * nameless_file: a file for what is in the making, below $TMPDIR or /var/tmp: it
 * has no name, and exists as long as its descriptor.
 */
#ifndef TRANSPORT_BASE_NAMELESS_FILE_H
#define TRANSPORT_BASE_NAMELESS_FILE_H

#include <stddef.h>

#include "transport/base/compiler.h"

/*
 * Returns a descriptor to read and write; -1 with a sentence.  whose: the
 * program, for those who look at its descriptors.
 */
int nameless_file_open(const char *whose, char *err, size_t err_size)
    MUST_CHECK;

#endif /* TRANSPORT_BASE_NAMELESS_FILE_H */
