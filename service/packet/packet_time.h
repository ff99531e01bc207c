/*
 * packet_time: the timestamp of a producer's packet, where it is on a clock of
 * the machine that counts from the boot.  Pure; looks at the top level, and at
 * the few fields below it that are about clocks.
 */
#ifndef SERVICE_PACKET_PACKET_TIME_H
#define SERVICE_PACKET_PACKET_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet_time {
	uint32_t clock; /* CLOCK_ID_BOOTTIME or _MONOTONIC; 0: no time */
	uint64_t ns;
	bool is_reading; /* from a ClockSnapshot: the time of writing */
};

/*
 * *other_default: whether timestamps of the packet's sequence that name no
 * clock are on another clock than BOOTTIME (TracePacketDefaults); updated here,
 * kept by the caller for each sequence, false at first.  A packet that does not
 * parse has no time.
 */
struct packet_time packet_time_of(const uint8_t *packet, size_t len,
    bool *other_default);

#endif /* SERVICE_PACKET_PACKET_TIME_H */
