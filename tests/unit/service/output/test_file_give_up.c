/*
 * Sessions that write into a pipe that nobody reads: each way to end them does
 * so in bounded time, which the test turns on by hand.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/ingest/commit.h"
#include "service/onlookers/session_command.h"
#include "service/session/shutdown.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"

#define CONFIG_OF(kb)                                                          \
	"buffers { size_kb: " kb " } write_into_file: true "                   \
	"data_sources { config { name: 'src' } } "                             \
	"file_write_period_ms: 3600000 write_flush_mode: WRITE_FLUSH_DISABLED "
#define CONFIG CONFIG_OF("256")
/* A month for what five seconds are enough for. */
#define PATIENT "flush_timeout_ms: 2592000000 "                                \
	"data_source_stop_timeout_ms: 2592000000 "

struct bed {
	struct fixture *f;
	struct fake_producer p;
	struct fake_consumer c;
	int reader;
	int answers, idle;
	char answer[256];
};

static int
setup(void **state)
{
	fake_time_reset();
	return fixture_setup(state);
}

/* The buffer is full, both batches are with the writer: nothing moves. */
static void
get_stuck(struct bed *b, void **state, const char *config, bool acks)
{
	static char big[3000];
	int fds[2], turns;
	uint32_t i;

	memset(b, 0, sizeof(*b));
	memset(big, 'w', sizeof(big) - 1);
	b->f = *state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	b->reader = fds[0];
	fake_producer_init(&b->p, b->f, "p", true);
	b->p.ack_flushes = acks;
	fake_producer_register(&b->p, "src", false, !acks);
	assert_non_null(fake_enable(b->f, &b->c, config, fds[1]));
	for (i = 0, turns = 0; turns < 100; turns++) {
		while (fake_commit(&b->p, b->p.last_buffer, 1, i, 1, big) ==
		    COMMIT_OK)
			i++;
		assert_true(i < 1000);
		loop_run_once(b->f->loop);
		sched_yield();
	}
}

static void
done(struct bed *b)
{
	fake_producer_done(&b->p);
	close(b->reader);
}

static void
turns(struct bed *b)
{
	int i;

	for (i = 0; i < 50; i++)
		loop_run_once(b->f->loop);
}

static void
between(void)
{
	sched_yield();
}

/* Time in small steps, so that one wait may begin when another ends. */
static void
pass(struct bed *b, unsigned ms)
{
	for (; ms > 0; ms -= 100) {
		fake_time_pass(100, between);
		turns(b);
	}
}

static bool
no_session(struct bed *b)
{
	return TAILQ_EMPTY(&b->f->service->sessions);
}

