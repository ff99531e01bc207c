/* Streams over TLS, at both ends. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/fake_time.h"
#include "tests/unit/still_loop.h"
#include "tests/unit/transport/socket/tcp_pair.h"
#include "tests/unit/transport/tls/tls_fixture.h"
#include "transport/base/budget.h"
#include "transport/loop/loop.h"
#include "transport/stream/stream.h"

#define GOT_MAX (6u * 1024 * 1024)

/* One end. */
struct end {
	struct stream *stream; /* NULL: it ended */
	int opened, ends;
	enum stream_end why;
	char detail[TLS_ERROR_SIZE];
	uint8_t *got;
	size_t got_len, calls;
	size_t take;        /* consumes at most so much a call; 0: all */
	size_t pause_every; /* pauses after so many calls */
	bool close_in_opened;
};

static struct fix_cert *ca, *other_ca, *server_cert, *client_cert, *late_cert;
static struct fix_cert *stranger_cert;

static struct {
	struct loop *loop;
	struct tls_context *server_tls, *client_tls;
	struct end server, client;
	char *dirs[8];
	size_t n_dirs;
} t;

static size_t
on_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct end *e = arg;
	size_t n = e->take != 0 && e->take < len ? e->take : len;

	assert_int_equal(e->opened, 1);
	e->calls++;
	assert_true(e->got_len + n <= GOT_MAX);
	memcpy(e->got + e->got_len, buf, n);
	e->got_len += n;
	if (n < len || (e->pause_every != 0 && e->calls % e->pause_every == 0))
		stream_pause(s);
	return n;
}

static void
on_opened(struct stream *s, void *arg)
{
	struct end *e = arg;

	e->opened++;
	if (e->close_in_opened) {
		stream_write(s, "no", 2, -1);
		stream_close(s, true);
		e->stream = NULL;
	}
}

static void
on_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct end *e = arg;

	e->ends++;
	e->why = why;
	snprintf(e->detail, sizeof(e->detail), "%s", stream_end_detail(s));
	e->stream = NULL;
}

static const struct stream_ops ops = {
	.data = on_data,
	.opened = on_opened,
	.closed = on_closed,
};

static struct tls_context *
context(enum tls_side side, const struct fix_cert *believed,
    const struct fix_cert *own)
{
	char *dir = fix_side(believed, own);

	t.dirs[t.n_dirs++] = dir;
	return fix_context(side, dir);
}

static int
setup_all(void **state)
{
	struct fix_wish server = { .cn = "collector",
		.sans = "DNS:localhost,IP:127.0.0.1" };
	struct fix_wish client = { .cn = "device \"7\"" };
	struct fix_wish late = { .cn = "late", .from = 1000, .to = 2000 };

	ca = fix_ca("ours");
	other_ca = fix_ca("theirs");
	server_cert = fix_cert(ca, &server);
	client_cert = fix_cert(ca, &client);
	late_cert = fix_cert(ca, &late);
	stranger_cert = fix_cert(other_ca, &client);
	return 0;
}

static int
teardown_all(void **state)
{
	fix_cert_free(server_cert);
	fix_cert_free(client_cert);
	fix_cert_free(late_cert);
	fix_cert_free(stranger_cert);
	fix_cert_free(ca);
	fix_cert_free(other_ca);
	return 0;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.loop = still_loop_new();
	t.server.got = malloc(GOT_MAX);
	t.client.got = malloc(GOT_MAX);
	t.server_tls = context(TLS_SERVER, ca, server_cert);
	t.client_tls = context(TLS_CLIENT, ca, client_cert);
	return 0;
}

static int
teardown(void **state)
{
	if (t.server.stream != NULL)
		stream_close(t.server.stream, false);
	if (t.client.stream != NULL)
		stream_close(t.client.stream, false);
	loop_free(t.loop);
	tls_context_free(t.server_tls);
	tls_context_free(t.client_tls);
	while (t.n_dirs > 0)
		fix_dir_free(t.dirs[--t.n_dirs]);
	free(t.server.got);
	free(t.client.got);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		time_t give_up_ = time(NULL) + 50;                             \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(time(NULL) < give_up_);                    \
		}                                                              \
	} while (0)

