#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/producers/producers_internal.h"
#include "relay/producers/shm_keeper.h"
#include "tests/unit/relay/producers/local_fixture.h"

/* Whether there is no memory for the map of a memory's scraped chunks. */
static bool no_map;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	return no_map && size == sizeof(uint16_t) ? NULL :
	    __real_calloc(n, size);
}

/* A relay in a process of its own, which starts "ds" as soon as it is there. */
static pid_t
other_relay(const char *dir, int fd)
{
	struct locals *t;
	pid_t pid = fork();

	if (pid != 0) {
		close(fd);
		return pid;
	}
	t = locals_new(dir);
	producers_announce(t->producers, 0);
	locals_accept(t, fd);
	said_next(t, LINK_UP_REGISTER_SOURCE);
	up_start(t, 1, 777, 9, 4242, "ds");
	for (;;)
		loop_run_once(t->loop);
}

static void
end_other(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static pid_t
with_other_relay(struct locals *t, struct client *c, struct started *s)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0, pair), 0);
	pid = other_relay(t->dir, pair[1]);
	assert_true(pid > 0);
	client_over(c, t, pair[0]);
	client_greet(c, "p");
	*s = client_started(c);
	assert_true(client_call(c, P_REGISTER_WRITER,
	    args_two(3, s->buffer))->ok);
	t->producers->recover_again_ms = 50;
	return pid;
}

static void
count_cb(void *arg)
{
	++*(int *)arg;
}

static void
wait_for(struct locals *t, const int *n)
{
	uint64_t end = loop_now_ms() + 10000;

	while (*n == 0) {
		assert_true(loop_now_ms() < end);
		loop_run_once(t->loop);
	}
}

static void
the_next_relay_sends_what_the_killed_one_left(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	struct shm_slot slot;
	struct shm_chunk taken;
	struct up_chunk up;
	const struct said *said;
	int recovered = 0;
	pid_t pid = with_other_relay(t, &c, &s);

	slot = client_chunk(&c, 3, 0, "committed", true);
	client_commit(&c, &slot, s.buffer);
	slot = client_chunk(&c, 3, 1, "complete", true);
	/* Taken, and then the relay was killed. */
	slot = client_chunk(&c, 3, 2, "taken", true);
	assert_int_equal(shm_take(c.shm, slot.page, slot.index, &taken),
	    SHM_TAKEN);
	slot = client_chunk(&c, 3, 3, "begun", false);
	shm_add_fragment(c.shm, &slot);
	end_other(pid);

	producers_recover(t->producers, true, count_cb, &recovered);
	assert_int_equal(t->n_said, 2);
	said = said_next(t, LINK_UP_COMMIT);
	assert_int_equal(said->channel, 1);
	said_chunk(said, &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	assert_int_equal(up.buffer, 0);
	assert_false(up.incomplete);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 2);

	/* The producer has not noticed yet. */
	client_chunk(&c, 3, 4, "later", true);
	assert_int_equal(recovered, 0);
	wait_for(t, &recovered);
	assert_int_equal(t->n_said, 5);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 3);
	assert_true(up.incomplete);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 4);
	assert_int_equal(said_next(t, LINK_UP_CLOSE)->channel, 1);
	client_close(&c);

	/* Nothing is left for the third. */
	locals_stop(t);
	said_forget(t);
	locals_start(t);
	recovered = 0;
	producers_recover(t->producers, true, count_cb, &recovered);
	wait_for(t, &recovered);
	assert_int_equal(t->n_said, 0);
}

