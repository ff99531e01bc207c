#!/usr/bin/env python3
"""Track events of a program with libtributary, as Perfetto's Trace Processor
reads them, on each way to a service and with Perfetto's own."""

import os
import sys

from harness import real, tap, tracing

MS = 10**6
LONG = "a name of more than sixteen bytes, and ümlauts"


@tracing.needed
class Events(tracing.TracingCase):
    """Through memory that is shared with tributaryd."""

    # Slices, and what they are in.

    def test_slices_and_their_nesting(self):
        trace = self.traced("slices")
        self.assertEqual(trace.sql(
            "select s.name, s.category, s.depth, p.name, s.dur > 0 or "
            "s.name in ('instant', 'inside', 'between') from slice s "
            "left join slice p on s.parent_id = p.id order by s.ts, s.id"), [
                ("outer", "net", 0, None, 1),
                ("middle", "net", 1, "outer", 1),
                ("inner", "disk", 2, "middle", 1),
                ("inner", "disk", 2, "middle", 1),
                ("instant", "net", 1, "outer", 1),
                ("scope", "net", 0, None, 1),
                ("inner scope", "net", 1, "scope", 1),
                ("inside", "net", 2, "inner scope", 1),
                ("between", "net", 1, "scope", 1)])
        # An argument of an end is one of its slice.
        self.assertEqual(trace.sql(
            "select s.name, a.flat_key, a.int_value from slice s "
            "join args a using (arg_set_id) "
            "where a.flat_key like 'debug.%' order by s.ts"),
            [("inner", "debug.read", 7), ("scope", "debug.level", 1)])
        self.assertEqual(trace.sql(
            "select distinct t.name, t.is_main_thread, p.name, p.pid "
            "from slice s join thread_track k on s.track_id = k.id "
            "join thread t using (utid) join process p using (upid)"),
            [("track_events", 1, "track_events", self.pid)])

    def test_counters(self):
        trace = self.traced("counters")
        rows = trace.sql(
            "select t.name, c.value, t.unit from counter c "
            "join counter_track t on c.track_id = t.id order by c.ts, c.id")
        self.assertEqual(rows, [
            ("bytes", 0.0, "bytes"), ("bytes", 5e9, "bytes"),
            ("bytes", -1.0, "bytes"),
            ("load", 0.25, "tasks"), ("load", 1e9, "tasks"),
            ("steps", 10.0, "count"), ("steps", 15.0, "count"),
            ("steps", 12.0, "count"), ("pages", 3.0 * 4096, None)])
        self.assertEqual(sorted(trace.sql(
            "select 'process', t.name from process_counter_track t join "
            "process p using (upid) where p.name = 'track_events' union all "
            "select 'thread', t.name from thread_counter_track t join "
            "thread h using (utid) where h.name = 'track_events'")),
            [("process", "bytes"), ("process", "load"), ("thread", "pages")])

    def test_flows_and_their_ends(self):
        trace = self.traced("flows")
        self.assertEqual(sorted(trace.sql(
            "select a.name, b.name from flow f join slice a on "
            "f.slice_out = a.id join slice b on f.slice_in = b.id")),
            [("receive", "answer"), ("send", "global"), ("send", "receive")])

    def test_arguments_of_all_types(self):
        trace = self.traced("arguments")
        rows = trace.sql(
            "select a.key, a.value_type, a.display_value from slice s "
            "join args a using (arg_set_id) where s.name = 'arguments' "
            "and a.key like 'debug.%' order by a.id")
        self.assertEqual(rows, [
            ("debug.int", "int", "-5"),
            ("debug.uint", "uint", "18446744073709551615"),
            ("debug.yes", "bool", "true"),
            ("debug.no", "bool", "false"),
            ("debug.double", "real", "0.5"),
            ("debug.pointer", "pointer", "0x1234"),
            ("debug.string", "string", "words"),
            ("debug.null", "string", "(null)"),
            ("debug.cut", "string", "wo"),
            ("debug.dict.a", "int", "1"),
            ("debug.dict.deeper.b", "string", "two"),
            ("debug.dict.list[0]", "int", "1"),
            ("debug.dict.list[1][0]", "real", "2.5"),
            ("debug.dict.list[2].c", "bool", "true"),
            ("debug.last", "int", str(-2**63))])

    def test_tracks_and_their_parents(self):
        trace = self.traced("tracks")
        rows = trace.sql(
            "select s.name, t.name, p.name, g.name from slice s "
            "join track t on s.track_id = t.id "
            "left join track p on t.parent_id = p.id "
            "left join track g on p.parent_id = g.id order by s.ts, s.id")
        named = {row[0]: row[1:] for row in rows}
        self.assertEqual(named["on low"], ("low", "nested", "top"))
        self.assertEqual(named["on nested"], ("nested", "top", None))
        self.assertEqual(named["on workers"][0], "workers")
        self.assertEqual(named["on tasks"][0], "tasks")
        self.assertEqual([(row[0], row[1]) for row in rows
                          if row[0] in ("first", "second")],
                         [("first", "async"), ("second", "async")])
        self.assertEqual(sorted(trace.sql(
            "select s.name, p.pid from slice s join process_track k on "
            "s.track_id = k.id join process p using (upid)")),
            [(name, self.pid) for name in
             ("first", "on process", "on workers", "second")])
        self.assertEqual(sorted(trace.sql(
            "select s.name from slice s join thread_track k on "
            "s.track_id = k.id")), [("on tasks",), ("on thread",)])
        # Both of the asynchronous slices have ended, though they overlap.
        self.assertEqual(trace.sql(
            "select count(*) from slice where dur < 0"), [(0,)])
        descriptors = {p.track_descriptor.name: p.track_descriptor
                       for p in trace.of("track_descriptor")}
        self.assertEqual(descriptors["top"].description, "A track at the top")
        self.assertEqual(descriptors["nested"].sibling_order_rank, -2)

    def test_a_track_of_a_thread_that_writes_nothing(self):
        trace = self.traced("track_of_another")
        self.assertEqual(trace.sql(
            "select s.name, p.pid, t.tid != p.pid from slice s "
            "join thread_track k on s.track_id = k.id "
            "join thread t using (utid) join process p using (upid)"),
            [("on another", self.pid, 1)])

    # Names.

    def test_names_of_threads_and_of_the_process(self):
        trace = self.traced("threads")
        self.assertEqual(sorted(trace.sql(
            "select s.name, t.name, p.name from slice s "
            "join thread_track k on s.track_id = k.id "
            "join thread t using (utid) join process p using (upid)")),
            sorted((name, thread, "track_events") for name, thread in (
                ("before the name", LONG), ("after the name", LONG),
                ("with comm", "by the kernel"))))
        # Trace Processor does not read these.
        self.assertEqual(
            {tuple(p.track_descriptor.process.cmdline)
             for p in trace.of("track_descriptor")
             if p.track_descriptor.HasField("process")},
            {(os.environ["TRACK_EVENTS"], self.at)})

    def test_dynamic_names(self):
        trace = self.traced("names")
        self.assertEqual(trace.sql(
            "select s.name, a.int_value from slice s join args a "
            "using (arg_set_id) where a.key = 'debug.i' order by s.ts"),
            [(f"dynamic {i}", i) for i in range(3)])

    def test_dynamic_names_that_are_filtered(self):
        trace = self.traced("names", "slices", fields={
            "filter_dynamic_event_names": True})
        self.assertEqual(sorted(trace.sql(
            "select distinct name from slice where category = 'net'")),
            sorted((name,) for name in (
                "FILTERED", "outer", "middle", "instant", "scope",
                "inner scope", "inside", "between")))

    def test_annotations_that_are_filtered(self):
        trace = self.traced("arguments", "messages", fields={
            "filter_debug_annotations": True})
        self.assertEqual(trace.sql(
            "select count(*) from args where key like 'debug.%'"), [(0,)])
        self.assertEqual(trace.sql(
            "select count(*) from slice where name = 'arguments'"), [(1,)])
        # What is not an annotation stays.
        self.assertEqual(trace.sql("select count(*) from android_logs"),
                         [(2,)])

    # Places, messages, times.

    def test_source_locations_and_messages(self):
        trace = self.traced("messages")

        def arguments(name):
            return dict(trace.sql(
                "select a.key, a.display_value from slice s join args a "
                f"using (arg_set_id) where s.name = '{name}'"))

        placed = arguments("placed")
        self.assertEqual(placed["source.file_name"], "dir/file.c")
        self.assertEqual(placed["source.function_name"], "a_function")
        self.assertEqual(placed["source.line_number"], "42")
        located = arguments("located")
        self.assertTrue(located["source.file_name"].endswith(
            "track_events.c"), located)
        self.assertEqual(located["source.function_name"], "messages")
        self.assertEqual(trace.sql(
            "select prio, msg from android_logs order by ts"),
            [(5, "Something happened"), (6, "And once more")])
        self.assertEqual(trace.sql(
            "select category from slice where name = 'encoded'"),
            [("net,extra",)])
        events = {p.track_event.correlation_id or
                  p.track_event.correlation_id_str
                  for p in trace.of("track_event")}
        self.assertLessEqual({99, "r-1"}, events)

    def test_times_of_ones_own(self):
        trace = self.traced("times")
        now, mono = map(int, self.said)
        ((own, dur),) = trace.sql("select ts, dur from slice "
                                  "where name = 'own'")
        self.assertEqual(dur, 1500000)
        # Clocks of another machine are estimated.
        self.assertLessEqual(abs(own - now + 2000000),
                             MS if self.all_machines else 0)
        ((at,),) = trace.sql("select ts from slice where name = 'now'")
        self.assertGreater(at - own, 2000000)
        # Clocks of a snapshot are read one after the other.
        ((at,),) = trace.sql("select ts from slice where name = 'monotonic'")
        self.assertLess(abs(at - own - 2000000), 2 * MS)

    def assert_times(self, trace, unit):
        """Slices of `work`, in units of some ns."""
        rows = trace.sql("select ts, dur from slice where name = 'work' "
                         "order by ts")
        self.assertEqual(len(rows), 5)
        for ts, dur in rows:
            self.assertGreaterEqual(dur, 2 * MS - unit)
        for (ts, dur), (following, _) in zip(rows, rows[1:]):
            self.assertGreaterEqual(following, ts + dur - unit)

    def test_times_that_are_not_incremental(self):
        trace = self.traced("work", fields={
            "disable_incremental_timestamps": True})
        self.assert_times(trace, 1)
        for packet in trace.of("track_event"):
            self.assertGreater(packet.timestamp, 10**9)

    def test_times_in_microseconds(self):
        trace = self.traced("work", fields={"timestamp_unit_multiplier": 1000})
        self.assert_times(trace, 1000)

    def test_times_in_microseconds_that_are_not_incremental(self):
        trace = self.traced("work", fields={
            "timestamp_unit_multiplier": 1000,
            "disable_incremental_timestamps": True})
        self.assert_times(trace, 1000)

    def thread_times(self, trace):
        return [value for (value,) in trace.sql(
            "select c.value from counter c join thread_counter_track t "
            "on c.track_id = t.id where t.name = 'thread_time' "
            "order by c.ts, c.id")]

    def test_processor_time_of_the_thread(self):
        trace = self.traced("work", fields={
            "enable_thread_time_sampling": True})
        times = self.thread_times(trace)
        self.assertEqual(len(times), 10)
        for begin, end in zip(times[::2], times[1::2]):
            self.assertGreaterEqual(end - begin, 2 * MS)

    def test_processor_time_that_is_subsampled(self):
        trace = self.traced("work", fields={
            "enable_thread_time_sampling": True,
            "thread_time_subsampling_ns": 3600 * 10**9})
        self.assertEqual(len(self.thread_times(trace)), 1)
        self.assert_times(trace, 1)

    # Categories.

    def categories(self, **fields):
        trace = self.traced("categories", fields=fields)
        return {name.removeprefix("of ") for (name,) in trace.sql(
            "select name from slice")}

    def test_categories_of_a_config_without_any(self):
        self.assertEqual(self.categories(), {"net", "net.low", "disk"})

    def test_categories_that_are_enabled(self):
        self.assertEqual(
            self.categories(enabled_categories=["net"],
                            disabled_categories=["*"]), {"net"})

    def test_categories_by_pattern(self):
        self.assertEqual(
            self.categories(enabled_categories=["ne*", "slow*"],
                            disabled_categories=["*"]),
            {"net", "net.low"})

    def test_categories_by_tag(self):
        self.assertEqual(
            self.categories(enabled_categories=["net"],
                            enabled_tags=["verbose", "slow"],
                            disabled_categories=["disk", "*"]),
            {"net", "disk", "slow", "debug"})

    def test_tags_that_are_disabled(self):
        # A list of one's own replaces that of "slow" and "debug".
        self.assertEqual(self.categories(disabled_tags=["io"]),
                         {"net", "slow", "debug"})

    def test_categories_in_the_descriptor(self):
        self.begin()
        (described,) = [s.ds_descriptor for s in
                        self.consumer().query().data_sources
                        if s.ds_descriptor.name == tracing.SOURCE]
        self.assertEqual(
            {c.name: (c.description, list(c.tags)) for c in
             described.track_event_descriptor.available_categories},
            {"net": ("Requests and answers", []),
             "net.low": ("Packets", ["io"]),
             "disk": ("", ["io", "verbose"]), "slowly": ("", ["slow"]),
             "debugging": ("", ["verbose", "debug"])})


class OverTcp(tracing.OverTcp, Events):
    """Without shared memory: the library sends its chunks."""


class ByRelay(tracing.ByRelay, Events):
    """By tributary-relay and its link."""


@real.needed
class WithTraced(tracing.WithTraced, Events):
    """Perfetto's service."""


if __name__ == "__main__":
    sys.exit(tap.main())
