/*
 * bench_io: what `io_threads` buys: throughput over TCP and TLS with none, one
 * and more, and where the processor time goes: to the thread that has the
 * sessions (the owner) or to those that have the sockets.
 *
 *	TRIBUTARYD=path/to/tributaryd bench_io [MIB [MOST_THREADS]]
 *
 * MIB: how much each measurement sends (default 512); MOST_THREADS: how far the
 * curve goes (default 3).  Nothing is pinned: the
 * devices share the processors with the collector, so on a small machine it is
 * the seconds a gigabyte that tell, not the rate: the owner's are the end of
 * the curve.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/ingest/commits.h"
#include "tests/bench/ingest/process.h"
#include "tests/load/load_ca.h"
#include "tests/load/load_producer.h"
#include "tests/load/load_session.h"
#include "tests/load/load_tls.h"

#define RING_KB   (64u * 1024u)
#define PRODUCERS 64u
#define ROUNDS    3u
#define THREADS   3u

static const char *daemon_binary;
static char folder[] = "/tmp/trib-io-XXXXXX";
static char collector_dir[64], device_dir[64];

/* Seconds of processor time. */
struct threads_cpu {
	double owner;
	double io; /* all of them */
};

struct rate {
	double mb_per_s;
	struct threads_cpu per_gb;
	double p99_ms; /* round trip */
	uint64_t lost; /* chunks */
};

/* ---- whose time it is ---- */

static double
task_cpu(pid_t pid, const char *task)
{
	char path[320];
	unsigned long long ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid,
	    task);
	if ((f = fopen(path, "r")) == NULL || fscanf(f, "%llu", &ns) != 1)
		load_die("%s: %s", path, strerror(errno));
	fclose(f);
	return (double)ns / 1e9;
}

static bool
is_io(pid_t pid, const char *task)
{
	char path[320], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, task);
	if ((f = fopen(path, "r")) == NULL)
		return false;
	(void)!fread(name, 1, sizeof(name) - 1, f);
	fclose(f);
	return strncmp(name, "io-", 3) == 0;
}

static void
threads_cpu(pid_t pid, struct threads_cpu *out)
{
	struct dirent *e;
	char path[64];
	DIR *d;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if ((d = opendir(path)) == NULL)
		load_die("%s: %s", path, strerror(errno));
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (atoi(e->d_name) == (int)pid)
			out->owner += task_cpu(pid, e->d_name);
		else if (is_io(pid, e->d_name))
			out->io += task_cpu(pid, e->d_name);
	}
	closedir(d);
}

/* ---- one measurement ---- */

static void
set_targets(struct commits_target *targets, const struct load_producer *ps)
{
	size_t i;

	for (i = 0; i < PRODUCERS; i++) {
		targets[i].fd = ps[i].conn.fd;
		targets[i].tls = ps[i].conn.tls;
		targets[i].service_id = ps[i].conn.service_id;
		targets[i].method_id = load_conn_method(&ps[i].conn,
		    "CommitData");
		targets[i].buffer = ps[i].instances[0].buffer;
	}
}

static void
rate_of_session(const struct process_daemon *d, const char *address,
    uint64_t chunks_each, struct rate *r)
{
	struct load_producer *ps = calloc(PRODUCERS, sizeof(*ps));
	struct commits_target targets[PRODUCERS];
	struct threads_cpu before, after;
	struct commits_result commits;
	struct load_session session;
	struct load_stats stats;
	char name[32];
	double gb;
	size_t i;

	if (ps == NULL)
		load_die("no memory");
	memset(targets, 0, sizeof(targets));
	for (i = 0; i < PRODUCERS; i++) {
		snprintf(name, sizeof(name), "bench.%zu", i);
		load_producer_open(&ps[i], address, name, "bench", 0);
	}
	load_session_open(&session, d->consumers, "bench", RING_KB, -1);
	load_producers_wait_started(ps, PRODUCERS, 1);
	set_targets(targets, ps);
	threads_cpu(d->pid, &before);
	commits_run(targets, PRODUCERS, chunks_each, true, &commits);
	threads_cpu(d->pid, &after);
	gb = (double)commits.bytes / 1e9;
	r->mb_per_s = gb * 1e3 / commits.seconds;
	r->per_gb.owner = (after.owner - before.owner) / gb;
	r->per_gb.io = (after.io - before.io) / gb;
	r->p99_ms = commits.p99_ms;
	load_session_request_stop(&session);
	load_producers_wait_stopped(ps, PRODUCERS);
	load_session_wait_ended(&session);
	load_session_stats(&session, &stats);
	r->lost = stats.chunks_lost;
	if (stats.chunks_written < commits.chunks)
		r->lost += commits.chunks - stats.chunks_written;
	load_session_close(&session);
	for (i = 0; i < PRODUCERS; i++)
		load_producer_close(&ps[i]);
	free(ps);
}

