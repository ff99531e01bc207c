"""Three collectors, HAProxy, many relays with many producers, and a storm; at the
end each packet is in exactly one segment, or told as lost.

	fleet.py [MINUTES] [--relays N] [--producers N] [--rate BYTES] [--seed N]

Called by tests/soak, which sets the environment.
"""

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

from harness.certs import Authority
from harness.daemon import Daemon, environment
from harness.device import Device
from harness.haproxy import DOMAIN, Haproxy, health
from harness.loop import SCALE, Loop
from harness.ports import free_port
from soak import books, stored
from soak.crowd import Crowd, Keys
from soak.spread import Cut, Kill, Spread

PERIOD_MS = 500  # between two writes of a recording's file
BUFFER_KB = 16384
MOVE_AFTER_S = 1
EARLY_S = 6      # what is older was flushed, and is in a file
SOURCE = "soak.fleet"
FIRST_UID = 30000

SETTINGS = """
archive_dir: "{archive}"
limits {{ ignore_free_memory: true }}
link {{ grace_ms: 15000 end_wait_ms: 2000 }}
recording {{
  name: "all" config_file: "all.pbtx"
  file_pattern: "%Y%m%d-%H%M%S-%n.pftrace"
  rotate {{ every_ms: {every} }}
}}
"""
CONFIG = f"""
buffers {{ size_kb: {BUFFER_KB} }}
file_write_period_ms: {PERIOD_MS}
flush_period_ms: 5000
flush_timeout_ms: 2000
data_source_stop_timeout_ms: 3000
trace_all_machines: true
data_sources {{ config {{ name: "{SOURCE}" for_testing {{ seed: 1 }} }} }}
"""


class Collector:
    """One on an address of its own, with its archive and a tributary-web."""

    def __init__(self, soak, n):
        self.name = f"c{n}"
        self.folder = os.path.join(soak.folder, self.name)
        self.archive = os.path.join(self.folder, "archive")
        os.makedirs(self.archive)
        self.address = f"127.0.0.{n}:{soak.port}"
        self.consumer = os.path.join(self.folder, "c")
        for name, text in (("settings", SETTINGS.format(
                archive=self.archive, every=soak.every_ms)),
                           ("all.pbtx", CONFIG)):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)
        self.daemon = None
        self.logs = []
        self.start(soak.ca)
        self.web = health(self.folder, soak.ca, self.consumer,
                          f"127.0.0.{n}:{soak.web_port}")

    def start(self, ca):
        self.daemon = Daemon(
            self.folder, producer=[f"tls://{self.address}"],
            consumer=[self.consumer],
            flags=["--tls-dir", ca.folder, "--enable-relay-endpoint",
                   "--config", os.path.join(self.folder, "settings"),
                   "--log-level", "info"])
        self.daemon.start()

    def segments(self, end=".pftrace"):
        return sorted(os.path.join(self.archive, name)
                      for name in os.listdir(self.archive)
                      if name.endswith(end))


