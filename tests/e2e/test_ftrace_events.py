#!/usr/bin/env python3
"""Events of the kernel's tracer are what Perfetto's Trace Processor takes them
for: each of the schema by its name and fields, and the pages of a real kernel
in every form that a session may ask for."""

import collections
import os
import subprocess
import sys
import unittest

from harness import imported, pb, tap
from harness.trace import Trace, split_file

DATA = os.path.join(os.environ["SOURCE_ROOT"],
                    "tests/unit/client/ftrace/events/data")
# By another program; None: all of them.
COUNTED = {
    "sched.pages": {None: 306, "sched_switch": 143, "sched_waking": 82,
                    "sched_wakeup": 81},
    "tasks.pages": {None: 486, "sys_exit": 58, "sys_enter": 57, "rss_stat": 57,
                    "mm_page_alloc": 96, "sched_stat_runtime": 41,
                    "hrtimer_init": 9, "task_newtask": 3, "print": 2},
    "disk.pages": {None: 507, "block_rq_issue": 3, "irq_handler_entry": 3,
                   "workqueue_execute_start": 6, "cpu_idle": 8,
                   "softirq_entry": 35, "sched_process_free": 5},
}
TID, SEQUENCE, MS = 4321, 7, 10**6
# Not arguments in SQL: two are no kernel's event, and the third one's times
# want a clock that there is no snapshot of.
SPECIAL = ("generic", "kprobe_event", "gpu_work_period")
# Trace Processor reads it as what programs write with atrace.
PRINT = "B|4321|a slice"
ARGUMENTS = """
    select e.ts, e.name, t.tid, a.key,
           coalesce(a.int_value, a.string_value) as value
    from ftrace_event e join thread t using (utid)
    left join args a using (arg_set_id) order by e.ts, a.id"""


def known_events():
    """Fields of FtraceEvent that are an event's message."""
    return [field for field in pb.FtraceEvent.DESCRIPTOR.fields
            if field.message_type and field.name not in SPECIAL]


def value_of(field):
    """One that no other field of the message has."""
    if field.containing_type is pb.PrintFtraceEvent.DESCRIPTOR and \
            field.name == "buf":
        return PRINT
    if field.type == field.TYPE_STRING:
        return f"text of {field.name}"
    return 1000 + field.number


def fill(message):
    """{name of the field: its value}, of those that SQL shows."""
    written = {}
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_BYTES:
            continue
        value = value_of(field)
        if field.label == field.LABEL_REPEATED:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
        written[field.name] = str(value)
    return written


def bundle_packet(bundle):
    return pb.TracePacket(
        ftrace_events=bundle.SerializeToString(),
        trusted_packet_sequence_id=SEQUENCE).SerializeToString()


@unittest.skipUnless(imported.available(),
                     "no Trace Processor; deploy/install-deps peers")
class FtraceEvents(unittest.TestCase):
    maxDiff = None

    def pages(self, form, *files):
        done = subprocess.run(
            [os.environ["PAGES_TO_TRACE"], DATA, form, *files],
            stdout=subprocess.PIPE, check=True)
        return Trace(split_file(done.stdout))

    def arguments(self, trace):
        """{(ts, name): {key: value}}, of all events."""
        found = collections.defaultdict(dict)
        for ts, name, tid, key, value in trace.sql(ARGUMENTS):
            if key is not None:
                found[ts, name][key] = str(value)
        return found

    def test_each_event_of_the_schema(self):
        bundle, expected = pb.FtraceEventBundle(cpu=0), {}
        for i, field in enumerate(known_events(), 1):
            event = bundle.event.add(timestamp=i * MS, pid=TID)
            message = getattr(event, field.name)
            message.SetInParent()
            expected[i * MS, field.name] = fill(message)
        self.assertGreater(len(expected), 390)
        found = self.arguments(Trace([bundle_packet(bundle)]))
        for (ts, name), fields in expected.items():
            with self.subTest(name):
                self.assertEqual(found.get((ts, name)), fields)

    def test_pages_of_a_real_kernel(self):
        for file, expected in COUNTED.items():
            rows = self.pages("plain", file).sql(
                "select name, count(*) from ftrace_event group by name")
            self.assertEqual(sum(count for _, count in rows), expected[None])
            for name, count in rows:
                self.assertEqual(count, expected.get(name, count), name)
            self.assertLessEqual({*expected}, {None, *(n for n, _ in rows)})

    def test_functions_have_their_names(self):
        rows = self.pages("plain", "disk.pages").sql("""
            select distinct e.name, a.string_value from ftrace_event e
            join args a using (arg_set_id) where a.key = 'function'""")
        self.assertIn(("workqueue_execute_start", "blk_mq_run_work_fn"), rows)
        self.assertIn(("workqueue_queue_work", "wb_workfn"), rows)
        self.assertIn(("hrtimer_expire_entry", "tick_sched_timer"), rows)

    def test_what_trace_processor_makes_of_them(self):
        tasks = self.pages("plain", "tasks.pages")
        # echo 'B|1|a slice' >trace_marker
        self.assertEqual(tasks.sql("""select count() from slice
            where name = 'a slice'"""), [(1,)])
        self.assertGreater(tasks.sql("""select count() from slice
            where name like 'sys_%'""")[0][0], 20)
        disk = self.pages("plain", "disk.pages")
        # irq/29-... by its __data_loc
        self.assertIn(("IRQ (virtio2-req.0)",), disk.sql(
            "select distinct name from slice where name like 'IRQ%'"))

    def test_columns_say_the_same(self):
        queries = {
            "switches": """select ts, dur, cpu, t.tid, t.name, priority,
                end_state from sched join thread t using (utid)
                order by ts""",
            "states": """select ts, state, t.tid, cpu from thread_state join thread t using (utid)
                order by ts, t.tid, state""",
        }
        plain = self.pages("plain", "sched.pages")
        compact = self.pages("compact", "sched.pages")
        # Columns do not say who ran before the first switch, and Trace
        # Processor begins with the second one then.
        first = plain.sql("select min(ts) from sched")[0][0]
        for what, query in queries.items():
            with self.subTest(what):
                rows, others = ([row for row in trace.sql(query)
                                 if row[0] > first]
                                for trace in (plain, compact))
                self.assertGreater(len(rows), 100)
                self.assertEqual(others, rows)
        # And, unlike events of their own, whence a wakeup came.
        self.assertEqual(compact.sql("""select distinct irq_context
            from thread_state where state = 'R' and irq_context not null
            order by 1"""), [(0,), (1,)])

    def test_described_events_say_the_same(self):
        """As those that name their fields in each event, but for types."""
        plain = self.arguments(self.pages("plain", "tasks.pages"))
        described = self.arguments(self.pages("described", "tasks.pages"))
        self.assertEqual(described, plain)


if __name__ == "__main__":
    sys.exit(tap.main())
