#!/usr/bin/env python3
"""tributary inspect: what it says of traces whose truth the test knows, and of
files that are broken."""

import io
import os
import random
import sys
import zipfile

from harness import abi, tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import buffers, source
from harness.device import RelayCase
from harness.inspected import framed, inspect, report
from harness.ipc import Rejected
from harness.ledger import SOURCE

RECORDINGS = os.path.join(os.environ["SOURCE_ROOT"], "tests", "conformance",
                          "recordings")


def of_kind(found, name):
    return sum(t["packets"] for t in found["packet_types"]
               if t["name"] == name)


class Truth(Case):
    """Real sessions."""

    def setUp(self):
        super().setUp()
        self.daemon()

    def inspected(self, consumer):
        return report(framed(consumer.read_raw()))

    def test_what_was_written_is_what_is_told(self):
        producer = self.producer("p")
        consumer = self.session(unique_session_name="known",
                                duration_ms=60000)
        for count in (100, 20, 3):
            producer.writer().number(count)
        consumer.flush(60_000)
        consumer.stop()
        found = self.inspected(consumer)
        self.assertEqual(found["verdict"], "whole")
        self.assertEqual(of_kind(found, "for_testing"), 123)
        self.assertEqual(sorted(s["packets"] for s in found["sequences"]),
                         [3, 20, 100])
        self.assertEqual({(s["pid"], s["uid"], s["buffer"])
                          for s in found["sequences"]},
                         {(os.getpid(), os.getuid(), 0)})
        self.assertEqual([p["packets"] for p in found["producers"]], [123])
        self.assertEqual(found["losses"], [])
        self.assertEqual(found["gaps"], 0)
        self.assertEqual(found["session"]["name"], "known")
        self.assertEqual(found["session"]["asked_duration_ms"], 60000)
        self.assertGreater(found["duration_ns"], 0)
        self.assertEqual([(d["name"], d["wrote"])
                          for d in found["data_sources"]],
                         [(TEST_SOURCE, True)])
        self.assertEqual(found["buffers"][0]["verdict"], "whole")
        self.assertEqual(found["clocks"]["unresolved_packets"], 0)
        (machine,) = found["machines"]
        self.assertEqual((machine["id"], machine["packets"]), (0, 123))

    def test_a_trace_that_ends_between_two_packets_is_unfinished(self):
        producer = self.producer("p")
        consumer = self.session()
        producer.writer().number(10)
        consumer.stop()
        raw = consumer.read_raw()
        self.assertEqual(report(framed(raw))["verdict"], "whole")
        first = 1 + max(i for i, p in enumerate(raw)
                        if pb.TracePacket.FromString(p).HasField("trace_uuid"))
        for n in range(first, len(raw)):
            found = report(framed(raw[:n]))
            self.assertEqual((n, found["verdict"]), (n, "unfinished"))
            self.assertIsNone(found["trace_stats"])
        self.assertEqual(inspect(framed(raw[:-1]), flags=("--strict",))[0], 2)

    def test_a_ring_that_was_too_small(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64)
        producer.writer().number(3000)
        consumer.stop()
        raw = consumer.read_raw()
        found = report(framed(raw))
        kept = of_kind(found, "for_testing")
        self.assertEqual(found["verdict"], "lossy")
        self.assertLess(kept, 1000)
        self.assertEqual(found["gaps"], 1)
        self.assertEqual(found["sequences"][0]["gaps"], 1)
        buffer = found["buffers"][0]
        self.assertEqual((buffer["policy"], buffer["verdict"]),
                         ("ring", "cut"))
        self.assertIn("wrapped", buffer["sentences"][0])
        # It would have held all of the 3000, and not much more.
        self.assertGreater(buffer["enough_bytes"], 3000 * 100)
        self.assertLess(buffer["enough_bytes"], 3000 * 200)
        (loss,) = found["losses"]
        self.assertEqual((loss["unit"], loss["buffer"]), ("chunk", 0))
        self.assertEqual(loss["count"],
                         found["trace_stats"]["buffer_stats"][0]
                         ["chunks_overwritten"])
        status, out, _ = inspect(framed(raw), flags=())
        self.assertEqual(status, 0)
        self.assertIn(b"Verdict         whole but lossy: ", out)
        self.assertEqual(inspect(framed(raw), flags=("--strict",))[0], 3)

    def test_a_buffer_that_was_full(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64, policy="DISCARD")
        producer.writer().number(3000)
        consumer.stop()
        found = self.inspected(consumer)
        self.assertEqual(found["verdict"], "lossy")
        self.assertEqual(found["buffers"][0]["policy"], "discard")
        self.assertEqual(found["buffers"][0]["verdict"], "cut")
        self.assertIn("refused", found["buffers"][0]["sentences"][0])
        self.assertIn("full", found["losses"][0]["cause"])

    def test_what_ftrace_states_as_lost_is_lost(self):
        """Alone the packets of its data source say so: nothing was lost on
        the way."""
        def uint(field, value):
            return abi.varint(field << 3) + abi.varint(value)

        cpu = uint(3, 12345) + uint(8, 67)  # overrun, dropped_events
        begin = pb.TracePacket(ftrace_stats=uint(1, 1))
        end = pb.TracePacket(ftrace_stats=uint(1, 2) + abi.varint(2 << 3 | 2)
                             + abi.fragment(cpu))
        marked = pb.TracePacket(ftrace_events=uint(3, 1))  # lost_events
        for packets, told in (
                ([begin, end], [(12345, "event"), (67, "event")]),
                ([marked], [(1, "bundle")])):
            with self.subTest(told=told):
                producer = self.producer("p", ["linux.ftrace"])
                consumer = self.session("linux.ftrace")
                producer.writer().write([packet.SerializeToString()
                                         for packet in packets])
                consumer.stop()
                raw = framed(consumer.read_raw())
                producer.close()
                found = report(raw)
                self.assertEqual(found["verdict"], "lossy")
                self.assertEqual([(loss["count"], loss["unit"])
                                  for loss in found["losses"]], told)
                self.assertEqual({loss["processors"]
                                  for loss in found["losses"]}, {"CPU 0"})
                self.assertEqual(found["ftrace_troubles"], [])
                self.assertEqual(found["sequences"][0]["ftrace_lost_events"],
                                 sum(n for n, what in told
                                     if what == "event"))
                self.assertEqual(inspect(raw, flags=("--strict",))[0], 3)

    def test_a_source_that_nobody_has_wrote_nothing(self):
        producer = self.producer("p")
        consumer = self.consumer()
        consumer.enable(config(
            TEST_SOURCE, source("nobody.has.it", target_buffer=1),
            source("linux.sys_stats"), source("who.knows"),
            buffers=buffers(512, 64)))
        producer.writer().number(10)
        consumer.stop()
        raw = framed(consumer.read_raw())
        found = report(raw)
        self.assertEqual(
            {d["name"]: d["wrote"] for d in found["data_sources"]},
            {TEST_SOURCE: None, "nobody.has.it": False,
             "linux.sys_stats": False, "who.knows": None})
        self.assertEqual(found["buffers"][1]["verdict"], "empty")
        _, out, _ = inspect(raw, flags=())
        self.assertIn("nothing is in the trace of: nobody.has.it, "
                      "linux.sys_stats", out.decode())

    def test_a_flush_that_nobody_answered(self):
        producer = self.producer("silent", ["silent"])
        producer.answers_flush = False
        consumer = self.session("silent", flush_timeout_ms=100)
        producer.writer().number(5)
        with self.assertRaises(Rejected):
            consumer.flush(100)
        consumer.stop()
        raw = framed(consumer.read_raw())
        found = report(raw)
        self.assertEqual(found["verdict"], "lossy")
        self.assertGreaterEqual(found["trace_stats"]["flushes_failed"], 1)
        (slow,) = found["session"]["slow_data_sources"]
        self.assertEqual((slow["producer"], slow["data_source"]),
                         ("silent", "silent"))
        self.assertGreaterEqual(slow["slow_flushes"], 1)
        self.assertIn(b"silent of producer silent answered too late",
                      inspect(raw, flags=())[1])

    def test_a_snapshot_and_the_session_that_went_on(self):
        producer = self.producer("p")
        consumer = self.session(unique_session_name="on")
        writer = producer.writer()
        writer.number(50)
        consumer.flush(60_000)
        copier = self.consumer()
        self.assertTrue(copier.clone(unique_session_name="on").success)
        copy = self.inspected(copier)
        writer.number(50)
        consumer.stop()
        whole = self.inspected(consumer)
        self.assertEqual(of_kind(copy, "for_testing"), 50)
        self.assertEqual(of_kind(whole, "for_testing"), 100)
        for found in (copy, whole):
            self.assertEqual(found["verdict"], "whole")
        events = {e["event"] for e in copy["session"]["events"]}
        self.assertIn("clone_started", events)
        self.assertEqual(copy["session"]["cloned_buffers"], [0])

    def test_two_sessions_at_once_are_two_traces(self):
        producer = self.producer("p", ["one", "two"])
        first, second = self.session("one"), self.session("two")
        for count, instance in zip((30, 70), producer.wait_started(2)):
            producer.writer(instance).number(count)
        found = {}
        for consumer in (first, second):
            consumer.stop()
            one = self.inspected(consumer)
            self.assertEqual(one["verdict"], "whole")
            found[one["data_sources"][0]["name"]] = of_kind(one, "for_testing")
        self.assertEqual(sorted(found.values()), [30, 70])
        self.assertEqual(set(found), {"one", "two"})

    def test_state_that_a_loss_took_makes_packets_useless(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64)
        writer = producer.writer()
        writer.number(1, sequence_flags=1)
        writer.number(3000, sequence_flags=2)
        consumer.flush(60_000)
        kept = of_kind(report(framed(consumer.read_raw())), "for_testing")
        writer.number(1, sequence_flags=3)
        writer.number(10, sequence_flags=2)
        consumer.stop()
        found = self.inspected(consumer)
        self.assertEqual(of_kind(found, "for_testing"), 11)
        self.assertEqual(found["sequences"][0]["undecodable_packets"], 0)
        self.assertLess(kept, 1000)

    def test_packets_whose_state_was_overwritten_are_counted(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64)
        writer = producer.writer()
        writer.number(1, sequence_flags=1)
        writer.number(3000, sequence_flags=2)
        writer.number(1, sequence_flags=3)
        writer.number(10, sequence_flags=2)
        consumer.stop()
        raw = framed(consumer.read_raw())
        found = report(raw)
        (sequence,) = found["sequences"]
        self.assertEqual(sequence["undecodable_packets"],
                         of_kind(found, "for_testing") - 11)
        self.assertIn(b"cannot be decoded", inspect(raw, flags=())[1])

    def test_a_killed_collector_leaves_a_file_without_its_end(self):
        path = self.path("f")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        producer = self.producer("p")
        self.session(fds=[fd], write_into_file=True, file_write_period_ms=100)
        os.close(fd)
        producer.writer().number(20)
        self.until(lambda: os.path.getsize(path) > 20 * 100, "a written file")
        self.daemons[0].kill()
        self.assertEqual(inspect(path=path, flags=())[0], 2)
        self.assertIn(report(path=path)["verdict"], ("unfinished", "cut_off"))

    def test_a_file_that_reached_its_limit_is_no_unfinished_one(self):
        path = self.path("limited")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        producer = self.producer("p")
        consumer = self.session(fds=[fd], write_into_file=True,
                                max_file_size_bytes=60_000,
                                file_write_period_ms=100)
        os.close(fd)
        producer.writer().number(2000, size=100)
        consumer.ended()
        with open(path, "rb") as file:
            raw = file.read()
        found = report(raw)
        self.assertEqual(found["verdict"], "lossy")
        _, out, _ = inspect(raw, flags=())
        self.assertIn("it ends where it reached its max_file_size_bytes",
                      out.decode())

    def test_compressed_or_not_it_says_the_same(self):
        producer = self.producer("p", ["plain", "deflate", "zstd"])
        kinds = {"plain": {}, "deflate": {}, "zstd": {}}
        for name in kinds:
            path = self.path(name)
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            fields = pb.TraceConfig()
            if name == "deflate":
                fields.compression.deflate.SetInParent()
            elif name == "zstd":
                fields.compression.zstd.SetInParent()
            consumer = self.session(name, fds=[fd], write_into_file=True,
                                    compression=fields.compression if
                                    name != "plain" else None)
            os.close(fd)
            (instance,) = producer.wait_started()
            self.assertEqual(instance.config.name, name)
            for count in (300, 40):
                producer.writer(instance).number(count)
            consumer.flush(60_000)
            consumer.stop()
            self.until(lambda: not producer.started(), "it has stopped")
            kinds[name] = found = report(path=path)
            self.assertEqual(found["verdict"], "whole", found["text"])
            self.assertEqual(found["compressed_packets"] > 0, name != "plain")
        plain = kinds.pop("plain")
        for name, found in kinds.items():
            self.assertLess(found["file"]["bytes"], plain["file"]["bytes"] / 2)
            for what in ("packets", "service_packets", "gaps", "losses"):
                self.assertEqual(found[what], plain[what], (name, what))
            for what in ("sequences", "packet_types"):
                self.assertEqual(
                    sorted(x["packets"] for x in found[what]),
                    sorted(x["packets"] for x in plain[what]), (name, what))
            self.assertAlmostEqual(found["bytes"], plain["bytes"], delta=200)
            self.assertEqual(found["clocks"]["timed_packets"],
                             plain["clocks"]["timed_packets"])


