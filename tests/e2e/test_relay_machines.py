#!/usr/bin/env python3
"""Chromium on one device, the probes on another, through TLS, with a cut in
the middle: one trace of two machines, whole and aligned."""

import os
import subprocess
import sys
import unittest

from harness import tap
from harness.chaos import Proxy
from harness.chromium import CHROMIUM, Browser, TrackEvents
from harness.consumer import source
from harness.daemon import SANITIZER_LINES, environment
from harness.device import RelayCase
from harness.ledger import Audit
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.trace import Trace

BOOTTIME = 6


@unittest.skipIf(CHROMIUM is None, "chromium is not installed")
@unittest.skipIf(OPENSSL is None, "there is no openssl command")
class Machines(TrackEvents, RelayCase):
    def setUp(self):
        super().setUp()
        self.browser = None
        self.probes = None
        pki = Pki(self.path("pki"))
        daemon = self.collector(
            producer=["tls://127.0.0.1:0", self.path("p")],
            flags=["--tls-dir", pki.collector()])
        there = daemon.address("producers", "tls").removeprefix("tls://")
        self.proxy = Proxy(self.path("proxy.log"), ("127.0.0.1:0", there),
                           ("127.0.0.1:0", there))
        self.things.append(self.proxy)
        for name, near in zip(("device-a", "device-b"), self.proxy.addresses):
            self.device(name, f"tls://{near}", spool_kb=65536,
                        flags=["--tls-dir", pki.issue(name)],
                        settings="clock_sync_ms: 1000")
        self.wait_linked()

    def _end(self):
        try:
            if self.browser is not None:
                self.browser.quit()
            if self.probes is not None:
                self.probes.terminate()
                self.assertEqual(self.probes.wait(60 * SCALE), 0,
                                 self.probes_log())
                for line in SANITIZER_LINES:
                    self.assertNotIn(line, self.probes_log())
        finally:
            super()._end()

    def probes_log(self):
        with open(self.path("probes.log"), errors="replace") as log:
            return log.read()

    def start_probes(self, device):
        with open(self.path("probes.log"), "wb") as log:
            self.probes = subprocess.Popen(
                [os.environ["TRIBUTARY_PROBES"], "--producer-socket",
                 device.socket], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment())

    def sources(self):
        track = source("track_event")
        track.config.track_event_config.disabled_categories.append("*")
        track.config.track_event_config.enabled_categories.extend(
            ["toplevel", "cc"])
        system = source("linux.sys_stats")
        system.config.sys_stats_config.meminfo_period_ms = 200
        system.config.sys_stats_config.stat_period_ms = 200
        processes = source("linux.process_stats")
        processes.config.process_stats_config.scan_all_processes_on_start = \
            True
        processes.config.process_stats_config.proc_stats_poll_ms = 200
        return track, system, processes

    def offered(self, consumer, name):
        return len([d for d in consumer.query().data_sources
                    if d.ds_descriptor.name == name])

    def test_one_trace_of_two_machines_with_a_cut_in_the_middle(self):
        a, b = self.devices
        self.start_probes(b)
        self.browser = Browser(self, a.socket)
        query = self.consumer()
        self.until(lambda: self.offered(query, "track_event") >= 5 and
                   self.offered(query, "linux.sys_stats"),
                   "all are seen", timeout=60)
        ledger = self.ledger([(a, 1), (b, 1)], rate=50_000)
        recording = self.record_to_file(self.path("trace"), "test.ledger",
                                        *self.sources(), size_kb=65536)
        self.wait_writing(ledger, 4)
        for _ in range(2):
            self.loop.settle(0.7)
            self.proxy.say("refuse 600")
            self.proxy.say("cut rst")
            self.until(lambda: all(d.linked() for d in self.devices),
                       "both are linked again")
        self.loop.settle(1.5)
        ledger.finish()
        self.wait_empty()
        recording.flush(60_000)
        recording.stop()
        trace = Trace.from_file(self.path("trace"))

        audit = Audit(ledger.book(), trace)
        self.assertEqual(audit.faults, [])
        self.assert_complete(audit)
        self.assertEqual(trace.losses(), [])
        self.assert_chromium(trace)
        self.assert_clean_stats(trace.stats())
        machines = {seq: ids.copy().pop()
                    for seq, ids in audit.machines.items()}
        by_device = [machines[s] for s, line in sorted(ledger.book().items())
                     if line["connection"] == 1]
        self.assertEqual(len(set(by_device)), 2)
        self.assertEqual({p.machine_id for p in trace.of("track_event")} |
                         {p.machine_id for p in trace.of("sys_stats")},
                         set(by_device))
        self.assertTrue({p.machine_id for p in trace.of("track_event")}
                        .isdisjoint(p.machine_id
                                    for p in trace.of("sys_stats")))
        for machine in set(by_device):
            self.assert_aligned(trace, machine)
        infos = {p.machine_id: p.system_info for p in trace.of("system_info")}
        for machine in {0, *by_device}:
            self.assertIn(machine, infos)

    def assert_aligned(self, trace, machine):
        """It is the same clock as the collector's, so what was measured has to
        say: no difference, within the round trip."""
        syncs = [p.remote_clock_sync for p in trace.of("remote_clock_sync")
                 if p.machine_id == machine]
        # From before the cuts, and measured again behind them.
        self.assertGreaterEqual(len(syncs), 2)
        for sync in syncs:
            pairs = [(self.reading(pair.client_clocks),
                      self.reading(pair.host_clocks))
                     for pair in sync.synced_clocks]
            self.assertGreaterEqual(len(pairs), 2)
            clients = [client for client, _ in pairs]
            hosts = [host for _, host in pairs]
            offset = sum(clients) / len(pairs) - sum(hosts) / len(pairs)
            trip = max(clients) - min(clients) + max(hosts) - min(hosts)
            self.assertLessEqual(abs(offset), max(trip, 50_000),
                                 f"{pairs}")

    @staticmethod
    def reading(snapshot):
        return next(clock.timestamp for clock in snapshot.clocks
                    if clock.clock_id == BOOTTIME)


if __name__ == "__main__":
    sys.exit(tap.main())
