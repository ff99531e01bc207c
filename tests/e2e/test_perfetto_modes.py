#!/usr/bin/env python3
"""Every mode of Perfetto's own `perfetto`, once against `traced` and once
against `tributaryd`: exit status, what it says and prints, what is in the
traces.

Differences that are meant stand in the list of docs/compatibility.md, which
is read here: a difference that is not in it fails the test of its mode, and
so does a row that the mode does not meet.
"""

import contextlib
import fnmatch
import os
import re
import signal
import subprocess
import sys
import unittest
from typing import Callable, NamedTuple

from google.protobuf import text_format

from harness import imported, inspected, pb, real, tap
from harness.bytecode import assemble
from harness.case import Case
from harness.daemon import Daemon
from harness.imported import may_cause
from harness.loop import TimedOut
from harness.producer import numbered
from harness.side_by_side import (
    SOURCE, Run, process_is_gone, trace_lines)
from harness.trace import Trace

PAGE = os.path.join(os.environ["SOURCE_ROOT"], "docs", "compatibility.md")

ENDLESS = f"""
    buffers {{ size_kb: 1024 }}
    data_sources {{ config {{ name: "{SOURCE}" }} }}
"""
SHORT = ENDLESS + "duration_ms: 300\n"
# Otherwise both flush such a session when a clock says so, every 5 s.
AT_THE_END = "write_into_file: true write_flush_mode: WRITE_FLUSH_DISABLED " \
    "flush_period_ms: 600000\n"
INTO_FILE = AT_THE_END + "file_write_period_ms: 100\n"
DEFLATE = "compression_type: COMPRESSION_TYPE_DEFLATE\n"
TO_TRACE = ("--txt", "-c", "config", "-o", "t.pftrace")


def on_trigger(mode, timeout_ms=20000, delay_ms=100):
    return ENDLESS + f"""
        trigger_config {{
            trigger_mode: {mode} trigger_timeout_ms: {timeout_ms}
            triggers {{ name: "now" stop_delay_ms: {delay_ms} }}
        }}
    """


def filtered():
    """Without test events, and track events without their category."""
    def whole(message, *without):
        return {f.number: None for f in message.DESCRIPTOR.fields
                if f.name not in without}
    packet = whole(pb.TracePacket, "for_testing")
    packet[pb.TracePacket.DESCRIPTOR.fields_by_name["track_event"].number] = 2
    config = text_format.Parse(SHORT, pb.TraceConfig())
    config.trace_filter.bytecode_v2 = assemble(
        {1: 1}, packet, whole(pb.TrackEvent, "categories"))
    return config.SerializeToString()


# How a command begins.

def reads_config(*argv, data=None):
    """From its standard input."""
    def begin(run, mode):
        return run.perfetto(*argv, stdin=data or mode.config.encode())
    return begin


def writes_to_fifo(run, mode):
    os.mkfifo(run.path("fifo"))
    run.reader = open(os.open(run.path("fifo"), os.O_RDONLY | os.O_NONBLOCK),
                      "rb", buffering=0)
    return run.perfetto(*mode.argv)


def writes_to_pipe(run, mode):
    command = run.perfetto(*mode.argv, stdout=subprocess.PIPE)
    run.reader = command.process.stdout
    os.set_blocking(run.reader.fileno(), False)
    return command


def writes_over_a_file(run, mode):
    run.write("t.pftrace", inspected.framed([numbered(7)]))
    return run.perfetto(*mode.argv)


def notifies(run, mode):
    run.reader, write_end = os.pipe()
    command = run.perfetto(*mode.argv, f"--notify-fd={write_end}",
                           pass_fds=[write_end])
    os.close(write_end)
    return command


def writes_to_a_path(run, mode):
    """That the config names, and the service opens."""
    run.write("config", (mode.config + "output_path: "
                         f'"{run.path("t.pftrace")}"').encode())
    return run.perfetto(*mode.argv)


# What happens while it runs, and until it has ended.

def ends(run, command):
    command.wait()


def ends_by(signo):
    def meanwhile(run, command):
        run.painted()
        command.signal(signo)
        command.wait()
    return meanwhile


is_stopped = ends_by(signal.SIGTERM)


