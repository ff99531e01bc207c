/* status: encodes the relay's state as LinkStatus.  Pure. */
#ifndef RELAY_UPLINK_STATUS_H
#define RELAY_UPLINK_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_wire.h"

struct outbox_stats;

/* Returns the bytes written. */
size_t uplink_status_encode(uint8_t out[LINK_STATUS_MAX],
    const struct outbox_stats *stats, size_t producers, uint64_t reconnects);

#endif /* RELAY_UPLINK_STATUS_H */
