/*
 * Relays at the real TributaryLink, driven frame by frame.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/access/trust.h"
#include "service/link/link.h"
#include "service/link/link_internal.h"
#include "tests/unit/service/port/relay_end.h"
#include "transport/base/budget.h"
#include "transport/link/link_clock.h"
#include "transport/link/link_zstd.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

#define ONE_SOURCE                                                             \
	"buffers { size_kb: 64 } data_sources { config { name: \"src\" } } "   \
	"trace_all_machines: true "

enum {
	RESUMED = TRIBUTARY__LINK_OPENED__WHY__RESUMED,
	NEW = TRIBUTARY__LINK_OPENED__WHY__NEW,
	RESTARTED = TRIBUTARY__LINK_OPENED__WHY__COLLECTOR_RESTARTED,
	GRACE_OVER = TRIBUTARY__LINK_OPENED__WHY__GRACE_OVER,
	GIVEN_UP = TRIBUTARY__LINK_OPENED__WHY__GIVEN_UP,
};

/* Commands: fields of GetAsyncCommandResponse. */
enum { START = 1, STOP = 2, TRACING = 3, FLUSH = 5, SETUP = 6, CLEAR = 7 };
/* A method of TributaryControl. */
enum { CONTROL_SESSIONS = 2 };

/* Opens a channel with one producer and its source "src". */
static void
bring_producer(struct relay_end *r, uint32_t channel)
{
	struct pb_writer w;

	pb_writer_init(&w);
	block_put_open(&w, "p");
	block_put_source(&w, "src");
	relay_end_up(r, channel, &w);
	relay_end_settle(r);
}

static struct machine *
machine_of(struct relay_end *r)
{
	struct machine *m = machine_find(r->ports->service->machines,
	    r->opened->machine_id);

	assert_non_null(m);
	return m;
}

static struct session *
first_session(struct ports *p)
{
	struct session *s = TAILQ_FIRST(&p->service->sessions);

	assert_non_null(s);
	return s;
}

static void
enable(struct client *cons, struct ports *p, uint64_t *id, const char *config)
{
	client_open(cons, p, CONSUMER);
	*id = client_enable(cons, config, -1);
	assert_true(client_call(cons, C_CAPABILITIES, NULL)->ok);
}

/* All links end at once when they are cut off. */
static void
end(struct relay_end *r)
{
	r->ports->settings.link.grace_ms = 0;
	relay_end_done(r);
}

/* ---- Open ---- */

static void
a_new_link_is_told_what_is_agreed_on(void **state)
{
	struct ports *p = *state;
	struct relay_end r;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	assert_int_equal(r.opened->version, 1);
	assert_memory_equal(r.collector_id,
	    links_collector_id(p->service->links), LINK_ID_BYTES);
	assert_int_equal(r.opened->window, 1024 * 1024);
	assert_int_equal(r.opened->grace_ms, 60000);
	assert_int_equal(r.opened->received, 0);
	assert_int_equal(r.opened->compression, 0);
	assert_string_equal(r.opened->machine_name, "door");
	assert_true(r.opened->machine_id != 0);
	assert_true(machine_is_connected(machine_of(&r)));
	assert_int_equal(machine_of(&r)->contact.reach, MACHINE_LINK);
	assert_string_equal(machine_of(&r)->contact.software, "test 1");
	end(&r);
}

static void
calls_before_open_are_rejected_and_a_second_one_too(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client c;

	client_open(&c, p, LINK);
	assert_false(client_call(&c, L_UP, NULL)->ok);
	assert_false(client_call(&c, L_DOWN, NULL)->ok);
	client_close(&c);
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	assert_false(client_call(&r.c, L_OPEN, NULL)->ok);
	end(&r);
}

static void
expect_refused(struct relay_end *r)
{
	size_t before = r->ports->service->links->n;

	assert_int_equal(relay_end_open(r), -1);
	assert_int_equal(r->ports->service->links->n, before);
	relay_end_done(r);
}

static void
a_relay_on_a_unix_socket_says_which_machine_it_is(void **state)
{
	struct relay_end r;

	relay_end_init(&r, *state, 1);
	r.hint = r.name = NULL;
	expect_refused(&r);
}

static void
limits_refuse_links(void **state)
{
	struct ports *p = *state;
	struct relay_end r, s;

	p->settings.link.max_links = 1;
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	relay_end_init(&s, p, 2);
	expect_refused(&s);
	p->settings.link.max_links = 10;
	p->settings.link.max_links_per_peer = 1;
	relay_end_init(&s, p, 2);
	expect_refused(&s);
	end(&r);
}

static void
a_link_of_somebody_else_is_refused(void **state)
{
	struct ports *p = *state;
	struct peer other = { .kind = ADDR_UNIX, .auth = PEER_UNIX,
	    .uid = 4711, .text = "other" };
	struct relay_end r, s;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	relay_end_init(&s, p, 1);
	s.as = &other;
	s.knows_collector = true;
	memcpy(s.collector_id, r.collector_id, LINK_ID_BYTES);
	s.sent = r.sent;
	expect_refused(&s);
	assert_int_equal(relay_end_open(&r), RESUMED);
	end(&r);
}

