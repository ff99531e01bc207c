/*
 * bench_fleet: ten thousand producers at the real daemon, with the project's
 * aims next to the figures.
 *
 *	TRIBUTARYD=path/to/tributaryd bench_fleet [-n PRODUCERS] [-s SECONDS]
 *	    [--io-threads N] [idle] [tls] [limit] [session] [cost] [file]
 *	    [control]
 *
 * The daemon runs on processor 1, everything else on processor 0, before other
 * work of the machine where that is permitted (nice).  SECONDS: how long the
 * file is written (default 10).
 */
#include "tests/bench/fleet/bench_fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/fleet/crowd.h"
#include "tests/bench/fleet/probe.h"
#include "tests/bench/ingest/file_check.h"
#include "tests/load/load_conn.h"
#include "tests/load/load_session.h"

#define GENERATOR_CPU 0
#define DAEMON_CPU    1
#define RING_KB       (64u * 1024u)
#define COST_SECONDS  4.0
#define COST_RATE     50000000u
/* 10 KB/s each, as four chunks of 25 packets. */
#define CHUNK_PACKETS 25u
#define SMALL_PACKETS 5u
#define LARGE_PACKETS 250u
#define NICE (-15)
#define FILE_RATE     10000u

const char *
bench_verdict(bool met)
{
	return met ? "met" : "NOT MET";
}

/* Better than process_cpu() knows it. */
double
bench_cpu(const struct bench *b)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(b->d.pid, &clock) != 0 ||
	    clock_gettime(clock, &t) != 0)
		return process_cpu(b->d.pid);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
now_s(void)
{
	return (double)load_now_ns() / 1e9;
}

/* Figures are to be of the daemon, and not of who else is there. */
static void
favour(pid_t pid, int cpu)
{
	process_pin(pid, cpu);
	(void)setpriority(PRIO_PROCESS, (id_t)pid, NICE);
}

/* What is asked for, and what config (or NULL) has. */
static void
write_settings(const struct bench *b, const char *config, char *path)
{
	char text[4096] = "";
	FILE *in, *out;
	int fd;

	if (config != NULL) {
		if ((in = fopen(config, "r")) == NULL)
			load_die("%s: %s", config, strerror(errno));
		(void)!fread(text, 1, sizeof(text) - 1, in);
		fclose(in);
	}
	if ((fd = mkstemp(path)) < 0 || (out = fdopen(fd, "w")) == NULL ||
	    fprintf(out, "io_threads: %u\n%s", b->io_threads, text) < 0 ||
	    fclose(out) != 0)
		load_die("no settings file");
}

void
bench_start(struct bench *b, size_t producers, const char *config,
    const char *tls_dir)
{
	char path[] = "/tmp/trib-bench-conf-XXXXXX";

	write_settings(b, config, path);
	process_daemon_start_with(&b->d, b->binary, tls_dir, path);
	unlink(path);
	favour(b->d.pid, DAEMON_CPU);
	b->crowd = crowd_new(b->d.producers_tcp, "fleet", producers);
}

void
bench_stop(struct bench *b)
{
	crowd_free(b->crowd);
	b->crowd = NULL;
	process_daemon_stop(&b->d);
}

double
bench_bytes_each(const struct bench *b, uint64_t before, size_t n)
{
	return (double)(process_rss(b->d.pid) - before) * 1024 / (double)n;
}

/* ---- idle ---- */

