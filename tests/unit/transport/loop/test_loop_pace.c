/* When a loop rests, by what its turns brought; and what ends a rest. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/loop/loop_internal.h"
#include "transport/loop/loop_pace.h"
#include "transport/stream/stream.h"

#define KIB 1024u
#define US UINT64_C(1000)

/* Turns at such intervals, each with so many reads of n bytes; the last rest. */
static uint64_t
turns(struct loop_pace *p, uint64_t *now, unsigned count, uint64_t interval,
    unsigned reads, size_t n)
{
	uint64_t until = 0;
	unsigned i, k;

	for (i = 0; i < count; i++) {
		*now += interval;
		for (k = 0; k < reads; k++)
			loop_pace_read(p, n);
		until = loop_pace_turn(p, *now);
		assert_in_range(until, 0, *now + LOOP_PACE_MOST_NS);
		if (until > *now)
			*now = until;
	}
	return until;
}

/* None of them rests: what begins a rest may be regretted in the next turn. */
static void
no_rest(struct loop_pace *p, uint64_t *now, unsigned count, uint64_t interval,
    unsigned reads, size_t n)
{
	while (count-- > 0)
		assert_int_equal(turns(p, now, 1, interval, reads, n), 0);
}

static void
small_pieces_at_a_high_rate_are_taken_together(void **state)
{
	struct loop_pace p = { 0 };
	uint64_t now = 1000000 * US, until;

	/* 200 KiB a millisecond, 10 KiB each. */
	turns(&p, &now, 21, 50 * US, 1, 10 * KIB);
	assert_int_equal(p.interval_ns, LOOP_PACE_LEAST_NS);
	/* 8 peers with what they sent meanwhile: as long as it may be. */
	until = turns(&p, &now, 10, 10 * US, 8, 16 * KIB);
	assert_int_equal(until, now);
	assert_int_equal(p.interval_ns, LOOP_PACE_MOST_NS);
}

static void
a_moderate_rate_waits_for_nothing(void **state)
{
	struct loop_pace p = { 0 };
	uint64_t now = 1000000 * US;

	/* 80 KiB a millisecond, in very many turns. */
	no_rest(&p, &now, 1000, 50 * US, 1, 4 * KIB);
	/* One after the other, each when it was answered. */
	no_rest(&p, &now, 1000, 60 * US, 1, 500);
}

static void
few_turns_with_much_wait_for_nothing(void **state)
{
	struct loop_pace p = { 0 };
	uint64_t now = 1000000 * US;

	no_rest(&p, &now, 1000, 600 * US, 4, 60 * KIB);
}

static void
who_reads_much_at_once_waits_for_nothing(void **state)
{
	struct loop_pace p = { 0 };
	uint64_t now = 1000000 * US;

	no_rest(&p, &now, 1000, 100 * US, 2, 128 * KIB);
}

static void
rests_get_shorter_until_no_read_is_long(void **state)
{
	struct loop_pace p = { 0 };
	uint64_t now = 1000000 * US;

	turns(&p, &now, 21, 50 * US, 1, 10 * KIB);
	turns(&p, &now, 10, 10 * US, 8, 16 * KIB);
	assert_int_equal(p.interval_ns, LOOP_PACE_MOST_NS);
	turns(&p, &now, 1, 10 * US, 2, LOOP_PACE_READ);
	assert_int_equal(p.interval_ns, LOOP_PACE_MOST_NS / 2);
	turns(&p, &now, 1, 10 * US, 2, LOOP_PACE_READ);
	assert_int_equal(p.interval_ns, LOOP_PACE_MOST_NS / 4);
	assert_int_equal(turns(&p, &now, 2, 10 * US, 2, LOOP_PACE_READ), 0);
}

static void
a_flood_that_ends_is_not_waited_for(void **state)
{
	struct loop_pace p = { 0 };
	uint64_t now = 1000000 * US;

	turns(&p, &now, 21, 50 * US, 1, 10 * KIB);
	turns(&p, &now, 10, 10 * US, 8, 16 * KIB);
	/* A turn for something else changes nothing. */
	assert_int_equal(loop_pace_turn(&p, now), p.turn_ns + p.interval_ns);
	assert_int_equal(turns(&p, &now, 1, 10 * US, 1, 4 * KIB), 0);
}

/* ---- a loop that would rest for an hour ---- */

struct bed {
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_post post;
	struct loop_call call;
	int fds[2];
	unsigned ran;
};

/* What happens on another thread when the loop rests, once; it has to end that. */
static struct {
	void *(*at)(void *arg);
	void *arg;
} rest;

