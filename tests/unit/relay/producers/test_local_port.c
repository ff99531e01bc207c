#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/producers/producers_internal.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/relay/producers/local_fixture.h"

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
who_comes_and_goes_while_upward_is_away_leaves_nothing_there(void **state)
{
	struct locals *t = *state;
	struct client c;
	unsigned i;

	producers_announce(t->producers, 0);
	producers_away(t->producers);
	for (i = 0; i < 100; i++) {
		client_ready(&c, t, "p");
		client_close(&c);
	}
	assert_int_equal(t->n_said, 0);
	client_ready(&c, t, "stays");
	assert_int_equal(t->n_said, 0);
	producers_announce(t->producers, 0);
	assert_int_equal(said_next(t, LINK_UP_OPEN)->channel, 101);
	assert_int_equal(said_next(t, LINK_UP_REGISTER_SOURCE)->channel, 101);
	client_close(&c);
}

static void
triggers_go_up_while_upward_is_away_but_not_without_end(void **state)
{
	struct locals *t = *state;
	struct client c;
	unsigned i;

	producers_announce(t->producers, 0);
	producers_away(t->producers);
	for (i = 0; i < 100; i++) {
		client_ready(&c, t, "p");
		assert_true(client_call(&c, P_TRIGGERS,
		    args_string(1, "now"))->ok);
		client_close(&c);
	}
	assert_int_equal(said_next(t, LINK_UP_TRIGGER)->channel, 1);
	assert_int_equal(said_count(t, LINK_UP_TRIGGER), 64);
	assert_int_equal(said_count(t, LINK_UP_OPEN), 64);
}

static void
one_that_talks_while_upward_is_away_waits_until_it_is_back(void **state)
{
	struct locals *t = *state;
	struct client c, d;
	struct pb_writer w;
	uint64_t last = 0;
	char *text = calloc(1, 90001);
	size_t mark;
	int i;

	assert_non_null(text);
	memset(text, 'x', 90000);
	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	client_ready(&d, t, "q");
	producers_away(t->producers);
	for (i = 0; i < 3; i++) {
		text[0] = (char)('a' + i);
		pb_writer_init(&w);
		mark = pb_nest_begin(&w, 1);
		pb_put_string(&w, 1, "ds");
		pb_put_string(&w, 500, text);
		pb_nest_end(&w, mark);
		last = client_send(&c, P_UPDATE, &w, -1);
		client_sync(&d);
	}
	for (i = 0; i < 20; i++)
		client_sync(&d);
	assert_int_equal(said_count(t, LINK_UP_UPDATE_SOURCE), 1);
	producers_announce(t->producers, 0);
	client_pass_time = fake_time_tick;
	assert_true(client_wait(&c, last, 0)->ok);
	client_pass_time = NULL;
	assert_int_equal(said_count(t, LINK_UP_UPDATE_SOURCE), 3);
	client_close(&c);
	client_close(&d);
	free(text);
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

static void
what_stands_in_memory_when_a_link_is_lost_goes_up_to_be_counted(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	struct shm_slot slot;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(&c);
	assert_true(client_call(&c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	slot = client_chunk(&c, 3, 0, "one", true);
	producers_lost(t->producers, 0, 5);
	assert_int_equal(said_chunks(t), 1);
	/* Once. */
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 1);
	assert_int_equal(client_chunk(&c, 3, 1, "two", true).page, 1);
	client_close(&c);
}

static void
nothing_is_served_before_initialize_connection(void **state)
{
	struct locals *t = *state;
	struct client c;
	uint32_t m;

	client_open(&c, t, false);
	for (m = P_REGISTER; m <= P_LAST; m++)
		assert_false(client_call(&c, m, NULL)->ok);
	assert_true(client_call(&c, P_INITIALIZE, args_string(3, "p"))->ok);
	assert_false(client_call(&c, P_INITIALIZE, args_string(3, "p"))->ok);
	assert_int_equal(producers_count(t->producers), 1);
	client_close(&c);
}

static void
arguments_that_do_not_parse_are_refused(void **state)
{
	struct locals *t = *state;
	struct pb_writer w;
	struct client c;
	uint32_t m;

	client_open(&c, t, false);
	for (m = P_INITIALIZE; m <= P_LAST; m++) {
		pb_writer_init(&w);
		pb_put_raw(&w, "\x0a\x09oops", 6);
		assert_false(client_call(&c, m, &w)->ok);
		if (m == P_INITIALIZE)
			assert_true(client_call(&c, m,
			    args_string(3, "p"))->ok);
	}
	client_close(&c);
}

static const char *
refusal(struct client *c, const char *name)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, name);
	pb_nest_end(&w, mark);
	return error_of(client_call(c, P_REGISTER, &w));
}