static void
bench_idle(struct bench *b)
{
	size_t tenth = b->n / 10;
	double began, first, last, all, each;
	uint64_t before;

	bench_start(b, b->n, NULL, NULL);
	before = process_rss(b->d.pid);
	began = bench_cpu(b);
	crowd_connect(b->crowd, tenth, AT_ONCE);
	first = bench_cpu(b) - began;
	crowd_connect(b->crowd, b->n - tenth, AT_ONCE);
	last = bench_cpu(b);
	crowd_connect(b->crowd, b->n, AT_ONCE);
	all = bench_cpu(b) - began;
	last = bench_cpu(b) - last;
	each = bench_bytes_each(b, before, b->n);
	printf("%zu producers connect over TCP and register\n", b->n);
	printf("  memory         %8.0f bytes resident each; aim <= 4096: %s\n",
	    each, bench_verdict(each <= 4096));
	printf("  processor      %8.2f s of the daemon; aim <= %.1f: %s\n",
	    all, 2.0 * (double)b->n / 10000,
	    bench_verdict(all <= 2.0 * (double)b->n / 10000));
	printf("  each           %8.0f us of the first tenth, %.0f of the "
	    "last; aim the same: %s\n", first / (double)tenth * 1e6,
	    last / (double)tenth * 1e6, bench_verdict(last <= first * 1.25));
	if (crowd_counts(b->crowd)->refused > 0)
		load_die("%zu were refused", crowd_counts(b->crowd)->refused);
	began = bench_cpu(b);
	crowd_free(b->crowd);
	b->crowd = NULL;
	usleep(500000);
	printf("  hanging up     %8.2f s of the daemon, all at once\n",
	    bench_cpu(b) - began);
	process_daemon_stop(&b->d);
	fflush(stdout);
}

/* ---- sessions ---- */

struct wait {
	struct bench *b;
	struct load_session *session;
	uint64_t request; /* 0: none */
	bool done;
	size_t until;
	const size_t *counter;
};

static void
note_reply(struct wait *w, const struct load_reply *r)
{
	if (r->request_id == w->session->enable)
		w->session->ended = true;
	if (r->request_id == w->request)
		w->done = true;
}

static bool
is_done(void *arg)
{
	struct wait *w = arg;
	struct load_reply r;

	while (!w->done && !w->session->ended &&
	    load_conn_try_receive(&w->session->conn, &r))
		note_reply(w, &r);
	if (w->counter != NULL)
		return *w->counter >= w->until;
	return w->done || (w->request == 0 && w->session->ended);
}

/* How long something took, and the daemon's share of that. */
struct took {
	double wall, cpu;
};

static void
wait_for(struct bench *b, struct wait *w, struct took *t)
{
	double wall = now_s(), used = bench_cpu(b);

	w->b = b;
	crowd_serve(b->crowd, is_done, w);
	t->wall += now_s() - wall;
	t->cpu += bench_cpu(b) - used;
}

static void
start_session(struct bench *b, struct load_session *s, size_t n, int file,
    struct took *t)
{
	const struct crowd_counts *c = crowd_counts(b->crowd);
	struct wait w = { .session = s, .counter = &c->started,
		.until = c->started + n };

	memset(t, 0, sizeof(*t));
	t->wall = -now_s();
	t->cpu = -bench_cpu(b);
	load_session_open(s, b->d.consumers, "fleet", RING_KB, file);
	t->wall += now_s();
	t->cpu += bench_cpu(b);
	wait_for(b, &w, t);
}

static void
flush_session(struct bench *b, struct load_session *s, struct took *t)
{
	struct wait w = { .session = s };

	memset(t, 0, sizeof(*t));
	w.request = load_conn_call(&s->conn, "Flush", NULL, 0, false, -1);
	wait_for(b, &w, t);
}

static void
stop_session(struct bench *b, struct load_session *s, struct took *t)
{
	struct wait w = { .session = s };

	memset(t, 0, sizeof(*t));
	load_session_request_stop(s);
	wait_for(b, &w, t);
	load_session_close(s);
}

struct session_figures {
	struct took start, flush, stop;
	double bytes_each;
};

static void
measure_session(struct bench *b, size_t n, struct session_figures *f)
{
	struct load_session s;
	struct took again;
	uint64_t before;
	int i;

	bench_start(b, n, NULL, NULL);
	before = process_rss(b->d.pid);
	crowd_connect(b->crowd, n, AT_ONCE);
	start_session(b, &s, n, -1, &f->start);
	flush_session(b, &s, &f->flush);
	for (i = 0; i < 2; i++) {
		flush_session(b, &s, &again);
		if (again.wall < f->flush.wall)
			f->flush = again;
	}
	f->bytes_each = bench_bytes_each(b, before, n);
	stop_session(b, &s, &f->stop);
	bench_stop(b);
}

