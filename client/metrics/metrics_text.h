/*
 * metrics_text: the totals of a collector (QueryMetricsReply), and of
 * tributary-web itself, as Prometheus reads them.  Pure, but for the file that
 * it prints to.
 */
#ifndef CLIENT_METRICS_METRICS_TEXT_H
#define CLIENT_METRICS_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/metrics/metrics.h"

struct Tributary__ProcessMetrics;
struct Tributary__QueryMetricsReply;

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
	const struct Tributary__ProcessMetrics *own;
	const struct metrics_answers *answers;
	size_t n_answers;
	uint64_t connections; /* that are open */
};

void metrics_text_print(FILE *out, const struct metrics_page *page,
    enum metrics_form form);

#endif /* CLIENT_METRICS_METRICS_TEXT_H */
