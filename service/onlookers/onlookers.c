#include "service/onlookers/onlookers.h"

#include <stddef.h>

#include "service/onlookers/clone.h"
#include "service/onlookers/concurrent_sessions.h"
#include "service/onlookers/query.h"
#include "service/onlookers/session_command.h"

/*
 * Traces of others say that a session is gone before a clone of it, which fails
 * then, goes as well.  Clones come last, as they free one whose file failed.
 */
const struct session_observer *const onlookers[] = {
	&concurrent_sessions_observer,
	&session_command_observer,
	&query_observer,
	&clone_observer,
	NULL,
};