static void
turn(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

static struct stream *
over_tls(int fd, struct tls_context *c, const char *host, void *arg)
{
	struct stream_setup over = { 0 };
	struct stream *s;

	over.tls = tls_conn_new(c, fd, host, "there");
	assert_non_null(over.tls);
	s = stream_new_over(t.loop, fd, &over, &ops, arg);
	assert_non_null(s);
	return s;
}

/* buffer > 0: of so many bytes only, over a socket that has no delays. */
static void
connect_ends(int buffer)
{
	int sv[2] = { -1, -1 }, i;

	if (buffer > 0)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	else
		assert_int_equal(tcp_pair(sv), 0);
	t.server.stream = over_tls(sv[0], t.server_tls, NULL, &t.server);
	t.client.stream = over_tls(sv[1], t.client_tls, "localhost",
	    &t.client);
	for (i = 0; i < 2 && buffer > 0; i++) {
		setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &buffer,
		    sizeof(buffer));
		setsockopt(sv[i], SOL_SOCKET, SO_RCVBUF, &buffer,
		    sizeof(buffer));
	}
}

static void
connect_and_open(void)
{
	connect_ends(0);
	RUN_UNTIL(t.server.opened && t.client.opened);
}

static void
fill(uint8_t *p, size_t len, unsigned seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + i / 256 * 7 + i / 65536 + seed);
}

static void
both_ends_open_and_know_each_other(void **state)
{
	const struct peer *p;

	connect_ends(0);
	assert_true(stream_is_opening(t.server.stream));
	RUN_UNTIL(t.server.opened && t.client.opened);
	p = stream_peer(t.server.stream);
	assert_int_equal(p->kind, ADDR_TLS);
	assert_int_equal(p->auth, PEER_CERT);
	assert_string_equal(p->cert->name, "device \"7\"");
	assert_int_equal(strncmp(p->text, "device \\x227\\x22 at 127.0.0.1:",
	    30), 0);
	assert_int_equal(p->uid, PEER_UID_UNKNOWN);
	assert_string_equal(stream_peer(t.client.stream)->cert->name,
	    "collector");
	stream_write(t.client.stream, "hello", 5, -1);
	RUN_UNTIL(t.server.got_len == 5);
	assert_memory_equal(t.server.got, "hello", 5);
	stream_close(t.client.stream, false);
	t.client.stream = NULL;
	RUN_UNTIL(t.server.ends == 1);
	assert_int_equal(t.server.why, STREAM_EOF);
	assert_string_equal(t.server.detail, "");
}

static void
transfer(size_t len, int buffer)
{
	uint8_t *down = malloc(len), *up = malloc(len);
	size_t sent_down = 0, sent_up = 0, n;
	long rounds = 0;

	fill(down, len, 1);
	fill(up, len, 2);
	connect_ends(buffer);
	while (t.server.got_len < len || t.client.got_len < len) {
		assert_true(rounds++ < 2000000);
		n = (sent_down % 40000) + 1;
		if (n > len - sent_down)
			n = len - sent_down;
		if (n > 0 && stream_queued(t.server.stream) < 300000) {
			stream_write2(t.server.stream, down + sent_down,
			    n / 5, down + sent_down + n / 5, n - n / 5, -1);
			sent_down += n;
		}
		n = len - sent_up < 65536 ? len - sent_up : 65536;
		if (n > 0 && stream_queued(t.client.stream) < 300000) {
			stream_write(t.client.stream, up + sent_up, n, -1);
			sent_up += n;
		}
		loop_run_once(t.loop);
		assert_int_equal(t.server.ends + t.client.ends, 0);
		stream_resume(t.server.stream);
		stream_resume(t.client.stream);
	}
	assert_memory_equal(t.client.got, down, len);
	assert_memory_equal(t.server.got, up, len);
	turn(3);
	assert_int_equal(stream_memory(t.server.stream), 0);
	assert_int_equal(stream_memory(t.client.stream), 0);
	free(down);
	free(up);
}