static void
report_took(const char *what, const struct took *t, const struct took *less,
    double times)
{
	double growth = t->cpu / less->cpu / times;

	printf("  %-14s %8.0f ms, %.0f of the daemon's processor; aim <= 1000: "
	    "%s; %.2f of linear\n", what, t->wall * 1e3, t->cpu * 1e3,
	    bench_verdict(t->wall <= 1), growth);
}

static void
bench_session(struct bench *b)
{
	struct session_figures few, all;
	double times = 4;

	measure_session(b, b->n / 4, &few);
	measure_session(b, b->n, &all);
	printf("a session over %zu producers, and over a quarter of them\n",
	    b->n);
	report_took("start", &all.start, &few.start, times);
	report_took("flush", &all.flush, &few.flush, times);
	report_took("stop", &all.stop, &few.stop, times);
	printf("  memory         %8.0f bytes resident each; aim <= 6144: %s\n",
	    all.bytes_each, bench_verdict(all.bytes_each <= 6144));
	fflush(stdout);
}

/* ---- what data costs ---- */

static double
cost_per_gb(struct bench *b, size_t senders, size_t idle, size_t packets,
    struct crowd_sent *sent)
{
	struct crowd_load load = { .senders = senders,
		.packets = packets, .bytes_per_s = COST_RATE,
		.reply_every = 16, .seconds = COST_SECONDS };
	struct load_session s;
	struct took t;
	double used;

	bench_start(b, senders + idle, NULL, NULL);
	crowd_connect(b->crowd, senders + idle, AT_ONCE);
	start_session(b, &s, senders + idle, -1, &t);
	used = bench_cpu(b);
	crowd_send(b->crowd, &load, sent);
	used = bench_cpu(b) - used;
	stop_session(b, &s, &t);
	bench_stop(b);
	return used / ((double)sent->bytes / 1e9);
}

static double
sink_per_gb(size_t senders)
{
	struct crowd_load load = { .senders = senders,
		.packets = CHUNK_PACKETS, .bytes_per_s = COST_RATE,
		.seconds = COST_SECONDS };
	struct process_sink_result r;
	struct crowd_sent sent;
	struct process_sink sink;
	struct crowd *c;
	char address[64];

	process_sink_start(&sink, senders);
	favour(sink.pid, DAEMON_CPU);
	snprintf(address, sizeof(address), "127.0.0.1:%d", sink.port);
	c = crowd_new(address, "sink", senders);
	crowd_make_bare(c);
	crowd_connect(c, senders, 64);
	crowd_send(c, &load, &sent);
	crowd_free(c);
	process_sink_wait(&sink, &r);
	return r.cpu / ((double)r.bytes / 1e9);
}

/*
 * Frames of two lengths tell what a frame costs and what a byte does: the
 * first by the number of frames in a GB, the second whatever it is.
 */
static void
bench_frames(struct bench *b)
{
	struct crowd_sent small, large;
	double with_small, with_large, small_n, large_n, frame;

	with_small = cost_per_gb(b, 8, 0, SMALL_PACKETS, &small);
	with_large = cost_per_gb(b, 8, 0, LARGE_PACKETS, &large);
	small_n = (double)small.frames / ((double)small.bytes / 1e9);
	large_n = (double)large.frames / ((double)large.bytes / 1e9);
	frame = (with_small - with_large) / (small_n - large_n);
	printf("  a frame        %8.2f us (%u packets: %.2f s/GB, %u: %.2f)\n",
	    frame * 1e6, SMALL_PACKETS, with_small, LARGE_PACKETS, with_large);
	printf("  a byte         %8.2f ns\n", with_large - frame * large_n);
	fflush(stdout);
}

