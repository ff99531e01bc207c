/*
 * A LinkClock from a stranger: what is taken is whole and comes back alike when
 * it is written; a RESULT is taken or refused with a reason, and what it makes
 * parses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/trace_packet.pb-c.h"
#include "service/machine/machine.h"
#include "service/machine/machine_clock.h"
#include "tests/fuzz/messages/messages.h"
#include "tests/unit/transport/link/link_clock_estimate.h"
#include "transport/link/link_clock.h"

static void
check_snapshot(const struct clock_snapshot *a, const struct clock_snapshot *b)
{
	uint32_t id;

	for (id = 1; id <= CLOCK_SNAPSHOT_N; id++)
		if (clock_snapshot_ns(a, (enum clock_id)id) !=
		    clock_snapshot_ns(b, (enum clock_id)id) ||
		    clock_snapshot_ns(a, (enum clock_id)id) == 0)
			abort();
	if (a->tsc != b->tsc)
		abort();
}

static void
check_result(const struct link_clock *c)
{
	struct machine m = { .id = 3 };
	Perfetto__Protos__TracePacket *p;
	const char *why = NULL;
	uint64_t uncertainty;
	int64_t offset;

	link_clock_estimate(&c->before, &c->host, &c->after, &offset,
	    &uncertainty);
	/* Twice: the second meets what the first left. */
	if (machine_clock_take(&m, c, &c->host, &why) != 0) {
		if (why == NULL || m.clock_sync != NULL)
			abort();
		return;
	}
	if (m.clock.offset_ns + offset > 1 || m.clock.offset_ns + offset < -1 ||
	    m.clock.uncertainty_ns > uncertainty)
		abort();
	if (machine_clock_take(&m, c, &c->host, &why) != 0 ||
	    m.clock_sync_generation != 1)
		abort();
	p = perfetto__protos__trace_packet__unpack(NULL, m.clock_sync_len,
	    m.clock_sync);
	if (p == NULL || p->remote_clock_sync == NULL ||
	    p->remote_clock_sync->n_synced_clocks != 2)
		abort();
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	machine_done(&m);
}

void
fuzz_link_clock(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size == 0 ? 1 : size), out[LINK_CLOCK_MAX];
	struct link_clock c, again;

	if (copy == NULL)
		return;
	if (size > 0)
		memcpy(copy, data, size);
	if (link_clock_parse(&c, copy, size) != 0) {
		free(copy);
		return;
	}
	free(copy);
	if (link_clock_parse(&again, out, link_clock_put(out, &c)) != 0 ||
	    again.kind != c.kind || again.id != c.id)
		abort();
	switch (c.kind) {
	case LINK_CLOCK_PING:
		break;
	case LINK_CLOCK_PONG:
		check_snapshot(&c.host, &again.host);
		break;
	case LINK_CLOCK_RESULT:
		check_snapshot(&c.before, &again.before);
		check_snapshot(&c.host, &again.host);
		check_snapshot(&c.after, &again.after);
		if (again.round_trip_ns != c.round_trip_ns)
			abort();
		check_result(&c);
		break;
	}
}