static void
rate_with(unsigned threads, bool tls, uint64_t chunks_each, struct rate *r)
{
	struct tls_context *devices = load_tls_context(device_dir, TLS_CLIENT);
	struct process_daemon d;
	char config[64];
	FILE *f;

	load_tls_use(devices);
	snprintf(config, sizeof(config), "%s/settings", folder);
	if ((f = fopen(config, "w")) == NULL)
		load_die("%s: %s", config, strerror(errno));
	fprintf(f, "io_threads: %u\n", threads);
	fclose(f);
	process_daemon_start_with(&d, daemon_binary, collector_dir, config);
	rate_of_session(&d, tls ? d.producers_tls : d.producers_tcp,
	    chunks_each, r);
	process_daemon_stop(&d);
	tls_context_free(devices);
	unlink(config);
}

/* ---- the curve ---- */

static int
by_rate(const void *a, const void *b)
{
	double x = ((const struct rate *)a)->mb_per_s;
	double y = ((const struct rate *)b)->mb_per_s;

	return (x > y) - (x < y);
}

/* The round whose rate is the median. */
static void
typical_of(unsigned threads, bool tls, uint64_t chunks_each, struct rate *out)
{
	struct rate all[ROUNDS];
	uint64_t lost = 0;
	size_t i;

	for (i = 0; i < ROUNDS; i++) {
		rate_with(threads, tls, chunks_each, &all[i]);
		lost += all[i].lost;
	}
	qsort(all, ROUNDS, sizeof(all[0]), by_rate);
	*out = all[ROUNDS / 2];
	out->lost = lost;
}

static void
show(unsigned threads, const struct rate *r)
{
	printf("  %2u threads  %6.0f MB/s   owner %.3f s/GB   threads %.3f "
	    "s/GB   owner full at %.0f MB/s, beside %.1f threads   p99 %.1f ms"
	    "   lost %llu\n", threads, r->mb_per_s, r->per_gb.owner,
	    r->per_gb.io, 1e3 / r->per_gb.owner, r->per_gb.io / r->per_gb.owner,
	    r->p99_ms, (unsigned long long)r->lost);
	fflush(stdout);
}

static void
curve(bool tls, unsigned most, uint64_t chunks_each)
{
	struct rate none, r = { 0 };
	unsigned n;

	printf("%u producers over %s into a ring of 64 MiB (medians of %u), "
	    "%ld processors\n", PRODUCERS, tls ? "TLS" : "TCP", ROUNDS,
	    sysconf(_SC_NPROCESSORS_ONLN));
	typical_of(0, tls, chunks_each, &none);
	show(0, &none);
	for (n = 1; n <= most; n++) {
		typical_of(n, tls, chunks_each, &r);
		show(n, &r);
	}
	printf("  with %u it is full at %.1f times the rate of none\n\n", most,
	    none.per_gb.owner / r.per_gb.owner);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 512;
	unsigned most = argc > 2 ? (unsigned)atoi(argv[2]) : THREADS;
	uint64_t chunks;

	daemon_binary = getenv("TRIBUTARYD");
	if (daemon_binary == NULL || argc > 3 || mib < 16 || most < 1)
		load_die("usage: TRIBUTARYD=PROGRAM bench_io [MIB, at least "
		    "16 [MOST_THREADS]]");
	if (mkdtemp(folder) == NULL)
		load_die("%s: %s", folder, strerror(errno));
	load_ca_make(folder);
	snprintf(collector_dir, sizeof(collector_dir), "%s/%s", folder,
	    LOAD_CA_COLLECTOR);
	snprintf(device_dir, sizeof(device_dir), "%s/%s", folder,
	    LOAD_CA_DEVICE);
	chunks = (mib << 20) / COMMITS_CHUNK_BYTES / PRODUCERS /
	    COMMITS_REPLY_EVERY * COMMITS_REPLY_EVERY;

	curve(false, most, chunks);
	curve(true, most, chunks);

	load_ca_remove(folder);
	rmdir(folder);
	return 0;
}
