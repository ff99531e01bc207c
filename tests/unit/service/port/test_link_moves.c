/*
 * Relays that bring a link from another collector, and that leave for one, at
 * the real TributaryLink.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "service/ingest/former_ids.h"
#include "service/link/link.h"
#include "service/link/link_internal.h"
#include "tests/unit/service/port/relay_end.h"
#include "transport/base/budget.h"

#define MOVING_SOURCE(more)                                                    \
	"buffers { size_kb: 64 } trace_uuid_msb: 1 trace_uuid_lsb: 2 "          \
	"data_sources { config { name: \"src\" } " more "} "                   \
	"trace_all_machines: true "

enum {
	RESTARTED = TRIBUTARY__LINK_OPENED__WHY__COLLECTOR_RESTARTED,
	MOVES = TRIBUTARY__LINK_OPENED__WHY__MOVES,
	MOVED = TRIBUTARY__LINK_OPENED__WHY__MOVED,
};

/* Commands: fields of GetAsyncCommandResponse. */
enum { START = 1, STOP = 2, TRACING = 3, SETUP = 6, CLEAR = 7 };

/* Ids of the former collector. */
#define BUFFER   5u
#define INSTANCE 777u
/* The tag of the link here, and a buffer of ours under it. */
#define TAG 1u
#define TAGGED(buffer) (TAG << LINK_TAG_SHIFT | (buffer))

static struct session *
the_session(struct ports *p)
{
	struct session *s = TAILQ_FIRST(&p->service->sessions);

	assert_non_null(s);
	return s;
}

/* A session, and a relay whose first three blocks another collector took. */
static void
begin(struct ports *p, struct client *cons, struct relay_end *r,
    const char *config)
{
	client_open(cons, p, CONSUMER);
	(void)client_enable(cons, config, -1);
	assert_true(client_call(cons, C_CAPABILITIES, NULL)->ok);
	relay_end_init(r, p, 1);
	memset(r->collector_id, 0xc0, LINK_ID_BYTES);
	r->knows_collector = r->can_move = true;
	r->sent = r->acked = 3;
	r->received = 9;
	r->buffer_tag = TAG;
	r->consumed_before = 500;
	assert_int_equal(relay_end_open(r), MOVES);
}

static void
done(struct relay_end *r, struct client *cons)
{
	client_close(cons);
	r->ports->settings.link.grace_ms = 0;
	relay_end_done(r);
}

/* ---- what a LinkMove says ---- */

static void
put_producer(struct pb_writer *w, uint32_t channel)
{
	size_t mark;

	pb_writer_init(w);
	pb_put_uint(w, LinkMove_channel, channel);
	mark = pb_nest_begin(w, LinkMove_producer);
	pb_put_string(w, LinkProducer_name, "p");
	pb_nest_end(w, mark);
}

static void
put_source(struct pb_writer *w, const char *name)
{
	size_t mark = pb_nest_begin(w, LinkMove_register_source);

	pb_put_string(w, DataSourceDescriptor_name, name);
	pb_put_uint(w, DataSourceDescriptor_handles_incremental_state_clear, 1);
	pb_nest_end(w, mark);
}

/* s NULL: of a config that is not here. */
static void
put_buffer(struct pb_writer *w, uint32_t id, const struct session *s)
{
	static const uint8_t unknown[CONFIG_DIGEST_BYTES] = { 1 };
	size_t mark = pb_nest_begin(w, LinkMove_buffer);

	pb_put_uint(w, LinkMoveBuffer_id, id);
	pb_put_bytes(w, LinkMoveBuffer_session, s != NULL ? s->config->digest :
	    unknown, CONFIG_DIGEST_BYTES);
	pb_put_uint(w, LinkMoveBuffer_index, 0);
	pb_nest_end(w, mark);
}

static void
put_writer(struct pb_writer *w, uint32_t writer, uint32_t buffer)
{
	size_t mark = pb_nest_begin(w, LinkMove_register_writer);

	pb_put_uint(w, LinkWriter_writer, writer);
	pb_put_uint(w, LinkWriter_buffer, buffer);
	pb_nest_end(w, mark);
}

static void
put_instance(struct pb_writer *w, uint64_t id, uint32_t buffer,
    uint32_t source)
{
	size_t mark = pb_nest_begin(w, LinkMove_instance);

	pb_put_uint(w, LinkMoveInstance_id, id);
	pb_put_uint(w, LinkMoveInstance_buffer, buffer);
	pb_put_uint(w, LinkMoveInstance_source, source);
	pb_put_uint(w, LinkMoveInstance_started, 1);
	pb_put_uint(w, LinkMoveInstance_runs, 1);
	pb_nest_end(w, mark);
}

