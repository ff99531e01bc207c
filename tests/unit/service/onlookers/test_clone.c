#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/ingest/commit.h"
#include "service/ingest/session_losses.h"
#include "service/model/producer_walk.h"
#include "service/onlookers/clone.h"
#include "service/onlookers/session_command.h"
#include "service/output/readback.h"
#include "service/session/flush.h"
#include "tests/unit/dev_full.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/link/link_wire.h"
#include "transport/packet/packet_stats.h"

#define RING "buffers { size_kb: 64 } "
#define SOURCE "data_sources { config { name: \"src\" } } "
#define ONE_SOURCE RING SOURCE

struct answer {
	size_t calls;
	struct session *clone;
	bool was_file;
	char error[160];
};

static void
note(void *arg, struct session *clone, bool was_file, const char *error)
{
	struct answer *a = arg;

	a->calls++;
	a->clone = clone;
	a->was_file = was_file;
	snprintf(a->error, sizeof(a->error), "%s", error != NULL ? error : "");
}

static bool
is_told(void *arg)
{
	return ((struct answer *)arg)->calls > 0;
}

static struct clone_request
by_id(const struct session *s, int32_t uid)
{
	return (struct clone_request){ .session_id = s->id, .who = fake_user(uid),
	    .fd = -1 };
}

/* Asks for it, and waits for the answer. */
static void
clone_it(struct fixture *f, const struct clone_request *r, struct answer *a)
{
	memset(a, 0, sizeof(*a));
	clone_start(f->service, r, note, a);
	fixture_wait(f, is_told, a);
	assert_int_equal(a->calls, 1);
}

static void
a_clone_has_the_packets_and_the_source_goes_on(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "one");
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	assert_false(a.was_file);
	assert_int_equal(a.clone->uid, 1000);
	assert_int_equal(p.last_flush_flags, FLUSH_TRACE_CLONE);
	(void)fake_commit(&p, p.last_buffer, 1, 1, 2, "two");
	fake_read(a.clone, &t);
	assert_int_equal(fake_trace_count(&t, "one"), 1);
	assert_int_equal(fake_trace_count(&t, "two"), 0);
	fake_trace_done(&t);
	session_free(a.clone);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "one"), 1);
	assert_int_equal(fake_trace_count(&t, "two"), 1);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_clone_tells_the_losses_of_links_as_well(void **state)
{
	const struct link_loss loss = { .cause = 1, .chunks = 2, .packets = 3,
		.bytes = 40 };
	struct packet_link_loss told[2];
	struct fixture *f = *state;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	session_losses_add_to(c.s, 7, 5, "p", &loss);
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	/* The session loses more, and goes first. */
	session_losses_add_to(c.s, 7, 5, "p", &loss);
	session_free(c.s);
	assert_int_equal(session_losses_list(a.clone, told, 2), 1);
	assert_int_equal(told[0].machine, 7);
	assert_int_equal(told[0].sequence, 5);
	assert_int_equal(told[0].cause, 1);
	assert_int_equal(told[0].chunks, 2);
	assert_int_equal(told[0].packets, 3);
	assert_int_equal(told[0].bytes, 40);
	assert_string_equal(told[0].producer, "p");
	session_free(a.clone);
}

static uint32_t
sequence_of(const struct fake_trace *t, const char *str)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING &&
		    strcmp(t->packets[i]->for_testing->str, str) == 0)
			return t->packets[i]->trusted_packet_sequence_id;
	return 0;
}

