/*
 * What machines and producers may take: rates held and dropped, to the packet;
 * and the numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/link.pb-c.h"
#include "service/ingest/commit.h"
#include "service/ingest/losses.h"
#include "service/ingest/quota.h"
#include "service/link/link.h"
#include "service/machine/machine_presence.h"
#include "service/output/readback.h"
#include "service/session/flush.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/shm/shm.h"

#define QUOTA TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA
#define CONFIG                                                                 \
	"buffers { size_kb: 4096 } "                                           \
	"data_sources { config { name: \"src\" } } trace_all_machines: true "  \
	"flush_timeout_ms: 20 data_source_stop_timeout_ms: 20 "

/* So slow that what is owed is not paid back within a turn. */
#define SLOW "kb_per_s: 1 burst_kb: "

struct bed {
	struct fixture *f;
	struct fake_consumer c;
	struct fake_producer p;
	uint32_t chunk; /* of writer 1 */
};

static void
use_quota(struct fixture *f, const char *text)
{
	char err[SETTINGS_ERROR_SIZE];

	if (settings_parse(&f->settings, text, strlen(text), "test", err,
	    sizeof(err)) != 0)
		fail_msg("%s", err);
}

static void
bed_init(struct bed *b, void **state, const char *quota, bool emulated)
{
	memset(b, 0, sizeof(*b));
	b->f = *state;
	use_quota(b->f, quota);
	fake_producer_init(&b->p, b->f, "p", emulated);
	fake_producer_register(&b->p, "src", false, false);
	assert_non_null(fake_enable(b->f, &b->c, CONFIG, -1));
}

static void
bed_done(struct bed *b)
{
	if (b->c.s != NULL)
		session_free(b->c.s);
	fake_producer_done(&b->p);
}

/* A chunk of n packets with so many bytes of text each; said: to be n. */
static void
put_chunk(struct pb_writer *w, uint16_t writer, uint32_t chunk, uint8_t flags,
    uint16_t n, size_t len, uint16_t said)
{
	struct pb_writer all, one;
	char text[4096];
	uint16_t i;

	assert_true(len < sizeof(text));
	memset(text, 'x', len);
	text[len] = '\0';
	pb_writer_init(&all);
	for (i = 0; i < n; i++) {
		pb_writer_init(&one);
		fake_packet(&one, 1, text);
		pb_put_varint(&all, one.len);
		pb_put_raw(&all, one.data, one.len);
		pb_writer_done(&one);
	}
	fake_raw_chunk(w, writer, chunk, said, flags, all.data, all.len);
	pb_writer_done(&all);
}

/* One commit of a chunk, with data. */
static int
commit_chunk(struct fake_producer *p, uint16_t writer, uint32_t chunk,
    uint8_t flags, uint16_t n, size_t len)
{
	struct pb_writer w, c;

	pb_writer_init(&c);
	pb_writer_init(&w);
	put_chunk(&c, writer, chunk, flags, n, len, n);
	fake_move(&w, 0, 0, p->last_buffer, &c);
	pb_writer_done(&c);
	return fake_commit_request(p, &w);
}

static bool
was_resumed(void *arg)
{
	return ((struct fake_producer *)arg)->resumed;
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

static uint64_t
packets_lost(const struct fake_trace *t)
{
	const Perfetto__Protos__TraceStats *st = stats(t);
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < st->n_tributary_link_losses; i++) {
		assert_int_equal(st->tributary_link_losses[i]->cause, QUOTA);
		n += st->tributary_link_losses[i]->packets;
	}
	return n;
}

static struct quota_counts
counts(const struct fake_producer *p)
{
	struct quota_counts c;

	quota_counts_of_producer(p->p, &c);
	return c;
}

static struct quota_counts
machine_counts(const struct machine *m)
{
	struct quota_counts c;

	quota_counts_of_machine(m, &c);
	return c;
}

/* ---- held back ---- */

