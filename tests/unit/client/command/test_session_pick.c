#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/command/session_pick.h"
#include "protos/control.pb-c.h"

#define CLONED TRIBUTARY__SESSION_STATE__STATE__CLONED

static Tributary__SessionState sessions[4];
static Tributary__SessionState *list[4];
static Tributary__QuerySessionsReply reply;
static const Tributary__SessionState *picked[4];
static char err[512];

/* 3 (robots), 7, 12 (9) and 15, a snapshot of the first. */
static int
setup(void **state)
{
	static const uint64_t ids[] = { 3, 7, 12, 15 };
	static char robots[] = "robots", nine[] = "9";
	int i;

	tributary__query_sessions_reply__init(&reply);
	for (i = 0; i < 4; i++) {
		tributary__session_state__init(&sessions[i]);
		sessions[i].id = ids[i];
		list[i] = &sessions[i];
	}
	sessions[0].unique_session_name = robots;
	sessions[2].unique_session_name = nine;
	sessions[3].unique_session_name = robots;
	sessions[3].state = CLONED;
	reply.n_sessions = 4;
	reply.sessions = list;
	return 0;
}

static int
pick(const char *const *words, size_t n, bool patterns)
{
	err[0] = '\0';
	return session_pick(&reply,
	    &(struct session_words){ words, n, patterns }, picked, err,
	    sizeof(err));
}

static int
pick_one(const char *word)
{
	return pick(&word, 1, false);
}

static void
no_words_mean_all(void **state)
{
	assert_int_equal(pick(NULL, 0, false), 4);
	assert_ptr_equal(picked[3], &sessions[3]);
}

static void
a_session_is_meant_by_id_or_name(void **state)
{
	const char *const both[] = { "robots", "7", "3" };

	assert_int_equal(pick_one("7"), 1);
	assert_int_equal(picked[0]->id, 7);
	assert_int_equal(pick_one("robots"), 1);
	assert_int_equal(picked[0]->id, 3);
	/* Once, and in the order of the list. */
	assert_int_equal(pick(both, 3, false), 2);
	assert_int_equal(picked[0]->id, 3);
	assert_int_equal(picked[1]->id, 7);
}

static void
a_name_may_look_like_an_id(void **state)
{
	assert_int_equal(pick_one("9"), 1);
	assert_int_equal(picked[0]->id, 12);
	assert_int_equal(pick_one("12"), 1);
	assert_int_equal(picked[0]->id, 12);
}

static void
a_snapshot_is_meant_by_a_name_that_nothing_else_has(void **state)
{
	sessions[0].unique_session_name = NULL;
	assert_int_equal(pick_one("robots"), 1);
	assert_int_equal(picked[0]->id, 15);
}

static void
patterns_mean_many_where_they_may(void **state)
{
	const char *word = "rob*";

	sessions[1].unique_session_name = sessions[0].unique_session_name;
	assert_int_equal(pick(&word, 1, true), 2);
	assert_int_equal(pick(&word, 1, false), -1);
}

static void
what_is_not_there_is_told_with_what_is(void **state)
{
	assert_int_equal(pick_one("robotz"), -1);
	assert_string_equal(err,
	    "there is no session \"robotz\"; did you mean robots?");
	assert_int_equal(pick_one("4711"), -1);
	assert_string_equal(err, "there is no session 4711; there are 3 "
	    "(robots), 7, 12 (9) and 15 (robots)");
	reply.n_sessions = 1;
	assert_int_equal(pick_one("4711"), -1);
	assert_string_equal(err,
	    "there is no session 4711; there is 3 (robots)");
	reply.n_sessions = 0;
	assert_int_equal(pick_one("3"), -1);
	assert_string_equal(err, "there is no session 3, nor any other that "
	    "you may see");
	assert_int_equal(pick(NULL, 0, false), 0);
}

static void
words_and_names_do_not_reach_the_terminal_raw(void **state)
{
	static char wild[] = "x\x1b[2J";

	sessions[0].unique_session_name = wild;
	assert_int_equal(pick_one("x\x1b[3J"), -1);
	assert_null(strchr(err, '\x1b'));
	assert_int_equal(pick_one("4711"), -1);
	assert_null(strchr(err, '\x1b'));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(no_words_mean_all),
		T(a_session_is_meant_by_id_or_name),
		T(a_name_may_look_like_an_id),
		T(a_snapshot_is_meant_by_a_name_that_nothing_else_has),
		T(patterns_mean_many_where_they_may),
		T(what_is_not_there_is_told_with_what_is),
		T(words_and_names_do_not_reach_the_terminal_raw),
	};

	return cmocka_run_group_tests_name("session_pick", tests, NULL, NULL);
}
