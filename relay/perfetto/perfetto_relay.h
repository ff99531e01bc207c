/*
 * perfetto_relay: relays by Perfetto's own protocol, for a collector that does
 * not know the link: a connection for each producer, which begins with
 * SetPeerIdentity, and one for the RelayPort (reference behaviour.md,
 * "Multi-machine").
 *
 * A connection that breaks is made again, with backoff; its producer is told
 * that its sessions are over (producers_lost()) and announced again.  Data that
 * was queued by then is counted as lost: an upper bound, as it is unknown what
 * had arrived.
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
	struct perfetto_relay_totals *totals; /* are added to */
	/* Called when the collector answers, even if it has no RelayPort. */
	void (*up)(void *arg);
	/*
	 * Called later, when the RelayPort's connection broke; the next
	 * collector may be another. perfetto_relay_free() is legal inside.
	 */
	void (*down)(void *arg, const char *why);
	void *arg;
};

/* Announces all producers there are as soon as each is connected. */
struct perfetto_relay *perfetto_relay_new(
    const struct perfetto_relay_setup *setup, char *err,
    size_t err_size) MUST_CHECK;
void perfetto_relay_free(struct perfetto_relay *c);
/* Whether the collector has no RelayPort, so that nobody reads our clocks. */
bool perfetto_relay_without_clocks(const struct perfetto_relay *c);
/* The upstream that producers write to; LINK_UP_OPEN begins a connection. */
struct upstream perfetto_relay_upward(struct perfetto_relay *c);

#endif /* RELAY_PERFETTO_PERFETTO_RELAY_H */
