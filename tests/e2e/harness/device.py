"""Devices: relays, each with a folder, a socket for producers and a state of
its own; and the base of the tests that have some."""

import os
import select
import signal
import socket
import subprocess
import sys

from . import pb
from .case import Case
from .consumer import config
from .daemon import SANITIZER_LINES, environment
from .ipc import Gone, Port, Rejected
from .ledger import SOURCE, Audit, Ledger
from .loop import SCALE
from .trace import Trace

RELAY = os.environ.get("TRIBUTARY_RELAY")
# So that a test of many cuts is not a test of patience.
RETRY = "min_retry_ms: 20 max_retry_ms: 200\n"


class Device:
    """A relay that runs, is killed, and runs again with what it left.

    to: an address.  settings: protobuf text (RelaySettings).  spool_kb: of a
    spool in its folder.  wrap: a command that runs ours (Host.command).
    """

    def __init__(self, folder, name, to, *, settings="", spool_kb=0,
                 memory_kb=1024, flags=(), env=None, wrap=(), sockets=(),
                 machine_id=None):
        self.name = name
        self.folder = os.path.join(folder, name)
        self.state = os.path.join(self.folder, "state")
        self.spool = os.path.join(self.folder, "spool")
        self.socket = os.path.join(self.folder, "p")
        self.log_path = os.path.join(self.folder, "log")
        os.makedirs(self.state, mode=0o700)
        os.makedirs(self.spool, mode=0o700)
        self._settings = RETRY + f'machine_name: "{name}"\n' \
            f'machine_id: "{machine_id or f"id of {name}"}"\n' \
            f"memory_kb: {memory_kb}\n{settings}\n"
        if spool_kb:
            self._settings += f'spool {{ dir: "{self.spool}" ' \
                f"size_kb: {spool_kb} }}\n"
        self.arguments = [*wrap, RELAY, "--config",
                      os.path.join(self.folder, "settings"), "--to", str(to),
                      "--state-dir", self.state, "--log-level", "debug"]
        for address in [self.socket, *sockets]:
            self.arguments += ["--producer-socket", address]
        self.arguments += flags
        self._env = environment(**(env or {}))
        self.process = None
        self.kills = 0
        self.set_settings("")

    def set_settings(self, more):
        """Adds to its settings, from the next start on."""
        self._settings += more
        with open(os.path.join(self.folder, "settings"), "w") as file:
            file.write(self._settings)

    def start(self):
        read_end, write_end = os.pipe()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, pass_fds=[write_end],
                env={**self._env, "TRACED_RELAY_NOTIFY_FD": str(write_end)})
        os.close(write_end)
        readable, _, _ = select.select([read_end], [], [], 60 * SCALE)
        said = os.read(read_end, 16) if readable else b""
        os.close(read_end)
        assert said == b"1", f"{self.name} is not ready:\n{self.log()}"
        return self

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, signo):
        self.process.send_signal(signo)

    def kill(self):
        """SIGKILL: what it left is for the next."""
        assert self.running(), f"{self.name} ended by itself:\n{self.log()}"
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def stop(self):
        """SIGTERM; asserts a clean end."""
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60 * SCALE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError(f"{self.name} did not end on SIGTERM")
        log = self.log()
        for line in SANITIZER_LINES:
            assert line not in log, f"{line} in {self.log_path}"
        if process.returncode == -signal.SIGKILL and self.kills > 0:
            return
        assert process.returncode == 0, \
            f"{self.name} ended with status {process.returncode}"

    def memory(self, key="VmRSS"):
        """Kilobytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
        raise KeyError(key)

    def report(self):
        """RelayReport, as --status has it; None: nobody answers."""
        data = b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60 * SCALE)
            try:
                sock.connect(os.path.join(self.state, "control"))
                while part := sock.recv(1 << 16):
                    data += part
            except OSError:
                return None
        return pb.RelayReport.FromString(data)

    def linked(self):
        report = self.report()
        return report is not None and report.link.state == "linked"

    def empty(self):
        """Nothing waits or is on the way."""
        report = self.report()
        return report is not None and report.link.state == "linked" and \
            not report.store.memory_bytes and \
            not report.store.spool_bytes and \
            not report.store.blocks_on_the_way

    def losses(self):
        """{cause: (chunks, packets)} since it was started."""
        report = self.report()
        return {loss.cause: (loss.chunks, loss.packets)
                for loss in report.losses}


class Control(Port):
    """The collector's TributaryControl."""

    service = "TributaryControl"

    def machines(self):
        """MachineState by name."""
        call = self.call("QueryMachines", pb.QueryMachinesRequest())
        self.finish(call)
        whole = pb.QueryMachinesReply()
        for part in call.replies:
            whole.MergeFromString(part)
        return {machine.name: machine for machine in whole.machines}


