#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/ftrace/tracefs/cpu_stats.h"
#include "client/ftrace/tracefs/tracefs.h"
#include "tests/unit/client/ftrace/tracefs/fake_tracefs.h"

static const char *root;
static struct tracefs *t;
static char why[TRACEFS_WHY_MAX];
static char names[1024];

static int
setup(void **state)
{
	root = fake_tracefs_make();
	t = tracefs_open(root, why);
	names[0] = '\0';
	return t == NULL;
}

static int
teardown(void **state)
{
	tracefs_close(t);
	t = NULL;
	fake_tracefs_remove();
	return 0;
}

static void
a_folder_without_tracefs_is_told_how_to_mount_it(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/per_cpu", root);
	assert_null(tracefs_open(path, why));
	assert_non_null(strstr(why, "is not mounted"));
	assert_non_null(strstr(why, "mount -t tracefs"));
	snprintf(path, sizeof(path), "%s/nowhere", root);
	assert_null(tracefs_open(path, why));
	assert_non_null(strstr(why, "is not mounted"));
}

static void
without_rights_it_says_so(void **state)
{
	char path[256];
	uid_t us = geteuid();

	snprintf(path, sizeof(path), "%s/trace_clock", root);
	assert_int_equal(chmod(path, 0), 0);
	/* root may do anything */
	assert_int_equal(us == 0 ? seteuid(65534) : 0, 0);
	assert_null(tracefs_open(root, why));
	assert_int_equal(us == 0 ? seteuid(us) : 0, 0);
	assert_non_null(strstr(why, "no right"));
}

static void
only_one_has_the_lock(void **state)
{
	struct tracefs *second = tracefs_open(root, why);

	assert_non_null(second);
	assert_true(tracefs_lock(t, why));
	assert_true(tracefs_lock(t, why)); /* twice is once */
	assert_false(tracefs_lock(second, why));
	assert_non_null(strstr(why, "another tributary-probes"));
	tracefs_unlock(t);
	assert_true(tracefs_lock(second, why));
	assert_false(tracefs_lock(t, why));
	tracefs_close(second);
	assert_true(tracefs_lock(t, why));
}

static void
value_is(const char *path, const char *value)
{
	char *found = tracefs_value(t, path);

	assert_non_null(found);
	assert_string_equal(found, value);
	free(found);
}

static void
values_are_as_they_can_be_written_back(void **state)
{
	value_is("trace_clock", "global");
	value_is("tracing_on", "1");
	value_is("buffer_size_kb", "7");
	value_is("set_event_pid", "");
	fake_tracefs_put("set_event_pid", "12\n345\n");
	value_is("set_event_pid", "12 345");
	fake_tracefs_put("events/g/e/filter", "none\n");
	value_is("events/g/e/filter", "0");
	fake_tracefs_put("events/g/e/filter", "(id == 1)\n");
	value_is("events/g/e/filter", "(id == 1)");
	fake_tracefs_put("events/g/e/filter",
	    "(id == 1) || (comm ~ \"[a-z]*\")\n");
	value_is("events/g/e/filter", "(id == 1) || (comm ~ \"[a-z]*\")");
	errno = 0;
	assert_null(tracefs_value(t, "no/such"));
	assert_int_equal(errno, ENOENT);
}

static void
a_choice_of_words_is_searched_for_whole_words(void **state)
{
	assert_true(tracefs_offers(t, "trace_clock", "boot"));
	assert_true(tracefs_offers(t, "trace_clock", "global"));
	assert_false(tracefs_offers(t, "trace_clock", "mono"));
	assert_false(tracefs_offers(t, "nowhere", "mono"));
}

static void
a_long_file_is_read_whole(void **state)
{
	static char text[100000];
	size_t len;
	char *read;

	memset(text, 'x', sizeof(text) - 1);
	fake_tracefs_put("long", text);
	assert_non_null(read = tracefs_read(t, "long", &len));
	assert_int_equal(len, sizeof(text) - 1);
	assert_string_equal(read, text);
	free(read);
}