def goes_to_background(run, command):
    command.wait()
    run.painted()
    pid = int(command.output())
    os.kill(pid, signal.SIGTERM)
    run.until(lambda: process_is_gone(pid), "the one in the background ends")


def says_when_started(run, command):
    run.painted()
    run.more.append(f"tells the descriptor {os.read(run.reader, 16)!r}")
    os.close(run.reader)
    is_stopped(run, command)


def is_killed(run, command):
    run.painted()
    command.signal(signal.SIGKILL)
    command.wait()
    run.until(lambda: not run.sessions(), "its session ends")


def is_killed_when_written(run, command):
    run.painted()
    run.until(lambda: Trace.so_far(run.path("t.pftrace")).of("for_testing"),
              "packets are in the file")
    is_killed(run, command)


def is_flushed(run, command):
    """Without having asked for it.  How often is a matter of chance."""
    run.painted()
    with contextlib.suppress(TimedOut):
        run.until(lambda: run.painter.saw("flush"), "a flush", timeout=6)
    run.more.append(f"flushed meanwhile: {bool(run.painter.saw('flush'))}")
    is_killed(run, command)
    run.more += [line for line in trace_lines(run.path("t.pftrace"))
                 if line.startswith("Trace Processor")]
    os.unlink(run.path("t.pftrace"))


def loses_the_service(run, command):
    run.painted()
    run.service.kill()
    command.wait()


def meets(*argv, label):
    """Another command while it runs."""
    def meanwhile(run, command):
        run.painted()
        run.perfetto(*argv, label=label).wait()
        is_stopped(run, command)
    return meanwhile


def is_queried_raw(run, command):
    run.painted()
    query = run.perfetto("--query-raw", label="query", stdout=subprocess.PIPE)
    data = query.process.stdout.read()
    query.process.stdout.close()
    query.wait()
    state = pb.TracingServiceState.FromString(data)
    for session in state.tracing_sessions:
        session.ClearField("start_realtime_ns")
    run.more += [f"state {line.strip()}" for line in str(state).splitlines()]
    is_stopped(run, command)


def trigger(run, name):
    run.perfetto("--txt", "-c", "-", label=f"trigger {name}",
                 stdin=f'activate_triggers: "{name}"'.encode()).wait()


def is_stopped_by_trigger(run, command):
    run.painted()
    trigger(run, "unknown")
    trigger(run, "now")
    command.wait()


def is_started_by_trigger(run, command):
    run.painter.wait_command("setup_data_source")
    trigger(run, "now")
    command.wait()


def is_cloned_by_trigger(run, command):
    run.painted()
    trigger(run, "now")
    run.until(lambda: os.path.exists(run.path("t.pftrace.0")) and
              len(run.sessions()) == 1, "the snapshot is written")
    is_stopped(run, command)


def is_detached(run, command):
    command.wait()
    run.painted()
    run.until(lambda: "STARTED" in run.sessions(), "it has started")
    run.perfetto("--is_detached=key", label="is_detached").wait()
    run.perfetto("--is_detached=other", label="is_detached other").wait()
    run.perfetto("--attach=other", label="attach other").wait()


def is_stopped_after_attaching(run, command):
    is_detached(run, command)
    run.perfetto("--attach=key", "--stop", label="attach").wait()
    run.perfetto("--is_detached=key", label="is_detached after").wait()
    run.until(lambda: not run.sessions(), "its session ends")


def ends_after_attaching(run, command):
    """By its duration: nobody outside sees when it has been attached to."""
    is_detached(run, command)
    run.perfetto("--attach=key", label="attach").wait()
    run.until(lambda: not run.sessions(), "its session ends")


def is_read(run, command):
    """By us, from the other end of its output."""
    data = bytearray()

    def all_read():
        ended = command.ended()
        while part := run.reader.read(1 << 16):
            data.extend(part)
        return ended
    run.until(all_read, "it ends")
    run.reader.close()
    run.write("t.pftrace", bytes(data))


