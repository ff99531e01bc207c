/* Streams over something: what lies there is fake_tls, or a shell. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/socket/tcp_pair.h"
#include "tests/unit/transport/tls/fake_tls.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"

#define GOT_MAX (2u * 1024 * 1024)

static struct {
	struct loop *loop;
	struct stream *stream; /* NULL: it ended */
	int fd;                /* the other end */

	int opened, ends, drained;
	bool write_in_opened, close_in_opened, flush_in_opened;
	enum stream_end why;
	char detail[TLS_ERROR_SIZE];

	uint8_t *got;
	size_t got_len;
	size_t calls;
	size_t pause_every; /* pauses after so many calls */
} t;

static size_t
on_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	assert_int_equal(t.opened, stream_peer(s)->kind == ADDR_TLS);
	t.calls++;
	memcpy(t.got + t.got_len, buf, len);
	t.got_len += len;
	if (t.pause_every != 0 && t.calls % t.pause_every == 0)
		stream_pause(s);
	return len;
}

static void
on_opened(struct stream *s, void *arg)
{
	assert_false(stream_is_opening(s));
	t.opened++;
	if (t.write_in_opened)
		stream_write(s, "welcome", 7, -1);
	if (t.close_in_opened || t.flush_in_opened) {
		stream_close(s, t.flush_in_opened);
		t.stream = NULL;
	}
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
	strcpy(t.detail, stream_end_detail(s));
	t.stream = NULL;
}

static const struct stream_ops ops = {
	.data = on_data,
	.opened = on_opened,
	.drained = on_drained,
	.closed = on_closed,
};

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&fake_tls_plan, 0, sizeof(fake_tls_plan));
	t.loop = loop_new();
	t.got = malloc(GOT_MAX);
	t.fd = -1;
	return 0;
}

static int
teardown(void **state)
{
	if (t.stream != NULL)
		stream_close(t.stream, false);
	loop_free(t.loop);
	if (t.fd >= 0)
		close(t.fd);
	free(t.got);
	assert_int_equal(fake_tls_live, 0);
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

static void
turn(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

/* A stream over fake_tls as the plan says. */
static void
start(void)
{
	struct stream_setup over = { 0 };
	int sv[2] = { -1, -1 };

	assert_int_equal(tcp_pair(sv), 0);
	t.fd = sv[1];
	fcntl(t.fd, F_SETFL, O_NONBLOCK);
	over.tls = tls_conn_new(NULL, sv[0], NULL, "here");
	t.stream = stream_new_over(t.loop, sv[0], &over, &ops, &t);
	assert_non_null(t.stream);
	assert_true(stream_is_opening(t.stream));
	assert_int_equal(stream_peer(t.stream)->kind, ADDR_TLS);
	assert_int_equal(stream_peer(t.stream)->auth, PEER_NOBODY);
}

static void
fill(uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + i / 256 * 7 + i / 65536);
}

/* Both directions at once, len bytes each. */
static void
exchange(size_t len)
{
	uint8_t *data = malloc(len), *back = malloc(len);
	size_t sent = 0, received = 0, written = 0, n;
	ssize_t r;
	long rounds = 0;

	fill(data, len);
	while (t.got_len < len || received < len) {
		assert_true(rounds++ < 1000000);
		if (sent < len && (r = send(t.fd, data + sent,
			len - sent < 50000 ? len - sent : 50000,
			MSG_NOSIGNAL)) > 0)
			sent += (size_t)r;
		/* Output that waits for input shall get some. */
		else if (sent == len && received < len)
			(void)!send(t.fd, "", 1, MSG_NOSIGNAL);
		if (written < len && stream_queued(t.stream) < 100000) {
			n = len - written < 30011 ? len - written : 30011;
			stream_write2(t.stream, data + written, n / 3,
			    data + written + n / 3, n - n / 3, -1);
			written += n;
		}
		loop_run_once(t.loop);
		assert_int_equal(t.ends, 0);
		r = recv(t.fd, back + received, len - received, 0);
		if (r > 0)
			received += (size_t)r;
		/* As an owner does who paused. */
		stream_resume(t.stream);
	}
	assert_memory_equal(t.got, data, len);
	assert_memory_equal(back, data, len);
	turn(3);
	assert_int_equal(stream_memory(t.stream), 0);
	free(data);
	free(back);
}

static void
a_stream_opens_after_its_handshake_and_names_its_peer(void **state)
{
	const struct peer *p;

	fake_tls_plan.shake_steps = 5;
	fake_tls_plan.shake_wants_write = 0x0b;
	fake_tls_plan.shake_bytes = 3;
	start();
	assert_int_equal(send(t.fd, "12", 2, 0), 2);
	turn(10);
	assert_int_equal(t.opened, 0);
	assert_int_equal(send(t.fd, "3abc", 4, 0), 4);
	RUN_UNTIL(t.opened == 1);
	RUN_UNTIL(t.got_len == 3); /* it lay inside already */
	p = stream_peer(t.stream);
	assert_int_equal(p->auth, PEER_CERT);
	assert_int_equal(p->uid, PEER_UID_UNKNOWN);
	assert_false(p->can_pass_fds);
	assert_non_null(p->cert);
	assert_int_equal(strncmp(p->text, "device\\x0a7 at 127.0.0.1:", 24), 0);
}

static void
a_server_waits_for_its_client_to_begin(void **state)
{
	fake_tls_plan.speaks_last = true;
	start();
	turn(5);
	assert_int_equal(t.opened, 0);
	assert_int_equal(send(t.fd, "abc", 3, 0), 3);
	RUN_UNTIL(t.opened == 1);
	RUN_UNTIL(t.got_len == 3);
}

static void
writes_wait_for_the_handshake_and_limits_hold_meanwhile(void **state)
{
	char back[8] = "";

	fake_tls_plan.shake_bytes = 1;
	start();
	stream_write(t.stream, "early", 5, -1);
	turn(5);
	assert_int_equal(stream_queued(t.stream), 5);
	assert_int_equal(recv(t.fd, back, 5, 0), -1);
	assert_int_equal(send(t.fd, "1", 1, 0), 1);
	RUN_UNTIL(t.opened == 1);
	RUN_UNTIL(recv(t.fd, back, 5, 0) == 5);
	assert_string_equal(back, "early");
}

static void
too_much_output_before_the_handshake_ends_the_stream(void **state)
{
	static uint8_t data[200000];

	fake_tls_plan.shake_bytes = 1;
	start();
	stream_set_limits(t.stream, 300000, 1000);
	stream_write(t.stream, data, sizeof(data), -1);
	assert_false(stream_is_over(t.stream));
	stream_write(t.stream, data, sizeof(data), -1);
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_SLOW);
	assert_int_equal(t.opened, 0);
}

