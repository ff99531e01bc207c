#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/still_loop.h"
#include "tests/unit/transport/socket/tcp_pair.h"
#include "transport/loop/loop.h"
#include "transport/stream/stream.h"

#define GOT_MAX (4u * 1024 * 1024)

/* One stream on fds[0]; the test holds the other end, fds[1]. */
static struct {
	struct loop *loop;
	struct stream *stream;
	int fds[2];

	/* What data() saw and how it behaves. */
	uint8_t *got;
	size_t got_len;
	size_t calls;
	size_t largest; /* bytes shown at once */
	size_t unit;    /* consume in whole units of so many bytes; 0: all */
	size_t pause_every; /* pause after so many units */
	bool close_in_data;
	bool refuse; /* consume nothing, pause */
	bool push;   /* write, push, and look whether it has left */
	bool answer; /* write some pieces, and close if close_in_data is set */
	int fd_of_unit; /* for unit number want_fd_unit */
	size_t want_fd_unit;
	size_t units;

	int drained;
	int ends;
	enum stream_end why;
	bool close_in_closed;
} t;

/* What is answered to a read: small pieces, a large one, a small one. */
#define ANSWER_BYTES (26u + 100000u + 1u)

static uint8_t
answer_byte(size_t i)
{
	return (uint8_t)('a' + i % 26);
}

static void
write_answer(struct stream *s)
{
	static uint8_t all[ANSWER_BYTES];
	size_t i;

	for (i = 0; i < ANSWER_BYTES; i++)
		all[i] = answer_byte(i);
	for (i = 0; i < 26; i += 2)
		stream_write2(s, all + i, 1, all + i + 1, 1, -1);
	/* Not sent yet, but counted. */
	assert_int_equal(stream_queued(s), 26);
	stream_write(s, all + 26, 100000, -1);
	stream_write(s, all + 100026, 1, -1);
}

static void
push_answer(struct stream *s)
{
	char got[8];

	stream_write(s, "now", 3, -1);
	assert_int_equal(recv(t.fds[1], got, 8, MSG_DONTWAIT), -1);
	stream_push(s);
	assert_int_equal(stream_queued(s), 0);
	assert_int_equal(recv(t.fds[1], got, 8, MSG_DONTWAIT), 3);
	/* What is written afterwards waits again. */
	stream_write(s, "later", 5, -1);
	assert_int_equal(stream_queued(s), 5);
}

static size_t
on_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	size_t at = 0, n;

	assert_ptr_equal(arg, &t);
	t.calls++;
	if (len > t.largest)
		t.largest = len;
	if (t.push)
		push_answer(s);
	if (t.answer)
		write_answer(s);
	if (t.close_in_data) {
		stream_close(s, t.answer);
		t.got[0] = buf[len - 1]; /* still readable */
		return 0;
	}
	if (t.refuse) {
		stream_pause(s);
		return 0;
	}
	n = t.unit != 0 ? t.unit : len;
	while (len - at >= n && n > 0) {
		memcpy(t.got + t.got_len, buf + at, n);
		if (t.units == t.want_fd_unit)
			t.fd_of_unit = stream_take_fd_of(s, buf + at, n);
		t.units++;
		t.got_len += n;
		at += n;
		if (t.pause_every != 0 && t.units % t.pause_every == 0) {
			stream_pause(s);
			return at;
		}
		if (t.unit == 0)
			return at;
	}
	if (at < len)
		stream_want(s, n);
	return at;
}

static void
on_drained(struct stream *s, void *arg)
{
	t.drained++;
}

static void
on_closed(struct stream *s, enum stream_end why, void *arg)
{
	t.ends++;
	t.why = why;
	t.stream = NULL;
	if (t.close_in_closed)
		stream_close(s, true);
}

static const struct stream_ops ops = {
	.data = on_data,
	.drained = on_drained,
	.closed = on_closed,
};

static void
start(void)
{
	t.stream = stream_new(t.loop, t.fds[0], &ops, &t);
	assert_non_null(t.stream);
	fcntl(t.fds[1], F_SETFL, O_NONBLOCK);
}

static int
setup_common(void)
{
	memset(&t, 0, sizeof(t));
	t.loop = still_loop_new();
	t.got = malloc(GOT_MAX);
	t.fd_of_unit = -2;
	t.want_fd_unit = SIZE_MAX;
	return 0;
}