static void
over_its_rate_a_producer_waits_and_loses_nothing(void **state)
{
	struct bed b;
	struct fake_trace t;
	unsigned i, held = 0;

	/* A chunk of two KiB is 16 ms of 128 KiB a second. */
	bed_init(&b, state, "quota { each_producer { kb_per_s: 128 "
	    "burst_kb: 1 } }", true);
	for (i = 0; i < 8; i++) {
		while (commit_chunk(&b.p, 1, i, 0, 2, 1000) == COMMIT_AGAIN) {
			assert_true(quota_is_held(b.p.p));
			b.p.resumed = false;
			held++;
			fixture_wait(b.f, was_resumed, &b.p);
		}
		assert_false(quota_is_held(b.p.p));
	}
	assert_true(held >= 7);
	assert_int_equal(counts(&b.p).held_times, held);
	assert_int_equal(machine_counts(&b.f->service->host).held_times,
	    held);
	/* 14 KiB at 128 KiB a second. */
	assert_true(counts(&b.p).held_ms >= 100);
	fake_read(b.c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 16);
	assert_int_equal(packets_lost(&t), 0);
	fake_trace_done(&t);
	bed_done(&b);
}

static void
one_who_is_held_back_delays_no_other(void **state)
{
	struct fake_producer other;
	struct bed b;
	unsigned i;

	bed_init(&b, state, "quota { each_producer { " SLOW "4 } }", true);
	fake_producer_init(&other, b.f, "other", true);
	fake_producer_register(&other, "src", false, false);
	for (i = 0; commit_chunk(&b.p, 1, i, 0, 1, 1000) != COMMIT_AGAIN; i++)
		assert_true(i < 10);
	assert_int_equal(i, 4); /* and what is written around them */
	for (i = 0; i < 4; i++)
		assert_int_equal(commit_chunk(&other, 1, i, 0, 1, 1000),
		    COMMIT_OK);
	fake_producer_done(&other);
	bed_done(&b);
}

static void
producers_of_a_machine_share_its_rate_in_turn(void **state)
{
	struct fake_producer *p[3], extra[2];
	unsigned n[3] = { 0 }, i, least, most, all = 0;
	struct bed b;

	bed_init(&b, state, "quota { each_machine { kb_per_s: 256 "
	    "burst_kb: 1 } }", true);
	fake_producer_init(&extra[0], b.f, "q", true);
	fake_producer_register(&extra[0], "src", false, false);
	fake_producer_init(&extra[1], b.f, "r", true);
	fake_producer_register(&extra[1], "src", false, false);
	p[0] = &b.p;
	p[1] = &extra[0];
	p[2] = &extra[1];
	/* The first is always the first to ask, and asks at any time. */
	while (all < 60) {
		for (i = 0; i < 3; i++) {
			if (i > 0 && quota_is_held(p[i]->p) && !p[i]->resumed)
				continue;
			p[i]->resumed = false;
			if (commit_chunk(p[i], 1, n[i], 0, 4, 4000) ==
			    COMMIT_OK) {
				n[i]++;
				all++;
			}
		}
		loop_run_once(b.f->loop);
		fake_time_tick();
	}
	least = most = n[0];
	for (i = 1; i < 3; i++) {
		least = n[i] < least ? n[i] : least;
		most = n[i] > most ? n[i] : most;
	}
	/* A turn is 64 KiB, four of these chunks. */
	assert_true(most - least <= 10);
	fake_producer_done(&extra[0]);
	fake_producer_done(&extra[1]);
	bed_done(&b);
}

static void
who_is_held_back_and_leaves_is_forgotten(void **state)
{
	struct fake_producer other;
	struct bed b;

	bed_init(&b, state, "quota { each_machine { kb_per_s: 128 burst_kb: 1 "
	    "} }", true);
	fake_producer_init(&other, b.f, "other", true);
	fake_producer_register(&other, "src", false, false);
	assert_int_equal(commit_chunk(&b.p, 1, 0, 0, 1, 2000), COMMIT_OK);
	assert_int_equal(commit_chunk(&b.p, 1, 1, 0, 1, 2000), COMMIT_AGAIN);
	assert_int_equal(commit_chunk(&other, 1, 0, 0, 1, 2000), COMMIT_AGAIN);
	fake_producer_done(&b.p);
	fixture_wait(b.f, was_resumed, &other);
	assert_int_equal(commit_chunk(&other, 1, 0, 0, 1, 2000), COMMIT_OK);
	fake_producer_done(&other);
	bed_done(&b);
}