class Machines(RelayCase):
    def test_two_machines_and_how_far_their_clocks_are_apart(self):
        self.collector()
        device = self.device("car-7")
        self.wait_linked(device)
        ledger = self.ledger([(device, 1)], packets=200)
        here = self.producer("here", [SOURCE])
        consumer = self.record()
        self.wait_writing(ledger, 2)
        self.wait_written(ledger, 200)
        here.writer().number(30)
        consumer.flush(60_000)
        consumer.stop()
        found = report(framed(consumer.read_raw()))
        self.assertEqual(found["verdict"], "whole", found["text"])
        machines = {m["name"] if m["id"] else "host": m
                    for m in found["machines"]}
        self.assertEqual(set(machines), {"host", "car-7"})
        self.assertEqual(machines["car-7"]["packets"], 400)
        self.assertEqual(machines["host"]["packets"], 30)
        (clock,) = found["clocks"]["machines"]
        self.assertEqual(clock["machine"], machines["car-7"]["id"])
        # It is the same clock.
        self.assertLess(abs(clock["last_offset_ns"]), 50_000_000)
        self.assertEqual(found["clocks"]["unresolved_packets"], 0)


class Broken(Case):
    """Files that are not what they should be."""

    def sample(self):
        trace = pb.Trace()
        for i in range(12):
            packet = trace.packet.add(trusted_uid=1,
                                      trusted_packet_sequence_id=2 + i % 2,
                                      timestamp=1000 + i)
            packet.for_testing.str = "x" * (i * 5)
        return trace.SerializeToString()

    def looked_at(self, data):
        """Both reports: no crash, a sentence, and nothing for a terminal."""
        status, out, err = inspect(data, flags=())
        self.assertIn(status, (0, 1, 2), err)
        self.assertEqual(err, "")
        self.assertTrue(out.startswith(b"Verdict         "), out)
        self.assertEqual([c for c in out if (c < 32 and c != 10) or
                          c >= 127], [])
        found = report(data)
        self.assertTrue(found["text"])
        return status, found

    def test_a_zip_is_no_trace(self):
        """That of `record --fleet` has its traces as they are."""
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as file:
            file.writestr("c1.pftrace", self.sample())
        status, found = self.looked_at(whole.getvalue())
        self.assertEqual(status, 1)
        self.assertIn("zip archive", found["text"])

    def test_it_may_be_cut_anywhere(self):
        data = self.sample()
        for length in range(0, len(data), 37):
            status, found = self.looked_at(data[:length])
            self.assertIn(found["verdict"], ("no_trace", "whole", "cut_off"))
            self.assertEqual(status, {"no_trace": 1, "whole": 0,
                                      "cut_off": 2}[found["verdict"]])
            tail = found["file"]["tail"]
            if found["verdict"] == "cut_off":
                self.assertEqual(tail["offset"] + tail["bytes"], length)

    def test_bits_may_be_flipped(self):
        data, chance = self.sample(), random.Random(7)
        for _ in range(25):
            broken = bytearray(data)
            broken[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            _, found = self.looked_at(bytes(broken))
            self.assertGreaterEqual(found["file"]["packets"], 10)

    def test_what_is_behind_damage_is_read(self):
        data = self.sample()
        status, found = self.looked_at(data + b"\xff" * 1000 + data)
        self.assertEqual((status, found["verdict"]), (2, "damaged"))
        self.assertEqual(found["file"]["damages"][0]["offset"], len(data))
        self.assertEqual(found["file"]["skipped_bytes"], 1000)
        self.assertEqual(found["file"]["packets_behind_damage"], 12)
        self.assertIn(f"damaged at byte {len(data)}: ", found["text"])

    def test_other_files_are_no_traces(self):
        for data in (b"", b"{\"traceEvents\": []}", b"\x1f\x8b\x08\x00" * 9,
                     b"\0" * 5000, random.Random(7).randbytes(3000)):
            status, found = self.looked_at(data)
            self.assertEqual((status, found["verdict"]), (1, "no_trace"))

    def test_names_are_not_for_the_terminal(self):
        evil = "\x1b[2J\x07evil\n\u009b31m"
        trace = pb.Trace()
        packet = trace.packet.add(trusted_packet_sequence_id=1)
        packet.trace_config.data_sources.add().config.name = evil
        packet.trace_config.unique_session_name = evil
        packet.trace_config.buffers.add().name = evil
        packet = trace.packet.add(trusted_packet_sequence_id=1)
        packet.system_info.machine_name = evil
        packet.system_info.utsname.sysname = evil
        packet = trace.packet.add(trusted_packet_sequence_id=1)
        packet.trigger.trigger_name = packet.trigger.producer_name = evil
        slow = trace.packet.add(trusted_packet_sequence_id=1).service_event
        one = slow.slow_starting_data_sources.data_source.add()
        one.producer_name = one.data_source_name = evil
        packet = trace.packet.add(trusted_packet_sequence_id=1)
        packet.trace_stats.buffer_stats.add()
        _, found = self.looked_at(trace.SerializeToString())
        self.assertEqual(found["session"]["name"], evil)
        # The path is the user's own, and is shown as carefully.
        path = self.path("\x1b[31m")
        with open(path, "wb") as file:
            file.write(trace.SerializeToString())
        self.assertNotIn(b"\x1b", inspect(path=path, flags=())[1])

    def test_a_file_and_a_pipe_say_the_same(self):
        path = self.path("f")
        with open(path, "wb") as file:
            file.write(self.sample())
        from_file, from_pipe = report(path=path), report(self.sample())
        self.assertEqual((from_file.pop("path"), from_pipe.pop("path")),
                         (path, "-"))
        self.assertEqual(from_file, from_pipe)

    def test_what_cannot_be_read_is_said(self):
        for path, words in ((self.path("none"), "No such file"),
                            (self.folder, "Is a directory")):
            status, out, err = inspect(path=path)
            self.assertEqual((status, out), (1, b""))
            self.assertIn(words, err)

    def test_traces_of_perfettos_own_service(self):
        for name in ("record", "tcp", "relay", "clone"):
            path = os.path.join(RECORDINGS, f"trace-{name}.pftrace")
            status, _, _ = inspect(path=path, flags=())
            found = report(path=path)
            self.assertEqual((status, found["verdict"]), (0, "whole"))
            self.assertEqual(of_kind(found, "sys_stats"), 16)
            self.assertEqual([(d["name"], d["wrote"])
                              for d in found["data_sources"]],
                             [("linux.sys_stats", True)])
            self.assertEqual(len(found["sequences"]), 1)
            self.assertEqual(found["losses"], [])
            self.assertEqual(found["clocks"]["unresolved_packets"], 0)
            self.assertEqual(len(found["machines"]), 1 + (name == "relay"))
            self.assertEqual(len(found["clocks"]["machines"]),
                             int(name == "relay"))


if __name__ == "__main__":
    sys.exit(tap.main())
