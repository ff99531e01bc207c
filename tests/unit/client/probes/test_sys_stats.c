/* linux.sys_stats over folders that look like /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/probes/sys_stats.h"
#include "tests/unit/client/probes/fake_tree.h"

typedef Perfetto__Protos__SysStatsConfig Config;
typedef Perfetto__Protos__SysStats SysStats;

static struct tree t;
static struct sys_stats *s;
static Config config;

static int
setup(void **state)
{
	Config empty = PERFETTO__PROTOS__SYS_STATS_CONFIG__INIT;

	config = empty;
	tree_init(&t);
	s = NULL;
	return 0;
}

static int
teardown(void **state)
{
	sys_stats_free(s);
	tree_done(&t);
	return 0;
}

static void
begin(void)
{
	s = sys_stats_new(&t.env, &config, tree_packet, &t);
	assert_non_null(s);
}

static SysStats *
polled(void)
{
	tree_forget(&t);
	sys_stats_poll(s);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.packets[0]->data_case,
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_SYS_STATS);
	assert_true(t.packets[0]->sys_stats->collection_end_timestamp >
	    t.packets[0]->timestamp);
	return t.packets[0]->sys_stats;
}

static void
without_a_config_there_is_no_period(void **state)
{
	s = sys_stats_new(&t.env, NULL, tree_packet, &t);
	assert_int_equal(sys_stats_period_ms(s), 0);
}

static void
periods_have_a_floor_and_a_ceiling(void **state)
{
	config.meminfo_period_ms = 1;
	begin();
	assert_int_equal(sys_stats_period_ms(s), 10);
	sys_stats_free(s);
	config.meminfo_period_ms = UINT32_MAX;
	begin();
	assert_int_equal(sys_stats_period_ms(s), 3600000);
}

static void
each_kind_is_read_at_its_own_period(void **state)
{
	SysStats *st;
	int i;

	tree_file(&t, "proc/meminfo", "MemTotal: 9 kB\n");
	tree_file(&t, "proc/vmstat", "nr_free_pages 8\n");
	tree_file(&t, "proc/stat", "processes 7\n");
	config.meminfo_period_ms = 100;
	config.vmstat_period_ms = 200;
	config.stat_period_ms = 290; /* becomes 300 */
	begin();
	assert_int_equal(sys_stats_period_ms(s), 100);
	for (i = 0; i < 12; i++) {
		st = polled();
		assert_int_equal(st->n_meminfo, 1);
		assert_int_equal(st->n_vmstat, i % 2 == 0);
		assert_int_equal(st->has_num_forks, i % 3 == 0);
	}
}

static void
every_kind_of_proc_file_gives_its_part(void **state)
{
	static Perfetto__Protos__SysStatsConfig__StatCounters counters[] = {
	    PERFETTO__PROTOS__SYS_STATS_CONFIG__STAT_COUNTERS__STAT_FORK_COUNT
	};
	SysStats *st;

	tree_file(&t, "proc/meminfo", "MemTotal: 9 kB\n");
	tree_file(&t, "proc/vmstat", "nr_free_pages 8\n");
	tree_file(&t, "proc/stat", "cpu0 1 1 1 1\nprocesses 7\n");
	tree_file(&t, "proc/buddyinfo", "Node 0, zone DMA 1 2\n");
	tree_file(&t, "proc/diskstats", " 8 0 sda 1 2 3 4 5 6 7 8 9 1 1\n");
	tree_file(&t, "proc/slabinfo", "a 1 2 3 4 5 : tunables 0 0 0 : "
	    "slabdata 6 7 0\n");
	tree_file(&t, "proc/pressure/cpu", "some total=1\n");
	tree_file(&t, "proc/pressure/io", "some total=2\nfull total=3\n");
	tree_file(&t, "proc/pressure/memory", "full total=4\n");
	config.meminfo_period_ms = config.vmstat_period_ms = 100;
	config.stat_period_ms = config.buddyinfo_period_ms = 100;
	config.diskstat_period_ms = config.slab_period_ms = 100;
	config.psi_period_ms = 100;
	config.stat_counters = counters;
	config.n_stat_counters = 1;
	begin();
	st = polled();
	assert_int_equal(st->n_meminfo, 1);
	assert_int_equal(st->n_vmstat, 1);
	assert_int_equal(st->n_cpu_stat, 0);
	assert_int_equal(st->num_forks, 7);
	assert_int_equal(st->n_buddy_info, 1);
	assert_int_equal(st->n_disk_stat, 1);
	assert_int_equal(st->n_slab_info, 1);
	assert_int_equal(st->slab_info[0]->num_slabs, 7);
	assert_int_equal(st->n_psi, 4);
	assert_int_equal(st->psi[0]->resource, 1);
	assert_int_equal(st->psi[3]->resource, 6);
	assert_int_equal(st->psi[3]->total_ns, 4000);

	/* files are read again, not kept in mind */
	tree_file(&t, "proc/meminfo", "MemTotal: 10 kB\n");
	assert_int_equal(polled()->meminfo[0]->value, 10);
}

