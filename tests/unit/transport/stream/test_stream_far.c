/* Streams whose sockets are on other threads. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sched.h>
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
#include "tests/unit/transport/tls/tls_world.h"
#include "transport/base/budget.h"
#include "transport/loop/loop.h"
#include "transport/socket/peer.h"
#include "transport/stream/io_line.h"
#include "transport/stream/io_pool.h"
#include "transport/stream/stream.h"
#include "transport/stream/stream_far.h"
#include "transport/stream/stream_internal.h"
#include "transport/tls/tls_reload.h"
#include "transport/wire/frame.h"

#define N_THREADS 2
#define N_ENDS    8
#define N_MANY    120 /* whose windows are more than a thread may be ahead */
#define FRAME_SEED 7u
#define READ_NS   1000000u
#define TURN_READS LOOP_READ_MS

/* The owner's end of a connection; the test holds the other one. */
struct end {
	struct stream *stream; /* NULL: it ended */
	int fd;
	int opened, ends, drained;
	enum stream_end why;
	char detail[TLS_ERROR_SIZE];
	size_t frames, bytes, calls;
	uint32_t next;       /* number of the frame that has to come next */
	bool hold;           /* takes nothing, and pauses */
	size_t one_by_one;   /* takes a frame a call */
	bool close_in_data;
	bool ignore;         /* takes nothing, and does not say so */
	bool refuse;         /* closes at what is no frame */
	const uint8_t *seen; /* what was shown last */
	size_t seen_len;
	struct budget budget;
	bool any;            /* frames of any kind; a call takes READ_NS */
	size_t largest;      /* that was shown at once */
};

static struct {
	struct loop *loop;
	struct io_pool *pool;
	struct end e[N_MANY];
	uint64_t now_ns; /* where a test says how time passes */
	struct budget all;
} t;

static struct tls_world *world;

/* ---- frames that are known by their number ---- */

static uint32_t
mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

/* Of a numbered frame: mostly small, some large, the largest among them. */
static size_t
payload_of(uint32_t number)
{
	uint32_t r = mix(number * 3 + FRAME_SEED);

	if (number % 97 == 13)
		return FRAME_PAYLOAD_MAX;
	if (number % 11 == 5)
		return 4 + r % 40000;
	return 4 + r % 300;
}

static size_t
put_frame(uint8_t *out, uint32_t number)
{
	size_t len = payload_of(number), i;

	frame_put_header(out, (uint32_t)len);
	memcpy(out + 4, &number, 4);
	for (i = 4; i < len; i++)
		out[4 + i] = (uint8_t)(number + i);
	return 4 + len;
}

static void
check_frame(const uint8_t *payload, size_t len, uint32_t number)
{
	uint32_t said;

	assert_int_equal(len, payload_of(number));
	memcpy(&said, payload, 4);
	assert_int_equal(said, number);
	if (len > 4) {
		assert_int_equal(payload[4], (uint8_t)(number + 4));
		assert_int_equal(payload[len - 1],
		    (uint8_t)(number + len - 1));
	}
}

/* Numbered frames from..from+n-1; the caller's. */
static uint8_t *
make_frames(uint32_t from, uint32_t n, size_t *len)
{
	uint8_t *all = malloc((size_t)n * FRAME_MAX_BYTES);
	uint32_t i;

	assert_non_null(all);
	*len = 0;
	for (i = 0; i < n; i++)
		*len += put_frame(all + *len, from + i);
	return all;
}

/* ---- the owner's ends ---- */

static size_t
on_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct end *e = arg;
	const uint8_t *payload;
	size_t at = 0, payload_len, used, need;

	e->calls++;
	e->seen = buf;
	e->seen_len = len;
	if (e->close_in_data) {
		stream_close(s, false);
		e->stream = NULL;
		/* It is still ours until we return. */
		assert_int_equal(memcmp(buf, e->seen, len), 0);
		return 0;
	}
	if (len > e->largest)
		e->largest = len;
	if (e->any) {
		e->bytes += len;
		t.now_ns += READ_NS;
		return len;
	}
	if (e->ignore)
		return 0;
	if (e->hold) {
		stream_pause(s);
		return 0;
	}
	while (at < len) {
		if (frame_next(buf + at, len - at, &payload, &payload_len,
			&used, &need) != FRAME_OK) {
			assert_true(e->refuse);
			stream_close(s, false);
			e->stream = NULL;
			return at;
		}
		check_frame(payload, payload_len, e->next++);
		e->frames++;
		e->bytes += used;
		at += used;
		if (e->one_by_one != 0) {
			stream_pause(s);
			stream_resume(s);
			return at;
		}
	}
	return at;
}

static void
on_opened(struct stream *s, void *arg)
{
	((struct end *)arg)->opened++;
}

static void
on_drained(struct stream *s, void *arg)
{
	((struct end *)arg)->drained++;
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
	.drained = on_drained,
	.closed = on_closed,
};

static int
setup(void **state)
{
	int i;

	memset(&t, 0, sizeof(t));
	for (i = 0; i < N_MANY; i++)
		t.e[i].fd = -1;
	t.loop = loop_new();
	t.pool = io_pool_new(t.loop, N_THREADS);
	assert_non_null(t.pool);
	return io_pool_start(t.pool);
}

