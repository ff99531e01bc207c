/*
 * The collector and the relay without memory: every call of malloc() and its
 * relatives fails once, in a whole job over the real ports of the real
 * programs; then the same job has to work, and nothing may be left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Before cmocka.h. */
#include "tests/unit/transport/tls/tls_fixture.h"

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/oom/fail_malloc.h"
#include "tests/oom/job.h"
#include "tests/oom/program.h"
#include "transport/base/log.h"

enum way {
	WAY_TCP,
	WAY_TLS,
	WAY_SHARED, /* a UNIX socket of the collector's */
	WAY_RELAY,  /* of the relay's */
	N_WAYS
};

static struct {
	const char *tributaryd, *relay, *fail_malloc;
	char dir[64];
	char consumer[96];
	char producers[N_WAYS][96];
	char *certs; /* of the producer */
	char *collector_certs;
	const char *io_threads; /* of the daemon */
	struct program daemon, relay_program;
} world;

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
		"--producer-socket", world.producers[WAY_SHARED],
		"--consumer-socket", world.consumer,
		"--tls-dir", world.collector_certs, "--enable-relay-endpoint",
		"--log-level", getenv("OOM_LOG"),
		"--io-threads", world.io_threads, NULL };
	struct program_start how = { world.fail_malloc, world.dir, "daemon",
		"TRACED_NOTIFY_FD", argv, first };

	return program_begin(p, &how);
}

