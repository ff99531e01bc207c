/* linux.process_stats over folders that look like /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/probes/process_stats.h"
#include "tests/unit/client/probes/fake_tree.h"

typedef Perfetto__Protos__ProcessStatsConfig Config;
typedef Perfetto__Protos__ProcessTree__Process TreeProcess;
typedef Perfetto__Protos__ProcessTree__Thread TreeThread;
typedef Perfetto__Protos__ProcessStats__Process StatsProcess;

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
}

static void
poll_anew(void)
{
	tree_forget(&t);
	process_stats_poll(s);
}

/* What a packet holds, or NULL. */
static Perfetto__Protos__ProcessTree *
tree_of(size_t i)
{
	return t.packets[i]->data_case ==
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_PROCESS_TREE ?
	    t.packets[i]->process_tree : NULL;
}

static Perfetto__Protos__ProcessStats *
stats_of(size_t i)
{
	return t.packets[i]->data_case ==
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_PROCESS_STATS ?
	    t.packets[i]->process_stats : NULL;
}

static TreeProcess *
described(int pid)
{
	TreeProcess *found = NULL;
	size_t i, k;

	for (i = 0; i < t.n; i++) {
		if (tree_of(i) == NULL)
			continue;
		for (k = 0; k < tree_of(i)->n_processes; k++)
			if (tree_of(i)->processes[k]->pid == pid) {
				assert_null(found); /* once only */
				found = tree_of(i)->processes[k];
			}
	}
	return found;
}

static TreeThread *
thread(int tid)
{
	TreeThread *found = NULL;
	size_t i, k;

	for (i = 0; i < t.n; i++) {
		if (tree_of(i) == NULL)
			continue;
		for (k = 0; k < tree_of(i)->n_threads; k++)
			if (tree_of(i)->threads[k]->tid == tid) {
				assert_null(found);
				found = tree_of(i)->threads[k];
			}
	}
	return found;
}

static StatsProcess *
stats(int pid)
{
	StatsProcess *found = NULL;
	size_t i, k;

	for (i = 0; i < t.n; i++) {
		if (stats_of(i) == NULL)
			continue;
		for (k = 0; k < stats_of(i)->n_processes; k++)
			if (stats_of(i)->processes[k]->pid == pid) {
				assert_null(found);
				found = stats_of(i)->processes[k];
			}
	}
	return found;
}

static void
without_a_config_nothing_is_written(void **state)
{
	tree_process(&t, 10, 1, "a", 5);
	s = process_stats_new(&t.env, NULL, tree_packet, &t);
	process_stats_start(s);
	assert_int_equal(process_stats_period_ms(s), 0);
	assert_int_equal(t.n, 0);
}

static void
the_first_scan_describes_every_process(void **state)
{
	TreeProcess *p;

	config.scan_all_processes_on_start = true;
	tree_process(&t, 10, 1, "shell", 5);
	tree_kthread(&t, 12, "kworker/0:1");
	tree_file(&t, "proc/uptime", "1");
	tree_file(&t, "proc/12x/status", "Pid:\t5\nTgid:\t5\n");
	begin();
	assert_int_equal(t.n, 1);
	assert_true(t.packets[0]->incremental_state_cleared);
	assert_true(t.packets[0]->timestamp > 0);
	assert_true(tree_of(0)->collection_end_timestamp >
	    t.packets[0]->timestamp);
	assert_int_equal(tree_of(0)->n_processes, 2);
	p = described(10);
	assert_non_null(p);
	assert_int_equal(p->ppid, 1);
	assert_int_equal(p->uid, 33);
	assert_int_equal(p->n_cmdline, 2);
	assert_string_equal(p->cmdline[0], "/bin/shell");
	assert_string_equal(p->cmdline[1], "--flag");
	assert_false(p->cmdline_is_comm);
	assert_true(p->has_is_kthread);
	assert_false(p->is_kthread);
	assert_false(p->has_process_start_from_boot);
	assert_int_equal(p->n_nspid, 0);
	p = described(12);
	assert_non_null(p);
	assert_int_equal(p->n_cmdline, 1);
	assert_string_equal(p->cmdline[0], "kworker/0:1");
	assert_true(p->cmdline_is_comm);
	assert_true(p->is_kthread);
}

