/*
 * clone_copy: the session that a clone is, with all that it has of its source
 * but the bytes of the buffers.  Does not know who waits for it or when it may
 * be made (clone.c).
 */
#ifndef SERVICE_ONLOOKERS_CLONE_COPY_H
#define SERVICE_ONLOOKERS_CLONE_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct principal;
struct session;

/*
 * Whether the limits let who have a copy of src, as they let sessions; -1 with a
 * sentence in err.
 */
int clone_copy_check(const struct session *src, const struct principal *who,
    char *err, size_t err_size) MUST_CHECK;
/*
 * A session of who, in its first state.  Buffers with transfer_on_clone move to
 * it; trace_buffer_fill() is to be called for each until it is done.
 * skip_filter: without the trace_filter.  NULL: no memory, or no buffer ids.
 */
struct session *clone_copy_new(struct session *src, const struct principal *who,
    bool skip_filter) MUST_CHECK;

#endif /* SERVICE_ONLOOKERS_CLONE_COPY_H */
