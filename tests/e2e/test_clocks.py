#!/usr/bin/env python3
"""Clocks of several machines: each relay has one of its own (a time
namespace), so that the truth is known exactly."""

import os
import shutil
import subprocess
import sys
import time
import unittest

from harness import netns, pb, tap
from harness.chaos import Proxy
from harness.daemon import environment
from harness.device import RelayCase
from harness.imported import causes, may_cause
from harness.loop import SCALE
from harness.producer import numbered
from harness.trace import SERVICE_SEQUENCE, TRUSTED, Trace

SECOND = 10 ** 9
UNSHARE = shutil.which("unshare")

# How far the clocks of each are ahead of this machine's, in seconds:
# BOOTTIME and MONOTONIC.
COLLECTOR = (7000, 300)
DEVICES = {"a": (1000000, 20), "b": (0, 0), "late": (86400, 86400)}

OFTEN = "clock_sync_ms: 250\n"
# The bound; a sanitizer's round trip is longer.
BOUND_NS = 50000 * SCALE


def ahead(boottime, monotonic):
    """What runs a command in a time of its own."""
    return [UNSHARE, "--time", "--boottime", str(boottime), "--monotonic",
            str(monotonic)]


def unavailable():
    """Why there can be no such time here; None: there can."""
    if UNSHARE is None:
        return "there is no unshare command"
    done = subprocess.run([*ahead(5000, 0), "cat", "/proc/uptime"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return f"no time namespaces here: {done.stderr.strip()}"
    if float(done.stdout.split()[0]) < 5000:
        return "a command is not in the time namespace that it unshares"
    return None


WHY_NOT = unavailable()


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def find(snapshot, clock_id):
    for clock in snapshot.clocks:
        if clock.clock_id == clock_id:
            return clock.timestamp
    return 0


def imported_offset(sync, clock_id=6):
    """Client minus host, as Trace Processor reckons it."""
    raw = []
    for ping, update in zip(sync.synced_clocks, sync.synced_clocks[1:]):
        c1, h1 = (find(s, clock_id) for s in (ping.client_clocks,
                                              ping.host_clocks))
        c2, h2 = (find(s, clock_id) for s in (update.client_clocks,
                                              update.host_clocks))
        assert c1 and h1 and c2 and h2, sync
        assert find(update.client_clocks, 6) - \
            find(ping.client_clocks, 6) < 30 * SECOND
        raw += [(c1 + c2) // 2 - h1, c2 - (h1 + h2) // 2]
    return sum(raw) // len(raw)


class Importer:
    """Aligns the packets of a trace as Trace Processor does: each by the last
    RemoteClockSync of its machine that stands before it."""

    def __init__(self):
        self.offsets = {}
        self.syncs = {}    # machine: how many
        self.systems = {}  # machine: names
        self.times = {}    # machine: [(counter, host time)]
        self.unaligned = 0

    def take(self, trace):
        for packet in trace.packets:
            machine = packet.machine_id
            kind = packet.WhichOneof("data")
            if kind == "remote_clock_sync":
                self.offsets[machine] = imported_offset(
                    packet.remote_clock_sync)
                self.syncs[machine] = self.syncs.get(machine, 0) + 1
            elif kind == "system_info":
                self.systems.setdefault(machine, []).append(
                    packet.system_info.machine_name)
            elif kind == "for_testing" and machine:
                if machine not in self.offsets:
                    self.unaligned += 1
                    continue
                self.times.setdefault(machine, []).append(
                    (packet.for_testing.counter,
                     packet.timestamp - self.offsets[machine]))
        return self


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Clocks(RelayCase):
    def collector(self, **options):
        options.setdefault("producer", ["127.0.0.1:0"])
        return super().collector(
            wrap=[*options.pop("wrap", ()), *ahead(*COLLECTOR)], **options)

    def device(self, name, to=None, *, wrap=(), settings="", **options):
        return super().device(
            name, to or self.daemons[0].address("producers", "tcp"),
            wrap=[*wrap, *ahead(*DEVICES[name])], settings=OFTEN + settings,
            **options)

    def truth(self, name):
        """Of a device's BOOTTIME and the collector's."""
        return (DEVICES[name][0] - COLLECTOR[0]) * SECOND

    def machine(self, name):
        return self.states.machines().get(name)

    def measured(self, name):
        """How often; 0: not yet."""
        machine = self.machine(name)
        return machine.clock_measured_ns if machine is not None else 0

    def wait_measured(self, name, after=0):
        self.until(lambda: self.measured(name) > after,
                   f"the clocks of {name} are measured", timeout=60)
        return self.machine(name)

    def check(self, machine):
        """What is said contains the truth.  How far off it is."""
        error = abs(machine.clock_offset_ns - self.truth(machine.name))
        self.assertLessEqual(error, machine.clock_uncertainty_ns)
        self.assertLessEqual(error, machine.round_trip_ns / 2 + 1)
        return error

    def check_precise(self, *names):
        """It becomes sure to within the bound, and then it is right."""
        self.states = self.control()
        for name in names:
            self.until(lambda: self.measured(name) and
                       self.machine(name).clock_uncertainty_ns <= BOUND_NS,
                       f"{name} is known to {BOUND_NS} ns", timeout=120)
            machine = self.machine(name)
            error = self.check(machine)
            self.assertLessEqual(error, BOUND_NS)
            print(f"# {name}: off by {error} ns, said to be up to "
                  f"{machine.clock_uncertainty_ns} ns, round trip "
                  f"{machine.round_trip_ns} ns")

    def test_two_clocks_over_loopback(self):
        self.collector()
        self.device("a")
        self.device("b")
        self.check_precise("a", "b")
        # The relay knows it as well, the other way round.
        clock = self.devices[0].report().clock
        self.assertLessEqual(abs(clock.offset_ns + self.truth("a")),
                             clock.uncertainty_ns)

    def test_two_clocks_over_a_unix_socket(self):
        daemon = self.collector(producer=None)
        self.device("a", daemon.producer_path)
        self.check_precise("a")

    def test_two_clocks_in_perfettos_way(self):
        self.collector()
        self.device("a", settings="protocol: CLASSIC\n")
        self.device("b", settings="protocol: CLASSIC\n")
        self.check_precise("a", "b")

    @unittest.skipIf(netns.unavailable() is not None, netns.unavailable())
    def test_two_clocks_between_network_namespaces(self):
        net = netns.Network()
        net.__enter__()
        self.addCleanup(net.close)
        here, a, b = (net.host(name) for name in ("here", "a", "b"))
        self.collector(producer=[f"{here.address}:7447"], wrap=here.command(),
                       flags=["--allow-remote", f"{here.address}:7447"])
        for name, host in (("a", a), ("b", b)):
            self.device(name, f"{here.address}:7447", wrap=host.command())
        self.check_precise("a", "b")

    def far_away(self, *delays, settings=""):
        """Two devices behind a proxy that delays: a delay, and what chance
        adds to it."""
        daemon = self.collector()
        proxy = Proxy(self.path("proxy.log"),
                      ("127.0.0.1:0", daemon.address("producers", "tcp")))
        self.things.append(proxy)
        for delay in delays:
            proxy.say(delay)
        self.device("a", proxy.addresses[0], settings=settings)
        self.device("b", proxy.addresses[0], settings=settings)
        self.states = self.control()
        for name in ("a", "b"):
            shortest, after = None, 0
            for _ in range(4):
                machine = self.wait_measured(name, after)
                after = machine.clock_measured_ns
                shortest = min(shortest or machine.round_trip_ns,
                               machine.round_trip_ns)
                error = self.check(machine)
                self.assertLessEqual(error, shortest / 2 + 1)
                self.assertGreater(machine.round_trip_ns, 15000000)
                print(f"# {name}: off by {error / 1e6:.2f} ms, said to be up "
                      f"to {machine.clock_uncertainty_ns / 1e6:.2f} ms, "
                      f"round trip {machine.round_trip_ns / 1e6:.2f} ms")

    def test_far_away(self):
        self.far_away("delay 10 20")

    def test_far_away_and_longer_on_the_way_back(self):
        self.far_away("delay 10 5 up", "delay 25 5 down")

    def test_far_away_and_longer_on_the_way_there(self):
        self.far_away("delay 25 5 up", "delay 10 5 down")

    def test_far_away_in_perfettos_way(self):
        self.far_away("delay 10 20", settings="protocol: CLASSIC\n")

    def test_far_away_and_uneven_in_perfettos_way(self):
        self.far_away("delay 25 5 up", "delay 10 5 down",
                      settings="protocol: CLASSIC\n")

    def produce(self, device, producer, instance):
        """A packet with the device's time, every few turns of the loop."""
        writer = producer.writer(instance)
        shift = DEVICES[device][0] * SECOND

        def write():
            now = boottime()
            writer.write([numbered(writer.counter, timestamp=now + shift)])
            writer.counter += 1
            return now
        return write

    # Trace Processor v55 keeps one clock offset for all remote machines, that
    # of the last RemoteClockSync (google/perfetto, pull request 6339 ends it).
    @may_cause("trace_sorter_negative_timestamp_dropped")
    def test_a_trace_of_machines_that_come_and_stay(self):
        """RemoteClockSync and SystemInfo of each, again and again, and what
        an importer makes of them."""
        self.collector()
        self.device("a")
        self.device("b")
        self.states = self.control()
        for name in ("a", "b"):
            self.wait_measured(name)
        path = self.path("trace")
        self.record_to_file(path, "src", file_write_period_ms=100)
        written = {}
        writers = {}

        def come(name):
            device = next(d for d in self.devices if d.name == name)
            producer = self.producer(f"p.{name}", ["src"],
                                     address=device.socket)
            producer.wait_started()
            writers[name] = self.produce(
                name, producer, next(iter(producer.instances.values())))
            written[name] = []

        def gather():
            for name, write in writers.items():
                written[name].append(write())
            with open(path, "rb") as file:
                data = file.read()
            return Importer().take(Trace.from_bytes(data))

        def seen_again(name, times):
            got = gather()
            machine = self.machine(name).id
            return got.syncs.get(machine, 0) >= times

        come("a")
        come("b")
        for name in ("a", "b"):
            self.until(lambda: seen_again(name, 3),
                       f"the clocks of {name} come again", timeout=60)
        self.device("late")
        self.wait_measured("late")
        come("late")
        self.until(lambda: seen_again("late", 2),
                   "so do those of one that joins late", timeout=60)
        for name in DEVICES:
            self.until(lambda: self.check_times(gather(), name, written[name],
                                                3),
                       f"packets of {name} are in the trace", timeout=60)

    def check_times(self, got, name, written, at_least):
        """Each packet has the collector's time of its writing."""
        state = self.machine(name)
        times = got.times.get(state.id, [])
        self.assertEqual(got.unaligned, 0)
        for counter, when in times:
            error = abs(when - (written[counter] + COLLECTOR[0] * SECOND))
            # The offset was measured to some uncertainty, then drift.
            self.assertLessEqual(error, 1000000 * SCALE)
        if len(times) < at_least:
            return False
        self.assertEqual(got.systems[state.id], [name])
        return True

    def test_a_generator_elsewhere_without_relays(self):
        daemon = self.collector()
        path = self.path("trace")
        done = subprocess.run(
            [*ahead(*DEVICES["a"]), os.environ["TRIBUTARY_LOAD"], "--quiet",
             "--connect", daemon.address("producers", "tcp"), "--producers",
             "3", "--packets", "20", "--rate", "50K", "--session", path,
             "--consumer", daemon.address("consumers")],
            env=environment(), capture_output=True, text=True,
            timeout=60 * SCALE)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = Trace.from_file(path)
        found = Importer().take(trace)
        (machine, offset), = found.offsets.items()
        self.assertLess(abs(offset - self.truth("a")), BOUND_NS * 20)
        self.assertEqual(len(found.times[machine]), 60)
        self.assertEqual(found.unaligned, 0)
        self.assertEqual(len(trace.stats().tributary_foreign_clocks), 0)

    @causes("invalid_clock_snapshots")
    def test_clocks_of_the_producers_own_pass_through(self):
        """Sequence-scoped ones with the same ids on two machines, and global
        ones: byte for byte, and each with its machine and sequence."""
        self.collector()
        written = {}  # bytes: (device, writer)
        for name in ("a", "b"):
            device = self.device(name)
            self.wait_linked(device)
        consumer = self.record("src")
        for name, device in zip(("a", "b"), self.devices):
            producer = self.producer(f"p.{name}", ["src"],
                                     address=device.socket)
            producer.wait_started()
            instance = next(iter(producer.instances.values()))
            for number in range(2):
                packets = []
                for clock_id in (64, 127, 128, 0x0FFFFFFF):
                    snapshot = pb.TracePacket()
                    snapshot.timestamp = boottime()
                    snapshot.clock_snapshot.clocks.add(
                        clock_id=clock_id, timestamp=len(written) + 1,
                        unit_multiplier_ns=1000, is_incremental=number == 1)
                    snapshot.clock_snapshot.clocks.add(
                        clock_id=6, timestamp=boottime())
                    packets.append(snapshot.SerializeToString())
                    packets.append(numbered(
                        len(written), timestamp=len(written) + 2,
                        timestamp_clock_id=clock_id))
                    for packet in packets[-2:]:
                        written[packet] = (name, number)
                producer.writer(instance).write(packets)
        self.wait_empty()
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        machines = {m.id: name for name, m in
                    self.control().machines().items()}
        found = {}
        for raw, packet in zip(trace.raw, trace.packets):
            if not packet.machine_id or packet.trusted_packet_sequence_id == \
                    SERVICE_SEQUENCE:
                continue
            mine = [w for w in written if raw.startswith(w)]
            self.assertEqual(len(mine), 1, packet)
            behind = pb.TracePacket.FromString(raw[len(mine[0]):])
            self.assertLessEqual({f.name for f, _ in behind.ListFields()},
                                 {*TRUSTED, "previous_packet_dropped"})
            name, number = written.pop(mine[0])
            self.assertEqual(machines[packet.machine_id], name)
            sequence = packet.trusted_packet_sequence_id
            self.assertEqual(found.setdefault((name, number), sequence),
                             sequence)
        self.assertEqual(written, {})
        self.assertEqual(len(set(found.values())), 4, found)


if __name__ == "__main__":
    sys.exit(tap.main())