static int
teardown(void **state)
{
	int i;

	for (i = 0; i < N_MANY; i++) {
		if (t.e[i].stream != NULL)
			stream_close(t.e[i].stream, false);
		if (t.e[i].fd >= 0)
			close(t.e[i].fd);
		assert_int_equal(t.e[i].budget.memory, 0);
	}
	assert_int_equal(t.all.memory, 0);
	io_pool_free(t.pool);
	loop_free(t.loop);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t give_up_ = loop_now_ms() + 60000;                     \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			sched_yield();                                         \
			assert_true(loop_now_ms() < give_up_);                 \
		}                                                              \
	} while (0)

/* tls NULL: plain. */
static void
connect_over(struct end *e, struct tls_context *tls)
{
	struct stream_setup over = { .io = t.pool };
	int sv[2];

	assert_int_equal(tcp_pair(sv), 0);
	fcntl(sv[1], F_SETFL, O_NONBLOCK);
	e->fd = sv[1];
	if (tls != NULL)
		over.tls = tls_conn_new(tls, sv[0], NULL, "there");
	e->stream = stream_new_over(t.loop, sv[0], &over, &ops, e);
	assert_non_null(e->stream);
	stream_set_budgets(e->stream, &e->budget, &t.all);
}

static struct end *
connect_end(int i)
{
	connect_over(&t.e[i], NULL);
	return &t.e[i];
}

/* All of it, while the loop runs. */
static void
send_all(struct end *e, const uint8_t *data, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = send(e->fd, data, len, MSG_NOSIGNAL);
		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			n = 0;
		}
		data += n;
		len -= (size_t)n;
		loop_run_once(t.loop);
	}
}

/* What the peer takes, until there is no more for now. */
static size_t
peer_reads(struct end *e, uint8_t *out, size_t room)
{
	ssize_t n = recv(e->fd, out, room, 0);

	return n > 0 ? (size_t)n : 0;
}

/* ---- input ---- */

static void
frames_arrive_whole_and_in_their_order(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len, at = 0, n;

	all = make_frames(0, 400, &len);
	while (at < len) {
		/* Pieces that end anywhere. */
		n = 1 + mix((uint32_t)at) % 70000;
		if (n > len - at)
			n = len - at;
		send_all(e, all + at, n);
		at += n;
	}
	RUN_UNTIL(e->frames == 400);
	assert_int_equal(e->bytes, len);
	assert_int_equal(e->ends, 0);
	free(all);
}

static void
a_frame_that_is_not_taken_stays_where_it_is(void **state)
{
	struct end *e = connect_end(0);
	const uint8_t *where;
	uint8_t *all;
	size_t len;
	int i;

	all = make_frames(0, 3, &len);
	e->hold = true;
	send_all(e, all, len);
	RUN_UNTIL(e->calls == 1);
	where = e->seen;
	for (i = 0; i < 10; i++) {
		stream_resume(e->stream);
		RUN_UNTIL(e->calls == (size_t)i + 2);
		assert_ptr_equal(e->seen, where);
	}
	e->hold = false;
	stream_resume(e->stream);
	RUN_UNTIL(e->frames == 3);
	free(all);
}

static void
frames_may_be_taken_one_by_one(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len;

	all = make_frames(0, 50, &len);
	e->one_by_one = 1;
	send_all(e, all, len);
	RUN_UNTIL(e->frames == 50);
	assert_true(e->calls >= 50);
	free(all);
}

static void
whom_nobody_listens_to_is_held_back_by_his_socket(void **state)
{
	struct end *e = connect_end(0);
	size_t len, sent = 0, most = 0, quiet = 0, m;
	uint8_t *all;
	ssize_t n;

	all = make_frames(0, 2000, &len);
	e->hold = true;
	/* Until the socket has taken nothing for a while: not for want of a turn. */
	while ((quiet < 2000 || most == 0) && sent < len) {
		n = send(e->fd, all + sent, len - sent, MSG_NOSIGNAL);
		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		loop_run_once(t.loop);
		sched_yield();
		m = stream_memory(e->stream);
		most = m > most ? m : most;
	}
	assert_true(sent < len);
	assert_true(most > 0);
	/* Blocks may have room left, and so may what one read left. */
	assert_true(most <= 2 * (IO_LINE_WINDOW + LOOP_SCRATCH_BYTES) +
	    FRAME_MAX_BYTES);
	e->hold = false;
	stream_resume(e->stream);
	send_all(e, all + sent, len - sent);
	RUN_UNTIL(e->frames == 2000);
	RUN_UNTIL(stream_memory(e->stream) == 0);
	free(all);
}

static void
many_that_send_at_once_are_all_heard(void **state)
{
	size_t len, at[N_ENDS] = { 0 }, done = 0;
	uint8_t *all;
	ssize_t n;
	int i;

	all = make_frames(0, 1000, &len);
	for (i = 0; i < N_ENDS; i++)
		connect_end(i);
	/* More than a thread may be ahead, in all. */
	assert_true(len * N_ENDS / N_THREADS > 2 * IO_AHEAD_MAX);
	while (done < N_ENDS) {
		done = 0;
		for (i = 0; i < N_ENDS; i++) {
			n = send(t.e[i].fd, all + at[i], len - at[i],
			    MSG_NOSIGNAL);
			at[i] += n > 0 ? (size_t)n : 0;
			done += at[i] == len;
		}
		loop_run_once(t.loop);
	}
	for (i = 0; i < N_ENDS; i++)
		RUN_UNTIL(t.e[i].frames == 1000);
	free(all);
}

