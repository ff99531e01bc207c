#!/usr/bin/env python3
"""Sessions that write segments: files that stand alone, and that are the whole
recording when they are put together."""

import os
import stat
import sys

from harness import tap
from harness.case import TEST_SOURCE, config, pb
from harness.device import Device
from harness.trace import Trace
from test_files import FileCase

ERRORS = "SELECT name, value FROM stats WHERE severity = 'error' AND value > 0"
RECORDING = {"recording": "r", "at_trigger": ["cut"],
             "file_pattern": "%recording/%n.pftrace"}


def segments(**fields):
    return pb.SegmentConfig(**{**RECORDING, **fields})


class SegmentCase(FileCase):
    def record(self, *sources, folder="rec", of=None, **fields):
        return self.session(*sources, write_into_file=True, output_path=folder,
                            tributary_segments=of or segments(),
                            file_write_period_ms=100,
                            flush_period_ms=5000, **fields)

    def files(self, folder="rec", end=".pftrace"):
        """Paths below the folder, in order of their names."""
        top = os.path.join(self.traces, folder)
        return sorted(os.path.join(path, name)
                      for path, _, names in os.walk(top) for name in names
                      if name.endswith(end))

    def has_segments(self, count, folder="rec"):
        self.until(lambda: len(self.files(folder)) >= count,
                   f"{count} whole segments")

    def cut(self, producer, count):
        """A trigger, and the `count`th segment is whole."""
        producer.activate("cut")
        self.has_segments(count)

    def load(self, folder="rec"):
        """All segments, each of which opens by itself without an error."""
        found = []
        for path in self.files(folder):
            trace = Trace.from_file(path)
            self.assertEqual(trace.sql(ERRORS), [], path)
            found.append(trace)
        return found

    def assert_whole(self, traces):
        """Each says which it is, and how it ended; together they are all."""
        heads = [t.packets[0].tributary_segment for t in traces]
        ends = [t.packets[-1].tributary_segment.end for t in traces]
        uuids = {(t.of("trace_uuid")[0].trace_uuid.msb,
                  t.of("trace_uuid")[0].trace_uuid.lsb) for t in traces}
        self.assertEqual([h.number for h in heads],
                         list(range(1, len(traces) + 1)))
        self.assertEqual(len({h.recording_uuid for h in heads}), 1)
        self.assertEqual({h.recording for h in heads}, {"r"})
        self.assertEqual(len(uuids), len(traces))
        for trace, end in zip(traces, ends):
            self.assertEqual(end.unanswered, 0)
            self.assertTrue(trace.of("trace_stats"))
            self.assertTrue(trace.of("clock_snapshot"))
            self.assertEqual(len(trace.of("trace_config")), 1)
        for end in ends[:-1]:
            self.assertTrue(end.cause)
        self.assertFalse(ends[-1].HasField("cause"))

    def assert_numbers_of(self, traces, expected):
        """No number is in two segments, and none is in neither."""
        found = {}
        for trace in traces:
            for sequence, numbers in trace.numbers().items():
                found.setdefault(sequence, []).extend(numbers)
        for numbers in found.values():
            self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(sorted(map(len, found.values())), sorted(expected))