static void
the_end_of_a_session_does_not_wait_for_who_is_held_back(void **state)
{
	struct bed b;
	struct fake_trace t;
	uint64_t began;
	size_t i;

	bed_init(&b, state, "quota { each_producer { " SLOW "1 } }", true);
	assert_int_equal(commit_chunk(&b.p, 1, 0, 0, 2, 1000), COMMIT_OK);
	assert_int_equal(commit_chunk(&b.p, 1, 1, 0, 2, 1000), COMMIT_AGAIN);
	began = loop_now_ms();
	session_disable(b.c.s, NULL);
	fixture_wait(b.f, fake_disabled, &b.c);
	/* It owes two seconds; the time-outs are 20 ms each. */
	assert_true(loop_now_ms() - began < 1500);
	fake_read(b.c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 2);
	for (i = 0; i < stats(&t)->n_tributary_link_losses; i++) {
		assert_int_equal(stats(&t)->tributary_link_losses[i]->cause,
		    QUOTA);
		assert_int_equal(stats(&t)->tributary_link_losses[i]->packets,
		    0);
	}
	assert_int_equal(i, 1);
	fake_trace_done(&t);
	assert_int_equal(b.f->service->host.contact.losses[QUOTA].times, 1);
	/* Its buffers go: it waits for them no longer. */
	session_free(b.c.s);
	b.c.s = NULL;
	assert_true(b.p.resumed);
	assert_int_equal(commit_chunk(&b.p, 1, 1, 0, 2, 1000), COMMIT_OK);
	assert_int_equal(b.f->service->counters.chunks_late, 1);
	bed_done(&b);
}

static void
a_scrape_at_the_end_is_counted_where_it_is_over_the_rate(void **state)
{
	struct shm_slot slot[64];
	char text[2048];
	struct bed b;
	struct fake_trace t;
	uint64_t kept;
	uint16_t i;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	bed_init(&b, state, "quota { each_producer { " SLOW "8 } }", false);
	b.p.ack_flushes = true;
	for (i = 0; i < 20; i++) {
		writers_register(b.p.p, i + 1u, b.p.last_buffer);
		fake_shm_packet(&b.p, i + 1, 0, 1, text, true, &slot[i]);
	}
	session_disable(b.c.s, NULL);
	fixture_wait(b.f, fake_disabled, &b.c);
	fake_read(b.c.s, &t);
	kept = fake_trace_count(&t, NULL);
	/* What it has, and as much again is lent. */
	assert_in_range(kept, 2, 10);
	assert_int_equal(kept + packets_lost(&t), 20);
	assert_int_equal(counts(&b.p).dropped_packets, 20 - kept);
	fake_trace_done(&t);
	bed_done(&b);
}

/* ---- dropped ---- */

#define DROP(what) "quota { over: DROP each_producer { " what " } }"

