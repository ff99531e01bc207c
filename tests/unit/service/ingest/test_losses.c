/*
 * What relays could not carry, in the trace and in its statistics; and sessions
 * that end while a link is cut off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/link.pb-c.h"
#include "service/ingest/losses.h"
#include "service/link/link.h"
#include "service/link/link_internal.h"
#include "service/machine/machine_presence.h"
#include "service/output/readback.h"
#include "service/output/session_stats.h"
#include "service/packet/sequence_map.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/shm/shm.h"

enum {
	SPOOL_FULL = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_SPOOL_FULL,
	GRACE = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_GRACE,
	CUT_AT_END = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_CUT_AT_END,
	PRESENT = 1,
	READ_GAP = 2,
};

#define CONFIG                                                                 \
	"buffers { size_kb: 64 } data_sources { config { name: \"src\" } } "   \
	"trace_all_machines: true flush_timeout_ms: 20 "                       \
	"data_source_stop_timeout_ms: 20 "

/* A relay with one producer on channel 1. */
struct relay {
	struct fixture *f;
	struct machine *machine;
	struct link *link;
	struct link_request q;
	uint64_t sent;
	bool closed;
};

static void
op_wake(void *port)
{
}

static void
op_close(void *port, const char *why)
{
	struct relay *r = port;

	r->closed = true;
	r->link = NULL;
}

static const struct link_port_ops ops = { op_wake, op_close };

static enum link_why
open_link(struct relay *r)
{
	const struct machine_visitor visitor = { .reach = MACHINE_LINK };
	const char *refused;
	enum link_why why;

	r->q.machine = r->machine;
	r->link = link_open(r->f->service->links, &r->q, &ops, r, &why,
	    &refused);
	assert_non_null(r->link);
	if (why != LINK_RESUMED)
		r->sent = 0;
	machine_presence_came(r->machine, &visitor);
	r->q.knows_collector = true;
	memcpy(r->q.collector_id, links_collector_id(r->f->service->links),
	    LINK_ID_BYTES);
	return why;
}

static void
up(struct relay *r, uint32_t channel, struct pb_writer *w)
{
	assert_null(link_take_block(r->link, ++r->sent, channel, w->data,
	    w->len));
	pb_writer_done(w);
}

static void
bring_producer(struct relay *r, uint32_t channel, bool tells_of_stop)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_OPEN);
	pb_put_string(&w, 1, "p");
	pb_nest_end(&w, mark);
	mark = pb_nest_begin(&w, LINK_UP_REGISTER_SOURCE);
	pb_put_string(&w, 1, "src");
	pb_put_uint(&w, 2, tells_of_stop); /* will_notify_on_stop */
	pb_nest_end(&w, mark);
	up(r, channel, &w);
}

static void
relay_init(struct relay *r, struct fixture *f)
{
	memset(r, 0, sizeof(*r));
	r->f = f;
	r->machine = fake_machine(f, 7, "door");
	memset(r->q.link_id, 1, LINK_ID_BYTES);
	memset(r->q.relay_id, 2, LINK_ID_BYTES);
	assert_int_equal(open_link(r), LINK_NEW);
	bring_producer(r, 1, false);
}

static void
cut(struct relay *r)
{
	link_detach(r->link);
	r->q.last_sent = r->sent;
}

static bool
no_links(void *arg)
{
	return ((struct service *)arg)->links->n == 0 &&
	    ((struct service *)arg)->n_producers == 0;
}

static void
relay_done(struct relay *r)
{
	if (r->link != NULL)
		link_give_up(r->link, "the test is over");
	fixture_wait(r->f, no_links, r->f->service);
}

/* To the flush at the end, that is: it need not take long. */
static void
nobody_answers(struct fixture *f)
{
	f->settings.link.end_wait_ms = 100;
}

static void
put_packet(struct pb_writer *w, const struct session *s, uint16_t writer,
    uint32_t chunk, const char *str)
{
	struct pb_writer c;
	size_t mark = pb_nest_begin(w, LINK_UP_COMMIT);

	pb_writer_init(&c);
	fake_chunk(&c, writer, chunk, 1, str);
	fake_move(w, 0, 0, s->buffers[0].id, &c);
	pb_nest_end(w, mark);
	pb_writer_done(&c);
}

static void
put_loss(struct pb_writer *w, const struct session *s, uint32_t writer,
    uint32_t old_channel)
{
	struct link_loss l = { .writer = writer, .buffer = s->buffers[0].id,
		.cause = old_channel != 0 ? GRACE : SPOOL_FULL, .chunks = 3,
		.packets = 12, .bytes = 3000, .old_channel = old_channel };
	uint8_t bytes[LINK_LOSS_MAX];

	pb_put_bytes(w, LINK_UP_LOSS, bytes, link_put_loss(bytes, &l));
}

