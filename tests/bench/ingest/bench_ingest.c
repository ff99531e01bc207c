/*
 * bench_ingest: how fast the real daemon takes data, beside a bare sink that
 * only reads the same bytes, with the project's aims next to the figures.
 *
 *	TRIBUTARYD=path/to/tributaryd bench_ingest [MIB]
 *
 * MIB: how much each measurement sends (default 1024).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/bench/ingest/commits.h"
#include "tests/bench/ingest/file_check.h"
#include "tests/bench/ingest/idle.h"
#include "tests/bench/ingest/process.h"
#include "tests/bench/ingest/shared.h"
#include "tests/load/load_producer.h"
#include "tests/load/load_session.h"

#define RING_KB (64u * 1024u)
#define IDLE_CONNECTIONS 10000u
#define MAX_PRODUCERS 64u

/*
 * What the project's own producers keep in the kernel on the way to a collector
 * on the same machine.  Others leave it to the kernel, which queues megabytes
 * before them that no collector can overtake: both are reported.
 */
#define SMALL_SEND_BUFFER (128 * 1024)

struct workload {
	size_t producers;
	uint64_t chunks_each;
	bool into_file;
	int send_buffer; /* 0: the kernel's choice */
};

struct measured {
	struct commits_result commits;
	double seconds; /* until the last byte was read, taken, or is on file */
	double cpu;     /* of the reading process */
	double peak_kb; /* over its buffers */
	uint64_t lost;  /* chunks */
};

static double
mb_per_s(const struct measured *m)
{
	return (double)m->commits.bytes / 1e6 / m->seconds;
}

static double
cpu_per_gb(const struct measured *m)
{
	return m->cpu / ((double)m->commits.bytes / 1e9);
}

static void
measure_sink(size_t n, uint64_t chunks_each, struct measured *m)
{
	struct commits_target targets[MAX_PRODUCERS];
	struct process_sink_result result;
	struct process_sink sink;
	char address[64];
	uint64_t began;
	size_t i;

	memset(m, 0, sizeof(*m));
	process_sink_start(&sink, n);
	snprintf(address, sizeof(address), "127.0.0.1:%d", sink.port);
	for (i = 0; i < n; i++) {
		targets[i].fd = load_conn_connect(address);
		targets[i].tls = NULL;
		targets[i].service_id = 1;
		targets[i].method_id = 4;
		targets[i].buffer = 1;
	}
	began = load_now_ns();
	commits_run(targets, n, chunks_each, false, &m->commits);
	for (i = 0; i < n; i++)
		close(targets[i].fd);
	process_sink_wait(&sink, &result);
	m->seconds = (double)(result.ended_ns - began) / 1e9;
	m->cpu = result.cpu;
	if (result.bytes != m->commits.bytes)
		load_die("the sink missed bytes");
}

/* A file in memory that nobody else sees. */
static int
open_memory_file(uint64_t bytes)
{
	char path[] = "/dev/shm/trib-bench-XXXXXX";
	struct statvfs fs;
	int fd;

	if ((fd = mkstemp(path)) < 0)
		load_die("%s: %s", path, strerror(errno));
	unlink(path);
	if (fstatvfs(fd, &fs) == 0 && fs.f_bavail * fs.f_frsize < bytes * 5 / 4)
		load_die("/dev/shm has no room for %llu MiB: ask for fewer",
		    (unsigned long long)(bytes >> 20));
	return fd;
}

static void
open_producers(const struct process_daemon *d, struct load_producer *ps,
    size_t n)
{
	char name[32];
	size_t i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "bench.%zu", i);
		load_producer_open(&ps[i], d->producers_tcp, name, "bench", 0);
	}
}

static void
take_losses(struct load_session *s, int file, struct measured *m)
{
	struct load_stats stats;
	struct file_check check;
	uint64_t want;

	load_session_stats(s, &stats);
	m->lost = stats.chunks_lost;
	if (stats.chunks_written < m->commits.chunks)
		m->lost += m->commits.chunks - stats.chunks_written;
	if (file < 0)
		return;
	file_check(file, &check);
	want = m->commits.chunks * COMMITS_PACKETS;
	if (check.packets != want || check.losses > 0)
		m->lost += check.losses +
		    (want - check.packets) / COMMITS_PACKETS;
}

