#include "client/inspect/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/inspect/follow.h"
#include "client/inspect/options.h"
#include "client/inspect/packets.h"
#include "client/inspect/report/inspection.h"
#include "client/inspect/report/report.h"
#include "client/inspect/report/verdict.h"
#include "client/inspect/scan/trace_open.h"
#include "client/inspect/scan/trace_window.h"
#include "client/text/progress.h"
#include "protos/plain_text.h"

#define ERROR_BYTES 512

enum { EXIT_WHOLE = 0, EXIT_FAILED = 1, EXIT_DAMAGED = 2, EXIT_STRICT = 3 };

static int
refuse(const char *text)
{
	plain_printf(stderr, "tributary inspect: %s\n", text);
	return EXIT_FAILED;
}

static int
status_of(enum inspect_verdict_kind kind, bool strict)
{
	switch (kind) {
	case INSPECT_WHOLE:
		return EXIT_WHOLE;
	case INSPECT_LOSSY:
	case INSPECT_WRONG_TIMES:
		return strict ? EXIT_STRICT : EXIT_WHOLE;
	case INSPECT_UNFINISHED:
	case INSPECT_CUT_OFF:
	case INSPECT_DAMAGED:
		return EXIT_DAMAGED;
	case INSPECT_NO_TRACE:
		return EXIT_FAILED;
	}
	return EXIT_FAILED;
}

static int
report(const struct inspection *i, const struct inspect_options *o)
{
	struct inspect_verdict v;

	inspect_verdict_make(&v, i);
	if (o->json)
		inspect_report_json(stdout, i, &v, o->path);
	else
		inspect_report_text(stdout, i, &v, o->path);
	if (fflush(stdout) != 0)
		return refuse(strerror(errno));
	return status_of(v.kind, o->strict);
}

/* -1: err is set. */
static int
read_whole(struct inspection *i, struct trace_window *w, uint64_t size,
    char *err, size_t err_size)
{
	struct progress progress;
	int rc;

	progress_begin_bytes(&progress, "read", size);
	w->progress = &progress;
	rc = inspection_run(i, w, size, err, err_size);
	progress_clear(&progress);
	w->progress = NULL;
	return rc;
}

static int
run_report(const struct inspect_options *o)
{
	struct inspection *i = NULL;
	struct trace_window w;
	char err[ERROR_BYTES];
	uint64_t size;
	int fd, status = EXIT_FAILED;

	if ((fd = trace_open(o->path, &size, err, sizeof(err))) < 0)
		return refuse(err);
	trace_window_init_fd(&w, &fd);
	if ((i = inspection_new()) == NULL)
		refuse("out of memory");
	else if ((o->follow ? inspect_follow_read(i, fd,
	    fd == STDIN_FILENO ? NULL : o->path, err, sizeof(err)) :
	    read_whole(i, &w, size, err, sizeof(err))) < 0)
		refuse(err);
	else
		status = report(i, o);
	inspection_free(i);
	trace_window_done(&w);
	if (fd != STDIN_FILENO)
		close(fd);
	return status;
}

int
inspect_main(int argc, char **argv)
{
	struct inspect_options o;
	char err[ERROR_BYTES];
	int status;

	status = flags_answer(&inspect_options_flags,
	    inspect_options_parse(&o, argc, argv, err, sizeof(err)), err);
	if (status >= 0)
		return status;
	switch (o.mode) {
	case INSPECT_REPORT:
		return run_report(&o);
	case INSPECT_PACKETS:
		return inspect_packets_run(&o);
	case INSPECT_CONVERT:
		return inspect_convert_run(&o);
	}
	return EXIT_FAILED;
}