static void
machines_of_two_uids_are_two(void **state)
{
	struct ports *p = *state;
	struct peer other = { .kind = ADDR_UNIX, .auth = PEER_UNIX,
	    .uid = 4711, .text = "other" };
	struct relay_end r, s;

	relay_end_init(&r, p, 1);
	relay_end_init(&s, p, 2);
	s.as = &other;
	assert_int_equal(relay_end_open(&r), NEW);
	assert_int_equal(relay_end_open(&s), NEW);
	assert_int_not_equal(r.opened->machine_id, s.opened->machine_id);
	assert_string_equal(machine_of(&s)->contact.authenticated, "uid 4711");
	end(&r);
	end(&s);
}

static void
a_certificate_names_its_machine_and_nobody_is_no_root(void **state)
{
	struct tls_identity door = { .name = "door-7" };
	struct peer cert = { .kind = ADDR_TLS, .auth = PEER_CERT,
	    .cert = &door, .uid = PEER_UID_UNKNOWN, .text = "door-7" };
	struct peer nobody = { .kind = ADDR_TCP, .uid = PEER_UID_UNKNOWN,
	    .addr_hash = 9, .text = "10.0.0.9:77" };
	struct ports *p = *state;
	struct relay_end r, s;
	struct pb_writer w;
	char err[256];
	size_t mark;

	p->service->trust = trust_new(&p->settings, err, sizeof(err));
	assert_non_null(p->service->trust);
	relay_end_init(&r, p, 1);
	r.as = &cert;
	assert_int_equal(relay_end_open(&r), NEW);
	assert_string_equal(r.opened->machine_name, "door-7");
	assert_string_equal(machine_of(&r)->contact.authenticated,
	    "certificate door-7");
	relay_end_init(&s, p, 2);
	s.as = &nobody;
	s.hint = s.name = NULL;
	assert_int_equal(relay_end_open(&s), NEW);
	assert_string_equal(s.opened->machine_name, "10.0.0.9");
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_OPEN);
	pb_put_string(&w, 1, "p");
	pb_put_uint(&w, 3, 0);
	pb_nest_end(&w, mark);
	relay_end_up(&s, 1, &w);
	relay_end_settle(&s);
	assert_int_equal(TAILQ_FIRST(&p->service->producers)->uid,
	    PEER_UID_UNKNOWN);
	end(&r);
	end(&s);
	trust_free((struct trust *)(uintptr_t)p->service->trust);
	p->service->trust = NULL;
}

static void
what_a_relay_says_of_its_system_is_kept(void **state)
{
	/* android_build_fingerprint, field 2, and machine_name, field 17 */
	static const char info[] = "\x12\x01x" "\x8a\x01\x05other";
	struct ports *p = *state;
	struct relay_end r, s;

	relay_end_init(&r, p, 1);
	r.info = info;
	r.info_len = sizeof(info) - 1;
	assert_int_equal(relay_end_open(&r), NEW);
	/* But for the name, of which the machine has the one of LinkOpen. */
	assert_int_equal(machine_of(&r)->system_info_len, 3);
	assert_memory_equal(machine_of(&r)->system_info, info, 3);
	assert_string_equal(machine_of(&r)->name, "door");
	/* One that does not parse is not worth a link. */
	relay_end_init(&s, p, 2);
	s.hint = s.name = "another";
	s.info = "\x8a";
	s.info_len = 1;
	assert_int_equal(relay_end_open(&s), NEW);
	assert_null(machine_of(&s)->system_info);
	end(&r);
	end(&s);
}

static void
a_collector_that_is_not_known_begins_anew(void **state)
{
	struct ports *p = *state;
	struct relay_end r;

	relay_end_init(&r, p, 1);
	r.knows_collector = true;
	r.sent = r.acked = 7;
	assert_int_equal(relay_end_open(&r), RESTARTED);
	bring_producer(&r, 1);
	end(&r);
}

/* ---- producers ---- */

static void
a_producer_of_a_link_is_traced(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons, control;
	const struct reply *reply;
	struct pb_writer w;
	struct pb_field f;
	uint64_t id, flush;
	uint32_t buffer;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	enable(&cons, p, &id, ONE_SOURCE);
	relay_end_command(&r, 1, TRACING, &f);
	relay_end_command(&r, 1, SETUP, &f);
	relay_end_command(&r, 1, START, &f);
	buffer = first_session(p)->buffers[0].id;
	pb_writer_init(&w);
	block_put_packet(&w, buffer, 1, 0, "first");
	block_put_packet(&w, buffer, 1, 1, "second");
	relay_end_up(&r, 1, &w);
	flush = client_send(&cons, C_FLUSH, NULL, -1);
	relay_end_command(&r, 1, FLUSH, &f);
	pb_writer_init(&w);
	block_put_packet(&w, buffer, 1, 2, "third");
	block_put_flush_ack(&w, p->service->last_flush_id);
	relay_end_up(&r, 1, &w);
	relay_end_settle(&r);
	assert_true(client_wait(&cons, flush, 0)->ok);
	assert_int_equal(client_count_in_trace(&cons, "first"), 1);
	/* Who asks about the session is told of its machine. */
	client_open(&control, p, CONTROL);
	reply = client_call(&control, CONTROL_SESSIONS, NULL);
	assert_true(reply->ok);
	assert_non_null(memmem(reply->msg, reply->len, r.name,
	    strlen(r.name)));
	client_close(&control);
	client_close(&cons);
	end(&r);
}