# How often a session is flushed, where a clock says when; and what traced says
# of one that it writes to a file, which it says whenever it first writes.
FLUSHES = ("t: * events flush_started", "t: * events all_data_sources_flushed")
STATISTICS = ("t: stats *",)
COUNTERS = ("t: stats chunks_*", "t: stats bytes_*")
# traced notes it where a consumer is still there, tributaryd always.
STARTED = ("t: * events all_data_sources_started",
           "t: metadata all_data_source_started_ns")


class Mode(NamedTuple):
    name: str
    argv: tuple = TO_TRACE
    config: object = SHORT  # text, or bytes
    meanwhile: Callable = ends
    begin: Callable = None  # instead of Run.perfetto(*argv)
    flags: tuple = ()       # of tributaryd; DIR is the folder of the run
    by_chance: tuple = ()   # patterns of lines that are not compared

    def play(self, run):
        data = self.config
        run.write("config", data.encode() if isinstance(data, str) else data)
        command = self.begin(run, self) if self.begin else \
            run.perfetto(*self.argv)
        self.meanwhile(run, command)


def binary(text):
    return text_format.Parse(text, pb.TraceConfig()).SerializeToString()


# Configs that a service or the command refuses, each run to its end.
REFUSED = {
    "no text": ("--txt", "nonsense {"),
    "no bytes": (None, "nonsense"),
    "empty": (None, ""),
    "no buffers": ("--txt", "duration_ms: 300"),
    "wrong buffer": ("--txt", SHORT.replace(
        "name:", "target_buffer: 7 name:")),
    "empty buffer": ("--txt", SHORT.replace("1024", "0")),
    "huge buffer": ("--txt", SHORT.replace("1024", "4294967295")),
    "trigger without a time-out": ("--txt", on_trigger("STOP_TRACING", 0)),
    "trigger without a name": ("--txt", on_trigger("STOP_TRACING", 300).replace(
        '"now"', '""')),
    "trigger and duration": ("--txt", SHORT + on_trigger(
        "START_TRACING").replace(ENDLESS, "")),
    "two triggers of a name": ("--txt", on_trigger("STOP_TRACING", 300).replace(
        "triggers {", 'triggers { name: "now" stop_delay_ms: 9 } triggers {')),
    "days": ("--txt", ENDLESS + "duration_ms: 4000000000"),
    "broken filter": ("--txt", SHORT +
                      'trace_filter { bytecode_v2: "abc" }'),
}


def are_refused(run, command):
    """The first one is as it should be."""
    command.wait()
    run.commands.clear()
    os.unlink(run.path("t.pftrace"))
    for name, (flag, text) in REFUSED.items():
        run.write("config", text.encode())
        run.perfetto(*([flag] if flag else []), "-c", "config", "-o",
                     name.replace(" ", "-") + ".pftrace", label=name)
        run.commands[-1].wait()


