/*
 * metrics_text: writes a collector's totals (QueryMetricsReply) as Prometheus
 * reads them: text format 0.0.4, and OpenMetrics 1.0.  Pure, but for the file
 * that it prints to.
 *
 * Label values come from the collector: they are escaped, cut to
 * METRICS_LABEL_MAX bytes, and no more than METRICS_SERIES_MAX of a family are
 * printed, so that a hostile collector cannot fill what stores them.
 */
#ifndef CLIENT_METRICS_METRICS_TEXT_H
#define CLIENT_METRICS_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct Tributary__QueryMetricsReply;
struct process_stats;

#define METRICS_LABEL_MAX  64u
#define METRICS_SERIES_MAX 64u

enum metrics_form {
	METRICS_PROMETHEUS,
	METRICS_OPENMETRICS,
};
/* The value of Content-Type; static. */
const char *metrics_text_type(enum metrics_form form);

/* Answers of tributary-web with an HTTP status, 0: the place is not used. */
struct metrics_answers {
	unsigned status;
	uint64_t n;
};

/* All pointers are borrowed. */
struct metrics_page {
	/* NULL: the collector does not answer, and only the rest is printed. */
	const struct Tributary__QueryMetricsReply *collector;
	/* tributary-web itself. */
	const struct process_stats *own;
	const struct metrics_answers *answers;
	size_t n_answers;
	uint64_t connections; /* that are open */
};

void metrics_text_print(FILE *out, const struct metrics_page *page,
    enum metrics_form form);

#endif /* CLIENT_METRICS_METRICS_TEXT_H */