/* Channel 1: "src" runs for the session, writer 3 writes to its buffer. */
static void
move_producer(struct relay_end *r)
{
	struct pb_writer w;

	put_producer(&w, 1);
	put_buffer(&w, BUFFER, the_session(r->ports));
	put_writer(&w, 3, BUFFER);
	put_instance(&w, INSTANCE, BUFFER, 0);
	put_source(&w, "src");
	pb_put_uint(&w, LinkMove_consumed, 100);
	relay_end_move(r, &w);
}

/* One block with one packet; returns its length. */
static size_t
send_packet(struct relay_end *r, uint32_t channel, uint32_t buffer,
    uint16_t writer, uint32_t chunk, const char *text)
{
	struct pb_writer w;
	size_t len;

	pb_writer_init(&w);
	block_put_packet(&w, buffer, writer, chunk, text);
	len = w.len;
	relay_end_up(r, channel, &w);
	relay_end_settle(r);
	return len;
}

/* That a former collector was to have, as its machine's count says. */
static uint64_t
chunks_lost(struct relay_end *r)
{
	struct machine *m = machine_find(r->ports->service->machines,
	    r->opened->machine_id);

	assert_non_null(m);
	return m->contact.losses[
	    TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_COLLECTOR_RESTARTED].chunks;
}

/* ---- moving here ---- */

static void
a_data_source_goes_on_without_a_command(void **state)
{
	struct relay_end r;
	struct client cons;
	struct ds_instance *i;
	struct pb_field f;
	size_t len;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	assert_int_equal(r.opened->received, 3);
	assert_int_equal(r.opened->buffer_tag, TAG);
	assert_int_equal(r.opened->consumed_in_all, 500);
	i = TAILQ_FIRST(&the_session(*state)->instances);
	assert_non_null(i);
	assert_int_equal(i->id, INSTANCE);
	assert_int_equal(i->state, INSTANCE_STARTED);
	/* All that it hears. */
	relay_end_expect(&r, 1, LINK_DOWN_COMMAND, &f);
	assert_int_equal(f.data[0] >> 3, TRACING);
	relay_end_expect(&r, 1, LINK_DOWN_COMMAND, &f);
	assert_int_equal(f.data[0] >> 3, CLEAR);
	len = send_packet(&r, 1, 0, 3, 0, "of its writer");
	len += send_packet(&r, 1, BUFFER, 4, 0, "by its former id");
	len += send_packet(&r, 1, TAGGED(the_session(*state)->buffers[0].id), 5,
	    0, "by its id here");
	relay_end_turn(&r);
	assert_int_equal(r.received, 1);
	assert_int_equal(r.consumed[1], 100 + len);
	assert_int_equal(r.consumed_in_all, 500 + len);
	assert_int_equal(client_count_in_trace(&cons, "of its writer"), 1);
	assert_int_equal(client_count_in_trace(&cons, "id"), 0); /* taken */
	done(&r, &cons);
}

static void
a_channel_of_several_messages_was_consumed_once(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	struct pb_field f;
	size_t len, i;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	for (i = 0; i < 2; i++) {
		put_producer(&w, 1);
		put_instance(&w, INSTANCE + 1 + i, BUFFER, 5);
		pb_put_uint(&w, LinkMove_consumed, 100);
		relay_end_move(&r, &w);
	}
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	/* What no session has is stopped; one clear is enough for the rest. */
	relay_end_command(&r, 1, STOP, &f);
	relay_end_command(&r, 1, STOP, &f);
	relay_end_command(&r, 1, CLEAR, &f);
	assert_int_equal(r.pending_len, 0);
	len = send_packet(&r, 1, 0, 3, 0, "text");
	relay_end_turn(&r);
	assert_int_equal(r.consumed[1], 100 + len);
	assert_int_equal(r.received, 1);
	done(&r, &cons);
}

