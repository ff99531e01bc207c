/* The kernel's texts of the machine, real ones and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/probes/sys_keys.h"
#include "client/probes/sys_text.h"
#include "protos/fields.h"
#include "protos/sys_stats.pb-c.h"
#include "transport/wire/pb_writer.h"

typedef Perfetto__Protos__SysStats SysStats;

static struct pb_writer w;
static SysStats *st;

static int
setup(void **state)
{
	pb_writer_init(&w);
	st = NULL;
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	perfetto__protos__sys_stats__free_unpacked(st, NULL);
	return 0;
}

static SysStats *
unpack(void)
{
	perfetto__protos__sys_stats__free_unpacked(st, NULL);
	st = perfetto__protos__sys_stats__unpack(NULL, w.len, w.data);
	assert_non_null(st);
	return st;
}

static void
meminfo(const char *text, const int *wanted, size_t n)
{
	struct sys_keys *k = sys_keys_meminfo(wanted, n);

	assert_non_null(k);
	sys_text_counters(&w, SysStats_meminfo, k, text, strlen(text));
	sys_keys_free(k);
}

static const char meminfo_618[] =
    "MemTotal:       24684096 kB\nMemFree:        24432440 kB\n"
    "MemAvailable:   24374704 kB\nActive(anon):       1568 kB\n"
    "Zswap:                 0 kB\nSReclaimable:      67448 kB\n"
    "SUnreclaim:        22928 kB\nCommitted_AS:      75676 kB\n"
    "VmallocTotal:   34359738367 kB\nHugePages_Total:       7\n"
    "DirectMap1G:    25165824 kB\n";

static void
meminfo_gives_all_known_counters_when_none_is_named(void **state)
{
	static const struct {
		int key;
		uint64_t kb;
	} want[] = { { 1, 24684096 }, { 2, 24432440 }, { 3, 24374704 },
	    { 9, 1568 }, { 23, 67448 }, { 24, 22928 }, { 28, 75676 },
	    { 29, 34359738367 } };
	size_t i;

	meminfo(meminfo_618, NULL, 0);
	unpack();
	assert_int_equal(st->n_meminfo, sizeof(want) / sizeof(want[0]));
	for (i = 0; i < st->n_meminfo; i++) {
		assert_int_equal(st->meminfo[i]->key, want[i].key);
		assert_int_equal(st->meminfo[i]->value, want[i].kb);
	}
}

static void
meminfo_gives_only_what_was_asked_for(void **state)
{
	static const int wanted[] = { 28, 2, 4711, -1, 0 };

	meminfo(meminfo_618, wanted, 5);
	unpack();
	assert_int_equal(st->n_meminfo, 2);
	assert_int_equal(st->meminfo[0]->key, 2);
	assert_int_equal(st->meminfo[1]->key, 28);
}

static void
every_counter_of_vmstat_has_the_kernel_s_name(void **state)
{
	static const char text[] = "nr_free_pages 1172609\n"
	    "nr_zone_inactive_anon 3303\npgpgin 5\nallocstall_dma32 6\n"
	    "workingset_restore_file 9\nnot_known_to_anyone 3\n"
	    "thp_zero_page_alloc_failed 18446744073709551615\n"
	    "vmstat_unspecified 4\nunspecified 4\n";
	static const int want[] = { 1, 111, 38, 130, 188, 177 };
	struct sys_keys *k = sys_keys_vmstat(NULL, 0);
	size_t i;

	sys_text_counters(&w, SysStats_vmstat, k, text, strlen(text));
	sys_keys_free(k);
	unpack();
	assert_int_equal(st->n_vmstat, 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(st->vmstat[i]->key, want[i]);
	assert_int_equal(st->vmstat[0]->value, 1172609);
	assert_true(st->vmstat[5]->value == UINT64_MAX);
}

static void
counters_survive_lines_without_sense(void **state)
{
	meminfo("\n\n:\n: 5\nMemTotal\nMemTotal:\nMemTotal: kB\n   \n"
	    "MemTotal :7\nMemFree:\t9\nMemFree: 1", NULL, 0);
	unpack();
	assert_int_equal(st->n_meminfo, 2);
	assert_int_equal(st->meminfo[0]->key, 2);
	assert_int_equal(st->meminfo[0]->value, 9);
	assert_int_equal(st->meminfo[1]->value, 1);
}

static const char stat_618[] =
    "cpu  12742 0 3250 451511 491 0 100 78 0 0\n"
    "cpu0 6361 1 1486 226135 41 2 32 45 0 0\n"
    "cpu12 6381 0 1764 225376 449 0 67 33 0 0\n"
    "intr 297799 0 1 0 16\nctxt 475175\nbtime 1795232387\n"
    "processes 16954\nprocs_running 2\nprocs_blocked 0\n"
    "softirq 295793 0 44022 4\n";

static void
stat_gives_times_of_each_processor_in_nanoseconds(void **state)
{
	sys_text_stat(&w, ~0u, 10000000, stat_618, strlen(stat_618));
	unpack();
	assert_int_equal(st->n_cpu_stat, 2);
	assert_int_equal(st->cpu_stat[0]->cpu_id, 0);
	assert_int_equal(st->cpu_stat[0]->user_ns, 63610000000);
	assert_int_equal(st->cpu_stat[0]->user_nice_ns, 10000000);
	assert_int_equal(st->cpu_stat[0]->system_mode_ns, 14860000000);
	assert_int_equal(st->cpu_stat[0]->idle_ns, 2261350000000);
	assert_int_equal(st->cpu_stat[0]->io_wait_ns, 410000000);
	assert_int_equal(st->cpu_stat[0]->irq_ns, 20000000);
	assert_int_equal(st->cpu_stat[0]->softirq_ns, 320000000);
	assert_int_equal(st->cpu_stat[0]->steal_ns, 450000000);
	assert_int_equal(st->cpu_stat[1]->cpu_id, 12);
	assert_int_equal(st->num_forks, 16954);
	assert_int_equal(st->num_irq_total, 297799);
	assert_int_equal(st->n_num_irq, 2); /* those that happened */
	assert_int_equal(st->num_irq[0]->irq, 1);
	assert_int_equal(st->num_irq[0]->count, 1);
	assert_int_equal(st->num_irq[1]->irq, 3);
	assert_int_equal(st->num_softirq_total, 295793);
	assert_int_equal(st->n_num_softirq, 3);
	assert_int_equal(st->num_softirq[1]->irq, 1);
	assert_int_equal(st->num_softirq[1]->count, 44022);
}