static void
a_failed_handshake_is_told_with_its_sentence(void **state)
{
	fake_tls_plan.shake_steps = 2;
	fake_tls_plan.shake_wants_write = 0x3;
	fake_tls_plan.shake_fails = true;
	start();
	stream_write(t.stream, "early", 5, -1);
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_REFUSED);
	assert_string_equal(t.detail, FAKE_TLS_SHAKE_ERROR);
	assert_int_equal(t.opened, 0);
}

static void
a_peer_that_leaves_in_its_handshake_is_refused(void **state)
{
	fake_tls_plan.shake_bytes = 2;
	start();
	turn(2);
	close(t.fd);
	t.fd = -1;
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_REFUSED);
}

static void
an_alert_that_comes_later_is_told_with_its_sentence(void **state)
{
	fake_tls_plan.alert_after = 3;
	start();
	assert_int_equal(send(t.fd, "abc", 3, 0), 3);
	RUN_UNTIL(t.got_len == 3);
	assert_int_equal(send(t.fd, "d", 1, 0), 1);
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_RESET);
	assert_string_equal(t.detail, FAKE_TLS_ALERT);
}

static void
the_owner_may_write_pause_and_close_in_opened(void **state)
{
	char back[8] = "";

	t.write_in_opened = true;
	t.flush_in_opened = true;
	fake_tls_plan.send_max = 2;
	start();
	stream_write(t.stream, "x", 1, -1);
	RUN_UNTIL(t.opened == 1);
	RUN_UNTIL(recv(t.fd, back, 8, MSG_PEEK) == 8);
	assert_int_equal(recv(t.fd, back, 8, 0), 8);
	assert_memory_equal(back, "xwelcome", 8);
	RUN_UNTIL(recv(t.fd, back, 1, 0) == 0);
	assert_int_equal(t.ends, 0);
}

static void
the_owner_may_close_at_any_step(void **state)
{
	int steps;

	for (steps = 0; steps < 8; steps++) {
		fake_tls_plan.shake_steps = 4;
		fake_tls_plan.shake_wants_write = 0xf;
		start();
		if (steps % 2)
			stream_write(t.stream, "early", 5, -1);
		turn(steps);
		stream_close(t.stream, steps % 4 == 3);
		t.stream = NULL;
		turn(10);
		close(t.fd);
		t.fd = -1;
		assert_int_equal(t.ends, 0);
		assert_int_equal(fake_tls_live, 0);
		t.opened = 0;
	}
}

