#!/usr/bin/env python3
"""What programs of ours say again at a cut, so that each segment can be read
alone, as Perfetto's Trace Processor reads it."""

import os
import subprocess
import sys

from harness import tap, tracing
from harness.case import pb
from harness.consumer import source
from harness.daemon import Program, environment
from harness.segments import joined, mark, split
from harness.trace import Trace

Cut = pb.SegmentCut
SLICES = ("select s.name, s.category, s.depth, t.name, p.name from slice s "
          "join thread_track k on s.track_id = k.id "
          "join thread t using (utid) join process p using (upid) "
          "order by s.ts, s.id")
COUNTERS = ("select t.name, c.value, t.unit from counter c "
            "join counter_track t on c.track_id = t.id order by c.ts, c.id")
TRACKS = ("select s.name, t.name from slice s "
          "join track t on s.track_id = t.id order by s.ts, s.id")


class Probes(Program):
    name = "tributary-probes"
    variable = "TRIBUTARY_PROBES"
    notify_variable = "TRACED_PROBES_NOTIFY_FD"

    def __init__(self, folder, address):
        super().__init__(folder, env={"PERFETTO_PRODUCER_SOCK_NAME": address})


class Segments:
    """Mixed into a case: reads a session while it is cut."""

    def read_on(self, consumer):
        new = consumer.read_raw()
        self.raw += new
        return [pb.TracePacket.FromString(p) for p in new]

    def read_until(self, consumer, condition, what):
        found = []

        def there():
            found.extend(self.read_on(consumer))
            return any(map(condition, found))
        self.until(there, what)

    def cut(self, consumer):
        subprocess.run(
            [os.environ["TRIBUTARY"], "rotate", "--connect",
             self.daemons[0].consumer_path, "s"], env=environment(),
            stdout=subprocess.DEVNULL, check=True)
        self.read_until(consumer, lambda p: mark(p) and
                        mark(p).phase == Cut.END, "the end of the cut")


@tracing.needed
class Library(Segments, tracing.TracingCase):
    """A program with libtributary."""

    def recorded(self, *lines, cuts=2):
        """The same lines before and behind each cut."""
        self.raw = []
        program = self.begin(unique_session_name="s")
        for _ in range(cuts):
            for line in lines:
                program.do(line)
            # A sequence that has committed nothing yet is all in the next.
            program.do("flush")
            self.consumer_.flush(60_000)
            self.cut(self.consumer_)
        for line in lines:
            program.do(line)
        self.finish_session(program)
        self.read_on(self.consumer_)
        trace = Trace(self.raw)
        self.assert_whole(trace)
        return split(trace), joined(trace)

    def assert_alike(self, query, *lines):
        """Every segment alone says what the others do, with all names."""
        segments, whole = self.recorded(*lines)
        rows = [segment.sql(query) for segment in segments]
        self.assertGreater(len(rows[0]), 3)
        self.assertEqual(rows, [rows[0]] * 3)
        self.assertEqual(whole.sql(query), rows[0] * 3)

    def test_slices_threads_and_processes(self):
        self.assert_alike(SLICES, "slices")

    def test_counters_begin_anew(self):
        self.assert_alike(COUNTERS, "counters")

    def test_tracks(self):
        self.assert_alike(TRACKS, "tracks")


@tracing.needed
class OurProbes(Segments, tracing.TracingCase):
    def test_names_of_processes_and_counters(self):
        daemon = self.daemon()
        probes = Probes(self.folder, daemon.producer_path)
        self.things.append(probes)
        probes.start()
        processes, memory = source("linux.process_stats"), \
            source("linux.sys_stats")
        stats = processes.config.process_stats_config
        stats.scan_all_processes_on_start = True
        stats.proc_stats_poll_ms = 100
        memory.config.sys_stats_config.meminfo_period_ms = 100
        self.raw = []
        consumer = self.session(processes, memory, size_kb=16384,
                                flush_period_ms=200, unique_session_name="s")

        def both():
            for kind in "process_stats", "sys_stats":
                self.read_until(consumer, lambda p, k=kind: p.HasField(k),
                                kind)
        both()
        self.cut(consumer)
        both()
        consumer.stop()
        self.read_on(consumer)
        for segment in split(Trace(self.raw)):
            ((name,),) = segment.sql(
                "select distinct p.name from counter c "
                "join process_counter_track t on c.track_id = t.id "
                f"join process p using (upid) where p.pid = {probes.pid}")
            self.assertEqual(os.path.basename(name), "tributary-probes")
            ((total,),) = segment.sql(
                "select count() > 0 from counter c join counter_track t "
                "on c.track_id = t.id where t.name = 'MemTotal'")
            self.assertEqual(total, 1)


if __name__ == "__main__":
    sys.exit(tap.main())
