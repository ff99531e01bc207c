/*
 * trace_report: a summary of a trace, printed for people.
 */
#ifndef CLIENT_TRACE_TRACE_REPORT_H
#define CLIENT_TRACE_TRACE_REPORT_H

#include <stdint.h>
#include <stdio.h>

struct trace_summary;
struct trace_totals;

/* As wide as the section names; indents the lines under them. */
#define TRACE_REPORT_INDENT "                "

/*
 * Prints several lines: where the trace is, its contents, its losses and their
 * causes.  wall_ms is the duration of the recording, used when the trace does
 * not tell it; 0: not known.  Names that come from producers are escaped.
 */
void trace_report_print(FILE *out, struct trace_summary *s, const char *where,
    uint64_t wall_ms);

/* Sections of the report, for other reports. */
void trace_report_head(FILE *out, const struct trace_totals *t,
    const char *where, uint64_t wall_ms);
void trace_report_producers(FILE *out, struct trace_summary *s);
void trace_report_types(FILE *out, struct trace_summary *s);
void trace_report_losses(FILE *out, const struct trace_summary *s);
/* Events that were asked for and not recorded, and why; often nothing. */
void trace_report_troubles(FILE *out, const struct trace_summary *s);
/* Producers whose packets have the clock of another machine; often nothing. */
void trace_report_foreign_clocks(FILE *out, const struct trace_summary *s);

#endif /* CLIENT_TRACE_TRACE_REPORT_H */