static void
megabytes_pass_both_ways_at_once(void **state)
{
	transfer(5000000, 0);
}

static void
much_passes_both_ways_through_tiny_buffers_and_pauses(void **state)
{
	t.server.pause_every = 3;
	t.client.pause_every = 2;
	transfer(600000, 2048);
}

static void
what_lies_in_the_tls_layer_is_shown_after_resume(void **state)
{
	static uint8_t data[60000];
	size_t before;

	fill(data, sizeof(data), 3);
	connect_and_open();
	t.server.pause_every = 1;
	stream_write(t.client.stream, data, sizeof(data), -1);
	RUN_UNTIL(t.server.got_len > 0);
	/* Nothing more comes over the socket. */
	RUN_UNTIL(stream_queued(t.client.stream) == 0);
	while (t.server.got_len < sizeof(data)) {
		before = t.server.calls;
		turn(5);
		assert_int_equal(t.server.calls, before);
		stream_resume(t.server.stream);
		RUN_UNTIL(t.server.calls == before + 1);
	}
	assert_memory_equal(t.server.got, data, sizeof(data));
}

static void
units_refused_are_shown_again_after_resume(void **state)
{
	static uint8_t data[60000];

	fill(data, sizeof(data), 4);
	connect_and_open();
	t.server.take = 777; /* and pauses */
	stream_write(t.client.stream, data, sizeof(data), -1);
	while (t.server.got_len < sizeof(data)) {
		turn(2);
		stream_resume(t.server.stream);
	}
	assert_memory_equal(t.server.got, data, sizeof(data));
}

static void
a_paused_stream_hears_of_an_orderly_end(void **state)
{
	connect_and_open();
	stream_pause(t.server.stream);
	turn(2);
	stream_close(t.client.stream, false);
	t.client.stream = NULL;
	RUN_UNTIL(t.server.ends == 1);
	assert_int_equal(t.server.why, STREAM_EOF);
}

static void
the_last_words_before_the_end_wait_for_resume(void **state)
{
	static uint8_t data[50000];

	connect_and_open();
	stream_pause(t.server.stream);
	turn(2);
	stream_write(t.client.stream, data, sizeof(data), -1);
	stream_close(t.client.stream, true);
	t.client.stream = NULL;
	turn(20);
	assert_int_equal(t.server.ends, 0);
	assert_int_equal(t.server.got_len, 0);
	stream_resume(t.server.stream);
	RUN_UNTIL(t.server.ends == 1);
	assert_int_equal(t.server.got_len, sizeof(data));
	assert_int_equal(t.server.why, STREAM_EOF);
}

static void
a_flushing_close_sends_all_and_says_goodbye(void **state)
{
	static uint8_t data[900000];

	fill(data, sizeof(data), 5);
	connect_ends(4096);
	/* Before the handshake, even. */
	stream_write(t.client.stream, data, sizeof(data), -1);
	stream_close(t.client.stream, true);
	t.client.stream = NULL;
	RUN_UNTIL(t.server.ends == 1);
	assert_int_equal(t.server.why, STREAM_EOF);
	assert_int_equal(t.server.got_len, sizeof(data));
	assert_memory_equal(t.server.got, data, sizeof(data));
}

static void
the_server_refuses_a_certificate_and_both_say_why(void **state)
{
	tls_context_free(t.client_tls);
	t.client_tls = context(TLS_CLIENT, ca, late_cert);
	connect_ends(0);
	RUN_UNTIL(t.server.ends && t.client.ends);
	assert_int_equal(t.server.opened, 0);
	assert_int_equal(t.server.why, STREAM_REFUSED);
	assert_non_null(strstr(t.server.detail, "expired"));
	/* An alert says less than the server knows. */
	assert_non_null(strstr(t.client.detail, "is not valid now"));
}

