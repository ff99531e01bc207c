/* libtributary at a relay, from setup to the last stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>
#include <cmocka.h>

#include "client/tunnel/producer_loop.h"
#include "tests/unit/relay/producers/local_fixture.h"
#include "transport/connect/listener.h"
#include "transport/socket/addr.h"

#define PACKETS 5000u
/* TracePacket.for_testing, a message, with a number and padding in it. */
#define FOR_TESTING 900u

struct world {
	struct locals *t;
	struct listener *listener;
	struct producer_loop *producer;
	struct tributary_instance *instance;
	bool ready;
	uint32_t written;
};

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	locals_accept(((struct world *)arg)->t, fd);
}

/* The source is registered once in a process. */
static struct world *now;

static bool
setup_cb(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	assert_int_equal(uint_in(config, len, 777), 42);
	now->instance = i;
	return true;
}

static void
put_packet(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	const struct world *w = arg;
	char padding[700];

	memset(padding, 'p', sizeof(padding));
	tributary_begin(p, FOR_TESTING);
	tributary_put_uint(p, 1, w->written);
	/* Some go over several chunks. */
	tributary_put_bytes(p, 2, padding, w->written % sizeof(padding));
	tributary_end(p);
}

static void
write_some(struct world *w, uint32_t n)
{
	while (n-- > 0) {
		assert_true(tributary_instance_write(w->instance, put_packet,
		    w));
		w->written++;
	}
}

static bool
stop_cb(struct tributary_instance *i, void *context)
{
	write_some(now, 1);
	return true;
}

static void
changed_cb(void *arg, bool connected, const char *text)
{
	((struct world *)arg)->ready = connected;
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.setup = setup_cb,
	.stop = stop_cb,
};

static void
add_source(void)
{
	static const struct tributary_source_options o = {
		.size = sizeof(o),
		.name = "ds",
		.full = TRIBUTARY_FULL_DROP,
	};
	static bool added;

	if (!added)
		assert_non_null(tributary_source_add(&o, &ops));
	added = true;
}

/* Numbers of the packets in what went up, from a chunk to the next. */
struct reader {
	uint8_t part[4096];
	size_t len;
	uint32_t next;
	uint32_t chunk;
};

static void
take_packet(struct reader *r)
{
	struct pb_field f;

	assert_true(has_field(r->part, r->len, FOR_TESTING, &f));
	assert_int_equal(uint_in(f.data, f.len, 1), r->next++);
	r->len = 0;
}

static void
take_chunk(struct reader *r, const struct said *s)
{
	struct up_chunk up;
	struct pb_reader p;
	uint64_t n;
	unsigned i;

	said_chunk(s, &up);
	assert_int_equal(up.buffer, 4242);
	assert_false(up.incomplete);
	assert_int_equal(up.chunk.chunk_id, r->chunk++);
	pb_init(&p, up.chunk.payload, up.chunk.len);
	for (i = 0; i < up.chunk.num_fragments; i++) {
		if (i == 0 && (up.chunk.flags &
		    SHM_FIRST_CONTINUES_FROM_PREV) == 0)
			assert_int_equal(r->len, 0);
		n = 0;
		p.p = pb_varint(p.p, p.end, &n);
		assert_non_null(p.p);
		assert_true(n <= (size_t)(p.end - p.p));
		assert_true(r->len + n <= sizeof(r->part));
		memcpy(r->part + r->len, p.p, n);
		r->len += n;
		p.p += n;
		if (i + 1u < up.chunk.num_fragments || (up.chunk.flags &
		    SHM_LAST_CONTINUES_ON_NEXT) == 0)
			take_packet(r);
	}
	/* Nothing goes up but what is used. */
	assert_ptr_equal(p.p, p.end);
}

static void
run(struct locals *t, const char *where)
{
	static const uint64_t instances[] = { 777 };
	struct world w = { .t = t };
	struct producer_loop_setup o = { .name = "lib", .changed = changed_cb,
	    .arg = &w };
	struct reader r = { .len = 0 };
	const struct said *s;
	struct addr a;
	char err[200], text[ADDR_TEXT_MAX];
	size_t at;
	uint32_t i;

	assert_int_equal(addr_parse(&a, where, err, sizeof(err)), 0);
	w.listener = listener_new(t->loop, &(struct listener_setup){ .addr = &a,
	    .fn = accept_cb, .arg = &w }, err, sizeof(err));
	assert_non_null(w.listener);
	if (a.kind == ADDR_TCP) {
		snprintf(text, sizeof(text), "127.0.0.1:%d",
		    listener_port(w.listener));
		assert_int_equal(addr_parse(&a, text, err, sizeof(err)), 0);
	}
	o.address = &a;
	now = &w;
	add_source();
	w.producer = producer_loop_new(t->loop, &o);
	assert_non_null(w.producer);
	producers_announce(t->producers, 0);
	said_next(t, LINK_UP_REGISTER_SOURCE);
	up_start(t, 1, 777, 9, 4242, "ds");
	said_next(t, LINK_UP_STARTED);
	for (i = 0; i < PACKETS / 50; i++) {
		write_some(&w, 50);
		loop_run_once(t->loop);
		loop_run_once(t->loop);
	}
	up_flush(t, 1, 55, instances, 1);
	do {
		s = said_next(t, LINK_UP_COMMIT);
		if (s->is_data)
			take_chunk(&r, s);
	} while (said_flush(s) != 55);
	assert_int_equal(r.next, PACKETS);
	up_stop(t, 1, 777);
	/* What it wrote at the very end is before its word. */
	at = t->seen;
	assert_int_equal(said_next(t, LINK_UP_STOPPED)->value, 777);
	for (; t->said[at].kind != LINK_UP_STOPPED; at++)
		if (t->said[at].is_data)
			take_chunk(&r, &t->said[at]);
	assert_int_equal(r.next, PACKETS + 1);
	producer_loop_free(w.producer, 1);
	said_next(t, LINK_UP_CLOSE);
	listener_free(w.listener);
	assert_int_equal(t->n_losses, 0);
}

static void
all_packets_go_up_through_shared_memory(void **state)
{
	char where[96];

	snprintf(where, sizeof(where), "%s/sock",
	    ((struct locals *)*state)->dir);
	run(*state, where);
}

static void
all_packets_go_up_as_data(void **state)
{
	run(*state, "127.0.0.1:0");
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, locals_setup, locals_teardown)
	const struct CMUnitTest tests[] = {
		T(all_packets_go_up_through_shared_memory),
		T(all_packets_go_up_as_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
