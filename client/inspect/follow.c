#include "client/inspect/follow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/inspect/report/inspection.h"
#include "client/inspect/scan/trace_tail.h"
#include "client/inspect/scan/trace_window.h"
#include "client/trace/trace_summary.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

#define LINE_SECONDS 2

struct follow {
	struct inspection *inspection; /* borrowed */
	bool terminal;
	bool line_open; /* the cursor stands behind a line */
	time_t said_at;
	uint64_t said_packets;
};

static time_t
now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static bool
idle_cb(void *arg)
{
	struct follow *f = arg;
	const struct trace_totals *t;
	char packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];
	char gaps[HUMAN_TEXT_MAX];
	time_t now = now_seconds();

	t = trace_summary_totals(inspection_summary(f->inspection));
	if (t->packets == f->said_packets ||
	    (f->said_packets != 0 && now - f->said_at < LINE_SECONDS))
		return true;
	f->said_at = now;
	f->said_packets = t->packets;
	/* On a terminal the line replaces the last one. */
	fprintf(stderr, "%s%s packets, %s, %s gap%s so far%s",
	    f->terminal ? "\r\x1b[K" : "", human_count(packets, t->packets),
	    human_bytes(bytes, t->bytes), human_count(gaps, t->gaps),
	    human_s(t->gaps), f->terminal ? "" : "\n");
	f->line_open = f->terminal;
	return true;
}

int
inspect_follow_read(struct inspection *i, int fd, const char *path, char *err,
    size_t err_size)
{
	struct follow f = { .inspection = i,
		.terminal = isatty(STDERR_FILENO) != 0 };
	struct trace_window w;
	struct trace_tail *t;
	int rc;

	if ((t = trace_tail_new(fd, path, idle_cb, &f)) == NULL)
		return FAILURE(err, err_size, "%s", strerror(errno));
	trace_window_init(&w, trace_tail_read, t);
	rc = inspection_run(i, &w, 0, err, err_size);
	if (f.line_open)
		fputc('\n', stderr);
	if (trace_tail_trouble(t) != NULL)
		plain_printf(stderr, "tributary inspect: %s %s\n",
		    path == NULL ? "standard input" : path,
		    trace_tail_trouble(t));
	trace_window_done(&w);
	trace_tail_free(t);
	return rc;
}
