/*
 * sync_clock: lets a collector measure our clocks in Perfetto's way: PING and
 * UPDATE by calls of its method SyncClock, in bursts: at once, every so often,
 * and when the machine has slept or its clock was set.
 *
 * For relays where the collector does not know the link, and for producers that
 * have no relay.  Perfetto's service takes what came last, so a burst ends with
 * exchanges that are as good as the best.
 */
#ifndef TRANSPORT_RPC_SYNC_CLOCK_H
#define TRANSPORT_RPC_SYNC_CLOCK_H

#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * Methods of our ProducerPort beyond Perfetto's, for producers that have no
 * relay: InitRelay, whose reply says in field 1 whether the clocks are to be
 * measured, and SyncClock.  docs/link-protocol.md.
 */
#define PRODUCER_INIT_MACHINE "TributaryInitMachine"
#define PRODUCER_SYNC_CLOCK   "TributarySyncClock"
enum { PRODUCER_MACHINE_TO_BE_MEASURED = 1 };

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