static void
a_producer_of_a_link_is_told_to_clear_its_state(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	struct pb_field f;
	uint64_t id;
	size_t mark;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	pb_writer_init(&w);
	block_put_open(&w, "p");
	mark = pb_nest_begin(&w, LINK_UP_REGISTER_SOURCE);
	pb_put_string(&w, 1, "src");
	pb_put_uint(&w, 4, 1); /* handles_incremental_state_clear */
	pb_nest_end(&w, mark);
	relay_end_up(&r, 1, &w);
	relay_end_settle(&r);
	enable(&cons, p, &id, ONE_SOURCE
	    "incremental_state_config { clear_period_ms: 10 }");
	relay_end_command(&r, 1, CLEAR, &f);
	assert_int_equal(f.len, 2);
	assert_int_equal(f.data[0], 1 << 3);
	assert_int_equal(f.data[1],
	    TAILQ_FIRST(&first_session(p)->instances)->id);
	client_close(&cons);
	end(&r);
}

static void
without_a_buffer_the_one_counts_that_was_registered(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	uint64_t id;
	size_t mark;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	enable(&cons, p, &id, ONE_SOURCE);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_REGISTER_WRITER);
	pb_put_uint(&w, 1, 5);
	pb_put_uint(&w, 2, first_session(p)->buffers[0].id);
	pb_nest_end(&w, mark);
	block_put_packet(&w, 0, 5, 0, "placed");
	block_put_packet(&w, 0, 6, 0, "nowhere");
	relay_end_up(&r, 1, &w);
	relay_end_settle(&r);
	assert_int_equal(client_count_in_trace(&cons, "placed"), 1);
	assert_int_equal(client_count_in_trace(&cons, "nowhere"), 0);
	assert_int_equal(p->service->counters.chunks_late, 1);
	client_close(&cons);
	end(&r);
}

static void
a_producer_too_many_is_refused_and_its_blocks_are_skipped(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct pb_writer w;
	struct pb_field f;

	p->settings.link.max_producers_per_link = 1;
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	pb_writer_init(&w);
	block_put_open(&w, "q");
	block_put_source(&w, "src");
	relay_end_up(&r, 2, &w);
	relay_end_expect(&r, 2, LINK_DOWN_REFUSED, &f);
	assert_non_null(memmem(f.data, f.len, "max_producers_per_link", 22));
	pb_writer_init(&w);
	block_put_source(&w, "src2");
	block_put(&w, LINK_UP_CLOSE, "", 0);
	relay_end_up(&r, 2, &w);
	relay_end_settle(&r);
	assert_int_equal(p->service->n_producers, 1);
	assert_int_equal(p->service->n_data_sources, 1);
	end(&r);
}

static void
a_source_too_many_is_refused_by_name(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct pb_writer w;
	struct pb_field f;

	p->settings.limits.max_data_sources_per_producer = 1;
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	pb_writer_init(&w);
	block_put_source(&w, "another");
	relay_end_up(&r, 1, &w);
	relay_end_expect(&r, 1, LINK_DOWN_SOURCE_REFUSED, &f);
	assert_non_null(memmem(f.data, f.len, "another", 7));
	end(&r);
}

static void
a_closed_channel_is_gone(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct pb_writer w;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	bring_producer(&r, 2);
	bring_producer(&r, 3);
	pb_writer_init(&w);
	block_put(&w, LINK_UP_CLOSE, "", 0);
	block_put_source(&w, "late");
	relay_end_up(&r, 3, &w);
	relay_end_settle(&r);
	assert_int_equal(p->service->n_producers, 2);
	pb_writer_init(&w);
	block_put_varint(&w, LINK_UP_CLOSE_BELOW, 2);
	relay_end_up(&r, 0, &w);
	relay_end_settle(&r);
	assert_int_equal(p->service->n_producers, 1);
	assert_int_equal(p->service->n_data_sources, 1);
	end(&r);
}

static void
blocks_of_channels_that_never_began_are_skipped_and_consumed(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct pb_writer w;
	size_t len;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	pb_writer_init(&w);
	block_put_source(&w, "src");
	len = w.len;
	relay_end_up(&r, 9, &w);
	relay_end_settle(&r);
	assert_int_equal(p->service->n_producers, 0);
	assert_int_equal(r.consumed_in_all, len);
	end(&r);
}

/* ---- cuts ---- */

static void
a_cut_link_goes_on_where_it_was(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	struct pb_field f;
	uint64_t id;
	uint32_t buffer;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	enable(&cons, p, &id, ONE_SOURCE);
	relay_end_command(&r, 1, START, &f);
	buffer = first_session(p)->buffers[0].id;
	pb_writer_init(&w);
	block_put_packet(&w, buffer, 1, 0, "first");
	relay_end_up(&r, 1, &w);
	relay_end_settle(&r);
	relay_end_cut(&r);
	assert_int_equal(p->service->n_producers, 1);
	assert_true(machine_of(&r)->contact.cut);
	assert_int_equal(relay_end_open(&r), RESUMED);
	assert_int_equal(r.opened->received, 2);
	assert_false(machine_of(&r)->contact.cut);
	assert_int_equal(machine_of(&r)->contact.reconnects, 1);
	/* It did not know that the block had come. */
	pb_writer_init(&w);
	block_put_packet(&w, buffer, 1, 0, "first");
	relay_end_up_as(&r, 2, 1, &w);
	pb_writer_init(&w);
	block_put_packet(&w, buffer, 1, 1, "then");
	relay_end_up(&r, 1, &w);
	relay_end_settle(&r);
	assert_int_equal(p->service->counters.producers_seen, 1);
	assert_int_equal(first_session(p)->packets_stored, 2);
	client_close(&cons);
	end(&r);
}

