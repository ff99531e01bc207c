#include "client/inspect/packets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/clock/clock_name.h"
#include "client/clock/trace_clocks.h"
#include "client/inspect/options.h"
#include "client/inspect/packet_show.h"
#include "client/inspect/scan/trace_open.h"
#include "client/inspect/scan/trace_scan.h"
#include "client/inspect/scan/trace_tail.h"
#include "client/inspect/scan/trace_window.h"
#include "client/text/progress.h"
#include "protos/clock.pb-c.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

#define ERROR_BYTES 512
/* Clocks that are named where one is not known. */
#define MAX_NAMED 24u

enum wall_clock {
	REALTIME = PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_REALTIME,
	REALTIME_COARSE =
	    PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_REALTIME_COARSE,
};

/* Exit statuses, like the report's. */
enum { EXIT_WHOLE = 0, EXIT_FAILED = 1, EXIT_DAMAGED = 2 };

struct reading {
	const struct inspect_options *options;
	int fd;
	struct trace_window window;
	struct trace_tail *tail;  /* owned; NULL: it is not followed */
	struct packet_show *show; /* owned */
	struct trace_scan scan;
	struct progress progress;
};

static int
refuse(const char *text)
{
	plain_printf(stderr, "tributary inspect: %s\n", text);
	return EXIT_FAILED;
}

static int
fail(const char *text)
{
	(void)refuse(text);
	return -1;
}

/* Flushes, so that packets are seen while no others come. */
static bool
idle_cb(void *arg)
{
	return fflush(stdout) == 0;
}

/* Ends the trace when the output failed: the rest need not be read. */
static ssize_t
read_cb(void *arg, uint8_t *buf, size_t len)
{
	struct reading *r = arg;

	if (packet_show_failed(r->show) != NULL)
		return 0;
	if (r->tail != NULL)
		return trace_tail_read(r->tail, buf, len);
	return read(r->fd, buf, len);
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len, uint64_t bytes,
    uint64_t offset)
{
	struct reading *r = arg;

	if (packet_show_take(r->show, data, len, offset))
		return true;
	if (r->options->mode == INSPECT_PACKETS)
		printf("# malformed, %" PRIu64 " bytes at byte %" PRIu64 "\n",
		    bytes, offset);
	return false;
}

/*
 * Whether packets go into a file, or nowhere: on a terminal, or through a pager
 * to one, a line of progress would be among them.
 */
static bool
has_quiet_output(const struct inspect_options *o)
{
	struct stat st;

	return o->mode == INSPECT_CONVERT ||
	    (fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode));
}

static void
reading_done(struct reading *r)
{
	packet_show_free(r->show);
	trace_tail_free(r->tail);
	trace_window_done(&r->window);
	if (r->fd > STDIN_FILENO)
		close(r->fd);
}

/* Reads all of the trace, and shows of it what out is for.  -1: refused. */
static int
read_trace(struct reading *r, const struct inspect_options *o, FILE *out)
{
	const struct trace_scan_ops ops = { .packet = packet_cb, .arg = r };
	const char *path = strcmp(o->path, "-") == 0 ? NULL : o->path;
	char err[ERROR_BYTES];
	uint64_t size;
	int rc;

	memset(r, 0, sizeof(*r));
	r->options = o;
	if ((r->fd = trace_open(o->path, &size, err, sizeof(err))) < 0)
		return fail(err);
	trace_window_init(&r->window, read_cb, r);
	if ((r->show = packet_show_new(out, &o->filter)) == NULL)
		return fail("out of memory");
	if (o->follow) {
		size = 0;
		r->tail = trace_tail_new(r->fd, path, idle_cb, r);
		if (r->tail == NULL)
			return fail(strerror(errno));
	} else if (has_quiet_output(o)) {
		progress_begin_bytes(&r->progress, "read", size);
		r->window.progress = &r->progress;
	}
	rc = trace_scan_run(&r->scan, &r->window, size, &ops, err, sizeof(err));
	progress_clear(&r->progress);
	return rc < 0 ? fail(err) : 0;
}

