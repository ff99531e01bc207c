"""Starts our real daemons on private sockets and ends them by their pid."""

import os
import re
import select
import signal
import subprocess
import time

from .loop import SCALE

# A clean end, whatever a sanitizer has to say about it.
SANITIZER_LINES = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                   "runtime error:", "WARNING: ThreadSanitizer",
                   "WARNING: MemorySanitizer")
IO_THREADS = "TRIBUTARY_TEST_IO_THREADS"
LISTENING = re.compile(r"listening for (producers|consumers|relays) on (\S+)")


def is_plain(address):
    """Nobody there is asked who they are: TCP or vsock, without TLS."""
    return not address.removeprefix("unix:").startswith(
        ("/", "@", "tls://", "ssh://"))


def environment(**extra):
    """Ours, without the PERFETTO_* variables of whoever runs the tests."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("PERFETTO_", "TRACED_", "NOTIFY_"))}
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
    # A child of a program with threads may start threads of its own.
    env.setdefault("TSAN_OPTIONS", "exitcode=66:die_after_fork=0")
    env.update(extra)
    return env


class Program:
    """A daemon of ours.  Sub-classes say how it is called."""

    name = None             # of the program, in messages and its log's name
    variable = None         # of the environment: the program's path
    notify_variable = None  # the descriptor that it says "1" to
    pass_fds = ()           # descriptors that it inherits

    def __init__(self, folder, *, flags=(), env=None, limits=None, wrap=(),
                 pass_fds=()):
        self.folder = folder
        self._flags = list(flags)
        self._env = environment(**(env or {}))
        self._limits = limits  # called in the child before exec
        self._wrap = list(wrap)  # a command that runs ours
        self.pass_fds = [*self.pass_fds, *pass_fds]
        self.log_path = os.path.join(
            folder, f"{self.name}-{len(os.listdir(folder))}.log")
        self.process = None
        self.status = None
        self.expected_status = 0
        self.told_to_end = False

    def command(self):
        return [*self._wrap, os.environ[self.variable],
                "--log-level", "debug", *self._flags]

    def start(self):
        """Returns the seconds it took until the sockets were open."""
        read_end, write_end = os.pipe()
        log = open(self.log_path, "wb")
        began = time.monotonic()
        try:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, pass_fds=[write_end, *self.pass_fds],
                preexec_fn=self._limits,
                env={**self._env, self.notify_variable: str(write_end)})
        finally:
            os.close(write_end)
            log.close()
        self.pid = self.process.pid
        self.told_to_end = False
        readable, _, _ = select.select([read_end], [], [], 60 * SCALE)
        said = os.read(read_end, 16) if readable else b""
        os.close(read_end)
        if said != b"1":
            self.kill()
            raise AssertionError(
                f"{self.name} did not become ready ({said!r}); it said:\n" +
                self.log())
        return time.monotonic() - began

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def memory(self, key="VmRSS"):
        """Kilobytes."""
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
        raise KeyError(key)

    def cpu(self):
        """Seconds of processor time used so far."""
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def signal(self, signo):
        self.told_to_end |= signo in (signal.SIGTERM, signal.SIGINT)
        os.kill(self.pid, signo)

    def wait(self, timeout=60):
        """The exit status."""
        self.status = self.process.wait(timeout * SCALE)
        return self.status

    def stop(self):
        """SIGTERM, unless it is ending already: a second signal would cut it
        short.  Asserts a clean end."""
        if self.process is None:
            return
        if self.running():
            if not self.told_to_end:
                self.signal(signal.SIGTERM)
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end on SIGTERM")
        self.status = self.process.returncode
        log = self.log()
        for line in SANITIZER_LINES:
            assert line not in log, f"{line} in the log"
        assert self.status == self.expected_status, \
            f"{self.name} ended with status {self.status}"

    def kill(self):
        """kill -9, for what is meant to be abrupt."""
        if self.process is not None and self.running():
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.expected_status = self.process.returncode


class Daemon(Program):
    """producer, consumer: lists of addresses to listen on."""

    name = "tributaryd"
    variable = "TRIBUTARYD"
    notify_variable = "TRACED_NOTIFY_FD"

    def __init__(self, folder, *, producer=None, consumer=None, **options):
        super().__init__(folder, **options)
        self.producer_path = os.path.join(folder, "p")
        self.consumer_path = os.path.join(folder, "c")
        self._producers = producer or [self.producer_path]
        self._consumers = consumer or [self.consumer_path]

    def command(self):
        argv = [*self._wrap, os.environ["TRIBUTARYD"], "--log-level", "debug"]
        for address in self._producers:
            argv += ["--producer-socket", address]
        for address in self._consumers:
            argv += ["--consumer-socket", address]
            if is_plain(address):
                argv += ["--allow-plain-consumer", address]
        # What runs once more with threads for connections.
        if IO_THREADS in os.environ:
            argv += ["--io-threads", os.environ[IO_THREADS]]
        return argv + self._flags

    def addresses(self, port):
        """Where it listens for "producers", "consumers" or "relays"."""
        return list(dict.fromkeys(  # an upgrade says them again
            m[2] for m in LISTENING.finditer(self.log()) if m[1] == port))

    def address(self, port, kind="unix"):
        """The one address of a kind: unix, tcp, tls or vsock."""
        def kind_of(address):
            if address.startswith("vsock"):
                return "vsock"
            if address.startswith("tls://"):
                return "tls"
            if address.removeprefix("unix:").startswith(("/", "@")):
                return "unix"
            return "tcp"
        found = [a for a in self.addresses(port) if kind_of(a) == kind]
        assert len(found) == 1, f"{found} in the log:\n{self.log()}"
        return found[0]