static void
an_idle_connection_owns_no_memory(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len;

	all = make_frames(0, 20, &len);
	send_all(e, all, len);
	RUN_UNTIL(e->frames == 20);
	RUN_UNTIL(stream_memory(e->stream) == 0);
	assert_int_equal(e->budget.memory, 0);
	free(all);
}

static void
the_beginning_of_a_frame_that_is_too_big_is_shown(void **state)
{
	static const uint8_t big[] = { 0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4 };
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len;

	all = make_frames(0, 2, &len);
	e->refuse = true;
	send_all(e, all, len);
	send_all(e, big, sizeof(big));
	RUN_UNTIL(e->stream == NULL);
	assert_int_equal(e->frames, 2);
	assert_true(e->seen_len >= 4);
	assert_memory_equal(e->seen, big, 4);
	assert_int_equal(e->ends, 0);
	free(all);
}

static void
a_tls_client_at_a_plain_port_is_shown_at_once(void **state)
{
	/* As a frame it would be one of 66 KiB. */
	static const uint8_t hello[] = { 0x16, 0x03, 0x01, 0x00, 0xf0, 0x01 };
	struct end *e = connect_end(0);

	e->refuse = true;
	send_all(e, hello, sizeof(hello));
	RUN_UNTIL(e->stream == NULL);
	assert_int_equal(e->calls, 1);
	assert_int_equal(e->seen_len, sizeof(hello));
}

static void
an_owner_who_leaves_whole_frames_is_cut_off(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len;

	all = make_frames(0, 2, &len);
	e->ignore = true;
	send_all(e, all, len);
	RUN_UNTIL(e->ends == 1);
	assert_int_equal(e->why, STREAM_PROTOCOL);
	free(all);
}

/* ---- input in turns ---- */

static uint64_t
test_clock(void *arg)
{
	return t.now_ns;
}

/* n ends, whose frames are of any kind, of an owner who takes none now. */
static void
connect_held(int n)
{
	int i;

	t.now_ns = 1;
	loop_set_clock(t.loop, test_clock, NULL);
	loop_hold_input(t.loop, true);
	for (i = 0; i < n; i++)
		connect_end(i)->any = true;
}

/* At once: each read takes a block, however little is in it. */
static void
send_any(struct end *e, size_t payload, unsigned n)
{
	static uint8_t frames[100 * 1024];
	unsigned i;

	assert_true(n * (4 + payload) <= sizeof(frames));
	for (i = 0; i < n; i++)
		frame_put_header(frames + i * (4 + payload),
		    (uint32_t)payload);
	send_all(e, frames, n * (4 + payload));
}

static size_t
calls_of(int from, int upto)
{
	size_t n = 0;

	for (; from < upto; from++)
		n += t.e[from].calls;
	return n;
}

static void
far_input_is_shown_in_turns(void **state)
{
	size_t before;
	int i;

	connect_held(N_ENDS);
	for (i = 0; i < N_ENDS; i++) {
		send_any(&t.e[i], 100, 1);
		RUN_UNTIL(stream_memory(t.e[i].stream) > 0);
	}
	assert_int_equal(calls_of(0, N_ENDS), 0);
	t.now_ns += 70 * READ_NS;
	assert_int_equal(loop_lag_ms(t.loop), 70);
	loop_hold_input(t.loop, false);
	for (i = 0; calls_of(0, N_ENDS) < N_ENDS; i++) {
		before = calls_of(0, N_ENDS);
		loop_run_once(t.loop);
		assert_true(calls_of(0, N_ENDS) <= before + TURN_READS);
	}
	assert_true(i >= N_ENDS / (int)TURN_READS);
	for (i = 0; i < N_ENDS; i++)
		assert_int_equal(t.e[i].calls, 1);
	loop_run_once(t.loop);
	assert_int_equal(loop_lag_ms(t.loop), 0);
}

static void
what_is_urgent_is_shown_before_all_that_waits(void **state)
{
	struct end *e = &t.e[N_ENDS - 1];
	unsigned i;

	connect_held(N_ENDS);
	stream_set_urgent(e->stream);
	for (i = 0; i < N_ENDS - 1; i++) {
		send_any(&t.e[i], 100, 1);
		RUN_UNTIL(stream_memory(t.e[i].stream) > 0);
	}
	for (i = 0; i < 10; i++) {
		send_any(e, 100, 1);
		RUN_UNTIL(e->calls == i + 1);
	}
	assert_int_equal(calls_of(0, N_ENDS - 1), 0);
	loop_hold_input(t.loop, false);
	RUN_UNTIL(calls_of(0, N_ENDS - 1) == N_ENDS - 1);
}

