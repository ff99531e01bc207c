"""The same commands against two services, and what came of them, as lines of
text that can be held against each other."""

import collections
import os
import re
import signal
import subprocess
import time

from . import imported, inspected, pb, real
from .daemon import environment
from .producer import Producer, numbered
from .trace import Broken, Trace

SOURCE = "test.slices"
SLICES = 5
TRACK = 4711
PID, TID = 30001, 30002

# Packets and events that come as often as the time a mode took lets them.
BY_TIME = ("clock_snapshot", "trace_stats", "synchronization_marker",
           "read_tracing_buffers_completed")


class Painter(Producer):
    """Writes the same slices and test events whenever its data source is
    started."""

    def __init__(self, loop, address):
        super().__init__(loop, address, "painter", [SOURCE])

    def _started(self, command):
        instance = self.instances[command.new_instance_id]
        self.writer(instance).write(
            [*_slices(time.clock_gettime_ns(time.CLOCK_BOOTTIME)),
             *(numbered(n) for n in range(3))], ask=False)
        super()._started(command)


def _slices(now):
    descriptor = pb.TracePacket(sequence_flags=1, timestamp=now)
    track = descriptor.track_descriptor
    track.uuid = TRACK
    track.process.pid = track.thread.pid = PID
    track.process.process_name = "painter"
    track.thread.tid, track.thread.thread_name = TID, "brush"
    yield descriptor.SerializeToString()
    for number in range(SLICES):
        for kind in ("TYPE_SLICE_BEGIN", "TYPE_SLICE_END"):
            packet = pb.TracePacket(sequence_flags=2, timestamp=now)
            event = packet.track_event
            event.type = pb.TrackEvent.Type.Value(kind)
            event.track_uuid = TRACK
            if kind == "TYPE_SLICE_BEGIN":
                event.name = f"stroke {number}"
                event.categories.append("test")
            yield packet.SerializeToString()
            now += 1000


class Command:
    """A `perfetto` that runs or has run.  label: what its lines begin with."""

    def __init__(self, run, label, argv, stdin=None, stdout=None, **options):
        self._run = run
        self.label = label
        self._paths = [run.path(f"{end}{len(run.commands)}")
                       for end in ("out", "err")]
        self._raw_output = stdout is not None
        with open(self._paths[0], "wb") as out, \
                open(self._paths[1], "wb") as err:
            self.process = subprocess.Popen(
                [*real.peers.program("perfetto"), *argv], cwd=run.folder,
                stdin=subprocess.PIPE if stdin is not None else
                subprocess.DEVNULL, stdout=stdout or out, stderr=err,
                env=environment(
                    PERFETTO_PRODUCER_SOCK_NAME=run.service.producer_path,
                    PERFETTO_CONSUMER_SOCK_NAME=run.service.consumer_path),
                **options)
        run.case.addCleanup(self.process.wait)
        run.case.addCleanup(self.process.kill)
        if stdin is not None:
            self.process.stdin.write(stdin)
            self.process.stdin.close()

    def ended(self):
        return self.process.poll() is not None

    def wait(self):
        self._run.until(self.ended, f"perfetto {self.label} ends")
        return self

    def signal(self, signo):
        self.process.send_signal(signo)

    def output(self):
        with open(self._paths[0], "rb") as file:
            return file.read()

    def errors(self):
        with open(self._paths[1], "rb") as file:
            return file.read()

    def lines(self):
        yield f"exit status {self.process.returncode}"
        for text in self._run.words(self.errors()):
            yield f"says {text}"
        if not self._raw_output:
            for text in self._run.words(self.output()):
                yield f"prints {text}"


