#!/usr/bin/env python3
"""Several hosts, each with a network address of its own: what a fleet sees."""

import os
import signal
import subprocess
import sys
import unittest

from harness import netns, tap
from harness.case import Case
from harness.daemon import environment
from harness.imported import causes
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.trace import Trace

WHY_NOT = netns.unavailable()
if WHY_NOT is None and OPENSSL is None:
    WHY_NOT = "there is no openssl command"

CONFIG = """
duration_ms: 2000
buffers { size_kb: 16384 }
trace_all_machines: true
data_sources { config { name: "linux.sys_stats" sys_stats_config {
  meminfo_period_ms: 100 } } }
"""
PORTS = {"producers": 7443, "consumers": 7444, "plain": 7445}


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Hosts(Case):
    def setUp(self):
        super().setUp()
        self.children = []
        self.net = netns.Network()
        self.net.__enter__()
        self.host = self.net.host("collector")
        self.pki = Pki(self.path("pki"))

    def _end(self):
        try:
            for _, child in reversed(self.children):
                if child.poll() is None:
                    child.send_signal(signal.SIGTERM)
                    child.wait(60 * SCALE)
            super()._end()
        finally:
            for _, child in self.children:
                if child.poll() is None:
                    child.kill()
                    child.wait()
            self.net.close()

    def log(self, name):
        with open(self.path(name + ".log"), errors="replace") as file:
            return file.read()

    def spawn(self, host, name, *argv, **env):
        with open(self.path(name + ".log"), "wb") as log:
            child = subprocess.Popen(
                host.command(*argv), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment(**env))
        self.children.append((name, child))
        return child

    def collector(self, *flags):
        """On its own host: TLS for all, plain TCP for producers."""
        address = self.host.address
        directory = self.pki.collector(alternatives=[
            "DNS:collector", f"IP:{address}"])
        plain = f"{address}:{PORTS['plain']}"
        return self.daemon(
            producer=[f"tls://0.0.0.0:{PORTS['producers']}", plain,
                      self.path("p")],
            consumer=[self.path("c"), f"tls://0.0.0.0:{PORTS['consumers']}"],
            flags=["--tls-dir", directory, "--allow-remote", plain, *flags],
            wrap=self.host.command())

    def there(self, port):
        return f"tls://{self.host.address}:{PORTS[port]}"

    def device(self, name, role="producer"):
        """A host with its own certificate and its probes."""
        host = self.net.host(name)
        directory = self.pki.issue(name, role=role)
        self.spawn(host, name, os.environ["TRIBUTARY_PROBES"],
                   "--producer-socket", self.there("producers"), "--tls-dir",
                   directory)
        return host

    def connected(self, name):
        self.until(lambda: "connected to" in self.log(name),
                   f"{name} is connected")

    def recording(self, host, directory, out):
        with open(self.path("config"), "w") as file:
            file.write(CONFIG)
        return self.spawn(
            host, "record", os.environ["TRIBUTARY"], "record", "--connect",
            self.there("consumers"), "--tls-dir", directory, "-c",
            self.path("config"), "-o", out)

    @staticmethod
    def machines(trace):
        """{machine id: packets of statistics}."""
        out = {}
        for packet in trace.of("sys_stats"):
            out.setdefault(packet.machine_id, []).append(packet)
        return out

    def test_devices_are_told_apart_and_recorded_from_a_third_host(self):
        daemon = self.collector()
        for name in ("device-1", "device-2"):
            self.device(name)
            self.connected(name)
        desk = self.net.host("desk")
        ann = self.pki.issue("ann", role="consumer")
        out = self.path("trace")
        record = self.recording(desk, ann, out)
        self.until(lambda: record.poll() is not None, "the recording ends",
                   timeout=60)
        self.assertEqual(record.returncode, 0, self.log("record"))
        machines = self.machines(Trace.from_file(out))
        self.assertEqual(len(machines), 2, list(machines))
        self.assertNotIn(0, machines)
        for packets in machines.values():
            self.assertGreater(len(packets), 5)
            self.assertEqual({p.trusted_uid for p in packets}, {os.getuid()})
        log = daemon.log()
        for name in ("device-1", "device-2", "ann"):
            self.assertIn(f"{name} at 10.77.0.", log)

    @causes("traced_final_flush_failed", "traced_flushes_failed")
    def test_a_cable_that_is_pulled_disturbs_nobody_else(self):
        self.collector()
        first = self.device("device-1")
        self.device("device-2")
        for name in ("device-1", "device-2"):
            self.connected(name)
        desk = self.net.host("desk")
        ann = self.pki.issue("ann", role="consumer")
        with self.neighbour():
            out = self.path("trace")
            record = self.recording(desk, ann, out)
            watch = self.consumer()
            self.until(lambda: [
                s for s in watch.query().tracing_sessions
                if s.state == "STARTED"], "the recording runs")
            first.cut()
            self.until(lambda: record.poll() is not None,
                       "the recording ends", timeout=60)
        # The one that was cut off could not answer the last flush: the
        # trace says so, and has everything of the others.
        machines = self.machines(Trace.from_file(out))
        longest = max(len(packets) for packets in machines.values())
        self.assertGreater(longest, 15)

    def test_a_plain_address_from_elsewhere_is_nobody(self):
        self.collector()
        host = self.net.host("plain")
        self.spawn(host, "plain", os.environ["TRIBUTARY_PROBES"],
                   "--producer-socket",
                   f"{self.host.address}:{PORTS['plain']}")
        self.connected("plain")
        consumer = self.session("linux.sys_stats", trace_all_machines=True)
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        for packet in trace.of("sys_stats"):
            self.assertNotEqual(packet.trusted_uid, 0)


if __name__ == "__main__":
    sys.exit(tap.main())
