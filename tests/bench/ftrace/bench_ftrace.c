/*
 * bench_ftrace: what an event of the kernel costs on its way from a page of the
 * kernel's into a packet, beside the bytes alone.
 *
 *	bench_ftrace [ROUNDS]
 *
 * Figures are processor time of one thread for each event, on pages of Linux
 * 6.1 that were read from tracefs.  A row goes through all pages of its file,
 * a bundle for each 32 of them, as tributary-probes does.  A round measures
 * each row in turn; ratios are medians over the rounds of a row's figure
 * divided by the limit's of the same round: memcpy() of the pages.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/tracing/packet/packet.h"
#include "tests/unit/client/ftrace/events/real_kernel.h"

#define ROUNDS 200
#define ROUNDS_MAX 10000
/* Pages, as many as a batch of tributary-probes has. */
#define BATCH 32u
/* Batches that a row's figure is of. */
#define REPEAT 10u

enum row { LIMIT, PAGES, PLAIN, COMPACT, TASKS, DISK, DESCRIBED, ROWS };

static const struct {
	const char *name, *file;
	bool compact, translates;
	enum event_plan_form generic;
} rows[ROWS] = {
	[LIMIT] = { "limit: memcpy() of the pages", "sched.pages", false,
	    false, EVENT_PLAN_GENERIC },
	[PAGES] = { "records found, nothing written", "sched.pages", false,
	    false, EVENT_PLAN_GENERIC },
	[PLAIN] = { "switches and wakeups, an event each", "sched.pages",
	    false, true, EVENT_PLAN_GENERIC },
	[COMPACT] = { "switches and wakings as columns", "sched.pages", true,
	    true, EVENT_PLAN_GENERIC },
	[TASKS] = { "tasks, system calls, timers", "tasks.pages", false, true,
	    EVENT_PLAN_GENERIC },
	[DISK] = { "block I/O, work queues, interrupts", "disk.pages", false,
	    true, EVENT_PLAN_GENERIC },
	[DESCRIBED] = { "the same, generic ones described", "disk.pages",
	    false, true, EVENT_PLAN_DESCRIBED },
};

/* The batch of pages that a row reads. */
struct input {
	uint8_t pages[BATCH * REAL_PAGE];
	unsigned n_events;
	struct real_kernel *kernel;
	struct ftrace_bundle *bundle;
};

static struct input inputs[ROWS];
static double ns[ROWS][ROUNDS_MAX];
static size_t n_bytes[ROWS];

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Bytes that are written must have been. */
static void
keep(const void *p)
{
	__asm__ volatile("" : : "g"(p) : "memory");
}

static unsigned
count(const struct input *in, const uint8_t *page)
{
	struct page_record record;
	struct page_reader r;
	unsigned n = 0;

	if (!page_reader_init(&r, page, REAL_PAGE, &in->kernel->layout))
		errx(1, "a page is broken");
	while (page_reader_next(&r, &record)) {
		keep(record.data);
		n++;
	}
	return n;
}

static void
prepare(enum row row)
{
	const char *folder = getenv("FTRACE_DATA");
	struct ftrace_bundle_setup setup = { .compact = rows[row].compact };
	struct input *in = &inputs[row];
	size_t len, at;
	uint8_t *pages;

	if (folder == NULL)
		folder = FTRACE_DATA;
	in->kernel = real_kernel_new(folder, rows[row].generic);
	pages = real_pages(folder, rows[row].file, &len);
	for (at = 0; at < sizeof(in->pages); at += REAL_PAGE) {
		memcpy(in->pages + at, pages + at % len, REAL_PAGE);
		in->n_events += count(in, in->pages + at);
	}
	free(pages);
	if ((in->bundle = calloc(1, sizeof(*in->bundle))) == NULL)
		err(1, NULL);
	setup.env = real_env(in->kernel);
	ftrace_bundle_init(in->bundle, &setup);
}

/* One batch; into a packet that has its memory already. */
static void
translate(enum row row, uint8_t *room, size_t room_len)
{
	struct ftrace_bundle_head head = { 0 };
	struct tributary_packet packet;
	struct input *in = &inputs[row];
	unsigned n = 0;
	size_t at;

	packet_init_in(&packet, room, room_len);
	ftrace_bundle_begin(in->bundle, &packet, &head);
	for (at = 0; at < sizeof(in->pages); at += REAL_PAGE)
		n += real_page_add(in->kernel, in->bundle, in->pages + at);
	ftrace_bundle_end(in->bundle);
	if (n != in->n_events || packet.failed)
		errx(1, "%u of %u events", n, in->n_events);
	n_bytes[row] = packet_len(&packet);
	keep(packet.data);
	packet_done(&packet);
}

static void
one_batch(enum row row)
{
	static uint8_t room[4u << 20];
	const struct input *in = &inputs[row];
	size_t at;

	if (rows[row].translates) {
		translate(row, room, sizeof(room));
	} else if (row == LIMIT) {
		memcpy(room, in->pages, sizeof(in->pages));
		keep(room);
		n_bytes[row] = sizeof(in->pages);
	} else {
		for (at = 0; at < sizeof(in->pages); at += REAL_PAGE)
			count(in, in->pages + at);
	}
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(double *values, size_t n)
{
	qsort(values, n, sizeof(values[0]), by_value);
	return values[n / 2];
}

int
main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS, i, k;
	static double ratios[ROUNDS_MAX], figures[ROUNDS_MAX];
	enum row row;
	double begin;

	if (rounds == 0 || rounds > ROUNDS_MAX)
		errx(1, "usage: bench_ftrace [ROUNDS]");
	for (row = 0; row < ROWS; row++)
		prepare(row);
	for (i = 0; i < rounds; i++) {
		for (row = 0; row < ROWS; row++) {
			begin = now_ns();
			for (k = 0; k < REPEAT; k++)
				one_batch(row);
			ns[row][i] = (now_ns() - begin) / REPEAT /
			    inputs[row].n_events;
		}
	}
	printf("%-38s %10s %10s %12s\n", "", "ns/event", "of limit",
	    "bytes/event");
	for (row = 0; row < ROWS; row++) {
		for (i = 0; i < rounds; i++) {
			ratios[i] = ns[row][i] / ns[LIMIT][i];
			figures[i] = ns[row][i];
		}
		printf("%-38s %10.1f %10.1f %12.1f\n", rows[row].name,
		    median(figures, rounds), median(ratios, rounds),
		    (double)n_bytes[row] / inputs[row].n_events);
	}
	return 0;
}
