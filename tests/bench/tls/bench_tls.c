/*
 * bench_tls: what TLS costs the collector, beside a bare sink on the same
 * library (transport/tls/tls.h) that reads and throws away, or only shakes
 * hands; with the project's aims next to the figures.
 *
 *	TRIBUTARYD=path/to/tributaryd bench_tls [MIB]
 *
 * MIB: how much each measurement of throughput sends (default 512).  Devices
 * are on the first processor, the collector or the sink on the second.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/bench/ingest/commits.h"
#include "tests/bench/ingest/process.h"
#include "tests/bench/tls/pacer.h"
#include "tests/bench/tls/storm.h"
#include "tests/bench/tls/tls_sink.h"
#include "tests/load/load_ca.h"
#include "tests/load/load_producer.h"
#include "tests/load/load_session.h"
#include "tests/load/load_tls.h"

#define RING_KB       (64u * 1024u)
#define PRODUCERS     64u
#define DEVICES       2000u
#define HALF_OPEN     1000u
#define HANDSHAKES    500u
#define ROUNDS        5u
#define STORM_ROUNDS  3u
/* Until connections count as idle: the collector tidies up once a second. */
#define IDLE_SECONDS  3u
#define DEVICES_CPU   0
#define COLLECTOR_CPU 1

static const char *daemon_binary;
static char folder[] = "/tmp/trib-tls-XXXXXX";
static char collector_dir[64], device_dir[64];

struct rate {
	double mb_per_s;
	double cpu_per_gb; /* of the reading process */
	double p99_ms;     /* round trip; 0 for a sink */
	uint64_t lost;     /* chunks */
};

static const char *
verdict(bool met)
{
	return met ? "met" : "NOT MET";
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(const double *values, size_t n)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
	return sorted[n / 2];
}

static void
start_daemon(struct process_daemon *d)
{
	process_daemon_start(d, daemon_binary, collector_dir);
	process_pin(d->pid, COLLECTOR_CPU);
}

/* Devices that never met a collector: nothing to resume. */
static struct tls_context *
new_devices(void)
{
	struct tls_context *c = load_tls_context(device_dir, TLS_CLIENT);

	load_tls_use(c);
	return c;
}

/* ---- throughput ---- */

static void
set_rate(struct rate *r, const struct commits_result *c, double seconds,
    double cpu)
{
	r->mb_per_s = (double)c->bytes / 1e6 / seconds;
	r->cpu_per_gb = cpu / ((double)c->bytes / 1e9);
	r->p99_ms = c->p99_ms;
}

static void
rate_of_sink(uint64_t chunks_each, struct rate *r)
{
	struct commits_target targets[PRODUCERS];
	struct tls_sink_result result;
	struct commits_result commits;
	struct tls_sink sink;
	char host[LOAD_HOST_SIZE];
	uint64_t began;
	size_t i;

	memset(r, 0, sizeof(*r));
	memset(targets, 0, sizeof(targets));
	tls_sink_start(&sink, collector_dir, PRODUCERS, COLLECTOR_CPU);
	load_conn_host(sink.address, host);
	for (i = 0; i < PRODUCERS; i++) {
		targets[i].fd = load_conn_connect(sink.address);
		targets[i].tls = load_tls_open(targets[i].fd, host);
	}
	began = load_now_ns();
	commits_run(targets, PRODUCERS, chunks_each, false, &commits);
	for (i = 0; i < PRODUCERS; i++) {
		tls_conn_free(targets[i].tls);
		close(targets[i].fd);
	}
	tls_sink_wait(&sink, &result);
	if (result.bytes != commits.bytes)
		load_die("the sink missed bytes");
	set_rate(r, &commits, (double)(result.ended_ns - began) / 1e9,
	    result.read_cpu);
}

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
	struct load_session session;
	struct commits_result commits;
	struct load_stats stats;
	char name[32];
	double cpu;
	size_t i;

	if (ps == NULL)
		load_die("no memory");
	memset(r, 0, sizeof(*r));
	for (i = 0; i < PRODUCERS; i++) {
		snprintf(name, sizeof(name), "bench.%zu", i);
		load_producer_open(&ps[i], address, name, "bench", 0);
	}
	load_session_open(&session, d->consumers, "bench", RING_KB, -1);
	load_producers_wait_started(ps, PRODUCERS, 1);
	set_targets(targets, ps);
	cpu = process_cpu(d->pid);
	commits_run(targets, PRODUCERS, chunks_each, true, &commits);
	set_rate(r, &commits, commits.seconds, process_cpu(d->pid) - cpu);
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
rate_of_daemon(bool plain, size_t half_open, uint64_t chunks_each,
    struct rate *r)
{
	struct process_daemon d;
	struct storm *idlers = NULL;
	double took;

