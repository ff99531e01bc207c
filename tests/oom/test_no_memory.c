/*
 * The collector and the relay without memory: every call of malloc() and its
 * relatives fails once, in a whole job of producer, consumer and file over the
 * real ports of the real programs; then the same job has to work, and nothing
 * may be left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Before cmocka.h. */
#include "tests/unit/transport/tls_fixture.h"

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/consumer.h"
#include "client/producer.h"
#include "protos/trace_stats.pb-c.h"
#include "tests/oom/fail_malloc.h"
#include "transport/addr.h"
#include "transport/dial.h"
#include "transport/log.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"

#define PACKETS 40
/* Nobody waits that long for anything, unless it was forgotten. */
#define STEP_MS 15000u
/* Where a data source is not started for want of memory. */
#define START_MS 150u

enum way {
	WAY_TCP,
	WAY_TLS,
	WAY_RELAY, /* a UNIX socket of the relay's */
	N_WAYS
};

/* A program of ours, with fail_malloc. */
struct program {
	pid_t pid;
	struct fail_malloc *memory;
};

static struct {
	const char *tributaryd, *relay, *fail_malloc;
	char dir[64];
	char consumer[96];
	char producers[N_WAYS][96];
	char *certs; /* of the producer */
	char *collector_certs;
	struct program daemon, relay_program;
} world;

/* One job. */
static struct {
	struct loop *loop;
	struct loop_timer *timer;
	struct consumer *consumer;
	struct producer *producer;
	struct producer_source source;
	int file;
	bool connected, ready, started, disabled, answered, late;
	bool in_short; /* something was refused or cut, and said so */
	char why[256];
	uint64_t lost; /* as the session's statistics say */
} job;

/* ---- the programs ---- */

/* False: it ended instead. */
static bool
is_ready(int fd)
{
	char byte;
	bool ready = read(fd, &byte, 1) == 1;

	close(fd);
	return ready;
}

/*
 * argv[0] says "1" to the descriptor in `variable` when it serves.  first: the
 * call that fails on the way there; 0: none.  The descriptor to wait at.
 */
static int
program_begin(struct program *p, const char *name, const char *variable,
    const char *const argv[], unsigned long first)
{
	char path[96], number[16];
	int fd, ready[2];

	snprintf(path, sizeof(path), "%s/%s", world.dir, name);
	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, sizeof(*p->memory)) == 0);
	p->memory = mmap(NULL, sizeof(*p->memory), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	assert_true(p->memory != MAP_FAILED);
	close(fd);
	atomic_store(&p->memory->first, first);
	atomic_store(&p->memory->count, 1);
	atomic_store(&p->memory->armed, first > 0);
	assert_int_equal(pipe(ready), 0);
	p->pid = fork();
	if (p->pid == 0) {
		close(ready[0]);
		snprintf(number, sizeof(number), "%d", ready[1]);
		setenv(variable, number, 1);
		setenv(FAIL_MALLOC_FILE, path, 1);
		setenv("LD_PRELOAD", world.fail_malloc, 1);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(ready[1]);
	return ready[0];
}

/* Its exit status; a signal is none. */
static int
program_wait(struct program *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	p->pid = 0;
	munmap(p->memory, sizeof(*p->memory));
	if (!WIFEXITED(status))
		fail_msg("a program ended with %#x", (unsigned)status);
	return WEXITSTATUS(status);
}

static void
program_stop(struct program *p)
{
	if (p->pid == 0)
		return;
	kill(p->pid, SIGTERM);
	assert_int_equal(program_wait(p), 0);
}

/* A port that is free now. */
static int
free_port(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	close(fd);
	return ntohs(in.sin_port);
}

static void
make_certificates(void)
{
	struct fix_cert *ca = fix_ca("ca");
	struct fix_wish collector = { .cn = "collector", .eku = "serverAuth",
		.sans = "DNS:localhost,IP:127.0.0.1" };
	struct fix_wish device = { .cn = "device", .eku = "clientAuth" };
	struct fix_cert *a = fix_cert(ca, &collector), *b = fix_cert(ca, &device);

	world.collector_certs = fix_side(ca, a);
	world.certs = fix_side(ca, b);
	fix_cert_free(a);
	fix_cert_free(b);
	fix_cert_free(ca);
}

static int
begin_daemon(struct program *p, unsigned long first)
{
	const char *argv[] = { world.tributaryd,
		"--producer-socket", world.producers[WAY_TCP],
		"--producer-socket", world.producers[WAY_TLS],
		"--consumer-socket", world.consumer,
		"--tls-dir", world.collector_certs, "--enable-relay-endpoint",
		"--log-level", getenv("OOM_LOG"), NULL };

	return program_begin(p, "daemon", "TRACED_NOTIFY_FD", argv, first);
}

static int
begin_relay(struct program *p, unsigned long first)
{
	char state[80];
	const char *argv[] = { world.relay,
		"--producer-socket", world.producers[WAY_RELAY],
		"--to", world.producers[WAY_TCP], "--state-dir", state,
		"--log-level", getenv("OOM_LOG"), NULL };

	snprintf(state, sizeof(state), "%s/state", world.dir);
	mkdir(state, 0700);
	return program_begin(p, "relay", "TRACED_RELAY_NOTIFY_FD", argv, first);
}

static void
tell_sanitizer(const char *what)
{
	const char *before = getenv("ASAN_OPTIONS");
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s", before != NULL ? before : "",
	    before != NULL ? ":" : "", what);
	setenv("ASAN_OPTIONS", text, 1);
	setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 0);
}

