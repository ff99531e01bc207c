#!/usr/bin/env python3
"""Cuts that are too long, sessions that end during one, collectors that are
started again: what cannot be saved is counted to the packet."""

import sys

from harness import tap
from harness.chaos import Proxy
from harness.device import RelayCase
from harness.imported import causes, may_cause
from harness.ledger import Audit
from harness.trace import Trace

RATE = 200_000
GRACE = "link given up by the collector"


class Grace(RelayCase):
    def begin(self, settings, **options):
        self.collector(settings)
        self.proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", self.daemons[0].producer_path))
        self.things.append(self.proxy)
        # Room for whatever is written until the test is as far as it wants.
        self.a = self.device("a", self.proxy.addresses[0], memory_kb=32768,
                             **options)
        self.wait_linked()
        self.book = self.ledger([(self.a, 2)], rate=RATE)
        self.recording = self.record()
        self.wait_writing(self.book, 4)
        self.wait_written(self.book, 50)

    def cut_off(self):
        self.proxy.say("refuse 600000")
        self.proxy.say("cut rst")
        before = {seq: line["written"]
                  for seq, line in self.book.book().items()}
        self.until(lambda: all(
            line["written"] > before[seq] + 50 for seq, line in
            self.book.book().items()), "more is written meanwhile")

    def producers(self):
        return len(self.recording.query().producers)

    def relay_has(self, book):
        """Whether it has taken all that was committed when it stood there:
        of one producer, commits come in their order."""
        written = {}
        for line in book.values():
            written[line["producer"]] = \
                written.get(line["producer"], 0) + line["bytes"]
        taken = {p.name: p.bytes for p in self.a.report().producers}
        # Chunks are more than their packets.
        return all(taken[name] > 1.1 * size + 8192
                   for name, size in written.items())

    # The cut may come between a chunk and its patch, which then never comes.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_a_cut_longer_than_grace(self):
        self.begin("link { grace_ms: 700 }")
        self.cut_off()
        self.until(lambda: self.producers() == 0, "grace is over")
        before = self.book.book()
        self.until(lambda: self.relay_has(before), "the relay has it")
        self.proxy.say("heal")
        self.wait_linked()
        self.until(lambda: self.producers() == 2, "they are announced again")
        # The session is still there, and goes on with new sequences.
        self.until(lambda: len(self.book.book()) == 8 and
                   self.book.writing() == 4, "new sequences are written")
        self.wait_written(self.book, 50)
        audit = self.finish(self.book, self.recording)
        self.assertEqual(len(audit.missing), 4, audit.describe())
        for seq in audit.missing:
            self.assertEqual(self.book.book()[seq]["end"], "stopped")
        # All that was written while there was still hope is counted, for the
        # sequence; what was written later, until its writer was told to stop,
        # was for nobody.
        self.assertEqual(audit.causes(), {"LINK_LOSS_GRACE"})
        for seq, numbers in audit.missing.items():
            sequence, = audit.sequences[seq]
            told = audit.told[sequence, "LINK_LOSS_GRACE"]
            # In the chunk that was being written then, the last packet may
            # have been whole: that only its writer knew.
            hoped = before[seq]["written"] - len(audit.arrived[seq]) - 1
            self.assertTrue(hoped <= told <= len(numbers),
                            f"{hoped} <= {told} <= {len(numbers)} of {seq}, "
                            f"before {before[seq]}: {audit.describe()}"
                            f"{self.a.losses()}")
        # And the same at the relay, and in `tributary machines`.
        total = sum(audit.told.values())
        _, packets = self.a.losses()[GRACE]
        self.assertEqual(packets, total)
        told = {loss.cause: loss.packets
                for loss in self.control().machines()["a"].losses}
        self.assertEqual(sum(told.values()), total)

    def test_a_cut_shorter_than_grace(self):
        self.begin("link { grace_ms: 60000 }")
        self.cut_off()
        self.assertEqual(self.producers(), 2)
        self.proxy.say("heal")
        audit = self.finish(self.book, self.recording)
        self.assert_complete(audit)
        self.assertEqual(len(audit.sequences), 4)

    def test_a_session_that_ends_in_a_cut_waits_for_the_rest(self):
        self.begin("link { end_wait_ms: 60000 }")
        self.cut_off()
        self.recording.disable()
        self.loop.settle(0.3)
        self.assertFalse(self.recording.session.ended())
        self.proxy.say("heal")
        self.recording.ended()
        audit = Audit(self.book.book(), self.recording.read())
        self.assertEqual(audit.faults, [])
        self.assert_complete(audit)

    # The same: the session ends without what the relay still has.
    @may_cause("traced_buf_trace_writer_packet_loss")
    @causes("traced_final_flush_failed", "traced_flushes_failed")
    def test_and_does_not_wait_for_ever(self):
        self.begin("link { end_wait_ms: 500 grace_ms: 60000 }")
        self.cut_off()
        self.recording.disable()
        self.recording.ended()
        trace = self.recording.read()
        audit = Audit(self.book.book(), trace)
        self.assertEqual(audit.faults, [])
        self.assertGreater(audit.lost, 0)
        # It stands in the trace that a machine was cut off.
        self.assertEqual(audit.causes(), {"LINK_LOSS_CUT_AT_END"},
                         audit.describe())
        # The device is none the worse for it.
        self.proxy.say("heal")
        self.wait_linked()
        again = self.record()
        self.until(lambda: len(self.book.book()) == 8 and
                   self.book.writing() == 4, "new ones are written")
        fresh = {s for s, line in self.book.book().items()
                 if line["end"] == "writing"}
        self.until(lambda: all(self.book.book()[seq]["written"] > 20
                               for seq in fresh), "and written to")
        self.book.finish()
        self.wait_empty()
        again.flush(60_000)
        again.stop()
        audit = Audit(self.book.book(), again.read())
        self.assertEqual(set(audit.arrived), fresh)
        self.assertEqual(set(audit.missing) & fresh, set(), audit.describe())

    def test_a_collector_that_is_started_again(self):
        self.begin("")
        daemon = self.daemons[0]
        daemon.kill()
        daemon.start()
        daemon.expected_status = 0
        self.wait_linked()
        # Its sessions are over on the device, cleanly: no reconnect.
        self.until(lambda: all(line["end"] == "stopped" for line in
                               self.book.book().values()),
                   "the old sessions' sources are stopped")
        self.recording = self.record()
        self.wait_writing(self.book, 4)
        old = {s for s, line in self.book.book().items()
               if line["end"] == "stopped"}
        self.book.finish()
        self.wait_empty()
        self.recording.flush(60_000)
        self.recording.stop()
        audit = Audit(self.book.book(), self.recording.read())
        self.assertEqual(audit.faults, [])
        self.assertEqual(set(audit.arrived) & old, set())
        self.assertEqual(set(audit.missing), old, audit.describe())
        self.assertEqual(max(line["connection"] for line in
                             self.book.book().values()), 1)

    def test_many_restarts_of_the_collector(self):
        """What the old session wanted never lands in the new one's buffer."""
        self.begin("")
        daemon = self.daemons[0]
        for _ in range(5):
            daemon.kill()
            daemon.start()
            daemon.expected_status = 0
            known = set(self.book.book())
            self.recording = self.record()
            self.wait_linked()
            self.until(lambda: len(set(self.book.book()) - known) == 4 and
                       self.book.writing() == 4, "new sequences are written")
            self.wait_written(self.book, 1)
        fresh = set(self.book.book()) - known
        audit = self.finish(self.book, self.recording)
        self.assertEqual(set(audit.arrived), fresh)
        self.assertEqual(set(audit.missing) & fresh, set(), audit.describe())

    def test_a_recording_in_a_file_beside_another(self):
        self.begin("")
        to_file = self.record_to_file(self.path("trace"))
        self.wait_writing(self.book, 8)
        for _ in range(3):
            self.proxy.say("cut rst")
            self.wait_linked()
        self.wait_written(self.book, 1)
        self.book.finish()
        self.wait_empty()
        for consumer in (to_file, self.recording):
            consumer.flush(60_000)
            consumer.stop()
        book = self.book.book()
        audits = [Audit(book, Trace.from_file(self.path("trace"))),
                  Audit(book, self.recording.read())]
        for audit in audits:
            self.assertEqual(audit.faults, [])
            self.assertEqual(len(audit.arrived), 4, {
                seq: (line["written"], len(audit.arrived.get(seq, [])))
                for seq, line in book.items()})
            for seq, numbers in audit.arrived.items():
                self.assertEqual(numbers, list(range(book[seq]["written"])))
        self.assertEqual(set(audits[0].arrived) | set(audits[1].arrived),
                         set(book))


if __name__ == "__main__":
    sys.exit(tap.main())
