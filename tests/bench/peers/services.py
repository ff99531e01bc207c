"""The programs under measurement, on private sockets in memory, and
tributary-load in front of them."""

import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import peers

# Where there are two processors, the generator has one to itself.
GENERATOR_CPUS = {0}
SERVICE_CPUS = {1}


class Missing(Exception):
    """What is needed and not there, and how to get it."""


def program(build, *path):
    path = os.path.join(build, *path)
    if not os.access(path, os.X_OK):
        raise Missing(f"{path} is not built")
    return path


def traced():
    found = peers.program("traced")
    if found is None:
        raise Missing("Perfetto's traced is not here; "
                      "try: deploy/install-deps peers")
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def processor_time(pid):
    """Seconds of all its threads, also of those that have ended.  The clock
    of another process has its number in it (CPUCLOCK_SCHED of Linux)."""
    return time.clock_gettime(~pid << 3 | 2)


def prepare_child(cpus):
    """As many descriptors as may be, and its processors (None: all)."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if cpus is not None and cpus <= os.sched_getaffinity(0) and \
            len(os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, cpus)


class SocketMemory:
    """KiB that the kernel queues of TCP, at most and more than before: what a
    service does not read waits there."""

    EVERY_S = 0.02

    def __enter__(self):
        self.most = self.before = self.look()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.wait(self.EVERY_S):
            self.most = max(self.most, self.look())

    @staticmethod
    def look():
        with open("/proc/net/sockstat", encoding="ascii") as file:
            tcp = [line.split() for line in file if line.startswith("TCP:")]
        pages = int(tcp[0][tcp[0].index("mem") + 1])
        return pages * resource.getpagesize() // 1024

    def kb(self):
        return self.most - self.before


class Folder:
    """In memory where that is possible: a disk would be measured as well."""

    def __enter__(self):
        memory = "/dev/shm"
        self.path = tempfile.mkdtemp(
            prefix="bench-peers", dir=memory if os.path.isdir(memory) else None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def __call__(self, name, text=None):
        """The path of a file; with what is to be in it."""
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path


class Process:
    """Runs inside a `with`, and ends with it."""

    def __init__(self, argv, log, cpus=None, environment=(), **options):
        self.log = log
        with open(log, "wb") as out:
            self.child = subprocess.Popen(
                argv, stderr=out, env={**os.environ, **dict(environment)},
                preexec_fn=lambda: prepare_child(cpus),
                **{"stdout": out, **options})
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        early = self.child.poll()
        self.child.terminate()
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        if early is not None and kind is None:
            raise RuntimeError(f"{self.child.args[0]} has ended by itself "
                               f"({early}):\n{self.words()}")

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def processor_time(self):
        return processor_time(self.pid)


class Service(Process):
    """tributaryd or traced: both are told by the same environment where to
    listen, and both say when they do."""

    def __init__(self, folder, argv, cpus=None):
        self.tcp = f"127.0.0.1:{free_port()}"
        self.unix = folder("producers")
        self.consumers = folder("consumers")
        readable, writable = os.pipe()
        with os.fdopen(readable, "rb") as ready:
            super().__init__(argv, folder("service.log"), cpus, {
                "PERFETTO_PRODUCER_SOCK_NAME": f"{self.unix},{self.tcp}",
                "PERFETTO_CONSUMER_SOCK_NAME": self.consumers,
                "TRACED_NOTIFY_FD": str(writable),
            }, pass_fds=[writable])
            os.close(writable)
            if ready.read(1) != b"1":
                raise RuntimeError(f"{argv} does not start:\n{self.words()}")


def generate(build, *flags, cpus=None):
    """The report of a run of tributary-load."""
    argv = [program(build, "tests/bench/load/tributary-load"), "--quiet",
            *map(str, flags)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=600,
                          preexec_fn=lambda: prepare_child(cpus), check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: status {done.returncode}")
    report = json.loads(done.stdout)
    if report["errors"] or report["connected"] < report["producers"]:
        raise RuntimeError(f"{' '.join(argv)}: {report['connected']} "
                           f"producers, {report['first_errors']}")
    return report