/* The packet with this text. */
static const Perfetto__Protos__TracePacket *
packet(const struct fake_trace *t, const char *str)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING &&
		    strcmp(t->packets[i]->for_testing->str, str) == 0)
			return t->packets[i];
	fail_msg("%s is not in the trace", str);
	return NULL;
}

static const Perfetto__Protos__TraceStats *
stats(const struct fake_trace *t)
{
	const Perfetto__Protos__TraceStats *st = NULL;
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS)
			st = t->packets[i]->trace_stats;
	assert_non_null(st);
	return st;
}

static void
expect_loss(const Perfetto__Protos__TraceStats__LinkLossStats *l,
    uint32_t sequence, uint32_t cause, uint64_t chunks)
{
	assert_int_equal(l->machine_id, 7);
	assert_int_equal(l->trusted_packet_sequence_id, sequence);
	assert_int_equal(l->cause, cause);
	assert_int_equal(l->chunks, chunks);
	assert_int_equal(l->packets, chunks * 4);
	assert_int_equal(l->bytes, chunks * 1000);
}

/* ---- losses that relays tell ---- */

static void
a_loss_is_told_by_the_packet_behind_it_and_counted(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	const Perfetto__Protos__TracePacket *p;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	pb_writer_init(&w);
	put_packet(&w, s, 1, 0, "before");
	put_packet(&w, s, 2, 0, "another");
	put_loss(&w, s, 1, 0);
	put_packet(&w, s, 2, 1, "elsewhere");
	put_packet(&w, s, 1, 4, "behind");
	put_packet(&w, s, 1, 5, "later");
	up(&r, 1, &w);
	fake_read(s, &t);
	assert_int_equal(packet(&t, "before")->previous_packet_dropped, 0);
	assert_int_equal(packet(&t, "elsewhere")->previous_packet_dropped, 0);
	assert_int_equal(packet(&t, "later")->previous_packet_dropped, 0);
	p = packet(&t, "behind");
	assert_int_equal(p->previous_packet_dropped, PRESENT | READ_GAP |
	    1u << 16);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	expect_loss(stats(&t)->tributary_link_losses[0],
	    p->trusted_packet_sequence_id, SPOOL_FULL, 3);
	assert_string_equal(
	    stats(&t)->tributary_link_losses[0]->producer_name, "p");
	assert_int_equal(r.machine->contact.losses[SPOOL_FULL].packets, 12);
	fake_trace_done(&t);
	nobody_answers(f);
	fake_end(f, &c);
	relay_done(&r);
}

static void
the_beginning_of_a_sequence_may_be_what_is_lost(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	pb_writer_init(&w);
	put_loss(&w, s, 1, 0);
	put_packet(&w, s, 1, 3, "first");
	up(&r, 1, &w);
	fake_read(s, &t);
	assert_int_equal(packet(&t, "first")->previous_packet_dropped,
	    PRESENT | 1u << 16);
	fake_trace_done(&t);
	nobody_answers(f);
	fake_end(f, &c);
	relay_done(&r);
}

static void
a_loss_without_a_packet_behind_it_is_counted_all_the_same(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	pb_writer_init(&w);
	put_loss(&w, s, 1, 0);
	put_loss(&w, s, 1, 0);
	pb_put_bytes(&w, LINK_UP_CLOSE, "", 0);
	up(&r, 1, &w);
	fake_read(s, &t); /* sequences of who is gone are forgotten */
	fake_trace_done(&t);
	fake_read(s, &t);
	fake_trace_done(&t);
	session_disable(s, NULL);
	fixture_wait(f, fake_disabled, &c);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	assert_int_equal(stats(&t)->tributary_link_losses[0]->chunks, 6);
	assert_true(stats(&t)->tributary_link_losses[0]->
	    trusted_packet_sequence_id > 1);
	fake_trace_done(&t);
	session_free(s);
	relay_done(&r);
}

static void
a_loss_of_a_buffer_that_is_not_its_own_changes_no_session(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;

	relay_init(&r, f);
	s = fake_enable(f, &c, "buffers { size_kb: 64 } "
	    "data_sources { config { name: \"other\" } }", -1);
	pb_writer_init(&w);
	put_loss(&w, s, 1, 0);
	up(&r, 1, &w);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 0);
	assert_int_equal(r.machine->contact.losses[SPOOL_FULL].chunks, 3);
	fake_trace_done(&t);
	fake_end(f, &c);
	relay_done(&r);
}