static void
held_back_it_is_shown_in_shorter_pieces(void **state)
{
	int i;

	connect_held(2);
	for (i = 0; i < 2; i++) {
		send_any(&t.e[i], 1000, 80);
		/* All of it, or as much as one read happened to meet. */
		RUN_UNTIL(stream_memory(t.e[i].stream) > 0);
	}
	loop_hold_back(t.loop, LOOP_HOLD_READS);
	loop_hold_input(t.loop, false);
	for (i = 0; i < 2; i++) {
		RUN_UNTIL(t.e[i].bytes == 80 * 1004);
		assert_true(t.e[i].calls >= 3);
		assert_true(t.e[i].largest < LOOP_SCRATCH_BYTES / 4 + 1004);
	}
}

/* What their sockets take now.  Returns whether one took something. */
static bool
feed(int n, const uint8_t *all, size_t len, size_t *at)
{
	bool some = false;
	ssize_t sent;

	while (n-- > 0) {
		sent = send(t.e[n].fd, all + at[n], len - at[n], MSG_NOSIGNAL);
		at[n] += sent > 0 ? (size_t)sent : 0;
		some |= sent > 0;
	}
	return some;
}

static size_t
waiting_blocks(int n)
{
	size_t bytes = 0;

	while (n-- > 0)
		bytes += ((struct stream_far *)
		    t.e[n].stream->lower)->blocks;
	return bytes;
}

/* An owner who takes nothing, and as many as make both threads stop. */
static void
get_ahead(const uint8_t *all, size_t len, size_t *at)
{
	int i;

	loop_hold_input(t.loop, true);
	for (i = 0; i < N_MANY; i++)
		connect_end(i);
	/* What is ready is not read, and how long is known. */
	RUN_UNTIL((feed(N_MANY - N_THREADS, all, len, at),
	    io_pool_lag_ms(t.pool) >= 20 &&
	    waiting_blocks(N_MANY) >= IO_AHEAD_MAX));
	assert_true(waiting_blocks(N_MANY) <=
	    N_THREADS * (IO_AHEAD_MAX + 2 * IO_BLOCK_MAX));
}

static void
a_thread_that_is_ahead_reads_what_is_urgent_alone(void **state)
{
	size_t len, at[N_MANY] = { 0 }, small = put_frame(
	    (uint8_t[FRAME_MAX_BYTES]){ 0 }, 0);
	uint8_t *all = make_frames(0, 200, &len);
	int i;

	get_ahead(all, len, at);
	for (i = N_MANY - N_THREADS; i < N_MANY; i++) {
		stream_set_urgent(t.e[i].stream);
		send_all(&t.e[i], all, small);
		at[i] = small;
		RUN_UNTIL(t.e[i].frames == 1);
	}
	for (i = 0; i < N_MANY - N_THREADS; i++)
		assert_int_equal(t.e[i].frames, 0);
	loop_hold_input(t.loop, false);
	for (i = 0; i < N_MANY; i++)
		send_all(&t.e[i], all + at[i], len - at[i]);
	for (i = 0; i < N_MANY; i++)
		RUN_UNTIL(t.e[i].frames == 200);
	RUN_UNTIL(io_pool_lag_ms(t.pool) == 0);
	free(all);
}

static void
those_who_are_held_do_not_hold_a_thread(void **state)
{
	size_t len, at[N_MANY] = { 0 };
	uint8_t *all = make_frames(0, 200, &len);
	int i, quiet;

	for (i = 0; i < N_MANY - N_THREADS; i++)
		connect_end(i)->hold = true;
	for (; i < N_MANY; i++)
		connect_end(i);
	for (quiet = 0; quiet < 200; quiet++) {
		if (feed(N_MANY - N_THREADS, all, len, at))
			quiet = 0;
		loop_run_once(t.loop);
		sched_yield();
	}
	for (i = N_MANY - N_THREADS; i < N_MANY; i++) {
		send_all(&t.e[i], all, len);
		RUN_UNTIL(t.e[i].frames == 200);
	}
	assert_int_equal(io_pool_lag_ms(t.pool), 0);
	free(all);
}

static void
owners_may_leave_while_a_thread_is_ahead(void **state)
{
	size_t len, at[N_MANY] = { 0 };
	uint8_t *all = make_frames(0, 200, &len);
	int i;

	get_ahead(all, len, at);
	for (i = 0; i < N_MANY - 1; i++) {
		stream_close(t.e[i].stream, i % 2);
		t.e[i].stream = NULL;
	}
	loop_hold_input(t.loop, false);
	send_all(&t.e[i], all, len);
	RUN_UNTIL(t.e[i].frames == 200);
	free(all);
}

static void
count(void *arg)
{
	(*(int *)arg)++;
}

static void
the_owner_is_told_when_a_round_takes_too_long(void **state)
{
	size_t len, at[N_MANY] = { 0 };
	uint8_t *all = make_frames(0, 200, &len);
	int told = 0;

	/* Before the threads run. */
	io_pool_free(t.pool);
	t.pool = io_pool_new(t.loop, N_THREADS);
	assert_non_null(t.pool);
	io_pool_on_lag(t.pool, 20, count, &told);
	assert_int_equal(io_pool_start(t.pool), 0);
	get_ahead(all, len, at);
	loop_hold_input(t.loop, false);
	RUN_UNTIL(told > 0);
	free(all);
}

/* ---- frames that become others on the thread ---- */

#define UNPACK_FACTOR 3u

static int unpackers_freed;

