/*
 * machine_info: takes the SystemInfo that a relay sends of its machine, as it
 * goes into traces: field for field, but for the name.  A trace has the name by
 * which lists and filters know the machine, also where the SystemInfo has none:
 * Perfetto's relays send it in SetPeerIdentity alone.
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
 * may_name: the peer may name its machine (peer_names_machine()); named: it has
 * done so already, and the name in the SystemInfo is not used.
 */
enum machine_info_verdict machine_info_take(struct machine *m,
    const uint8_t *data, size_t len, bool may_name, bool named,
    const char **why) MUST_CHECK;

#endif /* SERVICE_PORT_MACHINE_INFO_H */
