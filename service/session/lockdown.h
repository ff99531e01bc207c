/*
 * lockdown: TraceConfig.lockdown_mode.  While it is set only producers of the
 * daemon's own user, as the kernel says, may connect and take part; who is
 * connected already stays, and what runs goes on.
 *
 * It outlives the session that set it, until another one clears it.  As it
 * shuts others out, it is an admin's.
 */
#ifndef SERVICE_SESSION_LOCKDOWN_H
#define SERVICE_SESSION_LOCKDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "protos/trace_config.pb-c.h"
#include "transport/base/compiler.h"

struct principal;
struct service;
struct session;

/* Whether this owner's config may ask for it.  -1 with a sentence. */
int lockdown_check(const Perfetto__Protos__TraceConfig *pb,
    const struct principal *owner, char *err, size_t err_size) MUST_CHECK;
/* The session exists now: sets or clears it, as its config says. */
void lockdown_apply(const struct session *s);
/* own: of the daemon's user. */
bool lockdown_permits(const struct service *sv, bool own);

#endif /* SERVICE_SESSION_LOCKDOWN_H */
