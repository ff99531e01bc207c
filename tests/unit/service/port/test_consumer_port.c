#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/service/port/port_fixture.h"

#define RING "buffers { size_kb: 64 } "
#define SOURCE "data_sources { config { name: \"src\" } } "
#define ONE_SOURCE RING SOURCE

struct count_arg {
	struct service *s;
	size_t n;
};

static bool
sessions_are(void *arg)
{
	struct count_arg *a = arg;

	return a->s->n_sessions == a->n;
}

static void
wait_sessions(struct client *c, size_t n)
{
	struct count_arg a = { c->ports->service, n };

	ports_wait(c, sessions_are, &a);
}

static size_t
open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
calls_without_a_session_are_rejected_or_say_nothing(void **state)
{
	/* true: answered all the same. */
	static const bool ok[C_LAST + 1] = {
		[C_ENABLE] = true, [C_DISABLE] = true, [C_FREE] = true,
		[C_OBSERVE] = true, [C_STATE] = true, [C_CAPABILITIES] = true,
		[C_BUGREPORT] = true, [C_CLONE] = true,
	};
	struct client c;
	uint32_t m;

	client_open(&c, *state, CONSUMER);
	for (m = C_DISABLE; m <= C_LAST; m++)
		if (client_call(&c, m, NULL)->ok != ok[m])
			fail_msg("method %u", m);
	client_close(&c);
}

static bool
has_no_consumer(void *arg)
{
	return ((struct ports *)arg)->service->consumers.peers.n == 0;
}

static void
a_user_has_no_more_connections_than_the_limit_says(void **state)
{
	struct ports *p = *state;
	struct client a, b;

	p->settings.limits.max_consumers_per_uid = 1;
	client_open(&a, p, CONSUMER);
	assert_true(client_call(&a, C_CAPABILITIES, NULL)->ok);
	client_open(&b, p, CONSUMER);
	assert_false(client_call(&b, C_CAPABILITIES, NULL)->ok);
	client_close(&b);
	assert_true(client_call(&a, C_CAPABILITIES, NULL)->ok);
	client_close(&a);
	ports_wait(&a, has_no_consumer, p);
	client_open(&b, p, CONSUMER);
	assert_true(client_call(&b, C_CAPABILITIES, NULL)->ok);
	client_close(&b);
}

static void
arguments_that_do_not_parse_are_rejected_and_counted(void **state)
{
	static const uint32_t with_args[] = { C_ENABLE, C_FLUSH, C_CHANGE,
		C_DETACH, C_ATTACH, C_OBSERVE, C_STATE, C_CLONE };
	struct ports *p = *state;
	struct client c;
	struct pb_writer w;
	uint64_t call;
	size_t i;

	client_open(&c, p, CONSUMER);
	call = client_enable(&c, ONE_SOURCE, -1);
	for (i = 0; i < sizeof(with_args) / sizeof(with_args[0]); i++) {
		pb_writer_init(&w);
		pb_put_raw(&w, "\x0a\x7f", 2);
		assert_false(client_call(&c, with_args[i], &w)->ok);
		assert_int_equal(p->stats.bad_args, i + 1);
	}
	/* The session is untouched. */
	assert_int_equal(p->service->n_sessions, 1);
	assert_int_equal(client_count(&c, call), 0);
	client_close(&c);
}

static void
a_session_ends_when_its_consumer_disables_it(void **state)
{
	struct client c;
	struct pb_field f;
	const struct reply *r;
	uint64_t call;

	client_open(&c, *state, CONSUMER);
	call = client_enable(&c, ONE_SOURCE, -1);
	assert_true(client_call(&c, C_DISABLE, NULL)->ok);
	r = client_wait(&c, call, 0);
	assert_true(r->ok);
	assert_false(r->more);
	assert_true(reply_field(r, 1, &f));
	assert_int_equal(f.value, 1);
	assert_false(reply_field(r, 3, &f));
	assert_true(client_call(&c, C_DISABLE, NULL)->ok);
	assert_int_equal(client_count(&c, call), 1);
	/* Asked again for the end that was. */
	r = client_call(&c, C_ENABLE, args_uint(2, 1));
	assert_true(reply_field(r, 1, &f));
	client_close(&c);
}

