/*
 * sync_clock: lets a collector measure our clocks (transport/clock's
 * clock_exchange) over a connection that is on the event loop.
 *
 * For relays where the collector does not know the link, and for tunnels whose
 * producers do not speak for their machine.
 */
#ifndef TRANSPORT_RPC_SYNC_CLOCK_H
#define TRANSPORT_RPC_SYNC_CLOCK_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct loop;
struct sync_clock;
struct rpc_client;

/*
 * Begins at once.  client is borrowed, is ready, and has made the call that has
 * to come before SyncClock; method (static) is SyncClock's name in its service.
 * NULL: no memory or no descriptor.
 */
struct sync_clock *sync_clock_new(struct loop *l, struct rpc_client *client,
    const char *method, uint64_t period_ms) MUST_CHECK;
/*
 * To be called right after rpc_client_free() of the client: while the client
 * lives, a pending reply still uses s.  NULL is fine.
 */
void sync_clock_free(struct sync_clock *s);

#endif /* TRANSPORT_RPC_SYNC_CLOCK_H */
