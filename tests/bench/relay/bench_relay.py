#!/usr/bin/env python3
"""What a relay costs, each figure with its aim:

	bench_relay.py [relay | producer | collector | threads | drain | idle |
	    many]...

Processor time is of the process that is named, from the kernel's account of
it (schedstat); the other processes share the machine.
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest

from harness.chaos import Proxy
from harness.daemon import environment
from harness.device import RelayCase
from harness.ledger import SOURCE, Audit, Ledger
from harness.trace import Trace

MIB = 1 << 20
GB = 1e9
MEGABYTES = int(os.environ.get("BENCH_MB", "600"))
CUT_SECONDS = float(os.environ.get("BENCH_CUT_SECONDS", "30"))


def cpu(pid):
    """Seconds of processor time so far, of all its threads."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def cpu_of_threads(pid):
    """The same: of the thread with the sessions, and of those for
    connections."""
    owner = io = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            is_io = file.read().startswith("io-")
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            took = int(file.read().split()[0]) / 1e9
        if is_io:
            io += took
        elif int(task) == pid:
            owner += took
    return owner, io


def show(what, figure, aim=""):
    print(f"{what:<58} {figure:>12}  {aim}", flush=True)


class Bench(RelayCase):
    def setUp(self):
        """In memory, where a relay's state belongs."""
        super().setUp()
        os.rmdir(self.folder)
        self.folder = tempfile.mkdtemp(prefix="trib", dir="/dev/shm")

    def flood(self, places, **options):
        """Producers as fast as they can, with room to be so."""
        options.setdefault("shm_kb", 4096)
        return self.ledger(places, **options)

    def written(self, ledger):
        return sum(line["bytes"] for line in ledger.book().values())

    def wait_bytes(self, ledger, size):
        self.until(lambda: self.written(ledger) >= size, f"{size} bytes",
                   timeout=300)

    def measured(self, ledger, pids, size):
        """Seconds of each process, for a gigabyte of the ledger's packets."""
        self.wait_bytes(ledger, 20 * MIB)
        bytes_before = self.written(ledger)
        before = [cpu(pid) for pid in pids]
        self.wait_bytes(ledger, bytes_before + size)
        after = [cpu(pid) for pid in pids]
        size = self.written(ledger) - bytes_before
        return [(b - a) / size * GB for a, b in zip(before, after)]

    def splice(self, port):
        child = subprocess.Popen([os.environ["SPLICE_PROXY"], str(port)],
                                 stdout=subprocess.PIPE, text=True,
                                 env=environment())
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.addCleanup(child.stdout.close)
        return child, child.stdout.readline().split()[1]

    def bench_relay(self):
        """The relay, and a bare proxy that carries the relay's own bytes."""
        daemon = self.collector(producer=["127.0.0.1:0"])
        port = daemon.address("producers", "tcp").rsplit(":", 1)[1]
        bare, near = self.splice(port)
        device = self.device("a", near, memory_kb=16384)
        self.wait_linked()
        ledger = self.flood([(device, 4)])
        self.record(size_kb=8192)
        self.wait_writing(ledger, 8)
        relay, proxy = self.measured(
            ledger, [device.process.pid, bare.pid], MEGABYTES * MIB)
        show("relay, seconds a GB", f"{relay:.3f}")
        show("bare splice proxy, the same bytes", f"{proxy:.3f}")
        show("ratio", f"{relay / proxy:.2f}", "at most 1.5")
        show("packets lost", sum(p for _, p in device.losses().values()))

    def bench_producer(self):
        """A producer's own time, at a relay and at a local daemon."""
        daemon = self.collector()
        device = self.device("a", memory_kb=16384)
        self.wait_linked()
        found = {}
        for name, socket in (("daemon", daemon.producer_path),
                             ("relay", device.socket)):
            with Ledger(self.path(name + ".log"), [(socket, 1)],
                        shm_kb=4096) as ledger:
                ledger.wait_ready()
                consumer = self.record(size_kb=8192)
                self.wait_writing(ledger, 2)
                found[name], = self.measured(
                    ledger, [ledger.process.pid], MEGABYTES * MIB // 4)
                consumer.disable()
            show(f"producer at a {name}, seconds a GB", f"{found[name]:.3f}")
        show("ratio", f"{found['relay'] / found['daemon']:.2f}", "about 1")

    def bench_collector(self):
        """The collector's time, by link and in Perfetto's way."""
        found = {}
        for name, protocol in (("link", "LINK"), ("classic", "CLASSIC"),
                               ("link, zstd", "LINK compression_level: 1")):
            self.daemons.clear()
            daemon = self.collector(producer=["127.0.0.1:0"])
            device = self.device(
                name.replace(", ", "-"), daemon.address("producers", "tcp"),
                memory_kb=16384, settings=f"protocol: {protocol}")
            self.until(lambda: device.report().link.state in (
                "linked", "classic"), "it is connected")
            ledger = self.flood([(device, 4)])
            recording = self.record(size_kb=8192)
            self.wait_writing(ledger, 8)
            found[name], relay = self.measured(
                ledger, [daemon.pid, device.process.pid], MEGABYTES * MIB)
            show(f"collector, {name}: seconds a GB", f"{found[name]:.3f}",
                 f"(its relay {relay:.3f})")
            self.done_with(ledger, device, recording, daemon)
        self.daemons.clear()
        show("link to classic", f"{found['link'] / found['classic']:.2f}",
             "at most 1")

    def done_with(self, ledger, device, recording, daemon):
        ledger.stop()
        self.things.remove(ledger)
        device.stop()
        self.devices.remove(device)
        recording.close()
        daemon.stop()

    def bench_threads(self):
        """The collector's time of a relay that compresses, by thread: packets
        filled with zeros, which is its worst case, and as real ones."""
        for text in (False, True):
            for threads in (0, 1, 2):
                self.threads(threads, text)

    def threads(self, threads, text):
        name = "text" if text else "zeros"
        self.daemons.clear()
        daemon = self.collector(producer=["127.0.0.1:0"], flags=[
            "--io-threads", str(threads)])
        device = self.device(
            f"{name}-{threads}", daemon.address("producers", "tcp"),
            memory_kb=16384, settings="compression_level: 1")
        self.wait_linked(device)
        ledger = self.flood([(device, 4)], text=text)
        recording = self.record(size_kb=8192)
        self.wait_writing(ledger, 8)
        self.wait_bytes(ledger, 20 * MIB)
        size, before = self.written(ledger), cpu_of_threads(daemon.pid)
        self.wait_bytes(ledger, size + MEGABYTES * MIB)
        after = cpu_of_threads(daemon.pid)
        size = self.written(ledger) - size
        owner, io = ((b - a) / size * GB for a, b in zip(before, after))
        show(f"link, zstd of {name}, {threads} threads: owner, s a GB",
             f"{owner:.3f}", f"(threads {io:.3f})")
        self.done_with(ledger, device, recording, daemon)
        self.daemons.clear()

    def bench_drain(self):
        """A cut at 10 MB/s, and how the spool drains meanwhile."""
        daemon = self.collector()
        proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", daemon.producer_path))
        self.things.append(proxy)
        device = self.device("a", proxy.addresses[0], memory_kb=8192,
                             spool_kb=1 << 20)
        self.wait_linked()
        ledger = self.ledger([(device, 4)], rate=2_500_000, size=1000)
        trace = self.path("trace")
        recording = self.record_to_file(trace, size_kb=65536)
        self.wait_writing(ledger, 8)
        proxy.say("refuse 600000")
        proxy.say("cut rst")
        before, began = self.written(ledger), time.monotonic()
        self.loop.settle(CUT_SECONDS)
        seconds = time.monotonic() - began
        store = device.report().store
        rate = (self.written(ledger) - before) / seconds
        show(f"written in a cut of {seconds:.0f} s, MB/s",
             f"{rate / 1e6:.1f}", "10")
        show("spool, MB", f"{store.spool_bytes / 1e6:.0f}")
        proxy.say("heal")
        began = time.monotonic()
        self.until(lambda: device.linked() and
                   device.report().store.spool_bytes == 0, "it is drained",
                   timeout=300)
        seconds = time.monotonic() - began
        show("drained in, s, with new data arriving", f"{seconds:.1f}")
        show("that is, MB/s of the old",
             f"{store.spool_bytes / seconds / 1e6:.0f}")
        ledger.finish()
        self.wait_empty(timeout=120)
        recording.flush(60000)
        recording.stop()
        audit = Audit(ledger.book(), Trace.from_file(trace))
        self.assertEqual(audit.faults, [])
        show("packets in the trace", audit.packets)
        show("packets missing", audit.lost, "0")

    def bench_idle(self):
        """Nothing to do: memory and wake-ups."""
        self.collector()
        device = self.device("a")
        self.wait_linked()
        ledger = Ledger(self.path("ledger.log"), [(device.socket, 1)])
        self.things.append(ledger)
        ledger.wait_ready()

        def wake_ups():
            with open(f"/proc/{device.process.pid}/status") as file:
                return sum(int(line.split()[1]) for line in file
                           if line.startswith("voluntary_ctxt"))
        before, began = wake_ups(), time.monotonic()
        self.loop.settle(15)
        rate = (wake_ups() - before) / (time.monotonic() - began)
        show("wake-ups a second, idle", f"{rate:.2f}", "at most 1")
        show("resident, KiB", device.memory(), "below 4096")
        show("of it anonymous, KiB", device.memory("RssAnon"))

    def bench_many(self):
        """500 devices with 10 producers each: a connection for each."""
        count = int(os.environ.get("BENCH_DEVICES", "500"))
        daemon = self.collector(
            "limits { max_connections_per_peer: 20000 }")
        fds, memory = daemon.fds(), daemon.memory()
        began = time.monotonic()
        for n in range(count):
            self.device(f"d{n}")
        self.wait_linked()
        show(f"{count} devices linked, s", f"{time.monotonic() - began:.1f}")
        ledger = self.ledger([(d, 10) for d in self.devices], rate=200,
                             writers=1, shm_kb=16)
        show("descriptors of the collector for them", daemon.fds() - fds,
             f"{count}")
        show("collector, KiB for a device with its producers",
             f"{(daemon.memory() - memory) / count:.1f}")
        trace = self.path("trace")
        recording = self.record_to_file(trace, size_kb=65536)
        self.wait_writing(ledger, 10 * count, timeout=120)
        before, began = cpu(daemon.pid), time.monotonic()
        self.loop.settle(10)
        seconds = time.monotonic() - began
        show("collector, of a processor, at 1 MB/s of all together",
             f"{(cpu(daemon.pid) - before) / seconds:.2f}")
        ledger.finish()
        self.wait_empty(timeout=120)
        recording.flush(60000)
        recording.stop()
        audit = Audit(ledger.book(), Trace.from_file(trace))
        self.assertEqual(audit.faults, [])
        show("packets of sequences", f"{audit.packets} of "
             f"{len(audit.arrived)}")
        show("packets missing", audit.lost, "0")


def main():
    names = sys.argv[1:] or ["relay", "producer", "collector", "drain",
                             "idle"]
    result = unittest.TestResult()
    for name in names:
        print(f"== {name}: {getattr(Bench, 'bench_' + name).__doc__}",
              flush=True)
        Bench("bench_" + name)(result)
        for _, text in result.errors + result.failures:
            print(text)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