static int
start(void **state)
{
	/* What is preloaded comes before it. */
	tell_sanitizer("verify_asan_link_order=0");
	setenv("OOM_LOG", "error", 0);
	log_init("test", LOG_LEVEL_ERROR);
	make_certificates();
	strcpy(world.dir, "/tmp/oomXXXXXX");
	assert_non_null(mkdtemp(world.dir));
	snprintf(world.consumer, sizeof(world.consumer), "%s/c", world.dir);
	snprintf(world.producers[WAY_RELAY], sizeof(world.producers[0]), "%s/p",
	    world.dir);
	snprintf(world.producers[WAY_TCP], sizeof(world.producers[0]),
	    "127.0.0.1:%d", free_port());
	snprintf(world.producers[WAY_TLS], sizeof(world.producers[0]),
	    "tls://127.0.0.1:%d", free_port());
	return is_ready(begin_daemon(&world.daemon, 0)) ? 0 : -1;
}

static int
stop(void **state)
{
	char command[128];

	program_stop(&world.relay_program);
	program_stop(&world.daemon);
	fix_dir_free(world.certs);
	fix_dir_free(world.collector_certs);
	snprintf(command, sizeof(command), "rm -r %s", world.dir);
	return system(command);
}

/* ---- waiting ---- */

static void
late_cb(void *arg)
{
	job.late = true;
	loop_stop(job.loop);
}

/* False: it did not come true in time, or the job is cut short. */
static bool
wait_for(const bool *what, unsigned ms)
{
	job.late = false;
	loop_timer_set(job.timer, ms, 0);
	while (!*what && !job.late && !job.in_short)
		loop_run(job.loop);
	loop_timer_clear(job.timer);
	return *what;
}

/* Something that always comes. */
static void
must(const bool *what, const char *name)
{
	if (!wait_for(what, STEP_MS) && !job.in_short)
		fail_msg("no answer, and no end: %s", name);
}

static void
cut_short(const char *why)
{
	if (!job.in_short)
		snprintf(job.why, sizeof(job.why), "%s", why);
	job.in_short = true;
	loop_stop(job.loop);
}

static void
come_true(bool *what)
{
	*what = true;
	loop_stop(job.loop);
}

/* ---- the clients ---- */

static void
connected_cb(void *arg)
{
	come_true(&job.connected);
}

static void
disconnected_cb(void *arg, const char *why)
{
	cut_short(why);
}

static void
warned_cb(void *arg, const char *sentence)
{
}

static void
disabled_cb(void *arg, const char *error)
{
	if (error != NULL)
		cut_short(error);
	else
		come_true(&job.disabled);
}

