/* Threads that linux.process_stats describes when they are mentioned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/probes/process_stats.h"
#include "tests/unit/client/probes/fake_tree.h"

typedef Perfetto__Protos__ProcessStatsConfig Config;
typedef Perfetto__Protos__ProcessTree Tree;

static struct tree t;
static struct process_stats *s;
static Config config;

static int
setup(void **state)
{
	Config empty = PERFETTO__PROTOS__PROCESS_STATS_CONFIG__INIT;

	config = empty;
	tree_init(&t);
	s = NULL;
	return 0;
}

static int
teardown(void **state)
{
	process_stats_free(s);
	tree_done(&t);
	return 0;
}

static void
begin(void)
{
	s = process_stats_new(&t.env, &config, tree_packet, &t);
	assert_non_null(s);
	process_stats_start(s);
	tree_forget(&t);
}

/* A thread is found by its own id, too, though no folder shows it. */
static void
add_thread(int pid, int tid, const char *name)
{
	char path[64], text[256];

	tree_thread(&t, pid, tid, name);
	snprintf(path, sizeof(path), "proc/%d/status", tid);
	snprintf(text, sizeof(text), "Name:\t%s\nTgid:\t%d\nPid:\t%d\n"
	    "PPid:\t1\nUid:\t0\t0\t0\t0\n", name, pid, tid);
	tree_file(&t, path, text);
}

/* The packets of the tree as "p10 t11 ...". */
static const char *
told(void)
{
	static char text[256];
	size_t i, k, n = 0;
	const Tree *tree;

	text[0] = '\0';
	for (i = 0; i < t.n; i++) {
		tree = t.packets[i]->process_tree;
		for (k = 0; k < tree->n_processes; k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
			    "p%d ", tree->processes[k]->pid);
		for (k = 0; k < tree->n_threads; k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
			    "t%d/%d ", tree->threads[k]->tid,
			    tree->threads[k]->tgid);
	}
	return text;
}

/* Tells threads, and returns what came of it. */
static const char *
tell(int32_t one, int32_t two, bool changed)
{
	int32_t tids[2] = { one, two };

	tree_forget(&t);
	process_stats_tell_threads(s, tids, two != 0 ? 2 : 1, changed);
	return told();
}

static void
a_thread_is_described_once_with_its_process(void **state)
{
	tree_process(&t, 10, 1, "a", 5);
	add_thread(10, 11, "worker");
	begin();
	assert_string_equal(tell(11, 0, false), "p10 t11/10 ");
	assert_string_equal(tell(11, 10, false), "");
	/* one that is made later */
	add_thread(10, 12, "later");
	assert_string_equal(tell(12, 11, false), "t12/10 ");
}

static void
what_the_first_scan_described_is_not_repeated(void **state)
{
	config.scan_all_processes_on_start = true;
	tree_process(&t, 10, 1, "a", 5);
	add_thread(10, 11, "worker");
	tree_remove(&t, "proc/11");
	begin();
	add_thread(10, 11, "worker");
	assert_string_equal(tell(10, 11, false), "");
	tree_process(&t, 20, 1, "b", 5);
	assert_string_equal(tell(10, 20, false), "p20 ");
}

static void
a_process_with_another_name_is_described_anew(void **state)
{
	tree_process(&t, 10, 1, "a", 5);
	begin();
	assert_string_equal(tell(10, 0, false), "p10 ");
	tree_process(&t, 10, 1, "b", 5);
	assert_string_equal(tell(10, 0, true), "p10 ");
	assert_string_equal(t.packets[0]->process_tree->processes[0]->
	    cmdline[0], "/bin/b");
	assert_string_equal(tell(10, 0, false), "");
}

static void
one_that_has_ended_is_not_asked_for_again(void **state)
{
	begin();
	assert_string_equal(tell(10, 0, false), "");
	/* its id is another's, which an event says */
	tree_process(&t, 10, 1, "a", 5);
	assert_string_equal(tell(10, 0, false), "");
	assert_string_equal(tell(10, 0, true), "p10 ");
}

static void
after_clearing_all_are_described_again(void **state)
{
	tree_process(&t, 10, 1, "a", 5);
	begin();
	assert_string_equal(tell(10, 0, false), "p10 ");
	process_stats_clear_incremental_state(s);
	assert_string_equal(tell(10, 0, false), "p10 ");
	assert_true(t.packets[0]->incremental_state_cleared);
}

static void
what_was_dropped_is_told_again(void **state)
{
	tree_process(&t, 10, 1, "a", 5);
	add_thread(10, 11, "worker");
	begin();
	t.full = true;
	assert_string_equal(tell(11, 0, false), "");
	/* once more in vain */
	process_stats_retell(s);
	t.full = false;
	process_stats_retell(s);
	assert_string_equal(told(), "p10 t11/10 ");
	assert_true(t.packets[0]->incremental_state_cleared);
	assert_string_equal(tell(10, 11, false), "");
	process_stats_retell(s);
	assert_string_equal(told(), "");
}

static void
a_first_scan_that_was_dropped_is_made_again(void **state)
{
	config.scan_all_processes_on_start = true;
	tree_process(&t, 10, 1, "a", 5);
	t.full = true;
	begin();
	t.full = false;
	process_stats_retell(s);
	assert_string_equal(told(), "p10 ");
}

static void
a_quirk_turns_it_off(void **state)
{
	Perfetto__Protos__ProcessStatsConfig__Quirks quirks[] = {
	    PERFETTO__PROTOS__PROCESS_STATS_CONFIG__QUIRKS__DISABLE_ON_DEMAND,
	};

	config.n_quirks = 1;
	config.quirks = quirks;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	assert_string_equal(tell(10, 0, false), "");
}

static void
strange_ids_are_passed_over(void **state)
{
	begin();
	assert_string_equal(tell(-5, INT32_MAX, false), "");
	assert_string_equal(tell(0, 0, true), "");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_thread_is_described_once_with_its_process),
		T(what_the_first_scan_described_is_not_repeated),
		T(a_process_with_another_name_is_described_anew),
		T(one_that_has_ended_is_not_asked_for_again),
		T(after_clearing_all_are_described_again),
		T(what_was_dropped_is_told_again),
		T(a_first_scan_that_was_dropped_is_made_again),
		T(a_quirk_turns_it_off),
		T(strange_ids_are_passed_over),
	};

	return cmocka_run_group_tests_name("process_threads", tests, NULL,
	    NULL);
}