static int
begin_relay(struct program *p, unsigned long first)
{
	char state[80];
	const char *argv[] = { world.relay,
		"--producer-socket", world.producers[WAY_RELAY],
		"--to", world.producers[WAY_TCP], "--state-dir", state,
		"--log-level", getenv("OOM_LOG"), NULL };
	struct program_start how = { world.fail_malloc, world.dir, "relay",
		"TRACED_RELAY_NOTIFY_FD", argv, first };

	snprintf(state, sizeof(state), "%s/state", world.dir);
	mkdir(state, 0700);
	return program_begin(p, &how);
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
	snprintf(world.producers[WAY_SHARED], sizeof(world.producers[0]),
	    "%s/p", world.dir);
	snprintf(world.producers[WAY_RELAY], sizeof(world.producers[0]),
	    "%s/r", world.dir);
	snprintf(world.producers[WAY_TCP], sizeof(world.producers[0]),
	    "127.0.0.1:%d", free_port());
	snprintf(world.producers[WAY_TLS], sizeof(world.producers[0]),
	    "tls://127.0.0.1:%d", free_port());
	world.io_threads = "0";
	return program_is_ready(begin_daemon(&world.daemon, 0)) ? 0 : -1;
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

/*
 * What a collector or a relay may keep of jobs; and of triggers it remembers
 * the last 4096, for a day.
 */
#define IDLE_MORE     16384
#define TRIGGERS_MORE 65536

/* Calls of a program that fail, in jobs of one kind. */
struct trial {
	struct program *program;
	enum way way;
	enum job_kind kind;
	unsigned long step;  /* each of them: 1 */
	unsigned long count; /* so many in a row */
};

static struct {
	unsigned long complete, refused, fewer;
} outcomes;

static struct job_plan
plan(const struct trial *t, bool has_memory)
{
	struct job_plan p = { t->kind, world.consumer,
		world.producers[t->way], world.certs, t->program->memory,
		has_memory };

	return p;
}

static void
check_job(const struct trial *t)
{
	int tries = t->way == WAY_RELAY ? 50 : 1;
	struct job_plan p = plan(t, true);
	struct job_result r;

	/* Where a test before this one failed in the middle. */
	atomic_store(&t->program->memory->armed, false);
	/* A relay that gave up its link needs a moment for the next. */
	do
		job_run(&p, &r);
	while (!job_is_complete(&p, &r) && --tries > 0);
	if (!job_is_complete(&p, &r))
		fail_msg("with memory again: %d of %d packets%s: %s",
		    r.packets, JOB_PACKETS, r.triggered ? ", triggered" : "",
		    r.why);
}

static unsigned long
run_without(const struct trial *t, unsigned long first, struct job_result *r)
{
	struct fail_malloc *m = t->program->memory;
	struct job_plan p = plan(t, false);

	atomic_store(&m->calls, 0);
	atomic_store(&m->failed, 0);
	atomic_store(&m->first, first);
	atomic_store(&m->count, t->count);
	atomic_store(&m->armed, true);
	job_run(&p, r);
	atomic_store(&m->armed, false);
	if (r->in_short)
		outcomes.refused++;
	else if (job_is_complete(&p, r))
		outcomes.complete++;
	else
		outcomes.fewer++;
	return atomic_load(&m->failed);
}

/* For people. */
static void
say(unsigned long first, const struct job_result *r)
{
	int i;

	if (getenv("OOM_SAY") == NULL)
		return;
	fprintf(stderr, "call %lu: %d packets%s", first, r->packets,
	    r->triggered ? ", triggered" : "");
	for (i = 0; i < JOB_CLONES; i++)
		if (r->clones[i].made)
			fprintf(stderr, ", clone %d: %d", i,
			    r->clones[i].packets);
	fprintf(stderr, ", %s\n", r->why);
}

/* False: nothing failed, the end. */
static bool
fail_once(const struct trial *t, unsigned long first)
{
	long more = IDLE_MORE + (t->kind == JOB_PLAIN ? 0 : TRIGGERS_MORE);
	unsigned long failures;
	struct job_plan p = plan(t, false);
	struct job_result r;
	char err[128];

	failures = run_without(t, first, &r);
	say(first, &r);
	/*
	 * Else the log says that it never started (OOM_LOG=info), or that a
	 * relay began its link anew.
	 */
	if (t->program == &world.daemon && job_lost_silently(&p, &r))
		fail_msg("call %lu: %d of %d packets, and nobody says so",
		    first, r.packets, JOB_PACKETS);
	check_job(t);
	if (!program_comes_back(t->program, more, err, sizeof(err)))
		fail_msg("call %lu: %s", first, err);
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
fail_all(const struct trial *t)
{
	unsigned long i, n;

	memset(&outcomes, 0, sizeof(outcomes));
	for (i = 0; i < 3; i++)
		check_job(t);
	program_settle(t->program);
	for (n = first_call(); fail_once(t, n); n += t->step)
		;
	/* Else it is not the program that lacks memory. */
	assert_true(n > 10);
	printf("%lu calls, every %lu: %lu complete, %lu refused or cut, "
	    "%lu with less in them\n", n, t->step, outcomes.complete,
	    outcomes.refused, outcomes.fewer);
}

/* All of them, where somebody has the time. */
static unsigned long
step(unsigned long usual)
{
	return getenv("OOM_ALL") != NULL ? 1 : usual;
}

/* Of the collector. */
static void
fail_daemon(enum way way, enum job_kind kind, unsigned long usual,
    unsigned long count)
{
	struct trial t = { &world.daemon, way, kind, step(usual), count };

	fail_all(&t);
}

static void
every_call_of_the_collector_may_fail_over_tcp(void **state)
{
	fail_daemon(WAY_TCP, JOB_PLAIN, 1, 1);
}

static void
every_call_of_the_collector_may_fail_over_tls(void **state)
{
	fail_daemon(WAY_TLS, JOB_PLAIN, 47, 1);
}

static void
many_calls_of_the_collector_may_fail_in_a_row(void **state)
{
	fail_daemon(WAY_TCP, JOB_PLAIN, 7, 50);
	fail_daemon(WAY_TLS, JOB_PLAIN, 211, 400);
}

static void
every_call_may_fail_with_shared_memory_a_filter_and_deflate(void **state)
{
	fail_daemon(WAY_SHARED, JOB_STOPPED, 7, 1);
	fail_daemon(WAY_SHARED, JOB_STOPPED, 29, 50);
}

static void
every_call_may_fail_with_clones_and_zstd(void **state)
{
	fail_daemon(WAY_SHARED, JOB_CLONED, 11, 1);
	fail_daemon(WAY_SHARED, JOB_CLONED, 47, 50);
}

static void
restart_daemon(const char *io_threads)
{
	program_stop(&world.daemon);
	world.io_threads = io_threads;
	assert_true(program_is_ready(begin_daemon(&world.daemon, 0)));
}

static void
every_call_may_fail_with_threads_for_connections(void **state)
{
	restart_daemon("2");
	fail_daemon(WAY_TCP, JOB_STARTED, 7, 1);
	fail_daemon(WAY_TCP, JOB_STARTED, 29, 50);
	fail_daemon(WAY_TLS, JOB_PLAIN, 211, 1);
	restart_daemon("0");
}

static void
every_call_of_the_relay_may_fail(void **state)
{
	struct trial t = { &world.relay_program, WAY_RELAY, JOB_PLAIN,
		step(1), 1 };

	assert_true(program_is_ready(begin_relay(&world.relay_program, 0)));
	fail_all(&t);
	t.step = step(7);
	t.count = 50;
	fail_all(&t);
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
		if (program_is_ready(begin_program(&p, first))) {
			failed = atomic_load(&p.memory->failed) > 0;
#ifdef COUNTED_BY_GCOV
			/* Which takes it for granted, at the end. */
			atomic_store(&p.memory->armed, 0);
#endif
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
	assert_true(program_is_ready(begin_daemon(&world.daemon, 0)));
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
		cmocka_unit_test(
		    every_call_may_fail_with_shared_memory_a_filter_and_deflate),
		cmocka_unit_test(every_call_may_fail_with_clones_and_zstd),
		cmocka_unit_test(
		    every_call_may_fail_with_threads_for_connections),
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