static void
threads_have_names_only_when_asked_for(void **state)
{
	config.scan_all_processes_on_start = true;
	tree_process(&t, 10, 1, "server", 5);
	tree_thread(&t, 10, 11, "worker) \xff");
	begin();
	assert_null(thread(10)); /* known from its process */
	assert_non_null(thread(11));
	assert_int_equal(thread(11)->tgid, 10);
	assert_null(thread(11)->name);
	process_stats_free(s);
	tree_forget(&t);

	config.record_thread_names = true;
	begin();
	assert_string_equal(thread(11)->name, "worker) ?");
	assert_string_equal(thread(10)->name, "server");
	assert_int_equal(thread(10)->tgid, 10);
	process_stats_free(s);
	tree_forget(&t);

	config.skip_main_thread_message = true;
	begin();
	assert_null(thread(10));
	assert_non_null(thread(11));
}

static void
ids_in_namespaces_are_written(void **state)
{
	config.scan_all_processes_on_start = true;
	tree_process(&t, 10, 1, "boxed", 5);
	tree_file(&t, "proc/10/status", "Name:\tboxed\nTgid:\t10\nPid:\t10\n"
	    "PPid:\t1\nNSpid:\t10\t4\t1\n");
	tree_file(&t, "proc/10/task/11/status", "Name:\tt\nTgid:\t10\n"
	    "Pid:\t11\nPPid:\t1\nNSpid:\t11\t5\t2\n");
	begin();
	assert_int_equal(described(10)->n_nspid, 2);
	assert_int_equal(described(10)->nspid[0], 4);
	assert_int_equal(described(10)->nspid[1], 1);
	assert_int_equal(thread(11)->n_nstid, 2);
	assert_int_equal(thread(11)->nstid[1], 2);
	assert_null(thread(11)->name);
}

static void
the_age_is_written_when_asked_for(void **state)
{
	config.scan_all_processes_on_start = true;
	config.record_process_age = true;
	tree_process(&t, 10, 1, "a) b (", 5);
	begin();
	assert_int_equal(described(10)->process_start_from_boot,
	    30 * 10000000ull);
}

static void
a_quirk_turns_the_first_scan_off(void **state)
{
	static Perfetto__Protos__ProcessStatsConfig__Quirks quirks[] = {
		PERFETTO__PROTOS__PROCESS_STATS_CONFIG__QUIRKS__DISABLE_INITIAL_DUMP
	};

	config.scan_all_processes_on_start = true;
	config.quirks = quirks;
	config.n_quirks = 1;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	assert_int_equal(t.n, 0);
}

static void
a_poll_writes_counters_and_describes_what_is_new(void **state)
{
	config.proc_stats_poll_ms = 1000;
	tree_process(&t, 10, 1, "a", 5);
	tree_kthread(&t, 12, "kworker/0:1");
	begin();
	assert_int_equal(t.n, 0);
	process_stats_poll(s);
	assert_int_equal(t.n, 2);
	assert_true(t.packets[0]->incremental_state_cleared);
	assert_false(t.packets[1]->has_incremental_state_cleared);
	assert_true(stats_of(0)->collection_end_timestamp >
	    t.packets[0]->timestamp);
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	assert_int_equal(stats(10)->vm_size_kb, 10);
	assert_int_equal(stats(10)->rss_anon_kb, 1);
	assert_int_equal(stats(10)->oom_score_adj, -10);
	assert_false(stats(10)->has_vm_swap_kb);
	assert_false(stats(10)->has_runtime_user_mode);
	assert_null(stats(12));
	assert_non_null(described(10));
	assert_non_null(described(12));

	tree_process(&t, 14, 1, "later", 6);
	poll_anew();
	assert_non_null(stats(14));
	assert_non_null(described(14));
	assert_null(described(10));
}

static void
by_default_every_poll_repeats_all_values(void **state)
{
	config.proc_stats_poll_ms = 1000;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	process_stats_poll(s);
	poll_anew();
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	assert_int_equal(stats(10)->oom_score_adj, -10);
}

static void
within_the_cache_s_life_only_changes_are_written(void **state)
{
	config.proc_stats_poll_ms = 1000;
	config.proc_stats_cache_ttl_ms = 3000;
	config.record_process_runtime = true;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	process_stats_poll(s);
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	poll_anew();
	assert_int_equal(t.n, 0); /* no empty packet */
	tree_process(&t, 10, 1, "a", 6);
	poll_anew();
	assert_int_equal(stats(10)->vm_rss_kb, 6);
	assert_int_equal(stats(10)->vm_size_kb, 12);
	assert_false(stats(10)->has_rss_anon_kb);
	assert_false(stats(10)->has_oom_score_adj);
	assert_false(stats(10)->has_runtime_user_mode);
	poll_anew(); /* the fourth: forgotten after the third */
	assert_int_equal(stats(10)->vm_rss_kb, 6);
	assert_int_equal(stats(10)->rss_anon_kb, 1);
}

