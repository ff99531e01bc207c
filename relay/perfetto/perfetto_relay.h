/*
 * perfetto_relay: relays by Perfetto's own protocol, for a collector that does
 * not know the link: a connection for each producer, which begins with
 * SetPeerIdentity, and one for the RelayPort (reference behaviour.md,
 * "Multi-machine").
 *
 * A producer's connection that breaks is made again, with backoff; the
 * producer's sessions end (producers_lost()), and it is announced again.
 * Chunks queued since the queue was last empty are counted as lost: an upper
 * bound, as it is unknown how many had arrived.
 *
 * Belongs to the loop's thread.
 */
#ifndef RELAY_PERFETTO_PERFETTO_RELAY_H
#define RELAY_PERFETTO_PERFETTO_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/producers/upstream.h"
#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct perfetto_relay;
struct dial_options;
struct loop;
struct producers;
struct relay_settings;

/* Totals since the relay was started, over all connections. */
struct perfetto_relay_totals {
	uint64_t bytes_up;
	uint64_t chunks_lost[LINK_LOSS_OF_RELAYS];
	uint64_t packets_lost[LINK_LOSS_OF_RELAYS];
	uint64_t bytes_lost[LINK_LOSS_OF_RELAYS];
};

struct perfetto_relay_setup {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed, as all below */
	const struct addr *to;
	const struct dial_options *how;
	struct producers *producers;
	struct perfetto_relay_totals *totals; /* counts are added to it */
	/* Called when the collector answers, even if it has no RelayPort. */
	void (*up)(void *arg);
	/*
	 * Called when the RelayPort's connection broke or cannot be made, never
	 * inside perfetto_relay_new(); the next collector may be another.
	 * perfetto_relay_free() is legal inside.
	 */
	void (*down)(void *arg, const char *why);
	void *arg;
};

/*
 * Connects to the RelayPort, and for every producer, which is announced when
 * its connection is up.  Copies setup.  NULL with a sentence in err.
 */
struct perfetto_relay *perfetto_relay_new(
    const struct perfetto_relay_setup *setup, char *err,
    size_t err_size) MUST_CHECK;
/* Ends all connections; chunks queued count as lost.  NULL is fine. */
void perfetto_relay_free(struct perfetto_relay *c);
/* Whether the collector has no RelayPort, so that clocks are not measured. */
bool perfetto_relay_without_clocks(const struct perfetto_relay *c);
/* The upstream that producers write to; LINK_UP_OPEN begins a connection. */
struct upstream perfetto_relay_upward(struct perfetto_relay *c);

#endif /* RELAY_PERFETTO_PERFETTO_RELAY_H */