static void
what_is_said_during_a_cut_waits(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_field f;
	uint64_t id, flush;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	enable(&cons, p, &id, ONE_SOURCE);
	/* A flush does not wait longer than it was told to. */
	flush = client_send(&cons, C_FLUSH, args_uint(1, 20), -1);
	assert_false(client_wait(&cons, flush, 0)->ok);
	assert_int_equal(relay_end_open(&r), RESUMED);
	relay_end_command(&r, 1, SETUP, &f);
	relay_end_command(&r, 1, START, &f);
	relay_end_command(&r, 1, FLUSH, &f);
	client_close(&cons);
	end(&r);
}

static void
what_was_not_acknowledged_is_said_again(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_field f;
	uint64_t id, received;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	enable(&cons, p, &id, ONE_SOURCE);
	relay_end_command(&r, 1, START, &f);
	received = r.received;
	assert_true(received > 0);
	relay_end_cut(&r);
	r.received = 0; /* it was killed before it had read them */
	assert_int_equal(relay_end_open(&r), RESUMED);
	relay_end_command(&r, 1, START, &f);
	assert_int_equal(r.received, received);
	relay_end_ack(&r);
	client_close(&cons);
	end(&r);
}

static bool
has_no_links(void *arg)
{
	return ((struct ports *)arg)->service->links->n == 0;
}

static void
after_the_grace_period_its_producers_are_gone(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	uint64_t id;

	p->settings.link.grace_ms = 1;
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	enable(&cons, p, &id, ONE_SOURCE);
	relay_end_cut(&r);
	ports_wait(&cons, has_no_links, p);
	assert_int_equal(p->service->n_producers, 0);
	assert_false(machine_of(&r)->contact.cut);
	p->settings.link.grace_ms = 60000;
	assert_int_equal(relay_end_open(&r), GRACE_OVER);
	bring_producer(&r, 1);
	client_close(&cons);
	end(&r);
}

static void
a_newer_connection_takes_the_link_over(void **state)
{
	struct ports *p = *state;
	struct relay_end r, again;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	again = r;
	memset(&again.c, 0, sizeof(again.c));
	again.opened = NULL;
	assert_int_equal(relay_end_open(&again), RESUMED);
	while (!r.c.closed)
		client_turn(&r.c);
	bring_producer(&again, 2);
	assert_int_equal(p->service->n_producers, 2);
	assert_int_equal(machine_of(&again)->contact.n_relays, 1);
	relay_end_done(&r);
	end(&again);
}

static void
a_relay_that_begins_anew_ends_what_it_had_before(void **state)
{
	struct ports *p = *state;
	struct relay_end r, anew;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	relay_end_init(&anew, p, 2);
	memcpy(anew.relay_id, r.relay_id, LINK_ID_BYTES);
	assert_int_equal(relay_end_open(&anew), NEW);
	assert_int_equal(p->service->n_producers, 0);
	assert_int_equal(p->service->links->n, 1);
	relay_end_done(&r);
	end(&anew);
}

/* Its link stays as it is. */
static void
expect_late(struct relay_end *r)
{
	struct service *service = r->ports->service;
	size_t links = service->links->n;
	size_t producers = service->n_producers;

	assert_int_equal(relay_end_open(r), -1);
	assert_int_equal(service->links->n, links);
	assert_int_equal(service->n_producers, producers);
	relay_end_cut(r);
}

static void
an_open_that_was_overtaken_is_refused(void **state)
{
	struct ports *p = *state;
	struct relay_end r, late;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	relay_end_init(&late, p, 1);
	bring_producer(&r, 1);
	relay_end_ack(&r);
	expect_late(&late); /* before it knew the collector */
	late.knows_collector = true;
	expect_late(&late); /* and another one */
	memcpy(late.collector_id, r.collector_id, LINK_ID_BYTES);
	expect_late(&late); /* before it sent what was taken */
	late.acked = late.sent = 5; /* of the link before, of this id */
	expect_late(&late);
	late.sent = 1;
	late.acked = 0;
	late.received = 5;
	expect_late(&late);
	assert_false(r.c.closed);
	relay_end_cut(&r);
	assert_int_equal(relay_end_open(&r), RESUMED);
	end(&r);
}

static void
an_answer_that_did_not_arrive_is_given_again(void **state)
{
	struct ports *p = *state;
	struct relay_end r, before;

	relay_end_init(&r, p, 1);
	before = r;
	assert_int_equal(relay_end_open(&r), NEW);
	relay_end_done(&r);
	r = before;
	assert_int_equal(relay_end_open(&r), NEW);
	assert_int_equal(p->service->links->n, 1);
	bring_producer(&r, 1);
	p->settings.link.grace_ms = 1;
	relay_end_cut(&r);
	relay_end_wait(&r, has_no_links, p);
	p->settings.link.grace_ms = 60000;
	/* Nothing was acknowledged: it could be the new link's. */
	r.sent = 1;
	r.acked = r.received = 0;
	before = r;
	before.opened = NULL;
	assert_int_equal(relay_end_open(&r), GRACE_OVER);
	relay_end_done(&r);
	r = before;
	assert_int_equal(relay_end_open(&r), GRACE_OVER);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	assert_int_equal(relay_end_open(&r), RESUMED);
	end(&r);
}