static void
what_is_dropped_is_counted_to_the_packet(void **state)
{
	uint32_t i, marked = 0, sent = 0;
	struct machine_loss *loss;
	struct bed b;
	struct fake_trace t;
	uint64_t kept, before;
	size_t j;

	bed_init(&b, state, DROP("kb_per_s: 64 burst_kb: 16"), true);
	for (i = 0; i < 60; i++)
		assert_int_equal(commit_chunk(&b.p, 1 + i % 2, i / 2, 0, 3,
		    500), COMMIT_OK);
	/* Until some of the first sequence gets through again. */
	before = b.p.p->wrote.packets;
	for (; b.p.p->wrote.packets == before; i += 2) {
		fake_time_tick();
		assert_int_equal(commit_chunk(&b.p, 1, i / 2, 0, 3, 500),
		    COMMIT_OK);
	}
	sent = 60 * 3 + (i - 60) / 2 * 3;
	fake_read(b.c.s, &t);
	kept = fake_trace_count(&t, NULL);
	assert_true(kept >= 20 && kept < sent);
	assert_int_equal(kept + packets_lost(&t), sent);
	loss = &b.f->service->host.contact.losses[QUOTA];
	assert_int_equal(loss->packets, sent - kept);
	assert_int_equal(counts(&b.p).dropped_packets, sent - kept);
	assert_int_equal(machine_counts(&b.f->service->host).dropped_chunks,
	    loss->chunks);
	for (j = 0; j < t.n; j++)
		marked += (t.packets[j]->previous_packet_dropped &
		    LINK_LOSS_BIT(QUOTA)) != 0;
	assert_true(marked > 0);
	assert_int_equal(counts(&b.p).held_times, 0);
	fake_trace_done(&t);
	bed_done(&b);
}

static void
a_packet_in_several_chunks_is_lost_once(void **state)
{
	const uint8_t begins = SHM_LAST_CONTINUES_ON_NEXT;
	const uint8_t ends = SHM_FIRST_CONTINUES_FROM_PREV;
	struct bed b;
	struct fake_trace t;

	bed_init(&b, state, DROP(SLOW "1"), true);
	/* Kept, and owing more than one lends: the last one's end is not. */
	commit_chunk(&b.p, 1, 0, begins, 2, 3000);
	commit_chunk(&b.p, 1, 1, begins | ends, 1, 3000);
	assert_int_equal(counts(&b.p).dropped_packets, 1);
	commit_chunk(&b.p, 1, 2, begins | ends, 1, 3000);
	assert_int_equal(counts(&b.p).dropped_packets, 1);
	commit_chunk(&b.p, 1, 3, begins | ends, 3, 100);
	assert_int_equal(counts(&b.p).dropped_packets, 3);
	commit_chunk(&b.p, 1, 4, ends, 2, 100);
	assert_int_equal(counts(&b.p).dropped_packets, 4);
	assert_int_equal(counts(&b.p).dropped_chunks, 4);
	fake_read(b.c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 1);
	assert_int_equal(packets_lost(&t), 4);
	fake_trace_done(&t);
	bed_done(&b);
}

static void
the_rest_of_a_packet_that_was_begun_is_lent(void **state)
{
	struct bed b;

	bed_init(&b, state, DROP(SLOW "8"), true);
	commit_chunk(&b.p, 1, 0, 0, 3, 3000);
	commit_chunk(&b.p, 1, 1, SHM_LAST_CONTINUES_ON_NEXT, 1, 100);
	assert_int_equal(counts(&b.p).dropped_chunks, 1);
	bed_done(&b);
	bed_init(&b, state, DROP(SLOW "8"), true);
	/* The same with a chunk that goes on with one that was kept. */
	commit_chunk(&b.p, 1, 0, SHM_LAST_CONTINUES_ON_NEXT, 3, 3000);
	commit_chunk(&b.p, 1, 1, SHM_FIRST_CONTINUES_FROM_PREV, 1, 100);
	assert_int_equal(counts(&b.p).dropped_chunks, 0);
	bed_done(&b);
}

/* CommitData with a version of a chunk that its writer goes on with. */
static void
commit_version(struct fake_producer *p, uint32_t chunk, uint16_t n, size_t len,
    bool complete)
{
	struct pb_writer w, c;
	size_t mark;

	pb_writer_init(&c);
	pb_writer_init(&w);
	/* Room for what comes is there from the beginning. */
	put_chunk(&c, 1, chunk, 0, 5, len, n);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 3, p->last_buffer);
	pb_put_bytes(&w, 4, c.data, c.len);
	pb_put_uint(&w, 5, !complete);
	pb_nest_end(&w, mark);
	pb_writer_done(&c);
	assert_int_equal(fake_commit_request(p, &w), COMMIT_OK);
}