/* A writer has at most 15 bits: more would be as many sequences as one likes. */
static void
losses_of_writers_that_cannot_be_take_no_sequences(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;
	uint32_t i;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	pb_writer_init(&w);
	for (i = 0; i < 1000; i++)
		put_loss(&w, s, SHM_MAX_WRITER_ID + 1 + i, 0);
	up(&r, 1, &w);
	assert_int_equal(sequence_map_size(s->sequences), 0);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	expect_loss(stats(&t)->tributary_link_losses[0], 0, SPOOL_FULL, 3000);
	fake_trace_done(&t);
	nobody_answers(f);
	fake_end(f, &c);
	relay_done(&r);
}

static void
a_reply_has_the_losses_by_machine(void **state)
{
	struct fixture *f = *state;
	Perfetto__Protos__TraceStats *st;
	struct fake_consumer c;
	struct session *s;
	struct pb_writer w;
	struct relay r;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	pb_writer_init(&w);
	put_loss(&w, s, 1, 0);
	put_loss(&w, s, 2, 0);
	up(&r, 1, &w);
	pb_writer_init(&w);
	session_stats_message(s, &w);
	st = perfetto__protos__trace_stats__unpack(NULL, w.len, w.data);
	assert_non_null(st);
	assert_int_equal(st->n_tributary_link_losses, 1);
	expect_loss(st->tributary_link_losses[0], 0, SPOOL_FULL, 6);
	perfetto__protos__trace_stats__free_unpacked(st, NULL);
	pb_writer_done(&w);
	nobody_answers(f);
	fake_end(f, &c);
	relay_done(&r);
}

/* ---- links that end ---- */

static void
what_a_relay_tells_of_its_link_before_counts_for_the_old_sequence(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;
	uint32_t id;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	pb_writer_init(&w);
	put_packet(&w, s, 1, 0, "before");
	up(&r, 1, &w);
	fake_read(s, &t);
	id = packet(&t, "before")->trusted_packet_sequence_id;
	fake_trace_done(&t);
	/* Stays unread, so that the sequence is not forgotten. */
	pb_writer_init(&w);
	put_packet(&w, s, 1, 1, "last");
	up(&r, 1, &w);
	f->settings.link.grace_ms = 0;
	cut(&r);
	fixture_wait(f, no_links, f->service);
	assert_int_equal(open_link(&r), LINK_GRACE_OVER);
	/* Those it need not count: they had arrived, whether it heard so or not. */
	assert_int_equal(link_taken_before(r.link), r.q.last_sent);
	pb_writer_init(&w);
	put_loss(&w, s, 1, 1);
	put_loss(&w, s, 9, 1); /* a sequence that never was */
	put_loss(&w, s, 1, 5); /* a channel that never was */
	up(&r, 0, &w);
	readback_want_stats(s->readback);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 2);
	/* Marked when the grace was over; then the unknown sequence's. */
	expect_loss(stats(&t)->tributary_link_losses[0], 0, GRACE, 3);
	expect_loss(stats(&t)->tributary_link_losses[1], id, GRACE, 3);
	assert_int_equal(r.machine->contact.losses[GRACE].chunks, 9);
	fake_trace_done(&t);
	fake_end(f, &c);
	relay_done(&r);
}

static void
a_grace_that_is_over_is_told_in_the_trace(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct relay r;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	f->settings.link.grace_ms = 0;
	cut(&r);
	fixture_wait(f, no_links, f->service);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	expect_loss(stats(&t)->tributary_link_losses[0], 0, GRACE, 0);
	fake_trace_done(&t);
	fake_end(f, &c);
}

/* ---- sessions that end during a cut ---- */

static void
pass_time(struct fixture *f, unsigned ms)
{
	for (; ms > 0; ms--) {
		loop_run_once(f->loop);
		fake_time_tick();
	}
}

static void
the_end_waits_for_a_machine_that_is_cut_off(void **state)
{
	struct fixture *f = *state;
	struct link_out_block b;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;
	size_t mark;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	cut(&r);
	session_disable(s, NULL);
	/* Well over the flush's own time. */
	pass_time(f, 100);
	assert_false(c.disabled);
	assert_int_equal(open_link(&r), LINK_RESUMED);
	while (link_next(r.link, &b))
		;
	pb_writer_init(&w);
	put_packet(&w, s, 1, 0, "late");
	mark = pb_nest_begin(&w, LINK_UP_COMMIT);
	pb_put_uint(&w, 3, f->service->last_flush_id);
	pb_nest_end(&w, mark);
	up(&r, 1, &w);
	fixture_wait(f, fake_disabled, &c);
	fake_read(s, &t);
	(void)packet(&t, "late");
	assert_int_equal(stats(&t)->final_flush_outcome,
	    PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 0);
	fake_trace_done(&t);
	session_free(s);
	relay_done(&r);
}