static void
producers_of_later_name_buffers_by_the_tag(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	struct pb_field f;
	size_t mark;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	pb_writer_init(&w);
	block_put_open(&w, "late");
	block_put_source(&w, "src");
	relay_end_up(&r, 2, &w);
	relay_end_command(&r, 2, SETUP, &f);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, LINK_UP_REGISTER_WRITER);
	pb_put_uint(&w, LinkWriter_writer, 7);
	pb_put_uint(&w, LinkWriter_buffer,
	    TAGGED(the_session(*state)->buffers[0].id));
	pb_nest_end(&w, mark);
	relay_end_up(&r, 2, &w);
	send_packet(&r, 2, 0, 7, 0, "late one");
	send_packet(&r, 2, TAGGED(the_session(*state)->buffers[0].id), 8, 0,
	    "late two");
	assert_int_equal(client_count_in_trace(&cons, "late "), 2);
	assert_int_equal(r.ports->service->counters.wrong_buffer, 0);
	done(&r, &cons);
}

/* A session that waits for its start, as its like at the former collector. */
static void
a_data_source_that_was_only_set_up_is_started(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	struct pb_field f;
	size_t mark;

	begin(*state, &cons, &r, MOVING_SOURCE("") "deferred_start: true ");
	put_producer(&w, 1);
	put_buffer(&w, BUFFER, the_session(*state));
	mark = pb_nest_begin(&w, LinkMove_instance);
	pb_put_uint(&w, LinkMoveInstance_id, INSTANCE);
	pb_put_uint(&w, LinkMoveInstance_buffer, BUFFER);
	pb_nest_end(&w, mark);
	put_source(&w, "src");
	relay_end_move(&r, &w);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	relay_end_expect(&r, 1, LINK_DOWN_COMMAND, &f);
	assert_int_equal(f.data[0] >> 3, TRACING);
	assert_true(client_call(&cons, C_START, NULL)->ok);
	relay_end_expect(&r, 1, LINK_DOWN_COMMAND, &f);
	assert_int_equal(f.data[0] >> 3, START);
	done(&r, &cons);
}

static void
what_is_told_again_in_a_block_changes_nothing(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	pb_writer_init(&w);
	block_put_open(&w, "p");
	block_put_source(&w, "src");
	relay_end_up(&r, 1, &w);
	send_packet(&r, 1, 0, 3, 0, "text");
	assert_int_equal(r.ports->service->n_producers, 1);
	assert_int_equal(the_session(*state)->n_instances, 1);
	assert_int_equal(r.received, 1); /* CLEAR alone */
	assert_int_equal(client_count_in_trace(&cons, "text"), 1);
	done(&r, &cons);
}

static void
what_no_session_has_is_stopped_and_its_data_told_as_lost(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	struct pb_field f;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	put_producer(&w, 2);
	put_buffer(&w, 6, NULL);
	put_writer(&w, 4, 6);
	put_instance(&w, 888, 6, 0);
	relay_end_move(&r, &w);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	relay_end_command(&r, 2, STOP, &f);
	send_packet(&r, 2, 6, 4, 0, "nowhere");
	send_packet(&r, 2, 0, 4, 1, "nowhere");
	assert_int_equal(client_count_in_trace(&cons, "nowhere"), 0);
	assert_int_equal(chunks_lost(&r), 2);
	assert_int_equal(r.ports->service->counters.wrong_buffer, 0);
	done(&r, &cons);
}

static void
data_of_a_session_that_has_ended_is_late_and_not_lost(void **state)
{
	struct relay_end r;
	struct client cons;
	struct service *s;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	s = r.ports->service;
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	assert_true(client_call(&cons, C_FREE, NULL)->ok);
	assert_int_equal(s->n_sessions, 0);
	send_packet(&r, 1, 0, 3, 0, "late");
	send_packet(&r, 1, BUFFER, 3, 1, "late");
	assert_int_equal(s->counters.chunks_late, 2);
	assert_int_equal(chunks_lost(&r), 0);
	done(&r, &cons);
}

static void
without_the_same_session_the_link_begins_anew(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	put_producer(&w, 1);
	put_buffer(&w, BUFFER, NULL);
	put_source(&w, "src");
	relay_end_move(&r, &w);
	assert_int_equal(relay_end_open_moved(&r), RESTARTED);
	assert_int_equal(r.opened->received, 0);
	assert_int_equal(r.ports->service->n_producers, 0);
	done(&r, &cons);
}

/* ---- hostile relays ---- */

/* A relay that knows the config of a session for another machine. */
static void
a_buffer_for_other_machines_cannot_be_written_to(void **state)
{
	struct relay_end r;
	struct client cons;

	begin(*state, &cons, &r, MOVING_SOURCE("machine_name_filter: \"x\" "));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	assert_int_equal(the_session(*state)->n_instances, 0);
	send_packet(&r, 1, BUFFER, 3, 0, "intruder");
	send_packet(&r, 1, 0, 3, 1, "intruder");
	send_packet(&r, 1, TAGGED(the_session(*state)->buffers[0].id), 3, 2,
	    "intruder");
	assert_int_equal(client_count_in_trace(&cons, "intruder"), 0);
	done(&r, &cons);
}

