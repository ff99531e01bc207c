/*
 * The real collector as the model's other end: its links and a session that
 * records all machines, without sockets.
 */
#include "tests/unit/link/model_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/link/link.h"
#include "service/link/link_internal.h"
#include "service/session/flush.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/link/link_zstd.h"

#define MACHINE_ID 77u
#define RECORD                                                                 \
	"buffers { size_kb: 131072 } data_sources { config { name: \"src\" } } " \
	"trace_all_machines: true"

struct collector {
	struct book *book;
	struct fixture *fixture;
	struct fake_consumer consumer;
	struct machine *machine;
	uint64_t window;
	/* The connection that its link is served over. */
	struct link *link;
	struct wire *wire;
	struct link_decompressor *unzip;
};

static void
op_wake(void *port)
{
}

static void
op_close(void *port, const char *why)
{
	struct collector *c = port;

	c->wire->collector_hung_up = true;
	c->wire = NULL;
	c->link = NULL;
	link_decompressor_free(c->unzip);
	c->unzip = NULL;
}

static const struct link_port_ops ops = { op_wake, op_close };

struct collector *
collector_new(struct book *b, uint64_t window)
{
	struct collector *c = calloc(1, sizeof(*c));
	void *fixture;

	MODEL_CHECK(c != NULL);
	c->book = b;
	c->window = window;
	MODEL_CHECK(fixture_setup(&fixture) == 0);
	c->fixture = fixture;
	c->fixture->settings.link.window_kb = window / 1024;
	c->machine = fake_machine(c->fixture, MACHINE_ID, "device");
	machine_ref(c->machine);
	MODEL_CHECK(fake_enable(c->fixture, &c->consumer, RECORD, -1) != NULL);
	return c;
}

static void
drop_connection(struct collector *c)
{
	if (c->wire == NULL)
		return;
	link_detach(c->link);
	op_close(c, NULL);
}

void
collector_free(struct collector *c)
{
	void *fixture = c->fixture;

	drop_connection(c);
	collector_end_grace(c);
	fake_end(c->fixture, &c->consumer);
	machine_unref(c->machine);
	fixture_teardown(&fixture);
	free(c);
}

void
collector_restart(struct collector *c)
{
	/* Its trace would go with it: the other test has that. */
}

static void
turn(struct collector *c)
{
	int i;

	for (i = 0; i < 3; i++)
		loop_run_once(c->fixture->loop);
}

void
collector_end_grace(struct collector *c)
{
	struct link *l, *next;

	for (l = TAILQ_FIRST(&c->fixture->service->links->all); l != NULL;
	    l = next) {
		next = TAILQ_NEXT(l, all);
		if (l->ops == NULL)
			link_end(l, LINK_GRACE_OVER, "the model says so");
	}
	turn(c);
}

void
collector_give_up(struct collector *c)
{
	struct link *l = TAILQ_FIRST(&c->fixture->service->links->all);

	if (l != NULL)
		link_give_up(l, "the model says so");
	turn(c);
}

void
collector_hang_up(struct collector *c)
{
	drop_connection(c);
}

static void
answer(struct collector *c, enum link_why why, int level)
{
	struct wire_opened a = { .why = why, .window = c->window,
		.level = level };
	struct pb_field f, part;
	struct pb_reader r, inner;
	struct pb_writer w;

	memcpy(a.collector_id, links_collector_id(c->fixture->service->links),
	    LINK_ID_BYTES);
	a.received = link_received(c->link);
	a.consumed_in_all = link_consumed_in_all(c->link);
	pb_writer_init(&w);
	if (why == LINK_RESUMED)
		link_put_consumed_of_all(c->link, &w, 1);
	pb_init(&r, w.data, w.len);
	while (pb_next(&r, &f)) {
		MODEL_CHECK(a.n_consumed < WIRE_CONSUMED_MAX);
		pb_init(&inner, f.data, f.len);
		while (pb_next(&inner, &part)) {
			if (part.number == 1)
				a.consumed[a.n_consumed].channel =
				    (uint32_t)part.value;
			else
				a.consumed[a.n_consumed].bytes = part.value;
		}
		a.n_consumed++;
	}
	pb_writer_done(&w);
	pipe_put(&c->wire->down, WIRE_OPENED, &a, sizeof(a), NULL, 0);
}

static void
take_open(struct collector *c, struct wire *w, const struct wire_open *o)
{
	struct link_request q = {
		.knows_collector = o->knows_collector,
		.last_sent = o->last_sent,
		.last_acknowledged = o->last_acknowledged,
		.received = o->received,
		.machine = c->machine,
		.who = *fake_user(1000),
		.peer = 1,
	};
	const char *refused;
	enum link_why why;
	struct link *l;

	memcpy(q.link_id, o->link_id, LINK_ID_BYTES);
	memcpy(q.relay_id, o->relay_id, LINK_ID_BYTES);
	memcpy(q.collector_id, o->collector_id, LINK_ID_BYTES);
	/* The old port is closed inside, while it is still the old one. */
	l = link_open(c->fixture->service->links, &q, &ops, c, &why, &refused);
	if (l == NULL) {
		w->collector_hung_up = true;
		return;
	}
	/* One connection at a time, as the relay has but one outbox. */
	if (c->wire != NULL && c->link != l)
		drop_connection(c);
	c->link = l;
	c->wire = w;
	if (o->level > 0)
		MODEL_CHECK((c->unzip = link_decompressor_new()) != NULL);
	answer(c, why, o->level);
}