MODES = [
    Mode("-c, text"),
    Mode("-c, binary", ("-c", "config", "-o", "t.pftrace"), binary(SHORT)),
    Mode("-c -, text", begin=reads_config(
        "--txt", "-c", "-", "-o", "t.pftrace")),
    Mode("-c -, binary", begin=reads_config(
        "-c", "-", "-o", "t.pftrace", data=binary(SHORT))),
    Mode("without a config", (
        "-t", "1s", "-b", "1mb", "-o", "t.pftrace", "--add-note", "key=value",
        "sched/sched_switch")),
    Mode("without a config, -s", (
        "-t", "1s", "-b", "1mb", "-s", "1mb", "-o", "t.pftrace",
        "sched/sched_switch"),
         by_chance=(*FLUSHES, *STATISTICS)),
    Mode("refused configs", meanwhile=are_refused),
    Mode("--background", ("--background", *TO_TRACE), ENDLESS,
         goes_to_background),
    Mode("--background-wait", ("--background-wait", *TO_TRACE), ENDLESS,
         goes_to_background),
    Mode("-D", ("-D", *TO_TRACE), ENDLESS, goes_to_background),
    Mode("--notify-fd", TO_TRACE, ENDLESS, says_when_started, notifies),
    Mode("--no-clobber", ("--no-clobber", *TO_TRACE),
         begin=writes_over_a_file),
    Mode("over an old file", begin=writes_over_a_file),
    Mode("--query", TO_TRACE, ENDLESS, meets("--query", label="query")),
    Mode("--query --long", TO_TRACE, ENDLESS,
         meets("--query", "--long", label="query")),
    Mode("--query-raw", TO_TRACE, ENDLESS, is_queried_raw),
    Mode("--clone", TO_TRACE, ENDLESS, meets(
        "--clone", "1", "-o", "clone.pftrace", label="clone")),
    Mode("--clone of none", TO_TRACE, ENDLESS, meets(
        "--clone", "99", "-o", "clone.pftrace", label="clone")),
    Mode("--clone-by-name", TO_TRACE,
         ENDLESS + 'unique_session_name: "me"', meets(
             "--clone-by-name", "me", "-o", "clone.pftrace", label="clone")),
    Mode("--clone-for-bugreport", TO_TRACE, ENDLESS + "bugreport_score: 5\n",
         meets("--clone", "1", "--clone-for-bugreport", "-o",
               "clone.pftrace", label="clone")),
    Mode("--save-for-bugreport of none", ("--save-for-bugreport",)),
    Mode("--save-for-bugreport", TO_TRACE, ENDLESS + "bugreport_score: 5\n",
         meets("--save-for-bugreport", label="save")),
    Mode("--save-all-for-bugreport", TO_TRACE,
         ENDLESS + "bugreport_score: 5\n",
         meets("--save-all-for-bugreport", label="save")),
    Mode("--detach, --attach --stop", ("--detach=key", *TO_TRACE),
         ENDLESS + INTO_FILE, is_stopped_after_attaching,
         by_chance=(*STATISTICS, *STARTED)),
    Mode("--detach, --attach", ("--detach=key", *TO_TRACE),
         ENDLESS + INTO_FILE + "duration_ms: 2500\n", ends_after_attaching,
         by_chance=(*STATISTICS, *STARTED)),
    Mode("--detach, no file", ("--detach=key", *TO_TRACE), ENDLESS),
    Mode("START_TRACING", TO_TRACE, on_trigger("START_TRACING"),
         is_started_by_trigger),
    Mode("STOP_TRACING", TO_TRACE, on_trigger("STOP_TRACING"),
         is_stopped_by_trigger),
    Mode("STOP_TRACING, not triggered", TO_TRACE,
         on_trigger("STOP_TRACING", timeout_ms=300)),
    Mode("CLONE_SNAPSHOT", TO_TRACE, on_trigger("CLONE_SNAPSHOT"),
         is_cloned_by_trigger),
    Mode("to a FIFO", ("--txt", "-c", "config", "-o", "fifo"), SHORT,
         is_read, writes_to_fifo),
    Mode("to standard output", ("--txt", "-c", "config", "-o", "-"), SHORT,
         is_read, writes_to_pipe),
    Mode("write_into_file", TO_TRACE, SHORT + INTO_FILE,
         by_chance=COUNTERS),
    Mode("write_into_file, killed", TO_TRACE, ENDLESS + INTO_FILE,
         is_killed_when_written, by_chance=STATISTICS),
    Mode("write_into_file, no flush_period_ms", TO_TRACE,
         ENDLESS + "write_into_file: true", is_flushed),
    Mode("output_path", ("--txt", "-c", "config"), SHORT + INTO_FILE,
         begin=writes_to_a_path,
         by_chance=STATISTICS),
    Mode("output_path, --trace-dir", ("--txt", "-c", "config"),
         SHORT + INTO_FILE, begin=writes_to_a_path,
         flags=("--trace-dir", "DIR"), by_chance=COUNTERS),
    Mode("compressed", TO_TRACE, SHORT + DEFLATE),
    Mode("compressed, write_into_file", TO_TRACE,
         SHORT + DEFLATE + AT_THE_END,
         by_chance=(*FLUSHES, *STATISTICS)),
    Mode("trace_filter", ("-c", "config", "-o", "t.pftrace"), filtered()),
    Mode("SIGINT", TO_TRACE, ENDLESS, ends_by(signal.SIGINT)),
    Mode("SIGTERM", TO_TRACE, ENDLESS, ends_by(signal.SIGTERM)),
    Mode("SIGKILL", TO_TRACE, ENDLESS, is_killed),
    Mode("the service dies", TO_TRACE, ENDLESS, loses_the_service),
]