static void
a_refused_config_says_why_and_leaves_no_session(void **state)
{
	struct ports *p = *state;
	struct client c;
	size_t before;
	int fd = memfd_create("x", MFD_CLOEXEC);

	client_open(&c, p, CONSUMER);
	before = open_descriptors();
	assert_true(reply_says(client_wait(&c, client_enable(&c,
	    "buffers { }", fd), 0), 3, "size_kb"));
	assert_true(reply_says(client_wait(&c, client_enable(&c,
	    ONE_SOURCE "trigger_config { trigger_mode: START_TRACING "
	    "trigger_timeout_ms: 9 triggers { name: \"t\" "
	    "producer_name_regex: \"(\" } } write_into_file: true", fd), 0),
	    3, "("));
	wait_sessions(&c, 0);
	assert_int_equal(open_descriptors(), before);
	/* The same consumer may try again. */
	(void)client_enable(&c, ONE_SOURCE, -1);
	wait_sessions(&c, 1);
	client_close(&c);
	close(fd);
}

static void
a_refused_session_leaves_no_file(void **state)
{
	struct ports *p = *state;
	struct client c;
	char path[128];

	client_open(&c, p, CONSUMER);
	assert_true(reply_says(client_wait(&c, client_enable(&c,
	    ONE_SOURCE "trigger_config { trigger_mode: START_TRACING "
	    "trigger_timeout_ms: 9 triggers { name: \"t\" "
	    "producer_name_regex: \"(\" } } write_into_file: true "
	    "output_path: \"refused\"", -1), 0), 3, "("));
	wait_sessions(&c, 0);
	snprintf(path, sizeof(path), "%s/refused", p->dir);
	assert_int_equal(access(path, F_OK), -1);
	client_close(&c);
}

static void
a_second_session_on_one_connection_is_refused(void **state)
{
	struct ports *p = *state;
	struct client c;
	uint64_t first;

	client_open(&c, p, CONSUMER);
	first = client_enable(&c, ONE_SOURCE, -1);
	assert_true(reply_says(client_wait(&c, client_enable(&c, ONE_SOURCE,
	    -1), 0), 3, "FreeBuffers"));
	assert_int_equal(client_count(&c, first), 0);
	assert_int_equal(p->service->n_sessions, 1);
	/* After FreeBuffers it may have another. */
	assert_true(client_call(&c, C_FREE, NULL)->ok);
	assert_true(client_wait(&c, first, 0)->ok);
	(void)client_enable(&c, ONE_SOURCE, -1);
	wait_sessions(&c, 1);
	client_close(&c);
}

static void
a_consumer_that_goes_takes_its_session_with_it(void **state)
{
	struct ports *p = *state;
	struct client c, d;

	client_open(&c, p, CONSUMER);
	client_open(&d, p, CONSUMER);
	(void)client_enable(&c, ONE_SOURCE, -1);
	wait_sessions(&c, 1);
	client_close(&c);
	wait_sessions(&d, 0);
	client_close(&d);
}

static void
descriptors_that_nobody_wants_are_closed(void **state)
{
	struct client c;
	size_t before;
	uint32_t m;
	int fd = memfd_create("x", MFD_CLOEXEC);

	client_open(&c, *state, CONSUMER);
	client_call(&c, C_CAPABILITIES, NULL);
	before = open_descriptors();
	for (m = C_DISABLE; m <= C_LAST; m++)
		client_wait(&c, client_send(&c, m, NULL, fd), 0);
	/* A config that asks for no file. */
	(void)client_enable(&c, ONE_SOURCE, fd);
	wait_sessions(&c, 1);
	assert_int_equal(open_descriptors(), before);
	client_close(&c);
	close(fd);
}

