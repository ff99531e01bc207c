#!/usr/bin/env python3
"""Who is slow, slows himself: a file that does not keep up fills its device's
spool, a producer that floods delays no other."""

import os
import sys

from harness import tap
from harness.chaos import Proxy
from harness.consumer import config, source
from harness.device import RelayCase
from harness.ledger import SOURCE, Audit
from harness.trace import Trace

MIB = 1 << 20


class Pipe:
    """A file sink that takes only what we read."""

    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self.data = bytearray()

    def drain(self):
        try:
            while part := os.read(self.read_end, 1 << 20):
                self.data += part
        except BlockingIOError:
            pass
        return False

    def stop(self):
        os.close(self.read_end)


class Lossless(RelayCase):
    def record_into(self, fd, machine, *names, size_kb=2048):
        consumer = self.consumer()
        consumer.enable(config(
            *[source(name, machine_name_filter=[machine]) for name in names],
            size_kb=size_kb, trace_all_machines=True, write_into_file=True,
            file_write_period_ms=100), fds=[fd])
        return consumer

    def test_a_slow_file_fills_the_spool_of_its_device_alone(self):
        self.collector("link { window_kb: 256 }")
        a = self.device("a", spool_kb=65536)
        b = self.device("b")
        self.wait_linked()
        pipe = Pipe()
        self.things.append(pipe)
        slow = self.record_into(pipe.write_end, "a", SOURCE)
        os.close(pipe.write_end)
        quick = self.record("test.numbers")
        flood = self.ledger([(a, 2)], rate=3 * MIB)
        quiet = self.producer("quiet", address=b.socket)
        self.wait_writing(flood, 4)
        writer = quiet.writer()
        self.until(lambda: a.report().store.spool_bytes > 6 * MIB,
                   "its spool fills", timeout=60)
        # The other device does not feel it: commits and flushes go through.
        for _ in range(10):
            writer.number(20)
            quick.flush(60_000)
        self.assertEqual(quick.stats().flushes_failed, 0)
        self.assertGreater(a.report().store.spool_bytes, 4 * MIB)
        quick.stop()
        self.assert_numbers(quick.read(), [200])
        # Once somebody reads, all of it comes.
        flood.say("finish")
        self.until(lambda: pipe.drain() or a.empty(), "the rest comes",
                   timeout=90)
        slow.disable()
        self.until(lambda: pipe.drain() or slow.session.ended(),
                   "the end", timeout=60)
        pipe.drain()
        audit = Audit(flood.book(), Trace.from_bytes(bytes(pipe.data)))
        self.assertEqual(audit.faults, [])
        self.assert_complete(audit)
        self.assertEqual(audit.dropped, {})

    def test_a_flood_does_not_delay_its_quiet_neighbour(self):
        """On the same link, which is slow: what the quiet one writes passes
        what the flood has piled up."""
        self.collector("link { window_kb: 256 }")
        proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", self.daemons[0].producer_path))
        self.things.append(proxy)
        a = self.device("a", proxy.addresses[0], memory_kb=32768)
        self.wait_linked()
        recording = self.record(SOURCE)
        flood = self.ledger([(a, 1)], rate=4 * MIB)
        quiet = self.producer("quiet", address=a.socket)
        other = self.record("test.numbers")
        self.wait_writing(flood, 2)
        writer = quiet.writer()
        proxy.say("rate 600000 up")
        self.until(lambda: a.report().store.memory_bytes > 6 * MIB,
                   "the flood piles up", timeout=60)
        flood.finish()
        piled = a.report().store.memory_bytes
        for _ in range(3):
            writer.number(5)
            other.flush(60_000)
        # In order, not in time: what was piled up before, and is there yet
        # when the quiet one's flushes have come back, has been passed.
        waiting = a.report().store.memory_bytes
        self.assertGreater(waiting, piled // 2, f"of {piled} bytes")
        self.assertEqual(other.stats().flushes_failed, 0)
        other.stop()
        self.assert_numbers(other.read(), [15])
        proxy.say("rate 0")
        self.wait_empty(a, timeout=60)
        recording.flush(60_000)
        recording.stop()
        audit = Audit(flood.book(), recording.read())
        self.assertEqual(audit.faults, [])
        self.assert_complete(audit)


if __name__ == "__main__":
    sys.exit(tap.main())