static void
limits_are_named_when_they_refuse(void **state)
{
	struct locals *t = *state;
	char name[80], *big;
	struct client c;
	int i;

	memset(name, 'n', sizeof(name));
	name[65] = '\0';
	client_open(&c, t, false);
	assert_false(client_call(&c, P_INITIALIZE, args_string(3, name))->ok);
	assert_true(client_call(&c, P_INITIALIZE, args_string(3, "p"))->ok);
	assert_non_null(strstr(refusal(&c, name), "limits.max_name_bytes"));
	assert_non_null(strstr(refusal(&c, ""), "limits.max_name_bytes"));
	big = malloc(100001);
	assert_non_null(big);
	memset(big, 'x', 100000);
	big[100000] = '\0';
	assert_non_null(strstr(refusal(&c, big), "too long"));
	free(big);
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "ds%d", i);
		assert_null(refusal(&c, name));
	}
	assert_non_null(strstr(refusal(&c, "one more"),
	    "limits.max_data_sources_per_producer"));
	/* One that is gone makes room. */
	assert_true(client_call(&c, P_UNREGISTER, args_string(1, "ds3"))->ok);
	assert_null(refusal(&c, "one more"));
	client_close(&c);
}

static void
no_more_producers_than_the_limit_are_let_in(void **state)
{
	struct locals *t = *state;
	struct client c[17];
	int i;

	for (i = 0; i < 16; i++)
		client_ready(&c[i], t, "p");
	client_open(&c[16], t, false);
	while (!c[16].closed)
		client_turn(&c[16]);
	assert_int_equal(producers_count(t->producers), 16);
	for (i = 0; i < 17; i++)
		client_close(&c[i]);
	while (producers_count(t->producers) > 0)
		loop_run_once(t->loop);
	client_ready(&c[0], t, "p");
	client_close(&c[0]);
}

/* Whether the relay adopts memory whose pages are said to be so large. */
static bool
adopts(struct locals *t, struct shm *mine, uint32_t page)
{
	const struct reply *r;
	struct pb_writer w;
	struct client c;
	bool adopted;

	client_open(&c, t, false);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, page);
	pb_put_string(&w, 3, "p");
	pb_put_uint(&w, 6, 1);
	r = client_wait(&c, client_send(&c, P_INITIALIZE, &w, shm_fd(mine)),
	    0);
	assert_true(r->ok);
	adopted = uint_in(r->msg, r->len, 1) != 0;
	client_close(&c);
	return adopted;
}

static void
memory_is_adopted_with_the_pages_that_its_producer_writes(void **state)
{
	struct shm *mine = shm_new(3u << 16, 4096);

	assert_true(adopts(*state, mine, 4096));
	assert_true(adopts(*state, mine, 32768));
	assert_false(adopts(*state, mine, 0));
	assert_false(adopts(*state, mine, 12288));
	assert_false(adopts(*state, mine, 65536));
	shm_free(mine);
}

static size_t
pages_after(struct locals *t, uint32_t channel, uint64_t size, uint64_t page,
    uint64_t command_kb, size_t *page_size)
{
	struct pb_writer w;
	struct client c;
	size_t pages;

	client_open(&c, t, false);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, page);
	pb_put_uint(&w, 2, size);
	pb_put_string(&w, 3, "p");
	assert_true(client_call(&c, P_INITIALIZE, &w)->ok);
	client_register(&c, "ds", false, true);
	c.commands = client_send(&c, P_COMMANDS, NULL, -1);
	client_sync(&c);
	if (command_kb != 0)
		up_set_up_tracing(t, channel, command_kb);
	up_start(t, channel, 777, 9, 4242, "ds");
	client_started(&c);
	pages = shm_pages(c.shm);
	*page_size = shm_page_size(c.shm);
	client_close(&c);
	said_next(t, LINK_UP_CLOSE);
	return pages;
}