static void
a_link_of_another_machine_begins_anew(void **state)
{
	struct ports *p = *state;
	struct relay_end r;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	r.hint = "renamed";
	assert_int_equal(relay_end_open(&r), GIVEN_UP);
	assert_int_equal(p->service->n_producers, 0);
	end(&r);
}

/* ---- credit ---- */

static void
a_turn_is_acknowledged_in_one_frame(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct pb_writer w;
	size_t before, len;
	int i;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	before = r.frames;
	len = r.consumed[1];
	for (i = 0; i < 50; i++) {
		pb_writer_init(&w);
		block_put(&w, LINK_UP_TRIGGER, "t", 1);
		len += w.len;
		relay_end_up(&r, 1, &w);
	}
	relay_end_settle(&r);
	assert_in_range(r.frames - before, 1, 10);
	assert_int_equal(r.consumed[1], len);
	assert_int_equal(r.consumed_in_all, len);
	end(&r);
}

#define HELD_CONFIG                                                            \
	"buffers { size_kb: 64 } buffers { size_kb: 64 } data_sources { "      \
	"config { name: \"src\" } } trace_all_machines: true "                 \
	"write_into_file: true flush_timeout_ms: 10 "                          \
	"data_source_stop_timeout_ms: 10"

static void
up_big(struct relay_end *r, uint32_t channel, uint32_t buffer, uint32_t chunk)
{
	static char big[8000];
	struct pb_writer w;

	memset(big, 'x', sizeof(big) - 1);
	pb_writer_init(&w);
	block_put_packet(&w, buffer, 1, chunk, big);
	relay_end_up(r, channel, &w);
}

static bool
all_consumed(void *arg)
{
	struct relay_end *r = arg;

	return machine_of(r)->contact.bytes_waiting == 0 &&
	    r->consumed_in_all == machine_of(r)->contact.bytes_unpacked;
}

static bool
has_credit_of_2(void *arg)
{
	return ((struct relay_end *)arg)->consumed[2] > 0;
}

static void
a_file_that_is_behind_holds_back_one_channel_and_no_other(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	uint64_t id;
	uint32_t i, buffer;
	int pipefd[2];

	/* The session's end is no matter of links here, nor of 5 s. */
	p->settings.link.end_wait_ms = 0;
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	bring_producer(&r, 2);
	client_open(&cons, p, CONSUMER);
	id = client_enable(&cons, HELD_CONFIG, pipefd[1]);
	close(pipefd[1]);
	client_call(&cons, C_CAPABILITIES, NULL);
	buffer = first_session(p)->buffers[0].id;
	for (i = 0; i < 60; i++)
		up_big(&r, 1, buffer, i);
	relay_end_settle(&r);
	assert_true(machine_of(&r)->contact.bytes_waiting > 0);
	/* The other channel is heard, and its credit comes back. */
	r.consumed[2] = 0;
	pb_writer_init(&w);
	block_put_source(&w, "other");
	relay_end_up(&r, 2, &w);
	relay_end_wait(&r, has_credit_of_2, &r);
	assert_int_equal(p->service->n_data_sources, 3);
	assert_true(r.consumed[1] < 60 * 8000);
	assert_true(machine_of(&r)->contact.bytes_waiting > 0);
	/* Also over a cut; then the disk goes on. */
	relay_end_cut(&r);
	assert_int_equal(relay_end_open(&r), RESUMED);
	r.c.disk = pipefd[0];
	relay_end_wait(&r, all_consumed, &r);
	cons.disk = pipefd[0];
	cons.disk_bytes = r.c.disk_bytes;
	(void)client_send(&cons, C_DISABLE, NULL, -1);
	assert_true(client_wait(&cons, id, 0)->ok);
	for (i = 0; i < 200; i++)
		client_turn(&cons);
	assert_true(cons.disk_bytes > 60 * 8000);
	assert_int_equal(first_session(p)->refused.chunks, 0);
	close(pipefd[0]);
	client_close(&cons);
	end(&r);
}

static void
what_waits_when_the_grace_is_over_is_still_written(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	uint64_t id;
	uint32_t i, buffer;
	int pipefd[2];

	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	client_open(&cons, p, CONSUMER);
	id = client_enable(&cons, HELD_CONFIG, pipefd[1]);
	close(pipefd[1]);
	client_call(&cons, C_CAPABILITIES, NULL);
	buffer = first_session(p)->buffers[0].id;
	for (i = 0; i < 60; i++)
		up_big(&r, 1, buffer, i);
	relay_end_settle(&r);
	p->settings.link.grace_ms = 0;
	relay_end_cut(&r);
	ports_wait(&cons, has_no_links, p);
	assert_int_equal(p->service->n_producers, 1);
	cons.disk = pipefd[0];
	while (p->service->n_producers > 0)
		client_turn(&cons);
	(void)client_send(&cons, C_DISABLE, NULL, -1);
	assert_true(client_wait(&cons, id, 0)->ok);
	for (i = 0; i < 200; i++)
		client_turn(&cons);
	assert_true(cons.disk_bytes > 60 * 8000);
	close(pipefd[0]);
	client_close(&cons);
	end(&r);
}

