#include <stdlib.h>
#include <string.h>

#include "tests/bench/fleet/crowd_internal.h"
#include "tests/load/load_conn.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

#define CHUNK_HEADER 8u
/* Frames that may wait for their turn in one go: the pace is kept roughly. */
#define BURST 512u
/* In a flood, how many frames a member sends before others have a turn. */
#define FLOOD_TURN 16u

/* A commit of one chunk; with the id that is put in before it is sent. */
struct frame {
	uint8_t *data;
	size_t len;
	size_t chunk_at;
};

struct crowd_sending {
	const struct crowd_load *load;
	struct frame plain, asking;
	uint64_t total;     /* frames to send; UINT64_MAX: until it is time */
	uint64_t given;     /* to members, sent or owed */
	size_t next;        /* member */
	uint64_t end_ns;
	uint64_t outstanding; /* replies */
	size_t owing;       /* members that owe */
	double *rtts;
	size_t n_rtts, cap_rtts;
};

static void
put_packet(struct pb_writer *w)
{
	static const uint8_t filler[CROWD_PACKET_BYTES];
	size_t begin = w->len, mark;

	pb_put_uint(w, 8, UINT64_C(1) << 50); /* timestamp */
	mark = pb_nest_begin(w, 900);         /* for_testing */
	pb_put_uint(w, 2, 7);
	pb_put_bytes(w, 1, filler,
	    CROWD_PACKET_BYTES - (w->len - begin) - 1 - 2);
	pb_nest_end(w, mark);
	if (w->len - begin != CROWD_PACKET_BYTES)
		load_die("a packet of %zu bytes", w->len - begin);
}

static void
make_frame(struct frame *f, uint32_t buffer, size_t packets, bool asking)
{
	struct pb_writer w, args, chunk;
	uint8_t head[IPC_HEAD_MAX];
	uint16_t writer = 1, count = (uint16_t)packets;
	uint32_t id = 0;
	size_t i, mark;

	pb_writer_init(&w);
	pb_writer_init(&args);
	pb_writer_init(&chunk);
	pb_put_raw(&chunk, &id, 4);
	pb_put_raw(&chunk, &writer, 2);
	pb_put_raw(&chunk, &count, 2);
	for (i = 0; i < packets; i++) {
		pb_put_varint(&chunk, CROWD_PACKET_BYTES);
		put_packet(&chunk);
	}
	mark = pb_nest_begin(&args, 1);
	pb_put_uint(&args, 3, buffer);
	pb_put_bytes(&args, 4, chunk.data, chunk.len);
	pb_nest_end(&args, mark);
	pb_put_raw(&w, head, ipc_put_invoke_head(head, ID_COMMIT,
	    CROWD_SERVICE, METHOD_COMMIT, !asking, args.len));
	pb_put_raw(&w, args.data, args.len);
	if (w.failed || args.failed || chunk.failed)
		load_die("no memory");
	f->data = w.data;
	f->len = w.len;
	f->chunk_at = w.len - chunk.len;
	pb_writer_done(&args);
	pb_writer_done(&chunk);
}

static void
send_one(struct crowd *c, struct member *m, bool ask)
{
	struct crowd_sending *s = c->sending;
	struct frame *f;

	/* One question of a member at a time: its id is always the same. */
	ask = ask && m->asked_ns == 0;
	f = ask ? &s->asking : &s->plain;
	memcpy(f->data + f->chunk_at, &m->next_chunk, 4);
	m->next_chunk++;
	if (ask) {
		m->asked_ns = load_now_ns();
		s->outstanding++;
	}
	member_write(c, m, f->data, f->len);
	c->counts.frames++;
	c->counts.bytes += f->len;
}

static bool
asks(const struct crowd_sending *s, uint64_t frame)
{
	return s->load->reply_every != 0 &&
	    frame % s->load->reply_every == s->load->reply_every - 1;
}

/* A frame is due: now, or when there is room. */
static void
give(struct crowd *c, struct member *m)
{
	struct crowd_sending *s = c->sending;
	uint64_t frame = s->given++;

	if (m->state == MEMBER_GONE)
		load_die("the daemon hung up on a sender");
	if (m->rest == NULL) {
		send_one(c, m, !c->bare && asks(s, frame / s->load->senders));
		return;
	}
	s->owing += m->owed == 0;
	m->owed++;
}

