/*
 * A relay's SyncClock calls: each is a byte of length and that many bytes.  An
 * exchange is done only by a PING and the UPDATE after it, and makes a packet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/trace_packet.pb-c.h"
#include "service/port/clock_exchange.h"
#include "transport/pb_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_packet(const struct clock_exchange *x)
{
	Perfetto__Protos__TracePacket *p;
	struct pb_writer w;

	pb_writer_init(&w);
	clock_exchange_encode(x, &w, 1, 2);
	if (!w.failed) {
		p = perfetto__protos__trace_packet__unpack(NULL, w.len, w.data);
		if (p == NULL || p->remote_clock_sync == NULL ||
		    p->remote_clock_sync->n_synced_clocks != 2)
			abort();
		perfetto__protos__trace_packet__free_unpacked(p, NULL);
	}
	pb_writer_done(&w);
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct clock_exchange x = { .pinged = false };
	struct clock_snapshot host;
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
			check_packet(&x);
		}
		pinged = v == CLOCK_EXCHANGE_PINGED;
		data += len;
		for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
			host.clocks[i].ns += 1000000000;
	}
	return 0;
}