static void
stat_gives_only_what_was_asked_for(void **state)
{
	sys_text_stat(&w, SYS_STAT_FORK_COUNT, 1, stat_618, strlen(stat_618));
	unpack();
	assert_int_equal(st->n_cpu_stat, 0);
	assert_false(st->has_num_irq_total);
	assert_int_equal(st->n_num_irq, 0);
	assert_false(st->has_num_softirq_total);
	assert_int_equal(st->num_forks, 16954);
	w.len = 0;
	sys_text_stat(&w, SYS_STAT_CPU_TIMES | SYS_STAT_SOFTIRQ_COUNTS, 1,
	    stat_618, strlen(stat_618));
	unpack();
	assert_int_equal(st->n_cpu_stat, 2);
	assert_false(st->has_num_forks);
	assert_false(st->has_num_irq_total);
	assert_true(st->has_num_softirq_total);
}

static void
an_old_stat_line_has_fewer_times(void **state)
{
	static const char text[] = "cpu0 1 2 3\ncpux 1 2\ncpu0x 4\ncpu\n"
	    "intr\nsoftirq x\nprocesses\n";

	sys_text_stat(&w, ~0u, 1, text, strlen(text));
	unpack();
	assert_int_equal(st->n_cpu_stat, 1);
	assert_int_equal(st->cpu_stat[0]->system_mode_ns, 3);
	assert_int_equal(st->cpu_stat[0]->idle_ns, 0);
	assert_false(st->has_num_forks);
}