static void
answered_cb(void *arg, bool ok)
{
	come_true(&job.answered);
}

static void
state_cb(void *arg, const struct Perfetto__Protos__TracingServiceState *state)
{
	come_true(&job.answered);
}

static void
stats_cb(void *arg, const struct Perfetto__Protos__TraceStats *stats)
{
	size_t i;

	for (i = 0; stats != NULL && i < stats->n_buffer_stats; i++)
		job.lost += stats->buffer_stats[i]->chunks_discarded +
		    stats->buffer_stats[i]->trace_writer_packet_loss;
	come_true(&job.answered);
}

static const struct consumer_ops consumer_ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
	.warned = warned_cb,
	.tracing_disabled = disabled_cb,
};

static void
changed_cb(void *arg, enum producer_state state, const char *text)
{
	if (state == PRODUCER_READY)
		come_true(&job.ready);
	else if (text != NULL)
		cut_short(text);
}

static void *
setup_cb(void *arg, struct producer_instance *i, const uint8_t *config,
    size_t len)
{
	return producer_instance_writer(i, TRACE_WRITER_DROP);
}

static void
start_cb(void *ctx)
{
	struct pb_writer w;
	char text[100];
	int i;

	memset(text, 'x', sizeof(text));
	pb_writer_init(&w);
	for (i = 0; i < PACKETS; i++) {
		pb_writer_reset(&w);
		pb_put_bytes(&w, 900, text, sizeof(text)); /* for_testing */
		trace_writer_write(ctx, w.data, w.len);
	}
	pb_writer_done(&w);
	trace_writer_flush(ctx);
	come_true(&job.started);
}

static size_t
encode_config(uint8_t *out)
{
	struct pb_writer w;
	size_t len;

	pb_writer_init(&w);
	/* buffers { size_kb: 64 } */
	pb_put_bytes(&w, 1, "\x08\x40", 2);
	/* data_sources { config { name: "t" } } */
	pb_put_bytes(&w, 2, "\x0a\x03\x0a\x01t", 5);
	pb_put_uint(&w, 8, 1);      /* write_into_file */
	pb_put_uint(&w, 9, 604800); /* file_write_period_ms */
	pb_put_uint(&w, 43, 1);     /* trace_all_machines */
	memcpy(out, w.data, w.len);
	len = w.len;
	pb_writer_done(&w);
	return len;
}

static bool
begin(enum way way)
{
	struct dial_options how = { .tls_dir = world.certs };
	struct producer_options po = { .how = &how, .name = "p",
		.machine_name = "device", .changed = changed_cb };
	char err[1024] = "";
	struct addr a;

	assert_int_equal(addr_parse(&a, world.consumer, err, sizeof(err)),
	    0);
	job.consumer = consumer_new(job.loop, &a, NULL, &consumer_ops, NULL,
	    err, sizeof(err));
	if (job.consumer == NULL)
		fail_msg("%s", err);
	assert_int_equal(addr_parse(&a, world.producers[way], err,
	    sizeof(err)), 0);
	po.address = &a;
	job.source = (struct producer_source){ .name = "t", .setup = setup_cb,
		.start = start_cb };
	job.producer = producer_new(job.loop, &po);
	assert_non_null(job.producer);
	assert_int_equal(producer_add_source(job.producer, &job.source), 0);
	must(&job.connected, "the consumer is connected");
	must(&job.ready, "the producer is registered");
	return !job.in_short;
}

static void
ask(void (*how)(void))
{
	job.answered = false;
	if (job.in_short)
		return;
	how();
	must(&job.answered, "an answer to the consumer");
}

static void
flush(void)
{
	consumer_flush(job.consumer, 1000, 0, answered_cb, NULL);
}

static void
query(void)
{
	consumer_query_service_state(job.consumer, false, state_cb, NULL);
}

static void
stats(void)
{
	consumer_get_trace_stats(job.consumer, stats_cb, NULL);
}

static void
disable(void)
{
	consumer_disable_tracing(job.consumer, answered_cb, NULL);
}

static void
free_buffers(void)
{
	consumer_free_buffers(job.consumer, answered_cb, NULL);
}