static void
a_detached_session_is_attached_by_its_key(void **state)
{
	struct ports *p = *state;
	struct client a, b;
	const struct reply *r;
	struct pb_field f;
	uint64_t call;

	client_open(&a, p, CONSUMER);
	client_open(&b, p, CONSUMER);
	call = client_enable(&a, ONE_SOURCE, -1);
	assert_false(client_call(&a, C_DETACH, args_string(1, ""))->ok);
	assert_true(client_call(&a, C_DETACH, args_string(1, "key"))->ok);
	assert_false(client_call(&a, C_DETACH, args_string(1, "key"))->ok);
	assert_false(client_call(&b, C_ATTACH, args_string(1, "no"))->ok);
	assert_false(client_call(&b, C_ATTACH, NULL)->ok);
	client_close(&a);
	r = client_call(&b, C_ATTACH, args_string(1, "key"));
	assert_true(r->ok);
	assert_true(reply_field(r, 1, &f));
	assert_true(f.len > 0);
	assert_false(client_call(&b, C_ATTACH, args_string(1, "key"))->ok);
	call = client_send(&b, C_ENABLE, args_uint(2, 1), -1);
	assert_true(client_call(&b, C_DISABLE, NULL)->ok);
	assert_true(client_wait(&b, call, 0)->ok);
	client_close(&b);
}

static void
a_key_in_use_is_refused(void **state)
{
	struct ports *p = *state;
	struct client a, b;

	client_open(&a, p, CONSUMER);
	client_open(&b, p, CONSUMER);
	(void)client_enable(&a, ONE_SOURCE, -1);
	(void)client_enable(&b, ONE_SOURCE, -1);
	assert_true(client_call(&a, C_DETACH, args_string(1, "key"))->ok);
	assert_false(client_call(&b, C_DETACH, args_string(1, "key"))->ok);
	assert_true(client_call(&b, C_DETACH, args_string(1, "other"))->ok);
	assert_true(client_call(&a, C_ATTACH, args_string(1, "other"))->ok);
	assert_true(client_call(&b, C_ATTACH, args_string(1, "key"))->ok);
	client_close(&a);
	client_close(&b);
}

static void
while_a_clone_is_made_there_is_no_other_session(void **state)
{
	struct ports *p = *state;
	struct client prod, a, b;
	uint64_t one, two, enable, attach;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&a, p, CONSUMER);
	client_open(&b, p, CONSUMER);
	(void)client_enable(&a, ONE_SOURCE "flush_timeout_ms: 50", -1);
	wait_sessions(&a, 1);
	/* The producer answers no flush: these wait for the time-out. */
	one = client_send(&b, C_CLONE, args_uint(1, 1), -1);
	two = client_send(&b, C_CLONE, args_uint(1, 1), -1);
	enable = client_enable(&b, ONE_SOURCE, -1);
	attach = client_send(&b, C_ATTACH, args_string(1, "k"), -1);
	assert_true(reply_says(client_wait(&b, two, 0), 2, "CloneSession"));
	assert_true(reply_says(client_wait(&b, enable, 0), 3,
	    "CloneSession"));
	assert_false(client_wait(&b, attach, 0)->ok);
	assert_true(client_wait(&b, one, 0)->ok);
	assert_int_equal(p->service->n_sessions, 2);
	client_close(&b);
	wait_sessions(&a, 1);
	client_close(&a);
	client_close(&prod);
}

static void
a_consumer_that_goes_while_a_clone_is_made_leaves_nothing(void **state)
{
	struct ports *p = *state;
	struct client prod, a, b;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&a, p, CONSUMER);
	client_open(&b, p, CONSUMER);
	(void)client_enable(&a, ONE_SOURCE "flush_timeout_ms: 50", -1);
	wait_sessions(&a, 1);
	(void)client_send(&b, C_CLONE, args_uint(1, 1), -1);
	client_call(&b, C_CAPABILITIES, NULL);
	client_close(&b);
	while (p->service->sessions.tqh_first->flushes_failed == 0)
		client_turn(&a);
	wait_sessions(&a, 1);
	client_close(&a);
	client_close(&prod);
}

/* ---- ReadBuffers ---- */