static void
the_end_waits_no_longer_than_it_was_set_to(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	uint64_t began = loop_now_ms();
	struct session *s;
	struct relay r;

	f->settings.link.end_wait_ms = 200;
	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	cut(&r);
	session_disable(s, NULL);
	fixture_wait(f, fake_disabled, &c);
	assert_true(loop_now_ms() - began >= 200);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->final_flush_outcome,
	    PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_FAILED);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	expect_loss(stats(&t)->tributary_link_losses[0], 0, CUT_AT_END, 0);
	assert_int_equal(r.machine->contact.losses[CUT_AT_END].times, 1);
	fake_trace_done(&t);
	session_free(s);
	f->settings.link.grace_ms = 0;
	assert_int_equal(open_link(&r), LINK_RESUMED);
	relay_done(&r);
}

static void
the_end_waits_for_a_machine_whose_cut_nobody_noticed(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct session *s;
	struct pb_writer w;
	struct relay r;
	size_t mark;

	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	session_disable(s, NULL);
	pass_time(f, 100);
	assert_false(c.disabled);
	/* The network is back, before anybody gave the connection up. */
	pb_writer_init(&w);
	put_packet(&w, s, 1, 0, "late");
	up(&r, 1, &w);
	loop_run_once(f->loop);
	assert_false(c.disabled);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_COMMIT);
	pb_put_uint(&w, 3, f->service->last_flush_id);
	pb_nest_end(&w, mark);
	up(&r, 1, &w);
	fixture_wait(f, fake_disabled, &c);
	fake_read(s, &t);
	(void)packet(&t, "late");
	assert_int_equal(stats(&t)->n_tributary_link_losses, 0);
	fake_trace_done(&t);
	session_free(s);
	relay_done(&r);
}

static void
a_cut_that_nobody_noticed_is_told_in_the_trace(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	uint64_t began = loop_now_ms();
	struct session *s;
	struct relay r;

	f->settings.link.end_wait_ms = 200;
	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	session_disable(s, NULL);
	fixture_wait(f, fake_disabled, &c);
	assert_true(loop_now_ms() - began >= 200);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	expect_loss(stats(&t)->tributary_link_losses[0], 0, CUT_AT_END, 0);
	fake_trace_done(&t);
	session_free(s);
	relay_done(&r);
}

/* It is asked to flush, and says that it heard. */
static void
acknowledge(struct relay *r)
{
	struct link_out_block b;
	uint64_t last = 0;

	while (link_next(r->link, &b))
		last = b.number;
	assert_true(last > 0);
	assert_int_equal(link_acked(r->link, last), 0);
}

static void
answer_flush(struct relay *r, uint32_t channel)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_COMMIT);
	pb_put_uint(&w, 3, r->f->service->last_flush_id);
	pb_nest_end(&w, mark);
	up(r, channel, &w);
}

/* Has the session end, up to the stop, which channel 2 does not answer. */
static struct session *
disable_up_to_the_stop(struct relay *r, struct fake_consumer *c)
{
	struct session *s;

	bring_producer(r, 2, true);
	s = fake_enable(r->f, c, CONFIG, -1);
	session_disable(s, NULL);
	answer_flush(r, 1);
	answer_flush(r, 2);
	pass_time(r->f, 5); /* of 20 */
	assert_int_equal(s->state, SESSION_DISABLING);
	return s;
}

static void
expect_losses_at_the_end(struct relay *r, struct session *s,
    struct fake_consumer *c, size_t n)
{
	struct fake_trace t;

	fixture_wait(r->f, fake_disabled, c);
	fake_read(s, &t);
	assert_int_equal(stats(&t)->final_flush_outcome,
	    PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED);
	assert_int_equal(stats(&t)->n_tributary_link_losses, n);
	if (n > 0)
		expect_loss(stats(&t)->tributary_link_losses[0], 0, CUT_AT_END,
		    0);
	fake_trace_done(&t);
	session_free(s);
}

static void
a_machine_that_falls_silent_before_the_stop_is_told(void **state)
{
	struct fake_consumer c;
	struct session *s;
	struct relay r;

	relay_init(&r, *state);
	s = disable_up_to_the_stop(&r, &c);
	expect_losses_at_the_end(&r, s, &c, 1);
	relay_done(&r);
}

