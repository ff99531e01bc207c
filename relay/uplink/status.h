/* status: encodes the relay's state as LinkStatus.  Pure. */
#ifndef RELAY_UPLINK_STATUS_H
#define RELAY_UPLINK_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_wire.h"

struct Tributary__ProcessMetrics;
struct delays;
struct outbox_stats;

/* All borrowed. */
struct uplink_status {
	const struct outbox_stats *stats;
	size_t producers;
	uint64_t reconnects;
	const struct Tributary__ProcessMetrics *process;
	const struct delays *delays; /* of the loop */
};

/* Returns the bytes written. */
size_t uplink_status_encode(uint8_t out[LINK_STATUS_MAX],
    const struct uplink_status *from);

#endif /* RELAY_UPLINK_STATUS_H */
