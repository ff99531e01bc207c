/*
 * fleet_manifest: the perfetto_manifest (version 1, Perfetto v58) of traces that
 * several collectors recorded at the same time: which machine each is of, and
 * how their clocks relate.  Pure.
 */
#ifndef CLIENT_RECORD_FLEET_MANIFEST_H
#define CLIENT_RECORD_FLEET_MANIFEST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct trace_summary;

struct fleet_trace {
	const char *path;      /* its name in the archive */
	const char *collector; /* also the name of the collector's machine */
	const struct trace_summary *summary;
	/* How far the collector's wall clock is ahead of this machine's. */
	int64_t ahead_ns;
};

/*
 * Prints it for n traces.  Boot clocks are related by the wall clocks in the
 * traces, less what these are ahead; a trace without either is left to Trace
 * Processor's own rules.  uuid: of the recording, as text.
 */
void fleet_manifest_print(FILE *out, const struct fleet_trace *traces, size_t n,
    const char *uuid);

#endif /* CLIENT_RECORD_FLEET_MANIFEST_H */