static void
compressed_blocks_are_understood_also_after_a_cut(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct pb_writer w;
	size_t received;
	char name[16];
	int i;

	relay_end_init(&r, p, 1);
	r.zstd = true;
	assert_int_equal(relay_end_open(&r), NEW);
	assert_non_null(r.compressor);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	assert_int_equal(relay_end_open(&r), RESUMED);
	/* One that came before is still part of the stream. */
	pb_writer_init(&w);
	block_put_open(&w, "p");
	block_put_source(&w, "src");
	relay_end_up_as(&r, 1, 1, &w);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "source %d", i);
		pb_writer_init(&w);
		block_put_source(&w, name);
		relay_end_up(&r, 1, &w);
	}
	relay_end_settle(&r);
	assert_int_equal(p->service->n_data_sources, 21);
	received = machine_of(&r)->contact.bytes_received;
	assert_true(received > 0);
	end(&r);
}

static void
without_memory_for_it_blocks_come_plain(void **state)
{
	struct ports *p = *state;
	struct budget *before = p->service->connection_memory;
	struct budget b = { .memory_max = 2 * LINK_DECOMPRESSOR_BYTES };
	struct relay_end r, s;

	p->service->connection_memory = &b;
	relay_end_init(&r, p, 1);
	r.zstd = true;
	assert_int_equal(relay_end_open(&r), NEW);
	assert_int_equal(r.opened->compression,
	    TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD);
	assert_int_equal(b.memory, LINK_DECOMPRESSOR_BYTES);
	relay_end_init(&s, p, 2);
	s.zstd = true;
	assert_int_equal(relay_end_open(&s), NEW);
	assert_int_equal(s.opened->compression, 0);
	relay_end_cut(&s);
	relay_end_cut(&r);
	assert_int_equal(b.memory, 0);
	relay_end_done(&s);
	relay_end_done(&r);
	p->service->connection_memory = before;
}

/* ---- clocks and status ---- */

static bool
has_pong(void *arg)
{
	return ((struct relay_end *)arg)->pongs > 0;
}

static void
a_ping_is_answered_with_our_clocks(void **state)
{
	struct ports *p = *state;
	struct link_clock ping = { .kind = LINK_CLOCK_PING, .id = 77 }, pong;
	uint8_t clock[LINK_CLOCK_MAX], head[LINK_HEAD_MAX];
	struct link_frame f = { .clock = clock };
	uint64_t before = loop_boottime_ns(), then;
	struct relay_end r;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	f.clock_len = link_clock_put(clock, &ping);
	relay_end_frame(&r, head, link_put_head(head, &f));
	relay_end_wait(&r, has_pong, &r);
	assert_int_equal(link_clock_parse(&pong, r.pong, r.pong_len), 0);
	assert_int_equal(pong.kind, LINK_CLOCK_PONG);
	assert_int_equal(pong.id, 77);
	then = clock_snapshot_ns(&pong.host, CLOCK_ID_BOOTTIME);
	assert_in_range(then, before, loop_boottime_ns());
	end(&r);
}

static void
the_status_of_a_relay_is_kept(void **state)
{
	struct ports *p = *state;
	uint8_t head[LINK_HEAD_MAX];
	uint8_t status[] = { 1 << 3, 42 };
	struct link_frame f = { .status = status, .status_len = 2 };
	struct machine_counts counts;
	struct relay_end r;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	relay_end_frame(&r, head, link_put_head(head, &f));
	bring_producer(&r, 1);
	assert_int_equal(machine_of(&r)->contact.status_len, 2);
	assert_memory_equal(machine_of(&r)->contact.status, status, 2);
	machine_table_count(p->service->machines, &counts);
	assert_int_equal(counts.backlog.memory, 42);
	assert_int_equal(counts.backlog.spool, 0);
	end(&r);
}

/* What no reader can unpack would spoil the answer about all machines. */
static void
a_status_that_is_none_is_not_kept(void **state)
{
	struct ports *p = *state;
	uint8_t head[LINK_HEAD_MAX];
	/* memory_bytes of a fixed size; a `process` that ends too early. */
	uint8_t fixed[] = { 1 << 3 | 5, 1, 2, 3, 4 };
	uint8_t nested[] = { 10 << 3 | 2, 1, 1 << 3 };
	struct link_frame f = { .status = fixed, .status_len = sizeof(fixed) };
	struct relay_end r;

	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	relay_end_frame(&r, head, link_put_head(head, &f));
	f.status = nested;
	f.status_len = sizeof(nested);
	relay_end_frame(&r, head, link_put_head(head, &f));
	bring_producer(&r, 1);
	assert_int_equal(machine_of(&r)->contact.status_len, 0);
	end(&r);
}

/* ---- relays that break the protocol ---- */