static void
a_flushing_close_ends_the_handshake_first(void **state)
{
	char back[8] = "";

	fake_tls_plan.shake_bytes = 1;
	start();
	stream_write(t.stream, "early", 5, -1);
	stream_close(t.stream, true);
	t.stream = NULL;
	assert_int_equal(send(t.fd, "1", 1, 0), 1);
	RUN_UNTIL(recv(t.fd, back, 5, 0) == 5);
	assert_string_equal(back, "early");
	RUN_UNTIL(recv(t.fd, back, 1, 0) == 0);
	assert_int_equal(t.opened, 0);
}

static void
bytes_go_both_ways_whatever_each_way_waits_for(void **state)
{
	static const unsigned every[] = { 0, 2, 3, 7 };
	size_t i, j;

	for (i = 0; i < 4; i++) {
		for (j = 0; j < 4; j++) {
			fake_tls_plan.receive_wants_write_every = every[i];
			fake_tls_plan.send_wants_read_every = every[j];
			fake_tls_plan.receive_max = i % 2 ? 3001 : 0;
			fake_tls_plan.send_max = j % 2 ? 1777 : 0;
			t.got_len = 0;
			t.opened = 0;
			start();
			exchange(300000);
			stream_close(t.stream, false);
			t.stream = NULL;
			close(t.fd);
			t.fd = -1;
			turn(2);
		}
	}
}

static void
input_inside_is_shown_though_the_socket_is_silent(void **state)
{
	static uint8_t data[10000];

	fake_tls_plan.receive_max = 100;
	start();
	RUN_UNTIL(t.opened == 1);
	t.pause_every = 3;
	assert_int_equal(send(t.fd, data, sizeof(data), 0), sizeof(data));
	while (t.got_len < sizeof(data)) {
		size_t calls = t.calls;

		turn(6);
		assert_true(t.calls <= calls + 3); /* paused is paused */
		if (t.calls % 3 == 0)
			stream_resume(t.stream);
	}
}

static void
input_inside_takes_one_turn_of_the_loop_a_read(void **state)
{
	static uint8_t data[10000];
	size_t calls;

	fake_tls_plan.receive_max = 100;
	start();
	RUN_UNTIL(t.opened == 1);
	assert_int_equal(send(t.fd, data, sizeof(data), 0), sizeof(data));
	RUN_UNTIL(t.calls > 0);
	/* The socket has more to say, too. */
	assert_int_equal(send(t.fd, data, sizeof(data), 0), sizeof(data));
	while (t.got_len < 2 * sizeof(data)) {
		calls = t.calls;
		loop_run_once(t.loop);
		assert_true(t.calls <= calls + 1);
	}
}

static void
a_paused_stream_hears_of_an_orderly_end(void **state)
{
	start();
	RUN_UNTIL(t.opened == 1);
	stream_pause(t.stream);
	turn(2);
	close(t.fd);
	t.fd = -1;
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_EOF);
}

static void
the_last_words_before_the_end_wait_for_resume(void **state)
{
	start();
	RUN_UNTIL(t.opened == 1);
	stream_pause(t.stream);
	turn(2);
	assert_int_equal(send(t.fd, "last", 4, 0), 4);
	shutdown(t.fd, SHUT_WR);
	turn(5);
	assert_int_equal(t.ends, 0);
	assert_int_equal(t.got_len, 0);
	stream_resume(t.stream);
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.got_len, 4);
	assert_memory_equal(t.got, "last", 4);
}

static void
a_write_to_a_peer_that_left_finds_the_end_while_paused(void **state)
{
	struct linger hard = { 1, 0 };
	long rounds = 0;

	start();
	RUN_UNTIL(t.opened == 1);
	stream_pause(t.stream);
	turn(2);
	setsockopt(t.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(t.fd);
	t.fd = -1;
	while (t.ends == 0) {
		stream_write(t.stream, "x", 1, -1);
		turn(1);
		assert_true(rounds++ < 100000);
	}
	assert_true(t.why == STREAM_RESET || t.why == STREAM_EOF);
}

/* ---- children ---- */

static void
start_child(const char *command)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)command,
		NULL };
	struct stream_setup over = { 0 };
	struct peer peer;
	struct addr a;
	char err[200];
	int fd;

	assert_int_equal(addr_parse(&a, "ssh://device-7", err, sizeof(err)),
	    0);
	peer_from_ssh(&peer, &a);
	over.child = child_new(t.loop, argv, &fd, err, sizeof(err));
	assert_non_null(over.child);
	over.child_addr = &a;
	over.peer = &peer;
	t.stream = stream_new_over(t.loop, fd, &over, &ops, &t);
	assert_non_null(t.stream);
	assert_false(stream_is_opening(t.stream));
}