static void
versions_of_a_chunk_are_dropped_together_and_counted_once(void **state)
{
	struct bed b;
	struct fake_trace t;

	bed_init(&b, state, DROP(SLOW "8"), true);
	commit_chunk(&b.p, 1, 0, 0, 3, 3000);
	/* Of a version that grows the last packet is none yet. */
	commit_version(&b.p, 1, 3, 100, false);
	assert_int_equal(counts(&b.p).dropped_packets, 2);
	commit_version(&b.p, 1, 5, 100, false);
	assert_int_equal(counts(&b.p).dropped_packets, 4);
	commit_version(&b.p, 1, 5, 100, true);
	assert_int_equal(counts(&b.p).dropped_packets, 5);
	assert_int_equal(counts(&b.p).dropped_chunks, 1);
	fake_read(b.c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL) + packets_lost(&t), 8);
	fake_trace_done(&t);
	bed_done(&b);
}

static void
the_last_version_of_a_chunk_that_was_kept_is_lent(void **state)
{
	struct bed b;
	struct fake_trace t;

	bed_init(&b, state, DROP(SLOW "8"), true);
	commit_version(&b.p, 0, 3, 100, false);
	commit_chunk(&b.p, 2, 0, 0, 3, 3000);
	commit_chunk(&b.p, 2, 1, 0, 1, 100);
	assert_int_equal(counts(&b.p).dropped_packets, 1);
	commit_version(&b.p, 0, 4, 100, true);
	assert_int_equal(counts(&b.p).dropped_packets, 1);
	fake_read(b.c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 7);
	fake_trace_done(&t);
	bed_done(&b);
}

/* ---- numbers ---- */

static const char *
refused_producer(struct fixture *f, struct machine *m)
{
	struct producer_hello hello = { .name = "one more", .machine = m };
	const char *why = NULL;
	struct producer *p;

	p = producer_new(f->service, &hello, NULL, NULL, &why);
	if (p == NULL)
		return why;
	producer_gone(p);
	return NULL;
}

static void
producers_and_connections_of_a_machine_are_bounded(void **state)
{
	struct fixture *f = *state;
	const struct machine_visitor direct = { .reach = MACHINE_DIRECT };
	struct machine *door = fake_machine(f, 7, "door");
	struct producer_hello hello = { .name = "p", .machine = door };
	struct fake_producer p;

	use_quota(f, "quota { machine: \"do?r\" each_machine { max_producers: "
	    "1 } } quota { machine: \"gate\" each_machine { "
	    "max_connections: 1 } }");
	fake_producer_hello(&p, f, &hello);
	assert_non_null(strstr(refused_producer(f, door),
	    "quota.each_machine.max_producers"));
	assert_int_equal(machine_counts(door).refused_producers, 1);
	/* Others have theirs. */
	assert_null(refused_producer(f, &f->service->host));
	fake_producer_done(&p);
	assert_null(refused_producer(f, door));

	door = fake_machine(f, 8, "gate");
	hello.machine = door;
	fake_producer_hello(&p, f, &hello);
	machine_presence_came(door, &direct);
	assert_non_null(strstr(refused_producer(f, door),
	    "quota.each_machine.max_connections"));
	assert_int_equal(machine_counts(door).refused_connections, 1);
	machine_presence_left(door);
	fake_producer_done(&p);
}

static const char *
register_one(struct fake_producer *p, const char *name)
{
	struct pb_writer w;
	const char *why;

	pb_writer_init(&w);
	pb_put_string(&w, 1, name);
	why = producer_register(p->p, w.data, w.len);
	pb_writer_done(&w);
	return why;
}

