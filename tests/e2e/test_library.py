#!/usr/bin/env python3
"""Producers made with libtributary, recorded whole."""

import os
import subprocess
import sys

from harness import tap
from harness.case import Case
from harness.daemon import environment
from harness.loop import SCALE

SOURCE = "test.library"


class Library(Case):
    def launch(self, address, packets, size):
        process = subprocess.Popen(
            [os.environ["LIBRARY_PRODUCER"], address, str(packets), str(size)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def record(self, address, packets, size, processes=1, **options):
        """Each process writes `packets` on two sequences; the Trace."""
        running = [self.launch(address, packets, size)
                   for _ in range(processes)]
        consumer = self.consumer()
        self.until(lambda: len([
            d for d in consumer.query().data_sources
            if d.ds_descriptor.name == SOURCE]) == processes,
            "the producers are there")
        session = self.session(SOURCE, size_kb=128 * 1024, **options)
        # Whatever is still unwritten by then is written at the stop.
        session.flush(60_000)
        session.stop()
        for process in running:
            status = process.wait(60 * SCALE)
            self.assertEqual(status, 0, process.stderr.read().decode())
        trace = session.read()
        self.assert_numbers(trace, [packets] * 2 * processes)
        self.assert_clean_stats(session.stats())
        self.assert_contents(trace, size)
        return trace

    def assert_contents(self, trace, size):
        for packet in trace.of("for_testing"):
            number = packet.for_testing.counter
            self.assertEqual(
                packet.for_testing.payload.single_string,
                chr(ord("a") + number % 26) * (number * 7919 % (size + 1)))

    def test_small_packets_through_shared_memory(self):
        self.daemon()
        self.record(self.daemons[0].producer_path, 20000, 100)

    def test_packets_larger_than_a_chunk_through_shared_memory(self):
        self.daemon()
        self.record(self.daemons[0].producer_path, 500, 60000)

    def test_several_processes_at_once(self):
        self.daemon()
        self.record(self.daemons[0].producer_path, 2000, 1000, processes=4)

    def test_packets_of_all_sizes_over_tcp(self):
        self.daemon(producer=["127.0.0.1:0"])
        # No more than the memory holds: over TCP nothing is waited for.
        self.record(self.daemons[0].address("producers", "tcp"), 100, 12000,
                    trace_all_machines=True)


if __name__ == "__main__":
    sys.exit(tap.main())