/* Fills the only session's first buffer with packets of 1000 bytes. */
static void
write_packets(struct client *prod, uint16_t buffer, uint32_t n)
{
	struct pb_writer w, chunk, packet;
	size_t mark, inner;
	char text[1000];
	uint32_t i;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < n; i++) {
		uint16_t writer = 1, count = 1;

		pb_writer_init(&packet);
		inner = pb_nest_begin(&packet, 900);
		pb_put_string(&packet, 1, text);
		pb_nest_end(&packet, inner);
		pb_writer_init(&chunk);
		pb_put_raw(&chunk, &i, 4);
		pb_put_raw(&chunk, &writer, 2);
		pb_put_raw(&chunk, &count, 2);
		pb_put_varint(&chunk, packet.len);
		pb_put_raw(&chunk, packet.data, packet.len);
		pb_writer_init(&w);
		mark = pb_nest_begin(&w, 1);
		pb_put_uint(&w, 3, buffer);
		pb_put_bytes(&w, 4, chunk.data, chunk.len);
		pb_nest_end(&w, mark);
		pb_writer_done(&packet);
		pb_writer_done(&chunk);
		assert_true(client_call(prod, P_COMMIT, &w)->ok);
		free(prod->replies[--prod->n_replies].msg);
	}
}

struct bench {
	struct ports *p;
	struct client prod, cons;
};

static void
bench_init(struct bench *b, void **state, const char *config, uint32_t n)
{
	b->p = *state;
	client_open(&b->prod, b->p, PRODUCER);
	client_initialize(&b->prod, "p");
	client_register(&b->prod, "src");
	client_open(&b->cons, b->p, CONSUMER);
	(void)client_enable(&b->cons, config, -1);
	wait_sessions(&b->cons, 1);
	write_packets(&b->prod,
	    TAILQ_FIRST(&b->p->service->sessions)->buffers[0].id, n);
}

static void
bench_done(struct bench *b)
{
	client_close(&b->cons);
	client_close(&b->prod);
}

/* Packets with text in all replies of a read; the last reply is waited for. */
static size_t
count_packets(struct client *c, uint64_t read)
{
	const struct reply *r;
	struct pb_reader rd, q;
	struct pb_field f, g;
	size_t n = 0, i;

	for (i = 0;; i++) {
		r = client_wait(c, read, i);
		assert_true(r->ok);
		pb_init(&rd, r->msg, r->len);
		while (pb_next(&rd, &f)) {
			pb_init(&q, f.data, f.len);
			while (pb_next(&q, &g))
				if (g.number == 1 && memmem(g.data, g.len,
				    "xxxxxxxx", 8) != NULL)
					n++;
		}
		if (!r->more)
			return n;
	}
}

static bool
is_full(void *arg)
{
	struct rpc_conn *c = arg;

	return rpc_conn_queued(c) >= 256 * 1024;
}

static void
a_reader_that_stops_holds_only_itself_up(void **state)
{
	struct bench b;
	struct rpc_conn *conn;
	uint64_t read;
	size_t i, queued;

	bench_init(&b, state, "buffers { size_kb: 4096 } " SOURCE, 2000);
	for (conn = b.p->stats.conns; rpc_conn_queued(conn) != 0;)
		fail();
	b.cons.deaf = true;
	read = client_send(&b.cons, C_READ, NULL, -1);
	/* The consumer's connection is the newest: first in the list. */
	ports_wait(&b.cons, is_full, conn);
	queued = rpc_conn_queued(conn);
	for (i = 0; i < 50; i++)
		client_turn(&b.cons);
	assert_int_equal(rpc_conn_queued(conn), queued);
	assert_true(queued < 512 * 1024);
	/* Others are served meanwhile. */
	assert_true(client_call(&b.prod, P_SYNC, NULL)->ok);
	b.cons.deaf = false;
	assert_int_equal(count_packets(&b.cons, read), 2000);
	bench_done(&b);
}

static void
a_reader_may_go_in_the_middle(void **state)
{
	struct bench b;

	bench_init(&b, state, "buffers { size_kb: 4096 } " SOURCE, 1000);
	b.cons.deaf = true;
	(void)client_send(&b.cons, C_READ, NULL, -1);
	client_turn(&b.cons);
	client_close(&b.cons);
	wait_sessions(&b.prod, 0);
	bench_done(&b);
}