static void
runtimes_are_in_nanoseconds(void **state)
{
	config.proc_stats_poll_ms = 1000;
	config.record_process_runtime = true;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	process_stats_poll(s);
	assert_int_equal(stats(10)->runtime_user_mode, 10 * 10000000ull);
	assert_int_equal(stats(10)->runtime_kernel_mode, 20 * 10000000ull);
}

static void
the_smaps_rollup_and_dmabufs_are_read_when_asked_for(void **state)
{
	config.proc_stats_poll_ms = 1000;
	config.scan_smaps_rollup = true;
	config.record_process_dmabuf_rss = true;
	tree_process(&t, 10, 1, "a", 5);
	tree_file(&t, "proc/10/smaps_rollup", "x\nRss: 7 kB\nPss: 8 kB\n"
	    "SwapPss: 9 kB\n");
	tree_file(&t, "proc/10/dmabuf_rss", "20480\n");
	tree_process(&t, 11, 1, "b", 5);
	begin();
	process_stats_poll(s);
	assert_int_equal(stats(10)->smr_rss_kb, 7);
	assert_int_equal(stats(10)->smr_pss_kb, 8);
	assert_int_equal(stats(10)->smr_swap_pss_kb, 9);
	assert_int_equal(stats(10)->dmabuf_rss_kb, 20);
	assert_false(stats(11)->has_smr_rss_kb);
	assert_false(stats(11)->has_dmabuf_rss_kb);
}

static void
open_files_are_resolved_when_asked_for(void **state)
{
	config.scan_all_processes_on_start = true;
	config.proc_stats_poll_ms = 1000;
	config.proc_stats_cache_ttl_ms = 60000;
	config.resolve_process_fds = true;
	tree_process(&t, 10, 1, "a", 5);
	tree_link(&t, "proc/10/fd/0", "/dev/null");
	tree_link(&t, "proc/10/fd/17", "socket:[4711] \xff");
	begin();
	assert_int_equal(stats(10)->n_fds, 2);
	poll_anew();
	assert_int_equal(stats(10)->n_fds, 0); /* known */
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	tree_link(&t, "proc/10/fd/3", "/tmp/x");
	poll_anew();
	assert_int_equal(stats(10)->n_fds, 1);
	assert_int_equal(stats(10)->fds[0]->fd, 3);
	assert_string_equal(stats(10)->fds[0]->path, "/tmp/x");
	process_stats_clear_incremental_state(s);
	poll_anew();
	assert_int_equal(stats(10)->n_fds, 3);
}

static void
clearing_incremental_state_describes_all_again(void **state)
{
	config.proc_stats_poll_ms = 1000;
	config.proc_stats_cache_ttl_ms = 60000;
	tree_process(&t, 10, 1, "a", 5);
	tree_kthread(&t, 12, "kworker/0:1");
	begin();
	process_stats_poll(s);
	poll_anew();
	assert_int_equal(t.n, 0);
	process_stats_clear_incremental_state(s);
	assert_int_equal(t.n, 0);
	poll_anew();
	assert_true(t.packets[0]->incremental_state_cleared);
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	assert_non_null(described(10));
	assert_non_null(described(12));
}

static void
without_polls_clearing_scans_at_once(void **state)
{
	config.scan_all_processes_on_start = true;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	tree_forget(&t);
	process_stats_clear_incremental_state(s);
	assert_true(t.packets[0]->incremental_state_cleared);
	assert_non_null(described(10));
}

static void
a_process_that_ended_is_forgotten(void **state)
{
	int before;

	config.proc_stats_poll_ms = 1000;
	config.proc_stats_cache_ttl_ms = 60000;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	before = t.env.fds_left;
	process_stats_poll(s);
	assert_true(t.env.fds_left < before);
	tree_remove(&t, "proc/10");
	poll_anew();
	assert_int_equal(t.n, 0);
	assert_int_equal(t.env.fds_left, before);
	/* its pid is another's now */
	tree_process(&t, 10, 1, "b", 5);
	poll_anew();
	assert_string_equal(described(10)->cmdline[0], "/bin/b");
	assert_int_equal(stats(10)->vm_rss_kb, 5);
}

