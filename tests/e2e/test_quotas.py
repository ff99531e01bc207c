#!/usr/bin/env python3
"""Quotas: who takes more than his is held, or loses what is over it, counted;
nobody else notices."""

import os
import subprocess
import sys
import time

from harness import pb, tap
from harness.daemon import environment
from harness.device import Control, RelayCase
from harness.imported import causes, may_cause
from harness.ledger import SOURCE, Audit

MIB = 1 << 20
QUIET = "test.numbers"
QUIET_VALUE = 777


class Quotas(RelayCase):
    def machine(self, name):
        if not hasattr(self, "asked"):
            self.asked = self._add(Control(
                self.loop, self.daemons[0].address("consumers")))
        found = self.asked.machines()
        return next(m for m in found.values() if m.id == 0) \
            if name == "host" else found[name]

    def tributary(self, *words):
        return subprocess.run(
            [os.environ["TRIBUTARY"], words[0], "--connect",
             self.daemons[0].consumer_path, *words[1:]], env=environment(),
            capture_output=True, text=True, timeout=60).stdout

    def numbers_of(self, trace, machine):
        """Of the one sequence of this machine."""
        wanted = self.machine(machine).id
        return [p.for_testing.counter for p in trace.packets
                if p.machine_id == wanted
                and p.WhichOneof("data") == "for_testing"]

    # ---- a share of the buffer ----

    def flood_beside_a_quiet_one(self, settings):
        """What a small ring keeps of 200 packets of the quiet one."""
        self.collector(settings)
        a, b = self.device("a", memory_kb=8192), self.device("b")
        self.wait_linked()
        recording = self.record(SOURCE, QUIET, size_kb=512)
        quiet = self.producer("quiet", address=b.socket)
        # The ledger's sequences have smaller numbers.
        quiet.writer(writer_id=QUIET_VALUE).number(200)
        recording.flush()
        flood = self.ledger([(a, 2)], rate=8 * MIB)
        self.wait_writing(flood, 4)
        # Some times as much as there is room for.
        self.wait_written(flood, 5000)
        flood.finish()
        self.wait_empty(a)
        recording.flush()
        recording.stop()
        trace = recording.read()
        audit = Audit({**flood.book(), QUIET_VALUE: dict(
            written=200, unsure=[], within=0)}, trace)
        self.assertEqual(audit.faults, [])
        self.assertGreater(audit.lost, 5000)
        self.assertEqual(audit.gaps_without_mark(), [])
        return self.numbers_of(trace, "b")

    # The flood may overwrite a chunk before its patch comes.
    @may_cause("traced_buf_patches_failed")
    def test_a_flood_leaves_a_quiet_machine_its_share(self):
        self.assertEqual(self.flood_beside_a_quiet_one(""),
                         list(range(200)))

    @may_cause("traced_buf_patches_failed")
    def test_without_a_share_the_flood_takes_all(self):
        self.assertEqual(self.flood_beside_a_quiet_one(
            "quota { guaranteed_buffer_percent: 0 }"), [])

    # ---- rates ----

    @causes("traced_buf_trace_writer_packet_loss",
            "traced_final_flush_failed",
            "traced_flushes_failed")
    def test_a_rate_fills_the_spool_of_its_machine_alone(self):
        self.collector("link { window_kb: 256 } quota { machine: 'a' "
                       "each_machine { kb_per_s: 300 burst_kb: 64 } }")
        a = self.device("a", spool_kb=65536)
        b = self.device("b")
        self.wait_linked()
        held = self.record(SOURCE, flush_timeout_ms=500,
                           data_source_stop_timeout_ms=500)
        quick = self.record(QUIET)
        began = time.monotonic()
        flood = self.ledger([(a, 2)], rate=4 * MIB)
        quiet = self.producer("quiet", address=b.socket)
        writer = quiet.writer()
        self.wait_writing(flood, 4)
        self.until(lambda: a.report().store.spool_bytes > 2 * MIB,
                   "its spool fills", timeout=60)
        for _ in range(5):
            writer.number(20)
            quick.flush(60_000)
        self.assertEqual(quick.stats().flushes_failed, 0)
        taken = held.stats().buffer_stats[0].bytes_written
        # Its rate, what it may have at once, and a chunk or two.
        most = (64 + 300 * (time.monotonic() - began) + 64) * 1024
        self.assertLess(taken, most)
        self.assertGreater(taken, 64 * 1024)
        quota = self.machine("a").quota
        self.assertEqual(quota.bytes_per_second, 300 * 1024)
        self.assertGreater(quota.held_times, 0)
        self.assertFalse(self.machine("b").HasField("quota"))
        self.assertIn("held back", self.tributary("machines", "--long", "a"))
        quick.stop()
        self.assert_numbers(quick.read(), [100])
        # The end does not wait for it, and says what it does without.
        held.stop()
        audit = Audit(flood.book(), held.read())
        self.assertEqual(audit.faults, [])
        self.assertEqual(audit.causes(), {"LINK_LOSS_QUOTA"})
        self.assertEqual(self.machine("a").losses[0].times, 1)

    @causes("traced_buf_patches_failed")
    def test_what_is_dropped_is_accounted_for_to_the_packet(self):
        self.collector("quota { machine: 'a' over: DROP "
                       "each_machine { kb_per_s: 400 burst_kb: 128 } }")
        a, b = self.device("a", memory_kb=16384), self.device("b")
        self.wait_linked()
        recording = self.record(SOURCE)
        flood = self.ledger([(a, 2), (b, 1)], rate=MIB)
        self.wait_writing(flood, 6)
        self.until(lambda: self.machine("a").quota.dropped_packets > 3000,
                   "some is dropped", timeout=60)
        flood.say("rate 60000")
        kept = recording.stats().buffer_stats[0].chunks_written
        self.until(lambda: recording.stats().buffer_stats[0].chunks_written
                   > kept + 100, "some comes behind it", timeout=60)
        flood.finish()
        self.wait_empty(a, b)
        recording.flush(60_000)
        recording.stop()
        audit = Audit(flood.book(), recording.read())
        self.assertEqual(audit.faults, [])
        self.assertEqual(audit.unaccounted(), [], audit.describe())
        self.assertEqual(audit.gaps_without_mark(), [])
        self.assertEqual(audit.causes(), {"LINK_LOSS_QUOTA"})
        machine = self.machine("a")
        self.assertEqual(machine.losses[0].packets,
                         machine.quota.dropped_packets)
        self.assertIn("over its quota", self.tributary("machines", "--long", "a"))
        lost = self.machine("b").losses
        self.assertEqual(len(lost), 0)

    def test_a_local_producer_is_held_and_loses_nothing(self):
        self.collector("quota { machine: 'host' "
                       "each_producer { kb_per_s: 200 burst_kb: 16 } }")
        producer = self.producer()
        other = self.producer("other", sources=("other",))
        consumer = self.session(QUIET)
        writer = producer.writer()
        writer.number(1000, size=100, ask=False)
        self.until(lambda: self.machine("host").quota.held_times > 0,
                   "it is held")
        other.sync()
        # What it says comes behind its data.
        producer.sync()
        self.assertGreater(self.machine("host").quota.held_ms, 100)
        consumer.flush(60_000)
        self.assertEqual(consumer.stats().flushes_failed, 0)
        consumer.stop()
        self.assert_numbers(consumer.read(), [1000])

    # ---- numbers ----

    def test_numbers_of_a_machine(self):
        self.collector("quota { machine: 'a' each_machine { max_producers: 1 "
                       "max_data_sources: 2 } } "
                       "quota { machine: 'host' each_producer { "
                       "max_data_sources: 1 } each_machine { max_sequences: "
                       "2 } }")
        a, b = self.device("a"), self.device("b")
        self.wait_linked()
        recording = self.record()
        flood = self.ledger([(a, 2), (b, 1)], rate=100000)
        self.wait_writing(flood, 4)
        self.until(lambda: self.machine("a").quota.refused_producers > 0,
                   "one is refused")
        self.assertIn("quota.each_machine.max_producers",
                      self.daemons[0].log())
        self.assertEqual(self.machine("b").producers, 1)
        flood.finish()
        recording.stop()
        # A local one is told in words.
        producer = self.producer()
        said = producer.invoke(
            "RegisterDataSource", pb.RegisterDataSourceRequest(
                data_source_descriptor=pb.DataSourceDescriptor(name="more")),
            pb.RegisterDataSourceResponse)
        self.assertIn("quota.each_producer.max_data_sources", said.error)
        consumer = self.session(QUIET)
        for _ in range(4):
            producer.writer().number(10)
        consumer.stop()
        self.assertEqual(
            sorted(map(len, consumer.read().numbers().values())), [10, 10])
        quota = self.machine("host").quota
        self.assertEqual(quota.dropped_packets, 20)
        self.assertGreater(quota.refused_sequences, 0)


if __name__ == "__main__":
    sys.exit(tap.main())
