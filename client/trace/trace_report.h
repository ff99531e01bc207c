/*
 * trace_report: a summary of a trace, printed for people.
 */
#ifndef CLIENT_TRACE_TRACE_REPORT_H
#define CLIENT_TRACE_TRACE_REPORT_H

#include <stdint.h>
#include <stdio.h>

struct trace_summary;
struct trace_totals;

/* Width of the names of sections; what follows them is indented so. */
#define TRACE_REPORT_INDENT "                "

/*
 * Several lines to out: where the trace is, what it holds, what was lost and
 * why.  wall_ms is how long it took, used when the trace does not say; 0: not
 * known.  Names that come from producers are escaped.
 */
void trace_report_print(FILE *out, struct trace_summary *s, const char *where,
    uint64_t wall_ms);

/* Sections of the report, for other reports. */
void trace_report_head(FILE *out, const struct trace_totals *t,
    const char *where, uint64_t wall_ms);
void trace_report_producers(FILE *out, struct trace_summary *s);
void trace_report_types(FILE *out, struct trace_summary *s);
void trace_report_losses(FILE *out, const struct trace_summary *s);
/* Producers whose packets have the clock of another machine; often nothing. */
void trace_report_foreign_clocks(FILE *out, const struct trace_summary *s);

#endif /* CLIENT_TRACE_TRACE_REPORT_H */