static void
without_descriptors_to_keep_all_works_the_same(void **state)
{
	config.proc_stats_poll_ms = 1000;
	config.proc_stats_cache_ttl_ms = 60000;
	config.record_process_runtime = true;
	t.env.fds_left = 0;
	tree_process(&t, 10, 1, "a", 5);
	begin();
	process_stats_poll(s);
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	tree_process(&t, 10, 1, "a", 6);
	poll_anew();
	assert_int_equal(stats(10)->vm_rss_kb, 6);
	assert_int_equal(t.env.fds_left, 0);
	t.env.fds_left = 1000;
}

static void
a_file_that_cannot_be_read_costs_only_itself(void **state)
{
	config.proc_stats_poll_ms = 1000;
	config.record_process_runtime = true;
	tree_process(&t, 10, 1, "a", 5);
	tree_remove(&t, "proc/10/oom_score_adj");
	tree_remove(&t, "proc/10/stat");
	tree_remove(&t, "proc/10/cmdline");
	tree_process(&t, 11, 1, "b", 5);
	tree_remove(&t, "proc/11/status");
	tree_file(&t, "proc/13/status", "garbage\n\n:\n");
	tree_process(&t, 14, 1, "c", 5);
	begin();
	process_stats_poll(s);
	assert_int_equal(stats(10)->vm_rss_kb, 5);
	assert_false(stats(10)->has_oom_score_adj);
	assert_string_equal(described(10)->cmdline[0], "a");
	assert_true(described(10)->cmdline_is_comm);
	assert_null(stats(11));
	assert_null(described(11));
	assert_null(described(13));
	assert_non_null(stats(14));
	assert_non_null(described(14));
}

static void
many_processes_come_in_packets_of_bearable_size(void **state)
{
	size_t i, n = 0;
	int pid;

	config.scan_all_processes_on_start = true;
	config.proc_stats_poll_ms = 1000;
	for (pid = 1000; pid < 2000; pid++)
		tree_process(&t, pid, 1, "a-process-with-a-name", 5);
	begin();
	process_stats_poll(s);
	assert_true(t.n > 4);
	for (i = 0; i < t.n; i++) {
		assert_true(perfetto__protos__trace_packet__get_packed_size(
		    t.packets[i]) < 20 * 1024);
		if (tree_of(i) != NULL)
			n += tree_of(i)->n_processes;
		assert_int_equal(t.packets[i]->has_incremental_state_cleared,
		    i == 0);
	}
	assert_int_equal(n, 1000);
	assert_non_null(stats(1999));
}

static void
the_period_has_a_floor(void **state)
{
	config.proc_stats_poll_ms = 5;
	begin();
	assert_int_equal(process_stats_period_ms(s), 100);
	process_stats_free(s);
	config.proc_stats_poll_ms = 250;
	begin();
	assert_int_equal(process_stats_period_ms(s), 250);
}

static void
a_proc_that_is_not_there_is_an_error(void **state)
{
	t.env.proc = "/nonexistent";
	assert_null(process_stats_new(&t.env, &config, tree_packet, &t));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_config_nothing_is_written),
		TEST(the_first_scan_describes_every_process),
		TEST(threads_have_names_only_when_asked_for),
		TEST(ids_in_namespaces_are_written),
		TEST(the_age_is_written_when_asked_for),
		TEST(a_quirk_turns_the_first_scan_off),
		TEST(a_poll_writes_counters_and_describes_what_is_new),
		TEST(by_default_every_poll_repeats_all_values),
		TEST(within_the_cache_s_life_only_changes_are_written),
		TEST(runtimes_are_in_nanoseconds),
		TEST(the_smaps_rollup_and_dmabufs_are_read_when_asked_for),
		TEST(open_files_are_resolved_when_asked_for),
		TEST(clearing_incremental_state_describes_all_again),
		TEST(without_polls_clearing_scans_at_once),
		TEST(a_process_that_ended_is_forgotten),
		TEST(without_descriptors_to_keep_all_works_the_same),
		TEST(a_file_that_cannot_be_read_costs_only_itself),
		TEST(many_processes_come_in_packets_of_bearable_size),
		TEST(the_period_has_a_floor),
		TEST(a_proc_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
