#include "service/session/lockdown.h"

#include <stdio.h>

#include "service/access/principal.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"

#define MODE(name)                                                            \
	PERFETTO__PROTOS__TRACE_CONFIG__LOCKDOWN_MODE_OPERATION__LOCKDOWN_##name

int
lockdown_check(const Perfetto__Protos__TraceConfig *pb,
    const struct principal *owner, char *err, size_t err_size)
{
	if ((pb->lockdown_mode != MODE(SET) &&
	    pb->lockdown_mode != MODE(CLEAR)) || owner->admin)
		return 0;
	return FAILURE(err, err_size, "lockdown_mode shuts out the producers "
	    "of others: only an admin may set or clear it");
}

void
lockdown_apply(const struct session *s)
{
	struct service *sv = s->service;
	bool set = s->config->pb->lockdown_mode == MODE(SET);
	char whose[160];

	if ((!set && s->config->pb->lockdown_mode != MODE(CLEAR)) ||
	    set == sv->lockdown)
		return;
	sv->lockdown = set;
	log_limited(&sv->session_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "session %llu: %s %s lockdown_mode: %s", (unsigned long long)s->id,
	    principal_text(&s->owner, whose, sizeof(whose)),
	    set ? "set" : "cleared", set ? "only producers of this user are "
	    "let in" : "all producers are let in");
}

bool
lockdown_permits(const struct service *sv, bool own)
{
	return own || !sv->lockdown;
}