static void
trace(void)
{
	uint8_t config[64];
	size_t len = encode_config(config);

	consumer_enable_tracing(job.consumer, config, len, dup(job.file));
	if (!wait_for(&job.started, START_MS) && job.in_short)
		return;
	ask(query);
	ask(flush);
	ask(stats);
	ask(disable);
	if (!job.in_short)
		must(&job.disabled, "the session's end");
	ask(free_buffers);
}

/* Packets of ours in the file, which is a trace as far as it goes. */
static int
count_packets(void)
{
	static uint8_t data[1 << 20];
	ssize_t n = pread(job.file, data, sizeof(data), 0);
	struct pb_reader trace, packet;
	struct pb_field f, g;
	int found = 0;

	assert_in_range(n, 0, sizeof(data) - 1);
	pb_init(&trace, data, (size_t)n);
	while (pb_next(&trace, &f)) {
		assert_int_equal(f.number, 1);
		assert_true(f.len > 0);
		pb_init(&packet, f.data, f.len);
		while (pb_next(&packet, &g))
			found += g.number == 900;
		assert_true(pb_well_formed(f.data, f.len));
	}
	assert_true(pb_well_formed(data, (size_t)n));
	return found;
}

/* Packets that arrived. */
static int
run_job(enum way way)
{
	int n;

	memset(&job, 0, sizeof(job));
	job.loop = loop_new();
	assert_non_null(job.loop);
	job.timer = loop_timer_new(job.loop, late_cb, NULL);
	job.file = memfd_create("trace", MFD_CLOEXEC);
	assert_true(job.file >= 0);
	if (begin(way))
		trace();
	consumer_free(job.consumer);
	producer_free(job.producer);
	loop_timer_free(job.timer);
	loop_free(job.loop);
	n = count_packets();
	close(job.file);
	return n;
}

/* What it has when nobody is there; connections take a few turns to go. */
static bool
is_idle(struct program *p, long live)
{
	int i;

	for (i = 0; i < 2000; i++) {
		if (atomic_load(&p->memory->live) <= live)
			return true;
		usleep(500);
	}
	return false;
}

#define IDLE_MORE 16384

static struct {
	unsigned long complete, refused, fewer;
} outcomes;

static void
check_job(enum way way)
{
	int n, tries = way == WAY_RELAY ? 50 : 1;

	/* A relay that gave up its link needs a moment for the next. */
	do
		n = run_job(way);
	while ((job.in_short || n != PACKETS) && --tries > 0);
	if (job.in_short || n != PACKETS)
		fail_msg("with memory again: %d of %d packets: %s", n, PACKETS,
		    job.why);
}

static unsigned long
run_without(struct program *p, enum way way, unsigned long first,
    unsigned long count, int *packets)
{
	atomic_store(&p->memory->calls, 0);
	atomic_store(&p->memory->failed, 0);
	atomic_store(&p->memory->first, first);
	atomic_store(&p->memory->count, count);
	atomic_store(&p->memory->armed, true);
	*packets = run_job(way);
	atomic_store(&p->memory->armed, false);
	return atomic_load(&p->memory->failed);
}

/* False: nothing failed, the end. */
static bool
fail_once(struct program *p, enum way way, unsigned long first,
    unsigned long count, long idle)
{
	unsigned long failures;
	int n;

	failures = run_without(p, way, first, count, &n);
	if (getenv("OOM_SAY") != NULL)
		fprintf(stderr, "call %lu: %d packets, %s\n", first, n,
		    job.why);
	if (job.in_short)
		outcomes.refused++;
	else if (n >= PACKETS)
		outcomes.complete++;
	else
		outcomes.fewer++;
	/*
	 * Else the log says that it never started (OOM_LOG=info), or that a
	 * relay began its link anew.
	 */
	if (p == &world.daemon && !job.in_short && n < PACKETS &&
	    job.started && job.lost == 0)
		fail_msg("call %lu: %d of %d packets, and nobody says so",
		    first, n, PACKETS);
	check_job(way);
	if (!is_idle(p, idle + IDLE_MORE))
		fail_msg("call %lu: %ld bytes are left, %ld before", first,
		    atomic_load(&p->memory->live), idle);
	return failures > 0;
}