void
crowd_send_more(struct crowd *c, struct member *m)
{
	struct crowd_sending *s = c->sending;

	if (m->owed == 0)
		return;
	while (m->owed > 0 && m->rest == NULL) {
		m->owed--;
		send_one(c, m, !c->bare && s->load->reply_every != 0);
	}
	s->owing -= m->owed == 0;
}

void
crowd_send_replied(struct crowd *c, struct member *m)
{
	struct crowd_sending *s = c->sending;

	if (m->asked_ns == 0)
		return;
	if (s->n_rtts < s->cap_rtts)
		s->rtts[s->n_rtts++] =
		    (double)(load_now_ns() - m->asked_ns) / 1e6;
	m->asked_ns = 0;
	s->outstanding--;
}

/* As many as are due; returns how late the oldest of them is. */
static double
send_due(struct crowd *c, uint64_t began, uint64_t now)
{
	struct crowd_sending *s = c->sending;
	double per_s = (double)s->load->bytes_per_s / (double)s->plain.len;
	uint64_t due = (uint64_t)((double)(now - began) / 1e9 * per_s), n = 0;
	double late;

	if (due > s->total)
		due = s->total;
	late = due > s->given ? (double)(due - s->given) / per_s * 1e3 : 0;
	for (; s->given < due && n < BURST; n++) {
		give(c, &c->members[s->next]);
		s->next = (s->next + 1) % s->load->senders;
	}
	return late;
}

/* Every member as much as it can. */
static void
flood(struct crowd *c)
{
	struct crowd_sending *s = c->sending;
	struct member *m;
	unsigned k;
	size_t i;

	for (i = 0; i < BURST && i < s->load->senders; i++) {
		m = &c->members[s->next];
		s->next = (s->next + 1) % s->load->senders;
		for (k = 0; k < FLOOD_TURN && m->rest == NULL; k++)
			give(c, m);
	}
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
summarise(struct crowd_sending *s, struct crowd_sent *out)
{
	size_t n = s->n_rtts;

	out->replies = n;
	if (n == 0)
		return;
	qsort(s->rtts, n, sizeof(*s->rtts), compare_doubles);
	out->p50_ms = s->rtts[n / 2];
	out->p99_ms = s->rtts[n * 99 / 100];
	out->max_ms = s->rtts[n - 1];
}

static bool
has_rest(const struct crowd *c, size_t senders)
{
	size_t i;

	for (i = 0; i < senders; i++)
		if (c->members[i].rest != NULL)
			return true;
	return false;
}

static void
run(struct crowd *c, struct crowd_sent *out)
{
	struct crowd_sending *s = c->sending;
	uint64_t began = load_now_ns(), now = began;
	double late;

	s->end_ns = began + (uint64_t)(s->load->seconds * 1e9);
	while (s->load->bytes_per_s == 0 ? now < s->end_ns :
	    s->given < s->total) {
		if (s->load->bytes_per_s == 0)
			flood(c);
		else if ((late = send_due(c, began, now)) > out->late_ms)
			out->late_ms = late;
		crowd_turn(c, s->load->bytes_per_s == 0 ? 0 : 1);
		now = load_now_ns();
	}
	while (s->owing > 0 || has_rest(c, s->load->senders))
		crowd_turn(c, 1);
	out->seconds = (double)(load_now_ns() - began) / 1e9;
	while (s->outstanding > 0)
		crowd_turn(c, 1);
}

void
crowd_send(struct crowd *c, const struct crowd_load *load,
    struct crowd_sent *out)
{
	struct crowd_sending s = { .load = load, .total = UINT64_MAX };
	uint64_t frames = c->counts.frames, bytes = c->counts.bytes;
	uint32_t buffer = c->members[0].buffer;

	memset(out, 0, sizeof(*out));
	make_frame(&s.plain, buffer, load->packets, false);
	make_frame(&s.asking, buffer, load->packets, true);
	if (load->bytes_per_s != 0)
		s.total = (uint64_t)(load->seconds *
		    (double)load->bytes_per_s / (double)s.plain.len);
	s.cap_rtts = 1u << 20;
	if ((s.rtts = malloc(s.cap_rtts * sizeof(*s.rtts))) == NULL)
		load_die("no memory");
	c->sending = &s;
	run(c, out);
	c->sending = NULL;
	out->frames = c->counts.frames - frames;
	out->bytes = c->counts.bytes - bytes;
	summarise(&s, out);
	free(s.rtts);
	free(s.plain.data);
	free(s.asking.data);
}
