/*
 * clock_name: clocks and times of a trace as people write and read them.  Pure.
 */
#ifndef CLIENT_CLOCK_CLOCK_NAME_H
#define CLIENT_CLOCK_CLOCK_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct clock_key;

#define CLOCK_NAME_MAX 64

/* "BOOTTIME", "64@7" (of sequence 7), "128"; not its machine.  Returns out. */
char *clock_name(char out[CLOCK_NAME_MAX], const struct clock_key *k);
/*
 * The other way; len: of text.  -1 with a sentence in err.  The machine is left
 * at 0.
 */
int clock_name_parse(struct clock_key *out, const char *text, size_t len,
    char *err, size_t err_size) MUST_CHECK;

/* "12.000000345", "-0.000000001".  Returns out. */
char *clock_seconds(char out[CLOCK_NAME_MAX], int64_t ns);

#endif /* CLIENT_CLOCK_CLOCK_NAME_H */
