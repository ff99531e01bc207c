#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/still_loop.h"
#include "transport/base/budget.h"
#include "transport/loop/loop.h"
#include "transport/stream/stream.h"

#define N_PEERS 2

/* One stream each; the test holds the other ends. */
struct peer_of_test {
	struct stream *stream; /* NULL: it ended */
	int fd;
	size_t got;
	size_t unit; /* bytes of the unit that is awaited; 0: takes all */
	size_t total; /* what it says of its size */
	enum stream_end why;
	int ends;
};

static struct {
	struct loop *loop;
	struct budget of_peer[N_PEERS];
	struct budget of_all;
	struct peer_of_test p[N_PEERS];
} t;

/* At one byte a second it costs more than a test waits for anything. */
static const char long_text[60];

static size_t
on_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct peer_of_test *p = arg;

	if (p->unit != 0 && len < p->unit) {
		stream_want(s, p->total != 0 ? p->total : p->unit);
		return 0;
	}
	p->got += len;
	return len;
}

static void
on_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct peer_of_test *p = arg;

	p->why = why;
	p->ends++;
	p->stream = NULL;
}

static const struct stream_ops ops = {
	.data = on_data,
	.closed = on_closed,
};

static int
setup(void **state)
{
	int sv[2], i;

	memset(&t, 0, sizeof(t));
	t.loop = still_loop_new();
	for (i = 0; i < N_PEERS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
		t.p[i].fd = sv[1];
		fcntl(sv[1], F_SETFL, O_NONBLOCK);
		t.p[i].stream = stream_new(t.loop, sv[0], &ops, &t.p[i]);
		assert_non_null(t.p[i].stream);
		stream_set_budgets(t.p[i].stream, &t.of_peer[i], &t.of_all);
	}
	return 0;
}

static int
teardown(void **state)
{
	int i;

	for (i = 0; i < N_PEERS; i++) {
		if (t.p[i].stream != NULL)
			stream_close(t.p[i].stream, false);
		if (t.p[i].fd >= 0)
			close(t.p[i].fd);
		assert_int_equal(t.of_peer[i].memory, 0);
	}
	assert_int_equal(t.of_all.memory, 0);
	loop_free(t.loop);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t give_up_ = loop_now_ms() + 30000;                     \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(loop_now_ms() < give_up_);                 \
		}                                                              \
	} while (0)

/* An empty bucket that time does not fill, however slow the machine is. */
static void
dry_up(struct budget *b, uint64_t bytes_per_second)
{
	b->bytes_per_second = bytes_per_second;
	b->filled_ms = UINT64_MAX;
}

