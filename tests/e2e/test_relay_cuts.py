#!/usr/bin/env python3
"""One relay, and every way in which its connection, itself or its collector
can fail for a while: nobody local notices, and nothing is lost."""

import signal
import sys

from harness import tap
from harness.chaos import Proxy
from harness.device import RelayCase
from harness.imported import may_cause
from harness.ipc import Rejected
from harness.ledger import Audit

RATE = 200_000  # bytes per second of a producer


class Cuts(RelayCase):
    def setUp(self):
        super().setUp()
        daemon = self.collector(producer=["127.0.0.1:0"])
        self.proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", daemon.address("producers", "tcp")))
        self.things.append(self.proxy)
        self.a = self.device("a", self.proxy.addresses[0], memory_kb=32768)
        self.wait_linked()

    def begin(self, config=(), **options):
        options.setdefault("rate", RATE)
        self.book = self.ledger([(self.a, 2)], **options)
        self.recording = self.record(**dict(config))
        self.wait_writing(self.book, 4)
        self.more_arrives()

    def more_arrives(self):
        """Waits until the collector has got something new."""
        def written():
            return self.recording.stats().buffer_stats[0].bytes_written
        before = written()
        self.until(lambda: written() > before, "more arrives")

    def cut(self, how):
        """A cut of this kind, and the relay gets over it."""
        before = self.a.report().link.reconnects
        self.proxy.say("cut " + how)
        self.until(lambda: self.a.report().link.reconnects > before and
                   self.a.linked(), "it is linked again")
        self.more_arrives()

    def end(self, relays=1):
        """Nothing is missing, and producers saw so many relays."""
        audit = self.finish(self.book, self.recording)
        self.assert_complete(audit)
        self.assertEqual(audit.dropped, {})
        self.assertEqual(len({line["connection"] for line in
                              self.book.book().values()
                              if line["producer"] == "ledger.0.0"}), relays)
        return audit

    def test_resets(self):
        self.begin()
        for _ in range(10):
            self.cut("rst")
        self.end()

    def test_orderly_ends_in_mid_sentence(self):
        self.begin()
        for _ in range(10):
            self.cut("close")
        self.end()

    def test_half_open_for_the_collector(self):
        """It still thinks that it has the old connection."""
        self.begin()
        for _ in range(5):
            self.cut("half-client")
        self.end()

    def test_silence(self):
        """Nobody is told: the relay finds out by itself."""
        self.begin()
        self.cut("drop")
        self.end()

    def test_half_open_for_the_relay(self):
        self.begin()
        self.cut("half-target")
        self.end()

    def test_a_stall_is_no_cut(self):
        self.begin()
        before = self.a.report().link.reconnects
        self.proxy.say("cut stall")
        self.until(lambda: self.a.report().store.memory_bytes > 300_000,
                   "data waits on the device")
        self.proxy.say("heal")
        self.more_arrives()
        self.assertEqual(self.a.report().link.reconnects, before)
        self.end()

    def test_a_connection_that_is_overtaken_by_its_successor(self):
        self.begin()
        for _ in range(5):
            self.proxy.say("reorder 2000")
            accepted = self.proxy.stats()["accepted"]
            self.proxy.say("cut rst")
            self.until(lambda: self.proxy.stats()["accepted"] > accepted,
                       "the relay tries again")
            # That one waits; the next one comes before it.
            self.proxy.say("cut half-client")
            self.until(self.a.linked, "it is linked again")
            self.more_arrives()
        self.end()

    def test_a_network_that_comes_and_goes_while_it_links(self):
        """Cuts in the middle of every part of the handshake."""
        self.begin()
        self.proxy.say("delay 8 4")
        self.proxy.say("random 11 40")
        self.until(lambda: self.proxy.stats()["cuts"] > 60, "60 cuts",
                   timeout=60)
        self.proxy.say("heal")
        self.until(self.a.linked, "it is linked again")
        self.end()

    def test_a_collector_that_stalls(self):
        self.begin()
        for _ in range(3):
            self.daemons[0].signal(signal.SIGSTOP)
            self.loop.settle(0.7)
            self.daemons[0].signal(signal.SIGCONT)
            self.more_arrives()
        self.end()

    def test_a_relay_that_stalls(self):
        self.begin(shm_kb=64)
        for _ in range(3):
            self.a.signal(signal.SIGSTOP)
            self.loop.settle(0.5)
            self.a.signal(signal.SIGCONT)
            self.more_arrives()
        self.end()

    def kill(self, while_down=lambda: None):
        self.a.kill()
        while_down()
        self.a.start()
        self.until(lambda: self.book.ready() == 2, "producers are back")
        self.wait_linked()
        self.wait_writing(self.book, 4)
        self.more_arrives()

    def test_a_killed_relay(self):
        """What stood in shared memory and in its own arrives by the next."""
        self.begin(patches=False)
        for _ in range(8):
            self.kill()
        audit = self.end(relays=9)
        self.assertEqual(len(audit.sequences), 9 * 4)

    # The relay may die between a chunk and its patch.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_a_killed_relay_and_packets_that_lack_a_patch(self):
        self.begin()
        for _ in range(8):
            self.kill()
        audit = self.finish(self.book, self.recording)
        self.assert_complete(audit)

    def test_a_relay_killed_during_a_cut(self):
        """First what it had kept, then what its successor gets."""
        self.begin(patches=False)
        for _ in range(3):
            self.proxy.say("refuse 60000")
            self.proxy.say("cut rst")
            self.until(lambda: self.a.report().store.memory_bytes > 200_000,
                       "data waits on the device")
            self.kill(lambda: self.proxy.say("heal"))
        self.end(relays=4)

    def test_a_relay_that_is_stopped_and_started(self):
        """An upgrade: its orderly end loses nothing either."""
        self.begin(patches=False)
        for _ in range(3):
            self.a.stop()
            self.a.start()
            self.wait_linked()
            self.wait_writing(self.book, 4)
            self.more_arrives()
        self.end(relays=4)

    def test_flushes_during_cuts(self):
        """Commands come through once, however often they were sent."""
        self.begin()
        for how in ("rst", "close", "half-client", "rst"):
            self.proxy.say("cut " + how)
            self.recording.flush(60_000)
        stats = self.recording.stats()
        self.assertEqual(stats.flushes_failed, 0)
        self.end()

    def test_a_flush_that_is_answered_after_a_cut_did_not_fail(self):
        """Its caller waits no longer, but nothing was lost."""
        self.begin()
        self.proxy.say("refuse 60000")
        self.proxy.say("cut rst")
        for _ in range(3):
            with self.assertRaises(Rejected):
                self.recording.flush(50)
        self.assertEqual(self.recording.stats().flushes_failed, 0)
        self.proxy.say("heal")

        def all_answered():
            stats = self.recording.stats()
            return stats.flushes_succeeded == stats.flushes_requested
        self.until(all_answered, "what was asked for in the cut is answered")
        self.assertEqual(self.recording.stats().flushes_failed, 0)
        self.end()

    def test_periodic_flushes_in_a_cut_of_some_seconds_did_not_fail(self):
        """Though each is over long before the relay can answer."""
        self.begin({"flush_period_ms": 300, "flush_timeout_ms": 100})
        self.proxy.say("refuse 60000")
        self.proxy.say("cut rst")
        self.until(lambda: self.recording.stats().flushes_requested >= 10,
                   "flushes are asked for in the cut")
        self.assertEqual(self.recording.stats().flushes_failed, 0)
        self.proxy.say("heal")
        self.more_arrives()
        self.end()
        stats = self.recording.stats()
        self.assertGreaterEqual(stats.flushes_succeeded, 10)
        self.assertEqual(stats.flushes_failed, 0)

    def test_sessions_that_begin_and_end_while_it_is_cut_off(self):
        self.begin()
        self.proxy.say("refuse 60000")
        self.proxy.say("cut rst")
        short = self.record()
        self.loop.settle(0.2)
        short.disable()
        late = self.record()
        self.proxy.say("heal")
        self.wait_linked()
        self.wait_writing(self.book, 8)
        both = {seq for seq, line in self.book.book().items()
                if line["end"] == "writing"}
        self.until(lambda: all(self.book.book()[seq]["written"] > 20
                               for seq in both), "all are written")
        self.book.finish()
        self.wait_empty()
        for consumer in (late, self.recording):
            consumer.flush(60_000)
        late.stop()
        self.recording.stop()
        book = self.book.book()
        whole = Audit(book, self.recording.read())
        other = Audit(book, late.read())
        self.assertEqual(whole.faults + other.faults, [])
        seen = set(whole.arrived) | set(other.arrived)
        self.assertEqual(set(whole.arrived) & set(other.arrived), set())
        for audit in (whole, other):
            for seq, numbers in audit.arrived.items():
                self.assertEqual(numbers, list(range(book[seq]["written"])))
        # The short one's, if it ever began there, wrote nothing that counts.
        self.assertEqual(seen, both)


if __name__ == "__main__":
    sys.exit(tap.main())
