"""What is measured: each case makes a pair of measurements of its sides."""

import os
import time

from services import GENERATOR_CPUS, SERVICE_CPUS, Folder, Process, Service, \
    SocketMemory, generate, program, traced

RING = """\
buffers {{ size_kb: {size_kb} }}
data_sources {{ config {{ name: "tributary.load" }} }}
trace_all_machines: true
"""
# As often as traced empties its buffers at most.
FILE = RING + "write_into_file: true\nfile_write_period_ms: 100\n"
RING_KB = 65536
# At a given pace: most laps are later ones, for which the memory is there.
PACED_RING_KB = 16384

# One chunk that was made before: the generator is not what is measured.
REPEAT = ("--repeat", "--size", 200)
# As fast as they are taken: 64 KiB of chunks in a commit, each answered.
FLOOD = (*REPEAT, "--rate", "max", "--chunks", 16, "--reply-every", 1,
         "--shm-kb", 4096)
PACED = (*REPEAT, "--total-rate", "50M")

RELAY_RATE = "100M"
RELAY_SETTINGS = """\
producer_socket: "{producers}"
to: "{to}"
state_dir: "{state}"
memory_kb: 65536
"""


def daemon(build):
    return [program(build, "service/tributaryd")]


def round_trips(report):
    times = report["round_trip_us"]
    return {"p50": times["p50"], "p99": times["p99"]}


def memory_over_ring(report, ring_kb):
    """The most that was resident, where all of the ring was, and queued."""
    if report["session"]["buffer_bytes"] < ring_kb * 1024:
        return {}
    return {"memory": report["collector"]["rss_peak_kb"] - ring_kb +
            report["queued_kb"]}


def session_seconds(report):
    """From the moment that all write until the session is over: what is under
    way when they end has to be taken as well."""
    return report["total_s"] - report["connect_s"] - \
        report["session"]["start_ms"] / 1000


