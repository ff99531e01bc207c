#include "service/model/session_state.h"

enum session_phase
session_phase(enum session_state s)
{
	switch (s) {
	case SESSION_NEW:
		return SESSION_PHASE_NEW;
	case SESSION_CONFIGURED:
	case SESSION_AWAITS_TRIGGER:
	case SESSION_STARTING:
		return SESSION_PHASE_CONFIGURED;
	case SESSION_STARTED:
	case SESSION_LAST_FLUSH:
		return SESSION_PHASE_STARTED;
	case SESSION_STOPPING:
	case SESSION_DISABLING:
	case SESSION_GONE:
		return SESSION_PHASE_STOPPING;
	case SESSION_CLOSING:
	case SESSION_DISABLED:
		return SESSION_PHASE_DISABLED;
	case SESSION_CLONED:
		break;
	}
	return SESSION_PHASE_CLONED;
}

const char *
session_phase_name(enum session_phase p)
{
	switch (p) {
	case SESSION_PHASE_NEW:
	case SESSION_PHASE_CONFIGURED:
		return "CONFIGURED";
	case SESSION_PHASE_STARTED:
		return "STARTED";
	case SESSION_PHASE_STOPPING:
		return "STOP_WAIT";
	case SESSION_PHASE_DISABLED:
		return "DISABLED";
	case SESSION_PHASE_CLONED:
		return "CLONED_READ_ONLY";
	}
	return "UNKNOWN";
}

bool
session_state_is_live(enum session_state s)
{
	switch (s) {
	case SESSION_NEW:
	case SESSION_CONFIGURED:
	case SESSION_AWAITS_TRIGGER:
	case SESSION_STARTING:
	case SESSION_STARTED:
		return true;
	case SESSION_LAST_FLUSH:
	case SESSION_STOPPING:
	case SESSION_DISABLING:
	case SESSION_CLOSING:
	case SESSION_DISABLED:
	case SESSION_CLONED:
	case SESSION_GONE:
		break;
	}
	return false;
}