static void
a_clone_introduces_the_machines_and_their_clocks_again(void **state)
{
	struct fixture *f = *state;
	struct machine *m = fake_machine(f, 7, "phone");
	struct producer_hello hello = { .name = "remote", .machine = m,
		.emulated = true };
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;
	size_t i, infos = 0, clocks = 0;

	fake_producer_hello(&p, f, &hello);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_int_equal(machine_set_clock_sync(m,
	    (const uint8_t *)"\x90\x06\x07\xda\x06\x00", 6), 0);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE
	    "trace_all_machines: true", -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "one");
	fake_read(c.s, &t);
	fake_trace_done(&t);
	(void)fake_commit(&p, p.last_buffer, 1, 1, 2, "two");
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	fake_read(a.clone, &t);
	for (i = 0; i < t.n; i++) {
		if (t.packets[i]->machine_id != 7)
			continue;
		infos += t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_SYSTEM_INFO;
		clocks += t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_REMOTE_CLOCK_SYNC;
	}
	assert_int_equal(infos, 1);
	assert_int_equal(clocks, 1);
	assert_int_equal(fake_trace_count(&t, "two"), 1);
	fake_trace_done(&t);
	session_free(a.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_clone_keeps_the_sequence_ids_but_has_a_uuid_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;
	uint32_t first, second;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "read before");
	(void)fake_commit(&p, p.last_buffer, 2, 0, 1, "also");
	fake_read(c.s, &t);
	first = sequence_of(&t, "read before");
	second = sequence_of(&t, "also");
	assert_int_not_equal(first, second);
	fake_trace_done(&t);
	(void)fake_commit(&p, p.last_buffer, 2, 1, 1, "b");
	(void)fake_commit(&p, p.last_buffer, 1, 1, 1, "a");
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	fake_read(a.clone, &t);
	assert_int_equal(sequence_of(&t, "a"), first);
	assert_int_equal(sequence_of(&t, "b"), second);
	fake_trace_done(&t);
	assert_true(a.clone->uuid_msb != c.s->uuid_msb ||
	    a.clone->uuid_lsb != c.s->uuid_lsb);
	session_free(a.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_clone_by_name_finds_the_running_session(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c, other;
	struct clone_request r = { .name = "mine", .who = fake_user(1000), .fd = -1 };
	struct answer a;

	assert_non_null(fake_enable(f, &other, ONE_SOURCE, -1));
	assert_non_null(fake_enable(f, &c, ONE_SOURCE
	    "unique_session_name: \"mine\" duration_ms: 3600000", -1));
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	assert_int_equal(a.clone->config->pb->duration_ms, 3600000);
	session_free(a.clone);
	r.name = "nobody's";
	clone_it(f, &r, &a);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "not found"));
	session_free(other.s);
	session_free(c.s);
}

static void
a_bugreport_takes_the_session_with_the_highest_score(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer none, low, high;
	struct clone_request r = { .for_bugreport = true, .who = fake_user(7), .fd = -1 };
	struct answer a;

	assert_non_null(fake_enable(f, &none, ONE_SOURCE, -1));
	clone_it(f, &r, &a);
	assert_null(a.clone);
	assert_non_null(fake_enable(f, &low, ONE_SOURCE "bugreport_score: 1 "
	    "unique_session_name: \"low\"", -1));
	assert_non_null(fake_enable(f, &high, ONE_SOURCE "bugreport_score: 9 "
	    "unique_session_name: \"high\"", -1));
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	assert_string_equal(a.clone->config->pb->unique_session_name, "high");
	session_free(a.clone);
	session_free(none.s);
	session_free(low.s);
	session_free(high.s);
}

static void
only_the_same_uid_root_or_a_bugreport_may_clone(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c, b;
	struct clone_request r;
	struct answer a, absent;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_non_null(fake_enable(f, &b, ONE_SOURCE "bugreport_score: 5",
	    -1));
	r = by_id(c.s, 1001);
	clone_it(f, &r, &a);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "not yours"));
	/* A session that is not there gets the very same answer. */
	r.session_id += 100;
	clone_it(f, &r, &absent);
	assert_null(absent.clone);
	assert_string_equal(a.error, absent.error);
	r = by_id(c.s, 1001);
	r.who = fake_user(0);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	session_free(a.clone);
	r = by_id(b.s, 1001);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	assert_int_equal(a.clone->uid, 1001);
	session_free(a.clone);
	session_free(c.s);
	session_free(b.s);
}

