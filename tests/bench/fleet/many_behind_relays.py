"""More producers than 16 bits can number, behind relays, at one collector.

    python3 tests/bench/fleet/many_behind_relays.py BUILD [PRODUCERS [LIMIT]]

BUILD is a build folder; PRODUCERS (70000) are real ones, each with a UNIX socket
and shared memory, 4000 at each tributary-relay; LIMIT is the collector's
limits.max_producers (default: its own).  A session over all of them is recorded
into a file, each writes a few numbered packets, and then it is asked: how many
were served, and what the others were told; whether each has an id of its own in
the collector and a sequence of its own in the trace; and whether
`tributary-load verify` accounts for each packet.  Prints a line of JSON; exits
with 0 where all of it is as the settings say.

As many processes play them as descriptors permit (20,000 each is enough).
"""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PER_RELAY = 4000
RELAYS_PER_GENERATOR = 2
PACKETS = 10
DEADLINE = 1500

DEFAULT_LIMIT = 65535


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data, at, end):
    """Number, value or (begin, end) of each field in data[at:end]."""
    while at < end:
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
        elif wire == 2:
            size, at = varint(data, at)
            yield tag >> 3, (at, at + size)
            at += size
        else:
            at += 8 if wire == 1 else 4


class Trace:
    """Sequences and keys of numbered packets (tests/bench/load/numbered.h)."""

    def __init__(self, path):
        self.pairs = set()
        data = open(path, "rb").read()
        self.bytes = len(data)
        for number, span in fields(data, 0, len(data)):
            sequence = key = None
            for field, value in fields(data, *span):
                if field == 10:
                    sequence = value
                elif field == 900:
                    key = self.key_of(data, value)
            if key is not None:
                self.pairs.add((sequence, key))

    @staticmethod
    def key_of(data, span):
        for field, value in fields(data, *span):
            if field == 2:
                return value
        return None

    def last_sequence(self):
        return max((s for s, _ in self.pairs), default=0)

    def one_to_one(self):
        sequences = {sequence for sequence, _ in self.pairs}
        keys = {key for _, key in self.pairs}
        return len(sequences) == len(keys) == len(self.pairs)