static void
a_file_longer_than_a_page_is_read_whole(void **state)
{
	static char text[64 * 1024];
	size_t i, n = 0;

	for (i = 0; i < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    " 8 %zu sd%zu 1 2 3 4 5 6 7 8 9 1 1\n", i, i);
	tree_file(&t, "proc/diskstats", text);
	config.diskstat_period_ms = 100;
	begin();
	assert_int_equal(polled()->n_disk_stat, 1000);
	assert_int_equal(polled()->n_disk_stat, 1000);
}

static void
a_missing_file_is_left_out(void **state)
{
	tree_file(&t, "proc/meminfo", "MemTotal: 9 kB\n");
	config.meminfo_period_ms = config.vmstat_period_ms = 100;
	config.thermal_period_ms = config.cpufreq_period_ms = 100;
	config.cpuidle_period_ms = config.devfreq_period_ms = 100;
	config.gpufreq_period_ms = config.psi_period_ms = 100;
	begin();
	assert_int_equal(polled()->n_meminfo, 1);
	assert_int_equal(polled()->n_vmstat, 0);
	assert_int_equal(polled()->n_cpufreq_khz, 0);
	assert_int_equal(polled()->n_thermal_zone, 0);
}

#define CPU "sys/devices/system/cpu/"

static void
frequencies_have_one_entry_for_each_processor(void **state)
{
	SysStats *st;

	tree_file(&t, CPU "cpu0/cpufreq/scaling_cur_freq", "800000\n");
	tree_file(&t, CPU "cpu2/cpufreq/scaling_cur_freq", "900000\n");
	tree_file(&t, CPU "cpu10/cpufreq/scaling_cur_freq", "1000000\n");
	tree_file(&t, CPU "cpufreq/policy0/scaling_cur_freq", "1\n");
	config.cpufreq_period_ms = 100;
	begin();
	st = polled();
	assert_int_equal(st->n_cpufreq_khz, 11);
	assert_int_equal(st->cpufreq_khz[0], 800000);
	assert_int_equal(st->cpufreq_khz[1], 0); /* offline */
	assert_int_equal(st->cpufreq_khz[2], 900000);
	assert_int_equal(st->cpufreq_khz[10], 1000000);
	tree_file(&t, CPU "cpu2/cpufreq/scaling_cur_freq", "950000\n");
	assert_int_equal(polled()->cpufreq_khz[2], 950000);
}

static void
idle_states_are_grouped_by_processor(void **state)
{
	SysStats *st;

	tree_file(&t, CPU "cpu0/cpuidle/state0/name", "POLL\n");
	tree_file(&t, CPU "cpu0/cpuidle/state0/time", "11\n");
	tree_file(&t, CPU "cpu0/cpuidle/state1/name", "C1\n");
	tree_file(&t, CPU "cpu0/cpuidle/state1/time", "22\n");
	tree_file(&t, CPU "cpu11/cpuidle/state0/name", "POLL\n");
	tree_file(&t, CPU "cpu11/cpuidle/state0/time", "33\n");
	tree_file(&t, CPU "cpu11/cpuidle/state1/time", "44\n"); /* no name */
	config.cpuidle_period_ms = 100;
	begin();
	st = polled();
	assert_int_equal(st->n_cpuidle_state, 2);
	assert_int_equal(st->cpuidle_state[0]->cpu_id, 0);
	assert_int_equal(st->cpuidle_state[0]->n_cpuidle_state_entry, 2);
	assert_string_equal(
	    st->cpuidle_state[0]->cpuidle_state_entry[1]->state, "C1");
	assert_int_equal(
	    st->cpuidle_state[0]->cpuidle_state_entry[1]->duration_us, 22);
	assert_int_equal(st->cpuidle_state[1]->cpu_id, 11);
	assert_int_equal(st->cpuidle_state[1]->n_cpuidle_state_entry, 1);
}

