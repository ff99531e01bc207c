#!/usr/bin/env python3
"""A relay that is told to speak Perfetto's own way; and what goes the same way
over the link."""

import sys

from harness import tap
from harness.chaos import Proxy
from harness.device import RelayCase
from harness.imported import may_cause
from harness.ledger import Audit

PACKETS = 5000


class Classic(RelayCase):
    def begin(self, **options):
        daemon = self.collector(producer=["127.0.0.1:0"])
        self.proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", daemon.address("producers", "tcp")))
        self.things.append(self.proxy)
        self.a = self.device("a", self.proxy.addresses[0],
                             memory_kb=65536,
                             settings="protocol: CLASSIC", **options)
        self.until(self.connected, "it is connected")

    def connected(self):
        return self.a.report().link.state == "classic"

    def test_everything_arrives(self):
        self.begin()
        ledger = self.ledger([(self.a, 2)], packets=PACKETS)
        consumer = self.record()
        self.wait_writing(ledger, 4)
        self.wait_written(ledger, PACKETS)
        ledger.finish()
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        audit = Audit(ledger.book(), trace)
        self.assertEqual(audit.faults, [])
        self.assert_complete(audit)
        self.assertEqual(audit.packets, 4 * PACKETS)
        machine, = set().union(*audit.machines.values())
        self.assertNotEqual(machine, 0)
        # A connection for each producer, and the relay's own.
        self.assertEqual(self.proxy.stats()["connections"], 3)
        infos = [p for p in trace.of("system_info")
                 if p.machine_id == machine]
        self.assertEqual(len(infos), 1)

    # The cut may come between a chunk and its patch.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_a_cut_ends_the_sessions_of_its_producers_but_not_them(self):
        """As Perfetto has it; what comes after the cut is whole again."""
        self.begin()
        ledger = self.ledger([(self.a, 2)], rate=100_000)
        consumer = self.record()
        self.wait_writing(ledger, 4)
        self.proxy.say("cut rst")
        self.until(lambda: len(ledger.book()) == 8 and
                   ledger.writing() == 4, "new sequences are written")
        fresh = {s for s, line in ledger.book().items()
                 if line["end"] == "writing"}
        self.wait_written_of(ledger, fresh)
        ledger.finish()
        consumer.flush(60_000)
        consumer.stop()
        audit = Audit(ledger.book(), consumer.read())
        self.assertEqual(audit.faults, [])
        self.assertEqual(set(audit.missing) & fresh, set(), audit.describe())
        self.assertEqual(max(line["connection"] for line in
                             ledger.book().values()), 1)

    def wait_written_of(self, ledger, seqs):
        self.until(lambda: all(ledger.book()[s]["written"] > 50
                               for s in seqs), "they are written")


class Sources(RelayCase):
    """A producer behind a relay changes what it offers."""

    def offered(self):
        return {s.ds_descriptor.name: s.ds_descriptor
                for s in self.asking.query().data_sources}

    def wait_offered(self, *names):
        self.until(lambda: sorted(self.offered()) == sorted(names),
                   f"{names} are offered")

    def check(self, protocol, refusal):
        daemon = self.collector("limits { max_data_sources_per_producer: 2 }",
                                producer=["127.0.0.1:0"])
        device = self.device("a", daemon.address("producers", "tcp"),
                             settings=f"protocol: {protocol}")
        self.asking = self.consumer()
        producer = self.producer("p", ["one", "two"], address=device.socket)
        self.wait_offered("one", "two")
        producer.register("three")
        self.until(lambda: refusal in device.log(), "the refusal is logged")
        self.assertIn("max_data_sources_per_producer", device.log())
        producer.register({"name": "one", "no_flush": True},
                          method="UpdateDataSource")
        self.until(lambda: self.offered()["one"].no_flush, "it is changed")
        producer.unregister("two")
        self.wait_offered("one")
        producer.register("four")
        self.wait_offered("four", "one")

    def test_changes_and_refusals_over_the_link(self):
        self.check("LINK", "does not take data source three of producer")

    def test_changes_and_refusals_in_perfettos_way(self):
        self.check("CLASSIC", "the collector refused a data source of process")


if __name__ == "__main__":
    sys.exit(tap.main())