static void
a_buffer_for_other_producers_cannot_be_written_to(void **state)
{
	struct relay_end r;
	struct client cons;

	begin(*state, &cons, &r, MOVING_SOURCE("producer_name_filter: \"q\" "));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	send_packet(&r, 1, BUFFER, 3, 0, "intruder");
	assert_int_equal(client_count_in_trace(&cons, "intruder"), 0);
	done(&r, &cons);
}

static void
odd_channels_are_survived(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	uint32_t channel;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	/* Channel 0 has no producer; one without a name; one without all. */
	put_producer(&w, 0);
	put_buffer(&w, BUFFER, the_session(*state));
	put_instance(&w, INSTANCE, BUFFER, 0);
	put_source(&w, "src");
	pb_put_uint(&w, LinkMove_consumed, UINT64_MAX);
	relay_end_move(&r, &w);
	for (channel = 2; channel < 4; channel++) {
		pb_writer_init(&w);
		pb_put_uint(&w, LinkMove_channel, channel);
		if (channel == 2)
			put_instance(&w, 0, BUFFER, 0);
		pb_put_uint(&w, LinkMove_consumed, UINT64_MAX);
		relay_end_move(&r, &w);
	}
	r.consumed_before = UINT64_MAX;
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	send_packet(&r, 1, 0, 3, 0, "text");
	assert_int_equal(client_count_in_trace(&cons, "text"), 1);
	assert_int_equal(r.ports->service->n_producers, 3);
	done(&r, &cons);
}

static bool
is_closed(void *arg)
{
	return ((struct relay_end *)arg)->c.closed;
}

/* It is hung up on, and nothing of it is left. */
static void
expect_refused(struct relay_end *r, struct client *cons)
{
	relay_end_wait(r, is_closed, r);
	assert_int_equal(r->ports->service->links->n, 0);
	assert_int_equal(r->ports->service->n_producers, 0);
	done(r, cons);
}

static void
moves_that_do_not_parse_are_refused(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	pb_writer_init(&w);
	pb_put_raw(&w, "\x12\x7f", 2);
	relay_end_move(&r, &w);
	expect_refused(&r, &cons);
}

static void
an_open_that_moves_has_a_tag(void **state)
{
	struct relay_end r;
	struct client cons;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	r.buffer_tag = 0;
	assert_int_equal(relay_end_open_moved(&r), -1);
	relay_end_cut(&r);
	assert_int_equal(relay_end_open(&r), MOVES);
	move_producer(&r);
	r.buffer_tag = LINK_TAG_MAX + 1;
	assert_int_equal(relay_end_open_moved(&r), -1);
	expect_refused(&r, &cons);
}

static void
more_ids_than_a_producer_has_are_refused(void **state)
{
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	uint32_t i;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	put_producer(&w, 1);
	for (i = 0; i < FORMER_IDS_BUFFERS_MAX; i++)
		put_buffer(&w, 100 + i, NULL);
	relay_end_move(&r, &w);
	assert_int_equal(relay_end_open_moved(&r), -1);
	expect_refused(&r, &cons);
}

static void
moves_without_end_are_refused_though_each_is_empty(void **state)
{
	struct relay_end r;
	struct client cons;
	uint32_t i;

	begin(*state, &cons, &r, MOVING_SOURCE(""));
	for (i = 0; i <= LINK_MOVES_MAX / LINK_MOVE_COST; i++) {
		client_tell(&r.c, L_MOVE, "", 0);
		if (i % 256 == 0)
			relay_end_turn(&r);
	}
	expect_refused(&r, &cons);
}

static void
moves_that_wait_count_in_the_memory_of_all(void **state)
{
	struct ports *p = *state;
	struct budget memory = { .memory_max = 1000 };
	struct relay_end r;
	struct client cons;
	struct pb_writer w;
	static const uint8_t long_name[1000];

	begin(p, &cons, &r, MOVING_SOURCE(""));
	p->service->connection_memory = &memory;
	put_producer(&w, 1);
	relay_end_move(&r, &w);
	while (memory.memory == 0)
		relay_end_turn(&r);
	assert_true(memory.memory > LINK_MOVE_COST);
	put_producer(&w, 2);
	pb_put_bytes(&w, LinkMove_register_source, long_name,
	    sizeof(long_name));
	relay_end_move(&r, &w);
	relay_end_wait(&r, is_closed, &r);
	while (p->stats.n_conns > 1)
		relay_end_turn(&r);
	assert_int_equal(memory.memory_refused, 1);
	assert_int_equal(memory.memory, 0);
	done(&r, &cons);
	p->service->connection_memory = NULL;
}

