#include "tests/bench/ingest/commits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tls/tls.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/*
 * Request ids of commits are written into a varint of fixed length: five
 * bytes, so from 2^28 on.
 */
#define FIRST_REQUEST (1u << 28)
#define REQUEST_BYTES 5u
#define IN_BYTES (64u * 1024u)

struct lane {
	struct commits_target target;
	uint8_t *batch;     /* COMMITS_REPLY_EVERY frames, owned */
	size_t batch_len;
	size_t chunk_at[COMMITS_REPLY_EVERY]; /* of the chunk ids in batch */
	size_t request_at;  /* of the last frame's request id */
	size_t sent;        /* of the batch */
	uint64_t batches;   /* sent or being sent */
	uint64_t replies;
	uint64_t *sent_at;  /* by batch: when its last byte was handed over */
	uint8_t *in;        /* unfinished reply frames, owned */
	size_t in_len;
};

static void
put_packet(struct pb_writer *w)
{
	static const uint8_t filler[COMMITS_PACKET_BYTES];
	size_t begin = w->len, mark, room;

	pb_put_uint(w, 8, UINT64_C(1) << 50); /* timestamp, 8 bytes of varint */
	mark = pb_nest_begin(w, 900);         /* for_testing */
	pb_put_uint(w, 2, 7);
	/* Tags and lengths of both: 3 + 1 before, 2 here. */
	room = COMMITS_PACKET_BYTES - (w->len - begin) - 1 - 2;
	pb_put_bytes(w, 1, filler, room);
	pb_nest_end(w, mark);
	if (w->len - begin != COMMITS_PACKET_BYTES)
		load_die("a packet of %zu bytes", w->len - begin);
}

/* The chunk without its header's chunk id; returns it in w. */
static void
put_chunk(struct pb_writer *w)
{
	static const uint8_t zeros[COMMITS_CHUNK_BYTES];
	uint16_t writer = 1, count = COMMITS_PACKETS;
	uint32_t chunk_id = 0;
	size_t begin = w->len;
	unsigned i;

	pb_put_raw(w, &chunk_id, 4);
	pb_put_raw(w, &writer, 2);
	pb_put_raw(w, &count, 2);
	for (i = 0; i < COMMITS_PACKETS; i++) {
		pb_put_varint(w, COMMITS_PACKET_BYTES);
		put_packet(w);
	}
	pb_put_raw(w, zeros, COMMITS_CHUNK_BYTES - (w->len - begin));
}

static void
put_commit(struct pb_writer *w, const struct commits_target *t, bool ask,
    size_t *request_at, size_t *chunk_at)
{
	struct pb_writer chunk;
	size_t invoke, args, move;
	uint64_t v = FIRST_REQUEST;
	unsigned i;

	pb_writer_init(&chunk);
	put_chunk(&chunk);
	pb_put_varint(w, 2 << 3); /* request_id */
	*request_at = w->len;
	for (i = 0; i < REQUEST_BYTES; i++, v >>= 7) {
		uint8_t byte = (uint8_t)(v | 0x80);

		if (i == REQUEST_BYTES - 1)
			byte &= 0x7f;
		pb_put_raw(w, &byte, 1);
	}
	invoke = pb_nest_begin(w, 5);
	pb_put_uint(w, 1, t->service_id);
	pb_put_uint(w, 2, t->method_id);
	if (!ask)
		pb_put_uint(w, 4, 1); /* drop_reply */
	args = pb_nest_begin(w, 3);
	move = pb_nest_begin(w, 1);
	pb_put_uint(w, 1, 0);
	pb_put_uint(w, 2, 0);
	pb_put_uint(w, 3, t->buffer);
	pb_put_bytes(w, 4, chunk.data, chunk.len);
	pb_nest_end(w, move);
	pb_nest_end(w, args);
	pb_nest_end(w, invoke);
	/* The chunk is what the frame ends with, whatever its lengths took. */
	*chunk_at = w->len - COMMITS_CHUNK_BYTES;
	if (w->failed || chunk.failed)
		load_die("no memory");
	pb_writer_done(&chunk);
}

