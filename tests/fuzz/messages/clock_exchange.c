/*
 * A relay's SyncClock calls: each is a byte of length and that many bytes.  An
 * exchange is done only by a PING and the UPDATE after it, and makes a packet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/trace_packet.pb-c.h"
#include "service/machine/machine.h"
#include "service/port/clock_exchange.h"
#include "tests/fuzz/messages/messages.h"

/* One that cannot be has a reason; all others make a packet at first. */
static void
check_packet(struct machine *m, const struct clock_exchange *x)
{
	bool first = m->clock_sync == NULL;
	Perfetto__Protos__TracePacket *p;
	const char *why = NULL;

	if (machine_clock_take_exchange(m, &x->ping, &x->update, &why) != 0) {
		if (why == NULL)
			abort();
		return;
	}
	if (first && m->clock_sync_generation != 1)
		abort();
	p = perfetto__protos__trace_packet__unpack(NULL, m->clock_sync_len,
	    m->clock_sync);
	if (p == NULL || p->remote_clock_sync == NULL ||
	    p->remote_clock_sync->n_synced_clocks != 2)
		abort();
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	if (m->clock.known && m->clock.uncertainty_ns >
	    MACHINE_CLOCK_LONGEST_NS / 2)
		abort();
}

/* The bytes on their own, so that a sanitizer sees one too far. */
static enum clock_exchange_verdict
step(struct clock_exchange *x, const uint8_t *data, size_t len,
    const struct clock_snapshot *host)
{
	uint8_t *copy = malloc(len == 0 ? 1 : len);
	enum clock_exchange_verdict v;
	const char *why = NULL;

	if (copy == NULL)
		return CLOCK_EXCHANGE_BAD;
	memcpy(copy, data, len);
	v = clock_exchange_step(x, copy, len, host, &why);
	if (v == CLOCK_EXCHANGE_REFUSED && why == NULL)
		abort();
	free(copy);
	return v;
}

void
fuzz_clock_exchange(const uint8_t *data, size_t size)
{
	struct clock_exchange x = { .pinged = false };
	struct machine m = { .id = 2 };
	struct clock_snapshot host = { .tsc = 1 };
	enum clock_exchange_verdict v;
	const uint8_t *end = data + size;
	bool pinged = false;
	size_t len, i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		host.clocks[i] = (struct clock_reading){ (uint32_t)i + 1, 1 };
	while (data < end) {
		len = *data++;
		if (len > (size_t)(end - data))
			len = (size_t)(end - data);
		v = step(&x, data, len, &host);
		if (v == CLOCK_EXCHANGE_DONE) {
			if (!pinged)
				abort();
			check_packet(&m, &x);
		}
		pinged = v == CLOCK_EXCHANGE_PINGED;
		data += len;
		for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
			host.clocks[i].ns += 1000000000;
	}
	machine_done(&m);
}
