#include "client/inspect/report/inspection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/clock/clock_uses.h"
#include "client/clock/trace_clocks.h"
#include "client/inspect/report/session_log.h"
#include "client/inspect/scan/trace_window.h"
#include "client/trace/packet_expand.h"
#include "client/trace/packet_facts.h"
#include "client/trace/trace_summary.h"
#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_writer.h"

struct inspection {
	struct packet_types types;
	struct trace_scan scan;
	struct trace_summary *summary; /* owned, like the next two */
	struct packet_expand *expand;
	struct trace_clocks *clocks;
	struct clock_uses uses;
	struct session_log log;
	struct inspect_compressed compressed;
	inspection_watch_fn watch; /* or NULL */
	void *watch_arg;
	uint64_t taken_bytes; /* of packets, as if nothing were compressed */
	bool no_memory;
};

static void
take(struct inspection *i, const uint8_t *data, size_t len,
    const struct packet_facts *f, uint64_t bytes)
{
	struct trace_moment moment;
	const struct inspection_packet seen = { data, len, f, &moment, bytes };

	i->taken_bytes += bytes;
	(void)trace_summary_take(i->summary, f, bytes);
	session_log_take(&i->log, f);
	if (trace_clocks_take(i->clocks, f, &moment) < 0)
		i->no_memory = true;
	else
		clock_uses_take(&i->uses, &moment);
	if (i->watch != NULL)
		i->watch(i->watch_arg, &seen);
}

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct inspection *i = arg;
	uint64_t bytes = 1 + pb_varint_size(len) + len;
	struct packet_facts f;

	/* A compressed packet within a compressed one is not opened. */
	if (packet_facts_read(&f, &i->types, data, len) &&
	    f.type != TracePacket_compressed_packets &&
	    f.type != TracePacket_zstd_compressed_packets) {
		take(i, data, len, &f, bytes);
		return;
	}
	i->taken_bytes += bytes;
	trace_summary_take_malformed(i->summary, bytes);
}

struct inspection *
inspection_new(void)
{
	struct inspection *i;

	if ((i = calloc(1, sizeof(*i))) == NULL)
		return NULL;
	i->summary = trace_summary_new();
	i->expand = packet_expand_new(inner_cb, i);
	i->clocks = trace_clocks_new();
	if (i->summary == NULL || i->expand == NULL || i->clocks == NULL)
		goto fail;
	packet_types_init(&i->types);
	return i;

fail:
	inspection_free(i);
	return NULL;
}

void
inspection_free(struct inspection *i)
{
	if (i == NULL)
		return;
	trace_summary_free(i->summary);
	packet_expand_free(i->expand);
	trace_clocks_free(i->clocks);
	clock_uses_done(&i->uses);
	session_log_done(&i->log);
	free(i);
}

static void
expand(struct inspection *i, const uint8_t *data, size_t len, uint64_t bytes,
    uint64_t offset)
{
	uint64_t before = i->taken_bytes;
	char err[INSPECT_COMPRESSED_TEXT];
	enum packet_expand_result r;

	r = packet_expand_packet(i->expand, data, len, err, sizeof(err));
	trace_summary_take_compressed(i->summary, bytes,
	    i->taken_bytes - before, r == PACKET_EXPAND_DONE);
	if (r == PACKET_EXPAND_DONE || i->compressed.bad++ != 0)
		return;
	i->compressed.offset = offset;
	snprintf(i->compressed.text, sizeof(i->compressed.text), "%s",
	    r == PACKET_EXPAND_BAD ? err : "nothing compressed is in it");
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len, uint64_t bytes,
    uint64_t offset)
{
	struct inspection *i = arg;
	struct packet_facts f;

	if (!packet_facts_read(&f, &i->types, data, len))
		return false;
	if (f.type == TracePacket_compressed_packets ||
	    f.type == TracePacket_zstd_compressed_packets)
		expand(i, data, len, bytes, offset);
	else
		take(i, data, len, &f, bytes);
	return true;
}

void
inspection_watch(struct inspection *i, inspection_watch_fn fn, void *arg)
{
	i->watch = fn;
	i->watch_arg = arg;
}

int
inspection_run(struct inspection *i, struct trace_window *w, uint64_t size,
    char *err, size_t err_size)
{
	const struct trace_scan_ops ops = { .packet = packet_cb, .arg = i };

	if (trace_scan_run(&i->scan, w, size, &ops, err, err_size) < 0)
		return -1;
	if (i->no_memory)
		return FAILURE(err, err_size, "out of memory");
	return 0;
}

const struct trace_scan *
inspection_scan(const struct inspection *i)
{
	return &i->scan;
}

struct trace_summary *
inspection_summary(const struct inspection *i)
{
	return i->summary;
}

const struct session_log *
inspection_log(const struct inspection *i)
{
	return &i->log;
}

const struct inspect_compressed *
inspection_compressed(const struct inspection *i)
{
	return &i->compressed;
}

struct trace_clocks *
inspection_clocks(const struct inspection *i)
{
	return i->clocks;
}

const struct clock_uses *
inspection_clock_uses(const struct inspection *i)
{
	return &i->uses;
}

const struct Perfetto__Protos__TraceStats *
inspection_final_stats(const struct inspection *i)
{
	return trace_summary_totals(i->summary)->after_stats == 0 ?
	    trace_summary_stats(i->summary) : NULL;
}

uint64_t
inspection_duration_ns(const struct inspection *i)
{
	uint64_t told = trace_summary_totals(i->summary)->duration_ns;

	return told != 0 ? told : i->uses.last_ns - i->uses.first_ns;
}
