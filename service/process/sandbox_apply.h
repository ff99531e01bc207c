/*
 * sandbox_apply: confines the collector as its settings want it.
 */
#ifndef SERVICE_PROCESS_SANDBOX_APPLY_H
#define SERVICE_PROCESS_SANDBOX_APPLY_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct settings;

/*
 * Confines the process, as far as the settings want it: the user, then that
 * this user can write to trace_dir and read the certificates again, then memory
 * and system calls.  -1 with a sentence: the daemon must not serve.
 */
int sandbox_as_set(const struct settings *s, char *err, size_t err_size)
    MUST_CHECK;

#endif /* SERVICE_PROCESS_SANDBOX_APPLY_H */