class Bench:
    """How long, where, and which cases there are.  before: the folder of an
    earlier build, whose programs take the place of traced; or None."""

    def __init__(self, build, seconds, crowd, before=None):
        self.build = build
        self.builds = (build, before)
        self.seconds = seconds
        self.crowd = crowd
        self.sides = (daemon(build), daemon(before) if before else traced())

    # ---- sides ----

    def run(self, side, transport, config, *flags):
        """A fresh service, and what tributary-load says of it."""
        with Folder() as folder, \
                Service(folder, self.sides[side], SERVICE_CPUS) as service:
            session = [] if config is None else [
                "--session", folder("trace"),
                "--config", folder("config", config)]
            with SocketMemory() as queued:
                report = generate(
                    self.build, "--connect", getattr(service, transport),
                    "--consumer", service.consumers, "--pid", service.pid,
                    *session, *flags, cpus=GENERATOR_CPUS)
            # Others use TCP on this machine as well.
            return {**report, "queued_kb":
                    queued.kb() if transport == "tcp" else 0}

    def pair(self, ours_first, measure, *args):
        """One measurement of each side; who is first changes."""
        values = [None, None]
        for side in (0, 1) if ours_first else (1, 0):
            values[side] = measure(side, *args)
        return values

    # ---- what is measured of a service ----

    def ring(self, side, transport, *flags, size_kb=RING_KB):
        report = self.run(side, transport, RING.format(size_kb=size_kb),
                          *flags, "--duration", self.seconds)
        written = report["bytes"]["total"]
        collector = report["collector"]
        return {
            "processor": collector["session_cpu_s"] / written,
            "time": session_seconds(report) / written,
            **memory_over_ring(report, size_kb), **round_trips(report)}

    def paced(self, side, transport, *flags):
        """The time is given."""
        values = self.ring(side, transport, *flags, size_kb=PACED_RING_KB)
        del values["time"]
        return values

    def file(self, side, transport, *flags):
        """Of what is in the file: the rest was lost."""
        report = self.run(side, transport, FILE.format(size_kb=RING_KB),
                          *flags, "--duration", self.seconds)
        session, collector = report["session"], report["collector"]
        return {
            "processor": collector["session_cpu_s"] / session["file_bytes"],
            "time": session_seconds(report) / session["file_bytes"],
            **memory_over_ring(report, RING_KB),
            "lost": (session["chunks_overwritten"] +
                     session["chunks_discarded"]) / report["chunks"],
            **round_trips(report)}

    def idle(self, side):
        report = self.run(side, "tcp", None, "--producers", self.crowd,
                          "--rate", 0, "--idle", "500ms",
                          "--duration", "100ms")
        collector = report["collector"]
        return {"processor": collector["connect_cpu_s"],
                "time": report["connect_s"],
                "memory": collector["rss_idle_kb"] -
                collector["rss_begin_kb"]}

    # ---- the relay ----

    def over_relay(self, side=0):
        """Processor time for a byte of relay, of a bare proxy behind it, which
        carries what it sends, and of the collector; and round trips."""
        with Folder() as folder, \
                Service(folder,
                        self.relay_collector(folder, side)) as collector, \
                self.proxy(folder, collector) as proxy, \
                self.relay(folder, proxy, side) as relay:
            processes = (relay, proxy, collector)
            before = [p.processor_time() for p in processes]
            report = self.relay_load(folder, collector,
                                     folder("relay-producers"))
            after = [p.processor_time() for p in processes]
        written = report["bytes"]["total"]
        used = [{"processor": (b - a) / written}
                for a, b in zip(before, after)]
        used[2].update(round_trips(report))
        return used

    def without_relay(self):
        """The same producers directly at the collector, over TCP."""
        with Folder() as folder, \
                Service(folder, self.relay_collector(folder)) as collector:
            before = collector.processor_time()
            report = self.relay_load(folder, collector, collector.tcp)
            used = collector.processor_time() - before
        return {"processor": used / report["bytes"]["total"],
                **round_trips(report)}

    def relay_collector(self, folder, side=0):
        return [*self.sides[side], "--config",
                folder("settings", "enable_relay_endpoint: true\n")]

    def relay_load(self, folder, collector, address):
        return generate(
            self.build, "--connect", address, "--consumer",
            collector.consumers, "--session", folder("trace"), "--config",
            folder("config", RING.format(size_kb=RING_KB)), *REPEAT, "--producers", 8,
            "--total-rate", RELAY_RATE, "--duration", self.seconds)

    def proxy(self, folder, collector):
        port = collector.tcp.rsplit(":", 1)[1]
        return Process([program(self.build, "tests/bench/relay/splice_proxy"),
                        port], folder("proxy.log"))

    def relay(self, folder, proxy, side):
        wait_for(lambda: ":" in proxy.words(), "the proxy")
        os.mkdir(folder("state"), 0o700)
        settings = folder("relay.conf", RELAY_SETTINGS.format(
            producers=folder("relay-producers"), state=folder("state"),
            to=proxy.words().split()[1]))
        relay = Process([program(self.builds[side], "relay/tributary-relay"),
                         "--config", settings], folder("relay.log"))
        wait_for(lambda: os.path.exists(folder("relay-producers")),
                 "the relay")
        return relay

    # ---- cases ----

    def warm_up(self):
        """The first that takes much memory waits for the machine below to find
        it; that is nobody's figure."""
        self.file(0, "tcp", "--producers", 8, *FLOOD)

    def cases(self):
        """Name and what makes {row: (ours, theirs)} of a pair."""
        for sink, measure in (("ring", self.ring), ("file", self.file)):
            for transport, name in (("unix", "shared memory"),
                                    ("tcp", "TCP")):
                for n in (1, 8, 64):
                    yield self.of_service(
                        f"{sink}, {name}, {n} producer{'s' * (n > 1)}",
                        measure, transport, "--producers", n, *FLOOD)
        for transport, name in (("unix", "shared memory"), ("tcp", "TCP")):
            for n in (100, 1000):
                yield self.of_service(
                    f"50 MB/s of {n} producers, {name}", self.paced,
                    transport, "--producers", n, *PACED)
        yield self.of_service("overdriven by 1000 producers, TCP", self.ring,
                              "tcp", "--producers", 1000, *FLOOD)
        yield self.of_service(f"{self.crowd} idle producers connect",
                              self.idle)
        yield "relay", self.relay_before if self.builds[1] else self.relay_pair

    def of_service(self, name, measure, *args):
        return name, lambda ours_first: {
            name: self.pair(ours_first, measure, *args)}

    def relay_pair(self, ours_first):
        with_relay, alone = (self.over_relay(), self.without_relay()) \
            if ours_first else (self.without_relay(), self.over_relay())[::-1]
        relay, proxy, collector = with_relay
        return {"a relay, of a bare proxy for what it sends": (relay, proxy),
                "its collector, of producers directly over TCP":
                    (collector, alone)}

    def relay_before(self, ours_first):
        ours, before = self.pair(ours_first, self.over_relay)
        return {"a relay": (ours[0], before[0]),
                "its collector": (ours[2], before[2])}


def wait_for(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.01)
