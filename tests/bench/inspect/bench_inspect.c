/*
 * What it costs to inspect a trace, beside reading and copying the same bytes
 * in the same run, and how much memory it takes.
 *
 * usage: bench_inspect [MIB]
 * The file (1024 MiB) is in memory, as on a tmpfs: a disk would be measured.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client/inspect/report/inspection.h"
#include "client/inspect/report/report.h"
#include "client/inspect/report/verdict.h"
#include "client/inspect/scan/trace_window.h"
#include "client/trace/trace_summary.h"
#include "transport/wire/pb_writer.h"

#define PIECE     (1u << 20)
#define BLOCK     (8u << 20) /* of packets, over and over */
#define SEQUENCES 40u
#define REPEATS   3 /* the best counts: the machine is shared */

static uint64_t sum; /* keeps the compiler from dropping work */

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

/* Of the processor: others work on the machine, too. */
static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Kilobytes, the most so far. */
static long
memory_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		sscanf(line, "VmHWM: %ld", &kb);
	if (f != NULL)
		fclose(f);
	return kb;
}

static void
snapshot(struct pb_writer *w)
{
	size_t packet = pb_nest_begin(w, 1), list = pb_nest_begin(w, 6), clock;
	uint32_t id;

	for (id = 1; id <= 6; id++) {
		clock = pb_nest_begin(w, 1);
		pb_put_uint(w, 1, id);
		pb_put_uint(w, 2, 1000000000000u);
		pb_nest_end(w, clock);
	}
	pb_nest_end(w, list);
	pb_put_uint(w, 10, 1);
	pb_nest_end(w, packet);
}

/* A track event of a thread, as a collector writes it down. */
static void
event(struct pb_writer *w, uint64_t i, size_t payload)
{
	static const char text[4096];
	size_t packet = pb_nest_begin(w, 1), nested;

	pb_put_uint(w, 8, 1000000000000u + i * 1000);
	pb_put_uint(w, 13, i < SEQUENCES ? 1 : 2);
	if (i % 4 == 3)
		pb_put_uint(w, 58, 3);
	nested = pb_nest_begin(w, 11);
	pb_put_uint(w, 9, 1);
	pb_put_uint(w, 10, i % 300);
	pb_put_bytes(w, 4, text, payload);
	pb_nest_end(w, nested);
	pb_put_uint(w, 3, 1000);
	pb_put_uint(w, 10, 2 + i % SEQUENCES);
	pb_put_uint(w, 79, 500 + i % SEQUENCES);
	pb_nest_end(w, packet);
}

/* A file of at least `bytes`, in memory. */
static int
make_file(uint64_t bytes, size_t payload)
{
	struct pb_writer w;
	uint64_t i, done;
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0)
		die("memfd_create");
	pb_writer_init(&w);
	snapshot(&w);
	for (i = 0; w.len < BLOCK; i++)
		event(&w, i, payload);
	for (done = 0; done < bytes; done += w.len) {
		if (write(fd, w.data, w.len) != (ssize_t)w.len)
			die("write");
	}
	pb_writer_done(&w);
	return fd;
}

/* As cat reads it. */
static void
just_read(int fd, uint8_t *buf)
{
	ssize_t n;

	while ((n = read(fd, buf, PIECE)) > 0)
		sum += buf[n - 1];
}

static void
read_and_copy(int fd, uint8_t *buf)
{
	ssize_t n;

	while ((n = read(fd, buf, PIECE)) > 0) {
		memcpy(buf + PIECE, buf, (size_t)n);
		sum += buf[PIECE + n - 1];
	}
}

static void
inspect(int fd, uint8_t *buf)
{
	struct inspection *i = inspection_new();
	struct inspect_verdict v;
	struct trace_window w;
	char err[200];
	FILE *out = fopen("/dev/null", "w");

	(void)buf;
	trace_window_init_fd(&w, &fd);
	if (i == NULL || out == NULL ||
	    inspection_run(i, &w, 0, err, sizeof(err)) < 0)
		die("inspect");
	inspect_verdict_make(&v, i);
	inspect_report_json(out, i, &v, "x");
	sum = trace_summary_totals(inspection_summary(i))->packets;
	fclose(out);
	trace_window_done(&w);
	inspection_free(i);
}

static double
best(int fd, uint8_t *buf, void (*fn)(int, uint8_t *))
{
	double began, took, least = 1e9;
	int i;

	for (i = 0; i < REPEATS; i++) {
		if (lseek(fd, 0, SEEK_SET) < 0)
			die("lseek");
		began = now();
		fn(fd, buf);
		if ((took = now() - began) < least)
			least = took;
	}
	return least;
}

static void
measure(uint64_t bytes, size_t payload, uint8_t *buf)
{
	int fd = make_file(bytes, payload);
	double gib = (double)lseek(fd, 0, SEEK_END) / (double)(1u << 30);
	double plain = best(fd, buf, just_read);
	double copied = best(fd, buf, read_and_copy);
	double took = best(fd, buf, inspect);

	printf("%.2f GiB, %llu packets of %.0f bytes: read %.2f s, read and "
	    "copied %.2f s, inspected %.2f s (%.2f GiB/s, %.0f ns a packet); "
	    "at most %.1f MiB of memory\n", gib, (unsigned long long)sum,
	    gib * (double)(1u << 30) / (double)sum, plain, copied, took,
	    gib / took, took * 1e9 / (double)sum, (double)memory_kb() / 1024);
	close(fd);
}

int
main(int argc, char **argv)
{
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
	uint8_t *buf = malloc(2 * PIECE);

	if (buf == NULL)
		die("malloc");
	/* The writer's own block is most of the first figure of memory. */
	measure(mib << 20, 20, buf);
	measure(mib << 20, 360, buf);
	printf("aim: a few seconds, and memory that does not grow with the "
	    "file\n");
	free(buf);
	return 0;
}