	start_daemon(&d);
	if (half_open > 0)
		idlers = storm_run(d.producers_tls, half_open,
		    STORM_CONNECTED, &took);
	rate_of_session(&d, plain ? d.producers_tcp : d.producers_tls,
	    chunks_each, r);
	if (idlers != NULL)
		storm_free(idlers);
	process_daemon_stop(&d);
}

struct rates {
	struct rate sink, daemon, half_open, plain;
};

static double
median_of(const struct rates *all, double (*of)(const struct rates *))
{
	double values[ROUNDS];
	size_t i;

	for (i = 0; i < ROUNDS; i++)
		values[i] = of(&all[i]);
	return median(values, ROUNDS);
}

static double
sink_mb(const struct rates *r)
{
	return r->sink.mb_per_s;
}

static double
daemon_mb(const struct rates *r)
{
	return r->daemon.mb_per_s;
}

static double
plain_mb(const struct rates *r)
{
	return r->plain.mb_per_s;
}

static double
sink_cpu(const struct rates *r)
{
	return r->sink.cpu_per_gb;
}

static double
daemon_cpu(const struct rates *r)
{
	return r->daemon.cpu_per_gb;
}

static double
plain_cpu(const struct rates *r)
{
	return r->plain.cpu_per_gb;
}

static double
daemon_p99(const struct rates *r)
{
	return r->daemon.p99_ms;
}

static double
ratio(const struct rates *r)
{
	return r->daemon.mb_per_s / r->sink.mb_per_s;
}

static double
half_open_ratio(const struct rates *r)
{
	return r->half_open.mb_per_s / r->daemon.mb_per_s;
}

static void
bench_throughput(uint64_t bytes)
{
	uint64_t chunks = bytes / COMMITS_CHUNK_BYTES / PRODUCERS /
	    COMMITS_REPLY_EVERY * COMMITS_REPLY_EVERY;
	struct tls_context *devices = new_devices();
	struct rates all[ROUNDS];
	uint64_t lost = 0;
	size_t i;

	for (i = 0; i < ROUNDS; i++) {
		rate_of_sink(chunks, &all[i].sink);
		rate_of_daemon(false, 0, chunks, &all[i].daemon);
		rate_of_daemon(false, HALF_OPEN, chunks, &all[i].half_open);
		rate_of_daemon(true, 0, chunks, &all[i].plain);
		lost += all[i].daemon.lost + all[i].half_open.lost;
	}
	tls_context_free(devices);
	printf("%u producers over TLS into a ring of 64 MiB (medians of %u)\n",
	    PRODUCERS, ROUNDS);
	printf("  throughput      %7.0f MB/s, sink %.0f, without TLS %.0f; "
	    "ratio to the sink %.2f, aim >= 0.6: %s\n",
	    median_of(all, daemon_mb), median_of(all, sink_mb),
	    median_of(all, plain_mb), median_of(all, ratio),
	    verdict(median_of(all, ratio) >= 0.6));
	printf("  processor       %7.2f s/GB, sink %.2f, without TLS %.2f\n",
	    median_of(all, daemon_cpu), median_of(all, sink_cpu),
	    median_of(all, plain_cpu));
	printf("  round trip      %7.2f ms p99\n", median_of(all, daemon_p99));
	printf("  chunks lost     %7llu; aim 0: %s\n",
	    (unsigned long long)lost, verdict(lost == 0));
	printf("  with %u half-open handshakes beside it: %.2f of its "
	    "throughput\n", HALF_OPEN, median_of(all, half_open_ratio));
	fflush(stdout);
}

/* ---- idle connections ---- */

struct resident {
	double at_once; /* KiB of each, when the last has come */
	double idle;
};

/* What the first connection of all makes is no connection's. */
static void
warm_up(const struct process_daemon *d)
{
	struct load_conn c;

	load_conn_open(&c, d->producers_tls, "ProducerPort");
	load_conn_close(&c);
}