static void
a_child_carries_the_bytes_and_is_known_by_its_address(void **state)
{
	start_child("exec cat");
	assert_int_equal(stream_peer(t.stream)->kind, ADDR_SSH);
	assert_string_equal(stream_peer(t.stream)->text, "ssh://device-7");
	assert_false(stream_peer(t.stream)->can_pass_fds);
	stream_write(t.stream, "to and fro", 10, STDERR_FILENO);
	RUN_UNTIL(t.got_len == 10);
	assert_memory_equal(t.got, "to and fro", 10);
}

static void
a_child_that_ends_well_is_a_peer_that_closed(void **state)
{
	start_child("printf bye; exit 0");
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.got_len, 3);
	assert_int_equal(t.why, STREAM_EOF);
	assert_string_equal(t.detail, "");
}

static void
a_child_that_fails_says_why(void **state)
{
	start_child("exec <&- >&-; "
	    "printf 'Permission denied (publickey).\\r\\n' >&2; exit 255");
	RUN_UNTIL(t.ends == 1);
	assert_int_equal(t.why, STREAM_REFUSED);
	assert_non_null(strstr(t.detail, "device-7"));
}

static void
a_write_to_a_child_that_failed_does_not_hide_why(void **state)
{
	long rounds = 0;

	start_child("exit 7");
	while (t.ends == 0) {
		if (t.stream != NULL)
			stream_write(t.stream, "hello", 5, -1);
		loop_run_once(t.loop);
		assert_true(rounds++ < 20000000);
	}
	assert_int_equal(t.why, STREAM_REFUSED);
	assert_string_not_equal(t.detail, "");
}

static void
the_owner_may_close_while_the_last_words_are_awaited(void **state)
{
	start_child("exec <&- >&-; while :; do sleep 1; done");
	/* Its end of the pair is closed, it runs on. */
	RUN_UNTIL(stream_is_over(t.stream));
	assert_int_equal(t.ends, 0);
	stream_write(t.stream, "x", 1, -1);
	stream_close(t.stream, true);
	t.stream = NULL;
	turn(3);
	assert_int_equal(t.ends, 0);
}

static void
a_child_that_stays_after_its_end_is_waited_for_a_second(void **state)
{
	uint64_t begin = loop_now_ms();

	start_child("exec <&- >&- 2>&-; while :; do sleep 1; done");
	RUN_UNTIL(t.ends == 1);
	assert_in_range(loop_now_ms() - begin, 900, 20000);
	assert_int_equal(t.why, STREAM_EOF);
}

static void
a_flushing_close_lets_the_child_send_what_it_got(void **state)
{
	char path[] = "/tmp/test_stream_over.XXXXXX", command[100];
	static uint8_t data[300000];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "exec cat >%s", path);
	start_child(command);
	fill(data, sizeof(data));
	stream_write(t.stream, data, sizeof(data), -1);
	stream_close(t.stream, true);
	t.stream = NULL;
	RUN_UNTIL(lseek(fd, 0, SEEK_END) == (off_t)sizeof(data));
	close(fd);
	unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stream_opens_after_its_handshake_and_names_its_peer),
		TEST(a_server_waits_for_its_client_to_begin),
		TEST(writes_wait_for_the_handshake_and_limits_hold_meanwhile),
		TEST(too_much_output_before_the_handshake_ends_the_stream),
		TEST(a_failed_handshake_is_told_with_its_sentence),
		TEST(a_peer_that_leaves_in_its_handshake_is_refused),
		TEST(an_alert_that_comes_later_is_told_with_its_sentence),
		TEST(the_owner_may_write_pause_and_close_in_opened),
		TEST(the_owner_may_close_at_any_step),
		TEST(a_flushing_close_ends_the_handshake_first),
		TEST(bytes_go_both_ways_whatever_each_way_waits_for),
		TEST(input_inside_is_shown_though_the_socket_is_silent),
		TEST(input_inside_takes_one_turn_of_the_loop_a_read),
		TEST(a_paused_stream_hears_of_an_orderly_end),
		TEST(the_last_words_before_the_end_wait_for_resume),
		TEST(a_write_to_a_peer_that_left_finds_the_end_while_paused),
		TEST(a_child_carries_the_bytes_and_is_known_by_its_address),
		TEST(a_child_that_ends_well_is_a_peer_that_closed),
		TEST(a_child_that_fails_says_why),
		TEST(a_write_to_a_child_that_failed_does_not_hide_why),
		TEST(the_owner_may_close_while_the_last_words_are_awaited),
		TEST(a_child_that_stays_after_its_end_is_waited_for_a_second),
		TEST(a_flushing_close_lets_the_child_send_what_it_got),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