static void
memory_is_as_large_as_asked_for_within_limits(void **state)
{
	struct locals *t = *state;
	size_t page;

	producers_announce(t->producers, 0);
	assert_int_equal(pages_after(t, 1, 0, 0, 0, &page), 64);
	assert_int_equal(page, 4096);
	assert_int_equal(pages_after(t, 2, 512 * 1024, 8192, 4, &page), 64);
	assert_int_equal(page, 8192);
	/* What a session wants wins. */
	assert_int_equal(pages_after(t, 3, 512 * 1024, 8192, 32, &page), 16);
	assert_int_equal(page, 32768);
	/* Nonsense, and more than limits.max_shm_kb. */
	assert_int_equal(pages_after(t, 4, 12345, 999, 0, &page), 64);
	assert_int_equal(pages_after(t, 5, 2048 * 1024, 4096, 0, &page), 64);
	assert_int_equal(t->producers->shm_bytes, 0);
}

static void
memory_of_all_producers_together_is_limited(void **state)
{
	struct locals *t = *state;
	struct client c[5];
	uint32_t i;

	t->settings.limits.max_total_shm_kb = 1000;
	producers_announce(t->producers, 0);
	for (i = 0; i < 4; i++) {
		client_ready(&c[i], t, "p");
		up_start(t, i + 1, 777, 9, 4242, "ds");
		if (i < 3)
			client_started(&c[i]);
	}
	while (!c[3].closed)
		client_turn(&c[3]);
	for (i = 0; i < 4; i++)
		client_close(&c[i]);
}

static void
memory_that_a_producer_brings_is_used(void **state)
{
	struct locals *t = *state;
	struct shm *mine = shm_new(128 * 1024, 4096);
	struct started s;
	struct shm_slot slot;
	struct pb_writer w;
	struct client c;
	const struct reply *r;
	struct pb_field f;
	int fd;

	assert_non_null(mine);
	producers_announce(t->producers, 0);
	client_open(&c, t, false);
	pb_writer_init(&w);
	pb_put_string(&w, 3, "p");
	pb_put_uint(&w, 1, 4096);
	pb_put_uint(&w, 6, 1);
	r = client_wait(&c, client_send(&c, P_INITIALIZE, &w, shm_fd(mine)),
	    0);
	assert_true(r->ok);
	assert_int_equal(uint_in(r->msg, r->len, 1), 1);
	client_register(&c, "ds", false, true);
	c.commands = client_send(&c, P_COMMANDS, NULL, -1);
	client_sync(&c);
	up_start(t, 1, 777, 9, 4242, "ds");
	assert_int_equal(client_command(&c, &f, &fd), 3);
	assert_int_equal(fd, -1);
	c.shm = mine;
	s = client_started(&c);
	slot = client_chunk(&c, 3, 0, "mine", true);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 1);
	client_close(&c);
}

static void
memory_that_could_shrink_is_not_used(void **state)
{
	struct locals *t = *state;
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct pb_writer w;
	struct client c;
	const struct reply *r;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 128 * 1024), 0);
	client_open(&c, t, false);
	pb_writer_init(&w);
	pb_put_string(&w, 3, "p");
	pb_put_uint(&w, 1, 4096);
	pb_put_uint(&w, 6, 1);
	r = client_wait(&c, client_send(&c, P_INITIALIZE, &w, fd), 0);
	assert_true(r->ok);
	assert_int_equal(uint_in(r->msg, r->len, 1), 0);
	close(fd);
	client_close(&c);
}

static void
commands_wait_for_get_async_command_within_a_limit(void **state)
{
	struct locals *t = *state;
	struct client c;
	uint64_t i;

	producers_announce(t->producers, 0);
	client_open(&c, t, false);
	assert_true(client_call(&c, P_INITIALIZE, args_string(3, "p"))->ok);
	client_register(&c, "ds", false, true);
	up_start(t, 1, 777, 9, 4242, "ds");
	c.commands = client_send(&c, P_COMMANDS, NULL, -1);
	client_started(&c);
	client_close(&c);

	client_open(&c, t, false);
	assert_true(client_call(&c, P_INITIALIZE, args_string(3, "p"))->ok);
	client_register(&c, "ds", false, true);
	for (i = 0; i < 4000; i++)
		up_start(t, 2, 1000 + i, 9, 4242, "ds");
	while (!c.closed)
		client_turn(&c);
	client_close(&c);
}