def wait(condition, what):
    until = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(0.5)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A child that writes into a file, and what it costs."""

    def __init__(self, folder, name, argv, **environment):
        self.log = os.path.join(folder, name + ".log")
        self.out = os.path.join(folder, name + ".out")
        with open(self.log, "wb") as err, open(self.out, "wb") as out:
            self.child = subprocess.Popen(argv, stdout=out, stderr=err,
                                          env={**os.environ, **environment})

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def status(self, key):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            for line in f:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
        return 0

    def cpu(self):
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as f:
            rest = f.read().rsplit(")", 1)[1].split()
        return (int(rest[11]) + int(rest[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        return self.child.wait(DEADLINE)


class Generator(Process):
    """tributary-load: its devices stay until they are told to go."""

    def __init__(self, build, folder, index, sockets, producers):
        self.ledger = os.path.join(folder, f"ledger{index}")
        argv = [f"{build}/tests/bench/load/tributary-load"]
        for path in sockets:
            argv += ["--connect", path]
        argv += ["--producers", str(producers), "--packets", str(PACKETS),
                 "--stay", "--shm-kb", "32", "--reply-every", "1",
                 "--first-key", str(1 + index * 100000),
                 "--ledger", self.ledger]
        super().__init__(folder, f"load{index}", argv)

    def last(self):
        """Ready, writing, packets, of its last complete line."""
        lines = [l for l in self.words().split("\n")[:-1] if " ready, " in l]
        if not lines:
            return 0, 0, 0
        words = lines[-1].split(": ", 1)[1].replace(",", "").split()
        return int(words[0]), int(words[2]), int(words[4])


class Many:
    def __init__(self, build, producers, limit):
        self.build = build
        self.producers = producers
        self.limit = limit
        self.served = min(producers, limit or DEFAULT_LIMIT)
        self.folder = tempfile.mkdtemp(
            prefix="many", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.consumer = os.path.join(self.folder, "consumer")
        self.relays = []
        self.generators = []
        self.result = {"producers": producers, "limit": limit or "default"}

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    # ---- processes ----

    def start_collector(self):
        self.port = free_port()
        limits = f"limits {{ max_producers: {self.limit} }}\n" if \
            self.limit else ""
        path = self.write("collector.conf", (
            f'producer_socket: "{self.folder}/producer"\n'
            f'consumer_socket: "{self.consumer}"\n'
            f'relay_socket: "127.0.0.1:{self.port}"\n{limits}'))
        self.collector = Process(self.folder, "collector", [
            f"{self.build}/service/tributaryd", "--config", path])
        wait(lambda: os.path.exists(self.consumer), "the collector")

    def start_relay(self, index):
        path = self.write(f"relay{index}.conf", (
            f'producer_socket: "{self.folder}/relay{index}"\n'
            f'to: "127.0.0.1:{self.port}"\n'
            f'state_dir: "{self.folder}/state{index}"\n'
            f'machine_name: "relay{index}" machine_id: "many{index}"\n'
            "memory_kb: 65536\n"
            f"limits {{ max_producers: {PER_RELAY} "
            "max_total_shm_kb: 4194304 }\n"))
        os.mkdir(f"{self.folder}/state{index}", 0o700)
        self.relays.append(Process(self.folder, f"relay{index}", [
            f"{self.build}/relay/tributary-relay", "--config", path]))

    def start_devices(self):
        sizes = [min(PER_RELAY, self.producers - at)
                 for at in range(0, self.producers, PER_RELAY)]
        for i in range(len(sizes)):
            self.start_relay(i)
        wait(lambda: all(os.path.exists(f"{self.folder}/relay{i}")
                         for i in range(len(sizes))), "the relays")
        for i in range(0, len(sizes), RELAYS_PER_GENERATOR):
            mine = sizes[i:i + RELAYS_PER_GENERATOR]
            # Those that are full, dealt out in turn; the last by itself.
            full = [k for k, n in enumerate(mine) if n == PER_RELAY]
            for group in (full, [k for k in range(len(mine))
                                 if k not in full]):
                if group:
                    self.generators.append(Generator(
                        self.build, self.folder, len(self.generators),
                        [f"{self.folder}/relay{i + k}" for k in group],
                        sum(mine[k] for k in group)))
        wait(lambda: sum(g.last()[0] for g in self.generators) ==
             self.producers, "producers at their relays")

    # ---- what the collector knows ----

    def tributary(self, *argv):
        return subprocess.run(
            [f"{self.build}/client/tributary", *argv, "--connect",
             self.consumer], stdout=subprocess.PIPE, check=True).stdout

    def producer_ids(self):
        """Of TracingServiceState.producers."""
        state = subprocess.run(
            [f"{self.build}/client/tributary", "record", "--query-raw"],
            stdout=subprocess.PIPE, check=True,
            env={**os.environ, "PERFETTO_CONSUMER_SOCK_NAME":
                 self.consumer}).stdout
        ids = []
        for number, span in fields(state, 0, len(state)):
            if number == 1:
                ids += [v for f, v in fields(state, *span) if f == 1]
        return ids

    def check_served(self):
        wait(lambda: len(self.producer_ids()) >= self.served,
             "producers at the collector")
        ids = self.producer_ids()
        self.result["served"] = len(ids)
        self.result["ids"] = len(set(ids))
        self.result["last_id"] = max(ids)
        assert len(ids) == self.served == len(set(ids)), self.result

    def check_refused(self):
        """By name: in the collector's log, and in that of each relay."""
        refused = self.producers - self.served
        self.result["refused"] = refused
        name = "limits.max_producers is reached"
        told = [i for i, r in enumerate(self.relays) if name in r.words()]
        self.result["relays_that_were_told"] = len(told)
        self.result["collector_says"] = name in self.collector.words()
        if refused > 0:
            assert told and self.result["collector_says"], self.result
        else:
            assert not told and not self.result["collector_says"]

    # ---- the session ----

    def record(self):
        config = self.write("config", (
            "buffers { size_kb: 262144 }\n"
            "data_sources { config { name: 'tributary.load'\n"
            "  for_testing { seed: 1 } } }\n"
            "write_into_file: true file_write_period_ms: 3600000\n"
            "flush_timeout_ms: 120000 data_source_stop_timeout_ms: 120000\n"
            "trace_all_machines: true\n"))
        self.trace = os.path.join(self.folder, "trace")
        before, began = self.collector.cpu(), time.monotonic()
        recorder = Process(self.folder, "record", [
            f"{self.build}/client/tributary", "record", "-c", config,
            "-o", self.trace], PERFETTO_CONSUMER_SOCK_NAME=self.consumer)
        wanted = self.served * PACKETS
        wait(lambda: sum(g.last()[2] for g in self.generators) >= wanted,
             "packets")
        self.result["written"] = sum(g.last()[2] for g in self.generators)
        self.result["start_to_written_s"] = round(time.monotonic() - began, 1)
        began = time.monotonic()
        status = recorder.end(signal.SIGINT)
        self.result["stop_s"] = round(time.monotonic() - began, 1)
        self.result["session_cpu_s"] = round(self.collector.cpu() - before, 2)
        assert status == 0, recorder.words()

    def check_trace(self):
        for g in self.generators:
            g.end(signal.SIGINT)
        ledgers = sum((["--ledger", g.ledger] for g in self.generators), [])
        verdict = subprocess.run(
            [f"{self.build}/tests/bench/load/tributary-load", "verify",
             self.trace, *ledgers], stdout=subprocess.PIPE)
        self.result["verify"] = json.loads(verdict.stdout)
        trace = Trace(self.trace)
        self.result["trace_bytes"] = trace.bytes
        self.result["sequences"] = len(trace.pairs)
        self.result["last_sequence"] = trace.last_sequence()
        self.result["one_to_one"] = trace.one_to_one()
        assert verdict.returncode == 0, self.result
        assert trace.one_to_one(), self.result
        assert len(trace.pairs) == self.served, self.result

    def measure(self, when):
        self.result["collector_rss_kb_" + when] = \
            self.collector.status("VmRSS")
        self.result["collector_cpu_s_" + when] = round(self.collector.cpu(), 2)

    def run(self):
        self.start_collector()
        self.measure("begin")
        self.start_devices()
        self.check_served()
        self.check_refused()
        self.measure("registered")
        self.record()
        self.measure("recorded")
        self.result["relay_rss_kb"] = max(r.status("VmRSS")
                                          for r in self.relays)
        self.check_trace()
        for r in self.relays:
            assert r.end() == 0, r.words()
        assert self.collector.end() == 0, self.collector.words()

    def clear(self):
        for p in [*self.generators, *self.relays,
                  *([self.collector] if hasattr(self, "collector") else [])]:
            if p.child.poll() is None:
                p.child.kill()
                p.child.wait()


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    many = Many(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 70000,
                int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    try:
        many.run()
    except BaseException:
        many.clear()
        print(json.dumps(many.result), file=sys.stderr)
        print(f"what is there: {many.folder}", file=sys.stderr)
        raise
    print(json.dumps(many.result))
    shutil.rmtree(many.folder)


if __name__ == "__main__":
    main()
