"""Numbered packets of a fleet: each is in exactly one segment of one collector, or
is told as lost, or was acknowledged by a collector that was killed.

Sequences go on at other collectors, so numbers are what counts: no ids.

One weakness of the product is counted by itself: a collector that is killed, or
whose relays HAProxy leads to another when it starts anew, may have what it could
not acknowledge any more.  That is in two segments.
"""

import os
import time
import zlib

from harness import pb
from harness.trace import split_file

LINK_CAUSE_BIT = 15  # of previous_packet_dropped: 1 << (15 + cause)


class Session:
    """One recording of one collector, from its start to its end."""

    def __init__(self, collector):
        self.collector = collector
        self.whole = False
        self.last_ns = 0
        self.kill = None  # that cut it short


class Run:
    """Consecutive numbers of a sequence in one session: first <= n < end."""

    def __init__(self, number, session, path, packet):
        self.first, self.end = number, number + 1
        self.first_ns = self.last_ns = packet.timestamp
        self.session, self.path = session, path
        self.dropped = packet.previous_packet_dropped
        self.machine = packet.machine_id

    def __str__(self):
        return f"{self.session.collector}'s {os.path.basename(self.path)}" + \
            (" (killed)" if self.session.kill else "")


class Cut:
    """HAProxy's end.  before, after: written packets by key, some time before it
    and at it."""

    def __init__(self, before, after):
        self.before, self.after = before, after


class Kill(Cut):
    """A collector's."""

    def __init__(self, collector, before, after):
        super().__init__(before, after)
        self.collector = collector
        self.boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.time = time.time()
        self.forget()

    def forget(self):
        """What came of it."""
        self.session = None
        # What it had acknowledged, and is on no disk:
        self.packets = 0
        self.early = 0   # of them, written before `before`
        self.unseen = 0  # of them, of sequences of which it wrote nothing


