/*
 * machine_totals: packets and bytes of each machine of a trace, added up from
 * its sequences.
 */
#ifndef CLIENT_INSPECT_REPORT_MACHINE_TOTALS_H
#define CLIENT_INSPECT_REPORT_MACHINE_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct session_log;
struct trace_sequences;

struct machine_total {
	uint32_t id; /* 0: the collector's own */
	uint64_t packets, bytes, sequences;
	uint64_t gaps;
};

/*
 * Lists the machines that wrote or that the log knows, by id; the caller frees
 * *out.  Returns how many there are; 0 also without memory.
 */
size_t machine_totals_make(struct machine_total **out,
    const struct trace_sequences *sequences, const struct session_log *log)
    MUST_CHECK;

#endif /* CLIENT_INSPECT_REPORT_MACHINE_TOTALS_H */
