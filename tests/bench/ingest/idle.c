#include "tests/bench/ingest/idle.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/bench/ingest/process.h"
#include "tests/load/load_producer.h"

#define SAMPLE 50u

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median_us(double *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), compare_doubles);
	return ns[n / 2] / 1000;
}

static void
allow_descriptors(size_t n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < n + 100)
		load_die("%zu connections need a higher limit of open files "
		    "(ulimit -Hn)", n);
}

/*
 * The receive buffer of an idle load_conn would make this process large: it
 * is not needed until the end.
 */
static void
drop_buffer(struct load_producer *p)
{
	free(p->conn.in);
	p->conn.in = NULL;
}

void
idle_run(const struct process_daemon *d, size_t n, struct idle_result *out)
{
	struct load_producer *ps;
	double *took, cpu;
	uint64_t began, t;
	uint64_t before;
	char name[32];
	size_t i;

	allow_descriptors(n);
	ps = calloc(n, sizeof(*ps));
	took = calloc(n, sizeof(*took));
	if (ps == NULL || took == NULL || n < 100 + SAMPLE)
		load_die("no memory for %zu connections", n);

	before = process_rss(d->pid);
	cpu = process_cpu(d->pid);
	began = load_now_ns();
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "idle.%zu", i);
		t = load_now_ns();
		load_producer_open(&ps[i], d->producers_tcp, name, "idle", 0);
		took[i] = (double)(load_now_ns() - t);
		drop_buffer(&ps[i]);
	}
	out->total_seconds = (double)(load_now_ns() - began) / 1e9;
	out->cpu_seconds = process_cpu(d->pid) - cpu;
	out->bytes_each = (double)(process_rss(d->pid) - before) * 1024 /
	    (double)n;
	out->early_us = median_us(took + 100 - SAMPLE / 2, SAMPLE);
	out->late_us = median_us(took + n - SAMPLE, SAMPLE);

	for (i = 0; i < n; i++)
		load_producer_close(&ps[i]);
	free(ps);
	free(took);
}
