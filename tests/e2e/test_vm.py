#!/usr/bin/env python3
"""A second machine for real: an emulated one with a kernel and a boot clock of
its own (harness/vm.py).

Whether times are right is asked of Trace Processor: the machine writes an event
when it is told to, this one an event before it told and one after it was
answered, and in the trace the first lies between the other two, but for what
the collector says the clocks may be off.
"""

import functools
import itertools
import json
import os
import subprocess
import sys
import time
import unittest

from harness import pb, tap, vm
from harness.case import Case
from harness.certs import Authority
from harness.consumer import config, source
from harness.device import Control
from harness.trace import Trace
from test_clocks import find

SECOND = 10 ** 9
DAY = 86400
REALTIME = 1
PERIOD_MS = 20
JUMP_MB = 40
PROGRAMS = ("TRIBUTARYD", "TRIBUTARY", "TRIBUTARY_PROBES", "TRIBUTARY_RELAY",
            "TRIBUTARY_LOAD", "MARKER")
MARKS = "test.marks"
SOCKET = "/run/producers"
NAME = "robot-7"
WHY_NOT = vm.unavailable()
patient = {"timeout": vm.PATIENCE}


@functools.cache
def machine():
    """One boot for all tests of this file."""
    found = vm.Machine([os.environ[name] for name in PROGRAMS],
                       perfetto=vm.has_perfetto(), new_disk=64)
    print(f"# booted in {found.boot_seconds:.1f} s")
    return found


def load_kernel_tls(machine):
    for module in ("gcm", "ctr", "ghash_generic", "tls"):
        machine.module(module)


def load_over_tls(machine, duration):
    """A producer there writes to a collector there; each packet is in the
    trace.  MB in all; seconds of processor per MB, of both ends."""
    said = json.loads(machine.run(
        "cd /tmp; rm -f t l; tributary-load --daemon /bin/tributaryd "
        "--connect tls --producers 2 --rate max --quiet "
        f"--duration {duration} --session t --ledger l 2>/dev/null"))
    verdict = json.loads(machine.run(
        "tributary-load verify /tmp/t --ledger /tmp/l"))
    assert verdict["present"] == said["packets"]["total"] > 0, verdict
    size = said["bytes"]["total"] / 1e6
    return size, *(said[end]["load_cpu_s"] / size
                   for end in ("generator", "collector"))


def event(name, timestamp):
    """An encoded TracePacket: an instant of this name."""
    packet = pb.TracePacket(timestamp=timestamp)
    packet.track_event.track_uuid = 1
    packet.track_event.name = name
    packet.track_event.type = pb.TrackEvent.TYPE_INSTANT
    return packet.SerializeToString()


