/*
 * endpoint: the service that an instance belongs to, as instances see it: the
 * connection to one (port/), or the session inside of this program (local/).
 */
#ifndef CLIENT_TRACING_SOURCE_ENDPOINT_H
#define CLIENT_TRACING_SOURCE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

struct tributary_instance;

struct endpoint {
	/*
	 * A callback that was not done at once is done now.  Called by any
	 * thread, under the registry's lock: they only note it and wake the
	 * library's thread.
	 */
	void (*stop_done)(struct endpoint *e, struct tributary_instance *i);
	void (*flush_done)(struct endpoint *e, struct tributary_instance *i,
	    uint64_t flush_id);
	/* Its instances take over what was recorded before they started. */
	bool adopts;
	/*
	 * Called on the library's thread, for a recording that waits for a
	 * session: heir has its slot now, and the recording writes no more.
	 * NULL: the endpoint is no recording.
	 */
	void (*adopted)(struct endpoint *e, struct tributary_instance *heir);
};

#endif /* CLIENT_TRACING_SOURCE_ENDPOINT_H */
