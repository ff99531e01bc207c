#include "relay/uplink/uplink.h"

const char *
uplink_state_text(enum uplink_state s)
{
	switch (s) {
	case UPLINK_WAITING:
		return "waiting";
	case UPLINK_CONNECTING:
		return "connecting";
	case UPLINK_LINKED:
		return "linked";
	case UPLINK_CLASSIC:
		return "classic";
	case UPLINK_STOPPED:
		return "stopped";
	}
	return "?";
}