/* To look at one of them: beside OOM_SAY, and OOM_LOG for the programs. */
static unsigned long
first_call(void)
{
	const char *n = getenv("OOM_FROM");

	return n != NULL ? strtoul(n, NULL, 10) : 1;
}

static void
fail_all(struct program *p, enum way way, unsigned long step,
    unsigned long count)
{
	unsigned long i, n;
	long idle;

	memset(&outcomes, 0, sizeof(outcomes));
	for (i = 0; i < 3; i++)
		check_job(way);
	usleep(200000);
	idle = atomic_load(&p->memory->live);
	for (n = first_call(); fail_once(p, way, n, count, idle); n += step)
		;
	/* Else it is not the program that lacks memory. */
	assert_true(n > 10);
	printf("%lu calls, every %lu: %lu complete, %lu refused or cut, "
	    "%lu with fewer packets\n", n, step, outcomes.complete,
	    outcomes.refused, outcomes.fewer);
}

/* All of them, where somebody has the time. */
static unsigned long
step(unsigned long usual)
{
	return getenv("OOM_ALL") != NULL ? 1 : usual;
}

static void
every_call_of_the_collector_may_fail_over_tcp(void **state)
{
	fail_all(&world.daemon, WAY_TCP, step(1), 1);
}

static void
every_call_of_the_collector_may_fail_over_tls(void **state)
{
	fail_all(&world.daemon, WAY_TLS, step(47), 1);
}

static void
many_calls_of_the_collector_may_fail_in_a_row(void **state)
{
	fail_all(&world.daemon, WAY_TCP, step(7), 50);
	fail_all(&world.daemon, WAY_TLS, step(211), 400);
}

static void
every_call_of_the_relay_may_fail(void **state)
{
	assert_true(is_ready(begin_relay(&world.relay_program, 0)));
	fail_all(&world.relay_program, WAY_RELAY, step(1), 1);
	fail_all(&world.relay_program, WAY_RELAY, step(7), 50);
	program_stop(&world.relay_program);
}

/* Either it serves, or it says what is wrong and ends. */
static void
start_without(int (*begin_program)(struct program *p, unsigned long first),
    unsigned long step)
{
	struct program p = { 0 };
	unsigned long first, refused = 0;
	bool failed = true;
	int status;

	/* OpenSSL loses a few bytes where it cannot make its own tables. */
	tell_sanitizer("detect_leaks=0");
	for (first = 1; failed; first += step) {
		if (is_ready(begin_program(&p, first))) {
			failed = atomic_load(&p.memory->failed) > 0;
			program_stop(&p);
			continue;
		}
		status = program_wait(&p);
		if (status != 1 && status != 2)
			fail_msg("call %lu: it ended with status %d", first,
			    status);
		refused++;
	}
	tell_sanitizer("detect_leaks=1");
	printf("%lu calls, every %lu: %lu times it did not start\n", first,
	    step, refused);
}

static void
a_collector_that_cannot_start_says_so(void **state)
{
	program_stop(&world.daemon);
	start_without(begin_daemon, step(307));
	assert_true(is_ready(begin_daemon(&world.daemon, 0)));
}

static void
a_relay_that_cannot_start_says_so(void **state)
{
	program_stop(&world.relay_program);
	start_without(begin_relay, step(29));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    every_call_of_the_collector_may_fail_over_tcp),
		cmocka_unit_test(
		    every_call_of_the_collector_may_fail_over_tls),
		cmocka_unit_test(
		    many_calls_of_the_collector_may_fail_in_a_row),
		cmocka_unit_test(every_call_of_the_relay_may_fail),
		cmocka_unit_test(a_collector_that_cannot_start_says_so),
		cmocka_unit_test(a_relay_that_cannot_start_says_so),
	};

	if (argc < 4)
		return 2;
	world.tributaryd = argv[1];
	world.relay = argv[2];
	world.fail_malloc = argv[3];
	if (argc > 4)
		cmocka_set_test_filter(argv[4]);
	return cmocka_run_group_tests(tests, start, stop);
}