static void
buddyinfo_gives_the_free_blocks_of_each_zone(void **state)
{
	static const char text[] =
	    "Node 0, zone      DMA      0      0      0      3 \n"
	    "Node 1, zone   Normal      1     73    834    277 \n"
	    "Node 2\nNode 2,\nNode 2, zone\nzone 5\n";

	sys_text_buddyinfo(&w, text, strlen(text));
	unpack();
	assert_int_equal(st->n_buddy_info, 2);
	assert_string_equal(st->buddy_info[0]->node, "0");
	assert_string_equal(st->buddy_info[0]->zone, "DMA");
	assert_int_equal(st->buddy_info[0]->n_order_pages, 4);
	assert_int_equal(st->buddy_info[0]->order_pages[3], 3);
	assert_string_equal(st->buddy_info[1]->node, "1");
	assert_string_equal(st->buddy_info[1]->zone, "Normal");
	assert_int_equal(st->buddy_info[1]->order_pages[2], 834);
}

static void
diskstats_are_read_from_kernels_old_and_new(void **state)
{
	static const char text[] =
	    " 254       0 vda 3215 812 351194 1047 5713 2714 190610 3311 0 "
	    "2748 4573 17 0 92 3 411 212\n"
	    "   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11\n"
	    "   8       2\n\nx y z\n";

	sys_text_diskstats(&w, text, strlen(text));
	unpack();
	assert_int_equal(st->n_disk_stat, 2);
	assert_string_equal(st->disk_stat[0]->device_name, "vda");
	assert_int_equal(st->disk_stat[0]->read_sectors, 351194);
	assert_int_equal(st->disk_stat[0]->read_time_ms, 1047);
	assert_int_equal(st->disk_stat[0]->write_sectors, 190610);
	assert_int_equal(st->disk_stat[0]->write_time_ms, 3311);
	assert_int_equal(st->disk_stat[0]->discard_sectors, 92);
	assert_int_equal(st->disk_stat[0]->discard_time_ms, 3);
	assert_int_equal(st->disk_stat[0]->flush_count, 411);
	assert_int_equal(st->disk_stat[0]->flush_time_ms, 212);
	assert_string_equal(st->disk_stat[1]->device_name, "sda1");
	assert_int_equal(st->disk_stat[1]->read_sectors, 3);
	assert_int_equal(st->disk_stat[1]->write_time_ms, 8);
	assert_false(st->disk_stat[1]->has_discard_sectors);
}

static void
pressure_is_told_in_nanoseconds(void **state)
{
	static const char text[] =
	    "some avg10=0.00 avg60=0.00 avg300=0.07 total=9390407\n"
	    "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"
	    "most total=3\nsome\nfull total=\n";

	sys_text_psi(&w, SYS_PSI_IO, text, strlen(text));
	unpack();
	assert_int_equal(st->n_psi, 2);
	assert_int_equal(st->psi[0]->resource, 3);
	assert_int_equal(st->psi[0]->total_ns, 9390407000);
	assert_int_equal(st->psi[1]->resource, 4);
	assert_int_equal(st->psi[1]->total_ns, 12000);
}

static void
slabinfo_gives_pages_and_slabs(void **state)
{
	static const char text[] = "slabinfo - version: 2.1\n"
	    "# name            <active_objs> <num_objs> <objsize> "
	    "<objperslab> <pagesperslab> : tunables <limit> <batchcount> "
	    "<sharedfactor> : slabdata <active_slabs> <num_slabs> "
	    "<sharedavail>\n"
	    "btrfs_delayed_node      0      0    312   13    1 : tunables    "
	    "0    0    0 : slabdata      0      0      0\n"
	    "kmalloc-8k           128    132   8192    4    8 : tunables    "
	    "0    0    0 : slabdata     31     33      0\n"
	    "kmalloc-cut          128    132   8192    4    8 : slabdata\n"
	    "odd 1 2\n";

	sys_text_slabinfo(&w, text, strlen(text));
	unpack();
	assert_int_equal(st->n_slab_info, 2);
	assert_string_equal(st->slab_info[0]->name, "btrfs_delayed_node");
	assert_int_equal(st->slab_info[0]->pages_per_slab, 1);
	assert_string_equal(st->slab_info[1]->name, "kmalloc-8k");
	assert_int_equal(st->slab_info[1]->pages_per_slab, 8);
	assert_int_equal(st->slab_info[1]->num_slabs, 33);
}

