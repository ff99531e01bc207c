"""One collector with ten recordings that are cut all the time, into an archive;
faults; and at the end each packet is in exactly one segment, or told as lost.

	archive.py HOURS [SEED]

Called by tests/soak, which sets the environment.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time

from harness import faults, imported, inspected, pb, ports
from harness.archive import Archive
from harness.daemon import SANITIZER_LINES, Daemon, environment
from harness.loop import SCALE
from harness.trace import first_packet, split_file
from soak import books
from soak.sessions import Verifier
from soak.soak import Soak, main, quarters
from soak.watch import Sample

PERIOD_MS = 500       # between two writes of a session's file
FLIGHT_BEFORE_MS = 3000
FLIGHT_AFTER_MS = 1000

SETTINGS = """
archive_dir: "{archive}"
limits {{
  max_sessions: 128
  max_sessions_per_uid: 128
  ignore_free_memory: true
  bind_timeout_ms: 5000
}}
link {{ grace_ms: 15000 end_wait_ms: 2000 }}
"""
CONFIG = """
buffers {{ size_kb: 8192 }}
file_write_period_ms: {period}
flush_period_ms: {flush}
flush_timeout_ms: 2000
data_source_stop_timeout_ms: {stop}
trace_all_machines: true
{more}
"""
DATA_SOURCE = """
data_sources {{ config {{ name: "soak.{name}" for_testing {{ seed: {tag} }} }} }}
"""
EVERY = "every_ms: 10000"
ALL = ("local", "state", "relay", "relaystate", "mortal")
# Name: (rotate and split, of the config, sources)
RECORDINGS = {
    "time": (f"rotate {{ {EVERY} }}", "", ALL),
    "size": ("rotate { size_kb: 256 }", "", ALL),
    "trigger": ('rotate { at_trigger: "cut" }', "", ALL),
    "machine": (f"rotate {{ {EVERY} }} split: BY_MACHINE", "", ALL),
    "zstd": (f"rotate {{ {EVERY} }}", "compression { zstd { level: 3 } }",
             ALL),
    "deflate": (f"rotate {{ {EVERY} size_kb: 128 }}",
                "compression { deflate { } }", ALL),
    "state": (f"rotate {{ {EVERY} }}", "", ("state", "relaystate")),
    "slow": (f"rotate {{ {EVERY} }}", "", ("local", "slow")),
    "local": (f'rotate {{ {EVERY} at_trigger: "cut" }}', "",
              ("local", "mortal")),
    "flight": (f"flight {{ before_ms: {FLIGHT_BEFORE_MS} after_ms: "
               f'{FLIGHT_AFTER_MS} at_trigger: "drop" }}', "",
               ("local", "state", "relay")),
}
# Crowds whose connection is the collector's own: what it answered for, it has.
DIRECT = ("local", "state", "slow", "mortal")
# Rows of Trace Processor's stats that are so by what is done here: devices that
# never answer, and those that are cut off or killed before a packet is patched.
EXPLAINED = {
    "traced_flushes_failed", "traced_final_flush_failed",
    "traced_buf_trace_writer_packet_loss",
}
# And by devices that did not clear their state at the cut before, or by the ring
# of a flight recorder, which has overwritten where a sequence began.
NOT_CLEARED = {"traced_buf_incremental_sequences_dropped"}


class ArchiveSoak(Soak):
    n_devices = 6
    stop_timeout_ms = 3000
    sample = 200  # segments that Trace Processor opens
    # No kill and no upgrade behind so much of the time: what the last collector
    # holds at the end is what it kept of all the rest.
    mortal_share = 0.75

    def __init__(self, folder, seed):
        super().__init__(folder, seed)
        self.pki = None
        self.archive = Archive(os.path.join(folder, "archive"))
        os.makedirs(self.archive.folder)
        self.settings = os.path.join(folder, "settings")
        self.plan = faults.Plan(os.path.join(folder, "plan"),
                                match="/archive/")
        self.names = list(RECORDINGS)
        self.changes = dict.fromkeys(self.names, 0)
        self.marks = books.Marks()
        self.flights = []  # (CLOCK_REALTIME, CLOCK_BOOTTIME, entries then)
        self.reindexing = []
        self.orders = []
        self.collectors = 0
        self.done = {}     # misfortune: times
        self.logs = []
        self.is_warm = False

    # -- the collector --

    def write_settings(self):
        text = SETTINGS.format(archive=self.archive.folder)
        for name, (rotate, _, _) in RECORDINGS.items():
            self.write_config(name)
            text += f'recording {{ name: "{name}" config_file: ' \
                f'"{name}.pbtx" file_pattern: "%recording/' \
                f'{"%machine-" if "BY_MACHINE" in rotate else ""}' \
                f'%H%M%S-%n.pftrace" {rotate} }}\n'
        with open(self.settings, "w") as file:
            file.write(text)

    def write_config(self, name):
        _, more, sources = RECORDINGS[name]
        text = CONFIG.format(period=PERIOD_MS, more=more,
                             stop=self.stop_timeout_ms,
                             flush=5000 - self.changes[name] % 100)
        for source in sources:
            text += DATA_SOURCE.format(name=source, tag=self.tag(name))
        with open(os.path.join(self.folder, f"{name}.pbtx"), "w") as file:
            file.write(text)

    def tag(self, name):
        return 1 + self.names.index(name)

    def start_collector(self):
        self.write_settings()
        self.tcp = ports.free_address()
        self.places = [os.path.join(self.folder, "p"), self.tcp]
        self.begin_collector()

    def begin_collector(self):
        self.daemon = Daemon(
            self.folder, producer=self.places, env=self.plan.env(),
            flags=["--enable-relay-endpoint", "--config", self.settings,
                   "--log-level", "info"])
        self.logs.append(self.daemon.log_path)
        self.daemon.start()

    def mount_tiny(self):
        pass

    def command(self, *words):
        """Status and what it said."""
        done = subprocess.run(
            [os.environ["TRIBUTARY"], *words], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=120 * SCALE, env=environment(
                PERFETTO_CONSUMER_SOCK_NAME=self.daemon.consumer_path,
                PERFETTO_PRODUCER_SOCK_NAME=self.daemon.producer_path))
        return done.returncode, done.stdout + done.stderr

    def must(self, *words):
        code, said = self.command(*words)
        assert code == 0, f"tributary {' '.join(words)}: {code}: {said}"
        return said

    def state(self):
        """{name: its object}"""
        return {r["name"]: r for r in
                json.loads(self.must("recordings", "--json"))}

    def order(self, *words, then=lambda: None):
        """The same, while all goes on; it need not be done when the collector
        is another one."""
        process = subprocess.Popen(
            [os.environ["TRIBUTARY"], "recordings", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=environment(
                PERFETTO_CONSUMER_SOCK_NAME=self.daemon.consumer_path))
        self.orders.append(process)

        def look():
            _, said = process.communicate()
            self.orders.remove(process)
            assert process.returncode == 0, f"{words}: {said}"
            then()
        self.soon(lambda: process.poll() is not None, look,
                  f"recordings {' '.join(words)} is done")

    def soon(self, condition, then, what):
        """When it is so, while all goes on; nothing, when the collector is
        another one."""
        collector, lives = self.daemon, self.collectors
        until = time.monotonic() + 90 * SCALE

        def look():
            if (collector, lives) != (self.daemon, self.collectors):
                return
            if condition():
                then()
            elif time.monotonic() > until:
                raise AssertionError(f"not within {90 * SCALE:g} s: {what}")
            else:
                self.later(0.2, look)
        look()

    def begin(self, *names):
        """Those that do not record."""
        for name in names:
            code, said = self.command("recordings", "start", name)
            assert code == 0 or "records already" in said, said

    def recording_now(self):
        return {name: r for name, r in self.state().items()
                if r["state"] == "recording"}

    # -- the load --

    def make_crowds(self):
        wide = ("--rate", "8K", "--size", "80-400", "--big", "1:9000",
                "--patches")
        relays = [device.socket for device in self.devices]
        self.crowd("local", self.places, "--producers", 16, "--churn",
                   "1:mixed", *wide)
        self.crowd("state", self.places, "--producers", 16, "--state",
                   "--churn", "1:mixed", *wide)
        self.crowd("relay", relays, "--producers", 10, "--churn", "0.2:mixed",
                   *wide)
        self.crowd("relaystate", relays, "--producers", 10, "--state",
                   "--churn", "0.2:mixed", *wide)
        self.crowd("slow", self.places, "--producers", 6, "--state", "--slow",
                   "never:2,answers:2,reads:2", *wide)
        self.crowd("mortal", self.places, "--producers", 6, "--state", *wide,
                   mortal=True)
        for crowd in self.crowds.values():
            crowd.start()

    def ledgers(self, since=0):
        """All, as every session counts until the end."""
        return super().ledgers(0)

    def forget(self):
        pass

    def entries(self):
        """{key: Entry} of all that there is."""
        found = {}
        for path in self.ledgers():
            found.update(books.read(path))
        return found

    def is_direct(self, key):
        return any(key in life.keys for name in DIRECT
                   for life in self.crowds[name].lives)

    # -- recordings, while they are recorded --

    def start_long(self):
        self.begin(*self.names)

    def make_lives(self):
        return []

    def misfortunes(self):
        often = [(8, self.trigger_cut), (15, self.trigger_flight),
                 (10, self.rotate), (15, self.reindex), (20, self.stop_one),
                 (30, self.change_one), (25, self.slow_disk),
                 (20, self.kill_device), (25, self.freeze_device),
                 (90, self.kill_mortal)]
        rare = [(150, self.kill_collector), (150, self.upgrade),
                (150, self.full_disk)] if self.is_warm else []
        return [(min(mean, self.seconds / few), self.counted(what))
                for few, kinds in ((10, often), (3, rare))
                for mean, what in kinds]

    def counted(self, what):
        ends = (self.kill_collector, self.upgrade)

        def happen():
            if what in ends and time.monotonic() > self.lives_end:
                return
            what()
            name = what.__name__
            self.done[name] = self.done.get(name, 0) + 1
        return happen

    def trigger_cut(self):
        self.must("trigger", "cut")

    def trigger_flight(self):
        entries = self.entries()
        self.flights.append((time.time_ns(), time.clock_gettime_ns(
            time.CLOCK_BOOTTIME), entries))
        self.must("trigger", "drop")

    def rotate(self):
        name = self.random.choice(self.names[:-1])
        code, said = self.command("recordings", "rotate", name)
        # What was stopped, or waits after a full disk, has no segment.
        assert code == 0 or "does not record" in said or \
            name not in self.recording_now(), said

    def reindex(self):
        """Beside everything, two of them at a time."""
        self.reap()
        if len(self.reindexing) < 2:
            self.reindexing.append(subprocess.Popen(
                self.archive.command("reindex"), stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, env=environment()))

    def reap(self, wait=False):
        for process in list(self.reindexing):
            if wait or process.poll() is not None:
                _, said = process.communicate()
                self.reindexing.remove(process)
                if process.returncode != 0:
                    self.wrong(f"archive reindex: {process.returncode}: "
                               f"{said}")

    def stop_one(self):
        name = self.random.choice(self.names)
        self.order("stop", name, then=lambda: self.later(
            self.random.random() * 4, lambda: self.begin(name)))

    def change_one(self):
        name = self.random.choice(self.names)
        before = self.state()[name]
        self.changes[name] += 1
        self.write_config(name)
        self.daemon.signal(signal.SIGHUP)
        if before["state"] in ("recording", "armed"):
            def changed():
                now = self.state()[name]
                return now["begun"] > before["begun"] or \
                    now["state"] == "stopped"
            self.soon(changed, lambda: None, f"recording {name} begins anew, "
                      "as its config has changed")

    def slow_disk(self):
        delay, most = self.random.choice(
            ((200_000, 0), (20_000, 0), (2_000, 777)))
        self.plan.write_delay_us, self.plan.short_bytes = delay, most
        self.later(1 + self.random.random() * 4, self.heal_disk)

    def heal_disk(self):
        self.plan.heal()

    def written_out(self):
        """What was taken by now is in the files afterwards; the entries of
        now."""
        self.heal_disk()
        entries = self.entries()
        self.loop.settle(2 * PERIOD_MS / 1000 * SCALE)
        for _ in range(2):
            before = self.recording_now()

            def grown():
                now = self.recording_now()
                return all(name not in now or
                           now[name]["session"] != was["session"] or
                           now[name]["bytes"] > was["bytes"]
                           for name, was in before.items())
            self.loop.until(grown, "all recordings are written on")
        return entries

    def kill_collector(self):
        before = self.written_out()
        if self.random.random() < 0.7:
            self.command("recordings", "rotate", *self.recording_now())
            self.loop.settle(self.random.random() * 0.2)
        self.daemon.kill()
        self.marks.cut_short(before, self.entries(), self.is_direct)
        self.begin_collector()
        self.new_collector()

    def new_collector(self):
        self.disconnect(self.control)
        self.control = self.consumer()
        self.collectors += 1

    def upgrade(self):
        self.heal_disk()

        def called_off():  # as a busy machine may do
            return self.daemon.log().count("sessions were not done in time")
        while not self.control.closed:
            before = called_off()
            self.daemon.signal(signal.SIGUSR2)
            self.loop.until(
                lambda n=before: self.control.closed or called_off() > n,
                "the upgrade begins")
        self.new_collector()
        self.loop.until(
            lambda: len(self.recording_now()) == len(self.names) - 1,
            "recordings begin after the upgrade")

    def full_disk(self):
        before = self.written_out()
        was = self.recording_now()
        self.plan.write_errno = errno.ENOSPC
        self.loop.until(
            lambda: not set(self.recording_now()) & set(was),
            "a full disk ends all recordings")
        self.heal_disk()
        waiting = [name for name, r in self.state().items()
                   if r["state"] == "waiting"]
        self.marks.cut_short(before, self.entries(), self.is_direct)
        self.begin(*waiting)

    # -- the end of a round --

    def end_long(self):
        self.calm()
        self.heal_disk()
        for device in self.devices:
            self.until(device.linked, f"{device.name} is linked", 60)
        self.must("recordings", "stop", *self.names)
        self.reap(wait=True)

    def take_away(self):
        super().take_away()
        if not self.is_warm:
            self.is_warm = True
            for path in self.archive.files():
                os.unlink(path)
            self.archive.forget()
            self.flights.clear()
            self.done.clear()

    def round(self, seconds, every):
        self.seconds = seconds
        self.lives_end = time.monotonic() + seconds * self.mortal_share
        super().round(seconds, every)

    def look(self, seconds):
        self.check_crowds()
        self.reap()
        sample = Sample(self.daemon.pid)
        state = self.state()
        files = self.archive.files()
        fields = {"seconds": round(seconds), **sample.fields(),
                  "segments": len(files), "faults": len(self.faults),
                  "done": dict(self.done),
                  "states": {name: r["state"] for name, r in state.items()}}
        self.samples.append(fields)
        self.say(f"{seconds:5.0f} s: {sample}, {len(files)} segments, "
                 f"{sum(map(os.path.getsize, files)) >> 20} MiB; "
                 f"{len(self.faults)} wrong; " + ", ".join(
                     f"{n} {what}" for what, n in self.done.items()))

    # -- what came of it --

    def report(self, seconds, fresh, begin, end):
        self.finish()
        audits, flights, opened = self.audit_all()
        return {
            "seconds": seconds, "good": not self.faults,
            "faults": self.faults, "fresh": fresh.fields(),
            "begin": begin.fields(), "end": end.fields(),
            "segments": len(self.rows), "recordings": audits,
            "packets": self.totals, "flights": flights, "opened": opened,
            "bytes": sum(row["bytes"] for row in self.rows),
            "kept": sum(self.marks.kept.values()),
            "done": self.done, "cuts": self.cuts,
            "rss_under_load_kb": quarters(self.samples),
            "samples": self.samples,
        }

    def finish(self):
        """The collector ends, and the archive is complete."""
        self.attempt(self.daemon.stop)
        self.look_at_logs()
        self.index()

    def audit_all(self):
        return ({name: self.attempt(lambda n=name: self.audit(n))
                 for name in self.names[:-1]},
                self.attempt(self.audit_flights),
                self.attempt(self.open_sample))

    def look_at_logs(self):
        for path in self.logs:
            with open(path, errors="replace") as file:
                text = file.read()
            for line in SANITIZER_LINES:
                if line in text:
                    self.wrong(f"{line} in {path}")

    def index(self):
        """Of the whole archive: its catalogue, which has to be the same when it
        is made anew."""
        if parts := self.archive.files(".part"):
            self.wrong(f"parts are left: {parts[:10]}")
        self.attempt(lambda: self.archive.run("reindex"))
        said = self.attempt(lambda: self.archive.run("verify"))
        if said and "0 problems" not in said:
            self.wrong(f"archive verify: {said}")
        before = self.archive.contents()
        self.archive.forget()
        self.archive.run("reindex")
        if self.archive.contents() != before:
            self.wrong("a catalogue made anew is another one")
        names = ("path", "bytes", "recording", "session", "number", "machine",
                 "verdict", "problem", "unanswered", "first_ns")
        self.rows = [dict(zip(names, row)) for row in self.archive.sql(
            "SELECT path, bytes, recording, hex(recording_uuid), number, "
            "machine, verdict, problem, unanswered, first_ns FROM segments")]
        for row in self.rows:
            if row["verdict"] == "damaged" or row["problem"] and \
                    row["verdict"] not in ("lossy", "unfinished"):
                self.wrong(f"{row['path']}: {row['verdict']}: "
                           f"{row['problem']}")

    def sessions_of(self, name):
        """Rows of each session of a recording, in their order."""
        found = {}
        for row in self.rows:
            if row["recording"] == name:
                found.setdefault(row["session"], []).append(row)
        for rows in found.values():
            rows.sort(key=lambda row: (row["number"], row["machine"] or ""))
        return sorted(found.values(), key=lambda rows: min(
            row["first_ns"] or 0 for row in rows))

    def copies(self, name, marks):
        """Of all ledgers, with what is known of sessions cut short."""
        folder = os.path.join(self.folder, f"ledgers.{name}")
        os.makedirs(folder, exist_ok=True)
        out = []
        for path in self.ledgers():
            out.append(os.path.join(folder, os.path.basename(path)))
            books.write_copy(path, out[-1], marks)
        return out

    def audit(self, name):
        """Each packet in exactly one segment, or told; and no segment is
        missing."""
        sessions = self.sessions_of(name)
        for rows in sessions:
            numbers = sorted({row["number"] for row in rows})
            if numbers != list(range(1, len(numbers) + 1)):
                self.wrong(f"recording {name}: segments {numbers}")
        paths = [row["path"] for rows in sessions for row in rows]
        found = self.verify(paths, name, self.marks.kept, ())
        most = self.done.get("kill_collector", 0) + \
            self.done.get("full_disk", 0)
        if found.get("parts_cut_short", 0) > most:
            self.wrong(f"recording {name}: {found['parts_cut_short']} "
                       f"sessions were cut short by {most} faults")
        if nobody := found.get("causes", {}).get("told without a cause"):
            self.wrong(f"recording {name}: {nobody} packets told without a "
                       "cause")
        return {"sessions": len(sessions), "segments": len(paths), **found}

    def verify(self, paths, name, marks, flags):
        verifier = Verifier(self, self.archive.folder, self.tag(name),
                            self.copies(name, marks), flags, paths)
        self.until(verifier.ended, "the verifier", 1800)
        return verifier.result(count=not flags)

    def audit_flights(self):
        """Each copy has all that was taken before its trigger."""
        copies = [row for rows in self.sessions_of("flight") for row in rows]
        deep = self.random.sample(copies, min(len(copies), self.sample // 10))
        found = [self.audit_flight(row, row in deep) for row in copies]
        return {"copies": len(found), "packets": sum(
            one["present"] for one in found if one)}

    def audit_flight(self, row, deep):
        with open(os.path.join(self.archive.folder, row["path"]),
                  "rb") as file:
            data = file.read()
        first, _ = first_packet(data)
        cut = pb.TracePacket.FromString(first).tributary_segment.begun_by
        before = [flight for flight in self.flights
                  if flight[0] <= cut.realtime_ns]
        if cut.trigger != "drop" or not before:
            self.wrong(f"{row['path']}: {cut}")
            return None
        _, boottime, entries = before[-1]
        kept = {key: entry.sure for key, entry in entries.items()
                if entry.end == books.WRITING and self.is_direct(key)}
        # Those that went on after a kill lack what the killed one had.
        for key in self.marks.kept.keys() - kept.keys():
            kept[key] = 0
        if deep:
            self.reaches_back(row["path"], data, boottime)
        return self.verify([row["path"]], "flight", kept, ("--prefix",))

    def reaches_back(self, path, data, trigger_ns):
        """No sequence lacks its beginning, but for what is older than it was
        said to be: the buffer holds more than that."""
        seen = set()
        for raw in split_file(data):
            packet = pb.TracePacket.FromString(raw)
            event = packet.for_testing
            if not packet.HasField("for_testing") or event.seq_value in seen:
                continue
            seen.add(event.seq_value)
            # What the killed collector had of it is not here.
            if event.seq_value in self.marks.kept:
                continue
            if event.counter > 0 and packet.timestamp > \
                    trigger_ns - FLIGHT_BEFORE_MS * 1_000_000:
                self.wrong(f"{path}: sequence {event.seq_value} begins with "
                           f"{event.counter}")

    def open_sample(self):
        """What Trace Processor and inspect say of segments; the first and the
        last of each session among them."""
        if not imported.available():
            return None
        ends = [row for name in self.names for rows in self.sessions_of(name)
                for row in {rows[0]["path"]: rows[0],
                            rows[-1]["path"]: rows[-1]}.values()]
        self.random.shuffle(ends)
        chosen = ends[:self.sample // 2]
        others = [row for row in self.rows if row not in chosen]
        self.random.shuffle(others)
        chosen += others[:self.sample - len(chosen)]
        unanswered = {(row["session"], row["number"] + 1)
                      for row in self.rows if row["unanswered"]}
        names = {}
        for row in chosen:
            explained = EXPLAINED | (
                NOT_CLEARED if row["recording"] == "flight" or
                (row["session"], row["number"]) in unanswered else set())
            for name in self.attempt(
                    lambda r=row, e=explained: self.open(r, e)) or ():
                names[name] = names.get(name, 0) + 1
        return {"segments": len(chosen), "rows": names}

    def open(self, row, explained):
        path = os.path.join(self.archive.folder, row["path"])
        with open(path, "rb") as file:
            data = file.read()
        try:
            rows = {name for (name,) in imported.sql(data, imported.WRONG)}
        except imported.CannotRead as error:
            raise AssertionError(f"{path}: {error}") from None
        if unexplained := rows - explained:
            self.wrong(f"{path}: Trace Processor finds {unexplained}")
        report = inspected.report(data)
        assert report["verdict"] != "damaged", f"{path}: {report['text']}"
        return rows

    def end(self):
        for process in self.reindexing + self.orders:
            process.kill()
            process.wait()
        super().end()


def summary(report):
    packets = report.get("packets", {})
    begin, end = report["begin"], report["end"]
    return (f"{'GOOD' if report['good'] else 'NOT GOOD'}: "
            f"{report['seconds'] / 3600:g} h, {report['segments']} segments, "
            f"{report['bytes'] >> 20} MiB, {packets.get('present', 0)} packets "
            f"in exactly one, {packets.get('told', 0)} missing and told, "
            f"{packets.get('cut_short', 0)} lost with sessions cut short, "
            f"{len(report['faults'])} wrong; " + ", ".join(
                f"{n} {what}" for what, n in sorted(report["done"].items())) +
            f"; memory {begin['rss_kb']} -> {end['rss_kb']} KiB, descriptors "
            f"{begin['fds']} -> {end['fds']}, threads {begin['threads']} -> "
            f"{end['threads']}")


if __name__ == "__main__":
    sys.exit(main(ArchiveSoak, summary))
