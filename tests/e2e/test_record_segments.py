#!/usr/bin/env python3
"""`tributary record` into segments: --rotate-every, --rotate-size, --split, and
what becomes of them: --on-segment, --keep, --keep-for."""

import os
import time

from harness import tap
from harness.case import TEST_SOURCE
from harness.device import Device
from harness.recording import RecordCase, Recording
from harness.trace import Trace
from test_segments import SegmentCase

CONFIG = f"""
    buffers {{ size_kb: 4096 }} file_write_period_ms: 100 flush_period_ms: 5000
    data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}
    tributary_segments {{ recording: "r" at_trigger: "cut"
                          file_pattern: "%recording/%n.pftrace" }} """
DAY = 24 * 3600


class RecordedSegments(SegmentCase, RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon()
        self.p = self.producer("p")
        self.begun = 0

    def begin(self, *flags, config=CONFIG, out="traces/rec"):
        recording = Recording(self, "-o", out, "-c", self.config(config),
                              *flags)
        self.begun += 1
        self.p.wait_command("start_data_source", self.begun)
        return recording

    def refused(self, *flags, config=CONFIG, out="traces/rec"):
        return Recording(self, "-o", out, "-c", self.config(config),
                         *flags).end(1)

    def finish(self, recording):
        recording.interrupt()
        return recording.end()

    def names(self):
        return [os.path.relpath(path, self.path("traces/rec"))
                for path in self.files()]

    def ran(self):
        """What commands have added to a file."""
        try:
            with open(self.path("ran")) as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def test_segments_are_the_recording_together(self):
        recording = self.begin()
        writer = self.p.writer()
        for cuts in (1, 2):
            writer.number(40)
            self.cut(self.p, cuts)
        writer.number(5)
        self.assertIn("traces/rec (3 segments)", self.finish(recording))
        traces = self.load()
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [85])
        self.assertEqual(self.files(end=".part"), [])

    def write_until_cut(self, **packets):
        """The number of packets that it took."""
        writer = self.p.writer()
        written = 0
        while len(self.files()) < 2:
            writer.number(100, **packets)
            written += 100
            self.loop.settle(0.02)
        return written

    def test_a_segment_is_cut_at_its_size_and_given_to_a_command(self):
        recording = self.begin("--rotate-size", "64kb", "--on-segment",
                               'echo "$TRIBUTARY_SEGMENT_NUMBER" '
                               '"$TRIBUTARY_SEGMENT_LAST" >>ran; '
                               'ls "$1" >>ran')
        written = self.write_until_cut(size=400)
        self.finish(recording)
        traces = self.load()
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [written])
        ran = self.ran().split("\n")
        paths = [os.path.relpath(path, self.folder) for path in self.files()]
        self.assertEqual([line for line in ran if line.endswith(".pftrace")],
                         paths)
        self.assertEqual([line for line in ran if line[:1].isdigit()],
                         [f"{i} {int(i == len(paths))}"
                          for i in range(1, len(paths) + 1)])

    def test_the_size_is_that_of_the_compressed_file(self):
        recording = self.begin("--rotate-size", "64kb", config=CONFIG +
                               "compression_type: COMPRESSION_TYPE_DEFLATE")
        written = self.write_until_cut(size=3000)
        self.finish(recording)
        traces = self.load()
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [written])
        for path in self.files()[:-1]:
            self.assertGreaterEqual(os.stat(path).st_size, 65536)
        self.assertGreater(sum(len(raw) for raw in traces[0].raw), 2 * 65536)

    def test_a_command_that_fails_is_told_and_the_rest_goes_on(self):
        recording = self.begin("--on-segment", "echo no room >&2; false")
        self.cut(self.p, 1)
        said = self.finish(recording)
        self.assertIn("--on-segment failed for traces/rec/r/000001.pftrace "
                      "(status 1): no room", said)
        self.assertIn("000002.pftrace (status 1)", said)

    def test_a_name_is_never_text_of_the_shell(self):
        folder = "it's \"a\" $(touch evil)\n`touch evil`; touch evil"
        recording = self.begin(
            "--on-segment", 'printf "%s|" "$TRIBUTARY_SEGMENT_PATH" "$1" "$#" '
            ">>ran", out=folder)
        self.finish(recording)
        path = f"{folder}/r/000001.pftrace"
        self.assertEqual(self.ran(), f"{path}|{path}|1|")
        self.assertFalse(os.path.exists(self.path("evil")))

    def test_a_folder_that_looks_like_a_flag_is_none_of_the_command(self):
        recording = self.begin("--on-segment", 'ls "$1" >>ran', out="-l")
        self.finish(recording)
        self.assertEqual(self.ran(), "./-l/r/000001.pftrace\n")

    def test_a_command_that_hangs_costs_nothing(self):
        recording = self.begin("--on-segment", "echo >>ran; while :; do sleep 0.1; done")
        writer = self.p.writer()
        for cuts in (1, 2, 3):
            writer.number(30)
            self.cut(self.p, cuts)
        writer.number(30)
        self.until(self.ran, "the first command runs")
        recording.interrupt()
        recording.says("waiting for the command of --on-segment, for 4")
        traces = self.load()
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [120])
        recording.interrupt()
        said = recording.end()
        self.assertIn("ended before its end for traces/rec/r/000001.pftrace; "
                      "3 other segments had none", said)
        self.assertEqual(self.ran(), "\n")

    def test_commands_come_to_their_end_when_the_collector_is_gone(self):
        recording = self.begin(
            "--on-segment",
            'until [ -e go ]; do sleep 0.02; done; ls "$1" >>ran')
        self.cut(self.p, 1)
        self.daemons[0].kill()
        recording.says("waiting for the command")
        with open(self.path("go"), "w"):
            pass
        self.assertIn("connection to the collector was lost", recording.end(1))
        self.assertEqual(self.ran().split(), [
            f"traces/rec/{name}" for name in self.names()])
        self.assertEqual(self.files(end=".part"), [])

    def test_the_oldest_go_beyond_what_is_kept(self):
        recording = self.begin("--keep", "1k")
        writer = self.p.writer()
        for cuts in (1, 2):
            writer.number(40)
            self.p.activate("cut")
            self.until(lambda: [os.path.basename(path) for end in
                                (".pftrace", ".part")
                                for path in self.files(end=end)] ==
                       [f"00000{cuts + 1}.pftrace.part"],
                       "the segment before is removed")
        writer.number(40)
        self.finish(recording)
        self.assertEqual(self.files(), [])

    def test_a_pinned_segment_stays(self):
        recording = self.begin()
        self.cut(self.p, 1)
        self.p.writer().number(40)
        self.cut(self.p, 2)
        self.finish(recording)
        with open(self.path("traces/rec/r/000002.pftrace.pinned"), "w"):
            pass
        recording = self.begin("--keep", "1k")
        said = self.finish(recording)
        self.assertEqual(self.names(), ["r/000002.pftrace"])
        self.assertIn("pinned segments alone have", said)

    def test_segments_of_earlier_runs_are_of_the_recording(self):
        other = self.begin(config=CONFIG.replace('"r"', '"other"'))
        self.finish(other)
        recording = self.begin()
        for cuts in (2, 3):
            self.cut(self.p, cuts)
        self.finish(recording)
        old = time.time() - 15 * DAY
        for name in ("r/000002.pftrace", "other/000001.pftrace"):
            os.utime(self.path(f"traces/rec/{name}"), (old, old))
        recording = self.begin("--keep-for", "14d")
        self.finish(recording)
        self.assertEqual(self.names(), [
            "other/000001.pftrace", "r/000001-2.pftrace", "r/000001.pftrace",
            "r/000003.pftrace"])

    def test_what_is_removed_before_its_command_is_told(self):
        recording = self.begin(
            "--keep", "1k", "--on-segment",
            'until [ -e go ]; do sleep 0.02; done; ls "$1" >>ran')
        writer = self.p.writer()
        writer.number(40)
        self.cut(self.p, 1)
        self.p.activate("cut")
        # The first stays while its command runs; the second goes at once.
        self.until(lambda: [os.path.basename(path) for path in
                            self.files(end=".part")] ==
                   ["000003.pftrace.part"], "the second is whole")
        self.until(lambda: self.names() == ["r/000001.pftrace"],
                   "the second is removed")
        with open(self.path("go"), "w"):
            pass
        self.until(lambda: not self.names(), "the first is removed, too")
        writer.number(40)
        said = self.finish(recording)
        self.assertIn("is not run for traces/rec/r/000002.pftrace, which was "
                      "removed before", said)
        self.assertEqual(self.ran().split(), [
            "traces/rec/r/000001.pftrace", "traces/rec/r/000003.pftrace"])
        self.assertEqual(self.names(), [])

    def test_wrong_flags_say_what_is_wrong(self):
        plain = CONFIG[:CONFIG.index("tributary_segments")]
        with open(self.path("traces") + "/rec", "w"):
            pass
        for reason, flags, changed in (
                ("say when a new one begins", ("--keep", "1gb"),
                 {"config": plain}),
                ("name a folder", (), {"out": "-"}),
                ("by machine alone", ("--split", "day"), {}),
                ("needs %machine", ("--split", "machine"), {}),
                ("there is no %x", ("--pattern", "%x.pftrace"), {}),
                ("--rotate-every: \"5parsecs\"", ("--rotate-every", "5parsecs"),
                 {}),
                ("a second at least", ("--rotate-every", "0s"), {}),
                ("31 days at most", ("--rotate-every", "32d"), {}),
                ("64kb at least", ("--rotate-size", "1kb"), {}),
                ("--rotate-size: \"big\"", ("--rotate-size", "big"), {}),
                ("would keep nothing", ("--keep", "0gb"), {}),
                ("would keep nothing", ("--keep-for", "0d"), {}),
                ("--keep-for: \"14\" has no unit", ("--keep-for", "14"), {}),
                ("command is empty", ("--on-segment", " "), {}),
                ("limits one file", (),
                 {"config": CONFIG + "max_file_size_bytes: 1000000"}),
                ("is a file", (), {})):
            self.assertIn(reason, self.refused(*flags, **changed))
        self.assertIn("stays with", Recording(
            self, "--attach=k", "--keep", "1gb").end(1))

    def test_a_crash_leaves_a_part_that_the_next_recording_closes(self):
        recording = self.begin()
        self.p.writer().number(12)

        def written():
            parts = self.files(end=".part")
            return parts and len(Trace.so_far(parts[0])
                                 .of("for_testing")) == 12
        self.until(written, "12 packets in the segment")
        recording.process.kill()
        recording.process.wait()
        again = Recording(self, "-o", "traces/rec", "-c", self.config(
            CONFIG.replace('"r"', '"later"')))
        again.says("1 segment that a crash left in traces/rec ends")
        self.until(lambda: self.files("rec/later", end=".part"), "its segment")
        self.finish(again)
        self.assert_numbers_of(self.load("rec/r"), [12])