/* The connection is closed, the link gone; another relay notices nothing. */
static void
expect_given_up(struct relay_end *r, struct relay_end *other)
{
	while (!r->c.closed)
		client_turn(&r->c);
	assert_int_equal(r->ports->service->links->n, 1);
	relay_end_cut(r);
	bring_producer(other, 1 + (uint32_t)other->sent);
	assert_int_equal(relay_end_open(r), GIVEN_UP);
	assert_int_equal(r->ports->service->n_producers, other->sent);
}

static void
a_relay_that_breaks_the_protocol_loses_its_link_alone(void **state)
{
	struct ports *p = *state;
	struct relay_end r, other;
	struct link_frame f = { 0 };
	uint8_t head[LINK_HEAD_MAX];
	struct pb_writer w;
	size_t len;

	p->settings.link.window_kb = 256;
	relay_end_init(&r, p, 1);
	relay_end_init(&other, p, 2);
	assert_int_equal(relay_end_open(&other), NEW);
	assert_int_equal(relay_end_open(&r), NEW);

	bring_producer(&r, 1);
	relay_end_frame(&r, "\x08", 1); /* cut off */
	expect_given_up(&r, &other);

	bring_producer(&r, 1);
	pb_writer_init(&w);
	block_put(&w, LINK_UP_TRIGGER, "t", 1);
	relay_end_up_as(&r, 7, 1, &w); /* a gap */
	expect_given_up(&r, &other);

	bring_producer(&r, 1);
	pb_writer_init(&w);
	block_put_open(&w, "again");
	relay_end_up(&r, 1, &w);
	expect_given_up(&r, &other);

	bring_producer(&r, 1);
	pb_writer_init(&w);
	pb_put_uint(&w, LINK_UP_COMMIT, 3); /* of the wrong type */
	relay_end_up(&r, 1, &w);
	expect_given_up(&r, &other);

	bring_producer(&r, 1);
	f.has_received = true;
	f.received = 99;
	relay_end_frame(&r, head, link_put_head(head, &f));
	expect_given_up(&r, &other);

	bring_producer(&r, 1);
	f = (struct link_frame){ .number = r.sent + 1, .channel = 1,
	    .compressed = true, .block = (const uint8_t *)"damage",
	    .len = 6, .raw_size = 12 };
	len = link_put_head(head, &f);
	memcpy(head + len, "damage", 6);
	relay_end_frame(&r, head, len + 6);
	expect_given_up(&r, &other);
	end(&r);
	relay_end_done(&other);
}

/* A relay whose one producer writes to a file that takes nothing. */
struct held {
	struct relay_end r;
	struct client cons;
	uint64_t enable; /* the call */
	uint32_t buffer;
	uint32_t chunks; /* sent */
	int disk;        /* what reads the file */
};

static void
hold(struct held *h, struct ports *p)
{
	int pipefd[2];

	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	h->disk = pipefd[0];
	h->chunks = 0;
	relay_end_init(&h->r, p, 1);
	assert_int_equal(relay_end_open(&h->r), NEW);
	bring_producer(&h->r, 1);
	client_open(&h->cons, p, CONSUMER);
	h->enable = client_enable(&h->cons, HELD_CONFIG, pipefd[1]);
	close(pipefd[1]);
	client_call(&h->cons, C_CAPABILITIES, NULL);
	h->buffer = first_session(p)->buffers[0].id;
}

static bool
is_closed(void *arg)
{
	return ((struct client *)arg)->closed;
}

/* The link is given up, and what was taken is written before. */
static void
expect_loss(struct held *h, struct ports *p)
{
	int i;

	for (i = 0; i < 500 && !h->r.c.closed; i++)
		relay_end_turn(&h->r);
	if (!h->r.c.closed)
		fail_msg("a relay sent more than its window, and goes on");
	assert_int_equal(p->service->links->n, 0);
	h->cons.disk = h->disk;
	while (p->service->n_producers > 0)
		client_turn(&h->cons);
	(void)client_send(&h->cons, C_DISABLE, NULL, -1);
	assert_true(client_wait(&h->cons, h->enable, 0)->ok);
	close(h->disk);
	client_close(&h->cons);
	end(&h->r);
}

/* What the relay may still send, once all has been taken. */
static uint64_t
credit(struct held *h)
{
	const struct ports *p = h->r.ports;
	const struct link *l = TAILQ_FIRST(&p->service->links->all);

	relay_end_settle(&h->r);
	return p->settings.link.window_kb * 1024 - (l->taken - l->consumed);
}

/* A block of so many bytes, 200 to 16000. */
static void
up_bytes(struct held *h, uint64_t bytes)
{
	static char name[16000];
	struct pb_writer w;

	pb_writer_init(&w);
	memset(name, 't', sizeof(name));
	/* A tag, and a length of two bytes. */
	block_put(&w, LINK_UP_TRIGGER, name, bytes - 3);
	assert_int_equal(w.len, bytes);
	relay_end_up(&h->r, 1, &w);
}

/* All but as much of the window as one more block takes. */
static void
fill_the_window(struct held *h)
{
	while (credit(h) > 16000)
		up_big(&h->r, 1, h->buffer, h->chunks++);
}

