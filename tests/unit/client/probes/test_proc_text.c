/* Texts of processes, as kernels and hostile processes make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/probes/proc_text.h"
#include "client/probes/scan.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Linux 6.18 */
static const char status_618[] =
    "Name:\tcat\nUmask:\t0022\nState:\tR (running)\nTgid:\t16943\n"
    "Ngid:\t0\nPid:\t16943\nPPid:\t16941\nTracerPid:\t0\n"
    "Uid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t256\nGroups:\t \n"
    "NStgid:\t16943\nNSpid:\t16943\nNSpgid:\t16941\nNSsid:\t4849\n"
    "Kthread:\t0\nVmPeak:\t    3060 kB\nVmSize:\t    3061 kB\n"
    "VmLck:\t       1 kB\nVmPin:\t       0 kB\nVmHWM:\t    1769 kB\n"
    "VmRSS:\t    1768 kB\nRssAnon:\t     116 kB\nRssFile:\t    1652 kB\n"
    "RssShmem:\t       2 kB\nVmData:\t     360 kB\nVmStk:\t     132 kB\n"
    "VmExe:\t      20 kB\nVmLib:\t    1528 kB\nVmPTE:\t      44 kB\n"
    "VmSwap:\t       3 kB\nHugetlbPages:\t       0 kB\nCoreDumping:\t0\n"
    "Threads:\t1\nSigQ:\t0/96365\nSeccomp:\t0\n";

static const char status_kthread[] =
    "Name:\tkworker/0:1H-events_highpri\nState:\tI (idle)\nTgid:\t12\n"
    "Pid:\t12\nPPid:\t2\nUid:\t0\t0\t0\t0\nNSpid:\t12\nKthread:\t1\n"
    "Threads:\t1\n";

static const char status_in_container[] =
    "Name:\tnginx\nTgid:\t5000\nPid:\t5003\nPPid:\t4000\n"
    "Uid:\t4294967294\t1\t1\t1\nNStgid:\t5000\t17\t1\n"
    "NSpid:\t5003\t20\t4\n";

static const char smaps_618[] =
    "55d6de50d000-7ffe1e6a1000 ---p 00000000 00:00 0       [rollup]\n"
    "Rss:                1736 kB\nPss:                 303 kB\n"
    "Pss_Dirty:           112 kB\nPss_Anon:            113 kB\n"
    "Pss_File:            191 kB\nPss_Shmem:             4 kB\n"
    "Shared_Clean:       1584 kB\nPrivate_Dirty:       112 kB\n"
    "Referenced:         1736 kB\nSwap:                  9 kB\n"
    "SwapPss:               5 kB\nLocked:                0 kB\n";

static void
a_status_says_who_the_process_is(void **state)
{
	struct proc_status st;

	assert_int_equal(proc_text_status(status_618, strlen(status_618), &st),
	    0);
	assert_int_equal(st.pid, 16943);
	assert_int_equal(st.tgid, 16943);
	assert_int_equal(st.ppid, 16941);
	assert_int_equal(st.uid, 1000);
	assert_int_equal(st.kthread, 0);
	assert_string_equal(st.name, "cat");
	assert_int_equal(st.n_nspid, 0);

	assert_int_equal(proc_text_status(status_kthread,
	    strlen(status_kthread), &st), 0);
	assert_int_equal(st.kthread, 1);
	assert_string_equal(st.name, "kworker/0:1H-events_highpri");
}

static void
a_thread_in_a_container_has_ids_of_each_namespace(void **state)
{
	struct proc_status st;

	assert_int_equal(proc_text_status(status_in_container,
	    strlen(status_in_container), &st), 0);
	assert_int_equal(st.pid, 5003);
	assert_int_equal(st.tgid, 5000);
	assert_int_equal(st.uid, -2); /* nobody, as 32 bits */
	assert_int_equal(st.kthread, -1);
	assert_int_equal(st.n_nspid, 2);
	assert_int_equal(st.nspid[0], 20);
	assert_int_equal(st.nspid[1], 4);
}

