#!/usr/bin/env python3
"""A real producer: Debian's Chromium, every process of it, by shared memory."""

import os
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.request

from harness import tap
from harness.case import Case
from harness.consumer import source
from harness.daemon import environment
from harness.loop import SCALE
from harness.trace import Trace

PAGE = ("data:text/html,<canvas></canvas><script>setInterval(()=>{let d="
        "document.createElement('p');d.textContent=Date.now();"
        "document.body.prepend(d);if(document.body.childNodes.length>50)"
        "document.body.lastChild.remove()},10)</script>")
CLEARED = 1  # TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDS_STATE = 2


CHROMIUM = shutil.which("chromium")


@unittest.skipIf(CHROMIUM is None, "chromium is not installed")
class Chromium(Case):
    def setUp(self):
        super().setUp()
        self.browser = None

    def _end(self):
        self.quit()
        super()._end()

    def launch(self):
        """Starts it, waits for its DevTools port and opens a busy page."""
        profile = self.path("profile")
        os.mkdir(profile)
        self.browser_log = open(self.path("chromium.log"), "wb")
        self.browser = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}",
             "--enable-features=EnablePerfettoSystemTracing",
             "--remote-debugging-port=0", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.browser_log,
            stderr=subprocess.STDOUT, start_new_session=True,
            env=environment(PERFETTO_PRODUCER_SOCK_NAME=self.path("p"),
                            HOME=profile))
        port_file = os.path.join(profile, "DevToolsActivePort")
        self.until(lambda: os.path.exists(port_file) and
                   open(port_file).read().count("\n") >= 1,
                   "Chromium opens its DevTools port", timeout=60)
        with open(port_file) as file:
            port = int(file.readline())
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/json/new?" +
            urllib.request.quote(PAGE, safe=""), method="PUT")
        urllib.request.urlopen(request, timeout=30 * SCALE).close()

    def quit(self):
        """Ends the whole group that we started."""
        if self.browser is None:
            return
        try:
            os.killpg(self.browser.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.browser.wait()
        self.browser_log.close()
        self.browser = None

    @staticmethod
    def processes(trace):
        """Pids of the processes whose threads wrote track events.

        All connections are the browser's, which opens them for its children:
        trusted_pid does not tell them apart, their descriptors do.
        """
        pids, writing = {}, set()
        for packet in trace.packets:
            sequence = packet.trusted_packet_sequence_id
            descriptor = packet.track_descriptor
            for part in (descriptor.thread, descriptor.process):
                if part.pid:
                    pids[sequence] = part.pid
            if packet.WhichOneof("data") == "track_event":
                writing.add(sequence)
        return {pids[s] for s in writing if s in pids}

    def assert_interned_names_resolve(self, trace):
        """Replays interning in order, as an importer does."""
        names, valid = {}, {}
        resolved = []
        for packet in trace.packets:
            sequence = packet.trusted_packet_sequence_id
            if packet.sequence_flags & CLEARED:
                names[sequence] = {}
                valid[sequence] = True
            known = names.setdefault(sequence, {})
            for entry in packet.interned_data.event_names:
                known[entry.iid] = entry.name
            event = packet.track_event
            if packet.WhichOneof("data") != "track_event" or \
                    event.WhichOneof("name_field") != "name_iid":
                continue
            if packet.sequence_flags & NEEDS_STATE:
                self.assertTrue(valid.get(sequence),
                                f"sequence {sequence} lost its state")
            self.assertIn(event.name_iid, known,
                          f"sequence {sequence}: a name was never interned")
            resolved.append(known[event.name_iid])
        return resolved

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

        events = trace.of("track_event")
        self.assertGreaterEqual(len(self.processes(trace)), 5,
                                "processes in the trace")
        self.assertGreater(len(events), 1000)
        names = self.assert_interned_names_resolve(trace)
        self.assertGreater(len(names), 500)
        self.assertGreater(len(set(names)), 5)
        self.assertEqual(trace.losses(), [])
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
        self.until(lambda: Trace.from_file(self.path("f")).of("track_event"),
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