static void
turn(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

static void
check_counts(void)
{
	size_t all = 0, m;
	int i;

	for (i = 0; i < N_PEERS; i++) {
		m = t.p[i].stream != NULL ? stream_memory(t.p[i].stream) : 0;
		assert_int_equal(t.of_peer[i].memory, m);
		all += m;
	}
	assert_int_equal(t.of_all.memory, all);
}

static void
every_change_of_memory_is_counted_in_both(void **state)
{
	static uint8_t data[700000];
	uint8_t sink[50000];

	t.p[0].unit = 5000;
	assert_int_equal(send(t.p[0].fd, data, 100, 0), 100);
	turn(2);
	assert_true(t.of_peer[0].memory >= 100);
	check_counts();
	stream_write(t.p[1].stream, data, sizeof(data), -1);
	assert_true(t.of_peer[1].memory > 100000);
	check_counts();
	while (stream_queued(t.p[1].stream) > 0) {
		(void)!recv(t.p[1].fd, sink, sizeof(sink), 0);
		loop_run_once(t.loop);
		check_counts();
	}
	assert_int_equal(t.of_peer[1].memory, 0);
	assert_int_equal(send(t.p[0].fd, data, 4900, 0), 4900);
	RUN_UNTIL(t.p[0].got == 5000);
	turn(1);
	check_counts();
	assert_int_equal(t.of_all.memory, 0);
}

static void
what_a_stream_holds_already_is_counted_when_it_gets_budgets(void **state)
{
	t.p[0].unit = 5000;
	assert_int_equal(send(t.p[0].fd, "abc", 3, 0), 3);
	turn(2);
	stream_set_budgets(t.p[0].stream, NULL, NULL);
	assert_int_equal(t.of_all.memory, 0);
	stream_set_budgets(t.p[0].stream, &t.of_peer[0], &t.of_all);
	assert_true(t.of_all.memory >= 3);
	check_counts();
}

static void
a_unit_over_the_peers_memory_ends_that_peer_only(void **state)
{
	t.of_peer[0].memory_max = 4000;
	t.p[0].unit = t.p[1].unit = 5000;
	assert_int_equal(send(t.p[0].fd, "abc", 3, 0), 3);
	assert_int_equal(send(t.p[1].fd, "abc", 3, 0), 3);
	/* Memory is taken for the whole unit. */
	RUN_UNTIL(t.p[0].ends == 1);
	assert_int_equal(t.p[0].why, STREAM_BUDGET);
	assert_int_equal(t.of_peer[0].memory_refused, 1);
	assert_int_equal(t.of_all.memory_refused, 0);
	turn(3);
	assert_int_equal(t.p[1].ends, 0);
	check_counts();
}

static void
the_last_straw_ends_its_own_stream_and_not_who_holds_most(void **state)
{
	static uint8_t data[900000];

	t.of_all.memory_max = 800000;
	stream_set_limits(t.p[0].stream, 10000000, 1000);
	stream_write(t.p[0].stream, data, sizeof(data), -1);
	assert_in_range(t.of_all.memory, 400000, 800000);
	t.of_all.memory_max = t.of_all.memory;
	t.p[1].unit = 100;
	assert_int_equal(send(t.p[1].fd, "a", 1, 0), 1);
	RUN_UNTIL(t.p[1].ends == 1);
	assert_int_equal(t.p[1].why, STREAM_BUDGET);
	assert_int_equal(t.of_all.memory_refused, 1);
	assert_int_equal(t.p[0].ends, 0);
	check_counts();
	/* Its neighbour may still give back, and is there. */
	while (stream_queued(t.p[0].stream) > 0) {
		(void)!recv(t.p[0].fd, data, 100000, 0);
		loop_run_once(t.loop);
	}
	assert_int_equal(t.p[0].ends, 0);
}

static void
output_over_the_memory_ends_its_stream_but_not_inside_the_write(void **state)
{
	static uint8_t data[900000];

	t.of_peer[1].memory_max = 100000;
	stream_write(t.p[1].stream, data, sizeof(data), -1);
	assert_int_equal(t.p[1].ends, 0);
	assert_true(stream_is_over(t.p[1].stream));
	assert_int_equal(t.of_peer[1].memory, 0);
	RUN_UNTIL(t.p[1].ends == 1);
	assert_int_equal(t.p[1].why, STREAM_BUDGET);
}

static void
a_flush_is_not_counted_for_budgets_that_are_gone(void **state)
{
	static uint8_t data[900000];

	stream_write(t.p[1].stream, data, sizeof(data), -1);
	assert_true(t.of_peer[1].memory > 0);
	stream_close(t.p[1].stream, true);
	t.p[1].stream = NULL;
	assert_int_equal(t.of_peer[1].memory, 0);
	memset(&t.of_peer[1], 0xff, sizeof(t.of_peer[1]));
	while (recv(t.p[1].fd, data, sizeof(data), 0) != 0)
		loop_run_once(t.loop);
	turn(2);
	assert_true(t.of_peer[1].memory == SIZE_MAX); /* untouched */
	t.of_peer[1].memory = 0;
}

/* Sends what fits; returns how much that was. */
static size_t
fill_socket(int i)
{
	static uint8_t data[65536];
	size_t sent = 0;
	ssize_t n;

	while ((n = send(t.p[i].fd, data, sizeof(data), MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	return sent;
}

static void
a_stream_over_its_rate_rests_and_goes_on_by_itself(void **state)
{
	uint64_t begin;
	size_t sent, got;

	dry_up(&t.of_peer[0], 400000);
	sent = fill_socket(0);
	begin = loop_now_ms();
	loop_run_once(t.loop);
	t.of_peer[0].filled_ms = begin;
	got = t.p[0].got;
	assert_in_range(got, 1, LOOP_SCRATCH_BYTES);
	assert_int_equal(t.of_peer[0].throttled, 1);
	turn(5);
	if (loop_now_ms() - begin < got * 1000 / 400000)
		assert_int_equal(t.p[0].got, got);
	/* Another is not held up by that. */
	assert_int_equal(send(t.p[1].fd, "abc", 3, 0), 3);
	RUN_UNTIL(t.p[1].got == 3);
	RUN_UNTIL(t.p[0].got == sent);
	assert_true(loop_now_ms() - begin >=
	    (sent - LOOP_SCRATCH_BYTES) * 1000 / 400000);
	/* Unless the last bytes were paid before they were read. */
	if (loop_now_ms() - begin < sent * 1000 / 400000)
		assert_true(t.of_peer[0].throttled > 1);
}

static void
the_rate_of_all_holds_every_stream(void **state)
{
	size_t got;

	dry_up(&t.of_all, 1);
	assert_int_equal(send(t.p[0].fd, long_text, 60, 0), 60);
	RUN_UNTIL(t.p[0].got == 60);
	/* The next read of the other finds nothing left either. */
	assert_int_equal(send(t.p[1].fd, "abc", 3, 0), 3);
	RUN_UNTIL(t.p[1].got == 3);
	got = t.p[0].got + t.p[1].got;
	assert_int_equal(send(t.p[0].fd, "d", 1, 0), 1);
	assert_int_equal(send(t.p[1].fd, "d", 1, 0), 1);
	turn(20);
	assert_int_equal(t.p[0].got + t.p[1].got, got);
	assert_int_equal(t.of_all.throttled, 2);
}

static void
a_rest_outlasts_a_resume(void **state)
{
	dry_up(&t.of_peer[0], 1);
	assert_int_equal(send(t.p[0].fd, long_text, 60, 0), 60);
	RUN_UNTIL(t.p[0].got == 60); /* rests for a minute */
	assert_int_equal(send(t.p[0].fd, "i", 1, 0), 1);
	stream_pause(t.p[0].stream);
	stream_resume(t.p[0].stream);
	turn(20);
	assert_int_equal(t.p[0].got, 60);
}

static void
a_pause_outlasts_a_rest(void **state)
{
	uint64_t begin;

	dry_up(&t.of_peer[0], 100);
	assert_int_equal(send(t.p[0].fd, "abcdefgh", 8, 0), 8);
	RUN_UNTIL(t.p[0].got == 8); /* rests for 80 ms */
	assert_int_equal(t.of_peer[0].throttled, 1);
	begin = loop_now_ms();
	stream_pause(t.p[0].stream);
	assert_int_equal(send(t.p[0].fd, "i", 1, 0), 1);
	RUN_UNTIL(loop_now_ms() - begin > 120);
	assert_int_equal(t.p[0].got, 8);
	stream_resume(t.p[0].stream);
	RUN_UNTIL(t.p[0].got == 9);
}

static void
the_end_of_a_peer_that_rests_is_noticed_when_nothing_waits(void **state)
{
	dry_up(&t.of_peer[0], 1);
	assert_int_equal(send(t.p[0].fd, long_text, 60, 0), 60);
	RUN_UNTIL(t.p[0].got == 60);
	close(t.p[0].fd);
	t.p[0].fd = -1;
	/* Long before the rest is over. */
	RUN_UNTIL(t.p[0].ends == 1);
	assert_int_equal(t.p[0].why, STREAM_EOF);
}

static void
a_stream_that_rests_may_be_closed(void **state)
{
	dry_up(&t.of_peer[0], 1);
	assert_int_equal(send(t.p[0].fd, "abcd", 4, 0), 4);
	RUN_UNTIL(t.p[0].got == 4);
	stream_close(t.p[0].stream, false);
	t.p[0].stream = NULL;
	turn(3);
}

static void
idle_counts_from_the_last_byte(void **state)
{
	uint64_t now = loop_now_ms();

	assert_int_equal(stream_idle_ms(t.p[0].stream, 0), 0);
	assert_true(stream_idle_ms(t.p[0].stream, now + 5000) >= 5000);
	RUN_UNTIL(loop_now_ms() > now + 20);
	assert_int_equal(send(t.p[0].fd, "abcd", 4, 0), 4);
	RUN_UNTIL(t.p[0].got == 4);
	assert_true(stream_idle_ms(t.p[0].stream, now + 5000) < 4990);
	/* What we send does not make it less quiet. */
	now = loop_now_ms();
	RUN_UNTIL(loop_now_ms() > now + 20);
	stream_write(t.p[0].stream, "x", 1, -1);
	assert_true(stream_idle_ms(t.p[0].stream, now + 5000) >= 5000);
}

static void
stalled_counts_from_the_last_byte_that_was_taken(void **state)
{
	static uint8_t data[900000];
	uint64_t now = loop_now_ms(), before;

	assert_int_equal(stream_stalled_ms(t.p[0].stream, now + 5000), 0);
	RUN_UNTIL(loop_now_ms() > now + 10);
	before = loop_now_ms();
	stream_write(t.p[0].stream, data, sizeof(data), -1);
	now = loop_now_ms();
	assert_in_range(stream_stalled_ms(t.p[0].stream, now + 5000), 5000,
	    now - before + 5000);
	/* More output does not hide that none is taken. */
	RUN_UNTIL(loop_now_ms() > now + 20);
	stream_write(t.p[0].stream, data, 1000, -1);
	assert_true(stream_stalled_ms(t.p[0].stream, now + 5000) >= 5000);
	while (stream_stalled_ms(t.p[0].stream, now + 5000) >= 5000) {
		(void)!recv(t.p[0].fd, data, 100000, 0);
		loop_run_once(t.loop);
	}
	assert_true(stream_queued(t.p[0].stream) > 0);
	while (stream_queued(t.p[0].stream) > 0) {
		(void)!recv(t.p[0].fd, data, 100000, 0);
		loop_run_once(t.loop);
	}
	assert_int_equal(stream_stalled_ms(t.p[0].stream, now + 5000), 0);
}

static void
a_forwarded_peer_gets_and_gives_no_descriptors(void **state)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	assert_true(stream_peer(t.p[0].stream)->can_pass_fds);
	assert_false(stream_peer(t.p[0].stream)->forwarded);
	stream_set_forwarded(t.p[0].stream);
	stream_set_forwarded(t.p[0].stream); /* twice is fine */
	assert_false(stream_peer(t.p[0].stream)->can_pass_fds);
	assert_true(stream_peer(t.p[0].stream)->forwarded);
	assert_non_null(strstr(stream_peer(t.p[0].stream)->text,
	    "(forwarded)"));
	stream_write(t.p[0].stream, "x", 1, t.p[1].fd);
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	assert_int_equal(recvmsg(t.p[0].fd, &msg, 0), 1);
	assert_null(CMSG_FIRSTHDR(&msg));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_change_of_memory_is_counted_in_both),
		TEST(what_a_stream_holds_already_is_counted_when_it_gets_budgets),
		TEST(a_unit_over_the_peers_memory_ends_that_peer_only),
		TEST(the_last_straw_ends_its_own_stream_and_not_who_holds_most),
		TEST(output_over_the_memory_ends_its_stream_but_not_inside_the_write),
		TEST(a_flush_is_not_counted_for_budgets_that_are_gone),
		TEST(a_stream_over_its_rate_rests_and_goes_on_by_itself),
		TEST(the_rate_of_all_holds_every_stream),
		TEST(a_rest_outlasts_a_resume),
		TEST(a_pause_outlasts_a_rest),
		TEST(the_end_of_a_peer_that_rests_is_noticed_when_nothing_waits),
		TEST(a_stream_that_rests_may_be_closed),
		TEST(idle_counts_from_the_last_byte),
		TEST(stalled_counts_from_the_last_byte_that_was_taken),
		TEST(a_forwarded_peer_gets_and_gives_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