/* ---- leaving ---- */

static bool
has_no_links(void *arg)
{
	return ((struct ports *)arg)->service->links->n == 0;
}

static void
leave(struct relay_end *r)
{
	struct pb_writer w;

	pb_writer_init(&w);
	block_put(&w, LINK_UP_LEAVE, "", 0);
	relay_end_up(r, 0, &w);
	relay_end_settle(r);
}

static void
a_relay_that_left_is_not_waited_for_and_may_come_back(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;

	begin(p, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	leave(&r);
	relay_end_cut(&r);
	ports_wait(&cons, has_no_links, p);
	assert_int_equal(p->service->n_producers, 0);
	/* By no loss that is none. */
	assert_int_equal(the_session(p)->n_instances, 0);
	assert_int_equal(relay_end_open(&r), MOVES);
	move_producer(&r);
	r.buffer_tag++;
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	assert_int_equal(r.opened->received, r.sent);
	done(&r, &cons);
}

static void
a_relay_that_went_on_has_not_left(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;

	begin(p, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	leave(&r);
	send_packet(&r, 1, 0, 3, 0, "text");
	relay_end_cut(&r);
	assert_int_equal(p->service->links->n, 1);
	assert_int_equal(relay_end_open(&r),
	    TRIBUTARY__LINK_OPENED__WHY__RESUMED);
	done(&r, &cons);
}

/* A block with it may have to wait for its turn. */
static void
a_relay_that_left_is_known_when_its_queue_is_done(void **state)
{
	static const uint8_t message[] = { LINK_UP_LEAVE << 3 | PB_BYTES, 0 };
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct link *l;

	begin(p, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	l = TAILQ_FIRST(&p->service->links->all);
	assert_int_equal(link_channel_queue(&l->own, message,
	    sizeof(message)), 0);
	relay_end_cut(&r);
	assert_int_equal(p->service->links->n, 1);
	link_channel_make_ready(&l->own);
	ports_wait(&cons, has_no_links, p);
	assert_int_equal(p->service->n_producers, 0);
	assert_int_equal(relay_end_open(&r), MOVES);
	done(&r, &cons);
}

static void
relays_are_asked_to_leave(void **state)
{
	struct ports *p = *state;
	struct relay_end r;
	struct client cons;
	struct pb_field f;

	begin(p, &cons, &r, MOVING_SOURCE(""));
	move_producer(&r);
	assert_int_equal(relay_end_open_moved(&r), MOVED);
	assert_int_equal(links_drain(p->service->links, true, 0), 0);
	relay_end_expect(&r, 0, LINK_DOWN_DRAIN, &f);
	assert_true(links_drains(p->service->links));
	assert_int_equal(links_drain(p->service->links, false, 0), 0);
	done(&r, &cons);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_data_source_goes_on_without_a_command),
		T(a_channel_of_several_messages_was_consumed_once),
		T(producers_of_later_name_buffers_by_the_tag),
		T(a_data_source_that_was_only_set_up_is_started),
		T(what_is_told_again_in_a_block_changes_nothing),
		T(what_no_session_has_is_stopped_and_its_data_told_as_lost),
		T(data_of_a_session_that_has_ended_is_late_and_not_lost),
		T(without_the_same_session_the_link_begins_anew),
		T(a_buffer_for_other_machines_cannot_be_written_to),
		T(a_buffer_for_other_producers_cannot_be_written_to),
		T(odd_channels_are_survived),
		T(moves_that_do_not_parse_are_refused),
		T(an_open_that_moves_has_a_tag),
		T(more_ids_than_a_producer_has_are_refused),
		T(moves_without_end_are_refused_though_each_is_empty),
		T(moves_that_wait_count_in_the_memory_of_all),
		T(a_relay_that_left_is_not_waited_for_and_may_come_back),
		T(a_relay_that_went_on_has_not_left),
		T(a_relay_that_left_is_known_when_its_queue_is_done),
		T(relays_are_asked_to_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