static void
a_status_without_ids_is_refused(void **state)
{
	static const char *const bad[] = { "", "\n", "Name:\tx\n",
	    "Pid:\t5\n", "Tgid:\t5\n", "Pid:\t\nTgid:\t\n",
	    "Pid:\t-5\nTgid:\t5\n", "Pid:\t99999999999\nTgid:\t5\n",
	    "Pid\t5\nTgid\t5\n", ":::::" };
	struct proc_status st = { .pid = 77 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(proc_text_status(bad[i], strlen(bad[i]), &st),
		    -1);
	assert_int_equal(st.pid, 77); /* untouched */
}

static void
a_status_cut_at_any_byte_is_survived(void **state)
{
	struct proc_counters c;
	struct proc_status st;
	size_t n;
	char *copy;

	for (n = 0; n <= strlen(status_618); n++) {
		copy = malloc(n + 1); /* of the size a sanitizer can check */
		memcpy(copy, status_618, n);
		if (proc_text_status(copy, n, &st) == 0)
			assert_true(st.pid > 0);
		proc_text_memory(copy, n, &c);
		copy = realloc(copy, n > 0 ? n : 1);
		proc_text_memory(copy, n, &c);
		free(copy);
	}
}

static void
names_may_hold_anything(void **state)
{
	static const struct {
		const char *line, *want;
	} t[] = {
		{ "Name:\ta) S 1 (b\n", "a) S 1 (b" },
		{ "Name:\tevil\\nPid:\\t1\n", "evil\nPid:\\t1" },
		{ "Name:\tback\\\\slash\n", "back\\slash" },
		{ "Name:\ttail\\\n", "tail\\" },
		{ "Name:\tnot \xff\xfe utf \xc3\n", "not ?? utf ?" },
		{ "Name:\tgr\xc3\xbc\xc3\x9f\n", "gr\xc3\xbc\xc3\x9f" },
		{ "Name:\t\xed\xa0\x80\xf4\x90\x80\x80\n", "???????" },
		{ "Name:\t\xc0\x80\xe0\x80\x80\xf0\x80\x80\x80\n",
		    "?????????" },
		{ "Name:\t\xe2\x82\xac\xf0\x9f\x98\x80\n",
		    "\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "Name:\t\n", "" },
		{ "Name:\tPid:\t7\n", "Pid:\t7" },
		{ "Name:\t0123456789012345678901234567890123456789012345678"
		    "901234567890123456789\n",
		    "0123456789012345678901234567890123456789012345678901234"
		    "56789012" },
	};
	struct proc_status st;
	char text[256];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		strcpy(text, t[i].line);
		strcat(text, "Tgid:\t5\nPid:\t5\n");
		assert_int_equal(proc_text_status(text, strlen(text), &st), 0);
		assert_string_equal(st.name, t[i].want);
		assert_int_equal(st.pid, 5);
	}
}

static void
a_comm_loses_its_newline_only(void **state)
{
	char name[PROC_NAME_MAX];

	proc_text_comm("bash\n", 5, name);
	assert_string_equal(name, "bash");
	proc_text_comm("a\nb\n", 4, name);
	assert_string_equal(name, "a\nb");
	proc_text_comm("", 0, name);
	assert_string_equal(name, "");
	proc_text_comm("\xff)\n", 3, name);
	assert_string_equal(name, "?)");
}

static void
memory_counters_come_from_both_files(void **state)
{
	static const uint64_t want[PROC_COUNTERS] = {
		[PROC_VM_SIZE] = 3061, [PROC_VM_RSS] = 1768,
		[PROC_RSS_ANON] = 116, [PROC_RSS_FILE] = 1652,
		[PROC_RSS_SHMEM] = 2, [PROC_VM_SWAP] = 3,
		[PROC_VM_LOCKED] = 1, [PROC_VM_HWM] = 1769,
		[PROC_SMR_RSS] = 1736, [PROC_SMR_PSS] = 303,
		[PROC_SMR_PSS_ANON] = 113, [PROC_SMR_PSS_FILE] = 191,
		[PROC_SMR_PSS_SHMEM] = 4, [PROC_SMR_SWAP_PSS] = 5,
	};
	struct proc_counters c;
	int i;

	proc_text_memory(status_618, strlen(status_618), &c);
	assert_int_equal(c.present, (1u << PROC_SMR_RSS) - 1);
	proc_text_smaps(smaps_618, strlen(smaps_618), &c);
	assert_int_equal(c.present, (1u << PROC_COUNTERS) - 1);
	for (i = 0; i < PROC_COUNTERS; i++)
		assert_int_equal(c.kb[i], want[i]);
}

static void
counters_are_found_in_any_order(void **state)
{
	static const char text[] = "VmSwap: 1 kB\nRssFile: 2 kB\n"
	    "VmSize: 3 kB\nVmSize:\nVmRSS: x\nVmHWM:";
	struct proc_counters c;

	proc_text_memory(text, strlen(text), &c);
	assert_int_equal(c.present, 1u << PROC_VM_SWAP | 1u << PROC_RSS_FILE |
	    1u << PROC_VM_SIZE);
	assert_int_equal(c.kb[PROC_VM_SWAP], 1);
	assert_int_equal(c.kb[PROC_RSS_FILE], 2);
	assert_int_equal(c.kb[PROC_VM_SIZE], 3);
}

static void
a_kernel_thread_has_no_memory(void **state)
{
	struct proc_counters c;

	proc_text_memory(status_kthread, strlen(status_kthread), &c);
	assert_int_equal(c.present, 0);
}

static void
times_are_read_behind_the_last_parenthesis(void **state)
{
	static const char *const heads[] = { "16945 (cat)", "1 (a b) S 1 2 3)",
	    "1 (\n)\n)", "1 ())))", "1 ((sd-pam))", "1 (\xff\xfe)" };
	struct proc_times t;
	char text[256];
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		strcpy(text, heads[i]);
		strcat(text, " R 16941 16941 4849 0 -1 4194304 100 0 0 0 17 29 "
		    "0 0 20 0 1 0 234410 3133440 394 18446744073709551615\n");
		assert_int_equal(proc_text_stat(text, strlen(text), &t), 0);
		assert_int_equal(t.user, 17);
		assert_int_equal(t.kernel, 29);
		assert_int_equal(t.start, 234410);
	}
}