static int
setup_unix(void **state)
{
	setup_common();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, t.fds), 0);
	start();
	return 0;
}

static int
setup_tcp(void **state)
{
	setup_common();
	assert_int_equal(tcp_pair(t.fds), 0);
	start();
	return 0;
}

static int
teardown(void **state)
{
	if (t.stream != NULL)
		stream_close(t.stream, false);
	loop_free(t.loop);
	if (t.fds[1] >= 0)
		close(t.fds[1]);
	free(t.got);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		long rounds_ = 0;                                              \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(rounds_++ < 20000000);                     \
		}                                                              \
	} while (0)

static void
turn(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

static void
fill(uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + i / 256 * 7 + i / 65536);
}

/* Sends all, turning the loop while the socket is full. */
static void
send_all(const void *data, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len) {
		n = send(t.fds[1], (const char *)data + at, len - at,
		    MSG_NOSIGNAL);
		if (n > 0)
			at += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
		loop_run_once(t.loop);
	}
}

static void
send_with_fds(const void *data, size_t len, const int *fds, int n)
{
	char control[CMSG_SPACE(sizeof(int) * 8)];
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n),
	};
	struct cmsghdr *c;

	memset(control, 0, sizeof(control));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n);
	assert_int_equal(sendmsg(t.fds[1], &msg, 0), len);
}

static void
bytes_arrive_and_nothing_is_kept(void **state)
{
	static uint8_t data[1000000];

	fill(data, sizeof(data));
	send_all(data, sizeof(data));
	RUN_UNTIL(t.got_len == sizeof(data));
	assert_memory_equal(t.got, data, sizeof(data));
	assert_int_equal(stream_memory(t.stream), 0);
	assert_true(t.largest <= LOOP_SCRATCH_BYTES);
}

static void
units_of_any_size_are_put_together(void **state)
{
	static const size_t units[] = { 1, 2, 3, 5, 1000, 4096, 4097, 65535,
		65536, 65537, 131072, 200000 };
	static uint8_t data[600000];
	size_t i, whole;

	fill(data, sizeof(data));
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		t.unit = units[i];
		t.got_len = 0;
		whole = sizeof(data) / t.unit * t.unit;
		send_all(data, whole);
		RUN_UNTIL(t.got_len == whole);
		assert_memory_equal(t.got, data, whole);
		turn(2);
		assert_int_equal(stream_memory(t.stream), 0);
	}
}

static void
a_unit_that_comes_byte_by_byte_is_shown_once_it_is_whole(void **state)
{
	uint8_t data[300];
	size_t i;

	fill(data, sizeof(data));
	t.unit = 100;
	for (i = 0; i < sizeof(data); i++) {
		assert_int_equal(send(t.fds[1], data + i, 1, 0), 1);
		loop_run_once(t.loop);
		assert_int_equal(t.got_len, (i + 1) / 100 * 100);
	}
	assert_memory_equal(t.got, data, sizeof(data));
	/* Once for its first byte, once when it is whole. */
	assert_int_equal(t.calls, 6);
	assert_int_equal(stream_memory(t.stream), 0);
}

static void
a_kept_beginning_takes_no_more_memory_than_its_unit(void **state)
{
	t.unit = 5000;
	send_all("abc", 3);
	RUN_UNTIL(t.calls == 1);
	assert_true(stream_memory(t.stream) <= 5000);
}

static void
a_paused_stream_reads_nothing_and_goes_on_where_it_was(void **state)
{
	static uint8_t data[600000];
	size_t sent = 0, before;
	ssize_t n;

	fill(data, sizeof(data));
	t.unit = 1000;
	t.pause_every = 3;
	while (t.got_len < sizeof(data)) {
		if (sent < sizeof(data)) {
			n = send(t.fds[1], data + sent, sizeof(data) - sent, 0);
			if (n > 0)
				sent += (size_t)n;
		}
		before = t.got_len;
		turn(3);
		assert_true(t.got_len - before <= 3000);
		assert_true(stream_memory(t.stream) <=
		    LOOP_SCRATCH_BYTES + 1000);
		stream_resume(t.stream);
	}
	assert_memory_equal(t.got, data, sizeof(data));
	turn(3);
	assert_int_equal(stream_memory(t.stream), 0);
}

