#include "relay/uplink/status.h"

#include "protos/link.pb-c.h"
#include "relay/outbox/outbox.h"

static uint64_t
sum(const uint64_t by_cause[LINK_LOSS_OF_RELAYS])
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < LINK_LOSS_OF_RELAYS; i++)
		n += by_cause[i];
	return n;
}

size_t
uplink_status_encode(uint8_t out[LINK_STATUS_MAX],
    const struct outbox_stats *stats, size_t producers, uint64_t reconnects)
{
	Tributary__LinkStatus m = TRIBUTARY__LINK_STATUS__INIT;

	/* Nine varints, of 11 bytes at most: there is room. */
	m.has_memory_bytes = m.has_memory_limit = true;
	m.memory_bytes = stats->memory_bytes;
	m.memory_limit = stats->memory_limit;
	m.has_spool_bytes = m.has_spool_limit = true;
	m.spool_bytes = stats->spool_bytes;
	m.spool_limit = stats->spool_limit;
	m.has_producers = m.has_reconnects = true;
	m.producers = (uint32_t)producers;
	m.reconnects = reconnects;
	m.has_packets_lost = m.has_chunks_lost = true;
	m.packets_lost = sum(stats->packets_lost);
	m.chunks_lost = sum(stats->chunks_lost);
	m.has_oldest_ms = true;
	m.oldest_ms = stats->oldest_ms;
	return tributary__link_status__pack(&m, out);
}