static void
measure_session(const struct process_daemon *d, struct load_producer *ps,
    size_t n, uint64_t chunks_each, int file, struct measured *m)
{
	struct commits_target targets[MAX_PRODUCERS];
	struct load_session session;
	uint64_t began, resident;
	double cpu;
	size_t i;

	resident = process_rss(d->pid);
	process_reset_peak(d->pid);
	cpu = process_cpu(d->pid);
	load_session_open(&session, d->consumers, "bench", RING_KB, file);
	load_producers_wait_started(ps, n, 1);
	for (i = 0; i < n; i++) {
		targets[i].fd = ps[i].conn.fd;
		targets[i].tls = NULL;
		targets[i].service_id = ps[i].conn.service_id;
		targets[i].method_id = load_conn_method(&ps[i].conn,
		    "CommitData");
		targets[i].buffer = ps[i].instances[0].buffer;
	}
	began = load_now_ns();
	commits_run(targets, n, chunks_each, true, &m->commits);
	m->seconds = m->commits.seconds;
	if (file < 0)
		m->cpu = process_cpu(d->pid) - cpu;
	load_session_request_stop(&session);
	load_producers_wait_stopped(ps, n);
	load_session_wait_ended(&session);
	if (file >= 0) {
		/* The file is complete only now. */
		m->seconds = (double)(load_now_ns() - began) / 1e9;
		m->cpu = process_cpu(d->pid) - cpu;
	}
	m->peak_kb = (double)process_peak(d->pid) - (double)resident - RING_KB;
	take_losses(&session, file, m);
	if (session.error[0] != '\0')
		load_die("the session ended with: %s", session.error);
	load_session_close(&session);
}

static void
measure_daemon(const char *binary, const struct workload *load,
    struct measured *m)
{
	struct process_daemon d;
	struct load_producer *ps;
	size_t i, n = load->producers;
	int file = -1;

	memset(m, 0, sizeof(*m));
	if ((ps = calloc(n, sizeof(*ps))) == NULL)
		load_die("no memory");
	if (load->into_file)
		file = open_memory_file(n * load->chunks_each *
		    COMMITS_CHUNK_BYTES);
	process_daemon_start(&d, binary, NULL);
	open_producers(&d, ps, n);
	for (i = 0; i < n && load->send_buffer > 0; i++)
		setsockopt(ps[i].conn.fd, SOL_SOCKET, SO_SNDBUF,
		    &load->send_buffer, sizeof(load->send_buffer));
	measure_session(&d, ps, n, load->chunks_each, file, m);
	for (i = 0; i < n; i++)
		load_producer_close(&ps[i]);
	process_daemon_stop(&d);
	free(ps);
	if (file >= 0)
		close(file);
}

static const char *
verdict(bool met)
{
	return met ? "met" : "NOT MET";
}

static void
report(const struct workload *load, const struct measured *sink,
    const struct measured *m, const struct measured *small)
{
	double ratio = mb_per_s(m) / mb_per_s(sink);
	double aim = load->into_file ? 0.4 : 0.6;
	double cpu = cpu_per_gb(m), times = cpu / cpu_per_gb(sink);
	double allowed_kb = 1024 + 256.0 * (double)load->producers;

	printf("%zu producer%s into a %s\n", load->producers,
	    load->producers == 1 ? "" : "s",
	    load->into_file ? "file on tmpfs" : "ring of 64 MiB");
	printf("  throughput      %7.0f MB/s, sink %.0f; ratio %.2f, aim "
	    ">= %.1f: %s\n", mb_per_s(m), mb_per_s(sink), ratio, aim,
	    verdict(ratio >= aim));
	if (load->into_file)
		printf("  processor       %7.2f s/GB, sink %.2f; aim <= 2: "
		    "%s\n", cpu, cpu_per_gb(sink), verdict(cpu <= 2));
	else
		printf("  processor       %7.2f s/GB, sink %.2f; %.1f times, "
		    "aim <= 2: %s\n", cpu, cpu_per_gb(sink), times,
		    verdict(times <= 2));
	printf("  round trip      %7.2f ms median, %.2f p99, %.2f longest; "
	    "aim p99 < 50: %s\n", m->commits.p50_ms, m->commits.p99_ms,
	    m->commits.max_ms, verdict(m->commits.p99_ms < 50));
	printf("   small buffers  %7.2f ms median, %.2f p99, %.2f longest; "
	    "aim p99 < 50: %s\n", small->commits.p50_ms,
	    small->commits.p99_ms, small->commits.max_ms,
	    verdict(small->commits.p99_ms < 50));
	printf("  peak memory     %7.0f KiB over the buffers; aim <= %.0f: "
	    "%s\n", m->peak_kb, allowed_kb, verdict(m->peak_kb <= allowed_kb));
	printf("  chunks lost     %7llu of %llu; aim 0: %s\n",
	    (unsigned long long)(m->lost + small->lost),
	    (unsigned long long)(m->commits.chunks + small->commits.chunks),
	    verdict(m->lost + small->lost == 0));
	fflush(stdout);
}

