#include "tests/bench/load/link_relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/bench/load/link_relay_internal.h"
#include "tests/bench/load/load_totals.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

/* Fields of LinkOpened, LinkClock (protos/link.proto). */
enum { OPENED_WHY = 3, OPENED_WINDOW = 5 };
enum { CLOCK_PING = 1, CLOCK_RESULT = 3 };
/* Sent at once while the socket has no more than this queued. */
#define SOCKET_BYTES (256u << 10)

/* ---- sending ---- */

static void
send_frame(struct link_relay *r, const struct link_frame *f, const void *block)
{
	uint8_t head[LINK_HEAD_MAX];
	struct pb_writer w;
	size_t n = link_put_head(head, f);

	pb_writer_init(&w);
	pb_put_raw(&w, head, n);
	pb_put_raw(&w, block, f->len);
	(void)r->direct->type->call(r->direct, LINE_LINK_UP, w.data, w.len,
	    false);
	pb_writer_done(&w);
}

static void
acknowledge(struct link_relay *r)
{
	struct link_frame f = { .has_received = true,
		.received = r->in.received };

	if (r->in.told == r->in.received || r->direct == NULL)
		return;
	r->in.told = r->in.received;
	send_frame(r, &f, NULL);
}

static bool
has_credit(const struct link_relay *r, size_t len)
{
	return r->sent_bytes - r->consumed_bytes + len <= r->window;
}

/* As much as credit and the socket allow. */
static void
send_some(struct link_relay *r)
{
	struct link_frame f = { .number = 0 };
	struct link_block *b;

	while (r->open && (b = r->blocks) != NULL && has_credit(r, b->len) &&
	    r->direct->type->queued(r->direct) < SOCKET_BYTES) {
		f.number = ++r->sent;
		f.channel = b->channel;
		f.len = b->len;
		f.block = b->data;
		send_frame(r, &f, b->data);
		r->sent_bytes += b->len;
		r->waiting_bytes -= b->len;
		r->blocks = b->next;
		if (r->blocks == NULL)
			r->blocks_end = &r->blocks;
		free(b);
	}
}

uint64_t
link_relay_say(struct link_line *l, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	struct link_relay *r = l->relay;
	uint8_t head[LINK_MESSAGE_HEAD_MAX];
	struct link_block *b;
	size_t n;

	n = data != NULL ? link_put_message_head(head, kind, len) :
	    link_put_varint(head, kind, value);
	if ((b = malloc(sizeof(*b) + n + len)) == NULL)
		return 0;
	b->next = NULL;
	b->channel = l->channel;
	b->len = n + len;
	memcpy(b->data, head, n);
	if (len > 0)
		memcpy(b->data + n, data, len);
	*r->blocks_end = b;
	r->blocks_end = &b->next;
	r->waiting_bytes += b->len;
	r->numbered++;
	send_some(r);
	return r->numbered;
}

int
link_relay_await(struct link_line *l, uint64_t number)
{
	struct link_ticket *t = malloc(sizeof(*t));

	if (t == NULL)
		return -1;
	t->next = NULL;
	t->number = number;
	t->line = l;
	*l->relay->tickets_end = t;
	l->relay->tickets_end = &t->next;
	return 0;
}

size_t
link_relay_queued(const struct link_relay *r)
{
	return r->waiting_bytes + (r->direct != NULL ?
	    r->direct->type->queued(r->direct) : 0);
}

/* ---- what comes down ---- */

static struct link_line *
find_line(struct link_relay *r, uint32_t channel)
{
	struct link_line *l;

	for (l = r->lines; l != NULL; l = l->next)
		if (l->channel == channel && channel != 0)
			return l;
	return NULL;
}

static void
take_block(struct link_relay *r, const struct link_frame *f)
{
	struct link_line *l;
	struct pb_reader reader;
	struct pb_field m;

	pb_init(&reader, f->block, f->len);
	while (pb_next(&reader, &m)) {
		/* Anything may have ended it meanwhile. */
		if ((l = find_line(r, f->channel)) == NULL)
			return;
		if (m.number == LINK_DOWN_COMMAND && m.wire == PB_BYTES) {
			l->ops->command(l->arg, m.data, m.len, -1);
		} else if (m.number == LINK_DOWN_REFUSED) {
			link_relay_forget(l);
			l->ops->down(l->arg, "refused",
			    "the collector does not serve this producer");
		} else if (m.number == LINK_DOWN_SOURCE_REFUSED) {
			load_totals_error(r->totals, "registration",
			    "a data source was refused");
		}
	}
}

