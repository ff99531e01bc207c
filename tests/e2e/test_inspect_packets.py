#!/usr/bin/env python3
"""tributary inspect --packets, --follow and --convert: what they print is what
is in the file, with the time that the clocks of the file say."""

import os
import re
import signal
import subprocess
import sys
import zlib

from google.protobuf import text_format

from harness import tap
from harness.case import Case, pb
from harness.imported import DAMAGED, causes
from harness.loop import SCALE

TRIBUTARY = os.environ["TRIBUTARY"]
BOOTTIME, MONOTONIC, REALTIME = 6, 3, 1
SECOND = 10**9
HOST = {REALTIME: 1700000000 * SECOND, MONOTONIC: 40 * SECOND,
        BOOTTIME: 100 * SECOND}
CAR = {MONOTONIC: 7 * SECOND, BOOTTIME: 5000 * SECOND}
LINE = re.compile(r"^# (?P<time>.*?)(?:, sequence (?P<sequence>\d+))?"
                  r"(?:, machine (?P<machine>.*?))?"
                  r", [\d.]+ \w+ at byte (?P<byte>\d+)(?P<inside> .*)?$")


def snapshot(message, clocks):
    for clock, timestamp in clocks.items():
        message.clocks.add(clock_id=clock, timestamp=timestamp)


