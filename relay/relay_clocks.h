/*
 * relay_clocks: lets a collector that does not know the link measure our
 * clocks, in Perfetto's way: PING and UPDATE over the RelayPort, in bursts, at
 * once, every so often, and when the machine has slept or its clock was set.
 *
 * Perfetto's service takes what came last, so a burst ends with exchanges that
 * are as good as the best.
 */
#ifndef RELAY_RELAY_CLOCKS_H
#define RELAY_RELAY_CLOCKS_H

#include <stdint.h>

#include "transport/compiler.h"

struct clocks_view;
struct loop;
struct relay_clocks;
struct rpc_client;

/*
 * Begins at once.  client is borrowed, bound to RelayPort and ready; InitRelay
 * was sent.  NULL: no memory or no descriptor.
 */
struct relay_clocks *relay_clocks_new(struct loop *l, struct rpc_client *client,
    uint64_t period_ms) MUST_CHECK;
/*
 * In the same breath as the client, and after it: a reply that is on its way
 * must not find nobody.  NULL is fine.
 */
void relay_clocks_free(struct relay_clocks *r);

/*
 * Round trips are all that we see; the distance is the collector's to know:
 * `known` stays false.
 */
void relay_clocks_view(const struct relay_clocks *r, struct clocks_view *out);

#endif /* RELAY_RELAY_CLOCKS_H */