static void
resident_of_devices(enum storm_until until, struct resident *out)
{
	struct tls_context *devices = new_devices();
	struct process_daemon d;
	struct storm *s;
	double before, took;

	start_daemon(&d);
	warm_up(&d);
	before = (double)process_rss(d.pid);
	s = storm_run(d.producers_tls, DEVICES, until, &took);
	if (until == STORM_INITIALISED)
		storm_register(s);
	warm_up(&d);
	out->at_once = ((double)process_rss(d.pid) - before) / DEVICES;
	sleep(IDLE_SECONDS);
	out->idle = ((double)process_rss(d.pid) - before) / DEVICES;
	storm_free(s);
	process_daemon_stop(&d);
	tls_context_free(devices);
}

static void
bench_idle(void)
{
	struct resident shaken, registered;

	resident_of_devices(STORM_SHAKEN, &shaken);
	resident_of_devices(STORM_INITIALISED, &registered);
	printf("%u idle TLS connections\n", DEVICES);
	printf("  connected       %7.1f KiB resident each; aim <= 32: %s (%.1f "
	    "when the last had come)\n", shaken.idle,
	    verdict(shaken.idle <= 32), shaken.at_once);
	printf("  and registered  %7.1f KiB resident each; aim <= 32: %s (%.1f)"
	    "\n", registered.idle, verdict(registered.idle <= 32),
	    registered.at_once);
	fflush(stdout);
}

/* ---- the cost of a handshake ---- */

struct cost {
	double wall_us;
	double server_us; /* of processor time */
};

/* One after the other, each of a device of its own, or all of the same. */
static void
cost_of_handshakes(bool resume, struct cost *out)
{
	struct tls_context *devices[HANDSHAKES] = { NULL };
	struct tls_conn *conns[HANDSHAKES];
	struct tls_sink_result result;
	struct tls_sink sink;
	char host[LOAD_HOST_SIZE], byte;
	struct iovec iov = { &byte, 1 };
	int fds[HANDSHAKES];
	uint64_t began;
	size_t i;

	for (i = 0; i < (resume ? 1 : HANDSHAKES); i++)
		devices[i] = new_devices();
	tls_sink_start(&sink, collector_dir, HANDSHAKES, COLLECTOR_CPU);
	load_conn_host(sink.address, host);
	began = load_now_ns();
	for (i = 0; i < HANDSHAKES; i++) {
		load_tls_use(devices[resume ? 0 : i]);
		fds[i] = load_conn_connect(sink.address);
		conns[i] = load_tls_open(fds[i], host);
		/* The ticket comes before the greeting. */
		while (tls_conn_receive(conns[i], &iov, 1) < 0)
			load_tls_wait(fds[i], conns[i]);
	}
	out->wall_us = (double)(load_now_ns() - began) / 1e3 / HANDSHAKES;
	for (i = 0; i < HANDSHAKES; i++) {
		tls_conn_free(conns[i]);
		close(fds[i]);
	}
	tls_sink_wait(&sink, &result);
	out->server_us = result.handshake_cpu * 1e6 / HANDSHAKES;
	for (i = 0; i < HANDSHAKES; i++)
		tls_context_free(devices[i]);
}

static void
bench_handshakes(void)
{
	struct cost full, resumed;

	cost_of_handshakes(false, &full);
	cost_of_handshakes(true, &resumed);
	printf("A handshake, of %u one after the other with a bare sink\n",
	    HANDSHAKES);
	printf("  full            %7.0f us of the server's processor, %.0f us "
	    "until the client has its answer\n", full.server_us,
	    full.wall_us);
	printf("  resumed         %7.0f us (%.2f), %.0f us (%.2f)\n",
	    resumed.server_us, resumed.server_us / full.server_us,
	    resumed.wall_us, resumed.wall_us / full.wall_us);
	fflush(stdout);
}

/* ---- the storm ---- */

struct bare_storm {
	double seconds;
	double cpu; /* of the sink */
};

static void
storm_a_sink(struct bare_storm *out)
{
	struct tls_context *devices = new_devices();
	struct tls_sink_result result;
	struct tls_sink sink;
	struct storm *s;

	tls_sink_start(&sink, collector_dir, DEVICES, COLLECTOR_CPU);
	s = storm_run(sink.address, DEVICES, STORM_GREETED, &out->seconds);
	storm_free(s);
	tls_sink_wait(&sink, &result);
	tls_context_free(devices);
	out->cpu = result.handshake_cpu;
}

struct weather {
	double seconds;
	double cpu; /* of the daemon */
	uint64_t packets;
	uint64_t missing;
	struct pacer_result calm, stormy;
};

