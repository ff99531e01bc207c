#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/service/port/port_fixture.h"
#include "transport/shm/shm.h"

#define RING "buffers { size_kb: 64 } "
#define ONE_SOURCE RING "data_sources { config { name: \"src\" } } "

/* Fields of GetAsyncCommandResponse. */
enum { CMD_START = 1, CMD_STOP = 2, CMD_TRACING = 3, CMD_FLUSH = 5,
	CMD_SETUP = 6 };

static void
every_call_before_initialize_is_rejected(void **state)
{
	struct ports *p = *state;
	struct client c;
	uint32_t m;

	client_open(&c, p, PRODUCER);
	for (m = P_REGISTER; m <= P_LAST; m++)
		if (client_call(&c, m, NULL)->ok)
			fail_msg("method %u", m);
	assert_int_equal(p->service->n_producers, 0);
	client_initialize(&c, "late");
	assert_int_equal(p->service->n_producers, 1);
	client_close(&c);
}

static void
initialize_is_taken_once(void **state)
{
	struct ports *p = *state;
	struct client c;

	client_open(&c, p, PRODUCER);
	client_initialize(&c, "one");
	assert_false(client_call(&c, P_INITIALIZE, args_string(3, "two"))->ok);
	assert_int_equal(p->service->n_producers, 1);
	assert_string_equal(TAILQ_FIRST(&p->service->producers)->name, "one");
	client_close(&c);
}

static void
arguments_that_do_not_parse_are_rejected_and_change_nothing(void **state)
{
	struct ports *p = *state;
	struct client c;
	struct pb_writer w;
	uint64_t bad;
	uint32_t m;

	client_open(&c, p, PRODUCER);
	pb_writer_init(&w);
	pb_put_raw(&w, "\x1a\x7f", 2);
	assert_false(client_call(&c, P_INITIALIZE, &w)->ok);
	client_initialize(&c, "p");
	for (m = P_INITIALIZE; m <= P_LAST; m++) {
		if (m == P_COMMANDS || m == P_SYNC)
			continue;
		bad = p->stats.bad_args;
		pb_writer_init(&w);
		pb_put_raw(&w, "\x0a\x7f", 2);
		assert_false(client_call(&c, m, &w)->ok);
		assert_int_equal(p->stats.bad_args, bad + 1);
	}
	assert_int_equal(TAILQ_FIRST(&p->service->producers)->n_data_sources,
	    0);
	assert_true(client_call(&c, P_SYNC, NULL)->ok);
	client_close(&c);
}

static void
wrong_types_are_rejected_too(void **state)
{
	static const uint32_t wants_bytes[] = { P_REGISTER, P_UNREGISTER,
		P_UPDATE, P_TRIGGERS };
	static const uint32_t wants_numbers[] = { P_REGISTER_WRITER,
		P_UNREGISTER_WRITER, P_STARTED, P_STOPPED };
	struct client c;
	size_t i;

	client_open(&c, *state, PRODUCER);
	client_initialize(&c, "p");
	for (i = 0; i < 4; i++) {
		assert_false(client_call(&c, wants_bytes[i],
		    args_uint(1, 5))->ok);
		assert_false(client_call(&c, wants_numbers[i],
		    args_string(1, "5"))->ok);
	}
	/* Nothing at all is a default, and harmless. */
	for (i = 0; i < 4; i++) {
		assert_true(client_call(&c, wants_bytes[i], NULL)->ok);
		assert_true(client_call(&c, wants_numbers[i], NULL)->ok);
	}
	client_close(&c);
}

static void
a_limit_refuses_the_connection_s_producer(void **state)
{
	struct ports *p = *state;
	struct client a, b;

	p->settings.limits.max_producers = 1;
	client_open(&a, p, PRODUCER);
	client_open(&b, p, PRODUCER);
	client_initialize(&a, "a");
	assert_false(client_call(&b, P_INITIALIZE, args_string(3, "b"))->ok);
	client_close(&a);
	while (p->service->n_producers > 0)
		client_turn(&b);
	client_initialize(&b, "b");
	client_close(&b);
}

/* What came for a GetAsyncCommand, by the kinds of its commands. */
static void
expect_command(struct client *c, uint64_t call, size_t n, uint32_t kind)
{
	const struct reply *r = client_wait(c, call, n);
	struct pb_field f;

	assert_true(r->ok);
	assert_true(r->more);
	assert_true(reply_field(r, kind, &f));
}