/* Tells damage on standard error, as it is no part of the text. */
static int
tell_damage(const struct reading *r)
{
	const char *path = r->options->path;
	const struct trace_scan *s = &r->scan;
	char text[ERROR_BYTES], bytes[HUMAN_TEXT_MAX];
	uint64_t i;

	for (i = 0; i < s->n_damages && i < TRACE_SCAN_PLACES; i++) {
		trace_damage_text(text, sizeof(text), &s->damages[i]);
		plain_printf(stderr, "tributary inspect: %s: damaged at byte %"
		    PRIu64 ": %s\n", path, s->damages[i].offset, text);
	}
	/* A file that is still being written ends anywhere. */
	if (s->tail_bytes > 0 && r->tail == NULL)
		plain_printf(stderr, "tributary inspect: %s: ends within a "
		    "packet, %s after byte %" PRIu64 "\n", path,
		    human_bytes(bytes, s->tail_bytes), s->tail_offset);
	if (s->packets == 0 && s->bytes > 0 && r->tail == NULL) {
		plain_printf(stderr, "tributary inspect: %s: no trace: not one "
		    "packet is in it\n", path);
		return EXIT_FAILED;
	}
	return s->n_damages > 0 || packet_show_damaged(r->show) > 0 ||
	    (s->tail_bytes > 0 && r->tail == NULL) ?
	    EXIT_DAMAGED : EXIT_WHOLE;
}

static int
status_of(struct reading *r)
{
	const char *failed = packet_show_failed(r->show), *trouble = NULL;
	int status;

	if (fflush(stdout) != 0 || ferror(stdout)) {
		/* EPIPE: the reader has seen enough. */
		if (errno == EPIPE)
			return EXIT_WHOLE;
		return refuse(strerror(errno));
	}
	if (failed != NULL)
		return refuse(failed);
	status = tell_damage(r);
	if (r->tail != NULL)
		trouble = trace_tail_trouble(r->tail);
	if (trouble == NULL)
		return status;
	plain_printf(stderr, "tributary inspect: %s %s\n", r->options->path,
	    trouble);
	return EXIT_FAILED;
}

int
inspect_packets_run(const struct inspect_options *o)
{
	struct reading r;
	int status = EXIT_FAILED;

	if (read_trace(&r, o, stdout) == 0)
		status = status_of(&r);
	reading_done(&r);
	return status;
}

/* "CLOCK:TIME" */
static int
parse_convert(const char *text, struct clock_at *out, char *err,
    size_t err_size)
{
	const char *colon = strrchr(text, ':');
	char *end;

	if (colon == NULL || colon[1] < '0' || colon[1] > '9')
		return FAILURE(err, err_size, "--convert wants "
		    "CLOCK:NANOSECONDS, as MONOTONIC:123456789");
	errno = 0;
	out->ns = strtoull(colon + 1, &end, 10);
	if (errno != 0 || *end != '\0')
		return FAILURE(err, err_size, "--convert wants whole "
		    "nanoseconds behind the colon");
	return clock_name_parse(&out->clock, text, (size_t)(colon - text),
	    err, err_size);
}

static void
print_at(FILE *out, const struct clock_at *at)
{
	char name[CLOCK_NAME_MAX];

	fprintf(out, "%s %" PRId64, clock_name(name, &at->clock),
	    (int64_t)at->ns);
	if (at->clock.machine != 0)
		fprintf(out, " of machine %" PRIu32, at->clock.machine);
}

