#!/usr/bin/env python3
"""tributary fetch: segments that are joined are the recording, as if it had not
been cut."""

import os
import stat
import subprocess
import sys

from harness import tap
from harness.case import pb
from harness.device import Device
from harness.imported import may_cause
from harness.inspected import framed
from harness.trace import Trace
from test_cuts import Cut, CutCase, Numbers

SPLIT_STREAM = os.environ["SPLIT_STREAM"]
COUNTS = """SELECT (SELECT count(*) FROM slice), (SELECT count(*) FROM counter),
  (SELECT count(*) FROM process), (SELECT count(*) FROM thread),
  (SELECT count(*) FROM machine), (SELECT count(*) FROM raw)"""
DROPPED = """SELECT value FROM stats WHERE value != 0 AND
  name = 'traced_buf_incremental_sequences_dropped'"""
STATS = """SELECT name, idx, value FROM stats
  WHERE name LIKE 'traced%' AND value != 0 ORDER BY 1, 2, 3"""


def is_of_a_cut(packet):
    """Whether it is in the stream because that is cut, or differs therefore."""
    return packet.tributary_repeated or \
        packet.HasField("tributary_segment_cut") or \
        packet.WhichOneof("data") in ("trace_stats", "trace_uuid")


class FetchCase(CutCase):
    def setUp(self):
        super().setUp()
        self.segments = self.path("segments")
        os.mkdir(self.segments)

    def record(self, *numbers, cuts=3):
        """Goes on in a session that was begun; self.raw is its stream."""
        for number in range(2, cuts + 2):
            for one in numbers:
                one.number(20)
            self.must("rotate", "s")
            self.read_until(Cut.BEGIN, number)
            for one in numbers:
                if one.clears:
                    one.producer.wait_command("clear_incremental_state",
                                              number - 1)
                one.number(20)
            self.read_until(Cut.END, number)
        self.consumer.flush(60_000)
        self.finish_session()

    def split(self, *flags):
        subprocess.run([SPLIT_STREAM, self.segments, *flags], check=True,
                       input=framed(self.raw))
        return sorted(os.path.join(self.segments, name)
                      for name in os.listdir(self.segments))

    def fetch(self, *words, status=0):
        path = self.path("joined")
        done = subprocess.run(
            [os.environ["TRIBUTARY"], "fetch", *words, "-o", path],
            capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (status, ""),
                         done.stderr)
        return (Trace.from_file(path) if status == 0 else None), done.stderr

    def uncut(self):
        """The packets of the stream that are in the joined trace as well."""
        return [p for p in self.raw
                if not is_of_a_cut(pb.TracePacket.FromString(p))]

    def assert_same(self, joined):
        """As bytes, and as Trace Processor sees them."""
        kept = [raw for raw, p in zip(joined.raw, joined.packets)
                if not is_of_a_cut(p)]
        self.assertEqual(sorted(kept), sorted(self.uncut()))
        self.assertEqual(len(joined.of("trace_uuid")), 1)
        whole = Trace(
            [p for p in self.raw if not pb.TracePacket.FromString(
                p).tributary_repeated])
        self.assertEqual(joined.ask(COUNTS, STATS), whole.ask(COUNTS, STATS))
        self.assertEqual(joined.numbers(), whole.numbers())


class Teller(Numbers):
    """That says whether it begins anew at a cut."""

    def __init__(self, case, name, clears=True, **options):
        super().__init__(case, name, clears=clears, **options)
        self.clears = clears


class Fetch(FetchCase):
    def test_what_was_cut_is_whole_again(self):
        self.start()
        self.record(Teller(self, "p"), Teller(self, "q"))
        joined, said = self.fetch(*self.split())
        self.assertNotIn("missing", said)
        self.assert_same(joined)
        self.assert_numbers(joined, [120] * 4)

    # Of segments by themselves, but not of the joined trace.
    @may_cause("traced_buf_incremental_sequences_dropped")
    def test_a_producer_that_does_not_begin_anew_loses_nothing(self):
        self.start()
        self.record(Teller(self, "p", clears=False))
        joined, _ = self.fetch(*self.split())
        self.assert_same(joined)
        self.assertEqual(joined.losses(), [])
        self.assertEqual(joined.sql(DROPPED), [])

    def test_files_of_machines_become_one_trace(self):
        device = Device(self.folder, "kiosk-7", self.daemons[0].producer_path)
        self.relays.append(device)
        self.start(trace_all_machines=True)
        self.record(Teller(self, "p"),
                    Teller(self, "q", address=device.start().socket))
        files = self.split("--by-machine")
        self.assertGreater(len({f.rsplit("-", 1)[1] for f in files}), 1)
        joined, said = self.fetch(*files)
        self.assertNotIn("has no file", said)
        self.assert_same(joined)
        device = [f for f in files if f.endswith(files[-1].rsplit("-", 1)[1])]
        files.remove(device[1])
        _, said = self.fetch(*files)
        self.assertIn("1 time a machine has no file where others have one, as "
                      "kiosk-7 behind segment 1", said)

    @may_cause("traced_buf_incremental_sequences_dropped",
               "traced_buf_sequence_packet_loss")
    def test_a_missing_segment_is_told(self):
        self.start()
        self.record(Teller(self, "p", clears=False))
        files = self.split()
        joined, said = self.fetch(files[0], *files[2:])
        self.assertIn("segment 2 of the recording is missing", said)
        self.assertTrue(joined.losses())

    def test_a_damaged_end_is_told(self):
        self.start()
        self.record(Teller(self, "p"), cuts=1)
        files = self.split()
        with open(files[0], "r+b") as file:
            file.truncate(os.path.getsize(files[0]) - 3)
        _, said = self.fetch(*files)
        self.assertIn("ends within a packet or is damaged", said)
        self.assertIn("1 segment without an end", said)

    def test_a_fifo_is_written_into_and_is_no_segment(self):
        self.start()
        self.record(Teller(self, "p"), cuts=1)
        files = self.split()
        joined, _ = self.fetch(*files)
        os.remove(self.path("joined"))
        os.mkfifo(self.path("joined"))
        with subprocess.Popen(["cat", self.path("joined")],
                              stdout=subprocess.PIPE) as reader:
            done = subprocess.run(
                [os.environ["TRIBUTARY"], "fetch", *files, "-o",
                 self.path("joined")], capture_output=True, check=False)
            whole = reader.stdout.read()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(whole, framed(joined.raw))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("joined")).st_mode))
        self.assertFalse(os.path.exists(self.path("joined.part")))
        done = subprocess.run(
            [os.environ["TRIBUTARY"], "fetch", self.path("joined"), "-o",
             self.path("x")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is a pipe", done.stderr)

    def test_conditions_of_named_segments_are_refused(self):
        _, said = self.fetch("a.pftrace", "--trim", "--from", "-1h",
                             "--machine", "kiosk-7", status=2)
        self.assertIn("name segments, or say which kind", said)

    def test_nothing_is_left_of_a_fetch_that_fails(self):
        self.start()
        self.record(Teller(self, "p"), cuts=1)
        files = self.split()
        _, said = self.fetch(*files, "/nowhere", status=2)
        self.assertIn("cannot open /nowhere", said)
        self.assertFalse(os.path.exists(self.path("joined")))
        self.assertFalse(os.path.exists(self.path("joined.part")))


if __name__ == "__main__":
    sys.exit(tap.main())