def sample():
    """A host and a car, whose clocks are 4900 s ahead; ten packets each."""
    trace = pb.Trace()

    def add(sequence, machine=0, **fields):
        packet = trace.packet.add(trusted_packet_sequence_id=sequence,
                                  trusted_uid=1000, **fields)
        if machine:
            packet.machine_id = machine
        return packet

    snapshot(add(1).clock_snapshot, HOST)
    trace.packet[0].clock_snapshot.primary_trace_clock = BOOTTIME
    add(1).system_info.machine_name = "rack"
    add(1, 77).system_info.machine_name = "car-7"
    sync = add(1, 77).remote_clock_sync
    for late in (0, SECOND // 10):
        pair = sync.synced_clocks.add()
        snapshot(pair.client_clocks,
                 {c: t + late for c, t in CAR.items()})
        snapshot(pair.host_clocks, {c: HOST[c] + late for c in CAR})
    for i in range(10):
        packet = add(3, timestamp=HOST[MONOTONIC] + i * SECOND,
                     timestamp_clock_id=MONOTONIC)
        packet.for_testing.seq_value = i
        packet = add(4, 77, timestamp=CAR[BOOTTIME] + i * SECOND)
        packet.track_event.track_uuid = i
    return trace


class InspectCase(Case):
    def write(self, trace, name="t"):
        path = self.path(name)
        data = trace if isinstance(trace, bytes) else trace.SerializeToString()
        with open(path, "wb") as file:
            file.write(data)
        return path

    def inspect(self, *args, status=0):
        """(standard output, standard error)"""
        done = subprocess.run([TRIBUTARY, "inspect", *args],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60 * SCALE, check=False, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def lines(self, text):
        """The comments, taken apart."""
        found = [LINE.match(line) for line in text.splitlines()
                 if line.startswith("#")]
        self.assertNotIn(None, found, text)
        return found

    def seconds(self, text):
        return [float(line["time"].split()[0]) for line in self.lines(text)
                if line["time"] != "no time"]


class Packets(InspectCase):
    def test_the_text_is_the_trace(self):
        trace = sample()
        out, err = self.inspect("--packets", self.write(trace))
        self.assertEqual(text_format.Parse(out, pb.Trace()), trace)
        self.assertEqual(err, "")

    def test_every_packet_has_its_time_machine_and_sequence(self):
        out, _ = self.inspect("--packets", self.write(sample()))
        lines = self.lines(out)
        host = [line for line in lines if line["sequence"] == "3"]
        car = [line for line in lines if line["sequence"] == "4"]
        for i, (ours, theirs) in enumerate(zip(host, car)):
            self.assertEqual(ours["time"], f"{i}.000000000 s "
                             f"(BOOTTIME {100 + i}.000000000)")
            # The importer's formula makes 4900.05 s of the two rounds.
            self.assertAlmostEqual(float(theirs["time"].split()[0]),
                                   i - 0.05, 9)
            self.assertEqual(ours["machine"], "host")
            self.assertEqual(theirs["machine"], "car-7 (77)")
        self.assertEqual(len(host), 10)
        self.assertEqual(lines[1]["time"], "no time")
        self.assertEqual(lines[0]["byte"], "0")

    def test_filters(self):
        path = self.write(sample())

        def count(*flags):
            return len(self.lines(self.inspect("--packets", *flags, path)[0]))

        self.assertEqual(count(), 24)
        self.assertEqual(count("--type", "for_testing"), 10)
        self.assertEqual(count("--type", "900", "--type", "track_event"), 20)
        self.assertEqual(count("--sequence", "4"), 10)
        self.assertEqual(count("--machine", "car-*"), 12)
        self.assertEqual(count("--machine", "77"), 12)
        self.assertEqual(count("--machine", "77", "--type", "for_testing"), 0)
        self.assertEqual(count("--sequence", "3", "--from", "2", "--to",
                               "4.5"), 3)
        self.assertEqual(count("--sequence", "3", "--from", "8.000000001"), 1)

    def test_words_that_mean_nothing_are_refused(self):
        path = self.write(sample())
        for flags, said in (
                (["--packets", "--type", "track_evnt"], "mean track_event?"),
                (["--packets", "--sequence", "x"], "is a number"),
                (["--packets", "--from", "1:30"], "seconds"),
                (["--type", "track_event"], "go with --packets"),
                (["--packets", "--json"], "with the report only"),
                (["--packets", "--convert", "BOOTTIME:1"], "one of them"),
                (["--convert", "BOOTTIME"], "CLOCK:NANOSECONDS"),
                (["--convert", "64:5"], "of which?"),
                (["--convert", "128@5:5"], "64 to 127"),
                (["--convert", "LUNCHTIME:5"], "no clock"),
                (["--convert", "BOOTTIME:5", "--follow"], "does not go"),
                (["--convert", "BOOTTIME:5", "--machine", "bus"],
                 "no machine bus")):
            _, err = self.inspect(*flags, path, status=1)
            self.assertIn(said, err, flags)

    def test_compressed_packets_are_shown_as_what_they_hold(self):
        trace = sample()
        plain, _ = self.inspect("--packets", self.write(trace))
        packed = pb.Trace()
        packed.packet.add().compressed_packets = zlib.compress(
            trace.SerializeToString())
        out, _ = self.inspect("--packets", self.write(packed))
        self.assertEqual(text_format.Parse(out, pb.Trace()), trace)
        self.assertEqual(self.seconds(out), self.seconds(plain))
        self.assertEqual({line["inside"] for line in self.lines(out)},
                         {" (compressed)"})

    @causes(DAMAGED)
    def test_compressed_packets_that_are_damaged_are_damage(self):
        packed = sample()
        packed.packet.add().compressed_packets = zlib.compress(b"x" * 99)
        out, _ = self.inspect("--packets", self.write(packed), status=2)
        self.assertIn("are damaged: compressed packets hold something else",
                      out)

    def test_what_the_schema_does_not_know_is_a_number(self):
        path = self.write(pb.Trace(packet=[
            pb.TracePacket(trusted_packet_sequence_id=2)]))
        with open(path, "ab") as file:
            body = b"\x50\x02\xc0\xbb\x01\x07"  # 3000: 7
            file.write(b"\x0a" + bytes([len(body)]) + body)
        out, _ = self.inspect("--packets", path)
        self.assertIn("  3000: 7\n", out)

    def test_damage_is_told_apart_from_the_text(self):
        data = sample().SerializeToString()
        path = self.write(data + b"\xff\xff" + data + b"\x0a\x50abc")
        out, err = self.inspect("--packets", path, status=2)
        self.assertEqual(len(self.lines(out)), 48)
        self.assertIn(f"damaged at byte {len(data)}", err)
        self.assertIn("ends within a packet", err)
        _, err = self.inspect("--packets", self.write(b"\x00" * 99),
                              status=1)
        self.assertIn("no trace", err)

    # One snapshot of clocks, again and again.
    @causes("invalid_clock_snapshots")
    def test_a_reader_that_goes_away_is_no_error(self):
        trace = pb.Trace()
        for _ in range(200):
            trace.MergeFrom(sample())
        for ignore in (False, True):
            process = subprocess.Popen(
                [TRIBUTARY, "inspect", "--packets", self.write(trace)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=(lambda: signal.signal(
                    signal.SIGPIPE, signal.SIG_IGN)) if ignore else None,
                restore_signals=not ignore)
            process.stdout.read(10)
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()
            self.assertEqual(process.wait(), 0 if ignore else -signal.SIGPIPE)

    def test_convert_says_by_which_way(self):
        path = self.write(sample())
        out, _ = self.inspect("--convert", f"MONOTONIC:{43 * SECOND}", path)
        self.assertEqual(out, f"MONOTONIC {43 * SECOND}\n"
                         f"  is BOOTTIME {103 * SECOND}\n"
                         "3.000000000 s into the trace\n")
        out, _ = self.inspect("--convert", f"BOOTTIME:{5002 * SECOND}",
                              "--machine", "car-7", path)
        self.assertIn(" of machine 77\n  is BOOTTIME 101950000000\n", out)
        out, _ = self.inspect("--convert", f"3:{9 * SECOND}", "--machine",
                              "77", path)
        self.assertIn("MONOTONIC 41950000000\n  is BOOTTIME 101950000000\n",
                      out)
        _, err = self.inspect("--convert", "64@3:1", path, status=1)
        self.assertIn("never read", err)
        self.assertIn("BOOTTIME", err)
        _, err = self.inspect("--convert", "REALTIME:5", "--machine", "77",
                              path, status=1)
        self.assertIn("never read", err)

    def test_convert_goes_into_any_clock(self):
        path = self.write(sample())
        out, _ = self.inspect("--convert", f"BOOTTIME:{103 * SECOND + 45}",
                              "--into", "realtime", path)
        self.assertEqual(out, f"BOOTTIME {103 * SECOND + 45}\n"
                         f"  is REALTIME {1700000003 * SECOND + 45}, "
                         "2023-11-14 22:13:23.000000045 UTC\n"
                         "3.000000045 s into the trace\n")
        # A car's time on the collector's wall clock, and the other way.
        out, _ = self.inspect("--convert", f"BOOTTIME:{5002 * SECOND}",
                              "--machine", "car-7", "--into", "REALTIME",
                              path)
        self.assertIn("  is REALTIME 1700000001950000000, 2023-11-14 "
                      "22:13:21.950000000 UTC\n1.950000000 s into", out)
        out, _ = self.inspect("--convert", "REALTIME:1700000001950000000",
                              "--into", "MONOTONIC", "--into-machine",
                              "car-*", path)
        self.assertIn(f"  is MONOTONIC {9 * SECOND} of machine 77\n", out)

    def test_convert_says_why_it_cannot_go_there(self):
        path = self.write(sample())
        for flags, said in (
                (["--into", "LUNCHTIME"], "no clock"),
                (["--into", "BOOTTIME", "--into-machine", "bus"],
                 "no machine bus"),
                (["--into-machine", "car-7"], "wants --into"),
                (["--into", "REALTIME", "--into-machine", "car-7"],
                 "leads from this clock to REALTIME, which was never read\n"
                 "Clocks that are known: MONOTONIC, BOOTTIME\n")):
            _, err = self.inspect("--convert", "MONOTONIC:5", *flags, path,
                                  status=1)
            self.assertIn(said, err, flags)
        _, err = self.inspect("--into", "REALTIME", path, status=1)
        self.assertIn("go with --convert", err)

    def test_a_pipe_is_read_as_well(self):
        done = subprocess.run([TRIBUTARY, "inspect", "--packets", "-"],
                              input=sample().SerializeToString(),
                              capture_output=True, timeout=60, check=True)
        self.assertEqual(text_format.Parse(done.stdout, pb.Trace()), sample())


class Follow(InspectCase):
    def follow(self, *flags):
        self.process = subprocess.Popen(
            [TRIBUTARY, "inspect", "--follow", *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
        self.out = self.err = ""

    def see(self, condition, what):
        def seen():
            self.out += (self.process.stdout.read() or b"").decode()
            self.err += (self.process.stderr.read() or b"").decode()
            return condition()
        self.until(seen, what)

    def end(self, status, how=signal.SIGINT):
        if how:
            self.process.send_signal(how)
        self.assertEqual(self.process.wait(timeout=60 * SCALE), status)
        self.see(lambda: True, "the rest")

    def append(self, path, data):
        with open(path, "ab") as file:
            file.write(data)

    def numbers(self):
        return re.findall(r"seq_value: (\d+)", self.out)

    def packet(self, number):
        return pb.Trace(packet=[pb.TracePacket(
            trusted_packet_sequence_id=5, timestamp=1,
            for_testing=pb.TestEvent(seq_value=number))]).SerializeToString()

    def test_packets_come_as_they_are_written(self):
        path = self.write(b"")
        self.follow("--packets", path)
        for i in range(3):
            data = self.packet(i)
            self.append(path, data[:7])
            self.append(path, data[7:])
            self.see(lambda: len(self.numbers()) == i + 1, f"packet {i}")
        # Half of one at the end is no damage.
        self.append(path, self.packet(3)[:7])
        self.end(0)
        self.assertEqual(self.numbers(), ["0", "1", "2"])
        self.assertEqual(self.err, "")

    def test_while_it_waits_it_does_not_compute(self):
        path = self.write(self.packet(0))
        self.follow("--packets", path)
        self.see(lambda: self.numbers() == ["0"], "the first packet")
        def state():
            with open(f"/proc/{self.process.pid}/stat",
                      encoding="ascii") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0]
        self.until(lambda: state() == "S", "it to sleep")
        states = [state() for _ in range(500)]
        self.assertGreater(states.count("S"), 450)
        self.end(0, signal.SIGTERM)

    def test_a_truncated_file_is_told(self):
        path = self.write(self.packet(0) + self.packet(1))
        self.follow("--packets", path)
        self.see(lambda: len(self.numbers()) == 2, "both packets")
        os.truncate(path, 3)
        self.end(1, None)
        self.assertIn("truncated", self.err)

    def test_a_replaced_file_is_told(self):
        for replace in (lambda path: os.rename(self.write(b"", "u"), path),
                        os.remove):
            path = self.write(self.packet(0))
            self.follow("--packets", path)
            self.see(lambda: self.numbers() == ["0"], "the packet")
            replace(path)
            self.end(1, None)
            self.assertIn("replaced", self.err)

    def test_a_reader_that_goes_away_ends_it_while_it_waits(self):
        path = self.write(self.packet(0))
        self.follow("--packets", path)
        self.see(lambda: self.numbers() == ["0"], "the packet")
        self.process.stdout.close()
        self.assertEqual(self.process.wait(timeout=60 * SCALE), 0)

    def test_ctrl_c_again_and_again_does_not_cost_the_report(self):
        path = self.write(self.packet(0))
        self.follow(path)
        self.see(lambda: "1 packet" in self.err, "that it was read")
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.assertGreaterEqual(self.process.returncode, 0)
        self.end(self.process.returncode, None)
        self.assertIn("Verdict", self.out)

    def test_the_report_comes_at_the_end(self):
        path = self.write(self.packet(0))
        self.follow(path)
        self.see(lambda: "1 packet" in self.err, "that it was read")
        self.append(path, self.packet(1) + self.packet(2))
        self.end(0)
        self.assertIn("Holds           3 packets", self.out)

    def test_a_real_recording_is_followed(self):
        self.daemon()
        producer = self.producer("p")
        path = self.path("live")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.follow("--packets", "--type", "for_testing", path)
        consumer = self.session(fds=[fd], write_into_file=True,
                                file_write_period_ms=100)
        os.close(fd)
        producer.writer().number(25)
        self.see(lambda: len(self.numbers()) == 25, "the packets")
        consumer.stop()
        self.end(0)
        self.assertTrue(all(line["time"].endswith(")") or
                            line["time"] == "no time"
                            for line in self.lines(self.out)))


if __name__ == "__main__":
    sys.exit(tap.main())