static void
lane_init(struct lane *l, const struct commits_target *t, uint64_t chunks)
{
	struct pb_writer batch, frame;
	uint8_t header[4];
	size_t request_at, chunk_at;
	unsigned i;

	memset(l, 0, sizeof(*l));
	l->target = *t;
	pb_writer_init(&batch);
	pb_writer_init(&frame);
	for (i = 0; i < COMMITS_REPLY_EVERY; i++) {
		pb_writer_reset(&frame);
		put_commit(&frame, t, i == COMMITS_REPLY_EVERY - 1,
		    &request_at, &chunk_at);
		frame_put_header(header, (uint32_t)frame.len);
		pb_put_raw(&batch, header, 4);
		l->request_at = batch.len + request_at;
		l->chunk_at[i] = batch.len + chunk_at;
		pb_put_raw(&batch, frame.data, frame.len);
	}
	pb_writer_done(&frame);
	l->batch = batch.data;
	l->batch_len = batch.len;
	l->sent_at = calloc(chunks / COMMITS_REPLY_EVERY, sizeof(uint64_t));
	l->in = malloc(IN_BYTES);
	if (batch.failed || l->sent_at == NULL || l->in == NULL)
		load_die("no memory");
	fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) | O_NONBLOCK);
}

static void
lane_done(struct lane *l)
{
	if (l->target.tls == NULL)
		fcntl(l->target.fd, F_SETFL,
		    fcntl(l->target.fd, F_GETFL) & ~O_NONBLOCK);
	free(l->batch);
	free(l->sent_at);
	free(l->in);
}

static void
number_batch(struct lane *l)
{
	uint64_t request = FIRST_REQUEST + l->batches;
	uint32_t id;
	unsigned i;

	for (i = 0; i < COMMITS_REPLY_EVERY; i++) {
		id = (uint32_t)(l->batches * COMMITS_REPLY_EVERY + i);
		memcpy(l->batch + l->chunk_at[i], &id, 4);
	}
	for (i = 0; i < REQUEST_BYTES; i++, request >>= 7)
		l->batch[l->request_at + i] = (uint8_t)
		    ((request & 0x7f) | (i < REQUEST_BYTES - 1 ? 0x80 : 0));
}

static ssize_t
target_send(const struct commits_target *t, const uint8_t *data, size_t len)
{
	struct iovec iov = { (void *)data, len };

	if (t->tls != NULL)
		return tls_conn_send(t->tls, &iov, 1);
	return send(t->fd, data, len, MSG_NOSIGNAL);
}

static ssize_t
target_receive(const struct commits_target *t, uint8_t *buf, size_t size)
{
	struct iovec iov = { buf, size };

	if (t->tls != NULL)
		return tls_conn_receive(t->tls, &iov, 1);
	return recv(t->fd, buf, size, 0);
}

static const char *
target_error(const struct commits_target *t)
{
	return t->tls != NULL ? tls_conn_error(t->tls) : strerror(errno);
}

/* Sends until the socket is full or all is sent; true: all is sent. */
static bool
lane_send(struct lane *l, uint64_t batches)
{
	ssize_t n;

	while (l->batches < batches) {
		if (l->sent == 0)
			number_batch(l);
		l->sent_at[l->batches] = load_now_ns();
		n = target_send(&l->target, l->batch + l->sent,
		    l->batch_len - l->sent);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n < 0)
			load_die("send: %s", target_error(&l->target));
		l->sent += (size_t)n;
		if (l->sent < l->batch_len)
			return false;
		l->sent = 0;
		l->batches++;
	}
	return true;
}

static void
take_reply(struct lane *l, const uint8_t *frame, size_t len, double *rtts,
    size_t *n_rtts)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, frame, len);
	while (pb_next(&r, &f)) {
		if (f.number != 2 || f.value < FIRST_REQUEST)
			continue;
		/* Field 2 comes first: what follows is the reply itself. */
		rtts[(*n_rtts)++] = (double)(load_now_ns() -
		    l->sent_at[f.value - FIRST_REQUEST]) / 1e6;
		l->replies++;
		return;
	}
}