class FleetSoak:
    every_ms = 10000

    pause_s = 5
    away_s = 60  # the bucket, and PostgreSQL

    def __init__(self, folder, seed, relays, producers, rate, keep=False):
        """keep: segments go to a bucket, their rows to PostgreSQL."""
        self.folder = folder
        self.random = random.Random(seed)
        self.n_relays, self.n_producers, self.rate = relays, producers, rate
        self.loop = Loop()
        self.collectors = []
        self.haproxy = None
        self.devices = []
        self.crowd = None
        self.kills = []
        self.cuts = []   # HAProxy's ends
        self.done = collections.Counter()
        self.faults = []
        self.snapshots = collections.deque()
        self.due = []    # (when, what)
        self.moves = 0
        self.told = []  # of each relay: {cause: packets}
        self.stored = stored.Stored(folder) if keep else None

    def say(self, sentence):
        print(time.strftime("%H:%M:%S"), sentence, flush=True)

    def wrong(self, sentence):
        self.faults.append(sentence)
        self.say(f"WRONG: {sentence}")

    def until(self, condition, what, timeout=120):
        def look():
            self.snapshot()
            self.serve_due(time.monotonic())
            return condition()
        return self.loop.until(look, what, timeout)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, "time goes by",
                   seconds + 60)

    # -- what there is --

    def start(self):
        self.ca = Authority(os.path.join(self.folder, "ca"), "--name",
                            f"*.{DOMAIN}")
        self.port, self.web_port = free_port(), free_port()
        for n in (1, 2):
            self.add_collector(n)
        self.haproxy = Haproxy(self.folder, self.loop.until, *self.words())
        self.haproxy.start()
        # The third is not there yet.
        direct = ",".join(f"tls://127.0.0.{n}:{self.port}" for n in (1, 2, 3))
        for n in range(self.n_relays):
            self.devices.append(self.device(
                n, direct if n % 2 else
                f"tls://127.0.0.1:{self.haproxy.port}"))
        for device in self.devices:
            self.until(device.linked, f"{device.name} is linked")
        self.say(f"{len(self.devices)} relays are linked")
        where = []
        for device in self.devices:
            where += ["--connect", device.socket]
        self.crowd = Crowd(self.folder, "crowd", Keys(), *where, "--source",
                           SOURCE, "--producers", self.n_producers, "--rate",
                           self.rate, "--size", "80-400", "--shm-kb", 64,
                           # Else all write at the same moments.
                           "--ramp", max(100, self.n_producers // 10))
        self.crowd.start()
        self.until(lambda: sum(1 for e in self.entries().values() if
                               e.written) >= self.n_producers,
                   "all producers write", 300)
        self.say(f"{self.n_producers} producers write")

    def add_collector(self, n):
        self.collectors.append(Collector(self, n))
        if self.stored:
            self.stored.add(self.collectors[-1])

    def words(self):
        return [*(one.address for one in self.collectors), "--health-port",
                str(self.web_port), "--health-ca", self.ca.path("ca.pem")]

    def device(self, n, to):
        """Each a user of its own, as one may have 128 watchers of folders."""
        wrap = []
        tls = self.ca.issue(f"r{n}", "relay")
        if os.geteuid() == 0:
            uid = str(FIRST_UID + n)
            wrap = ["setpriv", "--reuid", uid, "--regid", uid,
                    "--clear-groups"]
        made = Device(
            self.folder, f"r{n}", to, spool_kb=4096, wrap=wrap, flags=[
                "--tls-dir", tls, "--tls-name", DOMAIN, "--sni-machine",
                "--move-after", f"{MOVE_AFTER_S}s", "--log-level", "info"])
        if wrap:
            for path in (self.folder, self.ca.folder, os.path.dirname(tls)):
                os.chmod(path, 0o711)
            subprocess.run(["chown", "-R", f"{uid}:{uid}", tls, made.folder],
                           check=True)
        return made.start()

    def entries(self):
        found = {}
        for path in self.crowd.ledgers(0):
            found.update(books.read(path))
        return found

    def written(self):
        return {key: entry.written for key, entry in self.entries().items()}

    def snapshot(self):
        """What was written, every half second."""
        now = time.monotonic()
        if self.crowd is None or \
                (self.snapshots and now < self.snapshots[-1][0] + 0.5):
            return
        self.snapshots.append((now, self.written()))
        while len(self.snapshots) > 1 and \
                self.snapshots[1][0] < now - EARLY_S:
            self.snapshots.popleft()

    # -- misfortunes, one at a time --

    def command(self, *words):
        """Waits for it, while all goes on."""
        process = subprocess.Popen(
            [os.environ["TRIBUTARY"], *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment())
        self.until(lambda: process.poll() is not None, " ".join(words), 360)
        said = process.communicate()[0]
        assert process.returncode == 0, f"{words}: {said}"
        return said

    def gone_for(self, collector, seconds):
        self.rest(seconds)
        collector.start(self.ca)

    def kill(self, collector, seconds):
        before = self.snapshots[0][1]
        collector.daemon.kill()
        self.kills.append(Kill(collector.name, before, self.written()))
        self.gone_for(collector, seconds)

    def kill_short(self):
        """It is back before its relays have gone to others."""
        self.kill(self.random.choice(self.collectors), 0)

    def kill_long(self):
        self.kill(self.random.choice(self.collectors), 6 * MOVE_AFTER_S)

    def drain(self):
        """And an upgrade, so to say."""
        collector = self.random.choice(self.collectors)
        self.command("fleet", "drain", "--connect", collector.consumer,
                     "--after", "2s", "--timeout", "5m")
        collector.daemon.stop()
        self.gone_for(collector, self.random.random() * 4)

    def restart_haproxy(self):
        before = self.snapshots[0][1]
        self.haproxy.stop()
        self.cuts.append(Cut(before, self.written()))
        self.rest(self.random.random() * 2)
        self.haproxy.start()

    def add(self):
        """A third collector."""
        self.add_collector(3)
        self.haproxy.set(*self.words())
        self.restart_haproxy()

    def kill_keeper(self):
        """Archiver and uploader of a collector."""
        keeper = self.random.choice(self.stored.keepers)
        keeper.kill()
        keeper.start()

    def bucket_away(self):
        self.stored.cut_bucket()
        self.later(self.stored.mend_bucket)

    def postgresql_away(self):
        self.stored.server.kill()
        self.later(self.stored.server.start)

    def later(self, what):
        """All else goes on meanwhile."""
        self.due.append((time.monotonic() + self.away_s, what))

    def serve_due(self, now):
        for entry in [entry for entry in self.due if entry[0] <= now]:
            self.due.remove(entry)
            entry[1]()

    def suffer(self, what):
        self.say(what.__name__)
        try:
            what()
        except AssertionError as error:
            self.wrong(f"{what.__name__}: {error}")
        self.done[what.__name__] += 1

    def storm(self, seconds):
        began = time.monotonic()
        self.rest(seconds / 20)
        self.suffer(self.add)
        kinds = [self.kill_short, self.kill_long, self.drain,
                 self.restart_haproxy]
        if self.stored:
            kinds.append(self.kill_keeper)
            self.suffer(self.bucket_away)
        turn = []
        while time.monotonic() - began < seconds:
            if not turn:
                turn = self.random.sample(kinds, len(kinds))
            self.suffer(turn.pop())
            self.rest(self.random.expovariate(1 / self.pause_s))
            self.look(time.monotonic() - began)
            if self.stored and not self.due and \
                    not self.done["postgresql_away"]:
                self.suffer(self.postgresql_away)

    def look(self, seconds):
        self.crowd.check()
        entries = self.entries().values()
        self.say(f"{seconds:5.0f} s: "
                 f"{sum(entry.written for entry in entries)} packets, "
                 f"{sum(len(one.segments()) for one in self.collectors)} "
                 "segments")

    # -- the end --

    def calm(self):
        """Everything that was written is on its way, and then in files."""
        self.crowd.ask_to_end()
        self.until(lambda: not self.crowd.running(), "the crowd ends", 300)
        self.crowd.end()
        for device in self.devices:
            self.until(device.empty, f"{device.name} has sent everything", 300)
            self.moves += device.log().count("goes on there")
            self.told.append({cause: packets for cause, (_, packets) in
                              device.losses().items()})
        for one in self.collectors:
            one.daemon.stop()
        for device in self.devices:
            device.stop()
        if self.stored:
            self.until(lambda: not self.due and self.stored.has_all(),
                       "all segments are stored, and their rows", 300)
            for keeper in self.stored.keepers:
                keeper.stop()

    def audit(self):
        spread = Spread(self.kills, self.cuts, self.told)
        for one in self.collectors:
            if parts := one.segments(".part"):
                self.wrong(f"parts are left: {parts}")
            for path in one.segments():
                spread.read(one.name, path)
        spread.finish(self.entries())
        for sentence in spread.wrong:
            self.wrong(sentence)
        for kill in self.kills:
            if kill.packets * 400 > BUFFER_KB * 1024:
                self.wrong(f"{kill.collector} lost {kill.packets} packets by "
                           "a kill, more than it can have had")
        return spread

    def run(self, seconds):
        self.start()
        self.storm(seconds)
        self.calm()
        spread = self.audit()
        for sentence in self.stored.faults() if self.stored else ():
            self.wrong(sentence)
        return {
            "seconds": seconds, "relays": self.n_relays,
            "producers": self.n_producers, "rate": self.rate,
            "good": not self.faults, "faults": self.faults,
            "done": dict(self.done), "moves": self.moves,
            "written": sum(self.written().values()), **spread.counts,
            "causes": spread.causes, "uncounted": spread.uncounted, "kills": [
                {"collector": kill.collector, "packets": kill.packets,
                 "early": kill.early, "unseen": kill.unseen}
                for kill in self.kills],
        }

    def end(self):
        """Whatever happened."""
        if self.crowd is not None:
            self.crowd.abandon()
        for device in self.devices:
            if device.running():
                device.signal(signal.SIGKILL)
                device.process.wait()
        if self.haproxy is not None and self.haproxy.process is not None:
            self.haproxy.stop()
        for one in self.collectors:
            one.web.stop()
            one.daemon.kill()
        if self.stored:
            self.stored.end()
        self.loop.close()


def summary(report):
    return (f"{'GOOD' if report['good'] else 'NOT GOOD'}: " + ", ".join(
        f"{report[name]} {name}" for name in
        ("relays", "producers", "segments", "written", "present", "told",
         "killed", "twice", "untold", "doubled", "disordered", "altered")) + "; " +
        ", ".join(f"{n} {what}" for what, n in sorted(
            report["done"].items())))


def main():
    parser = argparse.ArgumentParser(prog="tests/soak fleet")
    parser.add_argument("minutes", type=float, nargs="?", default=10)
    parser.add_argument("--relays", type=int, default=30)
    parser.add_argument("--producers", type=int, default=300)
    parser.add_argument("--rate", type=int, default=1000,
                        help="bytes per second of each producer")
    parser.add_argument("--seed", type=int,
                        default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    folder = os.environ["SOAK_FOLDER"]
    soak = FleetSoak(folder, options.seed, options.relays, options.producers,
                     options.rate, keep=not stored.MISSING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    soak.say(f"seed {options.seed}, in {folder}")
    if stored.MISSING:
        soak.say("no bucket and no PostgreSQL: there is no " +
                 ", ".join(stored.MISSING))
    try:
        report = soak.run(options.minutes * 60)
    finally:
        soak.end()
    report["seed"] = options.seed
    with open(os.path.join(folder, "report.json"), "w") as file:
        json.dump(report, file, indent=1)
    print(summary(report), flush=True)
    return 0 if report["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