static void
the_client_refuses_a_collector_of_another_ca_and_both_say_why(void **state)
{
	tls_context_free(t.client_tls);
	t.client_tls = context(TLS_CLIENT, other_ca, stranger_cert);
	connect_ends(0);
	RUN_UNTIL(t.server.ends && t.client.ends);
	assert_int_equal(t.server.opened + t.client.opened, 0);
	assert_int_equal(t.client.why, STREAM_REFUSED);
	assert_int_equal(t.server.why, STREAM_REFUSED);
	assert_string_not_equal(t.client.detail, "");
	assert_string_not_equal(t.server.detail, "");
}

static void
a_client_that_speaks_no_tls_is_refused_with_a_sentence(void **state)
{
	int sv[2] = { -1, -1 };

	assert_int_equal(tcp_pair(sv), 0);
	t.server.stream = over_tls(sv[0], t.server_tls, NULL, &t.server);
	assert_int_equal(send(sv[1], "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	RUN_UNTIL(t.server.ends == 1);
	assert_int_equal(t.server.why, STREAM_REFUSED);
	assert_string_not_equal(t.server.detail, "");
	close(sv[1]);
}

static void
a_client_that_leaves_at_any_byte_of_its_handshake_is_refused(void **state)
{
	static uint8_t hello[4000];
	int sv[2] = { -1, -1 }, probe[2] = { -1, -1 };
	ssize_t len;
	ssize_t at;

	/* What a client says first. */
	assert_int_equal(tcp_pair(probe), 0);
	t.client.stream = over_tls(probe[1], t.client_tls, "localhost",
	    &t.client);
	turn(3);
	len = recv(probe[0], hello, sizeof(hello), 0);
	assert_true(len > 100);
	close(probe[0]);
	RUN_UNTIL(t.client.ends == 1);
	for (at = 0; at <= len; at += at < 16 ? 1 : 37) {
		t.server.ends = 0;
		assert_int_equal(tcp_pair(sv), 0);
		t.server.stream = over_tls(sv[0], t.server_tls, NULL,
		    &t.server);
		if (at > 0)
			assert_int_equal(send(sv[1], hello, (size_t)at, 0),
			    at);
		turn(2);
		close(sv[1]);
		RUN_UNTIL(t.server.ends == 1);
		assert_int_equal(t.server.why, STREAM_REFUSED);
		assert_int_equal(t.server.opened, 0);
	}
}

static void
a_slow_handshake_disturbs_nobody(void **state)
{
	struct end slow = { 0 };
	int sv[2] = { -1, -1 };

	assert_int_equal(tcp_pair(sv), 0);
	slow.stream = over_tls(sv[0], t.server_tls, NULL, &slow);
	assert_int_equal(send(sv[1], "\x16\x03\x01\x02", 4, 0), 4);
	turn(3);
	connect_and_open();
	stream_write(t.client.stream, "hello", 5, -1);
	RUN_UNTIL(t.server.got_len == 5);
	assert_true(stream_is_opening(slow.stream));
	assert_int_equal(slow.ends, 0);
	stream_close(slow.stream, false);
	turn(2);
	close(sv[1]);
}

static void
the_owner_may_refuse_in_opened_and_the_peer_reads_why(void **state)
{
	t.server.close_in_opened = true;
	connect_ends(0);
	RUN_UNTIL(t.client.ends == 1);
	assert_int_equal(t.client.got_len, 2);
	assert_memory_equal(t.client.got, "no", 2);
	assert_int_equal(t.client.why, STREAM_EOF);
}

static void
a_connection_that_breaks_is_no_orderly_end(void **state)
{
	int sv[2] = { -1, -1 }, copy;

	assert_int_equal(tcp_pair(sv), 0);
	copy = dup(sv[1]);
	t.server.stream = over_tls(sv[0], t.server_tls, NULL, &t.server);
	t.client.stream = over_tls(sv[1], t.client_tls, "localhost",
	    &t.client);
	RUN_UNTIL(t.server.opened && t.client.opened);
	shutdown(copy, SHUT_WR); /* without a goodbye */
	RUN_UNTIL(t.server.ends == 1);
	assert_int_equal(t.server.why, STREAM_RESET);
	close(copy);
}

static void
one_busy_tls_peer_does_not_starve_another(void **state)
{
	static uint8_t data[900000];
	struct end other = { .opened = 1 };
	size_t calls;
	int sv[2];

	connect_and_open();
	other.got = malloc(10);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	other.stream = stream_new(t.loop, sv[0], &ops, &other);
	stream_write(t.client.stream, data, sizeof(data), -1);
	RUN_UNTIL(t.server.calls > 0);
	assert_int_equal(send(sv[1], "z", 1, 0), 1);
	calls = t.server.calls;
	loop_run_once(t.loop);
	assert_int_equal(other.got_len, 1);
	assert_true(t.server.calls <= calls + 1);
	RUN_UNTIL(t.server.got_len == sizeof(data));
	stream_close(other.stream, false);
	turn(2);
	close(sv[1]);
	free(other.got);
}

static void
budgets_hold_over_tls_too(void **state)
{
	static uint8_t data[300000];
	struct budget b = { .bytes_per_second = 400000 };
	uint64_t begin = loop_now_ms();

	b.filled_ms = begin;
	connect_and_open();
	stream_set_budgets(t.server.stream, &b, NULL);
	stream_write(t.client.stream, data, sizeof(data), -1);
	RUN_UNTIL((fake_time_tick(), t.server.got_len == sizeof(data)));
	assert_true(b.throttled > 0);
	assert_true(loop_now_ms() - begin >=
	    (sizeof(data) - LOOP_SCRATCH_BYTES) * 1000 / 400000);
	b.memory_max = 1000;
	t.server.take = 1; /* the rest is kept */
	stream_write(t.client.stream, data, 5000, -1);
	RUN_UNTIL((fake_time_tick(), t.server.ends == 1));
	assert_int_equal(t.server.why, STREAM_BUDGET);
	assert_int_equal(b.memory, 0);
}

static void
an_idle_connection_takes_little_memory(void **state)
{
	enum { N = 64 };
	static struct end ends[2 * N];
	size_t before, each;
	int sv[2] = { -1, -1 }, i, open = 0;

	connect_and_open(); /* what is made once */
	before = mallinfo2().uordblks;
	for (i = 0; i < N; i++) {
		assert_int_equal(tcp_pair(sv), 0);
		ends[2 * i].stream = over_tls(sv[0], t.server_tls, NULL,
		    &ends[2 * i]);
		ends[2 * i + 1].stream = over_tls(sv[1], t.client_tls,
		    "localhost", &ends[2 * i + 1]);
	}
	while (open < 2 * N) {
		loop_run_once(t.loop);
		for (open = i = 0; i < 2 * N; i++)
			open += ends[i].opened;
	}
	turn(5);
	each = (mallinfo2().uordblks - before) / (2 * N);
	print_message("%zu bytes an idle end\n", each);
	assert_true(each < 32 * 1024);
	for (i = 0; i < 2 * N; i++)
		if (ends[i].stream != NULL)
			stream_close(ends[i].stream, false);
	turn(3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_ends_open_and_know_each_other),
		TEST(megabytes_pass_both_ways_at_once),
		TEST(much_passes_both_ways_through_tiny_buffers_and_pauses),
		TEST(what_lies_in_the_tls_layer_is_shown_after_resume),
		TEST(units_refused_are_shown_again_after_resume),
		TEST(a_paused_stream_hears_of_an_orderly_end),
		TEST(the_last_words_before_the_end_wait_for_resume),
		TEST(a_flushing_close_sends_all_and_says_goodbye),
		TEST(the_server_refuses_a_certificate_and_both_say_why),
		TEST(the_client_refuses_a_collector_of_another_ca_and_both_say_why),
		TEST(a_client_that_speaks_no_tls_is_refused_with_a_sentence),
		TEST(a_client_that_leaves_at_any_byte_of_its_handshake_is_refused),
		TEST(a_slow_handshake_disturbs_nobody),
		TEST(the_owner_may_refuse_in_opened_and_the_peer_reads_why),
		TEST(a_connection_that_breaks_is_no_orderly_end),
		TEST(one_busy_tls_peer_does_not_starve_another),
		TEST(budgets_hold_over_tls_too),
		TEST(an_idle_connection_takes_little_memory),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