/*
 * Each frame stands for UNPACK_FACTOR frames in one: its payload so many times.
 * Those of an odd first byte stay.
 */
static size_t
triple(void *ctx, const uint8_t *frame, size_t len, uint8_t *out, size_t room)
{
	size_t payload = len - 4, i;

	assert_ptr_equal(ctx, &t);
	if (payload == 0 || frame[4] % 2 == 1)
		return 0;
	if (4 + UNPACK_FACTOR * payload > room)
		return STREAM_UNPACK_ROOM;
	frame_put_header(out, (uint32_t)(UNPACK_FACTOR * payload));
	for (i = 0; i < UNPACK_FACTOR; i++)
		memcpy(out + 4 + i * payload, frame + 4, payload);
	return 4 + UNPACK_FACTOR * payload;
}

static void
tripled(void *ctx)
{
	unpackers_freed++;
}

struct tripling {
	size_t frames, small, large;
	bool pause;
};

static size_t
on_tripled(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct tripling *m = arg;
	const uint8_t *payload;
	size_t at, n, used, need, want;

	for (at = 0; at < len; at += used) {
		assert_int_equal(frame_next(buf + at, len - at, &payload, &n,
		    &used, &need), FRAME_OK);
		want = 100 + m->frames * 61 % 30000;
		assert_int_equal(payload[0], (uint8_t)m->frames);
		if (m->frames % 2 == 0) {
			assert_int_equal(n, UNPACK_FACTOR * want);
			m->large++;
		} else {
			assert_int_equal(n, want);
			m->small++;
		}
		m->frames++;
	}
	if (m->pause) {
		stream_pause(s);
		stream_resume(s);
	}
	return len;
}

static void
on_end_of_tripled(struct stream *s, enum stream_end why, void *arg)
{
}

static void
frames_may_become_larger_ones_on_the_thread(void **state)
{
	static const struct stream_ops ops_of_tripling = {
		.data = on_tripled,
		.closed = on_end_of_tripled,
	};
	struct stream_unpack u = { triple, tripled, &t };
	struct stream_setup over = { .io = t.pool };
	struct tripling m = { .pause = true };
	struct end *e = &t.e[0];
	uint8_t frame[40000];
	uint32_t i;
	int sv[2];

	assert_int_equal(tcp_pair(sv), 0);
	e->fd = sv[1];
	fcntl(e->fd, F_SETFL, O_NONBLOCK);
	e->stream = stream_new_over(t.loop, sv[0], &over, &ops_of_tripling, &m);
	unpackers_freed = 0;
	assert_true(stream_set_unpack(e->stream, &u));
	assert_false(stream_set_unpack(e->stream, &u));
	/* What is sent after the answer to that goes through it. */
	stream_write(e->stream, "go", 2, -1);
	RUN_UNTIL(peer_reads(e, frame, 2) == 2);
	for (i = 0; i < 600; i++) {
		frame_put_header(frame, 100 + i * 61 % 30000);
		memset(frame + 4, (int)(uint8_t)i, 100 + i * 61 % 30000);
		send_all(e, frame, 4 + 100 + i * 61 % 30000);
	}
	RUN_UNTIL(m.frames == 600);
	assert_int_equal(m.small, 300);
	assert_int_equal(m.large, 300);
	stream_close(e->stream, false);
	e->stream = NULL;
	io_pool_free(t.pool);
	t.pool = NULL;
	assert_int_equal(unpackers_freed, 1);
}

static void
only_threads_unpack(void **state)
{
	struct stream_unpack u = { triple, tripled, &t };
	struct stream *s;
	int sv[2];

	assert_int_equal(tcp_pair(sv), 0);
	s = stream_new(t.loop, sv[0], &ops, &t.e[0]);
	assert_non_null(s);
	assert_false(stream_set_unpack(s, &u));
	stream_close(s, false);
	close(sv[1]);
}

/* ---- ends ---- */

static void
what_came_before_the_end_is_shown_before_it(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len;
	int i;

	all = make_frames(0, 3, &len);
	e->hold = true;
	send_all(e, all, len);
	RUN_UNTIL(e->calls == 1);
	close(e->fd);
	e->fd = -1;
	/* The thread sees the end; the owner not before it took the rest. */
	for (i = 0; i < 200; i++) {
		loop_run_once(t.loop);
		sched_yield();
	}
	assert_int_equal(e->ends, 0);
	e->hold = false;
	stream_resume(e->stream);
	RUN_UNTIL(e->ends == 1);
	assert_int_equal(e->frames, 3);
	assert_int_equal(e->why, STREAM_EOF);
	free(all);
}

static void
closing_inside_data_leaves_the_bytes_until_it_returns(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all, rest[64];
	size_t len;

	all = make_frames(0, 3, &len);
	e->close_in_data = true;
	send_all(e, all, len);
	RUN_UNTIL(e->stream == NULL);
	assert_int_equal(e->ends, 0);
	RUN_UNTIL(recv(e->fd, rest, sizeof(rest), 0) == 0 ||
	    errno == ECONNRESET);
	free(all);
}

