#!/usr/bin/env python3
"""A real producer: Debian's Chromium, every process of it, by shared memory."""

import os
import sys
import unittest

from harness import tap
from harness.case import Case
from harness.chromium import CHROMIUM, Browser, TrackEvents
from harness.consumer import source
from harness.trace import Trace


@unittest.skipIf(CHROMIUM is None, "chromium is not installed")
class Chromium(TrackEvents, Case):
    def setUp(self):
        super().setUp()
        self.browser = None

    def _end(self):
        self.quit()
        super()._end()

    def launch(self):
        self.browser = Browser(self, self.path("p"))

    def quit(self):
        if self.browser is not None:
            self.browser.quit()
        self.browser = None

    def test_its_processes_are_recorded_whole(self):
        self.daemon()
        self.launch()
        query = self.consumer()
        self.until(lambda: len([
            d for d in query.query().data_sources
            if d.ds_descriptor.name == "track_event"]) >= 5,
            "five processes offer track events", timeout=60)
        wanted = source("track_event")
        wanted.config.track_event_config.disabled_categories.append("*")
        wanted.config.track_event_config.enabled_categories.extend(
            ["toplevel", "cc"])
        consumer = self.session(wanted, duration_ms=2500, size_kb=64 * 1024)
        consumer.ended(timeout=60)
        trace = consumer.read()
        state = consumer.query()
        self.assertGreaterEqual(
            len([p for p in state.producers
                 if p.name.startswith("org.chromium-")]), 5)

        self.assert_chromium(trace)
        self.assert_statistics(trace)

    def assert_statistics(self, trace):
        stats = trace.stats()
        self.assert_clean_stats(stats)
        (buffer,) = stats.buffer_stats
        # What is left in the buffer: each writer's chunk that was scraped
        # while it was written, whose last fragment may be half of one.
        left = buffer.chunks_written - buffer.chunks_read
        self.assertGreaterEqual(left, 0)
        self.assertLessEqual(left, len(stats.writer_stats))
        self.assertGreaterEqual(buffer.bytes_written, buffer.bytes_read)
        self.assertGreaterEqual(stats.producers_connected, 5)
        sequences = {p.trusted_packet_sequence_id for p in trace.packets
                     if p.trusted_packet_sequence_id > 1}
        writers = {w.sequence_id for w in stats.writer_stats}
        self.assertLessEqual(sequences, writers)
        chunks = sum(sum(w.chunk_payload_histogram_counts)
                     for w in stats.writer_stats)
        self.assertEqual(chunks, buffer.chunks_written)

    def test_it_is_recorded_into_a_file_and_killed_in_the_middle(self):
        self.daemon()
        self.launch()
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        wanted = source("track_event")
        wanted.config.track_event_config.enabled_categories.append("toplevel")
        consumer = self.session(wanted, fds=[fd], write_into_file=True,
                                file_write_period_ms=200, size_kb=4096)
        os.close(fd)
        self.until(lambda: Trace.so_far(self.path("f")).of("track_event"),
                   "track events in the file", timeout=60)
        self.quit()
        self.until(lambda: not [
            p for p in consumer.query().producers
            if p.name.startswith("org.chromium-")], "it is gone")
        consumer.stop()
        trace = Trace.from_file(self.path("f"))
        stats = trace.stats()
        (buffer,) = stats.buffer_stats
        # Only what died half written could not go into the file.
        sequences = {p.trusted_packet_sequence_id for p in trace.packets}
        self.assertLessEqual(buffer.chunks_overwritten, len(sequences))
        self.assertEqual(buffer.abi_violations, 0)
        self.assertEqual(stats.invalid_packets, 0)


if __name__ == "__main__":
    sys.exit(tap.main())