static void
a_relay_that_is_killed_while_it_recovers_leaves_it_to_the_third(void **state)
{
	struct locals *t = *state, *second;
	struct client c;
	struct started s;
	struct up_chunk up;
	int recovered = 0, status;
	pid_t pid = with_other_relay(t, &c, &s);

	client_chunk(&c, 3, 1, "complete", true);
	end_other(pid);
	if ((pid = fork()) == 0) {
		second = locals_new(t->dir);
		producers_recover(second->producers, true, count_cb,
		    &recovered);
		_exit(second->n_said == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

	producers_recover(t->producers, true, count_cb, &recovered);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	wait_for(t, &recovered);
	client_close(&c);
}

static void
a_chunk_that_cannot_be_remembered_is_sent_once_all_the_same(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	struct up_chunk up;
	int recovered = 0;
	pid_t pid = with_other_relay(t, &c, &s);

	client_chunk(&c, 3, 1, "complete", true);
	end_other(pid);
	no_map = true;
	producers_recover(t->producers, true, count_cb, &recovered);
	no_map = false;
	wait_for(t, &recovered);
	assert_int_equal(t->n_said, 2);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	said_next(t, LINK_UP_CLOSE);
	client_close(&c);
}

static void
what_is_not_to_be_kept_is_given_back(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	int recovered = 0;
	pid_t pid = with_other_relay(t, &c, &s);

	client_chunk(&c, 3, 1, "complete", true);
	end_other(pid);
	producers_recover(t->producers, false, count_cb, &recovered);
	client_close(&c);
	locals_stop(t);
	locals_start(t);
	producers_recover(t->producers, true, count_cb, &recovered);
	wait_for(t, &recovered);
	assert_int_equal(recovered, 1);
	assert_int_equal(t->n_said, 0);
}

static void
a_link_that_is_lost_ends_the_recovery(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	int recovered = 0;
	pid_t pid = with_other_relay(t, &c, &s);

	client_chunk(&c, 3, 1, "complete", true);
	end_other(pid);
	producers_recover(t->producers, true, count_cb, &recovered);
	assert_int_equal(t->n_said, 1);
	client_chunk(&c, 3, 2, "later", true);
	producers_lost(t->producers, 0, 5);
	wait_for(t, &recovered);
	/* It went where all the rest is counted; and nothing was closed. */
	assert_int_equal(t->n_said, 2);
	assert_int_equal(said_chunks(t), 2);
	client_close(&c);
}

static void
a_chunk_that_cannot_be_remembered_is_counted_when_the_link_is_lost(
    void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s;
	int recovered = 0;
	pid_t pid = with_other_relay(t, &c, &s);

	client_chunk(&c, 3, 1, "complete", true);
	end_other(pid);
	no_map = true;
	producers_recover(t->producers, true, count_cb, &recovered);
	assert_int_equal(t->n_said, 0);
	producers_lost(t->producers, 0, 5);
	no_map = false;
	wait_for(t, &recovered);
	assert_int_equal(said_chunks(t), 1);
	client_close(&c);
}

static void
a_relay_whose_producers_have_left_leaves_no_keeper(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct shm_keeper *k;
	uint64_t end = loop_now_ms() + 10000;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	client_started(&c);
	assert_non_null(t->producers->keeper);
	client_close(&c);
	locals_stop(t);
	/* It ends by itself, with its socket. */
	while (faccessat(t->dirfd, "keeper", F_OK, 0) == 0) {
		assert_true(loop_now_ms() < end);
		loop_run_once(t->loop);
	}
	k = shm_keeper_find(t->dirfd, NULL, NULL);
	assert_null(k);
	locals_start(t);
}

static void
a_keeper_that_was_killed_is_replaced(void **state)
{
	struct locals *t = *state;
	struct client c, d;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	client_started(&c);
	/* As if: its socket is dead. */
	shm_keeper_close(t->producers->keeper);
	t->producers->keeper = NULL;
	client_ready(&d, t, "q");
	up_start(t, 2, 778, 9, 4243, "ds");
	client_started(&d);
	assert_non_null(t->producers->keeper);
	client_close(&c);
	client_close(&d);
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, locals_setup, locals_teardown)
	const struct CMUnitTest tests[] = {
		T(the_next_relay_sends_what_the_killed_one_left),
		T(a_relay_that_is_killed_while_it_recovers_leaves_it_to_the_third),
		T(a_chunk_that_cannot_be_remembered_is_sent_once_all_the_same),
		T(what_is_not_to_be_kept_is_given_back),
		T(a_link_that_is_lost_ends_the_recovery),
		T(a_chunk_that_cannot_be_remembered_is_counted_when_the_link_is_lost),
		T(a_relay_whose_producers_have_left_leaves_no_keeper),
		T(a_keeper_that_was_killed_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