static void
take_received(struct link_relay *r, uint64_t received)
{
	struct link_ticket *t;

	while ((t = r->tickets) != NULL && t->number <= received) {
		r->tickets = t->next;
		if (r->tickets == NULL)
			r->tickets_end = &r->tickets;
		if (t->line != NULL)
			t->line->ops->replied(t->line->arg, t->number, true,
			    NULL, 0);
		free(t);
	}
}

/* One exchange of clocks is enough: both ends have the same. */
static void
put_readings(struct pb_writer *w, uint32_t field)
{
	struct clock_snapshot s;
	size_t i, mark;

	clock_snapshot_take(&s);
	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		mark = pb_nest_begin(w, field);
		pb_put_uint(w, 1, s.clocks[i].id);
		pb_put_uint(w, 2, s.clocks[i].ns);
		pb_nest_end(w, mark);
	}
}

static void
send_clock_result(struct link_relay *r)
{
	struct link_frame f = { .number = 0 };
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, CLOCK_RESULT);
	pb_put_uint(&w, 2, 1);
	put_readings(&w, 3);
	put_readings(&w, 5);
	put_readings(&w, 4);
	pb_put_uint(&w, 6, 1000);
	f.clock = w.data;
	f.clock_len = w.len;
	send_frame(r, &f, NULL);
	pb_writer_done(&w);
}

static void
drained(struct link_relay *r)
{
	struct link_line *l, *next;

	send_some(r);
	for (l = r->lines; l != NULL && r->waiting_bytes == 0; l = next) {
		next = l->next;
		if (l->channel != 0)
			l->ops->drained(l->arg);
	}
}

static void
command_cb(void *arg, const uint8_t *msg, size_t len, int fd)
{
	struct link_relay *r = arg;
	struct line *direct = r->direct;
	bool waited = r->waiting_bytes > 0;
	struct link_frame f;

	if (link_parse_frame(&f, msg, len) != 0 || f.compressed) {
		load_totals_error(r->totals, "protocol",
		    "a frame of the link that cannot be read");
		link_relay_cut(r, LINE_RESET, NULL);
		return;
	}
	if (f.has_received)
		take_received(r, f.received);
	if (r->direct == direct && f.has_consumed_in_all &&
	    f.consumed_in_all > r->consumed_bytes)
		r->consumed_bytes = f.consumed_in_all;
	if (r->direct == direct && f.number != 0 &&
	    link_in_take(&r->in, f.number) == LINK_IN_NEW)
		take_block(r, &f);
	if (r->direct != direct)
		return;
	acknowledge(r);
	if (waited)
		drained(r);
}

/* ---- the connection ---- */

static void
up_cb(void *arg)
{
	struct link_relay *r = arg;
	uint8_t link_id[LINK_ID_BYTES];
	struct pb_writer w;

	(void)!getrandom(link_id, sizeof(link_id), 0);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, LINK_VERSION);
	pb_put_bytes(&w, 2, link_id, sizeof(link_id));
	pb_put_bytes(&w, 3, r->relay_id, sizeof(r->relay_id));
	pb_put_string(&w, 9, r->id_hint);
	pb_put_string(&w, 10, r->name);
	pb_put_string(&w, 12, "tributary-load");
	r->opening = r->direct->type->call(r->direct, LINE_LINK_OPEN, w.data,
	    w.len, true);
	pb_writer_done(&w);
}

static void
replied_cb(void *arg, uint64_t ticket, bool ok, const uint8_t *msg, size_t len)
{
	struct link_relay *r = arg;
	struct link_line *l;
	struct pb_reader reader;
	struct pb_field f;

	if (ticket != r->opening)
		return;
	pb_init(&reader, msg, len);
	while (pb_next(&reader, &f))
		if (f.number == OPENED_WINDOW)
			r->window = f.value;
	if (!ok || r->window == 0) {
		load_totals_error(r->totals, "refused",
		    "the collector does not open the link");
		link_relay_cut(r, LINE_RESET, NULL);
		return;
	}
	r->open = true;
	(void)r->direct->type->call(r->direct, LINE_LINK_DOWN, NULL, 0,
	    false);
	send_clock_result(r);
	for (l = r->lines; l != NULL; l = l->next)
		link_line_open(l);
}