static void
bench_cost(struct bench *b)
{
	struct crowd_sent alone_sent, beside_sent, many_sent;
	double alone, beside, many, sink, sink_many;

	sink = sink_per_gb(8);
	alone = cost_per_gb(b, 8, 0, CHUNK_PACKETS, &alone_sent);
	beside = cost_per_gb(b, 8, b->n, CHUNK_PACKETS,
	    &beside_sent);
	many = cost_per_gb(b, 1000, 0, CHUNK_PACKETS, &many_sent);
	sink_many = sink_per_gb(1000);
	printf("50 MB/s in all, chunks of %u packets of %u bytes, into a ring\n",
	    CHUNK_PACKETS, CROWD_PACKET_BYTES);
	printf("  8 alone        %8.2f s/GB, sink %.2f: %.1f times\n", alone,
	    sink, alone / sink);
	printf("  beside %-7zu %8.2f s/GB: %.2f of alone; aim the same: %s\n",
	    b->n, beside, beside / alone, bench_verdict(beside <= alone * 1.15));
	printf("  1000           %8.2f s/GB, sink %.2f: %.2f of 8 alone; aim "
	    "<= 2: %s\n", many, sink_many, many / alone,
	    bench_verdict(many <= alone * 2));
	printf("  round trip p99 %8.1f ms, %.1f beside, %.1f of 1000\n",
	    alone_sent.p99_ms, beside_sent.p99_ms, many_sent.p99_ms);
	bench_frames(b);
	fflush(stdout);
}

/* ---- everybody into a file ---- */

static int
open_memory_file(void)
{
	char path[] = "/dev/shm/trib-bench-XXXXXX";
	int fd;

	if ((fd = mkstemp(path)) < 0)
		load_die("%s: %s", path, strerror(errno));
	unlink(path);
	return fd;
}

static void
bench_file(struct bench *b)
{
	struct crowd_load warm = { .senders = b->n, .packets = CHUNK_PACKETS,
		.bytes_per_s = FILE_RATE * b->n, .reply_every = 4,
		.seconds = 3 }, load = warm;
	struct crowd_sent first, sent;
	struct load_session s;
	struct load_stats stats;
	struct file_check check;
	struct took t;
	uint64_t empty, before, chunks, after;
	double used, lost, each;
	int file = open_memory_file();

	load.seconds = b->seconds;
	bench_start(b, b->n, NULL, NULL);
	empty = process_rss(b->d.pid);
	crowd_connect(b->crowd, b->n, AT_ONCE);
	start_session(b, &s, b->n, file, &t);
	crowd_send(b->crowd, &warm, &first);
	before = process_rss(b->d.pid);
	used = bench_cpu(b);
	crowd_send(b->crowd, &load, &sent);
	used = bench_cpu(b) - used;
	after = process_rss(b->d.pid);
	load_session_stats(&s, &stats);
	stop_session(b, &s, &t);
	bench_stop(b);
	file_check(file, &check);
	close(file);
	chunks = first.frames + sent.frames;
	lost = (double)(chunks * CHUNK_PACKETS) - (double)check.packets;
	printf("%zu producers at %u KB/s each into a file on tmpfs, %.0f s\n",
	    b->n, FILE_RATE / 1000, b->seconds);
	printf("  took           %8.1f s: %.1f MB/s, at most %.0f ms behind\n",
	    sent.seconds, (double)sent.bytes / 1e6 / sent.seconds,
	    sent.late_ms);
	printf("  packets lost   %8.0f of %llu, %llu gaps; aim 0: %s\n", lost,
	    (unsigned long long)(chunks * CHUNK_PACKETS),
	    (unsigned long long)check.losses,
	    bench_verdict(lost == 0 && check.losses == 0));
	printf("  round trip     %8.1f ms median, %.1f p99, %.1f longest of "
	    "%zu; aim p99 < 50: %s\n", sent.p50_ms, sent.p99_ms, sent.max_ms,
	    sent.replies, bench_verdict(sent.p99_ms < 50));
	each = ((double)after - (double)empty - RING_KB) * 1024 /
	    (double)b->n;
	printf("  memory         %8.0f KiB more at the end than at the begin; "
	    "over the ring %.0f bytes each, aim <= 6144: %s\n",
	    (double)after - (double)before, each,
	    bench_verdict(each <= 6144));
	printf("  processor      %8.2f s/GB, %.2f of a core\n",
	    used / ((double)sent.bytes / 1e9), used / sent.seconds);
	fflush(stdout);
}