static void
a_flush_delivers_what_was_written(void **state)
{
	struct end *e = connect_end(0);
	static uint8_t sent[600000], got[600000];
	size_t i, n = 0;

	for (i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)mix((uint32_t)i);
	for (i = 0; i < sizeof(sent); i += 1000)
		stream_write(e->stream, sent + i, 1000, -1);
	stream_close(e->stream, true);
	e->stream = NULL;
	RUN_UNTIL((n += peer_reads(e, got + n, sizeof(got) - n)) ==
	    sizeof(got));
	assert_memory_equal(sent, got, sizeof(got));
	RUN_UNTIL(recv(e->fd, got, 1, 0) == 0);
}

static void
the_pool_ends_with_output_on_its_way(void **state)
{
	struct end *e = connect_end(0);
	static uint8_t got[100000];
	ssize_t r;
	size_t n = 0;

	stream_write(e->stream, got, sizeof(got), -1);
	stream_close(e->stream, true);
	e->stream = NULL;
	io_pool_free(t.pool);
	t.pool = NULL;
	fcntl(e->fd, F_SETFL, 0);
	while ((r = recv(e->fd, got, sizeof(got), 0)) > 0)
		n += (size_t)r;
	assert_int_equal(n, sizeof(got));
}

static void
threads_that_never_started_let_go_of_their_connections(void **state)
{
	struct io_pool *idle = io_pool_new(t.loop, 3), *pool = t.pool;
	uint8_t byte;
	int i;

	assert_non_null(idle);
	t.pool = idle;
	for (i = 0; i < N_ENDS; i++)
		connect_end(i);
	stream_write(t.e[0].stream, "x", 1, -1);
	for (i = 0; i < N_ENDS; i++) {
		stream_close(t.e[i].stream, i % 2);
		t.e[i].stream = NULL;
	}
	io_pool_free(idle);
	t.pool = pool;
	for (i = 1; i < N_ENDS; i++) {
		fcntl(t.e[i].fd, F_SETFL, 0);
		assert_int_equal(recv(t.e[i].fd, &byte, 1, 0), 0);
	}
}

/* ---- output ---- */

static void
writes_arrive_in_order_and_who_waits_is_told(void **state)
{
	struct end *e = connect_end(0);
	static uint8_t sent[3000000], got[3000000];
	size_t at = 0, n = 0, len;

	stream_set_limits(e->stream, 1024 * 1024, 64 * 1024);
	for (at = 0; at < sizeof(sent); at++)
		sent[at] = (uint8_t)mix((uint32_t)at);
	at = 0;
	/* As a consumer is served: as long as little is queued. */
	while (n < sizeof(got)) {
		while (at < sizeof(sent) &&
		    stream_queued(e->stream) <= 256 * 1024) {
			len = 1 + mix((uint32_t)at) % 20000;
			if (len > sizeof(sent) - at)
				len = sizeof(sent) - at;
			stream_write2(e->stream, sent + at, len / 2,
			    sent + at + len / 2, len - len / 2, -1);
			at += len;
		}
		loop_run_once(t.loop);
		if (stream_queued(e->stream) > 256 * 1024 || at == sizeof(sent))
			n += peer_reads(e, got + n, sizeof(got) - n);
	}
	assert_memory_equal(sent, got, sizeof(got));
	RUN_UNTIL(stream_queued(e->stream) == 0);
	RUN_UNTIL(e->drained > 0);
	RUN_UNTIL(stream_memory(e->stream) == 0);
	assert_int_equal(e->ends, 0);
}

static void
a_peer_that_takes_nothing_is_too_slow_at_the_limit(void **state)
{
	struct end *e = connect_end(0);
	static const uint8_t zeros[64 * 1024];
	size_t most = 0, written = 0;

	stream_set_limits(e->stream, 512 * 1024, 64 * 1024);
	while (e->ends == 0) {
		stream_write(e->stream, zeros, sizeof(zeros), -1);
		written += sizeof(zeros);
		if (stream_queued(e->stream) > most)
			most = stream_queued(e->stream);
		loop_run_once(t.loop);
		sched_yield();
		assert_true(written < 256u * 1024 * 1024);
	}
	assert_int_equal(e->why, STREAM_SLOW);
	assert_true(most <= 512 * 1024 + 256 * 1024 + sizeof(zeros));
}

static void
it_is_known_since_when_a_peer_takes_nothing(void **state)
{
	struct end *e = connect_end(0);
	static uint8_t some[64 * 1024];
	uint64_t now, stalled;
	int i;

	assert_int_equal(stream_stalled_ms(e->stream, loop_now_ms()), 0);
	stream_set_limits(e->stream, 64u * 1024 * 1024, 64 * 1024);
	for (i = 0; i < 300; i++)
		stream_write(e->stream, some, sizeof(some), -1);
	/* The kernel has taken what it takes. */
	RUN_UNTIL((stalled = stream_stalled_ms(e->stream, loop_now_ms())) >=
	    300);
	while (peer_reads(e, some, sizeof(some)) > 0)
		loop_run_once(t.loop);
	now = loop_now_ms();
	RUN_UNTIL(stream_stalled_ms(e->stream, now) < stalled);
}

