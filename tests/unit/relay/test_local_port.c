#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/relay/local_fixture.h"

static void
a_producer_is_served_without_a_collector(void **state)
{
	struct locals *t = *state;
	struct client c;
	const struct reply *r;
	struct pb_field f;

	client_open(&c, t, false);
	r = client_call(&c, P_INITIALIZE, args_string(3, "p"));
	assert_true(r->ok);
	assert_int_equal(uint_in(r->msg, r->len, 2), 1);
	assert_int_equal(uint_in(r->msg, r->len, 3), 0);
	client_register(&c, "ds", false, true);
	assert_int_equal(t->n_said, 0);

	producers_announce(t->producers, 0);
	assert_int_equal(t->n_said, 2);
	assert_int_equal(t->said[0].kind, LINK_UP_OPEN);
	assert_int_equal(t->said[0].channel, 1);
	assert_true(has_field(t->said[0].data, t->said[0].len, 1, &f));
	assert_memory_equal(f.data, "p", 1);
	assert_int_equal(uint_in(t->said[0].data, t->said[0].len, 2),
	    getpid());
	assert_int_equal(t->said[1].kind, LINK_UP_REGISTER_SOURCE);
	client_close(&c);
	assert_int_equal(said_next(t, LINK_UP_CLOSE)->channel, 1);
}

static void
a_producer_that_comes_later_is_announced_by_itself(void **state)
{
	struct locals *t = *state;
	struct client c;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	assert_int_equal(said_next(t, LINK_UP_OPEN)->channel, 1);
	assert_int_equal(said_next(t, LINK_UP_REGISTER_SOURCE)->channel, 1);
	client_close(&c);
}

static void
an_instance_gets_ids_of_the_relay_and_nothing_else_is_changed(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct pb_field f, config, g;
	struct pb_reader r;
	uint32_t order[6];
	size_t n = 0;
	int fd;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	assert_int_equal(client_command(&c, &f, &fd), 3);
	assert_true(fd >= 0);
	assert_int_equal(client_command(&c, &f, &fd), 6);
	assert_int_equal(uint_in(f.data, f.len, 1), 1);
	assert_true(has_field(f.data, f.len, 2, &config));
	pb_init(&r, config.data, config.len);
	while (pb_next(&r, &g)) {
		assert_true(n < 6);
		order[n++] = g.number;
	}
	assert_int_equal(n, 5);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 777);
	assert_int_equal(order[2], 2);
	assert_int_equal(order[3], 4);
	assert_int_equal(order[4], 999);
	assert_int_equal(uint_in(config.data, config.len, 777), 42);
	assert_int_equal(uint_in(config.data, config.len, 2), 1);
	assert_int_equal(uint_in(config.data, config.len, 4), 9);
	assert_int_equal(client_command(&c, &f, &fd), 1);

	/* A second session: neither memory nor ids come twice. */
	up_start(t, 1, 778, 10, 4243, "ds");
	assert_int_equal(client_command(&c, &f, &fd), 6);
	assert_int_equal(uint_in(f.data, f.len, 1), 2);
	assert_true(has_field(f.data, f.len, 2, &config));
	assert_int_equal(uint_in(config.data, config.len, 2), 2);

	assert_true(client_call(&c, P_STARTED, args_uint(1, 1))->ok);
	assert_true(client_call(&c, P_STARTED, args_uint(1, 1))->ok);
	assert_int_equal(said_next(t, LINK_UP_STARTED)->value, 777);
	assert_int_equal(said_count(t, LINK_UP_STARTED), 1);
	client_close(&c);
}

static void
a_chunk_goes_up_once_with_the_collectors_buffer(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	const struct said *said;
	struct shm_slot slot;
	struct up_chunk up;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(&c);
	assert_true(client_call(&c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	said = said_next(t, LINK_UP_REGISTER_WRITER);
	assert_int_equal(uint_in(said->data, said->len, 2), 4242);
	slot = client_chunk(&c, 3, 0, "hello", true);
	client_commit(&c, &slot, s.buffer);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.buffer, 4242);
	assert_false(up.incomplete);
	assert_int_equal(up.chunk.writer_id, 3);
	assert_int_equal(up.chunk.num_fragments, 1);
	/* Without what follows the packet in its page. */
	assert_int_equal(up.chunk.len, 6);
	assert_memory_equal(up.chunk.payload, "\005hello", 6);
	/* The page is free again. */
	slot = client_chunk(&c, 3, 1, "again", true);
	client_commit(&c, &slot, s.buffer);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	client_close(&c);
}

static void
a_flush_is_acknowledged_behind_what_is_in_memory(void **state)
{
	struct locals *t = *state;
	const uint64_t instances[] = { 777 };
	struct pb_writer w;
	struct client c;
	struct started s;
	struct shm_slot slot;
	struct pb_field f;
	struct up_chunk up;
	uint64_t id;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(&c);
	assert_true(client_call(&c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	slot = client_chunk(&c, 3, 0, "one", true);
	up_flush(t, 1, 55, instances, 1);
	assert_int_equal(client_command(&c, &f, NULL), 5);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	assert_int_equal(uint_in(f.data, f.len, 3), 5);
	id = uint_in(f.data, f.len, 2);
	assert_int_equal(id, 1);
	pb_writer_init(&w);
	pb_put_uint(&w, 3, id);
	assert_true(client_call(&c, P_COMMIT, &w)->ok);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_memory_equal(up.chunk.payload, "\003one", 4);
	assert_false(up.incomplete);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	/* It was scraped: its commit brings nothing new. */
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 1);
	client_close(&c);
}

static void
what_is_lost_upward_looks_like_the_end_of_the_session(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	struct shm_slot slot;
	struct pb_field f;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(&c);
	slot = client_chunk(&c, 3, 0, "one", true);
	producers_lost(t->producers, 0, 5);
	assert_int_equal(client_command(&c, &f, NULL), 2);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	said_forget(t);
	assert_true(client_call(&c, P_STOPPED, args_uint(1, s.id))->ok);
	client_commit(&c, &slot, s.buffer);
	client_register(&c, "other", false, false);
	assert_int_equal(t->n_said, 0);

	/* The next collector's ids do not meet the old ones. */
	producers_announce(t->producers, 0);
	assert_int_equal(said_count(t, LINK_UP_OPEN), 1);
	assert_int_equal(said_count(t, LINK_UP_REGISTER_SOURCE), 2);
	up_start(t, 1, 777, 9, 4242, "ds");
	assert_int_not_equal(client_started(&c).buffer, s.buffer);
	slot = client_chunk(&c, 3, 1, "two", true);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 0);
	client_close(&c);
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, locals_setup, locals_teardown)
	const struct CMUnitTest tests[] = {
		T(a_producer_is_served_without_a_collector),
		T(a_producer_that_comes_later_is_announced_by_itself),
		T(an_instance_gets_ids_of_the_relay_and_nothing_else_is_changed),
		T(a_chunk_goes_up_once_with_the_collectors_buffer),
		T(a_flush_is_acknowledged_behind_what_is_in_memory),
		T(what_is_lost_upward_looks_like_the_end_of_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
