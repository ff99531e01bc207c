/*
 * machine_info: the SystemInfo that a relay says of its machine, as it goes into
 * traces: field for field, but for the name.  A trace has the machine's, by
 * which lists and filters know it, also where the SystemInfo has none: relays of
 * Perfetto's say it in SetPeerIdentity alone.
 */
#ifndef SERVICE_PORT_MACHINE_INFO_H
#define SERVICE_PORT_MACHINE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct machine;

enum machine_info_verdict {
	MACHINE_INFO_TAKEN,
	MACHINE_INFO_BAD,     /* does not parse */
	MACHINE_INFO_REFUSED, /* *why says (static) */
};

/*
 * may_name: the peer names its machine (peer_names_machine()); named: it has
 * done so already, and the name in here counts for less.
 */
enum machine_info_verdict machine_info_take(struct machine *m,
    const uint8_t *data, size_t len, bool may_name, bool named,
    const char **why) MUST_CHECK;

#endif /* SERVICE_PORT_MACHINE_INFO_H */