static void
data_sources_of_a_machine_and_of_a_producer_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p, q;

	use_quota(f, "quota { each_machine { max_data_sources: 3 } "
	    "each_producer { max_data_sources: 2 } }");
	fake_producer_init(&p, f, "p", true);
	fake_producer_init(&q, f, "q", true);
	assert_null(register_one(&p, "a"));
	assert_null(register_one(&p, "b"));
	assert_non_null(strstr(register_one(&p, "c"),
	    "quota.each_producer.max_data_sources"));
	assert_null(register_one(&q, "a"));
	assert_non_null(strstr(register_one(&q, "b"),
	    "quota.each_machine.max_data_sources"));
	producer_unregister(p.p, "a", 1);
	assert_null(register_one(&q, "b"));
	assert_int_equal(machine_counts(&f->service->host)
	    .refused_data_sources, 2);
	fake_producer_done(&p);
	fake_producer_done(&q);
}

static void
sequences_are_bounded_whether_registered_or_not(void **state)
{
	struct bed b;
	struct fake_trace t;
	uint16_t w;

	bed_init(&b, state, "quota { each_machine { max_sequences: 3 } }",
	    true);
	writers_register(b.p.p, 1, b.p.last_buffer);
	for (w = 1; w <= 1000; w++)
		assert_int_equal(commit_chunk(&b.p, w, 0, 0, 2, 10),
		    COMMIT_OK);
	assert_int_equal(machine_counts(&b.f->service->host).sequences, 3);
	assert_int_equal(machine_counts(&b.f->service->host)
	    .refused_sequences, 997);
	/* Each that is gone makes room for another. */
	writers_unregister(b.p.p, 1);
	assert_int_equal(commit_chunk(&b.p, 500, 1, 0, 2, 10), COMMIT_OK);
	assert_int_equal(commit_chunk(&b.p, 501, 1, 0, 2, 10), COMMIT_OK);
	fake_read(b.c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 8);
	assert_int_equal(packets_lost(&t), 998 * 2);
	/* None of them has a line of its own. */
	assert_int_equal(stats(&t)->n_tributary_link_losses, 1);
	fake_trace_done(&t);
	bed_done(&b);
	assert_int_equal(machine_counts(&b.f->service->host).sequences, 0);
}

static void
the_limit_of_writers_holds_those_too_that_never_registered(void **state)
{
	struct bed b;

	bed_init(&b, state, "limits { max_writers_per_producer: 2 }", true);
	commit_chunk(&b.p, 1, 0, 0, 1, 10);
	commit_chunk(&b.p, 2, 0, 0, 1, 10);
	commit_chunk(&b.p, 3, 0, 0, 1, 10);
	assert_int_equal(b.p.p->wrote.packets, 2);
	assert_int_equal(b.f->service->counters.sequences_refused, 1);
	bed_done(&b);
}

static void
wake_nobody(void *port)
{
}

static void
close_nobody(void *port, const char *why)
{
}

static void
links_of_a_machine_are_bounded_but_for_who_comes_again(void **state)
{
	static const struct link_port_ops ops = { wake_nobody, close_nobody };
	struct fixture *f = *state;
	const struct machine_visitor relay = { .reach = MACHINE_LINK };
	struct machine *m = fake_machine(f, 7, "door");
	struct link_request q = { .link_id = { 1 }, .relay_id = { 1 },
		.machine = m }, other;
	const char *why;
	struct link *l;
	enum link_why how;

	use_quota(f, "quota { each_machine { max_connections: 1 } }");
	l = link_open(f->service->links, &q, &ops, NULL, &how, &why);
	assert_non_null(l);
	machine_presence_came(m, &relay);
	other = q;
	other.relay_id[0] = other.link_id[0] = 2;
	assert_null(link_open(f->service->links, &other, &ops, NULL, &how,
	    &why));
	assert_non_null(strstr(why, "quota.each_machine.max_connections"));
	link_detach(l);
	l = link_open(f->service->links, &other, &ops, NULL, &how, &why);
	assert_non_null(l);
	machine_presence_came(m, &relay);
	link_detach(l);
}

/* One of those that the certificate "rogue" invents. */
static struct machine *
invented(struct fixture *f, uint32_t id)
{
	struct machine_claim c = { .id = id, .name = "rogue",
		.owner = "certificate rogue", .peer = 7, .together = true };
	struct machine *m = machine_claim(f->service->machines, &c);

	assert_non_null(m);
	return m;
}