#define WAIT_FOR(b, cond)                                                    \
	do {                                                                   \
		time_t until_ = time(NULL) + 30;                               \
		while (!(cond)) {                                              \
			if (time(NULL) > until_)                               \
				fail_msg("it never came true: %s", #cond);     \
			loop_run_once((b)->f->loop);                         \
			sched_yield();                                         \
		}                                                              \
	} while (0)

static void
on_done(void *arg, uint64_t id, const char *error)
{
	struct bed *b = arg;

	b->answers++;
	snprintf(b->answer, sizeof(b->answer), "%s",
	    error != NULL ? error : "");
}

static void
on_idle(void *arg)
{
	struct bed *b = arg;

	b->idle++;
}

static void
stop_it(struct bed *b, bool discard)
{
	struct session_order o = { .verb = SESSION_DO_STOP,
		.id = b->c.s->id, .discard = discard, .who = fake_user(0) };

	session_command(b->f->service, &o, on_done, b);
}

static void
when_the_consumer_leaves_it_is_gone_in_five_seconds(void **state)
{
	struct bed b;

	get_stuck(&b, state, CONFIG, true);
	session_free(b.c.s);
	pass(&b, 4900);
	assert_false(no_session(&b));
	fake_time_pass(200, NULL);
	WAIT_FOR(&b, no_session(&b));
	done(&b);
}

/*
 * The writer, a thread, has had the processor within the last reads, or has closed
 * the pipe.
 */
static bool
writer_follows(struct bed *b)
{
	struct pollfd p = { .fd = b->reader };
	int bytes = 0;

	assert_int_equal(ioctl(b->reader, FIONREAD, &bytes), 0);
	return bytes >= fcntl(b->reader, F_GETPIPE_SZ) / 2 ||
	    (poll(&p, 1, 0) == 1 && (p.revents & POLLHUP));
}

/* 40 kB/s: each batch of 128 KiB is taken well within its five seconds. */
static void
a_slow_reader_holds_what_its_consumer_left_for_a_second_a_megabyte(void **state)
{
	struct bed b;
	char some[4096];
	int i;

	get_stuck(&b, state, CONFIG_OF("2048"), true);
	assert_int_equal(fcntl(b.reader, F_SETFL, O_NONBLOCK), 0);
	session_free(b.c.s);
	for (i = 0; i < 100 && !no_session(&b); i++) {
		pass(&b, 100);
		if (read(b.reader, some, sizeof(some)) == 0)
			break;
		WAIT_FOR(&b, writer_follows(&b) || no_session(&b));
	}
	/* Two seconds for two megabytes, beside the five; the writer may lag. */
	assert_in_range(i, 66, 90);
	WAIT_FOR(&b, no_session(&b));
	done(&b);
}

static void
a_consumer_that_leaves_takes_its_patience_along(void **state)
{
	struct bed b;

	/* Neither flushes nor stops are ever acknowledged. */
	get_stuck(&b, state, CONFIG PATIENT, false);
	session_free(b.c.s);
	pass(&b, 16000);
	WAIT_FOR(&b, no_session(&b));
	done(&b);
}

static void
a_stop_ends_it_and_says_why(void **state)
{
	struct bed b;

	get_stuck(&b, state, CONFIG, true);
	stop_it(&b, false);
	pass(&b, 5100);
	WAIT_FOR(&b, b.answers == 1);
	assert_non_null(strstr(b.answer, "takes nothing"));
	assert_true(b.c.disabled);
	session_free(b.c.s);
	assert_true(no_session(&b));
	done(&b);
}

static void
a_discard_ends_it_with_a_config_that_would_wait_a_month(void **state)
{
	struct bed b;

	get_stuck(&b, state, CONFIG PATIENT, false);
	stop_it(&b, true);
	pass(&b, 16000);
	WAIT_FOR(&b, b.answers == 1 && no_session(&b));
	done(&b);
}

static void
a_discard_hurries_a_stop_that_is_under_way(void **state)
{
	struct bed b;

	get_stuck(&b, state, CONFIG PATIENT, false);
	stop_it(&b, false);
	pass(&b, 60000);
	assert_false(no_session(&b));
	stop_it(&b, true);
	pass(&b, 16000);
	WAIT_FOR(&b, b.answers == 2 && no_session(&b));
	done(&b);
}

static void
the_end_of_the_daemon_waits_for_a_second(void **state)
{
	struct bed b;

	get_stuck(&b, state, CONFIG, true);
	service_shutdown(b.f->service, on_idle, &b);
	/* The consumer leaves when it hears of the end. */
	pass(&b, 1100);
	WAIT_FOR(&b, b.c.disabled);
	session_free(b.c.s);
	WAIT_FOR(&b, b.idle == 1);
	assert_true(no_session(&b));
	done(&b);
}

static void
a_descriptor_of_an_odd_kind_is_refused(void **state)
{
	struct bed b = { .f = *state };
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(fake_enable(b.f, &b.c, CONFIG, fd));
	assert_non_null(strstr(b.c.error, "a regular file"));
	assert_true(no_session(&b));
}

#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(when_the_consumer_leaves_it_is_gone_in_five_seconds),
		T(a_slow_reader_holds_what_its_consumer_left_for_a_second_a_megabyte),
		T(a_consumer_that_leaves_takes_its_patience_along),
		T(a_stop_ends_it_and_says_why),
		T(a_discard_ends_it_with_a_config_that_would_wait_a_month),
		T(a_discard_hurries_a_stop_that_is_under_way),
		T(the_end_of_the_daemon_waits_for_a_second),
		T(a_descriptor_of_an_odd_kind_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
