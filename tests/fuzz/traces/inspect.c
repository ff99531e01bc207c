/*
 * inspect: any file can be looked at; every byte of it is accounted for, and
 * what is found does not depend on how reads cut it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inspect/report/inspection.h"
#include "client/inspect/report/report.h"
#include "client/inspect/report/verdict.h"
#include "client/inspect/scan/trace_window.h"
#include "tests/fuzz/traces/traces.h"

struct input {
	const uint8_t *data;
	size_t left, step;
};

static ssize_t
read_cb(void *arg, uint8_t *buf, size_t len)
{
	struct input *in = arg;

	if (len > in->step)
		len = in->step;
	if (len > in->left)
		len = in->left;
	if (len > 0)
		memcpy(buf, in->data, len);
	in->data += len;
	in->left -= len;
	return (ssize_t)len;
}

/* Both reports, one behind the other; freed by the caller. */
static char *
inspect(const uint8_t *data, size_t size, size_t step)
{
	struct input in = { .data = data, .left = size, .step = step };
	struct inspection *i = inspection_new();
	const struct trace_scan *scan;
	struct inspect_verdict v;
	struct trace_window w;
	char err[200], *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (i == NULL || out == NULL)
		abort();
	trace_window_init(&w, read_cb, &in);
	if (inspection_run(i, &w, size, err, sizeof(err)) < 0)
		abort();
	scan = inspection_scan(i);
	if (scan->bytes != size ||
	    scan->packet_bytes + scan->skipped + scan->tail_bytes != size)
		abort();
	inspect_verdict_make(&v, i);
	if (v.text[0] == '\0')
		abort();
	inspect_report_text(out, i, &v, "x");
	inspect_report_json(out, i, &v, "x");
	fclose(out);
	trace_window_done(&w);
	inspection_free(i);
	return text;
}

void
fuzz_inspect(const uint8_t *data, size_t size)
{
	size_t step = size == 0 ? 1 : 1 + data[size - 1] % 17;
	char *whole = inspect(data, size, size + 1);
	char *cut = inspect(data, size, step);

	if (strcmp(whole, cut) != 0)
		abort();
	free(whole);
	free(cut);
}