static void
a_refused_unit_is_shown_again_after_resume(void **state)
{
	t.unit = 4;
	t.refuse = true;
	send_all("abcdefgh", 8);
	RUN_UNTIL(t.calls == 1);
	turn(5);
	assert_int_equal(t.calls, 1);
	stream_resume(t.stream);
	assert_int_equal(t.calls, 1); /* not from inside */
	turn(2);
	assert_int_equal(t.calls, 2);
	t.refuse = false;
	stream_resume(t.stream);
	RUN_UNTIL(t.got_len == 8);
	assert_memory_equal(t.got, "abcdefgh", 8);
}

static void
a_pause_taken_back_at_once_loses_nothing(void **state)
{
	assert_int_equal(send(t.fds[1], "abcd", 4, 0), 4);
	stream_pause(t.stream);
	stream_resume(t.stream);
	stream_pause(t.stream);
	turn(5);
	assert_int_equal(t.got_len, 0);
	stream_resume(t.stream);
	RUN_UNTIL(t.got_len == 4);
	send_all("e", 1);
	RUN_UNTIL(t.got_len == 5);
}

/* Reads what is there from the other end, behind t.got. */
static void
receive_some(size_t max)
{
	ssize_t n;

	n = recv(t.fds[1], t.got + t.got_len, max, 0);
	if (n > 0)
		t.got_len += (size_t)n;
}

static void
a_paused_stream_hears_of_the_peers_end(void **state)
{
	stream_pause(t.stream);
	turn(2);
	close(t.fds[1]);
	t.fds[1] = -1;
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_EOF);
}

static void
a_paused_stream_with_output_to_send_hears_of_the_end_too(void **state)
{
	static uint8_t data[400000];

	stream_pause(t.stream);
	stream_write(t.stream, data, sizeof(data), -1);
	assert_true(stream_queued(t.stream) > 0);
	while (t.got_len < sizeof(data)) {
		receive_some(100000);
		loop_run_once(t.loop);
	}
	turn(2);
	assert_int_equal(stream_queued(t.stream), 0);
	stream_write(t.stream, data, sizeof(data), -1);
	turn(2);
	close(t.fds[1]);
	t.fds[1] = -1;
	RUN_UNTIL(t.ends == 1);
}

static void
what_came_before_the_end_is_shown_after_resume(void **state)
{
	t.unit = 2;
	t.pause_every = 1;
	send_all("abcdefg", 7);
	RUN_UNTIL(t.got_len == 2);
	send_all("h", 1);
	close(t.fds[1]);
	t.fds[1] = -1;
	while (t.ends == 0) {
		turn(5);
		assert_true(t.ends == 0 || t.got_len == 8);
		if (t.ends == 0)
			stream_resume(t.stream);
	}
	assert_memory_equal(t.got, "abcdefgh", 8);
}

static void
stop_loop(void *arg)
{
	loop_stop(t.loop);
}