class Run:
    """One service in a folder of its own, a producer, and the commands that
    are run against them."""

    def __init__(self, case, folder, service):
        self.case = case
        self.folder = folder
        self.service = service
        self.commands = []
        self.more = []  # lines that a mode adds
        self.painter = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def until(self, condition, what, **options):
        return self.case.until(condition, f"{self.service.name}: {what}",
                               **options)

    def paint(self):
        """The producer, as one that has registered its data source."""
        self.painter = self.case._add(Painter(
            self.case.loop, self.service.producer_path))
        self.painter.sync()

    def painted(self, times=1):
        """Waits until it has been started so often, and its data is in."""
        self.painter.wait_started(times)
        self.painter.sync()

    def perfetto(self, *argv, label="", **options):
        command = Command(self, label, argv, **options)
        self.commands.append(command)
        return command

    def consumer(self):
        return self.case.consumer(self.service.consumer_path)

    def sessions(self):
        """The states of the sessions there are."""
        consumer = self.consumer()
        sessions = [s.state for s in consumer.query().tracing_sessions]
        consumer.close()
        return sessions

    def words(self, output):
        """Lines of text without what differs from one time to the next."""
        for line in output.decode(errors="backslashreplace").splitlines():
            line = re.sub(r"^\[\d+\.\d+\] +[\w.:-]+ ", "", line)
            line = line.replace(self.folder, "DIR")
            line = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
                          "UUID", line)
            line = re.sub(r"\bWrote \d+ bytes", "Wrote N bytes", line)
            line = re.sub(r"^\d+$", "PID", line)
            line = re.sub(r"\b\d\d:\d\d:\d\d\b", "TIME", line)
            line = re.sub("\x1b\\[\\d+m", "", line)
            if line.strip():
                yield re.sub(r"\s+", " ", line.strip())

    def lines(self):
        """Everything that came of it."""
        out = collections.Counter()
        for command in self.commands:
            label = command.label and command.label + ": "
            out.update(label + line for line in command.lines())
        for name in sorted(os.listdir(self.folder)):
            if ".pftrace" in name:
                label = name.replace(".pftrace", "")
                out.update(f"{label}: {line}" for line in
                           trace_lines(self.path(name)))
        out.update(self.more)
        return out


def process_is_gone(pid):
    """Ended, whether or not somebody has asked for its status."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def trace_lines(path):
    """What is in a trace file."""
    with open(path, "rb") as file:
        data = file.read()
    if not data:
        yield "empty"
        return
    try:
        trace = Trace.from_bytes(data)
    except Broken as error:
        yield f"broken: {error}"
        return
    yield from _packet_lines(trace)
    if imported.available():
        yield from _sql_lines(trace)


def _packet_lines(trace):
    for kind in ("compressed_packets", "zstd_compressed_packets"):
        if kind in trace.stored_kinds():
            yield f"packets {kind}"
    kinds = list(map(str, trace.kinds()))
    for kind, count in collections.Counter(kinds).items():
        if kind in BY_TIME:
            yield f"packets {kind}"
        elif kind != "service_event":
            yield f"{count} packets {kind}"
    yield "begins with " + kinds[0]
    for event, count in collections.Counter(map(str, trace.events())).items():
        if event not in BY_TIME:
            yield f"{count} events {event}"
    for packet in trace.losses():
        yield f"{packet.WhichOneof('data')} after a loss, " \
            f"{packet.previous_packet_dropped}"
    for packet in trace.of("trigger"):
        yield f"trigger {packet.trigger.trigger_name} of " \
            f"{packet.trigger.producer_name}"
    for packet in trace.of("clone_snapshot_trigger"):
        yield "cloned by trigger " \
            f"{packet.clone_snapshot_trigger.trigger_name}"
    if trace.of("trace_stats"):
        yield from _stats_lines(trace.stats())


def _stats_lines(stats):
    plain = pb.TraceStats()
    plain.CopyFrom(stats)
    for field in ("writer_stats", "chunk_payload_histogram_def"):
        plain.ClearField(field)
    for line in str(plain).splitlines():
        if line.strip() != "}":
            yield f"stats {line.strip()}"


QUERIES = {
    "slice": "select name, dur, count(*) from slice group by name, dur",
    "process": f"select name, pid from process where pid = {PID}",
    "thread": f"select name, tid from thread where tid = {TID}",
    "Trace Processor:": imported.WRONG,
    "metadata": "select distinct name from metadata",
}


def _sql_lines(trace):
    answers = imported.ask(inspected.framed(trace.stored), *QUERIES.values())
    for what, rows in zip(QUERIES, answers):
        for row in rows:
            yield f"{what} {' '.join(map(str, row))}"
