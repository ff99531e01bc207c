#!/usr/bin/env python3
"""What looks at every trace of every test: it misses none, and can fail."""

import contextlib
import copy
import sys
import unittest

from peers import trace_processor

from harness import agreement, imported, inspected, pb, tap
from harness.case import TEST_SOURCE
from harness.device import RelayCase
from harness.painting import Painting
from harness.trace import Trace, expand

LOSS = "traced_buf_patches_failed"


def lossy():
    """A trace's packets, one of which tells of a loss."""
    stats = pb.TracePacket(trusted_packet_sequence_id=1)
    stats.trace_stats.buffer_stats.add(patches_failed=1)
    return [stats.SerializeToString()]


@unittest.skipUnless(imported.available() and imported._wanted == "yes",
                     "no Trace Processor; deploy/install-deps peers")
class Imported(RelayCase):
    def check(self):
        """What is done when a test ends; the test is this one."""
        imported.check(self, inspected.check(inspected.noted()))

    def assert_refused(self, *words):
        with self.assertRaises(AssertionError) as refused:
            self.check()
        for word in words:
            self.assertIn(word, str(refused.exception))

    def leave(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    @contextlib.contextmanager
    def marked(self, **names):
        """As if the decorators were on this test."""
        test = getattr(type(self), self._testMethodName)
        vars(test).update(names)
        yield
        for name in names:
            del vars(test)[name]

    def test_a_trace_that_was_read(self):
        Trace(lossy())
        self.assert_refused(LOSS)

    def test_a_file_of_any_name(self):
        for name in ("t", "trace.gz", "t.pftrace.1"):
            self.leave(name, inspected.framed(lossy()))
            self.assert_refused(LOSS, self.path(name))
            self.leave(name, b"")

    def test_a_file_that_grew_behind_what_was_read_of_it(self):
        whole = pb.TracePacket(timestamp=1).SerializeToString()
        self.leave("t", inspected.framed([whole]))
        Trace.from_file(self.path("t"))
        self.leave("t", inspected.framed([whole, *lossy()]))
        self.assert_refused(LOSS)
        self.leave("t", b"")

    def test_what_a_test_causes(self):
        with self.marked(causes=(LOSS,)):
            Trace(lossy())
            self.check()
            self.assert_refused(f"finds no {LOSS}")
        with self.marked(may_cause=(LOSS,)):
            Trace(lossy())
            self.check()
            self.check()

    def test_damage(self):
        packet = inspected.framed(lossy())
        self.leave("t", packet + b"\xff\xff" + packet)
        self.assert_refused(imported.DAMAGED)
        self.leave("t", b"")

    def compressed(self):
        self.daemon()
        producer = self.producer("p")
        consumer = self.session(TEST_SOURCE, compression={"zstd": {}})
        producer.writer().write([*Painting().strokes(50)])
        consumer.stop()
        return consumer.read()

    def test_zstd(self):
        """Trace Processor passes over it in silence: when it no longer does,
        imported._unpacked() can go."""
        trace = self.compressed()
        query = "select count(*) from slice"
        ((_, rows),) = trace_processor.ask(
            inspected.framed(trace.stored), query)
        self.assertEqual(rows, [(0,)])
        self.assertEqual(trace.sql(query), [(50,)])
        # It gets each packet that is in there.
        self.assertEqual(
            imported._unpacked(inspected.framed(trace.stored)),
            inspected.framed(raw for raw, _ in expand(trace.stored)))

    def test_a_loss_inside_of_zstd(self):
        trace = self.compressed()
        plain = inspected.framed(trace.stored)
        self.leave("t", plain + inspected.framed(lossy()))
        self.assert_refused(LOSS)
        self.leave("t", b"")

    def test_agreement_can_fail(self):
        """inspect and Trace Processor agree about a trace of two machines;
        a change of anything that they are asked about is a difference."""
        self.collector()
        device = self.device("a")
        self.wait_linked()
        consumer = self.record(TEST_SOURCE)
        for n, place in enumerate((self.daemons[0].producer_path,
                                   device.socket)):
            producer = self.producer(f"p{n}", address=place)
            producer.writer().write(Painting(name=f"p{n}").strokes(20))
        self.wait_empty()
        consumer.flush(60_000)
        consumer.stop()
        data = inspected.framed(consumer.read().stored)
        report, answers = inspected.report(data), imported._ask(data)

        def differences(change=lambda report, answers: None):
            changed = copy.deepcopy(report), copy.deepcopy(answers)
            change(*changed)
            return list(agreement.differences(*changed))

        self.assertEqual(differences(), [])
        for name in agreement.WHOLE:
            def one_more(report, _, name=name):
                told = report["trace_stats"]
                told[name] = told.get(name, 0) + 1
            (said,) = differences(one_more)
            self.assertIn(name, said)
        for name in agreement.BUFFER:
            def one_more_there(report, _, name=name):
                (told,) = report["trace_stats"]["buffer_stats"]
                told[name] = told.get(name, 0) + 1
            (said,) = differences(one_more_there)
            self.assertIn(name, said)
        for change in (
                lambda _, answers: answers["stats"].append(
                    ("traced_buf_sequence_packet_loss", 0, 1, "data_loss")),
                lambda _, answers: answers["machines"].append((4711,)),
                lambda report, _: report["machines"].append(
                    {"id": 4711, "packets": 1}),
                lambda report, _: report["clocks"].update(
                    first_ns=report["clocks"]["first_ns"] + 10**10),
                lambda report, _: report["clocks"].update(
                    last_ns=report["clocks"]["last_ns"] - 10**10)):
            (said,) = differences(change)
            self.assertIn("Trace Processor", said)


if __name__ == "__main__":
    sys.exit(tap.main())