static void
commands_wait_for_the_call_that_carries_them(void **state)
{
	struct ports *p = *state;
	struct client prod, cons;
	const struct reply *r;
	uint64_t call;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&cons, p, CONSUMER);
	(void)client_enable(&cons, ONE_SOURCE, -1);
	client_call(&cons, C_CAPABILITIES, NULL);
	call = client_send(&prod, P_COMMANDS, NULL, -1);
	expect_command(&prod, call, 0, CMD_TRACING);
	expect_command(&prod, call, 1, CMD_SETUP);
	expect_command(&prod, call, 2, CMD_START);
	r = client_wait(&prod, call, 0);
	assert_true(r->fd >= 0); /* the memory */
	assert_int_equal(client_wait(&prod, call, 1)->fd, -1);
	(void)client_send(&cons, C_DISABLE, NULL, -1);
	expect_command(&prod, call, 3, CMD_FLUSH);
	client_close(&prod);
	client_close(&cons);
}

static void
commands_that_nobody_fetches_are_bounded(void **state)
{
	struct ports *p = *state;
	struct client prod, cons;
	unsigned i;

	p->settings.limits.max_send_queue_kb = 16;
	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&cons, p, CONSUMER);
	for (i = 0; i < 1000 && p->service->n_producers > 0; i++) {
		(void)client_enable(&cons, ONE_SOURCE, -1);
		assert_true(client_call(&cons, C_FREE, NULL)->ok);
		while (cons.n_replies > 0)
			free(cons.replies[--cons.n_replies].msg);
	}
	assert_int_equal(p->service->n_producers, 0);
	client_close(&prod);
	client_close(&cons);
}

static bool
packets_in(struct client *cons, const char *text)
{
	uint64_t read = client_send(cons, C_READ, NULL, -1);
	const struct reply *r;
	bool found = false;
	size_t i = 0;

	do {
		r = client_wait(cons, read, i++);
		found |= memmem(r->msg, r->len, text, strlen(text)) != NULL;
	} while (r->more);
	return found;
}

static void
write_packet(struct shm *m, const char *text, struct shm_slot *slot)
{
	size_t n = strlen(text);

	assert_true(shm_acquire(m, SHM_DIV1, 1, 0, 0, slot));
	/* for_testing { str } */
	slot->payload[0] = (uint8_t)(n + 5);
	memcpy(slot->payload + 1, "\xa2\x38", 2);
	slot->payload[3] = (uint8_t)(n + 2);
	slot->payload[4] = 0x0a;
	slot->payload[5] = (uint8_t)n;
	memcpy(slot->payload + 6, text, n);
	shm_add_fragment(m, slot);
	shm_complete(m, slot);
}

static void
memory_of_the_producer_is_adopted(void **state)
{
	struct ports *p = *state;
	struct client prod, cons;
	struct shm *mine = shm_new(65536, 4096);
	struct shm_slot slot;
	struct pb_writer w;
	struct pb_field f;
	const struct reply *r;
	uint64_t call;
	size_t mark;

	client_open(&prod, p, PRODUCER);
	pb_writer_init(&w);
	pb_put_string(&w, 3, "p");
	pb_put_uint(&w, 1, 4096);
	pb_put_uint(&w, 6, 1);
	r = client_wait(&prod, client_send(&prod, P_INITIALIZE, &w,
	    shm_fd(mine)), 0);
	assert_true(r->ok);
	assert_true(reply_field(r, 1, &f));
	assert_int_equal(f.value, 1);
	assert_true(reply_field(r, 2, &f));
	assert_int_equal(f.value, 1);
	client_register(&prod, "src");
	client_open(&cons, p, CONSUMER);
	(void)client_enable(&cons, ONE_SOURCE, -1);
	call = client_send(&prod, P_COMMANDS, NULL, -1);
	expect_command(&prod, call, 0, CMD_TRACING);
	/* It has it already. */
	assert_int_equal(client_wait(&prod, call, 0)->fd, -1);
	write_packet(mine, "out of my own memory", &slot);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, slot.page);
	pb_put_uint(&w, 2, slot.index);
	pb_put_uint(&w, 3, TAILQ_FIRST(&p->service->sessions)->buffers[0].id);
	pb_nest_end(&w, mark);
	assert_true(client_call(&prod, P_COMMIT, &w)->ok);
	assert_true(packets_in(&cons, "out of my own memory"));
	client_close(&prod);
	client_close(&cons);
	shm_free(mine);
}

static void
memory_that_is_none_is_not_adopted(void **state)
{
	struct ports *p = *state;
	struct client c;
	struct pb_writer w;
	struct pb_field f;
	const struct reply *r;
	int fds[3], i;

	fds[0] = memfd_create("not sealed", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fds[0], 65536), 0);
	fds[1] = memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fds[1], 65537), 0);
	assert_int_equal(fcntl(fds[1], F_ADD_SEALS, F_SEAL_SHRINK), 0);
	fds[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (i = 0; i < 3; i++) {
		client_open(&c, p, PRODUCER);
		pb_writer_init(&w);
		pb_put_string(&w, 3, "p");
		pb_put_uint(&w, 1, 4096);
		pb_put_uint(&w, 6, 1);
		r = client_wait(&c, client_send(&c, P_INITIALIZE, &w,
		    fds[i]), 0);
		assert_true(r->ok);
		assert_true(!reply_field(r, 1, &f) || f.value == 0);
		client_close(&c);
		close(fds[i]);
	}
}