class VmCase(Case):
    """The collector is here; programs of the machine, started through
    there(), end with the test."""

    machine = staticmethod(machine)

    def setUp(self):
        super().setUp()
        self.vm = None
        self.pids = []  # there, and the statuses that they may end with
        self.vm = self.machine()
        if self.vm.qemu is None:  # a test halted it, and failed
            self.vm.boot()
        self.vm.run("rm -rf /tmp/* /run/* /disk/*")

    def _end(self):
        try:
            if self.vm:
                self.vm.end(*reversed(self.pids))
        finally:
            super()._end()

    def _show_logs(self):
        super()._show_logs()
        if self.vm:
            print(self.vm.run("cd /tmp; tail -n 40 *.log; dmesg | tail -n 5"),
                  file=sys.stderr)

    def there(self, *argv, said=None, **env):
        """Starts a program, and waits until its log has a text."""
        pid = self.vm.start(*argv, **env)
        self.pids.append(pid)
        name = os.path.basename(argv[0])

        def has_said():
            self.vm.run(f"kill -0 {pid}")
            return said in self.vm.log(name)
        if said is not None:
            self.until(has_said, f"{name} says {said}", **patient)

    def perfettos_probes(self):
        self.there(f"{vm.PERFETTO}/run", "traced_probes",
                   PERFETTO_PRODUCER_SOCK_NAME=SOCKET)

    def over_tls(self, role, settings=""):
        """A collector that asks for certificates; the machine has one."""
        self.certificate = Authority(
            self.path("ca"), "--name", "collector").issue(NAME, role)
        with open(self.path("settings"), "w") as file:
            file.write(settings)
        self.daemon(producer=[self.path("p"), f"tls://{self.vm.collector}"],
                    flags=["--enable-relay-endpoint", "--tls-dir",
                           self.path("ca"), "--config",
                           self.path("settings")])
        self.put_certificate()

    def put_certificate(self):
        self.vm.put_folder(self.certificate, "/tmp/tls")

    def relay(self, *flags, to="tls://" + vm.COLLECTOR):
        if to.startswith("tls:"):
            flags = (*flags, "--tls-dir", "/tmp/tls")
        self.there("tributary-relay", "--to", to,
                   "--producer-socket", SOCKET,
                   "--state-dir", "/run/relay", *flags, said="linked to")

    def fetch(self, path):
        """A file of the machine; its path here."""
        copy = self.path(os.path.basename(path))
        with open(copy, "wb") as file:
            file.write(self.vm.read(path))
        return copy

    def marker(self, address=SOCKET):
        self.pids.append(self.vm.attach("marker", address))

    def state(self):
        """MachineState of the machine; None: unknown."""
        return self.control.machines().get(NAME)

    def wait_measured(self, after=0, within=SECOND):
        """after: an instant of our wall clock.  within: nanoseconds."""
        def measured():
            state = self.state()
            return state and state.clock_measured_ns > after and \
                state.clock_uncertainty_ns < within and state
        return self.until(measured, "its clocks are measured", **patient)

    def wait_in_file(self, condition, what):
        """condition: of the trace as it is so far."""
        self.until(lambda: condition(Trace.so_far(self.path("trace"))), what,
                   **patient)

    def wait_offered(self, name):
        """By the machine, not by us."""
        self.until(lambda: any(
            d.ds_descriptor.name == name and d.producer_id != self.here_id
            for d in self.query.query().data_sources),
            f"the machine offers {name}", **patient)

    def begin(self, *sources):
        """Records; our own events go into the same trace."""
        self.control = self._add(Control(
            self.loop, self.daemons[0].consumer_path))
        self.query = self.consumer(self.daemons[0].consumer_path)
        self.here = self.producer("here", [MARKS])
        self.here_id = self.query.query().data_sources[0].producer_id
        self.before = self.wait_measured()
        for name in sources or [MARKS]:
            self.wait_offered(name if isinstance(name, str)
                              else name.config.name)
        self.recording = self.consumer(self.daemons[0].consumer_path)
        events = self.recording.observe(
            pb.ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED)
        self.file = os.open(self.path("trace"), os.O_CREAT | os.O_RDWR, 0o600)
        self.addCleanup(os.close, self.file)
        self.recording.enable(config(
            MARKS, *(s for s in sources if s != MARKS), size_kb=16384,
            trace_all_machines=True, write_into_file=True,
            file_write_period_ms=100, flush_period_ms=500),
            fds=[self.file])
        self.here.wait_started()
        self.until(lambda: any(e.all_data_sources_started for e in events),
                   "all data sources have started", **patient)
        self.events = self.here.writer()
        self.bounds = {}
        # The most that a time may be off; a better measurement that follows
        # says nothing of an event before it.
        self.stated = self.before.clock_uncertainty_ns

    def finish(self):
        """The trace; the most that times may be off, in nanoseconds."""
        self.recording.flush(60_000)
        self.recording.stop()
        trace = Trace.from_file(self.path("trace"))
        off = max(self.stated, self.state().clock_uncertainty_ns)
        self.assertLess(off, SECOND)
        return trace, off

    def bracket(self, name, act):
        """Does it, with an event of ours before and one after."""
        began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        value = act()
        ended = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.events.write([event(f"before {name}", began),
                           event(f"after {name}", ended)])
        self.bounds[name] = (began, ended)
        return value

    def mark(self, name):
        """An event of this name there, as soon as its instance runs."""
        def written():
            before, there, after = self.vm.mark(name)
            return there and (before, there, after)
        self.stated = max(self.stated, self.state().clock_uncertainty_ns)
        before, there, after = self.until(written, "the marker runs",
                                          **patient)
        self.events.write([event(f"before {name}", before),
                           event(f"after {name}", after)])
        self.bounds[name] = (before, after)
        return there

    def check_marks(self, trace, off):
        """All events of the machine are between ours."""
        rows = trace.sql(
            "select m.name, m.ts - b.ts, a.ts - m.ts from slice m "
            "join slice b on b.name = 'before ' || m.name "
            "join slice a on a.name = 'after ' || m.name")
        self.assertEqual({row[0] for row in rows}, set(self.bounds))
        for name, after, before in rows:
            self.assertGreaterEqual(after, -off, name)
            self.assertGreaterEqual(before, -off, name)
        window = min(after - before for before, after in self.bounds.values())
        print(f"# {len(rows)} events, between others of ours "
              f"{window / 1e6:.2f} ms apart; times are said to be off by up "
              f"to {off / 1e6:.2f} ms")

    def finish_marks(self):
        trace, off = self.finish()
        self.check_machine(trace)
        self.check_marks(trace, off)
        return trace

    def ten_marks(self, address=SOCKET):
        """Events there are between events here."""
        self.marker(address)
        self.begin()
        for n in range(10):
            self.mark(f"mark {n}")
        self.finish_marks()

    def check_machine(self, trace):
        """It is another, by its name, with another boot clock."""
        self.assertEqual(trace.losses(), [])
        name, = {p.system_info.machine_name for p in trace.of("system_info")
                 if p.machine_id}
        self.assertEqual(name, NAME)
        self.assertGreater(abs(self.state().clock_offset_ns), SECOND)


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Times(VmCase):
    def test_behind_a_relay_over_tls(self):
        self.over_tls("relay")
        self.relay()
        self.ten_marks()

    def test_a_producer_without_a_relay(self):
        self.daemon(producer=[self.path("p"), self.vm.collector])
        self.vm.run(f"hostname {NAME}")
        self.ten_marks(vm.COLLECTOR)

    def test_clocks_that_are_set_meanwhile(self):
        """The wall clock jumps by a day and back; times stay."""
        self.over_tls("relay")
        self.relay()
        self.marker()
        self.begin()
        self.mark("as it was")
        now = int(self.vm.run("date +%s"))
        self.set_wall_clock(now + DAY, "a day later")
        self.set_wall_clock(now, "back again")
        self.finish_marks()

    def set_wall_clock(self, seconds, name):
        """Of the machine; events before and after the trace has it."""
        self.vm.run(f"date -s @{seconds}")
        self.mark(name)

        def walls(trace):
            return [find(snapshot.client_clocks, REALTIME) // SECOND
                    for packet in trace.of("remote_clock_sync")
                    for snapshot in packet.remote_clock_sync.synced_clocks]
        self.wait_in_file(
            lambda trace: any(0 <= wall - seconds < DAY // 2
                              for wall in walls(trace)[-1:]),
            "the trace has the machine's wall clock")
        self.mark(f"{name}, and measured")

    def test_it_sleeps_meanwhile(self):
        """Suspended to memory: its boot clock goes on by what its battery
        clock says, which counts seconds, so it is another afterwards."""
        self.over_tls("relay")
        self.relay()
        self.marker()
        self.begin()
        self.mark("before sleep")
        self.recording.flush(60_000)
        self.wait_in_file(lambda trace: trace.of("track_event"),
                          "the event is there")
        self.vm.sleep(1)
        # The first exchange after it takes long; better ones follow.
        after = self.wait_measured(after=time.time_ns(), within=SECOND // 50)
        self.mark("awake")
        self.finish_marks()
        moved = after.clock_offset_ns - self.before.clock_offset_ns
        print(f"# its clock moved by {moved / 1e6:.1f} ms")


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Probes(VmCase):
    def sys_stats(self):
        wanted = source("linux.sys_stats")
        stats = wanted.config.sys_stats_config
        stats.meminfo_period_ms = PERIOD_MS
        stats.meminfo_counters.append(pb.MeminfoCounters.Value("MEMINFO_SHMEM"))
        return wanted

    def counters(self, trace):
        """(when, bytes of shared memory) of each sample, in time."""
        return trace.sql(
            "select ts, value from counter join counter_track t "
            "on t.id = track_id where t.name = 'Shmem' order by ts")

    def wait_sampled(self, more):
        """A sample that is larger than the first by so many MiB."""
        def there(trace):
            values = [m.value for p in trace.of("sys_stats")
                      for m in p.sys_stats.meminfo]
            return any(v - values[0] >= more << 10 for v in values)
        self.wait_in_file(there, "a sample of shared memory")

    def check_jump(self, trace, off):
        """No sample that is larger by half of it was read before it began,
        none that is not after it was done."""
        samples = self.counters(trace)
        half = samples[0][1] + (JUMP_MB << 19)
        small = list(itertools.takewhile(lambda s: s[1] < half, samples))
        last, jump = small[-1][0], samples[len(small)][0]
        began, ended = self.bounds["jump"]
        self.assertGreaterEqual(jump, began - off)
        self.assertLessEqual(last, ended + off)
        print(f"# seen {(jump - began) / 1e6:.1f} ms after it began, which "
              f"took {(ended - began) / 1e6:.1f} ms; to within "
              f"{off / 1e6:.2f} ms")

    def check_probes(self):
        self.begin(self.sys_stats())
        self.wait_sampled(0)
        self.bracket("jump", lambda: self.vm.run(
            f"dd if=/dev/zero of=/tmp/big bs=1M count={JUMP_MB}"))
        self.wait_sampled(JUMP_MB // 2)
        self.vm.run("rm /tmp/big")
        trace, off = self.finish()
        self.check_machine(trace)
        self.check_jump(trace, off)

    def test_probes_of_ours_straight_to_the_collector(self):
        """No relay: they measure the clocks themselves."""
        self.over_tls("producer")
        self.there("tributary-probes", "--tls-dir", "/tmp/tls",
                   "--producer-socket", "tls://" + vm.COLLECTOR)
        self.check_probes()

    def test_probes_of_ours_behind_a_relay(self):
        self.over_tls("relay")
        self.relay()
        self.there("tributary-probes", "--producer-socket", SOCKET)
        self.check_probes()

    @unittest.skipUnless(vm.has_perfetto(), "deploy/install-deps peers")
    def test_perfettos_probes_behind_a_relay(self):
        self.over_tls("relay")
        self.relay()
        self.perfettos_probes()
        self.check_probes()

    @unittest.skipUnless(vm.has_perfetto(), "deploy/install-deps peers")
    def test_ftrace_by_perfettos_probes(self):
        """What the machine's kernel saw, and when."""
        self.over_tls("relay")
        self.relay()
        self.perfettos_probes()
        wanted = source("linux.ftrace")
        # FtraceConfig.ftrace_events
        wanted.config.MergeFromString(
            pb.DataSourceConfig().SerializeToString() +
            b"\xa2\x06\x0e\x0a\x0cftrace/print")
        self.begin(wanted)
        marker = "/sys/kernel/tracing/trace_marker"
        self.until(lambda: self.vm.read(
            "/sys/kernel/tracing/tracing_on") == b"1\n", "it traces")
        for n in range(5):
            self.bracket(f"mark {n}", lambda: self.vm.run(
                f"echo 'I|1|mark {n}' >{marker}"))
        trace, off = self.finish()
        self.check_machine(trace)
        rows = trace.sql(
            "select extract_arg(arg_set_id, 'buf'), ts from ftrace_event "
            "where name = 'print'")
        self.assertEqual(len(rows), 5, rows)
        for name, ts in rows:
            began, ended = self.bounds[name.strip().removeprefix("I|1|")]
            self.assertGreaterEqual(ts, began - off)
            self.assertLessEqual(ts, ended + off)


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Kernel(VmCase):
    """What the kernel of whoever tests may lack."""

    def test_vsock(self):
        """All that vsock is for: producers, a relay, a consumer."""
        self.there("tributaryd", "--producer-socket", "vsock://1:2000",
                   "--enable-relay-endpoint",
                   "--consumer-socket", "vsock://1:2001",
                   "--allow-plain-consumer", "vsock://1:2001",
                   said="listening for consumers")
        # Otherwise the collector knows its own machine in it.
        self.vm.put("/run/settings", 'machine_id: "behind"')
        self.relay("--config", "/run/settings", "--machine-name", "behind",
                   to="vsock://1:2000")
        for address in ("vsock://1:2000", SOCKET):
            self.there("tributary-probes", "--producer-socket", address)
        connect = "--connect vsock://1:2001"
        self.until(lambda: self.vm.run(f"tributary sources {connect}").count(
            "linux.sys_stats") == 2, "both are there", **patient)
        said = self.vm.run(f"tributary record {connect} --all-machines "
                           "-t 1s -o /tmp/t.pftrace linux.sys_stats")
        self.assertIn("Lost            nothing", said)
        trace = Trace.from_file(self.fetch("/tmp/t.pftrace"))
        machines = {p.machine_id for p in trace.of("sys_stats")}
        self.assertEqual(len(machines), 2, machines)
        self.assertIn(0, machines)

    def test_kernel_tls(self):
        """OpenSSL hands the keys to the kernel, which encrypts."""
        load_kernel_tls(self.vm)
        try:
            load_over_tls(self.vm, "500ms")
            words = self.vm.run("cat /proc/net/tls_stat").split()
        finally:
            self.vm.run("rmmod tls")
        counted = {name: int(n) for name, n in zip(words[::2], words[1::2])
                   if n != "0"}
        # Two producers, and the connection that measures their clocks; what
        # each end of them sends.  OpenSSL 3.0 decrypts TLS 1.3 by itself.
        self.assertEqual(counted, {"TlsTxSw": 3 * 2})


@tap.slow
@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Figures(VmCase):
    def test_kernel_tls(self):
        """In pairs, of which each of the two is the first as often: what the
        machine does with time is neither's."""
        without, within = [], []
        for pair in range(4):
            for kernel_tls in (pair % 2 == 1, pair % 2 == 0):
                if kernel_tls:
                    load_kernel_tls(self.vm)
                (within if kernel_tls else without).append(
                    load_over_tls(self.vm, "2s"))
                if kernel_tls:
                    self.vm.run("rmmod tls")
        for name, runs in (("without", without), ("with", within)):
            print(f"# {name} kernel TLS, MB and processor, ms per MB: " +
                  "; ".join(f"{size:.1f} MB, sender {sender * 1e3:.0f}, "
                            f"receiver {receiver * 1e3:.0f}"
                            for size, sender, receiver in runs))


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Reboots(VmCase):
    def spooling_relay(self):
        self.vm.put("/run/settings", "memory_kb: 1024\nmin_retry_ms: 100\n"
                    'spool { dir: "/disk/spool" size_kb: 32768 }')
        self.relay("--config", "/run/settings")

    def load(self, first_key):
        """Producers that keep a ledger on the disk."""
        self.there("tributary-load", "--connect", SOCKET, "--rate", "400K",
                   "--first-key", str(first_key), "--ledger",
                   f"/disk/{first_key}")

    def in_file(self):
        return os.path.getsize(self.path("trace"))

    def test_a_relay_and_its_spool(self):
        """Cut off, it spools; then the machine is rebooted.  What was on the
        disk is lost, and told; all else is there."""
        self.over_tls("relay", "link { grace_ms: 2000 }")
        self.spooling_relay()
        self.load(1)
        consumer = self.consumer(self.daemons[0].consumer_path)
        with open(self.path("trace"), "w+b") as file:
            consumer.enable(config(
                "tributary.load", size_kb=16384, trace_all_machines=True,
                write_into_file=True, file_write_period_ms=100),
                fds=[file.fileno()])
        self.until(lambda: self.in_file() > 100_000, "data arrives",
                   **patient)
        self.addCleanup(self.vm.qmp, "set_link", name="net", up=True)
        self.vm.qmp("set_link", name="net", up=False)
        self.until(lambda: json.loads(self.vm.run(
            "tributary-relay --status --json --state-dir /run/relay"))
            ["store"]["spool_bytes"] > 500_000, "it spools", **patient)
        self.vm.run("sync")
        self.vm.halt()
        self.pids.clear()
        self.vm.boot()
        self.put_certificate()
        self.spooling_relay()
        self.load(1000)
        before = self.in_file()
        self.until(lambda: self.in_file() > before + 100_000,
                   "data arrives again", **patient)
        # The producer first: what it wrote last is on its way then.
        self.vm.end(self.pids.pop())
        consumer.flush(60_000)
        consumer.stop()
        verdict = self.verify(1, 1000)
        self.assertTrue(verdict["accounted"], verdict)
        self.assertEqual(set(verdict["causes"]),
                         {"link given up by the collector"}, verdict)
        print("# {written} written, {present} in the trace, {told} told as "
              "lost, {missing_unsure} on their way when it went".format(
                  **verdict))

    def verify(self, *keys):
        """Holds the trace against ledgers of the machine."""
        flags = []
        for key in keys:
            flags += ["--ledger", self.fetch(f"/disk/{key}")]
        done = subprocess.run(
            [os.environ["TRIBUTARY_LOAD"], "verify", self.path("trace"),
             *flags], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(tap.main())
