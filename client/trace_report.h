/*
 * trace_report: a summary of a trace, printed for people.
 */
#ifndef CLIENT_TRACE_REPORT_H
#define CLIENT_TRACE_REPORT_H

#include <stdint.h>
#include <stdio.h>

struct trace_summary;

/*
 * Several lines to out: where the trace is, what it holds, what was lost and
 * why.  wall_ms is how long it took, used when the trace does not say; 0: not
 * known.  Names that come from producers are escaped.
 */
void trace_report_print(FILE *out, struct trace_summary *s, const char *where,
    uint64_t wall_ms);

#endif /* CLIENT_TRACE_REPORT_H */
