/*
 * packet_time: when a producer's packet says that it was written, on a clock of
 * its machine that counts from the boot.  Pure; looks at the top level, and at
 * the few fields below it that are about clocks.
 */
#ifndef SERVICE_PACKET_PACKET_TIME_H
#define SERVICE_PACKET_PACKET_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet_time {
	uint32_t clock; /* CLOCK_ID_BOOTTIME or CLOCK_ID_MONOTONIC; 0: no time */
	uint64_t ns;
	bool is_reading; /* of a ClockSnapshot: taken when it was written */
};

/*
 * *other_default: whether its sequence's timestamps are on another clock where
 * they do not name one (TracePacketDefaults); kept by the caller for each
 * sequence, false at first.  A packet that does not parse has no time.
 */
struct packet_time packet_time_of(const uint8_t *packet, size_t len,
    bool *other_default);

#endif /* SERVICE_PACKET_PACKET_TIME_H */