static void
a_shorter_value_leaves_nothing_of_a_longer_one(void **state)
{
	assert_int_equal(tracefs_write(t, "trace_clock", "boot"), 0);
	fake_tracefs_holds("trace_clock", "boot");
	assert_int_equal(tracefs_write(t, "trace", ""), 0);
	fake_tracefs_holds("trace", "");
	assert_int_equal(tracefs_write(t, "no/such", "1"), -1);
	assert_int_equal(errno, ENOENT);
}

static void
processors_are_counted_with_gaps(void **state)
{
	assert_int_equal(tracefs_cpus(t, ""), 2);
	fake_tracefs_put("per_cpu/cpu7/stats", "");
	fake_tracefs_put("instances/i/per_cpu/cpu0/stats", "");
	assert_int_equal(tracefs_cpus(t, ""), 8);
	assert_int_equal(tracefs_cpus(t, "instances/i/"), 1);
	assert_int_equal(tracefs_cpus(t, "instances/j/"), 0);
}

static void
note_name(void *arg, const char *group, const char *name)
{
	size_t n = strlen(names);

	snprintf(names + n, sizeof(names) - n, "%s/%s ", group, name);
}

static size_t
events(const char *group, const char *name)
{
	names[0] = '\0';
	return tracefs_each_event(t, "", group, name, note_name, NULL);
}

static void
events_are_found_by_patterns(void **state)
{
	fake_tracefs_put("events/header_page", "");
	fake_tracefs_put("events/sched/enable", "0");
	fake_tracefs_put("events/sched/sched_switch/format", "");
	fake_tracefs_put("events/sched/sched_waking/format", "");
	fake_tracefs_put("events/irq/softirq_entry/format", "");
	assert_int_equal(events("sched", "sched_switch"), 1);
	assert_string_equal(names, "sched/sched_switch ");
	assert_int_equal(events("*", "softirq_entry"), 1);
	assert_string_equal(names, "irq/softirq_entry ");
	assert_int_equal(events("sched", "*"), 2);
	assert_int_equal(events("*", "*"), 3);
	assert_int_equal(events("sched", "sched_switch?"), 0);
	assert_int_equal(events("sched", "nothing"), 0);
	assert_int_equal(events("nothing", "*"), 0);
	/* a folder of the group is no event, nor what lies outside */
	assert_int_equal(events("sched", ".."), 0);
}

static void
the_counts_of_a_processor_are_read(void **state)
{
	static const char text[] =
	    "entries: 2033\noverrun: 7\ncommit overrun: 8\nbytes: 73884\n"
	    "oldest event ts:    12.356517\nnow ts:    13.228639\n"
	    "dropped events: 9\nread events: 123456789012\n";
	struct cpu_stats s;

	cpu_stats_parse(&s, text, strlen(text));
	assert_int_equal(s.entries, 2033);
	assert_int_equal(s.overrun, 7);
	assert_int_equal(s.commit_overrun, 8);
	assert_int_equal(s.bytes, 73884);
	assert_int_equal(s.dropped, 9);
	assert_int_equal(s.read, 123456789012);
	assert_true(s.oldest_s == 12.356517);
	assert_true(s.now_s == 13.228639);
	assert_int_equal(s.now_ns, 13228639000);
	/* another clock, and a text that is cut */
	cpu_stats_parse(&s, "now ts: 0x12\nentries: 5", 23);
	assert_int_equal(s.now_ns, 0);
	assert_int_equal(s.entries, 5);
	assert_int_equal(s.overrun, 0);
	cpu_stats_parse(&s, NULL, 0);
	assert_int_equal(s.entries, 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_folder_without_tracefs_is_told_how_to_mount_it),
		T(without_rights_it_says_so),
		T(only_one_has_the_lock),
		T(values_are_as_they_can_be_written_back),
		T(a_choice_of_words_is_searched_for_whole_words),
		T(a_long_file_is_read_whole),
		T(a_shorter_value_leaves_nothing_of_a_longer_one),
		T(processors_are_counted_with_gaps),
		T(events_are_found_by_patterns),
		T(the_counts_of_a_processor_are_read),
	};

	return cmocka_run_group_tests_name("tracefs", tests, NULL, NULL);
}