EVERY_TRACE = "every trace"
EXAMPLE = MODES[0].name  # meets the rows of every trace


class Row(NamedTuple):
    """Of the list: patterns of lines that only one of the two has."""
    modes: list
    traced: list
    tributaryd: list


def items_under(heading):
    """Of the list below a heading of the page: (modes, {label: text}) each."""
    with open(PAGE, encoding="utf-8") as page:
        part = page.read().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for item in re.split(r"^\* ", part, flags=re.M)[1:]:
        modes, *parts = re.split(r"^  \* ", item, flags=re.M)
        yield " ".join(modes.split()), dict(
            " ".join(p.split()).split(": ", 1) for p in parts)


def spans(cell):
    return re.findall(r"`([^`]+)`", cell)


def table():
    rows = []
    for modes, told in items_under("Every difference"):
        named = [EVERY_TRACE] if modes == f"**{EVERY_TRACE}**" else spans(modes)
        assert named and told.get("why"), f"no mode or no reason: {modes}"
        rows.append(Row(named, spans(told.get("only with `traced`", "")),
                        spans(told.get("only with `tributaryd`", ""))))
    return rows


def matching(lines, pattern):
    return {line for line in lines if
            fnmatch.fnmatchcase(line, pattern.replace("[", "[[]"))}


class Service:
    """What one of the two adds or leaves out."""

    def __init__(self, name, lines):
        self.name = name
        self.unexplained = set(lines)
        self.lines = lines
        self.not_met = []

    def explain(self, patterns, must_meet):
        for pattern in patterns:
            found = matching(self.lines, pattern)
            self.unexplained -= found
            if must_meet and not found:
                self.not_met.append(pattern)

    def describe(self):
        for line in sorted(self.unexplained):
            yield f"only with {self.name}, and not in the list: {line}"
        for pattern in self.not_met:
            yield f"not only with {self.name}, as the list says: {pattern}"


# Of traces of traced's; that only it writes them stands in the list.
@may_cause("invalid_clock_snapshots")
@unittest.skipUnless(imported.available(),
                     "no Trace Processor; deploy/install-deps peers")
@real.needed
class Modes(Case):
    def lines_of(self, mode, service_class):
        folder = self.path(service_class.name)
        os.mkdir(folder)
        flags = mode.flags if service_class is Daemon else ()
        service = service_class(
            folder, flags=[flag.replace("DIR", folder) for flag in flags])
        self.daemons.append(service)
        service.start()
        run = Run(self, folder, service)
        run.paint()
        mode.play(run)
        lines = run.lines()
        for pattern in mode.by_chance:
            for line in matching(lines, pattern):
                del lines[line]
        return lines

    def check(self, mode):
        theirs, ours = (self.lines_of(mode, service)
                        for service in (real.Traced, Daemon))
        traced = Service("traced", theirs - ours)
        tributaryd = Service("tributaryd", ours - theirs)
        for row in table():
            if mode.name in row.modes or EVERY_TRACE in row.modes:
                must = mode.name in row.modes or mode.name == EXAMPLE
                traced.explain(row.traced, must)
                tributaryd.explain(row.tributaryd, must)
        said = [*traced.describe(), *tributaryd.describe()]
        if said:
            self.fail("\n  ".join([f"perfetto, {mode.name}:", *said]))


def add_tests():
    """One for each mode, under its name."""
    for mode in MODES:
        def test(self, mode=mode):
            self.check(mode)
        name = re.sub(r"\W+", "_", mode.name).strip("_")
        setattr(Modes, f"test_{MODES.index(mode):02}_{name}", test)


add_tests()


class Page(Case):
    def test_it_names_every_mode_and_no_other(self):
        modes = {mode.name for mode in MODES}
        listed = {mode for item, _ in items_under(
            "The command `perfetto`, mode by mode")
            for mode in spans(item.split(": ")[0])}
        self.assertEqual(listed, modes)
        differing = {mode for row in table() for mode in row.modes}
        self.assertLessEqual(differing, modes | {EVERY_TRACE})


if __name__ == "__main__":
    sys.exit(tap.main())