static void
buffers_may_be_freed_in_the_middle_of_a_read(void **state)
{
	struct bench b;
	uint64_t read, done, i = 0;
	const struct reply *r;

	bench_init(&b, state, "buffers { size_kb: 4096 } " SOURCE, 2000);
	b.cons.deaf = true;
	read = client_send(&b.cons, C_READ, NULL, -1);
	done = client_send(&b.cons, C_FREE, NULL, -1);
	wait_sessions(&b.cons, 0);
	b.cons.deaf = false;
	assert_true(client_wait(&b.cons, done, 0)->ok);
	/* What was on its way comes, and then the end. */
	do
		r = client_wait(&b.cons, read, i++);
	while (r->ok && r->more);
	assert_false(r->ok);
	assert_false(client_call(&b.cons, C_READ, NULL)->ok);
	bench_done(&b);
}

/* By an operator: today's clients wait for ever for a read that is refused. */
static void
a_session_discarded_in_the_middle_of_a_read_ends_it(void **state)
{
	struct client operator;
	struct pb_writer w;
	struct bench b;
	uint64_t read, i = 0;
	const struct reply *r;

	bench_init(&b, state, "buffers { size_kb: 4096 } " SOURCE
	    "flush_timeout_ms: 1 ", 2000);
	client_open(&operator, b.p, CONTROL);
	b.cons.deaf = true;
	read = client_send(&b.cons, C_READ, NULL, -1);
	client_turn(&b.cons);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, b.p->service->last_session_id);
	pb_put_uint(&w, 4, 1); /* discard */
	(void)client_send(&operator, 5, &w, -1); /* StopSession */
	wait_sessions(&operator, 0);
	b.cons.deaf = false;
	do
		r = client_wait(&b.cons, read, i++);
	while (r->ok && r->more);
	assert_true(r->ok);
	assert_true(i > 1);
	assert_true(client_call(&b.cons, C_READ, NULL)->ok);
	client_close(&operator);
	bench_done(&b);
}

static void
a_second_read_while_one_goes_on_is_rejected(void **state)
{
	struct bench b;
	uint64_t read, again;

	bench_init(&b, state, "buffers { size_kb: 4096 } " SOURCE, 1000);
	read = client_send(&b.cons, C_READ, NULL, -1);
	again = client_send(&b.cons, C_READ, NULL, -1);
	assert_false(client_wait(&b.cons, again, 0)->ok);
	assert_int_equal(count_packets(&b.cons, read), 1000);
	assert_int_equal(count_packets(&b.cons, client_send(&b.cons, C_READ,
	    NULL, -1)), 0);
	bench_done(&b);
}

static void
a_session_detached_in_the_middle_of_a_read_can_be_read_on(void **state)
{
	struct bench b;
	struct client other;
	uint64_t read;
	const struct reply *r;
	size_t i = 0, n;

	bench_init(&b, state, "buffers { size_kb: 4096 } " SOURCE, 2000);
	b.cons.deaf = true;
	read = client_send(&b.cons, C_READ, NULL, -1);
	(void)client_send(&b.cons, C_DETACH, args_string(1, "k"), -1);
	client_turn(&b.cons);
	client_turn(&b.cons);
	b.cons.deaf = false;
	do
		r = client_wait(&b.cons, read, i++);
	while (r->ok && r->more);
	assert_false(r->ok);
	client_open(&other, b.p, CONSUMER);
	assert_true(client_call(&other, C_ATTACH, args_string(1, "k"))->ok);
	n = count_packets(&other, client_send(&other, C_READ, NULL, -1));
	assert_true(n > 0 && n < 2000);
	client_close(&other);
	bench_done(&b);
}

static void
a_session_with_a_file_or_a_trigger_to_come_is_not_read(void **state)
{
	static const char *const configs[] = {
		ONE_SOURCE "write_into_file: true output_path: \"f\"",
		ONE_SOURCE "trigger_config { trigger_mode: STOP_TRACING "
		    "trigger_timeout_ms: 3600000 triggers { name: \"t\" } }",
	};
	struct client c;
	const struct reply *r;
	uint64_t call;
	size_t i;

	client_open(&c, *state, CONSUMER);
	for (i = 0; i < 2; i++) {
		call = client_enable(&c, configs[i], -1);
		assert_false(client_call(&c, C_READ, NULL)->ok);
		assert_true(client_call(&c, C_DISABLE, NULL)->ok);
		assert_true(client_wait(&c, call, 0)->ok);
		/* Over: what is in the file is nowhere else, or empty. */
		r = client_call(&c, C_READ, NULL);
		assert_int_equal(r->ok, i == 1);
		assert_false(r->more);
		assert_int_equal(r->len, 0);
		assert_true(client_call(&c, C_FREE, NULL)->ok);
	}
	client_close(&c);
}

