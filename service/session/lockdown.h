/*
 * lockdown: TraceConfig.lockdown_mode.  While it is set only producers of the
 * daemon's own user, as the kernel says, may connect and take part; producers
 * that are connected already stay, and running sessions go on.
 *
 * Lockdown outlives the session that set it, until another session clears it.
 * As it shuts out other users' producers, only admins may set or clear it.
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

/*
 * Whether a session of this owner may have the config's lockdown_mode.  -1 with
 * a sentence in err.
 */
int lockdown_check(const Perfetto__Protos__TraceConfig *pb,
    const struct principal *owner, char *err, size_t err_size) MUST_CHECK;
/* Sets or clears lockdown as the config of a session that now exists says. */
void lockdown_apply(const struct session *s);
/* Whether a producer may take part.  own: it is of the daemon's own user. */
bool lockdown_permits(const struct service *sv, bool own);

#endif /* SERVICE_SESSION_LOCKDOWN_H */