static void
lane_receive(struct lane *l, double *rtts, size_t *n_rtts)
{
	const uint8_t *payload;
	size_t len, used, need, at = 0;
	ssize_t n;

	n = target_receive(&l->target, l->in + l->in_len,
	    IN_BYTES - l->in_len);
	if (n == 0)
		load_die("the daemon hung up");
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		load_die("receive: %s", target_error(&l->target));
	l->in_len += (size_t)n;
	while (frame_next(l->in + at, l->in_len - at, &payload, &len, &used,
	    &need) == FRAME_OK) {
		take_reply(l, payload, len, rtts, n_rtts);
		at += used;
	}
	memmove(l->in, l->in + at, l->in_len - at);
	l->in_len -= at;
	if (l->target.tls != NULL && tls_conn_has_input(l->target.tls))
		lane_receive(l, rtts, n_rtts);
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
summarise(double *rtts, size_t n, struct commits_result *out)
{
	if (n == 0)
		return;
	qsort(rtts, n, sizeof(*rtts), compare_doubles);
	out->p50_ms = rtts[n / 2];
	out->p99_ms = rtts[n * 99 / 100];
	out->max_ms = rtts[n - 1];
}

static void
watch(int ep, int op, struct lane *l, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = l };

	if (epoll_ctl(ep, op, l->target.fd, &ev) < 0)
		load_die("epoll: %s", strerror(errno));
}

static void
run_lanes(int ep, struct lane *lanes, size_t n, uint64_t batches, int replies,
    double *rtts, size_t *n_rtts)
{
	struct epoll_event events[128];
	size_t pending = n;
	struct lane *l;
	uint64_t before;
	int i, ready;

	for (i = 0; (size_t)i < n; i++)
		watch(ep, EPOLL_CTL_ADD, &lanes[i], EPOLLIN | EPOLLOUT);
	while (pending > 0) {
		ready = epoll_wait(ep, events, 128, -1);
		for (i = 0; i < ready; i++) {
			l = events[i].data.ptr;
			before = l->replies;
			if (events[i].events & EPOLLIN)
				lane_receive(l, rtts, n_rtts);
			if (events[i].events & EPOLLOUT &&
			    l->batches < batches && lane_send(l, batches)) {
				watch(ep, EPOLL_CTL_MOD, l, EPOLLIN);
				pending -= !replies;
			}
			if (replies && before < batches &&
			    l->replies == batches)
				pending--;
		}
	}
}

void
commits_run(const struct commits_target *targets, size_t n,
    uint64_t chunks_each, int replies, struct commits_result *out)
{
	uint64_t batches = chunks_each / COMMITS_REPLY_EVERY, began;
	struct lane *lanes;
	double *rtts;
	size_t i, n_rtts = 0;
	int ep;

	memset(out, 0, sizeof(*out));
	lanes = calloc(n, sizeof(*lanes));
	rtts = calloc(n * batches + 1, sizeof(*rtts));
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (lanes == NULL || rtts == NULL || ep < 0)
		load_die("no memory");
	for (i = 0; i < n; i++)
		lane_init(&lanes[i], &targets[i], chunks_each);

	began = load_now_ns();
	run_lanes(ep, lanes, n, batches, replies, rtts, &n_rtts);
	out->seconds = (double)(load_now_ns() - began) / 1e9;
	out->chunks = n * batches * COMMITS_REPLY_EVERY;
	for (i = 0; i < n; i++)
		out->bytes += batches * lanes[i].batch_len;
	summarise(rtts, n_rtts, out);

	for (i = 0; i < n; i++) {
		epoll_ctl(ep, EPOLL_CTL_DEL, lanes[i].target.fd, NULL);
		lane_done(&lanes[i]);
	}
	close(ep);
	free(lanes);
	free(rtts);
}
