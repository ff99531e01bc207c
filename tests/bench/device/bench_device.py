#!/usr/bin/env python3
"""What one device costs, of the real programs; for docs/scale.md:

	bench_device.py FILE [links | devices | segments | store | haproxy]...

Figures go into FILE (JSON), those that are there already are kept.  They are
processor time of one process, memory, bytes and numbers, never how long something
took, as others work on the machine.  All devices speak TLS to the collector.
"""

import glob
import json
import os
import re
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest

from bench_relay import cpu
from harness import postgres, store
from harness.archiver import Archiver
from harness.certs import Authority
from harness.daemon import environment
from harness.device import RelayCase
from harness.ports import free_port

SECONDS = int(os.environ.get("BENCH_SECONDS", "60"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "2"))
HOUR = 3600
LARGE_MIB = 100
LOAD = 'data_sources { config { name: "tributary.load" } }\n'
# About 1 KB/s.
PROBES = """
data_sources { config { name: "linux.sys_stats" sys_stats_config {
  meminfo_period_ms: 1000 stat_period_ms: 1000 } } }
data_sources { config { name: "linux.process_stats" process_stats_config {
  proc_stats_poll_ms: 10000 } } }
"""
# So much that a decompressor's window is filled within the measurement.
BUSY = PROBES.replace("_ms: 1000", "_ms: 20").replace("_ms: 10000", "_ms: 100")
SETTINGS = """
limits { max_connections_per_peer: 20000 max_handshakes_per_peer: 20000 }
link { max_links_per_peer: 16384 }
trust { name: "load" may: RELAY may_claim_machine: true }
"""
RECORDING = """
archive_dir: "%s"
recording { name: "always" config_file: "%s" machines: "*" split: BY_MACHINE
  %s }
"""
# Ethernet, IP, TCP with time stamps.
HEADERS = 14 + 20 + 32
HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
figures = {}


def keep(name, value, what):
    figures[name] = {"value": value, "what": what}
    print(f"{name:<28} {value:>11.5g}  {what}", flush=True)


