#!/usr/bin/env python3
"""A collector whose connections are on threads of their own.  What it promises
with them is what it promises without: other modules run once more that way
(meson.build); here is what only threads have."""

import os
import sys

from harness import tap
from harness.chaos import Proxy
from harness.device import RelayCase

THREADS = 2


def threads(pid):
    """Nanoseconds of processor time of each of the threads, by name."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            name = file.read().strip()
        if name.startswith("io-"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                found[name] = int(file.read().split()[0])
    return found


class IoThreads(RelayCase):
    def threaded(self, **options):
        return self.collector(
            producer=["127.0.0.1:0"],
            flags=["--io-threads", str(THREADS)], **options)

    def test_without_the_setting_there_are_none(self):
        self.assertEqual(threads(self.collector().pid), {})

    def test_connections_are_spread_over_the_threads(self):
        daemon = self.threaded()
        self.until(lambda: sorted(threads(daemon.pid)) == ["io-0", "io-1"],
                   "the threads have their names")
        before = threads(daemon.pid)
        address = daemon.address("producers", "tcp")
        producers = [self.producer(f"p{n}", ["test.numbers"],
                                   address=address) for n in range(4)]
        consumer = self.session("test.numbers")
        for producer in producers:
            producer.writer().number(500)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [500] * 4)
        after = threads(daemon.pid)
        for name in before:
            self.assertGreater(after[name], before[name], name)

    def test_a_relay_that_compresses_and_is_cut_off(self):
        """Each connection begins another stream of zstd on its thread."""
        daemon = self.threaded()
        proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", daemon.address("producers", "tcp")))
        self.things.append(proxy)
        device = self.device("a", proxy.addresses[0], memory_kb=32768,
                             settings="compression_level: 3")
        self.wait_linked()
        book = self.ledger([(device, 2)], rate=400_000)
        recording = self.record()
        self.wait_writing(book, 4)
        for _ in range(3):
            before = device.report().link.reconnects
            proxy.say("cut rst")
            self.until(lambda: device.report().link.reconnects > before and
                       device.linked(), "it is linked again")
            self.assertTrue(device.report().link.compressed)
        audit = self.finish(book, recording)
        self.assert_complete(audit)
        self.assertEqual(audit.dropped, {})


if __name__ == "__main__":
    sys.exit(tap.main())