static void
it_is_known_when_a_peer_was_heard_last(void **state)
{
	struct end *e = connect_end(0);
	uint64_t idle;

	RUN_UNTIL((idle = stream_idle_ms(e->stream, loop_now_ms())) >= 300);
	/* Half a header: nothing that the owner sees. */
	send_all(e, (const uint8_t *)"\x08", 1);
	RUN_UNTIL(stream_idle_ms(e->stream, loop_now_ms()) < idle);
	assert_int_equal(e->calls, 0);
}

/* ---- budgets ---- */

static void
who_trickles_huge_frames_pays_with_his_memory(void **state)
{
	struct end *e = connect_end(0);
	uint8_t head[4];

	e->budget.memory_max = 100 * 1024;
	frame_put_header(head, FRAME_PAYLOAD_MAX);
	send_all(e, head, sizeof(head));
	send_all(e, (const uint8_t *)"abc", 3);
	RUN_UNTIL(e->ends == 1);
	assert_int_equal(e->why, STREAM_BUDGET);
	assert_int_equal(e->budget.memory_refused, 1);
	assert_int_equal(e->calls, 0);
}

static void
what_was_handed_over_counts(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len;

	all = make_frames(0, 13, &len);
	e->hold = true;
	send_all(e, all, len);
	RUN_UNTIL(e->budget.memory >= len);
	assert_int_equal(t.all.memory, e->budget.memory);
	e->hold = false;
	stream_resume(e->stream);
	RUN_UNTIL(e->frames == 13);
	RUN_UNTIL(e->budget.memory == 0);
	free(all);
}

static void
whose_bytes_are_used_up_rests(void **state)
{
	struct end *e = connect_end(0);
	uint8_t *all;
	size_t len, frames;
	int i;

	all = make_frames(0, 60, &len);
	/* An empty bucket that time does not fill. */
	e->budget.bytes_per_second = 1;
	e->budget.filled_ms = UINT64_MAX;
	send_all(e, all, put_frame(all, 0));
	RUN_UNTIL(e->frames == 1);
	assert_int_equal(e->budget.throttled, 1);
	frames = e->frames;
	free(all);
	all = make_frames(1, 1, &len);
	send_all(e, all, len);
	RUN_UNTIL(stream_memory(e->stream) > 0);
	for (i = 0; i < 50; i++)
		loop_run_once(t.loop);
	assert_int_equal(e->frames, frames);
	free(all);
}

/* ---- TLS ---- */

static int
tls_setup(void **state)
{
	int rc = setup(state);

	return rc != 0 ? rc : tls_world_setup((void **)&world);
}

static int
tls_teardown(void **state)
{
	int rc = teardown(state);

	return rc != 0 ? rc : tls_world_teardown((void **)&world);
}

static struct tls_conn *
client_of(struct end *e)
{
	struct tls_conn *c = tls_conn_new(world->client, e->fd, "collector",
	    "here");

	assert_non_null(c);
	return c;
}

static void
over_tls_the_owner_knows_who_is_there(void **state)
{
	struct end *e = &t.e[0];
	struct tls_conn *client;
	const struct peer *p;
	uint8_t *all, got[8];
	struct iovec iov;
	size_t len, at = 0;
	ssize_t n;
	int rc;

	connect_over(e, world->server);
	assert_true(stream_is_opening(e->stream));
	assert_int_equal(stream_peer(e->stream)->auth, PEER_NOBODY);
	client = client_of(e);
	RUN_UNTIL((rc = tls_conn_handshake(client)) != 0);
	assert_int_equal(rc, 1);
	RUN_UNTIL(e->opened == 1);
	assert_false(stream_is_opening(e->stream));
	p = stream_peer(e->stream);
	assert_int_equal(p->kind, ADDR_TLS);
	assert_int_equal(p->auth, PEER_CERT);
	assert_string_equal(p->cert->name, "device-7");
	assert_non_null(strstr(p->text, "device-7 at 127.0.0.1:"));

	all = make_frames(0, 100, &len);
	while (at < len) {
		iov = (struct iovec){ all + at, len - at };
		n = tls_conn_send(client, &iov, 1);
		at += n > 0 ? (size_t)n : 0;
		loop_run_once(t.loop);
	}
	RUN_UNTIL(e->frames == 100);
	stream_write(e->stream, "answer", 6, -1);
	iov = (struct iovec){ got, sizeof(got) };
	RUN_UNTIL((n = tls_conn_receive(client, &iov, 1)) > 0);
	assert_memory_equal(got, "answer", 6);

	/* The list of another day names it. */
	assert_false(tls_context_revokes(world->server, p->cert));
	fix_write_crl(world->server_dir, TLS_CRL_FILE, world->ca,
	    world->device, 0, 0);
	tls_world_reload(world->server);
	assert_true(tls_context_revokes(world->server, p->cert));

	tls_conn_free(client);
	close(e->fd);
	e->fd = -1;
	RUN_UNTIL(e->ends == 1);
	assert_int_equal(e->why, STREAM_EOF);
	free(all);
}

static void
over_tls_the_owner_hears_why_a_peer_was_refused(void **state)
{
	static const char nonsense[] = "GET / HTTP/1.1\r\n\r\n";
	struct end *e = &t.e[0];

	connect_over(e, world->server);
	send_all(e, (const uint8_t *)nonsense, sizeof(nonsense) - 1);
	RUN_UNTIL(e->ends == 1);
	assert_int_equal(e->why, STREAM_REFUSED);
	assert_non_null(strstr(e->detail, "HTTP"));
	assert_int_equal(e->opened, 0);
}