static void
a_number_may_be_negative_and_must_be_one(void **state)
{
	int64_t v = 5;

	assert_true(sys_text_number("42000\n", 6, &v));
	assert_int_equal(v, 42000);
	assert_true(sys_text_number("-273", 4, &v));
	assert_int_equal(v, -273);
	assert_false(sys_text_number("", 0, &v));
	assert_false(sys_text_number("\n", 1, &v));
	assert_false(sys_text_number("-", 1, &v));
	assert_false(sys_text_number("<unknown>\n", 10, &v));
	assert_false(sys_text_number("99999999999999999999", 20, &v));
	assert_int_equal(v, -273);
}

static void
the_clock_of_an_amd_card_is_the_one_with_the_star(void **state)
{
	static const char text[] = "0: 200Mhz \n1: 800Mhz *\n2: 1400Mhz \n";
	static const char none[] = "0: 200Mhz \nS: 19Mhz\n*\n 12 *\n";
	uint64_t mhz = 0;

	assert_true(sys_text_amd_clock(text, strlen(text), &mhz));
	assert_int_equal(mhz, 800);
	assert_false(sys_text_amd_clock(none, strlen(none), &mhz));
}

/* Every text, cut anywhere, in memory that ends where the text does. */
static void
texts_cut_at_any_byte_are_survived(void **state)
{
	static const char *const texts[] = { meminfo_618, stat_618,
	    "Node 0, zone   DMA  0 3 \n", " 8 0 sda 1 2 3 4 5 6 7 8 9 1\n",
	    "some avg10=0.00 total=9\n", "a 1 2 3 4 5 : x : slabdata 1 2 3\n",
	    "1: 800Mhz *\n" };
	struct sys_keys *k = sys_keys_meminfo(NULL, 0);
	size_t t, n;
	uint64_t mhz;
	int64_t v;
	char *copy;

	for (t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		for (n = 0; n <= strlen(texts[t]); n++) {
			copy = malloc(n > 0 ? n : 1);
			memcpy(copy, texts[t], n);
			w.len = 0;
			sys_text_counters(&w, SysStats_meminfo, k, copy, n);
			sys_text_stat(&w, ~0u, 1, copy, n);
			sys_text_buddyinfo(&w, copy, n);
			sys_text_diskstats(&w, copy, n);
			sys_text_psi(&w, SYS_PSI_CPU, copy, n);
			sys_text_slabinfo(&w, copy, n);
			sys_text_amd_clock(copy, n, &mhz);
			sys_text_number(copy, n, &v);
			unpack();
			free(copy);
		}
	sys_keys_free(k);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(meminfo_gives_all_known_counters_when_none_is_named),
		TEST(meminfo_gives_only_what_was_asked_for),
		TEST(every_counter_of_vmstat_has_the_kernel_s_name),
		TEST(counters_survive_lines_without_sense),
		TEST(stat_gives_times_of_each_processor_in_nanoseconds),
		TEST(stat_gives_only_what_was_asked_for),
		TEST(an_old_stat_line_has_fewer_times),
		TEST(buddyinfo_gives_the_free_blocks_of_each_zone),
		TEST(diskstats_are_read_from_kernels_old_and_new),
		TEST(pressure_is_told_in_nanoseconds),
		TEST(slabinfo_gives_pages_and_slabs),
		TEST(a_number_may_be_negative_and_must_be_one),
		TEST(the_clock_of_an_amd_card_is_the_one_with_the_star),
		TEST(texts_cut_at_any_byte_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