/* ---- the rest ---- */

static void
a_flush_answers_its_call_and_is_bounded_in_number(void **state)
{
	struct ports *p = *state;
	struct client prod, c;
	uint64_t first, last = 0;
	unsigned i;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&c, p, CONSUMER);
	assert_false(client_call(&c, C_FLUSH, NULL)->ok);
	(void)client_enable(&c, ONE_SOURCE, -1);
	/* Its time-out: nobody answers. */
	assert_false(client_call(&c, C_FLUSH, args_uint(1, 1))->ok);
	first = client_send(&c, C_FLUSH, args_uint(1, 3600000), -1);
	for (i = 1; i <= 16; i++)
		last = client_send(&c, C_FLUSH, args_uint(1, 3600000), -1);
	assert_false(client_wait(&c, last, 0)->ok);
	assert_int_equal(client_count(&c, first), 0);
	/* The producer goes: all are done. */
	client_close(&prod);
	assert_true(client_wait(&c, first, 0)->ok);
	assert_true(client_wait(&c, last - 1, 0)->ok);
	client_close(&c);
}

static void
flushes_end_with_their_session(void **state)
{
	struct ports *p = *state;
	struct client prod, c;
	uint64_t flush;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&c, p, CONSUMER);
	(void)client_enable(&c, ONE_SOURCE, -1);
	flush = client_send(&c, C_FLUSH, args_uint(1, 3600000), -1);
	assert_true(client_call(&c, C_FREE, NULL)->ok);
	assert_false(client_wait(&c, flush, 0)->ok);
	client_close(&c);
	client_close(&prod);
}

static void
a_deferred_start_is_started_once(void **state)
{
	struct client c;

	client_open(&c, *state, CONSUMER);
	(void)client_enable(&c, ONE_SOURCE "deferred_start: true", -1);
	assert_true(client_call(&c, C_START, NULL)->ok);
	assert_false(client_call(&c, C_START, NULL)->ok);
	client_close(&c);
}

static void
new_filters_let_another_producer_in(void **state)
{
	struct ports *p = *state;
	struct client a, b, c;
	struct pb_writer w, ds;
	size_t mark;

	client_open(&a, p, PRODUCER);
	client_initialize(&a, "a");
	client_register(&a, "src");
	client_register(&a, "two");
	client_open(&b, p, PRODUCER);
	client_initialize(&b, "b");
	client_register(&b, "src");
	client_open(&c, p, CONSUMER);
	assert_false(client_call(&c, C_CHANGE, NULL)->ok);
	(void)client_enable(&c, RING "data_sources { config { name: \"src\" } "
	    "producer_name_filter: \"a\" } data_sources { config { name: "
	    "\"two\" } producer_name_filter: \"none\" }", -1);
	wait_sessions(&c, 1);
	assert_int_equal(TAILQ_FIRST(&p->service->sessions)->n_instances, 1);
	/* src for b as well, and two for a, who has src already. */
	pb_writer_init(&ds);
	mark = pb_nest_begin(&ds, 2);
	pb_put_bytes(&ds, 1, "\x0a\x03src", 5);
	pb_put_string(&ds, 2, "b");
	pb_nest_end(&ds, mark);
	mark = pb_nest_begin(&ds, 2);
	pb_put_bytes(&ds, 1, "\x0a\x03two", 5);
	pb_put_string(&ds, 2, "a");
	pb_nest_end(&ds, mark);
	pb_writer_init(&w);
	pb_put_bytes(&w, 1, ds.data, ds.len);
	assert_true(client_call(&c, C_CHANGE, &w)->ok);
	assert_int_equal(TAILQ_FIRST(&p->service->sessions)->n_instances, 3);
	/* The same once more changes nothing. */
	pb_writer_init(&w);
	pb_put_bytes(&w, 1, ds.data, ds.len);
	assert_true(client_call(&c, C_CHANGE, &w)->ok);
	assert_int_equal(TAILQ_FIRST(&p->service->sessions)->n_instances, 3);
	pb_writer_done(&ds);
	client_close(&a);
	client_close(&b);
	client_close(&c);
}