class Segments(SegmentCase):
    def setUp(self):
        super().setUp()
        self.start()

    def test_segments_stand_alone_and_are_the_recording_together(self):
        producer = self.producer("p")
        consumer = self.record()
        writers = [producer.writer() for _ in range(3)]
        for cuts in range(3):
            for writer in writers:
                writer.number(50)
            self.cut(producer, cuts + 1)
        for writer in writers:
            writer.number(7)
        self.assertFalse(consumer.stop().error)
        traces = self.load()
        self.assertEqual(len(traces), 4)
        self.assertEqual(self.files(end=".part"), [])
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [157] * 3)
        causes = [t.packets[-1].tributary_segment.end.cause for t in traces]
        self.assertEqual(set(causes[:3]), {pb.SegmentCut.TRIGGER})

    def test_a_segment_is_cut_at_its_size(self):
        producer = self.producer("p")
        consumer = self.record(of=segments(max_bytes=65536), size_kb=4096)
        writer = producer.writer()
        written = 0
        while len(self.files()) < 3:
            writer.number(200, size=500)
            written += 200
            self.loop.settle(0.02)
        consumer.stop()
        traces = self.load()
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [written])
        for path in self.files()[:-1]:
            self.assertGreaterEqual(os.stat(path).st_size, 65536)

    def test_segments_are_compressed(self):
        producer = self.producer("p")
        consumer = self.record(
            compression=pb.TraceConfig.CompressionConfig(
                zstd=pb.TraceConfig.CompressionConfig.Zstd()))
        writer = producer.writer()
        writer.number(500)
        self.cut(producer, 1)
        writer.number(500)
        consumer.stop()
        traces = self.load()
        self.assert_whole(traces)
        self.assert_numbers_of(traces, [1000])
        for trace in traces:
            self.assertIn("zstd_compressed_packets", trace.stored_kinds())

    def test_a_folder_that_has_segments_keeps_them(self):
        for _ in range(2):
            producer = self.producer("p")
            consumer = self.record()
            producer.writer().number(10)
            consumer.stop()
            producer.close()
            consumer.close()
        names = [os.path.basename(path) for path in self.files()]
        self.assertEqual(names, ["000001-2.pftrace", "000001.pftrace"])
        for trace in self.load():
            self.assert_numbers_of([trace], [10])

    def test_without_fields_there_is_one_segment_named_by_its_time(self):
        consumer = self.record(of=pb.SegmentConfig(),
                               unique_session_name="a/b")
        consumer.stop()
        (path,) = self.files()
        self.assertRegex(os.path.relpath(path, self.traces),
                         r"^rec/a%2Fb/\d{4}-\d\d-\d\d/\d{6}-000001\.pftrace$")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_wrong_configs_are_refused_with_the_reason(self):
        into = {"write_into_file": True, "output_path": "rec"}
        for reason, fields in (
                ("there is no %x", {"of": segments(file_pattern="%x.pftrace")}),
                ("needs %n", {"of": segments(file_pattern="x.pftrace")}),
                ("needs %machine", {"of": segments(split="BY_MACHINE")}),
                ("begin with a dot",
                 {"of": segments(file_pattern="../%n.pftrace")}),
                ("64 KiB", {"of": segments(max_bytes=1)}),
                ("max_file_size_bytes", {"max_file_size_bytes": 1 << 20})):
            fields = {**into, **fields}
            of = fields.pop("of", segments())
            consumer = self.consumer()
            self.assertIn(reason, consumer.refused(config(
                TEST_SOURCE, tributary_segments=of, **fields)))
            consumer.close()
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT, 0o600)
        consumer = self.consumer()
        self.assertIn("need output_path", consumer.refused(config(
            TEST_SOURCE, write_into_file=True, tributary_segments=segments(
                max_bytes=1 << 20)), [fd]))
        self.assertEqual(os.listdir(self.traces), [])

    def test_a_folder_that_cannot_be_made_ends_the_session(self):
        with open(os.path.join(self.traces, "rec"), "w") as file:
            file.write("mine")
        consumer = self.consumer()
        error = consumer.refused(config(
            TEST_SOURCE, write_into_file=True, output_path="rec",
            tributary_segments=segments()))
        self.assertIn("folder for segments", error)


class Crashes(SegmentCase):
    def test_a_crash_leaves_a_part_that_the_next_start_closes(self):
        self.start()
        producer = self.producer("p")
        self.record()
        writer = producer.writer()
        writer.number(20)
        self.cut(producer, 1)
        writer.number(30)

        def written():
            (part,) = self.files(end=".part")
            return len(Trace.so_far(part).of("for_testing")) == 30
        self.until(written, "30 packets in the second segment")
        self.daemons[0].kill()
        self.assertEqual(len(self.files()), 1)
        self.start()
        consumer = self.record(of=segments(recording="later"))
        self.has_segments(2)
        # The files have their names before the log has the sentence.
        self.until(lambda: "1 segment that a crash left" in
                   self.daemons[-1].log(), "the sentence in the log")
        consumer.stop()
        recovered = [Trace.from_file(path)
                     for path in self.files(os.path.join("rec", "r"))]
        self.assert_numbers_of(recovered, [50])
        for trace in recovered:
            self.assertEqual(trace.sql(ERRORS), [])
        self.assertFalse(recovered[1].packets[-1].tributary_segment
                         .HasField("end"))

    def test_parts_of_a_session_beside_it_are_left_alone(self):
        self.start()
        producer = self.producer("p")
        first = self.record()
        producer.writer().number(5)
        self.until(lambda: self.files(end=".part"), "a part")
        second = self.record(of=segments(recording="second"))
        second.stop()
        self.assertEqual(len(self.files(end=".part")), 1)
        first.stop()
        self.assert_numbers_of(self.load("rec/r"), [5])


class Machines(SegmentCase):
    def test_each_machine_has_files_of_its_own(self):
        daemon = self.daemon(flags=["--trace-dir", self.traces,
                                    "--enable-relay-endpoint"])
        devices = []
        for i in range(3):
            device = Device(self.folder, f"kiosk-{i}",
                            daemon.address("producers"))
            device.start()
            self.addCleanup(device.stop)
            devices.append(device)
        consumer = self.record(
            trace_all_machines=True,
            of=segments(split="BY_MACHINE",
                        file_pattern="%machine/%n.pftrace"))
        producers = [self.producer(f"on{i}", address=d.socket)
                     for i, d in enumerate(devices)]
        writers = [p.writer() for p in producers]
        for number in (1, 2):
            for writer in writers:
                writer.number(25)
            producers[0].activate("cut")
            self.has_segments(number * 4)
        consumer.stop()
        folders = sorted(os.listdir(os.path.join(self.traces, "rec")))
        self.assertEqual([f for f in folders if not f.startswith(".")],
                         ["host", "kiosk-0", "kiosk-1", "kiosk-2"])
        for i in range(3):
            traces = self.load(f"rec/kiosk-{i}")
            self.assert_numbers_of(traces, [50])
            for trace in traces:
                head = trace.packets[0].tributary_segment
                self.assertEqual(head.machine, f"kiosk-{i}")
                self.assertEqual({p.machine_id for p in
                                  trace.of("for_testing")},
                                 {head.machine_id} if trace.numbers() else
                                 set())


if __name__ == "__main__":
    tap.main()
