#!/usr/bin/env python3
"""Sessions inside of a program that uses libtributary, without any daemon, as
Perfetto's Trace Processor reads their files."""

import os
import signal
import subprocess
import sys

from harness import case, imported, tap, tracing
from harness.daemon import environment
from harness.trace import Trace

THREADS = 8
MANY = 25_000
FEWER = 40_000


@tracing.needed
class LocalSessions(case.Case):

    def run_case(self, name, files, *arguments):
        """The traces, and the numbers that the program printed of them."""
        paths = [self.path(f"{name}{i}") for i in range(files)]
        done = subprocess.run(
            [os.environ["LOCAL_SESSIONS"], name, *paths,
             *map(str, arguments)],
            capture_output=True, text=True, env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.numbers = [[int(word) for word in line.split()]
                        for line in done.stdout.splitlines()]
        return paths

    def traces(self, name, files, *arguments):
        return [Trace.from_file(path)
                for path in self.run_case(name, files, *arguments)]

    def names(self, trace):
        return [name for (name,) in trace.sql(
            "select name from slice order by ts, id")]

    def assert_clean(self, trace):
        self.assertEqual(trace.sql(
            "select name, value from stats where severity in "
            "('error', 'data_loss') and value > 0"), [])

    def test_all_events_of_eight_threads_are_there(self):
        path, = self.run_case("all", 1, THREADS, MANY)
        with open(path, "rb") as file:
            data = file.read()
        written, read, overwritten, discarded, dropped = self.numbers[0]
        self.assertEqual((overwritten, discarded, dropped), (0, 0, 0))
        self.assertEqual(written, read)
        self.assertEqual(imported.sql(data,
            "select count(*), count(distinct track_id) from slice "
            "where name = 'many' and category = 'work'"),
            [(THREADS * MANY, THREADS)])
        self.assertEqual(imported.sql(data,
            "select distinct n, least, most from (select track_id, "
            "count(distinct int_value) n, min(int_value) least, "
            "max(int_value) most from slice join args using (arg_set_id) "
            "where key = 'debug.i' group by track_id)"),
            [(MANY, 0, MANY - 1)])

    def lossy(self, name):
        trace, = self.traces(name, 1, THREADS, FEWER)
        written, read, overwritten, discarded, dropped = self.numbers[0]
        self.assertEqual(read + overwritten + discarded, written)
        # Every event was written or dropped; further packets begin the state
        # of a sequence, three at a time.
        more = written + dropped - THREADS * FEWER
        self.assertGreater(more, 0)
        # The service's own are in the trace, too.
        theirs = [p for p in trace.packets
                  if p.trusted_packet_sequence_id > 1]
        self.assertEqual(len(theirs), read)
        buffer = trace.stats().buffer_stats[0]
        self.assertEqual(buffer.trace_writer_packet_loss, dropped)
        return trace, buffer, overwritten, discarded

    def test_a_ring_keeps_the_newest_and_counts_the_rest(self):
        trace, buffer, overwritten, discarded = self.lossy("ring")
        self.assertGreater(overwritten, 0)
        self.assertEqual(discarded, 0)
        self.assertEqual(buffer.chunks_overwritten + buffer.chunks_read,
                         buffer.chunks_written)
        # At least one thread's last event is among the last.
        last, = trace.sql("select max(int_value) from args "
                          "where key = 'debug.i'")[0]
        self.assertGreater(last, FEWER // 2)

    def test_a_full_buffer_discards_and_counts(self):
        trace, buffer, overwritten, discarded = self.lossy("discard")
        self.assertEqual(overwritten, 0)
        self.assertGreater(discarded, 0)
        self.assertEqual(buffer.chunks_overwritten, 0)
        self.assertGreater(buffer.chunks_discarded, 0)
        self.assertEqual(trace.sql("select min(int_value) from args "
                                   "where key = 'debug.i'"), [(0,)])

    def test_several_at_once(self):
        everything, some, late = self.traces("several", 3)
        self.assertEqual(self.names(everything),
                         ["of work", "of other", "late"])
        self.assertEqual(self.names(some), ["of other"])
        self.assertEqual(self.names(late), ["late"])
        for trace in (everything, some, late):
            self.assert_clean(trace)
            self.assertEqual(trace.sql(
                "select count(*) from clock_snapshot where clock_id = 6")[0][
                    0] > 0, True)
        self.assertEqual(
            {p.trace_uuid.msb for t in (everything, some, late)
             for p in t.packets if p.HasField("trace_uuid")}.__len__(), 3)

    def test_snapshots_of_one_that_goes_on(self):
        first, second, whole = self.traces("snapshots", 3)
        self.assertEqual(self.names(first), ["one"])
        self.assertEqual(self.names(second), ["one", "two"])
        self.assertEqual(self.names(whole), ["one", "two"])
        for trace in (first, second, whole):
            self.assert_clean(trace)

    def test_fork_in_the_middle(self):
        parent, child = self.traces("forks", 2)
        self.assertEqual(self.names(parent), ["parent"] * 20)
        self.assertEqual(self.names(child), ["own"])
        self.assert_clean(parent)
        self.assert_clean(child)

    def test_it_ends_by_its_duration(self):
        trace, = self.traces("duration", 1)
        self.assertEqual(self.names(trace), ["in time", "without a service"])
        self.assert_clean(trace)

    def test_a_flight_recorder(self):
        path = self.path("flight")
        recorder = subprocess.Popen(
            [os.environ["FLIGHT_RECORDER"], path], stdout=subprocess.PIPE,
            env=environment())
        try:
            # By itself, then as asked; a line each.
            self.assertIn(b"a job failed", recorder.stdout.readline())
            failed = Trace.from_file(path)
            recorder.send_signal(signal.SIGUSR1)
            while b"SIGUSR1" not in recorder.stdout.readline():
                pass
            asked = Trace.from_file(path)
            recorder.terminate()
            recorder.communicate()
            self.assertEqual(recorder.returncode, 0)
        finally:
            if recorder.returncode is None:
                recorder.kill()
                recorder.communicate()
        for trace, reason in (failed, "a job failed"), (asked, "SIGUSR1"):
            # The newest of a megabyte: the job before it was saved is there.
            self.assertEqual(trace.sql(
                "select display_value from slice join args using (arg_set_id) "
                "where name = 'saved' order by ts desc limit 1"), [(reason,)])
            self.assertGreater(trace.sql(
                "select count(*) from slice where name = 'job'")[0][0], 1000)
        self.assertEqual(failed.sql(
            "select int_value from slice join args using (arg_set_id) "
            "where name = 'job' order by ts desc limit 1"), [(99999,)])


if __name__ == "__main__":
    sys.exit(tap.main())