static void
sources_come_and_go_upward_too(void **state)
{
	struct locals *t = *state;
	const struct said *said;
	struct pb_writer w;
	struct pb_field f;
	struct client c;
	size_t mark;
	int i;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	said_next(t, LINK_UP_REGISTER_SOURCE);
	for (i = 0; i < 2; i++) {
		pb_writer_init(&w);
		mark = pb_nest_begin(&w, 1);
		pb_put_string(&w, 1, "ds");
		pb_put_string(&w, 500, "new");
		pb_nest_end(&w, mark);
		assert_true(client_call(&c, P_UPDATE, &w)->ok);
	}
	said = said_next(t, LINK_UP_UPDATE_SOURCE);
	assert_true(has_field(said->data, said->len, 500, &f));
	/* The same again is no news; unknown ones are nothing. */
	assert_int_equal(said_count(t, LINK_UP_UPDATE_SOURCE), 1);
	assert_true(client_call(&c, P_UNREGISTER, args_string(1, "dx"))->ok);
	up_start(t, 1, 777, 9, 4242, "ds");
	client_started(&c);
	assert_true(client_call(&c, P_UNREGISTER, args_string(1, "ds"))->ok);
	said = said_next(t, LINK_UP_UNREGISTER_SOURCE);
	assert_int_equal(said->len, 2);
	assert_memory_equal(said->data, "ds", 2);
	assert_int_equal(said_count(t, LINK_UP_UNREGISTER_SOURCE), 1);
	/* Its instance has gone with it; nobody waits for another. */
	assert_true(client_call(&c, P_STOPPED, args_uint(1, 1))->ok);
	assert_int_equal(said_count(t, LINK_UP_STOPPED), 0);
	up_start(t, 1, 778, 9, 4242, "ds");
	assert_int_equal(said_next(t, LINK_UP_STARTED)->value, 778);
	assert_false(client_has_command(&c));
	client_close(&c);
}

static void
triggers_go_upward_by_name(void **state)
{
	struct locals *t = *state;
	const struct said *said;
	struct pb_writer w;
	struct client c;
	char name[80];
	int i;

	memset(name, 'n', sizeof(name));
	name[65] = '\0';
	client_ready(&c, t, "p");
	/* Nobody hears this one. */
	assert_true(client_call(&c, P_TRIGGERS, args_string(1, "early"))->ok);
	producers_announce(t->producers, 0);
	pb_writer_init(&w);
	pb_put_string(&w, 1, "a");
	pb_put_string(&w, 1, name);
	pb_put_string(&w, 1, "b");
	assert_true(client_call(&c, P_TRIGGERS, &w)->ok);
	said = said_next(t, LINK_UP_TRIGGER);
	assert_memory_equal(said->data, "a", 1);
	said = said_next(t, LINK_UP_TRIGGER);
	assert_memory_equal(said->data, "b", 1);
	pb_writer_init(&w);
	for (i = 0; i < 65; i++)
		pb_put_string(&w, 1, "a");
	assert_false(client_call(&c, P_TRIGGERS, &w)->ok);
	assert_int_equal(said_count(t, LINK_UP_TRIGGER), 2);
	client_close(&c);
}

static void
one_that_talks_without_end_has_to_wait_and_others_do_not(void **state)
{
	struct locals *t = *state;
	struct client c, d;
	struct pb_writer w;
	uint64_t requests[50];
	size_t mark, said;
	char *text = malloc(90001);
	int i;

	assert_non_null(text);
	memset(text, 'x', 90000);
	text[90000] = '\0';
	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	client_ready(&d, t, "q");
	client_pass_time = fake_time_tick;
	for (i = 0; i < 50; i++) {
		text[0] = (char)('a' + i % 20);
		pb_writer_init(&w);
		mark = pb_nest_begin(&w, 1);
		pb_put_string(&w, 1, "ds");
		pb_put_string(&w, 500, text);
		pb_nest_end(&w, mark);
		requests[i] = client_send(&c, P_UPDATE, &w, -1);
		client_sync(&d);
	}
	for (i = 0; i < 20; i++)
		client_sync(&d);
	said = said_count(t, LINK_UP_UPDATE_SOURCE);
	assert_true(said > 40 && said < 50);
	/* In the end all of it is said. */
	assert_true(client_wait(&c, requests[49], 0)->ok);
	client_pass_time = NULL;
	assert_int_equal(said_count(t, LINK_UP_UPDATE_SOURCE), 50);
	client_close(&c);
	client_close(&d);
	free(text);
}