class OfNames(SegmentCase, RecordCase):
    """Without a config; they last until they are stopped."""

    def test_names_are_cut_every_so_often(self):
        self.daemon()
        recording = Recording(self, "-o", "traces/rec/", "--rotate-every", "1s",
                              "--pattern", "%n.pftrace", TEST_SOURCE)
        self.has_segments(2)
        recording.interrupt()
        recording.end()
        traces = self.load()
        self.assertEqual([t.packets[0].tributary_segment.number
                          for t in traces], list(range(1, len(traces) + 1)))

    def test_each_machine_has_files_of_its_own(self):
        daemon = self.daemon(flags=["--enable-relay-endpoint"])
        device = Device(self.folder, "kiosk-1", daemon.address("producers"))
        device.start()
        self.addCleanup(device.stop)
        producers = [self.producer("here"),
                     self.producer("there", address=device.socket)]
        recording = Recording(self, "-o", "traces/rec", "--split", "machine",
                              "--all-machines", TEST_SOURCE)
        for producer in producers:
            producer.wait_started()
            producer.writer().number(10)
        recording.interrupt()
        recording.end()
        traces = self.load()
        machines = sorted(t.packets[0].tributary_segment.machine
                          for t in traces if t.numbers())
        self.assertEqual(machines, ["host", "kiosk-1"])
        self.assert_numbers_of(traces, [10, 10])


if __name__ == "__main__":
    tap.main()