static void
a_stat_that_is_cut_short_is_refused(void **state)
{
	static const char text[] = "1 (x) R 1 1 1 0 -1 4 1 0 0 0 17 29 0 0 20 "
	    "0 1 0 234410";
	static const char letters[] = "1 (x) R 1 1 1 0 -1 4 1 0 0 0 a b 0 0 20 "
	    "0 1 0 5 6";
	struct proc_times t = { 1, 2, 3 };
	size_t n;

	for (n = 0; n + 6 < strlen(text); n++)
		assert_int_equal(proc_text_stat(text, n, &t), -1);
	assert_int_equal(t.user, 1);
	assert_int_equal(proc_text_stat(letters, strlen(letters), &t), -1);
}

static size_t
cmdline(const char *text, size_t len, const char *want[], size_t n_want)
{
	char *copy = malloc(len + 1);
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	size_t n, i = 0;

	memcpy(copy, text, len);
	pb_writer_init(&w);
	n = proc_text_cmdline(copy, len, &w, 3);
	pb_init(&r, w.data, w.len);
	while (pb_next(&r, &f)) {
		assert_true(i < n_want);
		assert_int_equal(f.number, 3);
		assert_int_equal(f.len, strlen(want[i]));
		assert_memory_equal(f.data, want[i], f.len);
		i++;
	}
	assert_false(r.bad);
	assert_int_equal(i, n);
	assert_int_equal(n, n_want);
	pb_writer_done(&w);
	free(copy);
	return n;
}

static void
arguments_are_split_at_their_terminators(void **state)
{
	const char *two[] = { "/bin/sh", "-c" };
	const char *title[] = { "nginx: worker" };
	const char *odd[] = { "a\nb", "?", "'" };

	cmdline("/bin/sh\0-c\0", 11, two, 2);
	cmdline("/bin/sh\0-c", 10, two, 2); /* no last terminator */
	cmdline("nginx: worker\0\0\0\0\0", 18, title, 1);
	cmdline("a\nb\0\xff\0'\0", 8, odd, 3);
	cmdline("\0\0\0", 3, NULL, 0);
	cmdline("", 0, NULL, 0);
}

static void
numbers_that_are_too_large_do_not_wrap(void **state)
{
	struct scan s = scan_text("99999999999999999999999x", 24);
	int32_t i = 5;
	uint64_t v;

	assert_true(scan_u64(&s, &v));
	assert_true(v == UINT64_MAX);
	s = scan_text("18446744073709551615", 20);
	assert_true(scan_u64(&s, &v) && v == UINT64_MAX);
	s = scan_text("18446744073709551614", 20);
	assert_true(scan_u64(&s, &v) && v == UINT64_MAX - 1);
	s = scan_text("99999999999999999999999x", 24);
	assert_true(scan_u64(&s, &v));
	assert_int_equal(scan_len(&s), 1);
	s = scan_text("2147483648", 10);
	assert_false(scan_i32(&s, &i));
	assert_int_equal(i, 5);
	s = scan_text("-2147483648", 11);
	assert_true(scan_i32(&s, &i));
	assert_int_equal(i, INT32_MIN);
	s = scan_text("-", 1);
	assert_false(scan_i32(&s, &i));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_says_who_the_process_is),
		cmocka_unit_test(
		    a_thread_in_a_container_has_ids_of_each_namespace),
		cmocka_unit_test(a_status_without_ids_is_refused),
		cmocka_unit_test(a_status_cut_at_any_byte_is_survived),
		cmocka_unit_test(names_may_hold_anything),
		cmocka_unit_test(a_comm_loses_its_newline_only),
		cmocka_unit_test(memory_counters_come_from_both_files),
		cmocka_unit_test(counters_are_found_in_any_order),
		cmocka_unit_test(a_kernel_thread_has_no_memory),
		cmocka_unit_test(times_are_read_behind_the_last_parenthesis),
		cmocka_unit_test(a_stat_that_is_cut_short_is_refused),
		cmocka_unit_test(arguments_are_split_at_their_terminators),
		cmocka_unit_test(numbers_that_are_too_large_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