class RelayCase(Case):
    """A collector, devices, ledgers, and one session."""

    def setUp(self):
        super().setUp()
        self.devices = []
        self.things = []  # with stop(), ended last first

    def _end(self):
        try:
            for thing in reversed(self.things):
                thing.stop()
            for device in self.devices:
                device.stop()
        finally:
            for device in self.devices:
                if device.running():
                    device.signal(signal.SIGKILL)
                    device.process.wait()
            super()._end()

    def _show_logs(self):
        for device in getattr(self, "devices", ())[:4]:
            lines = device.log().splitlines()
            print(f"# {device.log_path}, last of {len(lines)} lines:",
                  *lines[-40:], sep="\n#   ", file=sys.stderr)
        super()._show_logs()

    def collector(self, settings="", flags=(), **options):
        """A daemon that takes relays; settings: protobuf text."""
        path = self.path("settings")
        with open(path, "w") as file:
            file.write(settings)
        return self.daemon(flags=["--enable-relay-endpoint", "--config", path,
                                  *flags], **options)

    def device(self, name, to=None, **options):
        """A running one; default: to the collector's UNIX socket."""
        device = Device(self.folder, name,
                        to or self.daemons[0].producer_path, **options)
        self.devices.append(device)
        return device.start()

    def wait_linked(self, *devices):
        for device in devices or self.devices:
            self.until(device.linked, f"{device.name} is linked")

    def wait_empty(self, *devices, timeout=60):
        for device in devices or self.devices:
            self.until(device.empty, f"{device.name} has sent everything",
                       timeout=timeout)

    def ledger(self, places, **options):
        """Producers on devices: (device, count) pairs."""
        ledger = Ledger(self.path(f"ledger{len(self.things)}.log"),
                        [(device.socket, count) for device, count in places],
                        **options)
        self.things.append(ledger)
        ledger.wait_ready()
        return ledger

    def record(self, *sources, size_kb=65536, **fields):
        """A running session of all machines; default: the ledger's."""
        consumer = self.consumer()
        consumer.enable(config(*(sources or [SOURCE]), size_kb=size_kb,
                               trace_all_machines=True, **fields))
        return consumer

    def record_to_file(self, path, *sources, size_kb=8192, **fields):
        """The same into a file: what it has not got yet is not overwritten.
        """
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        fields.setdefault("file_write_period_ms", 200)
        consumer = self.consumer()
        consumer.enable(config(*(sources or [SOURCE]), size_kb=size_kb,
                               trace_all_machines=True, write_into_file=True,
                               **fields), fds=[fd])
        os.close(fd)
        return consumer

    def wait_writing(self, ledger, count, **options):
        self.until(lambda: ledger.writing() == count,
                   f"{count} sequences are written", **options)

    def wait_written(self, ledger, packets):
        """Of each sequence."""
        self.until(lambda: all(line["written"] >= packets for line in
                               ledger.book().values()),
                   f"{packets} packets of each are written", timeout=60)

    def finish(self, ledger, consumer, trace=None, flush_ms=20000):
        """Ends writing and session; what came of it."""
        ledger.finish()
        self.wait_empty()
        consumer.flush(flush_ms)
        consumer.stop()
        audit = Audit(ledger.book(), Trace.from_file(trace) if trace else
                      consumer.read())
        self.assertEqual(audit.faults, [], audit.describe())
        return audit

    def assert_complete(self, audit):
        """Every packet, exactly once, in order, and none is said to be lost.
        """
        self.assertEqual(audit.missing, {}, audit.describe())
        self.assertEqual(audit.gaps_without_mark(), [])

    def assert_accounted(self, audit, *causes):
        """What is missing is told, of each sequence, to the packet, and where
        it is missing; these are the causes."""
        self.assertEqual(audit.unaccounted(), [], audit.describe())
        self.assertEqual(audit.causes(), set(causes), audit.describe())
        self.assertEqual(audit.gaps_without_mark(), [])

    def control(self):
        """None: the collector has none."""
        address = self.daemons[0].address("consumers")
        try:
            return self._add(Control(self.loop, address))
        except (Gone, Rejected):
            return None