static void
take_frame(struct collector *c, const uint8_t *data, size_t len)
{
	const uint8_t *block;
	struct link_frame f;
	const char *wrong;

	MODEL_CHECK(link_parse_frame(&f, data, len) == 0);
	if (f.has_received)
		MODEL_CHECK(link_acked(c->link, f.received) == 0);
	if (f.number == 0)
		return;
	block = f.block;
	if (f.compressed) {
		MODEL_CHECK(link_decompress(c->unzip, f.block, f.len,
		    f.raw_size, &block) == 0);
		f.len = f.raw_size;
	}
	wrong = link_take_block(c->link, f.number, f.channel, block, f.len);
	if (wrong != NULL)
		model_fail(__FILE__, __LINE__, wrong);
}

void
collector_receive(struct collector *c, struct wire *w)
{
	struct wire_open open;
	enum wire_kind kind;
	const uint8_t *data;
	size_t len;

	while (!w->collector_hung_up &&
	    pipe_next(&w->up, &kind, &data, &len)) {
		if (kind == WIRE_OPEN) {
			MODEL_CHECK(len == sizeof(open));
			memcpy(&open, data, len);
			take_open(c, w, &open);
		} else {
			MODEL_CHECK(c->wire == w);
			take_frame(c, data, len);
		}
		pipe_took(&w->up);
	}
	if (w->relay_hung_up && pipe_on_the_way(&w->up) == 0) {
		if (c->wire == w)
			drop_connection(c);
		w->collector_hung_up = true;
	}
	turn(c);
}

void
collector_consume(struct collector *c, bool all)
{
	turn(c);
}

static void
flushed(struct session *s, bool success, void *arg)
{
}

void
collector_say_command(struct collector *c)
{
	if (c->consumer.s != NULL && model_chance(20))
		flush_start(c->consumer.s, 5000, 0, flushed, NULL);
}

static void
send_frame(struct collector *c, struct link_frame *f, const uint8_t *consumed,
    size_t consumed_len)
{
	uint8_t head[LINK_HEAD_MAX + 256];
	size_t n;

	MODEL_CHECK(consumed_len <= 256);
	if (consumed_len > 0)
		memcpy(head, consumed, consumed_len);
	n = consumed_len + link_put_head(head + consumed_len, f);
	pipe_put(&c->wire->down, WIRE_FRAME, head, n, f->block, f->len);
}

void
collector_send(struct collector *c, unsigned blocks)
{
	uint8_t consumed[200];
	struct link_out_block b;
	struct link_frame f;
	size_t n;

	turn(c);
	while (c->link != NULL && link_has_report(c->link)) {
		memset(&f, 0, sizeof(f));
		n = link_report(c->link, &f, consumed, sizeof(consumed));
		send_frame(c, &f, consumed, n);
	}
	while (c->link != NULL && blocks-- > 0 && link_next(c->link, &b)) {
		memset(&f, 0, sizeof(f));
		f.number = b.number;
		f.channel = b.channel;
		f.block = b.data;
		f.len = b.len;
		send_frame(c, &f, NULL, 0);
	}
}

bool
collector_is_empty(const struct collector *c)
{
	return c->link != NULL && !link_has_report(c->link) &&
	    link_out_bytes(c->link->out) == 0;
}

/* ---- its trace ---- */

struct sequence {
	uint64_t next; /* number of the packet that was expected */
	uint64_t packets;
	uint64_t lost;
};

static struct said_channel *
find_channel(const struct book *b, unsigned epoch, unsigned number)
{
	struct said_channel *c;

	for (c = b->channels; c != NULL; c = c->next)
		if (c->epoch == epoch && c->number == number)
			return c;
	model_fail(__FILE__, __LINE__, "a packet of nobody");
}

/* `got` counts packets here, those included that were passed over. */
static void
check_packet(struct book *b, const Perfetto__Protos__TracePacket *p)
{
	unsigned epoch, number, writer;
	unsigned long long n;
	struct said_writer *w;

	MODEL_CHECK(strlen(p->for_testing->str) == SAID_PACKET_TEXT);
	MODEL_CHECK(sscanf(p->for_testing->str, "%u.%u.%u.%llu", &epoch,
	    &number, &writer, &n) == 4);
	MODEL_CHECK(p->machine_id == MACHINE_ID);
	w = &find_channel(b, epoch, number)->writers[writer];
	MODEL_CHECK(n >= w->got && n < w->packets);
	if (n > w->got)
		MODEL_CHECK(p->previous_packet_dropped);
	else if (w->got > 0)
		MODEL_CHECK(!p->previous_packet_dropped);
	w->got = n + 1;
	b->chunks_arrived++;
}

void
collector_check_trace(struct collector *c, bool exact)
{
	struct book *b = c->book;
	uint64_t said = 0, lost = 0;
	struct said_channel *ch;
	struct fake_trace t;
	size_t i;
	int w;

	fake_read(c->consumer.s, &t);
	for (i = 0; i < t.n; i++)
		if (t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING)
			check_packet(b, t.packets[i]);
	fake_trace_done(&t);
	for (ch = b->channels; ch != NULL; ch = ch->next)
		for (w = 0; w < WRITERS_MAX; w++)
			said += ch->writers[w].packets;
	for (i = 0; i < LINK_LOSS_CAUSES; i++)
		lost += c->machine->contact.losses[i].packets;
	b->chunks_lost += lost;
	MODEL_CHECK(b->chunks_arrived + lost >= said);
	if (exact)
		MODEL_CHECK(b->chunks_arrived + lost == said);
}