/* ---- control traffic under a flood ---- */

/* The lines of its log that have this word. */
static size_t
log_lines(const struct bench *b, const char *word)
{
	char path[PROCESS_ADDRESS_MAX], line[512];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", b->d.folder);
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, word) != NULL;
	fclose(f);
	return n;
}

static void
flood(struct bench *b, const char *config)
{
	struct crowd_load load = { .senders = b->n, .packets = CHUNK_PACKETS,
		.reply_every = 16, .seconds = 5 };
	struct probe_result calm, busy;
	struct crowd_sent sent;
	struct load_session s;
	struct probe p;
	struct took t;
	size_t said;

	bench_start(b, b->n, config, NULL);
	crowd_connect(b->crowd, b->n, AT_ONCE);
	start_session(b, &s, b->n, -1, &t);
	probe_start(&p, b->d.consumers, 5);
	usleep(500000);
	probe_stop(&p, &calm);
	probe_start(&p, b->d.consumers, 5);
	crowd_send(b->crowd, &load, &sent);
	probe_stop(&p, &busy);
	stop_session(b, &s, &t);
	said = log_lines(b, "overloaded");
	bench_stop(b);
	printf("a consumer asks while %zu producers flood (%.0f MB/s)\n", b->n,
	    (double)sent.bytes / 1e6 / sent.seconds);
	printf("  an answer      %8.2f ms median, %.2f p99, %.2f longest of "
	    "%zu; aim < 100: %s\n", busy.p50_ms, busy.p99_ms, busy.max_ms,
	    busy.asked, bench_verdict(busy.max_ms < 100));
	printf("  in calm        %8.2f ms median, %.2f p99, %.2f longest\n",
	    calm.p50_ms, calm.p99_ms, calm.max_ms);
	printf("  a commit       %8.1f ms p99 until its reply; the log says "
	    "\"overloaded\" %zu times\n", sent.p99_ms, said);
	fflush(stdout);
}

/* As it is, and where far less is called overload already. */
static void
bench_control(struct bench *b)
{
	char config[] = "/tmp/trib-bench-conf-XXXXXX";
	static const char text[] = "overload_lag_ms: 5\n";
	int fd = mkstemp(config);

	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0)
		load_die("no settings file");
	close(fd);
	flood(b, NULL);
	puts("the same with overload_lag_ms: 5");
	flood(b, config);
	unlink(config);
}

static const struct {
	const char *name;
	void (*fn)(struct bench *b);
} parts[] = {
	{ "idle", bench_idle },
	{ "tls", bench_tls },
	{ "limit", bench_limit },
	{ "session", bench_session },
	{ "cost", bench_cost },
	{ "file", bench_file },
	{ "control", bench_control },
};

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "io-threads", required_argument, NULL, 'i' },
		{ 0 },
	};
	struct bench b = { .binary = getenv("TRIBUTARYD"), .n = 10000,
		.seconds = 10 };
	size_t i;
	int opt, k;

	while ((opt = getopt_long(argc, argv, "n:s:", options, NULL)) != -1) {
		if (opt == 'n')
			b.n = strtoul(optarg, NULL, 10);
		else if (opt == 's')
			b.seconds = strtod(optarg, NULL);
		else if (opt == 'i')
			b.io_threads = (unsigned)strtoul(optarg, NULL, 10);
		else
			b.binary = NULL;
	}
	if (b.binary == NULL || b.n < 100)
		load_die("usage: TRIBUTARYD=PROGRAM bench_fleet [-n "
		    "PRODUCERS] [-s SECONDS] [--io-threads N] [PART...]");
	favour(0, GENERATOR_CPU);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (k = optind; k < argc; k++)
			if (strcmp(argv[k], parts[i].name) == 0)
				break;
		if (optind == argc || k < argc)
			parts[i].fn(&b);
	}
	return 0;
}
