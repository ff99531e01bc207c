/*
 * trace_summary and trace_report: any file can be looked at, and what is found
 * does not depend on how its bytes are cut.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/trace_report.h"
#include "client/trace/trace_summary.h"
#include "tests/fuzz/traces/traces.h"

/* Feeds it in pieces of step bytes; whether all of it was a trace. */
static int
feed(struct trace_summary *s, const uint8_t *data, size_t size, size_t step)
{
	char err[200];
	size_t at, n;

	for (at = 0; at < size; at += n) {
		n = size - at < step ? size - at : step;
		if (trace_summary_feed(s, data + at, n, err, sizeof(err)) < 0)
			return -1;
	}
	return 0;
}

static void
report(struct trace_summary *s)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL)
		abort();
	trace_report_print(out, s, "x", 1);
	fclose(out);
	free(text);
}

void
fuzz_trace_summary(const uint8_t *data, size_t size)
{
	struct trace_summary *whole = trace_summary_new();
	struct trace_summary *cut = trace_summary_new();
	size_t step = size == 0 ? 1 : 1 + data[size - 1] % 17;

	if (whole == NULL || cut == NULL)
		abort();
	if (feed(whole, data, size, size + 1) != feed(cut, data, size, step) ||
	    memcmp(trace_summary_totals(whole), trace_summary_totals(cut),
	    sizeof(struct trace_totals)) != 0 ||
	    trace_summary_whole_bytes(whole) != trace_summary_whole_bytes(cut))
		abort();
	report(whole);
	report(cut);
	trace_summary_free(whole);
	trace_summary_free(cut);
}