static void
zones_and_devices_have_names(void **state)
{
	SysStats *st;

	tree_file(&t, "sys/class/thermal/thermal_zone0/temp", "42500\n");
	tree_file(&t, "sys/class/thermal/thermal_zone0/type", "x86_pkg\n");
	tree_file(&t, "sys/class/thermal/thermal_zone1/temp", "-5000\n");
	tree_file(&t, "sys/class/thermal/thermal_zone1/type", "outside\n");
	tree_file(&t, "sys/class/thermal/cooling_device0/temp", "1\n");
	tree_file(&t, "sys/class/devfreq/bus-mem/cur_freq", "933000000\n");
	config.thermal_period_ms = config.devfreq_period_ms = 100;
	begin();
	st = polled();
	assert_int_equal(st->n_thermal_zone, 1);
	assert_string_equal(st->thermal_zone[0]->name, "thermal_zone0");
	assert_string_equal(st->thermal_zone[0]->type, "x86_pkg");
	assert_int_equal(st->thermal_zone[0]->temp, 42);
	assert_int_equal(st->n_devfreq, 1);
	assert_string_equal(st->devfreq[0]->key, "bus-mem");
	assert_int_equal(st->devfreq[0]->value, 933000000);
}

static void
graphics_of_each_maker_are_found(void **state)
{
	SysStats *st;

	tree_file(&t, "sys/class/drm/card0/gt_act_freq_mhz", "350\n");
	tree_file(&t, "sys/class/drm/card1/device/pp_dpm_sclk",
	    "0: 200Mhz \n1: 800Mhz *\n");
	config.gpufreq_period_ms = 100;
	begin();
	st = polled();
	assert_int_equal(st->n_gpufreq_mhz, 2);
	assert_int_equal(st->gpufreq_mhz[0], 350);
	assert_int_equal(st->gpufreq_mhz[1], 800);
	sys_stats_free(s);
	tree_file(&t, "sys/class/kgsl/kgsl-3d0/devfreq/cur_freq",
	    "710000000\n");
	begin();
	st = polled();
	assert_int_equal(st->n_gpufreq_mhz, 1);
	assert_int_equal(st->gpufreq_mhz[0], 710);
}

static void
sensors_that_come_and_go_are_looked_for_again(void **state)
{
	int i;

	tree_file(&t, "sys/class/thermal/thermal_zone0/temp", "42500\n");
	config.thermal_period_ms = 100;
	begin();
	assert_int_equal(polled()->n_thermal_zone, 1);
	tree_file(&t, "sys/class/thermal/thermal_zone0/temp", "");
	tree_file(&t, "sys/class/thermal/thermal_zone7/temp", "50000\n");
	for (i = 0; i < 32; i++)
		assert_int_equal(polled()->n_thermal_zone, 0);
	assert_int_equal(polled()->n_thermal_zone, 1);
	assert_string_equal(polled()->thermal_zone[0]->name, "thermal_zone7");
}

static void
without_descriptors_to_keep_sensors_are_read_all_the_same(void **state)
{
	tree_file(&t, "sys/class/thermal/thermal_zone0/temp", "42500\n");
	config.thermal_period_ms = 100;
	t.env.fds_left = 0;
	begin();
	assert_int_equal(polled()->thermal_zone[0]->temp, 42);
	tree_file(&t, "sys/class/thermal/thermal_zone0/temp", "43500\n");
	assert_int_equal(polled()->thermal_zone[0]->temp, 43);
	assert_int_equal(t.env.fds_left, 0);
	t.env.fds_left = 1000;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_config_there_is_no_period),
		TEST(periods_have_a_floor_and_a_ceiling),
		TEST(each_kind_is_read_at_its_own_period),
		TEST(every_kind_of_proc_file_gives_its_part),
		TEST(a_file_longer_than_a_page_is_read_whole),
		TEST(a_missing_file_is_left_out),
		TEST(frequencies_have_one_entry_for_each_processor),
		TEST(idle_states_are_grouped_by_processor),
		TEST(zones_and_devices_have_names),
		TEST(graphics_of_each_maker_are_found),
		TEST(sensors_that_come_and_go_are_looked_for_again),
		TEST(without_descriptors_to_keep_sensors_are_read_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