static void
an_owner_may_leave_in_the_middle_of_a_handshake(void **state)
{
	struct tls_conn *client;
	struct end *e;
	int i, steps;

	for (i = 0; i < N_ENDS; i++) {
		e = &t.e[i];
		connect_over(e, world->server);
		client = client_of(e);
		for (steps = 0; steps < i; steps++) {
			(void)!tls_conn_handshake(client);
			loop_run_once(t.loop);
			sched_yield();
		}
		if (e->stream != NULL)
			stream_close(e->stream, i % 2);
		e->stream = NULL;
		tls_conn_free(client);
	}
}

/* ---- all at once ---- */

#define STORM_STEPS  6000u
#define STORM_FRAMES 120u

struct storm {
	uint8_t *all;
	size_t len;
	size_t at[N_ENDS];
	unsigned ended;
};

/* Whatever an owner, or a peer, may do to one of them. */
static void
storm_step(struct storm *m, uint32_t r)
{
	struct end *e = &t.e[r % N_ENDS];
	uint8_t got[4096] = { 0 };
	size_t *at = &m->at[r % N_ENDS], n;
	ssize_t sent;

	if (e->fd < 0) {
		memset(e, 0, sizeof(*e));
		connect_over(e, NULL);
		*at = 0;
		return;
	}
	switch (r / N_ENDS % 16) {
	case 0:
		if (e->stream != NULL)
			stream_close(e->stream, r % 3 == 0);
		e->stream = NULL;
		break;
	case 1:
		close(e->fd);
		e->fd = -1;
		if (e->stream != NULL)
			stream_close(e->stream, false);
		e->stream = NULL;
		m->ended++;
		break;
	case 2:
	case 3:
		e->hold = !e->hold;
		if (e->stream != NULL && !e->hold)
			stream_resume(e->stream);
		break;
	case 4:
	case 5:
		if (e->stream != NULL)
			stream_write(e->stream, got, r % sizeof(got), -1);
		break;
	case 6:
	case 7:
		(void)peer_reads(e, got, sizeof(got));
		break;
	default:
		n = mix(r) % 60000;
		if (n > m->len - *at)
			n = m->len - *at;
		sent = send(e->fd, m->all + *at, n, MSG_NOSIGNAL);
		*at += sent > 0 ? (size_t)sent : 0;
		break;
	}
}

static void
whatever_happens_in_whatever_order_is_survived(void **state)
{
	struct storm m = { 0 };
	uint32_t i, r = 1;

	m.all = make_frames(0, STORM_FRAMES, &m.len);
	for (i = 0; i < STORM_STEPS; i++) {
		r = mix(r + i);
		storm_step(&m, r);
		if (r % 4 == 0)
			loop_run_once(t.loop);
	}
	assert_true(m.ended > 100);
	free(m.all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define FAR(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TLS(f) cmocka_unit_test_setup_teardown(f, tls_setup, tls_teardown)
		FAR(frames_arrive_whole_and_in_their_order),
		FAR(a_frame_that_is_not_taken_stays_where_it_is),
		FAR(frames_may_be_taken_one_by_one),
		FAR(whom_nobody_listens_to_is_held_back_by_his_socket),
		FAR(many_that_send_at_once_are_all_heard),
		FAR(an_idle_connection_owns_no_memory),
		FAR(the_beginning_of_a_frame_that_is_too_big_is_shown),
		FAR(a_tls_client_at_a_plain_port_is_shown_at_once),
		FAR(an_owner_who_leaves_whole_frames_is_cut_off),
		FAR(far_input_is_shown_in_turns),
		FAR(what_is_urgent_is_shown_before_all_that_waits),
		FAR(held_back_it_is_shown_in_shorter_pieces),
		FAR(a_thread_that_is_ahead_reads_what_is_urgent_alone),
		FAR(those_who_are_held_do_not_hold_a_thread),
		FAR(owners_may_leave_while_a_thread_is_ahead),
		FAR(the_owner_is_told_when_a_round_takes_too_long),
		FAR(frames_may_become_larger_ones_on_the_thread),
		FAR(only_threads_unpack),
		FAR(what_came_before_the_end_is_shown_before_it),
		FAR(closing_inside_data_leaves_the_bytes_until_it_returns),
		FAR(a_flush_delivers_what_was_written),
		FAR(the_pool_ends_with_output_on_its_way),
		FAR(threads_that_never_started_let_go_of_their_connections),
		FAR(writes_arrive_in_order_and_who_waits_is_told),
		FAR(a_peer_that_takes_nothing_is_too_slow_at_the_limit),
		FAR(it_is_known_since_when_a_peer_takes_nothing),
		FAR(it_is_known_when_a_peer_was_heard_last),
		FAR(who_trickles_huge_frames_pays_with_his_memory),
		FAR(what_was_handed_over_counts),
		FAR(whose_bytes_are_used_up_rests),
		TLS(over_tls_the_owner_knows_who_is_there),
		TLS(over_tls_the_owner_hears_why_a_peer_was_refused),
		TLS(an_owner_may_leave_in_the_middle_of_a_handshake),
		FAR(whatever_happens_in_whatever_order_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
