#!/usr/bin/env python3
"""TraceConfig.compression and compression_type: files, ReadBuffers, clones."""

import json
import os
import random
import subprocess
import sys
import unittest

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import join_slices
from harness.loop import SCALE
from harness.trace import Trace, split_cut_file

KIB = 1024
PACKETS = 9_000  # about 1 MB: several batches

DEFLATE = "compressed_packets"
ZSTD = "zstd_compressed_packets"


def compression(kind, level=None):
    out = pb.TraceConfig.CompressionConfig()
    getattr(out, kind).SetInParent()
    if level is not None:
        out.zstd.level = level
    return {"compression": out}


OLD_DEFLATE = {"compression_type": "COMPRESSION_TYPE_DEFLATE"}
# What a config says, and the field that is used.
FORMS = (
    (OLD_DEFLATE, DEFLATE),
    (compression("deflate"), DEFLATE),
    (compression("zstd"), ZSTD),
    (compression("zstd", 1), ZSTD),
    (compression("zstd", -100), ZSTD),
    (compression("zstd", 2**31 - 1), ZSTD),
    (OLD_DEFLATE | compression("zstd"), ZSTD),
)


def packet(n, noise=0):
    """Packet n, the same in every session; noise: bytes without a pattern."""
    out = pb.TracePacket(timestamp=1000 + n)
    out.for_testing.counter = n
    out.for_testing.str = "a text that many packets share, number " + str(n)
    if noise:
        out.for_testing.str += random.Random(n).randbytes(noise // 2).hex()
    return out.SerializeToString()


def content(trace):
    """The producers' packets, without what the session added."""
    out = []
    for p in trace.of("for_testing"):
        for field in ("trusted_uid", "trusted_pid",
                      "trusted_packet_sequence_id"):
            p.ClearField(field)
        out.append(p.SerializeToString())
    return out


def kinds(trace):
    """Payloads in order, each once for a row of the same."""
    out = []
    for kind in trace.kinds():
        if not out or out[-1] != kind:
            out.append(kind)
    return out


class CompressionCase(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def into_file(self, name, **fields):
        path = self.path(name)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        consumer = self.session(fds=[fd], write_into_file=True,
                                size_kb=4096, **fields)
        os.close(fd)
        return consumer, path

    def record(self, packets, into_file, **fields):
        """One session with these packets; the trace, and its size."""
        producer = self.producer()
        path = None
        if into_file:
            consumer, path = self.into_file("file", **fields)
        else:
            consumer = self.session(size_kb=4096, **fields)
        producer.writer().write(packets)
        self.assertFalse(consumer.stop().error)
        trace = Trace.from_file(path) if path else consumer.read()
        producer.close()
        consumer.close()
        return trace, sum(map(len, trace.stored))

    def assert_same(self, packets, into_file, forms):
        plain, plain_size = self.record(packets, into_file)
        self.assertNotIn(DEFLATE, plain.stored_kinds())
        self.assertNotIn(ZSTD, plain.stored_kinds())
        for fields, field in forms:
            trace, size = self.record(packets, into_file, **fields)
            self.assertEqual(content(trace), content(plain), fields)
            self.assertEqual(kinds(trace), kinds(plain), fields)
            self.assertEqual(trace.losses(), [])
            self.assert_clean_stats(trace.stats())
            # The service's last words may be too few to become smaller.
            self.assertIn(field, trace.stored_kinds())
            self.assertNotIn("for_testing", trace.stored_kinds())
            self.assertLess(size, plain_size / 2, fields)


class SamePackets(CompressionCase):
    def test_a_file_holds_the_same_packets(self):
        self.assert_same([packet(n) for n in range(PACKETS)], True, FORMS)

    def test_readers_get_the_same_packets(self):
        self.assert_same([packet(n) for n in range(PACKETS)], False,
                         FORMS[:3:2])

    def test_a_packet_larger_than_a_batch(self):
        packets = [packet(1), packet(2, noise=900 * KIB), packet(3)]
        for into_file in (True, False):
            plain, _ = self.record(packets, into_file)
            for fields, field in FORMS[:3:2]:
                trace, _ = self.record(packets, into_file, **fields)
                self.assertEqual(content(trace), content(plain))
                self.assertIn(field, trace.stored_kinds())

    def test_noise_becomes_no_larger(self):
        # Field 9000, which nobody knows: 1000 bytes without a pattern.
        packets = [pb.TracePacket(timestamp=n).SerializeToString()
                   + b"\xc2\xb2\x04\xe8\x07" + random.Random(n).randbytes(1000)
                   for n in range(1200)]
        for into_file in (True, False):
            plain, plain_size = self.record(packets, into_file)
            for fields, _ in FORMS[:3:2]:
                trace, size = self.record(packets, into_file, **fields)
                noise = [p[:1007] for p in trace.raw if len(p) > 1000]
                self.assertEqual(noise, [p[:1007] for p in plain.raw
                                         if len(p) > 1000])
                self.assertEqual(len(noise), 1200)
                # but for the config, which names the compression
                self.assertLess(size, plain_size + 100)

    def test_a_reader_while_it_records_gets_all_of_it(self):
        producer = self.producer()
        consumer = self.session(size_kb=4096, **compression("zstd"))
        writer = producer.writer()
        raw = []
        for part in range(5):
            writer.write([packet(part * 100 + n) for n in range(100)])
            raw += consumer.read_raw()
        consumer.stop()
        raw += consumer.read_raw()
        trace = Trace(raw)
        self.assertEqual([p.for_testing.counter
                          for p in trace.of("for_testing")], list(range(500)))
        # Nothing new is nothing, not a packet with nothing in it.
        self.assertEqual(consumer.read_raw(), [])

    def test_record_counts_what_is_inside(self):
        producer = self.producer()
        text = self.path("config")
        with open(text, "w") as file:
            file.write(f"""
                buffers {{ size_kb: 4096 }}
                data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}
                compression {{ zstd {{ }} }} duration_ms: 300000""")
        trace = self.path("trace")
        record = subprocess.Popen(
            [os.environ["TRIBUTARY"], "record", "-c", text, "-o", trace,
             "--connect", self.daemons[0].address("consumers")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        producer.wait_command("start_data_source")
        producer.writer().write([packet(n) for n in range(3000)])
        record.terminate()
        self.until(lambda: record.poll() is not None, "record ends",
                   timeout=60)
        said = "".join(record.communicate())
        self.assertEqual(record.returncode, 0, said)
        self.assertIn(f"{len(Trace.from_file(trace)):,} packets", said)
        self.assertIn("(compressed ", said)
        self.assertIn("for_testing 3,000", said)

    def test_inspect_tells_the_same_of_a_file_that_is_not_compressed(self):
        for fields, _ in FORMS[:3:2]:
            trace, _ = self.record([packet(n) for n in range(3000)], True,
                                   **fields)
            plain = self.path("plain")
            with open(plain, "wb") as file:
                for raw in trace.raw:
                    file.write(pb.Trace(packet=[pb.TracePacket.FromString(
                        raw)]).SerializeToString())
            self.assertEqual(self.inspect(self.path("file")),
                             self.inspect(plain))

    def inspect(self, path):
        """All that `tributary inspect` says, but for how it is stored."""
        said = json.loads(subprocess.run(
            [os.environ["TRIBUTARY"], "inspect", "--json", path],
            capture_output=True, text=True, timeout=60).stdout)
        for part, key in ((said, "path"), (said, "compressed_packets"),
                          (said["file"], "bytes"), (said["file"], "packets")):
            del part[key]
        return said


class Limits(CompressionCase):
    def test_the_size_limit_is_never_passed(self):
        for fields, field in (*FORMS[:1], *FORMS[2:3]):
            producer = self.producer()
            limit = 256 * KIB
            consumer, path = self.into_file(
                "limited", max_file_size_bytes=limit,
                file_write_period_ms=100, **fields)
            producer.writer().write([packet(n, noise=300)
                                     for n in range(4000)])
            consumer.ended()
            producer.wait_command("stop_data_source")
            self.assertLessEqual(os.path.getsize(path), limit)
            # One packet more would have had no room beside the statistics.
            self.assertGreater(os.path.getsize(path),
                               limit - 2 * KIB - limit // 32)
            trace = Trace.from_file(path)
            self.assertEqual(trace.packets[-1].WhichOneof("data"),
                             "trace_stats")
            numbers = [p.for_testing.counter for p in trace.of("for_testing")]
            self.assertEqual(numbers, list(range(len(numbers))))
            self.assertLess(len(numbers), 4000)
            self.assertIn(field, trace.stored_kinds())
            producer.close()
            consumer.close()

    def test_a_daemon_that_is_killed_leaves_a_file_that_opens(self):
        for turn, (fields, field) in enumerate((*FORMS[:1], *FORMS[2:3])):
            sockets = {"producer": [self.path(f"kp{turn}")],
                       "consumer": [self.path(f"kc{turn}")]}
            daemon = self.daemon(**sockets)
            producer = self.producer(address=daemon.address("producers"))
            path = self.path(f"killed{turn}")
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            consumer = self.consumer(daemon.address("consumers"))
            consumer.enable(config(TEST_SOURCE, size_kb=1024,
                                   write_into_file=True,
                                   file_write_period_ms=100, **fields), [fd])
            os.close(fd)
            writer = producer.writer()
            writer.write([packet(n, noise=300) for n in range(2000)])

            def told():
                """Bytes in the file, as the service tells them."""
                return os.path.getsize(path) > 64 * KIB
            self.until(told, "something was written")
            writer.write([packet(2000 + n, noise=300) for n in range(2000)],
                         ask=False)
            daemon.kill()
            with open(path, "rb") as file:
                packets, _ = split_cut_file(file.read())
            trace = Trace(packets)
            self.assertIn(field, trace.stored_kinds())
            numbers = [p.for_testing.counter for p in trace.of("for_testing")]
            self.assertEqual(numbers, list(range(len(numbers))))
            self.assertGreater(len(numbers), 0)


class Clones(CompressionCase):
    def test_clones_are_compressed_as_their_source(self):
        for fields, field in (*FORMS[:1], *FORMS[2:3]):
            producer = self.producer()
            source = self.session(size_kb=4096, unique_session_name="source",
                                  **fields)
            producer.writer().write([packet(n) for n in range(3000)])
            copier = self.consumer()
            self.assertTrue(copier.clone(unique_session_name="source").success)
            trace = copier.read()
            self.assertEqual(len(trace.of("for_testing")), 3000)
            self.assertEqual(set(trace.stored_kinds()), {field})
            copier.close()
            source.close()
            producer.close()

    def test_a_clone_into_a_descriptor_is_compressed(self):
        for fields, field in (*FORMS[:1], *FORMS[2:3]):
            producer = self.producer()
            # The first one's file may still be written at its session's end.
            source, _ = self.into_file(f"source {field}",
                                       unique_session_name="source",
                                       file_write_period_ms=3_600_000,
                                       **fields)
            producer.writer().write([packet(n) for n in range(3000)])
            path = self.path("clone")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            copier = self.consumer()
            answer = copier.clone([fd], unique_session_name="source")
            os.close(fd)
            self.assertTrue(answer.success, answer.error)
            trace = Trace.from_file(path)
            self.assertEqual(len(trace.of("for_testing")), 3000)
            self.assertEqual(set(trace.stored_kinds()), {field})
            copier.close()
            source.close()
            producer.close()


class Others(CompressionCase):
    """The slowest level takes seconds: for who asked for it alone."""

    def slow_read(self):
        producer = self.producer()
        consumer = self.session(size_kb=8192, **compression("zstd", 19))
        producer.writer().write([packet(n, noise=200) for n in range(4000)])
        consumer.stop()
        return consumer, consumer.call("ReadBuffers")

    def test_a_slow_level_holds_nobody_up(self):
        consumer, reading = self.slow_read()
        for _ in range(3):
            self.assertTrue(self.consumer().query().tracing_service_version)
        self.assertFalse(reading.ended(), "that was no slow read")
        with self.neighbour():
            consumer.finish(reading)
        self.assertEqual(len(Trace(join_slices(reading.replies)).of(
            "for_testing")), 4000)

    def test_a_reader_that_goes_away_leaves_nothing(self):
        with self.neighbour():
            for _ in range(2):
                consumer, _ = self.slow_read()
                self.consumer().query()
                consumer.close()
        asking = self.consumer()
        self.until(lambda: not asking.query().tracing_sessions,
                   "the sessions are gone")


class Memory(CompressionCase):
    """A writer that compresses holds about 2 MiB beside its session's buffer;
    it is a thread of its own."""

    WRITERS = 12

    def anonymous(self):
        return self.daemons[0].memory("RssAnon")

    @unittest.skipIf(SCALE != 1, "sanitizers keep what is freed")
    def test_what_compressing_took_is_given_back_at_the_end(self):
        packets = [packet(n, noise=4 * KIB) for n in range(150)]
        self.record(packets, True, **compression("zstd"))
        before = self.anonymous()
        producer = self.producer()
        consumers = [self.into_file(f"file{n}", file_write_period_ms=100,
                                    **compression("zstd"))[0]
                     for n in range(self.WRITERS)]
        for instance in producer.wait_started(self.WRITERS):
            producer.writer(instance).write(packets)
        for consumer in consumers:
            self.assertFalse(consumer.stop().error)
            consumer.close()
        producer.close()
        self.until(lambda: self.anonymous() < before + 3 * KIB,
                   f"what {self.WRITERS} writers took is given back")


if __name__ == "__main__":
    sys.exit(tap.main())