static void
a_reset_while_paused_does_not_spin_and_is_found_on_resume(void **state)
{
	struct linger hard = { 1, 0 };
	struct loop_timer *timer = loop_timer_new(t.loop, stop_loop, NULL);
	clock_t cpu;

	stream_pause(t.stream);
	setsockopt(t.fds[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(t.fds[1]);
	t.fds[1] = -1;
	loop_timer_set(timer, 100, 0);
	cpu = clock();
	loop_run(t.loop);
	assert_true(clock() - cpu < CLOCKS_PER_SEC / 20);
	loop_timer_free(timer);
	if (t.ends == 0)
		stream_resume(t.stream);
	RUN_UNTIL(t.ends == 1);
}

static void
the_peers_end_is_told_once(void **state)
{
	t.close_in_closed = true;
	send_all("abc", 3);
	shutdown(t.fds[1], SHUT_WR);
	RUN_UNTIL(t.ends);
	turn(5);
	assert_int_equal(t.ends, 1);
	assert_int_equal(t.why, STREAM_EOF);
	assert_int_equal(t.got_len, 3);
}

static void
the_owners_close_is_not_told_and_may_happen_in_data(void **state)
{
	t.close_in_data = true;
	send_all("abc", 3);
	RUN_UNTIL(t.calls == 1);
	stream_close(t.stream, true); /* twice is fine before the next turn */
	t.stream = NULL;
	assert_int_equal(t.got[0], 'c');
	turn(3);
	assert_int_equal(t.ends, 0);
	assert_int_equal(recv(t.fds[1], t.got, 1, 0), 0);
}

static void
the_owner_may_close_while_kept_bytes_are_shown(void **state)
{
	t.unit = 3;
	send_all("ab", 2);
	RUN_UNTIL(t.calls == 1);
	t.close_in_data = true;
	send_all("c", 1);
	RUN_UNTIL(t.calls == 2);
	t.stream = NULL;
	assert_int_equal(t.got[0], 'c');
	turn(3);
	assert_int_equal(t.ends, 0);
}

static void
output_waits_for_a_slow_reader_and_arrives_whole(void **state)
{
	static uint8_t data[900000];
	size_t at, n;

	fill(data, sizeof(data));
	for (at = 0; at < sizeof(data); at += n) {
		n = at % 5000 + 1;
		if (n > sizeof(data) - at)
			n = sizeof(data) - at;
		stream_write2(t.stream, data + at, n / 2, data + at + n / 2,
		    n - n / 2, -1);
	}
	assert_true(stream_queued(t.stream) > 65536);
	assert_true(stream_memory(t.stream) >= stream_queued(t.stream));
	while (t.got_len < sizeof(data)) {
		receive_some(10000);
		loop_run_once(t.loop);
	}
	assert_memory_equal(t.got, data, sizeof(data));
	assert_int_equal(stream_queued(t.stream), 0);
	assert_int_equal(stream_memory(t.stream), 0);
	assert_int_equal(t.drained, 1);
	assert_int_equal(t.ends, 0);
}

static void
a_reader_that_stops_is_closed_at_the_limit(void **state)
{
	static uint8_t data[65536];
	int i;

	stream_set_limits(t.stream, 300000, 1000);
	for (i = 0; i < 200 && t.ends == 0; i++) {
		stream_write(t.stream, data, sizeof(data), -1);
		assert_true(stream_queued(t.stream) <= 300000 + 65536);
	}
	assert_int_equal(t.ends, 0); /* never from inside */
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_SLOW);
}

static void
a_write_after_the_peer_left_still_lets_its_last_words_in(void **state)
{
	assert_int_equal(send(t.fds[1], "last", 4, 0), 4);
	close(t.fds[1]);
	t.fds[1] = -1;
	stream_write(t.stream, "a", 1, -1);
	stream_write(t.stream, "b", 1, -1);
	RUN_UNTIL(t.ends == 1);
	assert_memory_equal(t.got, "last", 4);
	assert_int_equal(t.got_len, 4);
}

static void
a_flushing_close_sends_what_is_queued(void **state)
{
	static uint8_t data[800000];

	fill(data, sizeof(data));
	stream_write(t.stream, data, sizeof(data), -1);
	assert_true(stream_queued(t.stream) > 0);
	stream_close(t.stream, true);
	t.stream = NULL;
	while (t.got_len < sizeof(data)) {
		receive_some(100000);
		loop_run_once(t.loop);
	}
	assert_memory_equal(t.got, data, sizeof(data));
	turn(3);
	assert_int_equal(recv(t.fds[1], data, 1, 0), 0);
	assert_int_equal(t.ends, 0);
}

static void
a_flushing_close_gives_up_after_a_second(void **state)
{
	static uint8_t data[800000];
	uint64_t begin = loop_now_ms();
	char byte;

	stream_write(t.stream, data, sizeof(data), -1);
	stream_close(t.stream, true);
	t.stream = NULL;
	/* The other end sees what got through, then the end. */
	while (recv(t.fds[1], &byte, 1, MSG_PEEK) != 0) {
		loop_run_once(t.loop);
		if (loop_now_ms() - begin > 900)
			while (recv(t.fds[1], t.got, GOT_MAX, 0) > 0)
				;
		assert_true(loop_now_ms() - begin < 30000);
	}
}

static void
a_flush_under_way_ends_with_the_loop(void **state)
{
	static uint8_t data[800000];

	stream_write(t.stream, data, sizeof(data), -1);
	stream_close(t.stream, true);
	t.stream = NULL; /* the leak checker looks at the rest */
}

static int
null_fd(void)
{
	int fd = open("/dev/null", O_RDONLY);

	assert_true(fd >= 0);
	return fd;
}

static int
count_open_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void
a_descriptor_is_handed_to_its_unit_among_several_in_one_read(void **state)
{
	int fd = null_fd();

	t.unit = 4;
	assert_int_equal(send(t.fds[1], "aaaabbbb", 8, 0), 8);
	send_with_fds("cccc", 4, &fd, 1);
	assert_int_equal(send(t.fds[1], "dddd", 4, 0), 4);
	t.want_fd_unit = 2;
	RUN_UNTIL(t.got_len == 16);
	assert_true(t.fd_of_unit >= 0);
	assert_true(fcntl(t.fd_of_unit, F_GETFD) & FD_CLOEXEC);
	close(t.fd_of_unit);
	close(fd);
}

static void
a_descriptor_of_another_unit_is_not_handed_out(void **state)
{
	int fd = null_fd(), before = count_open_fds();
	size_t unit;

	t.unit = 4;
	for (unit = 0; unit < 12; unit += 3) {
		t.want_fd_unit = unit + (unit % 2 ? 2 : 0);
		t.fd_of_unit = -2;
		assert_int_equal(send(t.fds[1], "aaaa", 4, 0), 4);
		send_with_fds("bbbb", 4, &fd, 1);
		assert_int_equal(send(t.fds[1], "cccc", 4, 0), 4);
		RUN_UNTIL(t.units == unit + 3);
		assert_int_equal(t.fd_of_unit, -1);
	}
	/* Nobody took them: they are closed. */
	assert_int_equal(count_open_fds(), before);
	close(fd);
}

static void
a_descriptor_waits_with_its_unit_through_cuts_and_pauses(void **state)
{
	int fd = null_fd(), before = count_open_fds();

	t.unit = 8;
	t.want_fd_unit = 0;
	send_with_fds("ab", 2, &fd, 1);
	RUN_UNTIL(t.calls == 1);
	t.refuse = true;
	send_all("cdefghij", 8);
	RUN_UNTIL(t.calls == 2);
	assert_int_equal(count_open_fds(), before + 1);
	t.refuse = false;
	stream_resume(t.stream);
	RUN_UNTIL(t.units == 1);
	assert_true(t.fd_of_unit >= 0);
	close(t.fd_of_unit);
	assert_int_equal(count_open_fds(), before);
	close(fd);
}

static void
more_descriptors_than_four_are_closed(void **state)
{
	int before = count_open_fds(), fds[6], i;

	t.unit = 100;
	for (i = 0; i < 6; i++)
		fds[i] = null_fd();
	send_with_fds("a", 1, fds, 6);
	send_with_fds("a", 1, fds, 1);
	for (i = 0; i < 6; i++)
		close(fds[i]);
	RUN_UNTIL(t.calls == 1);
	turn(3);
	assert_int_equal(count_open_fds(), before + 4);
	stream_close(t.stream, false);
	t.stream = NULL;
	assert_int_equal(count_open_fds(), before - 1);
}

static void
descriptors_leave_with_their_bytes_even_from_the_queue(void **state)
{
	static uint8_t data[300000];
	char control[CMSG_SPACE(sizeof(int))], byte[16];
	struct iovec iov = { byte, sizeof(byte) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = null_fd(), before = count_open_fds(), got;
	ssize_t n;

	stream_write(t.stream, data, sizeof(data), -1);
	assert_true(stream_queued(t.stream) > 0);
	stream_write(t.stream, "X", 1, fd);
	stream_write(t.stream, "Y", 1, -1);
	assert_int_equal(count_open_fds(), before + 1); /* a copy */
	while (t.got_len < sizeof(data)) {
		receive_some(sizeof(data) - t.got_len);
		loop_run_once(t.loop);
	}
	turn(2);
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	n = recvmsg(t.fds[1], &msg, MSG_CMSG_CLOEXEC);
	assert_true(n >= 1);
	assert_int_equal(byte[0], 'X');
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(got));
	close(got);
	if (n == 1)
		assert_int_equal(recv(t.fds[1], byte + 1, 1, 0), 1);
	assert_int_equal(byte[1], 'Y');
	assert_int_equal(count_open_fds(), before);
	close(fd);
}

static void
tcp_streams_answer_at_once_and_look_after_dead_peers(void **state)
{
	int v;
	socklen_t len = sizeof(v);

	assert_int_equal(stream_peer(t.stream)->kind, ADDR_TCP);
	assert_int_equal(getsockopt(t.fds[0], IPPROTO_TCP, TCP_NODELAY, &v,
	    &len), 0);
	assert_int_equal(v, 1);
	assert_int_equal(getsockopt(t.fds[0], SOL_SOCKET, SO_KEEPALIVE, &v,
	    &len), 0);
	assert_int_equal(v, 1);
	assert_int_equal(getsockopt(t.fds[0], IPPROTO_TCP, TCP_KEEPIDLE, &v,
	    &len), 0);
	assert_in_range(v, 10, 120);
	assert_true(fcntl(t.fds[0], F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(t.fds[0], F_GETFD) & FD_CLOEXEC);
}

static void
one_busy_peer_does_not_starve_another(void **state)
{
	static uint8_t data[400000];
	struct stream *busy = t.stream, *other;
	int sv[2];

	/* Several reads' worth lie ready on one stream, one byte on another. */
	send_all(data, 1);
	RUN_UNTIL(t.calls == 1);
	while (send(t.fds[1], data, sizeof(data), 0) > 0)
		;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	other = stream_new(t.loop, sv[0], &ops, &t);
	assert_int_equal(send(sv[1], "z", 1, 0), 1);
	t.calls = 0;
	loop_run_once(t.loop);
	assert_int_equal(t.calls, 2);
	stream_close(other, false);
	close(sv[1]);
	t.stream = busy;
}

static void
two_thousand_idle_streams_are_small(void **state)
{
	enum { N = 2000 };
	static struct stream *streams[N];
	static int ends[N];
	struct rlimit rl;
	size_t before, after;
	int sv[2], i;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = rl.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur < 2 * N + 100)
		skip();
	before = mallinfo2().uordblks;
	for (i = 0; i < N; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
		streams[i] = stream_new(t.loop, sv[0], &ops, &t);
		assert_non_null(streams[i]);
		ends[i] = sv[1];
	}
	for (i = 0; i < N; i++)
		assert_int_equal(send(ends[i], "a", 1, 0), 1);
	RUN_UNTIL(t.got_len == N);
	after = mallinfo2().uordblks;
	print_message("%zu bytes a stream\n", (after - before) / N);
	assert_true((after - before) / N < 1024);
	for (i = 0; i < N; i++) {
		stream_close(streams[i], false);
		close(ends[i]);
	}
}

static void
expect_answer(void)
{
	uint8_t buf[4096];
	size_t at = 0, i;
	ssize_t n;

	while (at < ANSWER_BYTES) {
		turn(1);
		n = read(t.fds[1], buf, sizeof(buf));
		if (n < 0 && errno == EAGAIN)
			continue;
		assert_true(n > 0);
		for (i = 0; i < (size_t)n; i++)
			assert_int_equal(buf[i], answer_byte(at + i));
		at += (size_t)n;
	}
	assert_int_equal(at, ANSWER_BYTES);
}

static void
what_data_writes_arrives_in_order_whatever_its_size(void **state)
{
	t.answer = true;
	assert_int_equal(write(t.fds[1], "x", 1), 1);
	expect_answer();
	turn(2);
	assert_int_equal(stream_queued(t.stream), 0);
	/* Afterwards, nothing is gathered. */
	stream_write(t.stream, "now", 3, -1);
	assert_int_equal(stream_queued(t.stream), 0);
}

static void
what_data_writes_before_it_closes_arrives(void **state)
{
	t.answer = true;
	t.close_in_data = true;
	assert_int_equal(write(t.fds[1], "x", 1), 1);
	expect_answer();
	t.stream = NULL;
}

static void
what_data_writes_leaves_at_once_when_it_is_pushed(void **state)
{
	char got[8];

	t.push = true;
	assert_int_equal(write(t.fds[1], "x", 1), 1);
	RUN_UNTIL(t.calls == 1);
	turn(1);
	assert_int_equal(recv(t.fds[1], got, 8, MSG_DONTWAIT), 5);
}

/* Until the queue is empty, without a turn of the loop. */
static void
a_queue_is_pushed_to_its_end_without_the_loop(void **state)
{
	static uint8_t data[900000], got[65536];
	size_t at = 0;
	ssize_t n;

	fill(data, sizeof(data));
	stream_write(t.stream, data, sizeof(data), -1);
	assert_true(stream_queued(t.stream) > 0);
	while (at < sizeof(data)) {
		stream_push(t.stream);
		n = recv(t.fds[1], got, sizeof(got), 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		assert_true(n > 0);
		assert_memory_equal(got, data + at, n);
		at += (size_t)n;
	}
	assert_int_equal(stream_queued(t.stream), 0);
	assert_int_equal(t.drained, 0);
	RUN_UNTIL(t.drained == 1);
}

static void
gathered_segments_go_out_together(void **state)
{
	char buf[16];

	stream_gather_segments(t.stream, true);
	stream_write(t.stream, "two ", 4, -1);
	stream_write(t.stream, "blocks", 6, -1);
	/* Over the loopback what is sent is there. */
	assert_int_equal(recv(t.fds[1], buf, sizeof(buf), 0), -1);
	stream_gather_segments(t.stream, false);
	assert_int_equal(recv(t.fds[1], buf, sizeof(buf), 0), 10);
	assert_memory_equal(buf, "two blocks", 10);
	/* From here on each goes by itself again. */
	stream_write(t.stream, "more", 4, -1);
	assert_int_equal(recv(t.fds[1], buf, sizeof(buf), 0), 4);
}

#define UNIX(name) cmocka_unit_test_setup_teardown(name, setup_unix, teardown)
#define TCP(name)  cmocka_unit_test_setup_teardown(name, setup_tcp, teardown)
#define BOTH(name) UNIX(name), TCP(name)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(bytes_arrive_and_nothing_is_kept),
		BOTH(units_of_any_size_are_put_together),
		BOTH(a_unit_that_comes_byte_by_byte_is_shown_once_it_is_whole),
		BOTH(a_kept_beginning_takes_no_more_memory_than_its_unit),
		BOTH(a_paused_stream_reads_nothing_and_goes_on_where_it_was),
		BOTH(a_refused_unit_is_shown_again_after_resume),
		BOTH(a_pause_taken_back_at_once_loses_nothing),
		BOTH(a_paused_stream_hears_of_the_peers_end),
		UNIX(a_paused_stream_with_output_to_send_hears_of_the_end_too),
		BOTH(what_came_before_the_end_is_shown_after_resume),
		TCP(a_reset_while_paused_does_not_spin_and_is_found_on_resume),
		TCP(gathered_segments_go_out_together),
		BOTH(the_peers_end_is_told_once),
		BOTH(the_owners_close_is_not_told_and_may_happen_in_data),
		BOTH(the_owner_may_close_while_kept_bytes_are_shown),
		UNIX(output_waits_for_a_slow_reader_and_arrives_whole),
		BOTH(what_data_writes_arrives_in_order_whatever_its_size),
		BOTH(what_data_writes_before_it_closes_arrives),
		UNIX(what_data_writes_leaves_at_once_when_it_is_pushed),
		BOTH(a_queue_is_pushed_to_its_end_without_the_loop),
		BOTH(a_reader_that_stops_is_closed_at_the_limit),
		BOTH(a_write_after_the_peer_left_still_lets_its_last_words_in),
		UNIX(a_flushing_close_sends_what_is_queued),
		UNIX(a_flushing_close_gives_up_after_a_second),
		UNIX(a_flush_under_way_ends_with_the_loop),
		UNIX(a_descriptor_is_handed_to_its_unit_among_several_in_one_read),
		UNIX(a_descriptor_of_another_unit_is_not_handed_out),
		UNIX(a_descriptor_waits_with_its_unit_through_cuts_and_pauses),
		UNIX(more_descriptors_than_four_are_closed),
		UNIX(descriptors_leave_with_their_bytes_even_from_the_queue),
		TCP(tcp_streams_answer_at_once_and_look_after_dead_peers),
		UNIX(one_busy_peer_does_not_starve_another),
		UNIX(two_thousand_idle_streams_are_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