/* Each connection says little; all together would fill any outbox. */
static void
who_connects_again_and_again_has_to_wait_as_well(void **state)
{
	struct locals *t = *state;
	struct client c, d;
	struct pb_writer w;
	uint64_t request;
	size_t mark;
	char *text = malloc(90001);
	int i, k;

	assert_non_null(text);
	memset(text, 'x', 90000);
	text[90000] = '\0';
	t->settings.limits.max_producers = 64;
	producers_announce(t->producers, 0);
	for (i = 0; i < 60; i++) {
		client_open(&c, t, false);
		(void)client_send(&c, P_INITIALIZE, args_string(3, "p"), -1);
		pb_writer_init(&w);
		mark = pb_nest_begin(&w, 1);
		pb_put_string(&w, 1, "ds");
		pb_put_string(&w, 500, text);
		pb_nest_end(&w, mark);
		(void)client_send(&c, P_REGISTER, &w, -1);
		for (k = 0; k < 8; k++)
			client_turn(&c);
		client_close(&c);
	}
	assert_true(said_count(t, LINK_UP_REGISTER_SOURCE) > 20);
	assert_true(said_count(t, LINK_UP_REGISTER_SOURCE) < 45);
	/* Whoever else there is does not wait (the kernel knows no uid). */
	client_open(&d, t, true);
	client_greet(&d, "q");
	client_close(&d);
	/* In the end it may. */
	client_pass_time = fake_time_tick;
	client_open(&c, t, false);
	request = client_send(&c, P_INITIALIZE, args_string(3, "p"), -1);
	assert_true(client_wait(&c, request, 0)->ok);
	client_pass_time = NULL;
	client_close(&c);
	free(text);
}

static void
a_refused_producer_says_no_more_than_its_end(void **state)
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
	said_forget(t);
	producers_refused(t->producers, 1, "limits.max_producers is reached");
	assert_int_equal(client_command(&c, &f, NULL), 2);
	slot = client_chunk(&c, 3, 0, "one", true);
	client_commit(&c, &slot, s.buffer);
	client_register(&c, "other", false, false);
	assert_int_equal(t->n_said, 0);
	/* Another collector may like it better. */
	producers_lost(t->producers, 0, 5);
	producers_announce(t->producers, 0);
	assert_int_equal(said_count(t, LINK_UP_OPEN), 1);
	producers_refused(t->producers, 1, "no");
	client_close(&c);
	assert_int_equal(said_next(t, LINK_UP_CLOSE)->channel, 1);
}

static void
only_the_named_producer_is_lost_and_announced(void **state)
{
	struct locals *t = *state;
	struct client c, d;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	client_ready(&d, t, "q");
	said_forget(t);
	producers_lost(t->producers, 2, 0);
	client_register(&d, "more", false, false);
	assert_int_equal(t->n_said, 0);
	client_register(&c, "more", false, false);
	assert_int_equal(t->n_said, 1);
	producers_announce(t->producers, 2);
	assert_int_equal(said_count(t, LINK_UP_OPEN), 1);
	assert_int_equal(t->n_said, 4);
	/* It is known already. */
	producers_announce(t->producers, 0);
	assert_int_equal(t->n_said, 4);
	client_close(&c);
	client_close(&d);
}

