#!/usr/bin/env python3
"""One recording, through every transport: Chromium, the probes and numbered
packets come out the same."""

import os
import signal
import subprocess
import sys
import unittest

from harness import sshd, tap
from harness.case import Case
from harness.chromium import CHROMIUM, Browser, TrackEvents
from harness.daemon import SANITIZER_LINES, environment
from harness.device import Control
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.trace import Trace

NUMBERED = "trib.numbered"
CONFIG = f"""
duration_ms: 3000
buffers {{ size_kb: 65536 }}
data_sources {{ config {{ name: "track_event" track_event_config {{
  disabled_categories: "*"
  enabled_categories: "toplevel" enabled_categories: "cc" }} }} }}
data_sources {{ config {{ name: "linux.process_stats" process_stats_config {{
  scan_all_processes_on_start: true proc_stats_poll_ms: 200 }} }} }}
data_sources {{ config {{ name: "linux.sys_stats" sys_stats_config {{
  meminfo_period_ms: 200 stat_period_ms: 200 }} }} }}
data_sources {{ config {{ name: "{NUMBERED}" }} }}
trace_all_machines: true
"""
NUMBERS = 5000
needs_sshd = unittest.skipIf(sshd.missing() is not None, sshd.missing())


@unittest.skipIf(CHROMIUM is None, "chromium is not installed")
class Transports(TrackEvents, Case):
    def setUp(self):
        super().setUp()
        self.children = []  # (name, process), in the order they started
        self.browser = None
        self.host = None  # an sshd

    def login(self, **options):
        self.host = sshd.Sshd(self.path("sshd"), **options)
        return self.host.start(self.until)

    def _end(self):
        try:
            if self.browser is not None:
                self.browser.quit()
            for name, child in reversed(self.children):
                child.send_signal(signal.SIGTERM)
                self.assertEqual(child.wait(60 * SCALE), 0,
                                 f"{name}:\n{self.log(name)}")
                for line in SANITIZER_LINES:
                    self.assertNotIn(line, self.log(name))
        finally:
            for _, child in self.children:
                if child.poll() is None:
                    child.kill()
                    child.wait()
            super()._end()
            if self.host is not None:
                self.host.stop()

    def log(self, name):
        with open(self.path(name + ".log"), errors="replace") as file:
            return file.read()

    def spawn(self, name, *argv, **env):
        with open(self.path(name + ".log"), "wb") as log:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment(**env))
        self.children.append((name, child))
        return child

    def probes(self, *flags, **env):
        self.spawn("probes", os.environ["TRIBUTARY_PROBES"], *flags, **env)
        self.until(lambda: "connected to" in self.log("probes"),
                   "the probes are connected")

    def forward(self, *flags, **env):
        """A local socket that leads there, for those who know no TLS."""
        socket = self.path("near")
        self.spawn("forward", os.environ["TRIBUTARY"], "forward", "--listen",
                   socket, *flags, **env)
        self.until(lambda: "forwarding" in self.log("forward"),
                   "the local socket is open")
        return socket

    def record(self, *flags, **env):
        """With the command, as a user does; a Trace."""
        with open(self.path("config"), "w") as file:
            file.write(CONFIG)
        out = self.path("trace")
        command = self.spawn(
            "record", os.environ["TRIBUTARY"], "record", "-c",
            self.path("config"), "-o", out, *flags, **env)
        yield
        self.until(lambda: command.poll() is not None, "the recording ends",
                   timeout=60)
        self.children.pop()
        self.assertEqual(command.returncode, 0, self.log("record"))
        self.trace = Trace.from_file(out)

    def check(self, socket, connect, **env):
        """Records what comes through a local socket, and looks at it.

        socket: for Chromium and numbered packets; the probes run already.
        connect: flags of `tributary record`.
        """
        self.browser = Browser(self, socket)
        numbered = self.producer("numbered", [NUMBERED], address=socket)
        query = self.consumer()
        self.until(lambda: len([
            d for d in query.query().data_sources
            if d.ds_descriptor.name == "track_event"]) >= 5,
            "five processes offer track events", timeout=60)
        recording = self.record(*connect, **env)
        next(recording)
        writer = numbered.writer()
        writer.number(NUMBERS)
        for _ in recording:
            pass
        trace = self.trace
        self.assert_numbers(trace, [NUMBERS])
        self.assert_chromium(trace)
        for kind in ("process_stats", "sys_stats"):
            times = [p.timestamp for p in trace.of(kind)]
            self.assertGreater(len(times), 5, kind)
            self.assertEqual(times, sorted(times), kind)
        names = {p.cmdline[0] for packet in trace.of("process_tree")
                 for p in packet.process_tree.processes if p.cmdline}
        self.assertTrue([n for n in names if "chromium" in n])
        self.assert_clean_stats(trace.stats())

    def test_unix(self):
        daemon = self.daemon()
        self.probes("--producer-socket", daemon.producer_path)
        self.check(daemon.producer_path,
                   ["--connect", daemon.consumer_path])

    def test_tcp_on_the_loopback(self):
        daemon = self.daemon(producer=["127.0.0.1:0"], consumer=[
            self.path("c"), "127.0.0.1:0"], flags=[
            "--allow-plain-consumer", "127.0.0.1:0"])
        there = daemon.address("producers", "tcp")
        self.probes("--producer-socket", there)
        # Chromium itself connects its children to UNIX sockets only.
        socket = self.forward("--to", there)
        self.check(socket, ["--connect", daemon.address("consumers", "tcp")])

    @unittest.skipIf(OPENSSL is None, "there is no openssl command")
    def test_tls(self):
        pki = Pki(self.path("pki"))
        daemon = self.daemon(
            producer=["tls://127.0.0.1:0"],
            consumer=[self.path("c"), "tls://127.0.0.1:0"],
            flags=["--tls-dir", pki.collector()])
        device = pki.issue("device-7", role="producer")
        person = pki.issue("ann", role="admin")
        there = daemon.address("producers", "tls")
        self.probes("--producer-socket", there, "--tls-dir", device)
        socket = self.forward("--to", there, "--tls-dir", device)
        self.check(socket, [
            "--connect", daemon.address("consumers", "tls"),
            "--tls-dir", person])

    def check_ssh(self, sshd, producers, consumers, *flags):
        """Everybody comes in by ssh, to what these addresses lead to."""
        env = sshd.env()
        self.probes("--producer-socket", producers, *flags, **env)
        socket = self.forward("--to", producers, *flags, **env)
        self.check(socket, ["--connect", consumers, *flags], **env)

    @needs_sshd
    def test_ssh_to_a_socket(self):
        daemon = self.daemon()
        host = self.login()
        self.check_ssh(host, host.address(daemon.producer_path),
                       host.address(daemon.consumer_path))

    @needs_sshd
    def test_ssh_to_a_port(self):
        daemon = self.daemon(producer=["127.0.0.1:0"], consumer=[
            self.path("c"), "127.0.0.1:0"], flags=[
            "--allow-plain-consumer", "127.0.0.1:0"])
        host = self.login()
        self.check_ssh(host, host.address(daemon.address("producers", "tcp")),
                       host.address(daemon.address("consumers", "tcp")))

    @needs_sshd
    def test_ssh_to_a_program(self):
        daemon = self.daemon()
        host = self.login(settings=["AllowTcpForwarding no",
                                   "AllowStreamLocalForwarding no"],
                         env={"PERFETTO_PRODUCER_SOCK_NAME":
                              daemon.producer_path,
                              "PERFETTO_CONSUMER_SOCK_NAME":
                              daemon.consumer_path})
        # What PATH would find on a host where it is installed.
        program = f"{os.environ['TRIBUTARY']} connect"
        env = host.env()
        there = host.address()
        self.probes("--producer-socket", there, "--ssh-command",
                    program + " producer", **env)
        socket = self.forward("--to", there, "--ssh-command",
                              program + " producer", **env)
        self.check(socket, ["--connect", there, "--ssh-command",
                            program + " consumer"], **env)

    @needs_sshd
    def test_a_collector_that_dials(self):
        """Chromium says nothing of its machine: it is the probes'."""
        device = self.login()
        socket = self.path("on-device")
        with open(self.path("settings"), "w") as file:
            file.write(f'dial {{ address: "{device.address(socket)}" '
                       'machine_name: "device-7" }\n')
        daemon = self.daemon(flags=["--config", self.path("settings")],
                             env=device.env())
        self.until(lambda: os.path.exists(socket), "sshd listens there")
        self.probes("--producer-socket", socket)
        control = self._add(Control(self.loop, daemon.consumer_path))
        self.until(lambda: any(m.clock_measured_ns for m in
                               control.machines().values()),
                   "the device's clocks are measured")
        self.check(socket, ["--connect", daemon.consumer_path])
        self.assertEqual({p.machine_id for p in self.trace.of("track_event")},
                         {p.machine_id for p in self.trace.of("sys_stats")})


if __name__ == "__main__":
    sys.exit(tap.main())
