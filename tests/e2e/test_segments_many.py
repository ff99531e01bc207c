#!/usr/bin/env python3
"""A session that writes a file for each of a thousand machines, at once: with
the memory and the descriptors of a few."""

import os
import resource
import shutil
import sqlite3
import subprocess

from harness import tap
from harness.daemon import environment
from harness.loop import SCALE
from harness.trace import Trace, expand, split_file
from test_segments import SegmentCase, segments

# More than are open at a time (SEGMENT_FDS).  A sanitizer build does the same
# with less.
MACHINES = 1000 if SCALE == 1 else 300
# In two segments of each machine, of PACKET_BYTES.
PACKETS, PACKET_BYTES = (10, 10), 3900
# Trace Processor and `tributary inspect` read so many whole files; the index
# of an archive reads all.
SAMPLE = 50

SEGMENT_FDS = 256
# Sockets, log, state and what the daemon has besides connections and segments.
OTHER_FDS = 64
BUFFER_KB = 4096
# SEGMENT_PENDING_BYTES and the buffer; the rest is for machines, connections
# with a packet each, and what malloc() does not give back.  All packets are
# 78 MB, so nothing of them may be kept.
GROWTH_KB = (16 << 10) + BUFFER_KB + 40 * MACHINES


def name(n):
    return f"device-{n:04}"


class Thousand(SegmentCase):
    def setUp(self):
        super().setUp()
        # This process has the other ends of all connections.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE,
                        (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def start_with_few_descriptors(self):
        most = MACHINES + SEGMENT_FDS + OTHER_FDS
        return self.daemon(
            producer=[self.path("p"), "127.0.0.1:0"],
            flags=["--trace-dir", self.traces, "--enable-relay-endpoint"],
            limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                              (most, most)))

    def write(self, writers, count):
        """A packet a commit: what connections hold stays small."""
        for _ in range(count):
            for writer in writers:
                writer.number(1, size=PACKET_BYTES, ask=False)
        for writer in writers:
            writer.producer.sync()

    def test_each_has_a_file_at_the_same_time(self):
        daemon = self.start_with_few_descriptors()
        at = daemon.address("producers", "tcp")
        producers = [self.producer("p", address=at, identity={
            "pid": 1, "uid": 1000, "machine_id_hint": name(n),
            "machine_name": name(n)}) for n in range(MACHINES)]
        for producer in producers:
            producer.sync()
        before = daemon.memory()
        consumer = self.record(
            trace_all_machines=True, size_kb=BUFFER_KB,
            of=segments(split="BY_MACHINE",
                        file_pattern="%machine/%n.pftrace"))
        writers = [producer.writer() for producer in producers]
        self.write(writers, PACKETS[0])
        producers[0].activate("cut")
        self.has_segments(MACHINES + 1)
        self.write(writers, PACKETS[1])
        self.assertFalse(consumer.stop().error)

        grown = daemon.memory("VmHWM") - before
        if SCALE == 1:  # a sanitizer keeps what was freed
            self.assertLess(grown, GROWTH_KB)
        self.assertEqual(self.files(end=".part"), [])
        for n in range(MACHINES):
            self.assert_has_both(n)
        self.assert_each_is_whole()
        self.assert_a_sample_opens()

    def assert_has_both(self, n):
        """Each packet of a machine is in one of its two files, once."""
        numbers, machines = [], set()
        for path in self.files(f"rec/{name(n)}"):
            with open(path, "rb") as file:
                packets = [packet for _, packet in
                           expand(split_file(file.read()))]
            head = packets[0].tributary_segment
            self.assertEqual(head.machine, name(n))
            for packet in packets:
                if packet.HasField("for_testing"):
                    numbers.append(packet.for_testing.counter)
                    machines.add(packet.machine_id)
            machines.add(head.machine_id)
        self.assertEqual(numbers, list(range(sum(PACKETS))), name(n))
        self.assertEqual(len(machines), 1)
        self.assertEqual(len(self.files(f"rec/{name(n)}")), len(PACKETS))

    def assert_each_is_whole(self):
        """By what `tributary inspect` says, which the catalogue has."""
        folder = os.path.join(self.traces, "rec")
        done = subprocess.run(
            [os.environ["TRIBUTARY"], "archive", "reindex", "--archive",
             folder], env=environment(), capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        catalog = sqlite3.connect(os.path.join(folder, "catalog.db"))
        found = catalog.execute("select verdict, count(*), count(distinct "
                                "recording) from segments group by verdict")
        self.assertEqual(found.fetchall(),
                         [("whole", len(PACKETS) * (MACHINES + 1), 1)])
        lost = catalog.execute("select * from losses").fetchall()
        self.assertEqual(lost, [])
        catalog.close()

    def assert_a_sample_opens(self):
        """What a test has read is given to Trace Processor and to inspect at
        its end, which then find nothing wrong; what is left behind, too."""
        for n in range(0, MACHINES, MACHINES * len(PACKETS) // SAMPLE):
            for path in self.files(f"rec/{name(n)}"):
                self.assertTrue(Trace.from_file(path).numbers())
        shutil.rmtree(self.traces)


if __name__ == "__main__":
    tap.main()