static void
a_machine_that_falls_silent_behind_the_stop_is_told(void **state)
{
	struct fake_consumer c;
	struct pb_writer w;
	struct session *s;
	struct relay r;

	relay_init(&r, *state);
	s = disable_up_to_the_stop(&r, &c);
	acknowledge(&r);
	pb_writer_init(&w);
	put_packet(&w, s, 1, 0, "under way");
	up(&r, 1, &w);
	expect_losses_at_the_end(&r, s, &c, 1);
	relay_done(&r);
}

static void
a_machine_that_was_cut_off_during_the_stop_is_told(void **state)
{
	struct fake_consumer c;
	struct session *s;
	struct relay r;

	relay_init(&r, *state);
	s = disable_up_to_the_stop(&r, &c);
	cut(&r);
	assert_int_equal(open_link(&r), LINK_RESUMED);
	acknowledge(&r);
	expect_losses_at_the_end(&r, s, &c, 1);
	relay_done(&r);
}

static void
a_machine_whose_producer_acknowledges_the_stop_loses_nothing(void **state)
{
	const struct ds_instance *i;
	struct fake_consumer c;
	struct session *s;
	struct pb_writer w;
	struct relay r;

	relay_init(&r, *state);
	s = disable_up_to_the_stop(&r, &c);
	i = TAILQ_FIRST(&s->instances);
	while (i->state != INSTANCE_STOPPING)
		i = TAILQ_NEXT(i, of_session);
	pb_writer_init(&w);
	pb_put_uint(&w, LINK_UP_STOPPED, i->id);
	up(&r, 2, &w);
	expect_losses_at_the_end(&r, s, &c, 0);
	relay_done(&r);
}

static void
the_end_waits_longer_for_nobody_else(void **state)
{
	struct fixture *f = *state;
	struct fake_producer slow;
	struct fake_consumer c;
	struct session *s;
	uint64_t began;
	struct relay r;

	f->settings.link.end_wait_ms = 60000;
	fake_producer_init(&slow, f, "slow", true);
	fake_producer_register(&slow, "src", false, false);
	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	began = loop_now_ms();
	session_disable(s, NULL);
	acknowledge(&r);
	fixture_wait(f, fake_disabled, &c);
	assert_true(loop_now_ms() - began < 5000);
	session_free(s);
	fake_producer_done(&slow);
	relay_done(&r);
}

static void
when_the_machine_has_answered_others_are_not_waited_for(void **state)
{
	struct fixture *f = *state;
	struct fake_producer slow;
	struct fake_consumer c;
	struct session *s;
	struct pb_writer w;
	struct relay r;
	size_t mark;

	f->settings.link.end_wait_ms = 60000;
	fake_producer_init(&slow, f, "slow", true);
	fake_producer_register(&slow, "src", false, false);
	relay_init(&r, f);
	s = fake_enable(f, &c, CONFIG, -1);
	cut(&r);
	session_disable(s, NULL);
	pass_time(f, 50);
	assert_int_equal(open_link(&r), LINK_RESUMED);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_COMMIT);
	pb_put_uint(&w, 3, f->service->last_flush_id);
	pb_nest_end(&w, mark);
	up(&r, 1, &w);
	fixture_wait(f, fake_disabled, &c);
	session_free(s);
	fake_producer_done(&slow);
	relay_done(&r);
}

#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_loss_is_told_by_the_packet_behind_it_and_counted),
		T(the_beginning_of_a_sequence_may_be_what_is_lost),
		T(a_loss_without_a_packet_behind_it_is_counted_all_the_same),
		T(a_loss_of_a_buffer_that_is_not_its_own_changes_no_session),
		T(losses_of_writers_that_cannot_be_take_no_sequences),
		T(a_reply_has_the_losses_by_machine),
		T(what_a_relay_tells_of_its_link_before_counts_for_the_old_sequence),
		T(a_grace_that_is_over_is_told_in_the_trace),
		T(the_end_waits_for_a_machine_that_is_cut_off),
		T(the_end_waits_no_longer_than_it_was_set_to),
		T(the_end_waits_for_a_machine_whose_cut_nobody_noticed),
		T(a_cut_that_nobody_noticed_is_told_in_the_trace),
		T(a_machine_that_falls_silent_before_the_stop_is_told),
		T(a_machine_that_falls_silent_behind_the_stop_is_told),
		T(a_machine_that_was_cut_off_during_the_stop_is_told),
		T(a_machine_whose_producer_acknowledges_the_stop_loses_nothing),
		T(the_end_waits_longer_for_nobody_else),
		T(when_the_machine_has_answered_others_are_not_waited_for),
	};

	fixture_pass_time = fake_time_tick;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
