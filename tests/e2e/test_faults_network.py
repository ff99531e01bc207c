#!/usr/bin/env python3
"""Networks that fall silent: nobody is told, nothing comes back.  The collector
finds out by itself, and nobody else notices.

	meson test -C build faults_network
	meson test -C build --suite slow     with the time-outs as they come
"""

import ctypes
import os
import socket
import sys
import unittest

from harness import faults, netns, tap
from harness.case import TEST_SOURCE, config
from harness.device import RelayCase
from harness.imported import causes
from harness.ipc import Rejected
from harness.loop import PATIENCE, SCALE

WHY_NOT = netns.unavailable()
CLONE_NEWNET = 0x40000000
PORT, CONSUMER_PORT = 7445, 7446


def socket_of(host, address, port):
    """A TCP socket of ours that is on this host, connected."""
    libc = ctypes.CDLL(None, use_errno=True)
    ours = os.open("/proc/self/ns/net", os.O_RDONLY)
    theirs = os.open(f"/run/netns/{host.namespace}", os.O_RDONLY)
    try:
        if libc.setns(theirs, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            return socket.create_connection((address, port), 20)
        finally:
            if libc.setns(ours, CLONE_NEWNET) != 0:
                os.abort()
    finally:
        os.close(ours)
        os.close(theirs)


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Silence(RelayCase):
    """A collector on a host, and others on theirs."""

    slow = False

    def setUp(self):
        super().setUp()
        self.net = netns.Network()
        self.net.__enter__()
        self.addCleanup(self.net.close)
        self.host = self.net.host("collector")
        self.far = self.net.host("far")

    def begin(self, *, settings=""):
        plain = f"{self.host.address}:{PORT}"
        consumers = f"{self.host.address}:{CONSUMER_PORT}"
        flags = ["--allow-remote", plain, "--allow-remote", consumers]
        # The time-outs as they come, or as CI has patience for.
        limits = "" if self.slow else \
            f"limits {{ stalled_timeout_ms: {int(1500 * SCALE)} }}\n"
        return self.collector(
            limits + settings, flags, producer=[plain, self.path("p")],
            consumer=[self.path("c"), consumers], wrap=self.host.command())

    @property
    def patience(self):
        return 150 if self.slow else PATIENCE

    def wait_log(self, *words):
        def line():
            return [one for one in self.daemons[0].log().splitlines()
                    if all(word in one for word in words)]
        return self.until(line, f"a line with {words}",
                          timeout=self.patience)[0]

    @causes("traced_flushes_failed")
    def test_a_producer(self):
        """It is asked for a flush, which cannot reach it: that flush fails in
        time, and the producer is gone long before TCP gives up."""
        daemon = self.begin()
        far = self.producer("far", ["far"], address=socket_of(
            self.far, self.host.address, PORT))
        near = self.producer("near", ["near"], address=self.path("p"))
        consumer = self.consumer(self.path("c"))
        consumer.enable(config("far", "near", trace_all_machines=True,
                               data_source_stop_timeout_ms=500))
        far.wait_started()
        writer = near.writer()
        far.writer().number(20)
        writer.number(20)
        with self.neighbour(), faults.Idle(self, daemon):
            self.far.cut()
            with self.assertRaises(Rejected):
                consumer.flush(300)
            self.until(lambda: "far" not in [
                p.name for p in consumer.query().producers],
                "the collector sees that it is gone", timeout=self.patience)
            # From now on nobody waits for it.
            writer.number(20)
            consumer.flush(60_000)
            consumer.stop()
        trace = consumer.read()
        self.assertEqual(sorted(map(len, trace.numbers().values())), [20, 40])
        self.far.mend()

    def test_a_consumer_that_reads(self):
        """Its session and the buffers go with it."""
        daemon = self.begin()
        producer = self.producer("p", address=self.path("p"))
        consumer = self.consumer(socket_of(
            self.far, self.host.address, CONSUMER_PORT))
        consumer.enable(config(TEST_SOURCE, size_kb=32768,
                               trace_all_machines=True))
        writer = producer.writer()
        for _ in range(6):
            writer.number(1000, size=1000)
        with self.neighbour(), faults.Idle(self, daemon):
            consumer.pause()
            self.far.cut()
            consumer.call("ReadBuffers")
            # The question did not get there; it does when the cable is back,
            # and is gone again before the answer is.
            self.far.mend()
            self.loop.settle(0.3)
            self.far.cut()
            self.until(lambda: producer.saw("stop_data_source"),
                       "its session is over", timeout=self.patience)
        self.far.mend()


@tap.slow
class Silence_slow(Silence):
    """The same with the time-outs as they come."""

    slow = True

    def test_a_quiet_producer(self):
        """Nothing is on the way to it, so keep-alive finds it."""
        self.begin()
        self.producer("far", ["far"], address=socket_of(
            self.far, self.host.address, PORT))
        watch = self.consumer(self.path("c"))
        self.far.cut()
        self.until(lambda: not watch.query().producers,
                   "the collector sees that it is gone", timeout=150)

    def test_a_relay(self):
        """The link is cut for a while: nothing is lost, nobody waits."""
        daemon = self.begin(settings="link { grace_ms: 60000 }")
        device = self.device("far", f"{self.host.address}:{PORT}",
                             wrap=self.far.command(), memory_kb=32768)
        self.wait_linked()
        book = self.ledger([(device, 2)], rate=100_000)
        recording = self.record()
        self.wait_writing(book, 4)
        self.wait_written(book, 20)
        with self.neighbour(), faults.Idle(self, daemon, share=0.5):
            self.far.cut()
            self.wait_log("far", "cut off")
            with self.assertRaises(Rejected):
                recording.flush(300)
        self.far.mend()
        self.until(device.linked, "it is linked again", timeout=60)
        audit = self.finish(book, recording)
        self.assert_complete(audit)


if __name__ == "__main__":
    sys.exit(tap.main())