static void
a_clone_cannot_be_cloned(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a, b;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	r = by_id(a.clone, 1000);
	clone_it(f, &r, &b);
	assert_null(b.clone);
	session_free(a.clone);
	session_free(c.s);
}

static void
transfer_on_clone_takes_the_packets_away(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, "buffers { size_kb: 64 "
	    "transfer_on_clone: true } " SOURCE, -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "moved");
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 0);
	fake_trace_done(&t);
	(void)fake_commit(&p, p.last_buffer, 1, 1, 1, "later");
	fake_read(a.clone, &t);
	assert_int_equal(fake_trace_count(&t, "moved"), 1);
	assert_int_equal(fake_trace_count(&t, NULL), 1);
	fake_trace_done(&t);
	session_free(a.clone);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "later"), 1);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
clear_before_clone_keeps_what_the_flush_brings(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, "buffers { size_kb: 64 "
	    "clear_before_clone: true } " SOURCE, -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "old");
	r = by_id(c.s, 1000);
	clone_start(f->service, &r, note, &a);
	(void)fake_commit(&p, p.last_buffer, 1, 1, 1, "new");
	flush_ack(p.p, p.last_flush);
	fixture_wait(f, is_told, &a);
	fake_read(a.clone, &t);
	assert_int_equal(fake_trace_count(&t, "old"), 0);
	assert_int_equal(fake_trace_count(&t, "new"), 1);
	fake_trace_done(&t);
	session_free(a.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_failed_flush_still_gives_what_there_is(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "flush_timeout_ms: 10",
	    -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "here");
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	fake_read(a.clone, &t);
	assert_int_equal(fake_trace_count(&t, "here"), 1);
	fake_trace_done(&t);
	session_free(a.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_source_that_ends_meanwhile_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	r = by_id(c.s, 1000);
	clone_start(f->service, &r, note, &a);
	session_free(c.s);
	assert_int_equal(a.calls, 1);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "ended"));
	fake_producer_done(&p);
}

static void
a_consumer_that_is_gone_is_not_told_and_leaves_no_session(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	r = by_id(c.s, 1000);
	clone_start(f->service, &r, note, &a);
	clone_forget(f->service, &a);
	flush_ack(p.p, p.last_flush);
	assert_int_equal(a.calls, 0);
	assert_int_equal(f->service->n_sessions, 1);
	session_free(c.s);
	fake_producer_done(&p);
}

/* A full ring of 1 MiB, whose packets say their number; returns how many. */
static uint32_t
fill_ring(struct fake_producer *p, uint32_t from)
{
	char text[8000];
	uint32_t i, n = 256;

	memset(text, 'x', sizeof(text));
	for (i = from; i < from + n; i++) {
		snprintf(text, 16, "%06u", i);
		text[6] = 'x';
		text[sizeof(text) - 1] = '\0';
		assert_int_equal(fake_commit(p, p->last_buffer, 1, i, i + 1,
		    text), COMMIT_OK);
	}
	return n;
}

#define MEBIBYTE "buffers { size_kb: 1024 } " SOURCE

/* Asks for a clone of c's session, whose ring is full, and has it begin. */
static uint32_t
begin_clone(struct fixture *f, struct fake_producer *p, struct fake_consumer *c,
    struct answer *a)
{
	struct clone_request r;
	uint32_t n;

	memset(a, 0, sizeof(*a));
	fake_producer_init(p, f, "p", true);
	fake_producer_register(p, "src", false, false);
	assert_non_null(fake_enable(f, c, MEBIBYTE, -1));
	n = fill_ring(p, 0);
	r = by_id(c->s, 1000);
	clone_start(f->service, &r, note, a);
	assert_int_equal(f->service->n_sessions, 1);
	flush_ack(p->p, p->last_flush);
	/* It is there; its packets come in turns of the loop. */
	assert_int_equal(f->service->n_sessions, 2);
	assert_int_equal(a->calls, 0);
	return n;
}

