/*
 * FtraceStats: the kernel's counts of each processor, and what went wrong.  As
 * Perfetto's do, a session writes the counts of its beginning and of now with
 * each flush: in a ring buffer the first ones are overwritten.
 */
#include "client/ftrace/events/kernel_symbols.h"
#include "client/ftrace/session/ftrace_internal.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"

struct stats {
	const struct ftrace_session *session;
	bool at_end;
};

static void
put_cpu(struct tributary_packet *p, unsigned cpu, const struct cpu_stats *c)
{
	tributary_begin(p, FtraceStats_cpu_stats);
	packet_put_uint(p, FtraceCpuStats_cpu, cpu);
	packet_put_uint(p, FtraceCpuStats_entries, c->entries);
	packet_put_uint(p, FtraceCpuStats_overrun, c->overrun);
	packet_put_uint(p, FtraceCpuStats_commit_overrun, c->commit_overrun);
	packet_put_uint(p, FtraceCpuStats_bytes_read, c->bytes);
	tributary_put_double(p, FtraceCpuStats_oldest_event_ts, c->oldest_s);
	tributary_put_double(p, FtraceCpuStats_now_ts, c->now_s);
	packet_put_uint(p, FtraceCpuStats_dropped_events, c->dropped);
	packet_put_uint(p, FtraceCpuStats_read_events, c->read);
	tributary_end(p);
}

static void
put_names(struct tributary_packet *p, uint32_t field, char *const *names,
    size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		tributary_put_string(p, field, names[i]);
}

/* Troubles at the set-up stand beside the first counts, */
static void
put_setup_troubles(struct tributary_packet *p, const struct ftrace_session *s)
{
	if (s->problems != NULL)
		tributary_put_string(p, FtraceStats_atrace_errors, s->problems);
	put_names(p, FtraceStats_unknown_ftrace_events, s->unknown,
	    s->n_unknown);
	put_names(p, FtraceStats_failed_ftrace_events, s->failed, s->n_failed);
	if (s->config->preserve_buffer)
		packet_put_uint(p, FtraceStats_preserve_ftrace_buffer, 1);
}

/* and those of reading beside the last. */
static void
put_faults(struct tributary_packet *p, const struct ftrace_session *s)
{
	unsigned status;

	for (status = 0; status < 32; status++) {
		if ((s->faults >> status & 1) != 0)
			packet_put_uint(p, FtraceStats_ftrace_parse_errors,
			    status);
	}
	if (!s->uses_symbols)
		return;
	packet_put_uint(p, FtraceStats_kernel_symbols_parsed,
	    s->ftrace->n_symbols);
	packet_put_uint(p, FtraceStats_kernel_symbols_mem_kb,
	    kernel_symbols_bytes(s->ftrace->symbols) / 1024);
}

static void
fill(struct tributary_packet *p, void *arg)
{
	const struct stats *stats = arg;
	const struct ftrace_session *s = stats->session;
	struct cpu_stats now = { 0 };
	unsigned i, n = s->ring != NULL ? s->ring->n_cpus : 0;

	tributary_begin(p, TracePacket_ftrace_stats);
	packet_put_uint(p, FtraceStats_phase, stats->at_end ?
	    FtraceStats_END_OF_TRACE : FtraceStats_START_OF_TRACE);
	for (i = 0; i < n; i++) {
		if (stats->at_end)
			ring_counts(s->ring, i, &now);
		put_cpu(p, i, stats->at_end ? &now : &s->stats_begin[i]);
	}
	if (stats->at_end)
		put_faults(p, s);
	else
		put_setup_troubles(p, s);
	tributary_end(p);
}

void
session_stats_begin(struct ftrace_session *s)
{
	struct stats stats = { s, false };
	unsigned i;

	for (i = 0; s->ring != NULL && i < s->ring->n_cpus; i++)
		ring_counts(s->ring, i, &s->stats_begin[i]);
	s->out.write(s->out.arg, fill, &stats);
}

void
session_stats_write(struct ftrace_session *s)
{
	struct stats begin = { s, false }, end = { s, true };

	s->out.write(s->out.arg, fill, &begin);
	s->out.write(s->out.arg, fill, &end);
}