static void
machines_that_a_certificate_invents_are_counted_together(void **state)
{
	struct fixture *f = *state;
	const struct machine_visitor direct = { .reach = MACHINE_DIRECT };
	struct machine *a = invented(f, 7), *b = invented(f, 8);
	struct producer_hello hello = { .name = "p", .machine = a };
	struct fake_producer p;

	use_quota(f, "quota { certificate: \"*\" each_machine { "
	    "max_producers: 1 max_connections: 1 } }");
	fake_producer_hello(&p, f, &hello);
	assert_non_null(strstr(refused_producer(f, b),
	    "quota.each_machine.max_producers"));
	/* People see it at each of them. */
	assert_int_equal(machine_counts(a).refused_producers, 1);
	assert_int_equal(machine_counts(b).refused_producers, 1);
	assert_int_equal(b->n_producers, 0);
	fake_producer_register(&p, "src", false, false);
	assert_int_equal(machine_account(b)->n_data_sources, 1);
	fake_producer_done(&p);
	assert_int_equal(machine_account(b)->n_data_sources, 0);
	assert_null(refused_producer(f, b));

	machine_presence_came(a, &direct);
	assert_non_null(strstr(quota_admit_connection(b, 0),
	    "quota.each_machine.max_connections"));
	machine_presence_left(a);
	assert_null(quota_admit_connection(b, 0));
}

static void
the_first_quota_that_fits_a_machine_counts(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "door");

	use_quota(f, "quota { machine: \"door\" certificate: \"door*\" "
	    "guaranteed_buffer_percent: 1 } "
	    "quota { machine: \"host\" guaranteed_buffer_percent: 2 } "
	    "quota { machine: \"d*\" guaranteed_buffer_percent: 3 } "
	    "quota { guaranteed_buffer_percent: 4 }");
	assert_int_equal(quota_guaranteed_percent(f->service, m), 3);
	assert_int_equal(quota_guaranteed_percent(f->service,
	    &f->service->host), 2);
	assert_int_equal(machine_rename(m, "window"), 0);
	assert_int_equal(quota_guaranteed_percent(f->service, m), 4);
	assert_int_equal(machine_rename(m, "door"), 0);
	m->owner = strdup("certificate doorman");
	assert_int_equal(quota_guaranteed_percent(f->service, m), 1);
	free(m->owner);
	/* Who calls himself so is not so known. */
	m->owner = strdup("dial doorman");
	assert_int_equal(quota_guaranteed_percent(f->service, m), 3);
}

int
main(void)
{
#define TEST(fn)                                                               \
	cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(over_its_rate_a_producer_waits_and_loses_nothing),
		TEST(one_who_is_held_back_delays_no_other),
		TEST(producers_of_a_machine_share_its_rate_in_turn),
		TEST(who_is_held_back_and_leaves_is_forgotten),
		TEST(the_end_of_a_session_does_not_wait_for_who_is_held_back),
		TEST(a_scrape_at_the_end_is_counted_where_it_is_over_the_rate),
		TEST(what_is_dropped_is_counted_to_the_packet),
		TEST(a_packet_in_several_chunks_is_lost_once),
		TEST(the_rest_of_a_packet_that_was_begun_is_lent),
		TEST(versions_of_a_chunk_are_dropped_together_and_counted_once),
		TEST(the_last_version_of_a_chunk_that_was_kept_is_lent),
		TEST(producers_and_connections_of_a_machine_are_bounded),
		TEST(data_sources_of_a_machine_and_of_a_producer_are_bounded),
		TEST(sequences_are_bounded_whether_registered_or_not),
		TEST(the_limit_of_writers_holds_those_too_that_never_registered),
		TEST(links_of_a_machine_are_bounded_but_for_who_comes_again),
		TEST(machines_that_a_certificate_invents_are_counted_together),
		TEST(the_first_quota_that_fits_a_machine_counts),
	};

	fixture_pass_time = fake_time_tick;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