static void
what_is_written_while_it_copies_changes_no_clone(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace before, t;
	struct answer a;
	uint32_t n, i;

	n = begin_clone(f, &p, &c, &a);
	n += fill_ring(&p, n);
	fixture_wait(f, is_told, &a);
	assert_non_null(a.clone);
	fake_read(a.clone, &before);
	/* Of 256 packets 130 are in a MiB: the last ones before it began. */
	for (i = 0; i < before.n; i++)
		if (before.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING)
			assert_true(strtoul(before.packets[i]->for_testing->str,
			    NULL, 10) < n / 2);
	i = (uint32_t)fake_trace_count(&before, NULL);
	assert_in_range(i, 120, 131);
	fake_trace_done(&before);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), i);
	fake_trace_done(&t);
	session_free(a.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

/* Others are served between the steps, so each takes little. */
static void
a_step_copies_a_quarter_of_a_mebibyte_and_a_chunk_at_most(void **state)
{
	uint64_t before = 0, reached, most = 256 * 1024 + 8192;
	const struct session *s;
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct answer a;
	unsigned turns = 0;

	(void)begin_clone(f, &p, &c, &a);
	s = TAILQ_LAST(&f->service->sessions, session_list);
	/* Else a turn has as many steps as a millisecond or two have room for. */
	loop_hold_back(f->loop, LOOP_HOLD_SLOW);
	for (;; before = reached) {
		reached = trace_buffer_memory(s->buffers[0].tb).reached;
		assert_in_range(reached, before, before + most);
		if (a.calls > 0)
			break;
		assert_true(turns++ < 1000);
		loop_run_once(f->loop);
	}
	assert_ptr_equal(a.clone, s);
	assert_in_range(reached, 3 * most, 1024 * 1024);
	session_free(a.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

static bool
is_alone(void *arg)
{
	return ((struct service *)arg)->n_sessions == 1;
}

static void
a_clone_that_nobody_waits_for_is_not_completed(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct answer a;

	(void)begin_clone(f, &p, &c, &a);
	clone_forget(f->service, &a);
	fixture_wait(f, is_alone, f->service);
	assert_int_equal(a.calls, 0);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_source_that_ends_while_it_is_copied_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct answer a;

	(void)begin_clone(f, &p, &c, &a);
	session_free(c.s);
	assert_int_equal(a.calls, 1);
	assert_null(a.clone);
	assert_int_equal(f->service->n_sessions, 0);
	fake_producer_done(&p);
}

static void
note_stop(void *arg, uint64_t id, const char *error)
{
	(void)id;
	assert_null(error);
	++*(size_t *)arg;
}

static void
a_command_discards_a_clone_that_is_being_copied(void **state)
{
	struct session_order o = { .verb = SESSION_DO_STOP, .discard = true,
		.who = fake_user(0) };
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct answer a;
	size_t stopped = 0;

	(void)begin_clone(f, &p, &c, &a);
	o.id = TAILQ_LAST(&f->service->sessions, session_list)->id;
	session_command(f->service, &o, note_stop, &stopped);
	fixture_wait(f, is_told, &a);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "discarded"));
	assert_int_equal(stopped, 1);
	assert_int_equal(f->service->n_sessions, 1);
	session_free(c.s);
	fake_producer_done(&p);
}

static bool
two_sessions(void *arg)
{
	return ((struct service *)arg)->n_sessions == 2;
}

/* It has more sources than are told of its end at once: its buffers go first. */
static void
a_large_source_that_ends_ends_its_clones_before_its_buffers(void **state)
{
	static struct fake_producer many[PRODUCER_WALK_TURN + 1];
	struct answer a = { 0 }, queued = { 0 };
	struct fixture *f = *state;
	struct fake_consumer c;
	struct clone_request r;
	size_t i;

	for (i = 0; i <= PRODUCER_WALK_TURN; i++) {
		fake_producer_init(&many[i], f, "one of many", true);
		many[i].ack_flushes = true;
		fake_producer_register(&many[i], "src", false, false);
	}
	loop_hold_back(f->loop, LOOP_HOLD_SLOW);
	assert_non_null(fake_enable(f, &c, MEBIBYTE, -1));
	(void)fill_ring(&many[0], 0);
	r = by_id(c.s, 1000);
	clone_start(f->service, &r, note, &a);
	fixture_wait(f, two_sessions, f->service);
	clone_start(f->service, &r, note, &queued);
	assert_int_equal(a.calls, 0);
	session_free(c.s);
	assert_int_equal(a.calls, 1);
	assert_non_null(strstr(a.error, "The session ended"));
	assert_int_equal(queued.calls, 1);
	assert_non_null(strstr(queued.error, "The session ended"));
	for (i = 0; i <= PRODUCER_WALK_TURN; i++)
		fake_producer_done(&many[i]);
}

static void
a_clone_that_is_discarded_while_it_is_made_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct answer a;

	(void)begin_clone(f, &p, &c, &a);
	session_free(TAILQ_LAST(&f->service->sessions, session_list));
	assert_int_equal(a.calls, 1);
	assert_null(a.clone);
	assert_int_equal(f->service->n_sessions, 1);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
clones_of_a_session_are_copied_one_after_the_other(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a, b = { 0 };

	(void)begin_clone(f, &p, &c, &a);
	p.ack_flushes = true;
	r = by_id(c.s, 1000);
	clone_start(f->service, &r, note, &b);
	fixture_wait(f, is_told, &b);
	assert_int_equal(a.calls, 1);
	assert_non_null(a.clone);
	assert_non_null(b.clone);
	session_free(a.clone);
	session_free(b.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

static bool
is_read(void *arg)
{
	const struct session *s = arg;

	return trace_buffer_unread(s->buffers[0].tb) == 0;
}

static void
a_clone_of_a_file_session_has_what_the_file_has_got(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "write_into_file: true "
	    "output_path: \"a\" file_write_period_ms: 100", -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "one");
	(void)fake_commit(&p, p.last_buffer, 1, 1, 2, "two");
	fixture_wait(f, is_read, c.s);
	(void)fake_commit(&p, p.last_buffer, 1, 2, 3, "three");
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	fake_read(a.clone, &t);
	assert_int_equal(fake_trace_count(&t, "one"), 1);
	assert_int_equal(fake_trace_count(&t, "two"), 1);
	assert_int_equal(fake_trace_count(&t, "three"), 1);
	fake_trace_done(&t);
	session_free(a.clone);
	fake_end(f, &c);
	fake_producer_done(&p);
}

static void
the_trigger_stands_before_all_other_events(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_trigger trigger = { .name = "crash", .producer_name = "p",
	    .producer_uid = 5, .boot_time_ns = 77 };
	struct clone_request r;
	struct answer a;
	size_t i;
	bool seen = false;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	r = by_id(c.s, 1000);
	r.trigger = &trigger;
	clone_it(f, &r, &a);
	fake_read(a.clone, &t);
	for (i = 0; i < t.n; i++) {
		if (t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_CLONE_SNAPSHOT_TRIGGER)
			seen = true;
		if (t.packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_SERVICE_EVENT)
			assert_true(seen);
	}
	assert_true(seen);
	fake_trace_done(&t);
	session_free(a.clone);
	session_free(c.s);
}

static void
a_clone_of_a_file_session_is_written_to_the_descriptor(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct clone_request r;
	struct answer a;
	char path[128];

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "write_into_file: true "
	    "output_path: \"a\"", -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "in both");
	snprintf(path, sizeof(path), "%s/clone", f->dir);
	r = by_id(c.s, 1000);
	r.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	clone_it(f, &r, &a);
	assert_non_null(a.clone);
	assert_true(a.was_file);
	fake_read_file(path, &t);
	assert_int_equal(fake_trace_count(&t, "in both"), 1);
	fake_trace_done(&t);
	session_free(a.clone);
	fake_end(f, &c);
	snprintf(path, sizeof(path), "%s/a", f->dir);
	fake_read_file(path, &t);
	assert_int_equal(fake_trace_count(&t, "in both"), 1);
	fake_trace_done(&t);
	fake_producer_done(&p);
}

static void
a_clone_whose_file_fails_is_an_error_and_the_source_lives(void **state)
{
	static char big[60000];
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a;
	uint32_t i;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, "buffers { size_kb: 2000 } " SOURCE
	    "write_into_file: true output_path: \"a\"", -1));
	/* More than is on its way to the disk at a time. */
	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 10; i++)
		assert_int_equal(fake_commit(&p, p.last_buffer, 1, i, 1, big),
		    COMMIT_OK);
	r = by_id(c.s, 1000);
	r.fd = dev_full_open();
	clone_it(f, &r, &a);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "space"));
	assert_int_equal(f->service->n_sessions, 1);
	fake_end(f, &c);
	assert_string_equal(c.error, "");
	fake_producer_done(&p);
}