static void
bench_ingest(const char *binary, uint64_t bytes)
{
	static const size_t counts[] = { 1, 8, 64 };
	struct measured sink, daemon, small;
	struct workload load;
	size_t i;
	int into_file;

	puts("Over loopback TCP, 4 KiB chunks of 100-byte packets, as fast as "
	    "they are taken:");
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		load.producers = counts[i];
		load.chunks_each = bytes / COMMITS_CHUNK_BYTES / counts[i] /
		    COMMITS_REPLY_EVERY * COMMITS_REPLY_EVERY;
		measure_sink(load.producers, load.chunks_each, &sink);
		for (into_file = 0; into_file < 2; into_file++) {
			load.into_file = into_file;
			load.send_buffer = 0;
			measure_daemon(binary, &load, &daemon);
			load.send_buffer = SMALL_SEND_BUFFER;
			measure_daemon(binary, &load, &small);
			report(&load, &sink, &daemon, &small);
		}
	}
}

static void
bench_idle(const char *binary)
{
	struct process_daemon d;
	struct idle_result r;

	process_daemon_start(&d, binary, NULL);
	idle_run(&d, IDLE_CONNECTIONS, &r);
	process_daemon_stop(&d);
	printf("%u idle TCP producers\n", IDLE_CONNECTIONS);
	printf("  memory          %7.0f bytes resident each; aim <= 4096: "
	    "%s\n", r.bytes_each, verdict(r.bytes_each <= 4096));
	printf("  connecting      %7.0f us the 100th, %.0f us the last; aim "
	    "the same: %s\n", r.early_us, r.late_us,
	    verdict(r.late_us <= r.early_us * 1.5));
	printf("  all of them     %7.2f s, %.2f s of the daemon's processor\n",
	    r.total_seconds, r.cpu_seconds);
	fflush(stdout);
}

static void
bench_shared(const char *binary, uint64_t bytes)
{
	struct process_daemon d;
	struct shared_result r;
	double ratio;

	process_daemon_start(&d, binary, NULL);
	shared_run(&d, bytes, RING_KB, &r);
	process_daemon_stop(&d);
	ratio = r.mb_per_s / r.memcpy_mb_per_s;
	puts("1 producer over shared memory, 4 KiB chunks");
	printf("  throughput      %7.0f MB/s, memcpy %.0f; ratio %.2f, aim "
	    ">= 0.5: %s\n", r.mb_per_s, r.memcpy_mb_per_s, ratio,
	    verdict(ratio >= 0.5));
	printf("  processor       %7.2f s/GB of the daemon\n", r.cpu_per_gb);
	printf("  chunks lost     %7llu; aim 0: %s\n",
	    (unsigned long long)r.lost, verdict(r.lost == 0));
}

int
main(int argc, char **argv)
{
	const char *binary = getenv("TRIBUTARYD");
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;

	if (binary == NULL || argc > 2 || mib < 16)
		load_die("usage: TRIBUTARYD=PROGRAM bench_ingest [MIB, at "
		    "least 16]");
	bench_ingest(binary, mib << 20);
	bench_shared(binary, mib << 20);
	bench_idle(binary);
	return 0;
}