static void
memory_whose_page_size_is_none_is_not_adopted(void **state)
{
	static const uint32_t pages[] = { 0, 12288, 65536, 4095 };
	struct ports *p = *state;
	struct client c;
	struct pb_writer w;
	struct pb_field f;
	const struct reply *r;
	struct shm *mine = shm_new(3u << 16, 4096);
	size_t i;

	for (i = 0; i < 4; i++) {
		client_open(&c, p, PRODUCER);
		pb_writer_init(&w);
		pb_put_string(&w, 3, "p");
		if (pages[i] != 0)
			pb_put_uint(&w, 1, pages[i]);
		pb_put_uint(&w, 6, 1);
		r = client_wait(&c, client_send(&c, P_INITIALIZE, &w,
		    shm_fd(mine)), 0);
		assert_true(r->ok);
		assert_true(!reply_field(r, 1, &f) || f.value == 0);
		client_close(&c);
	}
	shm_free(mine);
}

static void
a_commit_of_foreign_buffers_leaves_the_connection_open(void **state)
{
	struct ports *p = *state;
	struct client prod, cons;
	struct pb_writer w;
	size_t mark;

	client_open(&cons, p, CONSUMER);
	(void)client_enable(&cons, ONE_SOURCE, -1);
	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 3, 1);
	pb_put_bytes(&w, 4, "\0\0\0\0\1\0\1\0\4\xa2\x38\1x", 13);
	pb_nest_end(&w, mark);
	assert_true(client_call(&prod, P_COMMIT, &w)->ok);
	assert_int_equal(p->service->counters.wrong_buffer, 1);
	client_close(&prod);
	client_close(&cons);
}

static void
a_producer_held_back_is_read_on_when_the_file_has_caught_up(void **state)
{
	static char big[4000];
	struct ports *p = *state;
	struct client prod, cons;
	struct pb_writer w, chunk;
	const struct session *s;
	uint64_t enable, last = 0;
	uint16_t writer = 1, count = 1;
	size_t mark;
	uint32_t i;
	int pipefd[2];

	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&cons, p, CONSUMER);
	enable = client_enable(&cons, ONE_SOURCE "write_into_file: true "
	    "flush_timeout_ms: 10", pipefd[1]);
	close(pipefd[1]);
	client_call(&cons, C_CAPABILITIES, NULL);
	s = TAILQ_FIRST(&p->service->sessions);
	prod.disk = pipefd[0];
	for (i = 0; i < 200; i++) {
		pb_writer_init(&chunk);
		pb_put_raw(&chunk, &i, 4);
		pb_put_raw(&chunk, &writer, 2);
		pb_put_raw(&chunk, &count, 2);
		/* for_testing { str } */
		pb_put_varint(&chunk, strlen(big) + 3 + 2 + 2);
		pb_put_raw(&chunk, "\xa2\x38", 2);
		pb_put_varint(&chunk, strlen(big) + 3);
		pb_put_string(&chunk, 1, big);
		pb_writer_init(&w);
		mark = pb_nest_begin(&w, 1);
		pb_put_uint(&w, 3, s->buffers[0].id);
		pb_put_bytes(&w, 4, chunk.data, chunk.len);
		pb_nest_end(&w, mark);
		pb_writer_done(&chunk);
		last = client_send(&prod, P_COMMIT, &w, -1);
	}
	assert_true(client_wait(&prod, last, 0)->ok);
	cons.disk = pipefd[0];
	cons.disk_bytes = prod.disk_bytes;
	(void)client_send(&cons, C_DISABLE, NULL, -1);
	assert_true(client_wait(&cons, enable, 0)->ok);
	for (i = 0; i < 100; i++)
		client_turn(&cons);
	/* 200 packets of 4000 bytes through a buffer of 64 KiB. */
	assert_true(cons.disk_bytes > 200 * strlen(big));
	assert_int_equal(s->refused.chunks, 0);
	close(pipefd[0]);
	client_close(&prod);
	client_close(&cons);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_call_before_initialize_is_rejected),
		T(initialize_is_taken_once),
		T(arguments_that_do_not_parse_are_rejected_and_change_nothing),
		T(wrong_types_are_rejected_too),
		T(a_limit_refuses_the_connection_s_producer),
		T(commands_wait_for_the_call_that_carries_them),
		T(commands_that_nobody_fetches_are_bounded),
		T(memory_of_the_producer_is_adopted),
		T(memory_that_is_none_is_not_adopted),
		T(memory_whose_page_size_is_none_is_not_adopted),
		T(a_commit_of_foreign_buffers_leaves_the_connection_open),
		T(a_producer_held_back_is_read_on_when_the_file_has_caught_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