static void
a_new_question_ends_the_old_stream_of_events(void **state)
{
	struct ports *p = *state;
	struct client prod, c;
	uint64_t one, two;
	const struct reply *r;
	struct pb_field f;

	client_open(&c, p, CONSUMER);
	one = client_send(&c, C_OBSERVE, args_uint(1, 3), -1);
	(void)client_enable(&c, ONE_SOURCE, -1);
	r = client_wait(&c, one, 0);
	assert_true(r->more);
	assert_true(reply_field(r, 1, &f));
	two = client_send(&c, C_OBSERVE, args_uint(1, 1), -1);
	client_call(&c, C_CAPABILITIES, NULL);
	assert_false(client_wait(&c, one, client_count(&c, one) - 1)->more);
	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	assert_true(reply_says(client_wait(&c, two, 0), 1, "src"));
	/* Asking for nothing ends it, and its own call. */
	r = client_call(&c, C_OBSERVE, NULL);
	assert_true(r->ok);
	assert_false(r->more);
	assert_false(client_wait(&c, two, client_count(&c, two) - 1)->more);
	client_close(&prod);
	client_close(&c);
}

static void
a_huge_source_config_kills_no_producer(void **state)
{
	struct ports *p = *state;
	struct client prod, c;
	struct pb_writer w, tc;
	size_t ds, cfg;
	uint64_t commands, call;
	char *big = calloc(1, 130900);

	memset(big, 'b', 130899);
	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	commands = client_send(&prod, P_COMMANDS, NULL, -1);
	client_open(&c, p, CONSUMER);
	pb_writer_init(&tc);
	pb_put_bytes(&tc, 1, "\x08\x40", 2);
	ds = pb_nest_begin(&tc, 2);
	cfg = pb_nest_begin(&tc, 1);
	pb_put_string(&tc, 1, "src");
	pb_put_string(&tc, 1000, big);
	pb_nest_end(&tc, cfg);
	pb_nest_end(&tc, ds);
	pb_writer_init(&w);
	pb_put_bytes(&w, 1, tc.data, tc.len);
	pb_writer_done(&tc);
	call = client_send(&c, C_ENABLE, &w, -1);
	assert_true(reply_says(client_wait(&c, call, 0), 3, "too large"));
	assert_true(client_call(&prod, P_SYNC, NULL)->ok);
	assert_int_equal(client_count(&prod, commands), 0);
	client_close(&prod);
	client_close(&c);
	free(big);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(calls_without_a_session_are_rejected_or_say_nothing),
		T(a_user_has_no_more_connections_than_the_limit_says),
		T(arguments_that_do_not_parse_are_rejected_and_counted),
		T(a_session_ends_when_its_consumer_disables_it),
		T(a_refused_config_says_why_and_leaves_no_session),
		T(a_refused_session_leaves_no_file),
		T(a_second_session_on_one_connection_is_refused),
		T(a_consumer_that_goes_takes_its_session_with_it),
		T(descriptors_that_nobody_wants_are_closed),
		T(a_detached_session_is_attached_by_its_key),
		T(a_key_in_use_is_refused),
		T(while_a_clone_is_made_there_is_no_other_session),
		T(a_consumer_that_goes_while_a_clone_is_made_leaves_nothing),
		T(a_reader_that_stops_holds_only_itself_up),
		T(a_reader_may_go_in_the_middle),
		T(buffers_may_be_freed_in_the_middle_of_a_read),
		T(a_session_discarded_in_the_middle_of_a_read_ends_it),
		T(a_second_read_while_one_goes_on_is_rejected),
		T(a_session_detached_in_the_middle_of_a_read_can_be_read_on),
		T(a_session_with_a_file_or_a_trigger_to_come_is_not_read),
		T(a_flush_answers_its_call_and_is_bounded_in_number),
		T(flushes_end_with_their_session),
		T(a_deferred_start_is_started_once),
		T(new_filters_let_another_producer_in),
		T(a_new_question_ends_the_old_stream_of_events),
		T(a_huge_source_config_kills_no_producer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
