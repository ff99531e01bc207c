/*
 * producer_loop: libtributary on the event loop, with a service at any address
 * that our programs know.
 *
 * Data sources are registered with <tributary/data_source.h>; their callbacks,
 * and changed(), come from the loop.  One at a time in a process.
 */
#ifndef CLIENT_TUNNEL_PRODUCER_LOOP_H
#define CLIENT_TUNNEL_PRODUCER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct producer_loop;

struct producer_loop_setup {
	const struct addr *address;     /* borrowed until producer_loop_free() */
	const struct dial_options *how; /* the same; NULL: defaults */
	const char *name;
	/* Hints for the shared memory, in bytes; 0: libtributary's. */
	uint32_t memory_bytes;
	uint32_t page_bytes;
	/* Name of this machine for a remote service; NULL: its host name. */
	const char *machine_name;
	/*
	 * The service has taken the data sources, or (text, a sentence borrowed
	 * for the call) the connection has ended or was not made; the next
	 * attempt follows by itself.  Must not free.  May be NULL.
	 */
	void (*changed)(void *arg, bool connected, const char *text);
	void *arg;
};

/* Begins to connect.  NULL with errno. */
struct producer_loop *producer_loop_new(struct loop *l,
    const struct producer_loop_setup *setup) MUST_CHECK;
/*
 * Stops all instances, and ends the connection when the service has taken what
 * they wrote, for which it waits up to timeout_ms (0: a second).  Not from
 * inside of callbacks.  NULL is fine.
 */
void producer_loop_free(struct producer_loop *p, unsigned timeout_ms);

#endif /* CLIENT_TUNNEL_PRODUCER_LOOP_H */