/* Prints the date of a wall clock. */
static void
print_date(const struct clock_at *at)
{
	char text[sizeof("2026-11-21 13:00:05")];
	time_t s = (time_t)(at->ns / 1000000000);
	struct tm tm;

	if ((at->clock.id != REALTIME && at->clock.id != REALTIME_COARSE) ||
	    gmtime_r(&s, &tm) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return;
	printf(", %s.%09" PRIu64 " UTC", text, at->ns % 1000000000);
}

static void
name_clocks(struct clock_graph *g, uint32_t machine)
{
	const struct clock_graph_clock *c;
	size_t i, n = clock_graph_clocks(g, &c), named = 0;
	char name[CLOCK_NAME_MAX];

	for (i = 0; i < n && named < MAX_NAMED; i++) {
		if (c[i].key.machine == machine)
			plain_printf(stderr, "%s%s", named++ == 0 ?
			    "Clocks that are known: " : ", ",
			    clock_name(name, &c[i].key));
	}
	if (named > 0)
		fputs(i < n ? ", ...\n" : "\n", stderr);
}

static bool
was_read(const struct clock_graph *g, const struct clock_key *k)
{
	const struct clock_graph_clock *c;
	size_t i, n = clock_graph_clocks(g, &c);

	for (i = 0; i < n; i++) {
		if (clock_key_compare(&c[i].key, k) == 0)
			return true;
	}
	return false;
}

static int
cannot_convert(struct reading *r, const struct clock_at *at,
    const struct clock_key *to, enum clock_result why)
{
	struct clock_graph *g = trace_clocks_graph(packet_show_clocks(r->show));
	uint32_t machine = at->clock.machine;
	char name[CLOCK_NAME_MAX];

	fputs("tributary inspect: ", stderr);
	print_at(stderr, at);
	switch (why) {
	case CLOCK_OK:
	case CLOCK_NO_WAY:
		plain_printf(stderr, ": nothing leads from this clock to %s",
		    clock_name(name, to));
		if (!was_read(g, to)) {
			fputs(", which was never read", stderr);
			machine = to->machine;
		}
		break;
	case CLOCK_UNKNOWN:
		fputs(": this clock was never read", stderr);
		break;
	case CLOCK_WENT_BACK:
		fputs(": this clock went back, so the time is ambiguous",
		    stderr);
		break;
	}
	fputc('\n', stderr);
	name_clocks(g, machine);
	return EXIT_FAILED;
}

/*
 * Prints the distance from the trace's start, where the trace clock can tell.
 */
static void
print_into_trace(struct reading *r, const struct clock_at *at)
{
	char text[CLOCK_NAME_MAX];
	uint64_t start, ns;

	if (packet_show_start(r->show, &start) && trace_clocks_convert(
	    packet_show_clocks(r->show), at, &ns) == CLOCK_OK)
		printf("%s s into the trace\n", clock_seconds(text,
		    (int64_t)(ns - start)));
}

/* A line a clock on the way, and one of when it is in the trace. */
static int
convert(struct reading *r, const struct clock_at *from,
    const struct clock_key *to)
{
	struct clock_graph *g = trace_clocks_graph(packet_show_clocks(r->show));
	struct clock_key way[CLOCK_GRAPH_MAX_STEPS + 1];
	struct clock_at at = *from;
	enum clock_result result;
	uint64_t ns;
	size_t i, n;

	if ((result = clock_graph_convert(g, from, to, &ns)) != CLOCK_OK)
		return cannot_convert(r, from, to, result);
	n = clock_graph_way(g, &from->clock, to, way);
	print_at(stdout, from);
	putchar('\n');
	for (i = 1; i < n; i++) {
		if ((result = clock_graph_convert(g, &at, &way[i], &at.ns)) !=
		    CLOCK_OK)
			return cannot_convert(r, &at, to, result);
		at.clock = way[i];
		fputs("  is ", stdout);
		print_at(stdout, &at);
		print_date(&at);
		putchar('\n');
	}
	print_into_trace(r, from);
	return EXIT_WHOLE;
}

/* The machine of a clock, where one is named.  -1: the trace knows none. */
static int
find_machine(const struct reading *r, const char *name, uint32_t *out)
{
	char err[ERROR_BYTES];

	if (name == NULL || packet_show_machine(r->show, name, out))
		return 0;
	snprintf(err, sizeof(err), "the trace knows no machine %s", name);
	return fail(err);
}

int
inspect_convert_run(const struct inspect_options *o)
{
	char err[ERROR_BYTES];
	struct clock_key to;
	struct clock_at at;
	struct reading r;
	int status = EXIT_FAILED;

	if (parse_convert(o->convert, &at, err, sizeof(err)) < 0 ||
	    (o->into != NULL && clock_name_parse(&to, o->into,
	    strlen(o->into), err, sizeof(err)) < 0))
		return refuse(err);
	if (read_trace(&r, o, NULL) < 0)
		goto out;
	if (o->into == NULL)
		to = trace_clocks_trace_clock(packet_show_clocks(r.show));
	if (find_machine(&r, o->filter.machine, &at.clock.machine) < 0 ||
	    find_machine(&r, o->into_machine, &to.machine) < 0)
		goto out;
	status = convert(&r, &at, &to);
	if (tell_damage(&r) != EXIT_WHOLE && status == EXIT_WHOLE)
		status = EXIT_DAMAGED;
out:
	reading_done(&r);
	return status;
}
