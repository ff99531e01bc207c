"""One collector; churn, faults and load together for hours; and at the end
everything is taken away, and nothing may be left or unaccounted for.

	soak.py HOURS [SEED]

Called by tests/soak, which sets the environment.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from harness import pb, pki
from harness.chaos import Proxy
from harness.consumer import Consumer, config
from harness.daemon import Daemon
from harness.device import Device
from harness.loop import SCALE, Loop, TimedOut
from soak.crowd import Crowd, Keys
from soak.sessions import FAULTS, Sessions, Verifier, tagged
from soak.watch import Sample, open_files

SLOTS = 10          # sessions at a time
CUT_MEAN_MS = 4000  # between two cuts of one relay's connection
# How much more the collector may hold at the end than before: pages of which a
# few bytes are in use (what lives on was allocated between what went), and of
# libraries that nobody needed before.  Neither grows with the time.
GROWTH_KB = 2 * 1024
SETTLE_S = 45
LONG_TAG = 1

SETTINGS = """
limits {
  max_sessions: 128
  max_sessions_per_uid: 128
  ignore_free_memory: true
  bind_timeout_ms: 5000
}
link { grace_ms: 15000 end_wait_ms: 2000 }
"""


class Soak:
    n_devices = 12
    calm_s = 8  # until its free pages are the kernel's again

    def __init__(self, folder, seed):
        self.folder = folder
        self.random = random.Random(seed)
        self.loop = Loop()
        self.keys = Keys()
        self.connections = []
        self.devices = []
        self.crowds = {}
        self.proxy = None
        self.daemon = None
        self.tiny = None
        self.tags = LONG_TAG
        self.rounds = 0
        self.long_found = None
        self.cuts = 0
        self.lives = self.clones = self.cut_off = self.full = 0
        self.device_kills = self.reloads = self.device_stops = 0
        self.calls = {}
        self.running = {}
        self.verifying = self.verified = 0
        self.totals = {}
        self.faults = []
        self.samples = []
        self.sources = ["soak.steady", "soak.mortal", "soak.frozen",
                        "soak.relay"]

    # -- what sessions ask --

    def next_tag(self):
        self.tags += 1
        return self.tags

    def consumer(self):
        made = Consumer(self.loop, self.daemon.consumer_path)
        self.connections.append(made)
        return made

    def disconnect(self, consumer):
        if consumer in self.connections:
            consumer.close()
            self.connections.remove(consumer)

    def begun(self, session):
        self.running[session.slot] = session.began

    def ended(self, session):
        self.running.pop(session.slot, None)

    def ledgers(self, since):
        return [path for crowd in self.crowds.values()
                for path in crowd.ledgers(since)]

    def count(self, found):
        self.verified += 1
        for key, value in found.items():
            if isinstance(value, int) and not isinstance(value, bool):
                self.totals[key] = self.totals.get(key, 0) + value
        for cause, packets in found.get("causes", {}).items():
            causes = self.totals.setdefault("causes", {})
            causes[cause] = causes.get(cause, 0) + packets

    def wrong(self, sentence):
        self.faults.append(sentence)
        self.say(f"WRONG: {sentence}")

    def say(self, sentence):
        print(time.strftime("%H:%M:%S"), sentence, flush=True)

    # -- what there is --

    def start_collector(self):
        path = os.path.join(self.folder, "settings")
        with open(path, "w") as file:
            file.write(SETTINGS)
        flags = ["--enable-relay-endpoint", "--config", path, "--log-level",
                 "info"]
        producers = [os.path.join(self.folder, "p"), "127.0.0.1:0"]
        self.pki = None
        if pki.OPENSSL:
            self.pki = pki.Pki(os.path.join(self.folder, "pki"))
            self.collector_dir = self.pki.collector()
            self.device_dir = self.pki.issue("device", role="producer")
            flags += ["--tls-dir", self.collector_dir]
            producers.append("tls://127.0.0.1:0")
        self.daemon = Daemon(self.folder, producer=producers, flags=flags)
        self.daemon.start()
        # Addresses stand in the log, which only says so much later on.
        self.places = [self.daemon.producer_path, self.address("tcp")]
        if self.pki:
            self.places.append(self.address("tls"))

    def address(self, kind):
        return self.daemon.address("producers", kind)

    def mount_tiny(self):
        """A disk that is soon full, where one may be mounted."""
        path = os.path.join(self.folder, "tiny")
        os.makedirs(path, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m",
                               "tmpfs", path], capture_output=True)
        self.tiny = path if done.returncode == 0 else None

    def unmount_tiny(self):
        if self.tiny is not None:
            subprocess.run(["umount", self.tiny], check=True)
        self.tiny = None

    def make_devices(self):
        self.proxy = Proxy(os.path.join(self.folder, "proxy.log"), *[
            ("127.0.0.1:0", self.places[n % 2]) for n in range(self.n_devices)])
        # Keepers of the last round may still be ending in their folders.
        self.rounds += 1
        folder = os.path.join(self.folder, f"round{self.rounds}")
        os.makedirs(folder)
        for n, near in enumerate(self.proxy.addresses):
            device = Device(folder, f"d{n}", near, spool_kb=65536,
                            flags=["--log-level", "warn"])
            self.devices.append(device.start())

    def crowd(self, name, places, *args, **options):
        where = []
        for place in places:
            where += ["--connect", place]
        if self.pki:
            where += ["--tls-dir", self.device_dir, "--tls-name", "localhost"]
        crowd = Crowd(self.folder, name, self.keys, *where, "--source",
                      f"soak.{name}", *args, **options)
        self.crowds[name] = crowd
        return crowd

    def make_crowds(self):
        wide = ("--size", "80-400", "--big", "1:9000", "--patches")
        relays = [device.socket for device in self.devices]
        self.crowd("steady", self.places, "--producers", 60, "--rate", "10K",
                   "--churn", "5:mixed", *wide)
        self.crowd("mortal", self.places, "--producers", 15, "--rate", "10K",
                   *wide, mortal=True)
        self.crowd("frozen", self.places, "--producers", 10, "--rate", "10K",
                   "--churn", "0.5:cut", *wide)
        self.crowd("relay", relays, "--producers", 24, "--rate", "5K",
                   "--churn", "0.5:mixed", *wide)
        self.crowd("slow", self.places, "--producers", 6, "--rate", "5K",
                   "--slow", "reads:2,answers:2,never:2", *wide)
        self.crowd("long", [*self.places, *relays], "--producers", 30,
                   "--rate", "2K", "--churn", "1:mixed", *wide)
        # They write what the steady ones are asked for, and it is forged.
        self.crowd("hostile", self.places, "--producers", 0, "--source",
                   "soak.steady", "--hostile",
                   "mute:5,half:5,garbage:3,too-big:3,flood:1,wrong-ids:3,"
                   "forged:3,registrations:1", mortal=True)
        for crowd in self.crowds.values():
            crowd.start()

    def start_long(self):
        """A file session for the whole time."""
        self.long_path = os.path.join(self.folder, "trace.long")
        self.long = self.consumer()
        fd = os.open(self.long_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.long.enable(config(
            tagged("soak.long", LONG_TAG), size_kb=16384,
            trace_all_machines=True, write_into_file=True,
            file_write_period_ms=1000, flush_timeout_ms=5000,
            data_source_stop_timeout_ms=20000), [fd])
        os.close(fd)

    # -- misfortunes --

    def kill_mortal(self):
        self.crowds["mortal"].kill()
        self.crowds["mortal"].start()

    def freeze(self):
        self.crowds["frozen"].freeze()
        self.later(1 + self.random.random() * 6, self.crowds["frozen"].thaw)

    def restart_hostile(self):
        self.crowds["hostile"].kill()
        self.crowds["hostile"].start()

    def kill_device(self):
        device = self.random.choice(self.devices)
        if device in self.resting:
            return
        try:
            device.kill()
        finally:
            device.start()
        self.device_kills += 1

    def freeze_device(self):
        device = self.random.choice(self.devices)
        if device in self.resting:
            return
        device.signal(signal.SIGSTOP)
        self.device_stops += 1
        self.resting.add(device)

        def wake():
            device.signal(signal.SIGCONT)
            self.resting.discard(device)
        self.later(0.5 + self.random.random() * 3, wake)

    def reload(self):
        if self.pki:
            self.pki.collector(folder=self.collector_dir)
            if self.random.random() < 0.5:
                self.daemon.signal(signal.SIGHUP)
            self.reloads += 1

    def fill(self):
        if self.tiny is None:
            return
        path = os.path.join(self.tiny, "filler")
        try:
            with open(path, "wb") as file:
                file.write(bytes(4 << 20))
        except OSError:
            pass  # as it should
        self.later(3, lambda: os.path.exists(path) and os.unlink(path))

    def later(self, seconds, what):
        self.agenda.append((time.monotonic() + seconds, what))

    def misfortunes(self):
        """(mean seconds between, what)."""
        return [(25, self.kill_mortal), (20, self.freeze),
                (60, self.restart_hostile), (12, self.kill_device),
                (15, self.freeze_device), (40, self.reload), (30, self.fill)]

    def next_misfortune(self, mean, what):
        def happen():
            if not self.over:
                what()
                self.next_misfortune(mean, what)
        self.later(self.random.expovariate(1 / mean), happen)

    def serve(self, lives):
        """A turn; those that still live."""
        self.loop.turn(0.01)
        now = time.monotonic()
        due = [entry for entry in self.agenda if entry[0] <= now]
        self.agenda = [entry for entry in self.agenda if entry[0] > now]
        for _, what in due:
            self.attempt(what)
        return [life for life in lives if life.step()]

    def attempt(self, what):
        """What goes wrong with it is a fault, and the rest goes on."""
        try:
            return what()
        except AssertionError as error:
            self.wrong(str(error)[:2000])
            return None

    def check_crowds(self):
        for crowd in self.crowds.values():
            try:
                crowd.check()
            except AssertionError as error:
                self.wrong(str(error)[:2000])
                crowd.start()

    # -- a round: everything at once, and then nothing --

    def round(self, seconds, every):
        self.agenda = []
        self.resting = set()
        self.over = False
        self.make_devices()
        self.make_crowds()
        self.start_long()
        self.bad_network()
        for mean, what in self.misfortunes():
            self.next_misfortune(mean, what)
        lives = self.make_lives()
        began = told = time.monotonic()
        while time.monotonic() - began < seconds:
            lives = self.serve(lives)
            if time.monotonic() - told >= every:
                told = time.monotonic()
                self.attempt(lambda: self.look(told - began))
        self.over = True
        for life in lives:
            life.over = True
        while lives:
            lives = self.serve(lives)
        self.take_away()

    def bad_network(self):
        self.proxy.say("delay 1 3")
        self.proxy.say(f"random {self.random.randrange(1 << 20)} "
                       f"{CUT_MEAN_MS}")

    def make_lives(self):
        return [Sessions(self, slot, random.Random(self.random.random()))
                for slot in range(SLOTS)]

    def look(self, seconds):
        """A line, and nobody ended by himself meanwhile."""
        self.check_crowds()
        sample = Sample(self.daemon.pid)
        state = self.control.query()
        fields = {"seconds": round(seconds), **sample.fields(),
                  "producers": len(state.producers),
                  "connections": sample.fds, "sessions": state.num_sessions,
                  "accounted": self.accounted(), "faults": len(self.faults),
                  "traces": self.verified, "proxy": self.proxy.stats()}
        self.samples.append(fields)
        self.say(f"{seconds:5.0f} s: {sample}, {len(state.producers)} "
                 f"producers, {state.num_sessions} sessions; "
                 f"{self.verified} traces, {self.accounted()} packets "
                 f"accounted for, {len(self.faults)} wrong; "
                 f"{fields['proxy']['cuts']} cuts")
        oldest = min(self.running.values(), default=time.monotonic())
        for name, crowd in self.crowds.items():
            if name != "long":
                crowd.forget(oldest - 1)

    def accounted(self):
        return self.totals.get("present", 0) + self.totals.get("told", 0)

    def until(self, condition, what, timeout):
        """True, or it is a fault."""
        try:
            return self.loop.until(condition, what, timeout=timeout)
        except TimedOut as error:
            self.wrong(str(error))
            return None

    def calm(self):
        """Misfortunes end, and all are linked again."""
        self.proxy.say("heal")
        while self.agenda:  # all of it, now
            self.agenda = [(0, what) for _, what in self.agenda]
            self.serve([])
        for crowd in self.crowds.values():
            crowd.thaw()
        self.check_crowds()
        for device in self.devices:
            self.until(device.linked, f"{device.name} is linked", 30)

    def end_long(self):
        """With everything that was on its way."""
        self.calm()
        flush = self.long.call("Flush", pb.FlushRequest(timeout_ms=20000))
        self.until(flush.ended, "the last flush", 30)
        if flush.rejected:
            self.wrong("the last flush failed")
        self.long.call("DisableTracing")
        if self.until(self.long.session.ended, "the long session ends", 60):
            reply = pb.EnableTracingResponse.FromString(
                self.long.session.replies[-1])
            if reply.error:
                self.wrong(f"the long session: {reply.error}")
            verifier = Verifier(self, self.long_path, LONG_TAG,
                                self.crowds["long"].ledgers(0), ())
            self.until(verifier.ended, "the verifier", 300)
            self.long_found = verifier.result()
        self.disconnect(self.long)
        os.unlink(self.long_path)

    def take_away(self):
        self.end_long()
        self.cuts = self.proxy.stats()["cuts"]
        for crowd in self.crowds.values():
            crowd.ask_to_end()
        for crowd in self.crowds.values():
            self.attempt(crowd.end)
        for device in self.devices:
            self.attempt(device.stop)
            shutil.rmtree(device.folder, ignore_errors=True)
        self.attempt(self.proxy.stop)
        self.forget()
        self.devices = []

    def forget(self):
        """Nobody asks for the ledgers any more."""
        for crowd in self.crowds.values():
            crowd.forget(time.monotonic() + 1)

    def settle(self, bound_kb=None, fds=None):
        """A sample of the collector with nobody left."""
        def alone():
            state = self.control.query()
            return not state.producers and state.num_sessions == 0
        self.until(alone, "everybody is gone", SETTLE_S)

        def small():
            now = Sample(self.daemon.pid)
            return (fds is None or now.fds == fds) and \
                (bound_kb is None or SCALE != 1 or now.rss_kb <= bound_kb)
        deadline = time.monotonic() + SETTLE_S
        self.loop.settle(self.calm_s)
        while not small() and time.monotonic() < deadline:
            self.loop.settle(0.5)
        return Sample(self.daemon.pid)

    # -- all of it --

    def run(self, seconds):
        self.start_collector()
        self.mount_tiny()
        self.control = self.consumer()
        fresh = Sample(self.daemon.pid)
        self.say(f"fresh: {fresh}")
        warm = self.warm_seconds(seconds)
        every = 60 if seconds >= 600 else 15
        self.round(warm, every)
        begin = self.settle()
        files = open_files(self.daemon.pid)
        self.say(f"after {warm:.0f} s to get warm, with everybody gone: "
                 f"{begin}")
        self.round(seconds, every)
        end = self.settle(begin.rss_kb + GROWTH_KB, begin.fds)
        self.say(f"at the end, with everybody gone: {end}")
        self.compare(begin, end, files)
        return self.report(seconds, fresh, begin, end)

    @staticmethod
    def warm_seconds(seconds):
        return min(60, max(20, seconds / 6))

    def compare(self, begin, end, files):
        if end.fds != begin.fds:
            self.wrong(f"descriptors: {begin.fds} at the beginning, "
                       f"{end.fds} at the end: {files}, "
                       f"{open_files(self.daemon.pid)}")
        if end.threads != begin.threads:
            self.wrong(f"threads: {begin.threads} at the beginning, "
                       f"{end.threads} at the end")
        # Sanitizers keep freed memory back: there it says nothing.
        if SCALE == 1 and end.rss_kb > begin.rss_kb + GROWTH_KB:
            self.wrong(f"memory: {begin.rss_kb} KiB at the beginning, "
                       f"{end.rss_kb} KiB at the end, {GROWTH_KB} more "
                       "are allowed")

    def report(self, seconds, fresh, begin, end):
        crowds = self.crowds
        return {
            "seconds": seconds, "good": not self.faults,
            "faults": self.faults, "fresh": fresh.fields(),
            "begin": begin.fields(), "end": end.fields(),
            "allowed_growth_kb": GROWTH_KB, "traces": self.verified,
            "sessions": self.lives, "clones": self.clones,
            "consumers_cut_off": self.cut_off, "disks_full": self.full,
            "packets": self.totals, "long": self.long_found,
            "cuts": self.cuts, "relays_killed": self.device_kills,
            "relays_frozen": self.device_stops,
            "producers_killed": crowds["mortal"].kills,
            "producers_frozen": crowds["frozen"].stops,
            "hostile_killed": crowds["hostile"].kills,
            "certificates": self.reloads, "calls": self.calls,
            "loads": {name: crowd.reports[-1] for name, crowd in
                      crowds.items() if crowd.reports},
            "rss_under_load_kb": quarters(self.samples),
            "samples": self.samples,
        }

    def end(self):
        """Whatever happened."""
        for crowd in self.crowds.values():
            crowd.abandon()
        for device in self.devices:
            if device.running():
                device.signal(signal.SIGKILL)
                device.process.wait()
        if self.proxy is not None and self.proxy.process is not None:
            self.proxy.process.kill()
            self.proxy.process.wait()
        for connection in self.connections:
            connection.close()
        self.loop.close()
        try:
            if self.daemon is not None:
                self.daemon.stop()
        finally:
            self.unmount_tiny()


def quarters(samples):
    """The median of each quarter: what grows, grows here first."""
    out = []
    for n in range(4):
        part = sorted(s["rss_kb"] for s in samples[
            len(samples) * n // 4:len(samples) * (n + 1) // 4])
        out.append(part[len(part) // 2] if part else None)
    return out


def summary(report):
    packets = report["packets"]
    wrong = sum(packets.get(key, 0) for key in FAULTS)
    begin, end = report["begin"], report["end"]
    return (f"{'GOOD' if report['good'] else 'NOT GOOD'}: "
            f"{report['seconds'] / 3600:g} h, {report['sessions']} sessions, "
            f"{report['traces']} traces, "
            f"{packets.get('present', 0)} packets there, "
            f"{packets.get('told', 0)} missing and told, {wrong} unaccounted "
            f"for; {report['cuts']} cuts, "
            f"{report['relays_killed']} relays and "
            f"{report['producers_killed']} crowds of producers killed; "
            f"memory {begin['rss_kb']} -> {end['rss_kb']} KiB, descriptors "
            f"{begin['fds']} -> {end['fds']}, threads {begin['threads']} -> "
            f"{end['threads']}")


def main(make=Soak, summary=summary):
    seconds = float(sys.argv[1]) * 3600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else \
        time.time_ns() % 1_000_000
    folder = os.environ["SOAK_FOLDER"]
    soak = make(folder, seed)
    # Who is told to end takes everything along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    soak.say(f"seed {seed}, in {folder}")
    report = {"good": False}
    try:
        report = soak.run(seconds)
    finally:
        try:
            soak.end()
        except AssertionError as error:
            soak.wrong(str(error))
            report.update(good=False, faults=soak.faults)
        report["seed"] = seed
        with open(os.path.join(folder, "report.json"), "w") as file:
            json.dump(report, file, indent=1)
    print(summary(report), flush=True)
    return 0 if report["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