static void
drained_cb(void *arg)
{
	drained(arg);
}

static void
drop_waiting(struct link_relay *r)
{
	struct link_block *b;
	struct link_ticket *t;

	while ((b = r->blocks) != NULL) {
		r->blocks = b->next;
		free(b);
	}
	while ((t = r->tickets) != NULL) {
		r->tickets = t->next;
		free(t);
	}
	r->blocks_end = &r->blocks;
	r->tickets_end = &r->tickets;
	r->waiting_bytes = 0;
	r->numbered = r->sent = 0;
	r->sent_bytes = r->consumed_bytes = r->window = 0;
	r->in = (struct link_in){ 0, 0 };
	r->open = false;
	r->last_channel = 0;
}

static void
lose_lines(struct link_relay *r, const char *kind, const char *text,
    struct link_line *but)
{
	struct link_line *l;

	while ((l = r->lines) != NULL) {
		r->lines = l->next;
		l->relay = NULL;
		l->channel = 0;
		loop_call_cancel(&l->up);
		if (l != but)
			l->ops->down(l->arg, kind, text);
	}
}

static void
down_cb(void *arg, const char *kind, const char *text)
{
	struct link_relay *r = arg;

	line_free(r->direct, LINE_RESET);
	r->direct = NULL;
	drop_waiting(r);
	lose_lines(r, kind, text, NULL);
}

void
link_relay_cut(struct link_relay *r, enum line_cut how, struct link_line *but)
{
	line_free(r->direct, how);
	r->direct = NULL;
	drop_waiting(r);
	lose_lines(r, "with_relay", "its relay was cut off", but);
}

void
link_relay_forget(struct link_line *l)
{
	struct link_relay *r = l->relay;
	struct link_line **at;
	struct link_ticket *t;

	if (r == NULL)
		return;
	for (at = &r->lines; *at != NULL; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	for (t = r->tickets; t != NULL; t = t->next)
		if (t->line == l)
			t->line = NULL;
	l->relay = NULL;
}

static int
connect_relay(struct link_relay *r, char *err, size_t err_size)
{
	static const struct line_ops ops = {
		.up = up_cb,
		.command = command_cb,
		.replied = replied_cb,
		.drained = drained_cb,
		.down = down_cb,
	};
	struct line_identity id = { .machine_id_hint = r->id_hint,
		.machine_name = r->name };

	if (r->direct != NULL)
		return 0;
	r->direct = line_direct_new(r->loop, r->place, LINK_SERVICE, r->number,
	    &id, &ops, r, err, err_size);
	return r->direct != NULL ? 0 : -1;
}

struct line *
link_relay_line(struct link_relay *r, const struct line_ops *ops, void *arg,
    char *err, size_t err_size)
{
	struct link_line *l = calloc(1, sizeof(*l));

	if (l == NULL || connect_relay(r, err, err_size) != 0) {
		free(l);
		return NULL;
	}
	l->line.type = &link_line_type;
	l->relay = r;
	l->ops = ops;
	l->arg = arg;
	l->next = r->lines;
	r->lines = l;
	if (r->open)
		link_line_open(l);
	return &l->line;
}

struct link_relay *
link_relay_new(struct loop *l, const struct place *place, uint32_t number,
    struct load_totals *totals)
{
	struct link_relay *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->loop = l;
	r->place = place;
	r->number = number;
	r->totals = totals;
	(void)!getrandom(r->relay_id, sizeof(r->relay_id), 0);
	snprintf(r->id_hint, sizeof(r->id_hint), "tributary-load %u", number);
	snprintf(r->name, sizeof(r->name), "load-%u", number);
	drop_waiting(r);
	return r;
}

void
link_relay_free(struct link_relay *r)
{
	if (r == NULL)
		return;
	line_free(r->direct, LINE_CLEAN);
	drop_waiting(r);
	free(r);
}