static void
the_last_byte_of_the_window_can_be_used(void **state)
{
	struct ports *p = *state;
	struct pb_writer w;
	struct held h;

	p->settings.link.window_kb = 256;
	hold(&h, p);
	fill_the_window(&h);
	up_bytes(&h, credit(&h));
	if (credit(&h) != 0)
		fail_msg("%llu bytes of the window are left",
		    (unsigned long long)credit(&h));
	/* And not one more. */
	pb_writer_init(&w);
	block_put_varint(&w, LINK_UP_STARTED, 1);
	relay_end_up(&h.r, 1, &w);
	expect_loss(&h, p);
}

static void
a_byte_more_than_the_window_loses_the_link(void **state)
{
	struct ports *p = *state;
	struct held h;

	p->settings.link.window_kb = 256;
	hold(&h, p);
	fill_the_window(&h);
	up_bytes(&h, credit(&h) + 1);
	expect_loss(&h, p);
}

/* What waits for a file in links of one peer, or of all, is counted. */
static void
fill_until_closed(struct ports *p, struct relay_end *r)
{
	struct held h;
	int i;

	hold(&h, p);
	for (i = 0; i < 100 && !h.r.c.closed; i++) {
		up_big(&h.r, 1, h.buffer, h.chunks++);
		client_turn(&h.r.c);
	}
	*r = h.r;
	ports_wait(&r->c, is_closed, &r->c);
	assert_int_equal(p->service->links->n, 0);
	close(h.disk);
	client_turn(&h.cons);
	(void)client_send(&h.cons, C_DISABLE, NULL, -1);
	(void)client_wait(&h.cons, h.enable, 0);
	while (p->service->n_producers > 0)
		client_turn(&h.cons);
	client_close(&h.cons);
}

static void
what_waits_counts_in_the_memory_of_its_peer(void **state)
{
	struct ports *p = *state;
	struct relay_end r;

	p->settings.limits.max_connection_memory_per_peer_kb = 256;
	fill_until_closed(p, &r);
	end(&r);
}

static void
what_waits_counts_in_the_memory_of_all(void **state)
{
	struct budget all = { .memory_max = 200000 };
	struct ports *p = *state;
	struct relay_end r;

	p->service->connection_memory = &all;
	fill_until_closed(p, &r);
	assert_int_equal(all.memory, 0);
	assert_int_equal(all.memory_refused, 1);
	p->service->connection_memory = NULL;
	end(&r);
}

static void
commands_beyond_their_limit_lose_the_link(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	char config[800];
	uint64_t id;

	p->settings.link.max_commands_kb = 1;
	relay_end_init(&r, p, 1);
	assert_int_equal(relay_end_open(&r), NEW);
	bring_producer(&r, 1);
	relay_end_cut(&r);
	snprintf(config, sizeof(config), "buffers { size_kb: 64 } "
	    "trace_all_machines: true data_sources { config { name: \"src\" "
	    "legacy_config: \"%0600d\" } }", 0);
	enable(&cons, p, &id, config);
	ports_wait(&cons, has_no_links, p);
	assert_int_equal(p->service->n_producers, 0);
	p->settings.link.max_commands_kb = 4096;
	assert_int_equal(relay_end_open(&r), GIVEN_UP);
	client_close(&cons);
	end(&r);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_new_link_is_told_what_is_agreed_on),
		T(calls_before_open_are_rejected_and_a_second_one_too),
		T(a_relay_on_a_unix_socket_says_which_machine_it_is),
		T(limits_refuse_links),
		T(a_link_of_somebody_else_is_refused),
		T(machines_of_two_uids_are_two),
		T(a_certificate_names_its_machine_and_nobody_is_no_root),
		T(what_a_relay_says_of_its_system_is_kept),
		T(a_collector_that_is_not_known_begins_anew),
		T(a_producer_of_a_link_is_traced),
		T(a_producer_of_a_link_is_told_to_clear_its_state),
		T(without_a_buffer_the_one_counts_that_was_registered),
		T(a_producer_too_many_is_refused_and_its_blocks_are_skipped),
		T(a_source_too_many_is_refused_by_name),
		T(a_closed_channel_is_gone),
		T(blocks_of_channels_that_never_began_are_skipped_and_consumed),
		T(a_cut_link_goes_on_where_it_was),
		T(what_is_said_during_a_cut_waits),
		T(what_was_not_acknowledged_is_said_again),
		T(after_the_grace_period_its_producers_are_gone),
		T(a_newer_connection_takes_the_link_over),
		T(a_relay_that_begins_anew_ends_what_it_had_before),
		T(an_open_that_was_overtaken_is_refused),
		T(an_answer_that_did_not_arrive_is_given_again),
		T(a_link_of_another_machine_begins_anew),
		T(a_turn_is_acknowledged_in_one_frame),
		T(a_file_that_is_behind_holds_back_one_channel_and_no_other),
		T(what_waits_when_the_grace_is_over_is_still_written),
		T(compressed_blocks_are_understood_also_after_a_cut),
		T(without_memory_for_it_blocks_come_plain),
		T(a_ping_is_answered_with_our_clocks),
		T(the_status_of_a_relay_is_kept),
		T(a_status_that_is_none_is_not_kept),
		T(a_relay_that_breaks_the_protocol_loses_its_link_alone),
		T(the_last_byte_of_the_window_can_be_used),
		T(a_byte_more_than_the_window_loses_the_link),
		T(what_waits_counts_in_the_memory_of_its_peer),
		T(what_waits_counts_in_the_memory_of_all),
		T(commands_beyond_their_limit_lose_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