static void
a_clone_counts_against_the_limits(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a;

	f->settings.limits.max_sessions = 1;
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	r = by_id(c.s, 1000);
	clone_it(f, &r, &a);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "max_sessions"));
	f->settings.limits.max_sessions = 9;
	/* 64 KiB are there, and 64 more do not fit. */
	f->settings.limits.max_total_buffer_kb = 100;
	clone_it(f, &r, &a);
	assert_null(a.clone);
	assert_non_null(strstr(a.error, "max_total_buffer_kb"));
	session_free(c.s);
}

static void
clones_asked_for_together_keep_the_limits_too(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct clone_request r;
	struct answer a = { 0 }, b = { 0 };

	f->settings.limits.max_sessions = 2;
	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	r = by_id(c.s, 1000);
	clone_start(f->service, &r, note, &a);
	clone_start(f->service, &r, note, &b);
	flush_ack(p.p, p.last_flush);
	fixture_wait(f, is_told, &a);
	fixture_wait(f, is_told, &b);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 1);
	assert_true((a.clone != NULL) != (b.clone != NULL));
	session_free(a.clone != NULL ? a.clone : b.clone);
	session_free(c.s);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_clone_has_the_packets_and_the_source_goes_on),
		T(a_clone_tells_the_losses_of_links_as_well),
		T(a_clone_introduces_the_machines_and_their_clocks_again),
		T(a_clone_keeps_the_sequence_ids_but_has_a_uuid_of_its_own),
		T(a_clone_by_name_finds_the_running_session),
		T(a_bugreport_takes_the_session_with_the_highest_score),
		T(only_the_same_uid_root_or_a_bugreport_may_clone),
		T(a_clone_cannot_be_cloned),
		T(transfer_on_clone_takes_the_packets_away),
		T(clear_before_clone_keeps_what_the_flush_brings),
		T(a_failed_flush_still_gives_what_there_is),
		T(a_source_that_ends_meanwhile_is_an_error),
		T(a_consumer_that_is_gone_is_not_told_and_leaves_no_session),
		T(what_is_written_while_it_copies_changes_no_clone),
		T(a_step_copies_a_quarter_of_a_mebibyte_and_a_chunk_at_most),
		T(a_clone_that_nobody_waits_for_is_not_completed),
		T(a_source_that_ends_while_it_is_copied_is_an_error),
		T(a_large_source_that_ends_ends_its_clones_before_its_buffers),
		T(a_command_discards_a_clone_that_is_being_copied),
		T(a_clone_that_is_discarded_while_it_is_made_is_an_error),
		T(clones_of_a_session_are_copied_one_after_the_other),
		T(a_clone_of_a_file_session_has_what_the_file_has_got),
		T(the_trigger_stands_before_all_other_events),
		T(a_clone_of_a_file_session_is_written_to_the_descriptor),
		T(a_clone_whose_file_fails_is_an_error_and_the_source_lives),
		T(a_clone_counts_against_the_limits),
		T(clones_asked_for_together_keep_the_limits_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
