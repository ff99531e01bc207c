/*
 * clone_copy: makes the session of a clone with everything of its source but
 * the bytes in the buffers.  When a clone may be made, and whom it is for, is
 * decided in clone.c.
 */
#ifndef SERVICE_ONLOOKERS_CLONE_COPY_H
#define SERVICE_ONLOOKERS_CLONE_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct principal;
struct session;

/*
 * Whether the limits on sessions and buffer memory let the principal have a
 * copy of src; -1 with a sentence in err.
 */
int clone_copy_check(const struct session *src, const struct principal *who,
    char *err, size_t err_size) MUST_CHECK;
/*
 * A session owned by who, in state SESSION_NEW.  Buffers with transfer_on_clone
 * move to it; call trace_buffer_fill() for each buffer until it is done.
 * skip_filter: without the trace_filter.  NULL: no memory, or no buffer ids.
 */
struct session *clone_copy_new(struct session *src, const struct principal *who,
    bool skip_filter) MUST_CHECK;

#endif /* SERVICE_ONLOOKERS_CLONE_COPY_H */
