#!/usr/bin/env python3
"""Producers on other machines that have no relay: what the trace says of their
machine and its clocks.

The other machine is a process whose boot clock is another (fault_shim)."""

import os
import signal
import subprocess
import sys
import time
import unittest

from harness import faults, pb, tap
from harness.case import Case
from harness.consumer import source
from harness.daemon import SANITIZER_LINES, environment
from harness.device import Control
from harness.inspected import inspect, report
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.producer import numbered
from harness.trace import Trace
from test_clocks import imported_offset

SECOND = 10 ** 9
# How far the other machine's boot clock is behind ours: less than a machine has
# been up when it runs its tests.
BEHIND = 100 * SECOND
SYS_STATS = "linux.sys_stats"
# A boot clock of its own, ahead of ours, without a program's knowing.
MOVE_CLOCKS = ("unshare", "--time", "--boottime", str(BEHIND // SECOND), "--")


def _moves_clocks():
    try:
        return subprocess.run([*MOVE_CLOCKS, "true"], stderr=subprocess.DEVNULL,
                              check=False).returncode == 0
    except FileNotFoundError:
        return False


MOVES_CLOCKS = _moves_clocks()


class Elsewhere(Case):
    def setUp(self):
        super().setUp()
        self.children = []

    def _end(self):
        try:
            for child, log in self.children:
                child.send_signal(signal.SIGTERM)
                self.assertEqual(child.wait(60 * SCALE), 0, self.read(log))
                for line in SANITIZER_LINES:
                    self.assertNotIn(line, self.read(log))
        finally:
            super()._end()

    def read(self, path):
        with open(path, errors="replace") as file:
            return file.read()

    def spawn(self, name, *argv, said, **env):
        log = self.path(name + ".log")
        with open(log, "wb") as file:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                     stdout=file, stderr=subprocess.STDOUT,
                                     env=environment(**env))
        self.children.append((child, log))
        self.until(lambda: said in self.read(log), f"{name} says {said}")

    def other_machine(self):
        """The environment of its processes."""
        plan = faults.Plan(self.path("plan"))
        plan.boottime_ns = -BEHIND
        return plan.env()

    def probes(self, *flags, **env):
        self.spawn("probes", os.environ["TRIBUTARY_PROBES"], *flags,
                   said="connected to", **env)

    def record(self, name="trace"):
        """With the command, as a user does: a Trace, and what was said."""
        out = self.path(name)
        done = subprocess.run(
            [os.environ["TRIBUTARY"], "record", "--connect",
             self.daemons[0].consumer_path, "--all-machines", "-t", "1s",
             "-o", out, SYS_STATS], capture_output=True, text=True,
            env=environment(), timeout=60 * SCALE, check=True)
        return Trace.from_file(out), done.stdout + done.stderr

    def machines(self):
        return self._add(Control(
            self.loop, self.daemons[0].consumer_path)).machines()

    def span(self, trace):
        """When the session was, on the collector's clock."""
        times = [c.timestamp for p in trace.of("clock_snapshot")
                 for c in p.clock_snapshot.clocks if c.clock_id == 6]
        return min(times), max(times)

    def check_machine(self, trace, name):
        """Its clocks were measured, and its packets fit in."""
        sync = trace.of("remote_clock_sync")[-1]
        self.assertNotEqual(sync.machine_id, 0)
        offset = imported_offset(sync.remote_clock_sync)
        found = next(m for m in self.machines().values()
                     if m.id == sync.machine_id)
        self.assertEqual(found.name, name)
        self.assertTrue(found.clock_measured_ns)
        self.assertLessEqual(abs(found.clock_offset_ns + BEHIND),
                             found.clock_uncertainty_ns)
        self.assertLessEqual(abs(offset + BEHIND), found.round_trip_ns)
        info = [p.system_info for p in trace.of("system_info")
                if p.machine_id == sync.machine_id]
        self.assertEqual(info[-1].machine_name, name)
        self.assertEqual(info[-1].utsname.sysname, os.uname().sysname)
        first, last = self.span(trace)
        packets = [p for p in trace.of("sys_stats")
                   if p.machine_id == sync.machine_id]
        self.assertGreater(len(packets), 0)
        for packet in packets:
            self.assertGreater(packet.timestamp - offset, first - SECOND)
            self.assertLess(packet.timestamp - offset, last + SECOND)

    def check_error(self, name):
        """`inspect` says how far off it may be."""
        _, text, _ = inspect(path=self.path("trace"), flags=())
        self.assertRegex(text.decode(), rf"{name} is (100|99)\.\d* s behind the "
                         r"collector's clock, to within [0-9.]+ (us|ms)")

    def test_probes_over_tcp(self):
        self.daemon(producer=["127.0.0.1:0"])
        self.probes("--producer-socket",
                    self.daemons[0].address("producers", "tcp"),
                    "--machine-name", "pump", **self.other_machine())
        trace, said = self.record()
        self.check_machine(trace, "pump")
        self.check_error("pump")
        self.assertNotIn("warning", said)

    @unittest.skipUnless(MOVES_CLOCKS, "no time namespace can be made here")
    def test_one_kernel_with_two_boot_clocks_is_two_machines(self):
        daemon = self.daemon(producer=["127.0.0.1:0"])
        to = daemon.address("producers", "tcp")
        for name, wrap in ("moved", MOVE_CLOCKS), ("plain", ()):
            self.spawn(name, *wrap, os.environ["TRIBUTARY_PROBES"],
                       "--producer-socket", to, "--machine-name", name,
                       said="connected to")
        trace, said = self.record()
        self.assertNotIn("warning", said)
        found = {m.name: m for m in self.machines().values()}
        for name, offset in ("moved", BEHIND), ("plain", 0):
            machine = found[name]
            self.assertLessEqual(abs(machine.clock_offset_ns - offset),
                                 machine.clock_uncertainty_ns)
            syncs = [p.remote_clock_sync
                     for p in trace.of("remote_clock_sync")
                     if p.machine_id == machine.id]
            self.assertGreater(len(syncs), 0)
            for sync in syncs:
                self.assertLessEqual(abs(imported_offset(sync) - offset),
                                     machine.round_trip_ns)

    @unittest.skipIf(OPENSSL is None, "there is no openssl command")
    def test_probes_with_a_certificate(self):
        """It is called what its certificate says, whatever it says."""
        pki = Pki(self.path("pki"))
        self.daemon(producer=["tls://127.0.0.1:0"],
                    flags=["--tls-dir", pki.collector()])
        self.probes("--producer-socket",
                    self.daemons[0].address("producers", "tls"),
                    "--tls-dir", pki.issue("pump-7", role="producer"),
                    "--machine-name", "another", **self.other_machine())
        trace, _ = self.record()
        self.check_machine(trace, "pump-7")

    def test_probes_behind_a_tunnel(self):
        daemon = self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        near = self.path("near")
        self.spawn("forward", os.environ["TRIBUTARY"], "forward", "--listen",
                   near, "--to", daemon.address("producers", "tcp"),
                   "--machine-name", "pump", said="forwarding",
                   **self.other_machine())
        self.probes("--producer-socket", near, **self.other_machine())
        trace, _ = self.record()
        self.check_machine(trace, "pump")

    def foreign(self, ahead, address=None, stamp=None):
        """Records a producer that says nothing of its machine, and whose
        clock is so far ahead: what `record` said, and the trace."""
        stamp = stamp or (lambda n, now: [numbered(n, timestamp=now)])
        producer = self.producer("sdk app", ["src"], address=address or
                                 self.daemons[0].address("producers", "tcp"))
        out = self.path("foreign")
        command = subprocess.Popen(
            [os.environ["TRIBUTARY"], "record", "--connect",
             self.daemons[0].consumer_path, "--all-machines", "-o", out,
             "src"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=environment())
        self.addCleanup(command.kill)
        producer.wait_started()
        writer = producer.writer(next(iter(producer.instances.values())))
        for chunk in range(3):
            now = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + ahead
            writer.write([*stamp(2 * chunk, now),
                          *stamp(2 * chunk + 1, now)])
        producer.sync()
        command.send_signal(signal.SIGINT)
        self.until(lambda: command.poll() is not None, "the recording ends",
                   timeout=60)
        self.assertEqual(command.returncode, 0)
        said = command.stdout.read()
        trace = Trace.from_file(out)
        self.assertEqual(len(trace.of("for_testing")), 6)
        _, text, _ = inspect(path=out, flags=())
        # Both say the same.
        wrong = "Wrong times" in said
        self.assertEqual(wrong, "but see Wrong times\n" in text.decode())
        status, _, _ = inspect(path=out, flags=("--strict",))
        self.assertEqual(status, 3 if wrong else 0)
        self.assertEqual(report(path=out)["verdict"],
                         "wrong_times" if wrong else "whole")
        if wrong:
            self.assertIn("Producers       sdk app", text.decode())
        return said, trace

    def check_foreign(self, said, trace, about, packets=6):
        self.assertRegex(said, r"Wrong times +packets of sdk app.* are about "
                         + about + ": they have the clock of another machine")
        self.assertIn("relay", said)
        found, = trace.stats().tributary_foreign_clocks
        self.assertEqual(found.producer_name, "sdk app")
        self.assertEqual(found.packets, packets)
        return found

    def test_a_foreign_producer_far_behind(self):
        self.daemon(producer=["127.0.0.1:0"])
        said, trace = self.foreign(-BEHIND)
        found = self.check_foreign(said, trace, r"10\d\.\d+ s behind")
        self.assertLessEqual(found.offset_ns, -BEHIND)
        self.assertEqual(found.machine_id, 0)

    def test_a_foreign_producer_ahead(self):
        self.daemon(producer=["127.0.0.1:0"])
        said, trace = self.foreign(5000 * SECOND)
        found = self.check_foreign(said, trace, r"(5000|4\d+)\.\d+ s ahead")
        self.assertLessEqual(found.offset_ns, 5000 * SECOND)

    def test_a_foreign_producer_behind_a_tunnel(self):
        """The forward has its machine's clocks measured."""
        daemon = self.daemon(producer=["127.0.0.1:0"])
        near = self.path("near")
        self.spawn("forward", os.environ["TRIBUTARY"], "forward", "--listen",
                   near, "--to", daemon.address("producers", "tcp"),
                   "--machine-name", "pump", said="forwarding",
                   **self.other_machine())
        self.producer("first", ["nothing"], address=near)
        self.until(lambda: any(m.clock_measured_ns for m in
                               self.machines().values()),
                   "the machine's clocks are measured")
        said, trace = self.foreign(-BEHIND, near)
        self.assertNotIn("Wrong times", said)
        self.assertEqual(len(trace.stats().tributary_foreign_clocks), 0)
        sync = trace.of("remote_clock_sync")[-1]
        self.assertLess(abs(imported_offset(sync.remote_clock_sync) + BEHIND),
                        SECOND)
        (info,) = (p.system_info for p in trace.of("system_info")
                   if p.machine_id == sync.machine_id)
        self.assertEqual(info.machine_name, "pump")

    def test_a_foreign_producer_behind_a_relay_whose_clock_nobody_reads(self):
        """The collector has no relay endpoint: another relay is no help."""
        daemon = self.daemon(producer=["127.0.0.1:0"])
        relay = self.relay(daemon.address("producers", "tcp"), machine="pump",
                           env=self.other_machine())
        self.until(lambda: relay.report()["link"].get("without_clocks"),
                   "the relay knows that nobody reads its clock")
        said, trace = self.foreign(-BEHIND, relay.producer_path)
        found = self.check_foreign(said, trace, r"10\d\.\d+ s behind")
        self.assertNotEqual(found.machine_id, 0)
        self.assertIn("--enable-relay-endpoint", said)
        self.assertNotIn("give such a machine a relay", said)

    def test_a_foreign_producer_whose_increments_begin_at_a_reading(self):
        """As Perfetto's SDK writes them: the increments are no times."""
        self.daemon(producer=["127.0.0.1:0"])

        def stamp(number, now):
            if number > 0:
                return [numbered(number, timestamp=1000, sequence_flags=2)]
            first = pb.TracePacket(timestamp=now, timestamp_clock_id=6,
                                   sequence_flags=1)
            first.trace_packet_defaults.timestamp_clock_id = 64
            first.clock_snapshot.clocks.add(clock_id=6, timestamp=now)
            first.clock_snapshot.clocks.add(
                clock_id=64, timestamp=now, is_incremental=True)
            return [first.SerializeToString(),
                    numbered(number, timestamp=1000, sequence_flags=2)]
        said, trace = self.foreign(0, stamp=stamp)
        self.assertNotIn("Wrong times", said)
        self.assertEqual(len(trace.stats().tributary_foreign_clocks), 0)
        for offset in (-BEHIND, 5000 * SECOND):
            said, trace = self.foreign(offset, stamp=stamp)
            self.check_foreign(said, trace, r"\d+\.\d+ s "
                               + ("behind" if offset < 0 else "ahead"),
                               packets=1)

    def test_nothing_is_said_of_who_has_the_collectors_clock(self):
        daemon = self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        said, _ = self.foreign(0)
        self.assertNotIn("Wrong times", said)
        # Over a UNIX socket nobody can be elsewhere, whatever he writes.
        said, trace = self.foreign(-BEHIND, daemon.producer_path)
        self.assertNotIn("Wrong times", said)
        self.assertEqual(len(trace.stats().tributary_foreign_clocks), 0)

    def test_on_the_collectors_own_clocks_it_is_the_host(self):
        self.daemon(producer=["127.0.0.1:0"])
        self.probes("--producer-socket",
                    self.daemons[0].address("producers", "tcp"))
        trace, _ = self.record()
        self.assertEqual({p.machine_id for p in trace.packets}, {0})
        self.assertGreater(len(trace.of("sys_stats")), 0)
        self.assertEqual([m.id for m in self.machines().values()], [0])


if __name__ == "__main__":
    sys.exit(tap.main())
