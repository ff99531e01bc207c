/* The table of well-known events, and a second opinion about its numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/events/event_groups.h"
#include "client/ftrace/events/event_table.h"
#include "client/ftrace/format/event_format.h"
#include "protos/ftrace_event.pb-c.h"
#include "real_kernel.h"

/* Typed here, from Perfetto's reference. */
static const struct {
	const char *group, *name;
	uint32_t id;
	const char *fields; /* name=number, in the order of numbers */
} opinions[] = {
	{ "ftrace", "print", 3, "ip=1 buf=2" },
	{ "sched", "sched_switch", 4, "prev_comm=1 prev_pid=2 prev_prio=3 "
	    "prev_state=4 next_comm=5 next_pid=6 next_prio=7" },
	{ "power", "cpu_frequency", 11, "state=1 cpu_id=2" },
	{ "power", "cpu_idle", 13, "state=1 cpu_id=2" },
	{ "sched", "sched_wakeup", 17, "comm=1 pid=2 prio=3 success=4 "
	    "target_cpu=5" },
	{ "sched", "sched_waking", 20, "comm=1 pid=2 prio=3 success=4 "
	    "target_cpu=5" },
	{ "irq", "softirq_entry", 24, "vec=1" },
	{ "irq", "irq_handler_entry", 36, "irq=1 name=2 handler=3" },
	{ "irq", "irq_handler_exit", 37, "irq=1 ret=2" },
	{ "block", "block_rq_issue", 45, "dev=1 sector=2 nr_sector=3 bytes=4 "
	    "rwbs=5 comm=6 cmd=7" },
	{ "workqueue", "workqueue_execute_start", 58, "work=1 function=2" },
	{ "power", "suspend_resume", 113, "action=1 val=2 start=3" },
	{ "sched", "sched_wakeup_new", 114, "comm=1 pid=2 prio=3 success=4 "
	    "target_cpu=5" },
	{ "task", "task_newtask", 235, "pid=1 comm=2 clone_flags=3 "
	    "oom_score_adj=4" },
	{ "task", "task_rename", 236, "pid=1 oldcomm=2 newcomm=3 "
	    "oom_score_adj=4" },
	{ "sched", "sched_process_exit", 238, "comm=1 pid=2 tgid=3 prio=4" },
	{ "sched", "sched_process_free", 240, "comm=1 pid=2 prio=3" },
	{ "kmem", "rss_stat", 313, "member=1 size=2 curr=3 mm_id=4" },
	{ "signal", "signal_generate", 325, "code=1 comm=2 group=3 pid=4 "
	    "result=5 sig=6" },
	{ "oom", "oom_score_adj_update", 326, "comm=1 oom_score_adj=2 pid=3" },
	{ "raw_syscalls", "sys_enter", 329, "id=1 args=2" },
	{ "raw_syscalls", "sys_exit", 330, "id=1 ret=2" },
	{ "timer", "hrtimer_expire_entry", 553, "hrtimer=1 now=2 "
	    "function=3" },
};

static void
important_events_have_perfettos_numbers(void **state)
{
	const ProtobufCFieldDescriptor *f;
	char text[512];
	size_t i, len;
	unsigned k;

	for (i = 0; i < sizeof(opinions) / sizeof(opinions[0]); i++) {
		f = event_table_find(opinions[i].group, opinions[i].name);
		assert_non_null(f);
		assert_int_equal(f->id, opinions[i].id);
		len = 0;
		for (k = 0; k < ((const ProtobufCMessageDescriptor *)
		    f->descriptor)->n_fields; k++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			    "%s%s=%u", k > 0 ? " " : "",
			    ((const ProtobufCMessageDescriptor *)
			    f->descriptor)->fields[k].name,
			    ((const ProtobufCMessageDescriptor *)
			    f->descriptor)->fields[k].id);
		assert_string_equal(text, opinions[i].fields);
	}
}

/* Every name of the groups is in the schema, and sorted. */
static size_t
count_names(void)
{
	const struct event_group *groups;
	char *copy, *rest, *name, *before;
	size_t i, n, found = 0;

	groups = event_groups(&n);
	for (i = 0; i < n; i++) {
		assert_true(i == 0 ||
		    strcmp(groups[i - 1].name, groups[i].name) < 0);
		rest = copy = strdup(groups[i].events);
		before = NULL;
		while ((name = strsep(&rest, " ")) != NULL) {
			if (event_table_find(groups[i].name, name) == NULL)
				fail_msg("%s is not in the schema", name);
			assert_true(before == NULL ||
			    strcmp(before, name) < 0);
			before = name;
			found++;
		}
		free(copy);
	}
	return found;
}

static void
every_event_of_the_schema_has_a_group(void **state)
{
	const ProtobufCMessageDescriptor *event =
	    &perfetto__protos__ftrace_event__descriptor;
	size_t n = 0;
	unsigned i;

	for (i = 0; i < event->n_fields; i++) {
		if (event->fields[i].type != PROTOBUF_C_TYPE_MESSAGE ||
		    strcmp(event->fields[i].name, "generic") == 0 ||
		    strcmp(event->fields[i].name, "kprobe_event") == 0)
			continue;
		if (event_table_group(event->fields[i].name) == NULL)
			fail_msg("%s has no group", event->fields[i].name);
		n++;
	}
	assert_int_equal(count_names(), n);
}

static void
the_group_has_to_be_right_and_the_name_whole(void **state)
{
	assert_string_equal(event_table_group("sched_switch"), "sched");
	assert_null(event_table_find("irq", "sched_switch"));
	assert_null(event_table_find("sched", "sched_switc"));
	assert_null(event_table_find("sched", "sched_switch2"));
	assert_null(event_table_find("sched", "ched_switch"));
	assert_null(event_table_find("sched", "sched_switch sched_wakeup"));
	assert_null(event_table_find("sched", ""));
	assert_null(event_table_find("sched", "pid"));
	/* Names that begin alike, the shorter one behind the longer one. */
	assert_non_null(event_table_find("kmem", "kmalloc"));
	assert_non_null(event_table_find("kmem", "kmalloc_node"));
}

/* Groups as the kernel of these formats has them. */
static void
a_real_kernel_has_the_events_in_the_same_groups(void **state)
{
	struct real_kernel *k = real_kernel_new(getenv("FTRACE_DATA"),
	    EVENT_PLAN_GENERIC);
	const char *group;
	size_t i, n = 0;

	for (i = 0; i < REAL_IDS; i++) {
		if (k->formats[i] == NULL)
			continue;
		group = event_table_group(k->formats[i]->name);
		assert_true(group == NULL ||
		    strcmp(group, k->formats[i]->group) == 0);
		n += group != NULL;
	}
	assert_true(n > 40);
	real_kernel_free(k);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(important_events_have_perfettos_numbers),
		cmocka_unit_test(every_event_of_the_schema_has_a_group),
		cmocka_unit_test(the_group_has_to_be_right_and_the_name_whole),
		cmocka_unit_test(
		    a_real_kernel_has_the_events_in_the_same_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
