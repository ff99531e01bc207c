/*
 * inspection: reads one trace in one pass for the reports.
 *
 * Memory is bounded, as that of its parts (trace_scan, trace_summary).  Input
 * is untrusted.
 */
#ifndef CLIENT_INSPECT_REPORT_INSPECTION_H
#define CLIENT_INSPECT_REPORT_INSPECTION_H

#include <stddef.h>
#include <stdint.h>

#include "client/inspect/scan/trace_scan.h"
#include "transport/base/compiler.h"

struct Perfetto__Protos__TraceStats;
struct clock_uses;
struct inspection;
struct packet_facts;
struct session_log;
struct trace_clocks;
struct trace_moment;
struct trace_summary;
struct trace_window;

/* Compressed packets that could not be unpacked, or not to their end. */
#define INSPECT_COMPRESSED_TEXT 128
struct inspect_compressed {
	uint64_t bad;
	uint64_t offset; /* of the first, in the file */
	char text[INSPECT_COMPRESSED_TEXT]; /* error of the first */
};

struct inspection *inspection_new(void) MUST_CHECK;
void inspection_free(struct inspection *i);

/* A packet that was taken; those inside of compressed ones, too.  Borrowed. */
struct inspection_packet {
	const uint8_t *data; /* TracePacket */
	size_t len;
	const struct packet_facts *facts;
	const struct trace_moment *moment;
	uint64_t bytes; /* with framing, as if nothing were compressed */
};
typedef void (*inspection_watch_fn)(void *arg,
    const struct inspection_packet *p);
/* Shows each packet to fn as it is read.  arg: borrowed. */
void inspection_watch(struct inspection *i, inspection_watch_fn fn, void *arg);

/*
 * Reads all of a trace, once.  size: of the file; 0: not known.  -1 with a
 * sentence in err where it is unreadable.
 */
int inspection_run(struct inspection *i, struct trace_window *w, uint64_t size,
    char *err, size_t err_size) MUST_CHECK;

/* The results, borrowed until inspection_free(). */
const struct trace_scan *inspection_scan(const struct inspection *i);
struct trace_summary *inspection_summary(const struct inspection *i);
const struct session_log *inspection_log(const struct inspection *i);
const struct inspect_compressed *inspection_compressed(
    const struct inspection *i);
struct trace_clocks *inspection_clocks(const struct inspection *i);
const struct clock_uses *inspection_clock_uses(const struct inspection *i);
/*
 * The last TraceStats, if no packet of a producer follows it: only then it
 * covers the whole trace.  NULL: there is none such.
 */
const struct Perfetto__Protos__TraceStats *inspection_final_stats(
    const struct inspection *i);
/*
 * Duration of the recording, or where the trace does not tell it, from the
 * first timestamp to the last.
 */
uint64_t inspection_duration_ns(const struct inspection *i);

#endif /* CLIENT_INSPECT_REPORT_INSPECTION_H */