def resident(pid, key="VmRSS"):
    """KiB; VmHWM: at most."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{key}:\s+(\d+)", file.read(), re.M)[1])


def with_children(pid):
    """Seconds of processor, of children that have ended, too."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        ticks = file.read().rsplit(")", 1)[1].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def send(settings):
    """Runs the uploader; its seconds of processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([store.UPLOAD, "--config", settings, "--once"], check=True,
                   env={**environment(), **store.KEYS})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(after[:2]) - sum(before[:2])


def sent(port):
    """Bytes on the wire both ways, of all connections to the port."""
    text = subprocess.run(["ss", "-tinHO", "dport", "=", f":{port}"],
                          check=True, capture_output=True, text=True).stdout

    def total(field):
        return sum(map(int, re.findall(rf"\b{field}:(\d+)", text)))
    return (total("bytes_sent") + total("bytes_received") +
            HEADERS * (total("segs_out") + total("segs_in")))


class Bench(RelayCase):
    def setUp(self):
        super().setUp()
        os.rmdir(self.folder)
        self.folder = tempfile.mkdtemp(prefix="trib", dir="/dev/shm")
        self.authority = Authority(self.path("tls"), "--name", "localhost")
        self.certificate = self.authority.issue("load", "relay")

    def serve(self, sources="", rotate=""):
        """A collector, with a standing recording where there are sources."""
        archive = tempfile.mkdtemp(dir=self.folder)
        settings = SETTINGS
        if sources:
            path = os.path.join(archive, "always.pbtx")
            with open(path, "w", encoding="utf-8") as file:
                file.write("buffers { size_kb: 16384 }\n"
                           "compression { zstd {} }\n" + sources)
            settings += RECORDING % (archive, path, rotate)
        self.daemons.clear()
        daemon = self.collector(settings, producer=["tls://127.0.0.1:0"],
                                flags=["--tls-dir", self.authority.folder])
        daemon.archive = archive
        daemon.port = daemon.address("producers", "tls").rsplit(":")[-1]
        return daemon

    def load(self, daemon, relays, rate, port=None):
        """Relays with a producer each; what tributary-load says."""
        done = subprocess.run(
            [os.environ["TRIBUTARY_LOAD"], "--quiet", "--connect",
             f"tls://localhost:{port or daemon.port}", "--tls-dir",
             self.certificate, "--relays", str(relays), "--producers", "1",
             "--rate", str(rate), "--idle", "5s", "--duration", f"{SECONDS}s",
             "--pid", str(daemon.pid)],
            check=True, stdout=subprocess.PIPE, env=environment())
        found = json.loads(done.stdout)
        assert found["connected"] == relays, found
        daemon.stop()
        return found["collector"]

    # ---- a link, without compression ----

    def bench_links(self):
        """1000 links of tributary-load, beside 100."""
        rows = {}
        for name, relays, rate, rotate in (
                ("few", 100, "1K", ""), ("silent", 1000, "0", ""),
                ("slow", 1000, "1K", ""), ("fast", 1000, "4K", ""),
                ("cut", 1000, "1K", "rotate { every_ms: 10000 }")):
            rows[name] = self.load(self.serve(LOAD, rotate), relays, rate)

        def hour(name, other=None):
            took = rows[name]["load_cpu_s"]
            if other:
                took -= rows[other]["load_cpu_s"]
            return took / SECONDS * HOUR / 1000
        idle = rows["slow"]["rss_idle_kb"] - rows["few"]["rss_idle_kb"]
        peak = rows["slow"]["rss_load_kb"] - rows["few"]["rss_load_kb"]
        keep("link_kib", idle / 900,
             "memory of the collector for a device, TLS, linked, KiB")
        keep("link_writing_kib", peak / 900,
             "the same with a recording split by machine, 1 KB/s, KiB")
        keep("connect_ms", (rows["slow"]["connect_cpu_s"] -
                            rows["few"]["connect_cpu_s"]) / 900 * 1000,
             "processor of the collector to take a device on, ms")
        keep("link_cpu_s", hour("silent"),
             "processor of the collector for a silent device and hour, s")
        keep("slow_cpu_s", hour("slow"), "the same with 1 KB/s, uncut, s")
        keep("mb_cpu_ms", hour("fast", "slow") / (3.0 * 3.6) * 1000,
             "processor of the collector for one more MB, ms")
        keep("segment_cpu_ms", hour("cut", "slow") / (HOUR / 10) * 1000,
             "processor of the collector for a cut of a device, ms")

    # ---- real devices ----

    def run_devices(self, level, rotate="", sources=PROBES, count=16):
        """Relays with tributary-probes; what they and the collector took."""
        daemon = self.serve(sources, rotate)
        before = resident(daemon.pid)
        self.devices.clear()
        for n in range(count):
            self.device(f"d{daemon.port}-{n}", f"tls://localhost:{daemon.port}",
                        settings=f"compression_level: {level}",
                        flags=["--tls-dir", self.certificate])
        self.wait_linked()
        probes = [subprocess.Popen(
            [os.environ["TRIBUTARY_PROBES"], "--producer-socket", d.socket],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=environment())
            for d in self.devices]
        for child in probes:
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
        # What they say at their beginning is not what they say in an hour.
        self.loop.settle(20)
        relays = [d.process.pid for d in self.devices]

        def now():
            return (cpu(daemon.pid), sum(map(cpu, relays)), sent(daemon.port),
                    sum(d.report().link.bytes_up for d in self.devices))
        begin = now()
        self.loop.settle(SECONDS)
        took = [(b - a) / count / SECONDS * HOUR
                for a, b in zip(begin, now())]
        found = {
            "collector_s": took[0], "relay_s": took[1], "wire": took[2],
            "data": took[3],
            "collector_kib": (resident(daemon.pid) - before) / count,
            "relay_kib": sum(map(resident, relays)) / count}
        for child in probes:
            child.kill()
            child.wait()
        for device in self.devices:
            device.stop()
        self.devices.clear()
        daemon.stop()
        return daemon.archive, found

    def segments(self, archive):
        """The sizes of those that are whole, neither first nor last, and of
        devices; others are removed, and so are the settings."""
        sizes = []
        for folder in glob.glob(f"{archive}/always/*/*"):
            names = sorted(os.listdir(folder))
            for name in names:
                path = os.path.join(folder, name)
                if "/host/" in path or name in (names[0], names[-1]):
                    os.remove(path)
                else:
                    sizes.append(os.path.getsize(path))
        return sizes

    def bench_devices(self):
        """Real relays with tributary-probes, with and without compression."""
        _, plain = self.run_devices(0)
        _, packed = self.run_devices(1)
        full = [self.run_devices(level, sources=BUSY)[1]["collector_kib"]
                for level in (0, 1)]
        keep("data_mb", packed["data"] / 1e6,
             "trace data of a device and hour, as the relay takes it, MB")
        keep("wire_plain_mb", plain["wire"] / 1e6,
             "on the wire both ways, for a device and hour, MB")
        keep("wire_zstd_mb", packed["wire"] / 1e6,
             "the same, the relay compresses, MB")
        keep("zstd_kib", full[1] - full[0],
             "memory of the collector more for a relay that compresses, KiB")
        keep("relay_kib", packed["relay_kib"],
             "memory of a relay, TLS and zstd, KiB")
        keep("relay_cpu_s", packed["relay_s"],
             "processor of a relay in an hour, s")

    # ---- segments: files, catalogue, store ----

    def run_cut(self, seconds):
        """The archive of devices that are cut so often; bytes of each of its
        segments, and of trace data of a device in a second."""
        archive, found = self.run_devices(
            1, f"rotate {{ every_ms: {seconds * 1000} }}")
        return archive, self.segments(archive), found["data"] / HOUR

    def bench_segments(self):
        """Segments of real devices, of two lengths in turns."""
        rates, shares = {30: [], 10: []}, []
        for seconds in [30, 10] * ROUNDS:
            _, sizes, rate = self.run_cut(seconds)
            rates[seconds].append(rate)
            if seconds == 30:
                shares.append(statistics.mean(sizes) / (30 * rate))
        keep("disk_mb", statistics.mean(shares),
             "in segments for a MB of trace data, MB")
        keep("cut_bytes", 15 * (statistics.mean(rates[10]) -
                                statistics.mean(rates[30])),
             "of trace data that a device says anew after a cut, bytes")

    def bench_store(self):
        """Rows and requests of segments."""
        archive, sizes, _ = self.run_cut(10)
        self.index(archive, len(sizes))
        self.upload(archive, len(sizes))

    def index(self, archive, count):
        """By the archiver, beside one that finds nothing."""
        took = []
        for folder in tempfile.mkdtemp(dir=self.folder), archive:
            archiver = Archiver(self.folder, folder)
            archiver.start()
            self.until(lambda: (archiver.report() or {}).get(
                "segments", 0) >= (count if folder == archive else 0),
                "all are in the catalogue")
            took.append(cpu(archiver.pid))
            archiver.stop()
        keep("archiver_ms", (took[1] - took[0]) / count * 1000,
             "processor of the archiver for a segment, ms")
        db = sqlite3.connect(os.path.join(archive, "catalog.db"))

        def ask(question):
            return db.execute(question).fetchone()[0]
        rows = sum(ask(f"SELECT count(*) FROM {table}") for table in (
            "segments", "machines", "losses", "triggers", "data_sources",
            "seen", "postings"))
        keep("processes", ask("SELECT count(*) FROM seen") / count,
             "processes that a segment describes")
        keep("rows", rows / count,
             "rows of the catalogue for a segment with so many")
        db.execute("VACUUM")
        keep("row_bytes", os.path.getsize(f"{archive}/catalog.db") / rows,
             "of a row in a collector's own catalogue, bytes")
        db.close()

    def upload(self, archive, count):
        bucket = store.Bucket(self.folder)
        self.addCleanup(bucket.stop)
        settings = self.path("upload")
        bucket.settings(settings, archive_dir=archive)

        def of_gateway():
            return sum(cpu(int(open(f"{bucket.gateway.folder}/{name}.pid")
                               .read())) for name in ("rgw", "osd", "mon"))

        at_gateway = of_gateway()
        once = send(settings)
        asked = len(bucket.front.requests)
        keep("requests", asked / count, "requests to the store for a segment")
        keep("gateway_ms", (of_gateway() - at_gateway) / count * 1000,
             "processor of radosgw and its store for a segment, ms")
        nothing = send(settings)
        keep("upload_ms", (once - nothing) / count * 1000,
             "processor of tributary-upload for a segment, ms")
        self.share(bucket, archive, count, nothing)
        listed = bucket.signed("GET", "", "?list-type=2")[2].decode()
        sizes = re.findall(r"<Key>([^<]*)</Key>.*?<Size>(\d+)</Size>", listed)
        described = [int(size) for key, size in sizes if key.endswith(".json")]
        assert len(described) == count and len(sizes) == 2 * count
        keep("description_bytes", sum(described) / count,
             "of a segment's description in the store, bytes")
        large = os.path.join(archive, "large.pftrace")
        with open(large, "wb") as file:
            file.write(os.urandom(LARGE_MIB << 20))
        subprocess.run([os.environ["TRIBUTARY"], "archive", "reindex",
                        "--archive", archive], check=True,
                       stdout=subprocess.DEVNULL)
        asked = len(bucket.front.requests)
        send(settings)
        keep("requests_large", len(bucket.front.requests) - asked,
             f"requests to the store for a segment of {LARGE_MIB} MiB")

    def share(self, bucket, archive, count, nothing):
        """The rows of what is sent already, into PostgreSQL."""
        server = postgres.server()
        settings = self.path("shared")
        database = postgres.Database(server)
        bucket.settings(settings, archive_dir=archive, catalog=database.url)

        def size():
            return int(database.sql(
                "SELECT pg_database_size(current_database())")[0][0])
        before, empty = with_children(server.pid()), size()
        took = send(settings) - nothing
        # Its time counts once the server has seen its connection's end.
        self.until(lambda: database.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = "
            "current_database()") == [("1",)], "the uploader's end")
        keep("list_ms", took / count * 1000,
             "processor of tributary-upload for rows in PostgreSQL, ms")
        keep("postgres_ms", (with_children(server.pid()) - before) / count *
             1000, "processor of PostgreSQL for a segment, ms")
        keep("postgres_bytes", (size() - empty) / count /
             figures["rows"]["value"],
             "of a row in PostgreSQL with its indexes, bytes")

    # ---- HAProxy ----

    def bench_haproxy(self):
        """1000 links through HAProxy, beside 100."""
        rows = {}
        for relays, rate in (100, "1K"), (1000, "1K"), (1001, "40K"):
            daemon = self.serve(LOAD)
            haproxy, port = self.haproxy(daemon)
            begin = cpu(haproxy.pid), resident(haproxy.pid)
            self.load(daemon, relays, rate, port)
            rows[relays] = (cpu(haproxy.pid) - begin[0],
                            resident(haproxy.pid, "VmHWM") - begin[1])
            haproxy.terminate()
            haproxy.wait()
        keep("haproxy_kib", (rows[1000][1] - rows[100][1]) / 900,
             "memory of HAProxy for a device at most, without the kernel's, KiB")
        keep("haproxy_cpu_s", (rows[1000][0] - rows[100][0]) / 900 / SECONDS *
             HOUR, "processor of HAProxy for a device and hour, 1 KB/s, s")
        keep("haproxy_mb_ms", (rows[1001][0] - rows[1000][0]) /
             (39 * SECONDS) * 1000,
             "processor of HAProxy for one more MB, ms")

    def haproxy(self, daemon):
        """With the settings of `tributary fleet`, without health checks."""
        port, path = free_port(), self.path("haproxy.cfg")
        text = subprocess.run(
            [os.environ["TRIBUTARY"], "fleet", "haproxy",
             f"localhost:{daemon.port}", "--listen", f"127.0.0.1:{port}"],
            check=True, capture_output=True, text=True).stdout
        text = re.sub(r"default-server weight 100 .*",
                      "default-server weight 100", text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        child = subprocess.Popen([HAPROXY, "-db", "-f", path],
                                 stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child, port


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if store.MISSING or postgres.MISSING or HAPROXY is None:
        sys.exit("radosgw, PostgreSQL or HAProxy is not installed "
                 "(deploy/install-deps store, deploy/install-deps test)")
    path, names = sys.argv[1], sys.argv[2:]
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            figures.update(json.load(file))
    result = unittest.TestResult()
    for name in names or ["links", "devices", "segments", "store",
                          "haproxy"]:
        print(f"== {name}: {getattr(Bench, 'bench_' + name).__doc__}",
              flush=True)
        Bench("bench_" + name)(result)
        for _, text in result.errors + result.failures:
            print(text)
            return 1
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
