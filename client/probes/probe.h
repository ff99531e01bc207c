/*
 * probe: environment and callbacks of all data sources of tributary-probes.
 *
 * A probe turns its config into packets: it reads files and hands out encoded
 * TracePackets.  It knows nothing of timers, writers or the connection.
 */
#ifndef CLIENT_PROBES_PROBE_H
#define CLIENT_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_env {
	const char *proc; /* "/proc" */
	const char *sys;  /* "/sys" */
	/*
	 * Descriptors that all probes together may still keep open; at 0,
	 * files are opened for each reading.
	 */
	int fds_left;
	uint64_t (*now_ns)(void); /* CLOCK_BOOTTIME */
	uint64_t ns_per_tick;     /* of the kernel's process times */
};

/* Takes an encoded TracePacket; borrowed for the call.  False: it was dropped. */
typedef bool (*probe_packet_fn)(void *arg, const void *packet, size_t len);

#endif /* CLIENT_PROBES_PROBE_H */