class Spread:
    """told: what each relay says that it lost, [{cause: packets}]; producers are
    dealt out to relays in turn."""

    def __init__(self, kills, cuts, told):
        self.kills, self.cuts = kills, cuts
        self.told = [dict(one) for one in told]
        for kill in kills:
            kill.forget()
        self.sessions = {}  # (collector, uuid): Session
        self.runs = {}      # key: [Run]
        self.losses = {}    # (machine, cause): packets that statistics tell
        self.uncounted = 0  # times that they do not say how many
        self.wrong = []
        self.counts = dict.fromkeys(
            ("segments", "present", "told", "killed", "twice", "untold", "doubled",
             "disordered", "altered", "strangers"), 0)
        self.causes = {}

    # -- reading --

    def read(self, collector, path):
        """A segment; those of a session in their order."""
        self.counts["segments"] += 1
        with open(path, "rb") as file:
            data = file.read()
        session = stats = None
        for raw in split_file(data):
            packet = pb.TracePacket.FromString(raw)
            if packet.HasField("tributary_segment"):
                session = self.take_mark(collector, packet.tributary_segment,
                                         session)
            elif packet.HasField("trace_stats"):
                stats = packet.trace_stats
            elif packet.HasField("for_testing"):
                self.take(packet, session, path)
        if stats is not None:
            self.take_stats(stats)

    def take_mark(self, collector, mark, session):
        if mark.HasField("end"):
            session.whole |= not mark.end.HasField("cause")
            return session
        return self.sessions.setdefault(
            (collector, mark.recording_uuid), Session(collector))

    def take_stats(self, stats):
        for loss in stats.tributary_link_losses:
            place = (loss.machine_id, pb.LinkLossCause.Name(loss.cause))
            self.uncounted += not loss.HasField("packets")
            self.losses[place] = self.losses.get(place, 0) + loss.packets

    def take(self, packet, session, path):
        event = packet.for_testing
        key, number = event.seq_value, event.counter
        text = event.payload.single_string.encode()
        crc = zlib.crc32(text, zlib.crc32(
            key.to_bytes(4, "little") + number.to_bytes(8, "little")))
        if event.str != f"{crc:08x}":
            self.fault("altered", 1, f"packet {number} of key {key} in "
                       f"{path} is not what was written")
        session.last_ns = max(session.last_ns, packet.timestamp)
        runs = self.runs.setdefault(key, [])
        if runs and runs[-1].session is session:
            if runs[-1].end == number:
                runs[-1].end += 1
                runs[-1].last_ns = packet.timestamp
                return
            if number < runs[-1].end:
                self.fault("disordered", 1, f"packet {number} of key {key} "
                           f"in {path} is behind {runs[-1].end - 1}")
        runs.append(Run(number, session, path, packet))

    # -- the sum --

    def fault(self, what, packets, sentence):
        self.counts[what] += packets
        if len(self.wrong) < 20:
            self.wrong.append(f"{what}: {sentence}")

    def finish(self, entries):
        """entries: {key: books.Entry} of all that was written."""
        self.find_kills()
        for key, runs in self.runs.items():
            if key not in entries:
                self.fault("strangers", 1, f"key {key} is in no ledger")
            runs.sort(key=lambda run: run.first)
        for key, entry in entries.items():
            self.add_up(key, self.runs.get(key, []), entry)

    def find_kills(self):
        """Each session without an end was cut short by a kill of its own."""
        kills = sorted(self.kills, key=lambda kill: kill.boottime_ns)
        for session in sorted(self.sessions.values(),
                              key=lambda session: session.last_ns):
            if session.whole:
                continue
            session.kill = next((kill for kill in kills if
                                 kill.collector == session.collector and
                                 kill.session is None and
                                 kill.boottime_ns >= session.last_ns), None)
            if session.kill is None:
                self.fault("untold", 0, f"a session of {session.collector} "
                           "has no end, and no kill is its cause")
                self.counts["untold"] += 1
            else:
                session.kill.session = session

    def add_up(self, key, runs, entry):
        next_number, last = 0, None
        for run in runs:
            if run.first < next_number:
                self.again(key, run.first, min(run.end, next_number), last,
                           run)
            elif run.first > next_number:
                self.missing(key, entry, next_number, run.first, last,
                             run)
            self.counts["present"] += max(0, run.end -
                                          max(run.first, next_number))
            if run.end > next_number:
                next_number, last = run.end, run
        if next_number > entry.written:
            self.fault("strangers", next_number - entry.written,
                       f"key {key} has {next_number} of {entry.written}")
        elif next_number < entry.sure:
            self.missing(key, entry, next_number, entry.sure, last, None)

    def again(self, key, first, end, last, run):
        """Numbers that are in both: of the last seconds before a cut, and of two
        sessions, or a fault."""
        if run.session is not last.session and any(
                cut.before.get(key, 0) <= first and
                end <= cut.after.get(key, 0)
                for cut in self.kills + self.cuts):
            self.counts["twice"] += end - first
        else:
            self.fault("doubled", end - first, f"{first} to {end - 1} of key "
                       f"{key} are in {last} and in {run}")

    def missing(self, key, entry, first, end, last, then):
        """Numbers between a run and the next one; None: there is none."""
        packets = end - first
        kill = self.kill_of(key, end, last, then)
        if kill is not None:
            self.counts["killed"] += packets
            kill.packets += packets
            kill.early += max(0, min(end, kill.before.get(key, 0)) - first)
            if last is None or last.session is not kill.session:
                kill.unseen += packets
            return
        cause = then.dropped >> (LINK_CAUSE_BIT + 1) if then else 0
        if cause:
            self.tell(pb.LinkLossCause.Name((cause & -cause).bit_length()),
                      packets)
            return
        machine = (last or then).machine if last or then else None
        packets = self.use(self.told[entry.producer % len(self.told)],
                           packets)
        packets = self.use(self.losses, packets, lambda place:
                           place[0] == machine, lambda place: place[1])
        if packets:
            self.fault("untold", packets,
                       f"{first} to {end - 1} of key {key}, between "
                       f"{last} and {then}")

    def use(self, told, packets, fits=lambda place: True,
            name=lambda place: place):
        """What is left of packets when these were told."""
        for place, count in told.items():
            if packets and count and fits(place):
                told[place] -= (used := min(count, packets))
                packets -= used
                self.tell(name(place), used)
        return packets

    def tell(self, cause, packets):
        self.counts["told"] += packets
        self.causes[cause] = self.causes.get(cause, 0) + packets

    def kill_of(self, key, end, last, then):
        """The kill of a collector that can have acknowledged what is missing
        before `end`: all of it had been written by then, and what came behind it
        was not in a file yet."""
        fitting = [kill for kill in self.kills
                   if end <= kill.after.get(key, 0) and
                   (then is None or then.session is not kill.session and
                    os.stat(then.path).st_mtime > kill.time)]
        if last is not None and last.session.kill in fitting:
            return last.session.kill
        # A link may have come to a collector that had written nothing of it.
        return next((kill for kill in fitting if last is None or
                     kill.session is not last.session), None)