static void
stop(void *arg)
{
	struct bed *b = arg;

	b->ran++;
	loop_stop(b->loop);
}

static int
bed_setup(void **state)
{
	static struct bed b;

	memset(&b, 0, sizeof(b));
	memset(&rest, 0, sizeof(rest));
	b.loop = loop_new();
	loop_set_paced(b.loop);
	b.timer = loop_timer_new(b.loop, stop, &b);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    b.fds), 0);
	*state = &b;
	return 0;
}

static int
bed_teardown(void **state)
{
	struct bed *b = *state;

	loop_timer_free(b->timer);
	loop_free(b->loop);
	close(b->fds[0]);
	return 0;
}

/* The turn that begins now is followed by an hour's rest, but for ... */
static void
rest_after_this_turn(void *arg)
{
	struct bed *b = arg;
	struct loop_pace *p = &b->loop->pace;

	p->bytes = 0;
	p->turn_ns = loop_clock_ns();
	p->interval_ns = UINT64_C(3600) * 1000000000;
}

int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left,
    const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left,
    const sigset_t *mask);

/* Nobody waits for an hour here. */
int
__wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left,
    const sigset_t *mask)
{
	static const struct timespec at_once = { 0, 0 };
	void *(*at)(void *arg) = rest.at;
	pthread_t t;

	if (at == NULL) {
		assert_in_range(left->tv_sec, 0, 60);
		return __real_ppoll(fds, n, left, mask);
	}
	rest.at = NULL;
	assert_int_equal(pthread_create(&t, NULL, at, rest.arg), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(__real_ppoll(fds, n, &at_once, mask), 1);
	return 1;
}

static void
run_and_when_it_rests(struct bed *b, void *(*at)(void *arg))
{
	rest.at = at;
	rest.arg = b;
	loop_defer(b->loop, &b->call, rest_after_this_turn, b);
	loop_run(b->loop);
	assert_null(rest.at);
	assert_int_equal(b->ran, 1);
}

static void *
post_from_another_thread(void *arg)
{
	struct bed *b = arg;

	loop_post(b->loop, &b->post, stop, b);
	return NULL;
}

static void
a_call_from_another_thread_ends_a_rest(void **state)
{
	struct bed *b = *state;

	run_and_when_it_rests(b, post_from_another_thread);
	close(b->fds[1]);
}

static void
a_timer_ends_a_rest(void **state)
{
	struct bed *b = *state;

	loop_defer(b->loop, &b->call, rest_after_this_turn, b);
	loop_timer_set(b->timer, 1, 0);
	loop_run(b->loop);
	assert_int_equal(b->ran, 1);
	close(b->fds[1]);
}

static size_t
take(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	stop(arg);
	return len;
}

static void
closed(struct stream *s, enum stream_end why, void *arg)
{
}

static void *
send_a_byte(void *arg)
{
	struct bed *b = arg;

	assert_int_equal(write(b->fds[0], "x", 1), 1);
	return NULL;
}

static void
somebody_urgent_ends_a_rest(void **state)
{
	static const struct stream_ops ops = { .data = take,
	    .closed = closed };
	struct bed *b = *state;
	struct stream *s = stream_new(b->loop, b->fds[1], &ops, b);

	assert_non_null(s);
	stream_set_urgent(s);
	run_and_when_it_rests(b, send_a_byte);
	/* What it sends is not what a loop rests for. */
	assert_int_equal(b->loop->pace.bytes, 0);
	stream_close(s, false);
}

static void
what_waits_for_the_next_turn_is_not_waited_for(void **state)
{
	struct bed *b = *state;

	rest_after_this_turn(b);
	loop_defer(b->loop, &b->call, stop, b);
	loop_run(b->loop);
	assert_int_equal(b->ran, 1);
	close(b->fds[1]);
}

int
main(void)
{
#define loop_test(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    small_pieces_at_a_high_rate_are_taken_together),
		cmocka_unit_test(a_moderate_rate_waits_for_nothing),
		cmocka_unit_test(few_turns_with_much_wait_for_nothing),
		cmocka_unit_test(who_reads_much_at_once_waits_for_nothing),
		cmocka_unit_test(rests_get_shorter_until_no_read_is_long),
		cmocka_unit_test(a_flood_that_ends_is_not_waited_for),
		loop_test(a_call_from_another_thread_ends_a_rest),
		loop_test(a_timer_ends_a_rest),
		loop_test(somebody_urgent_ends_a_rest),
		loop_test(what_waits_for_the_next_turn_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