/* A session into a file with a pacer that writes while fn runs. */
static void
with_session(const struct process_daemon *d,
    void (*fn)(const struct process_daemon *, struct weather *),
    struct weather *w, struct pacer_result *out)
{
	char path[] = "/dev/shm/trib-tls-XXXXXX";
	struct load_session session;
	struct pacer pacer;
	int file;

	if ((file = mkstemp(path)) < 0)
		load_die("%s: %s", path, strerror(errno));
	unlink(path);
	pacer_start(&pacer, d->producers_tls, DEVICES_CPU);
	load_session_open(&session, d->consumers, PACER_SOURCE, RING_KB, file);
	pacer_go(&pacer);
	fn(d, w);
	pacer_stop(&pacer, out);
	load_session_request_stop(&session);
	pacer_end(&pacer);
	load_session_wait_ended(&session);
	if (session.error[0] != '\0')
		load_die("the session ended with: %s", session.error);
	load_session_close(&session);
	w->packets += out->packets * PACER_PRODUCERS;
	w->missing += pacer_missing(file, out);
	close(file);
}

static void
storm_once(const struct process_daemon *d, struct weather *w)
{
	double cpu = process_cpu(d->pid);
	struct storm *s;

	s = storm_run(d->producers_tls, DEVICES, STORM_INITIALISED,
	    &w->seconds);
	w->cpu = process_cpu(d->pid) - cpu;
	storm_free(s);
}

static void
wait_as_long(const struct process_daemon *d, struct weather *w)
{
	usleep(500 * 1000);
}

static void
storm_a_daemon(struct weather *w)
{
	struct tls_context *devices = new_devices();
	struct process_daemon d;

	memset(w, 0, sizeof(*w));
	start_daemon(&d);
	with_session(&d, wait_as_long, w, &w->calm);
	tls_context_free(devices);
	devices = new_devices();
	with_session(&d, storm_once, w, &w->stormy);
	process_daemon_stop(&d);
	tls_context_free(devices);
}

static void
bench_storm(void)
{
	struct bare_storm bare[STORM_ROUNDS];
	double ratios[STORM_ROUNDS], typical;
	struct weather w[STORM_ROUNDS];
	uint64_t packets = 0, missing = 0;
	size_t i;

	for (i = 0; i < STORM_ROUNDS; i++) {
		storm_a_sink(&bare[i]);
		storm_a_daemon(&w[i]);
		ratios[i] = w[i].seconds / bare[i].seconds;
		packets += w[i].packets;
		missing += w[i].missing;
	}
	typical = median(ratios, STORM_ROUNDS);
	printf("%u devices connect at once, beside a session of %u producers\n",
	    DEVICES, PACER_PRODUCERS);
	for (i = 0; i < STORM_ROUNDS; i++)
		printf("  all in          %7.2f s (processor %.2f), bare "
		    "handshakes %.2f (%.2f); the session's round trip %.1f ms "
		    "p99, %.1f longest (calm: %.2f, %.2f)\n", w[i].seconds,
		    w[i].cpu, bare[i].seconds, bare[i].cpu,
		    w[i].stormy.p99_ms, w[i].stormy.max_ms, w[i].calm.p99_ms,
		    w[i].calm.max_ms);
	printf("  ratio           %7.2f median; aim <= 1.5: %s\n", typical,
	    verdict(typical <= 1.5));
	printf("  packets lost    %7llu of %llu; aim 0: %s\n",
	    (unsigned long long)missing, (unsigned long long)packets,
	    verdict(missing == 0));
	fflush(stdout);
}

static void
allow_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < DEVICES + 200)
		load_die("%u connections need a higher limit of open files "
		    "(ulimit -Hn)", DEVICES);
}

int
main(int argc, char **argv)
{
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 512;

	daemon_binary = getenv("TRIBUTARYD");
	if (daemon_binary == NULL || argc > 2 || mib < 16)
		load_die("usage: TRIBUTARYD=PROGRAM bench_tls [MIB, at least "
		    "16]");
	allow_descriptors();
	if (mkdtemp(folder) == NULL)
		load_die("%s: %s", folder, strerror(errno));
	load_ca_make(folder);
	snprintf(collector_dir, sizeof(collector_dir), "%s/%s", folder,
	    LOAD_CA_COLLECTOR);
	snprintf(device_dir, sizeof(device_dir), "%s/%s", folder,
	    LOAD_CA_DEVICE);
	process_pin(0, DEVICES_CPU);

	bench_throughput(mib << 20);
	bench_idle();
	bench_handshakes();
	bench_storm();

	load_ca_remove(folder);
	rmdir(folder);
	return 0;
}
