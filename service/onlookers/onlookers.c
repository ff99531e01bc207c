#include "service/onlookers/onlookers.h"

#include <stddef.h>

#include "service/onlookers/clone.h"
#include "service/onlookers/concurrent_sessions.h"
#include "service/onlookers/query.h"
#include "service/onlookers/session_command.h"

/*
 * concurrent_sessions comes before clone: traces tell that a session ended
 * before they tell of its unfinished clone, which fails with it.  clone is
 * last, as it may free a clone whose file failed.
 */
const struct session_observer *const onlookers[] = {
	&concurrent_sessions_observer,
	&session_command_observer,
	&query_observer,
	&clone_observer,
	NULL,
};