static void
commands_that_make_no_sense_are_left_out(void **state)
{
	struct locals *t = *state;
	struct client c;
	size_t n;
	static const char *const bad[] = {
		"\x0a\x7f", "\x32\x02\x08", "\x32\x04\x08\x01\x12\x00",
		"\x12\x00", "\x2a\x02\x12\x7f", "\x7a\x01x", "\x08\x01",
		"\x3a\x03\x0a\x01\x80",
	};

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	for (n = 0; n < sizeof(bad) / sizeof(bad[0]); n++)
		producers_command(t->producers, 1, (const uint8_t *)bad[n],
		    strlen(bad[n]));
	producers_command(t->producers, 7, (const uint8_t *)"\x12\x00", 2);
	assert_false(client_has_command(&c));
	client_close(&c);
}

static void
add_view(void *arg, const struct producers_view *v)
{
	*(struct producers_view *)arg = *v;
}

static void
a_view_tells_what_a_producer_does(void **state)
{
	struct locals *t = *state;
	struct producers_view v;
	struct client c;
	struct started s;
	struct shm_slot slot;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(&c);
	assert_true(client_call(&c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	slot = client_chunk(&c, 3, 0, "one", true);
	client_commit(&c, &slot, s.buffer);
	producers_each(t->producers, add_view, &v);
	assert_int_equal(v.channel, 1);
	assert_string_equal(v.name, "p");
	assert_int_equal(v.pid, getpid());
	assert_true(v.announced);
	assert_false(v.emulated);
	assert_int_equal(v.data_sources, 1);
	assert_int_equal(v.instances, 1);
	assert_int_equal(v.writers, 1);
	assert_int_equal(v.chunks, 1);
	assert_int_equal(v.discarded, 0);
	assert_true(client_call(&c, P_UNREGISTER_WRITER, args_uint(1, 3))->ok);
	assert_int_equal(said_next(t, LINK_UP_UNREGISTER_WRITER)->value, 3);
	producers_each(t->producers, add_view, &v);
	assert_int_equal(v.writers, 0);
	client_close(&c);
}

static void
buffer_ids_come_around_only_after_all_others(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct local *l;
	uint16_t first, id, live;
	uint32_t i;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	l = TAILQ_FIRST(&t->producers->locals);
	live = local_buffer_for(l, 1, 7);
	first = local_buffer_for(l, 2, 8);
	assert_int_equal(local_buffer_for(l, 2, 8), first);
	for (i = 0; i < 65533; i++) {
		id = local_buffer_for(l, 3 + i, 8);
		assert_int_not_equal(id, 0);
		assert_int_not_equal(id, first);
		assert_int_not_equal(id, live);
	}
	assert_int_equal(local_buffer_for(l, 70000, 8), first);
	assert_non_null(local_find_buffer(l, live));
	/* Unused ones make room, the oldest first. */
	for (i = 0; i < LOCAL_BUFFERS_MAX; i++)
		assert_int_not_equal(local_buffer_for(l, 1,
		    (uint16_t)(100 + i)), 0);
	assert_null(local_find_buffer(l, live));
	assert_true(local_buffer_was(l, live));
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
		T(what_stands_in_memory_when_a_link_is_lost_goes_up_to_be_counted),
		T(nothing_is_served_before_initialize_connection),
		T(memory_is_adopted_with_the_pages_that_its_producer_writes),
		T(arguments_that_do_not_parse_are_refused),
		T(limits_are_named_when_they_refuse),
		T(no_more_producers_than_the_limit_are_let_in),
		T(memory_is_as_large_as_asked_for_within_limits),
		T(memory_of_all_producers_together_is_limited),
		T(memory_that_a_producer_brings_is_used),
		T(memory_that_could_shrink_is_not_used),
		T(commands_wait_for_get_async_command_within_a_limit),
		T(sources_come_and_go_upward_too),
		T(triggers_go_upward_by_name),
		T(who_comes_and_goes_while_upward_is_away_leaves_nothing_there),
		T(triggers_go_up_while_upward_is_away_but_not_without_end),
		T(one_that_talks_while_upward_is_away_waits_until_it_is_back),
		T(one_that_talks_without_end_has_to_wait_and_others_do_not),
		T(who_connects_again_and_again_has_to_wait_as_well),
		T(a_refused_producer_says_no_more_than_its_end),
		T(only_the_named_producer_is_lost_and_announced),
		T(commands_that_make_no_sense_are_left_out),
		T(a_view_tells_what_a_producer_does),
		T(buffer_ids_come_around_only_after_all_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
