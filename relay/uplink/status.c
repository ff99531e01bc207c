#include "relay/uplink/status.h"

#include "protos/link.pb-c.h"
#include "protos/metrics.pb-c.h"
#include "relay/outbox/outbox.h"
#include "transport/loop/delays.h"

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
    const struct uplink_status *from)
{
	Tributary__LinkStatus m = TRIBUTARY__LINK_STATUS__INIT;
	const struct outbox_stats *stats = from->stats;
	Tributary__ProcessMetrics process = *from->process;
	uint32_t delays[DELAYS];
	size_t i;

	/*
	 * There is room: ten varints of 11 bytes at most, 7 in `process` and its
	 * head of 2, and 12 of 5 bytes in loop_delays and its head of 2.
	 */
	_Static_assert(10 * 11 + 7 * 11 + 2 + DELAYS * 5 + 2 <=
	    LINK_STATUS_MAX, "it fits");
	m.has_memory_bytes = m.has_memory_limit = true;
	m.memory_bytes = stats->memory_bytes;
	m.memory_limit = stats->memory_limit;
	m.has_spool_bytes = m.has_spool_limit = true;
	m.spool_bytes = stats->spool_bytes;
	m.spool_limit = stats->spool_limit;
	m.has_producers = m.has_reconnects = true;
	m.producers = (uint32_t)from->producers;
	m.reconnects = from->reconnects;
	m.has_packets_lost = m.has_chunks_lost = true;
	m.packets_lost = sum(stats->packets_lost);
	m.chunks_lost = sum(stats->chunks_lost);
	m.has_oldest_ms = true;
	m.oldest_ms = stats->oldest_ms;
	m.process = &process;
	for (i = 0; i < DELAYS; i++)
		delays[i] = from->delays->n[i] < UINT32_MAX ?
		    (uint32_t)from->delays->n[i] : UINT32_MAX;
	m.loop_delays = delays;
	m.n_loop_delays = DELAYS;
	m.has_loop_delay_sum_ns = true;
	m.loop_delay_sum_ns = from->delays->sum_ns;
	return tributary__link_status__pack(&m, out);
}
