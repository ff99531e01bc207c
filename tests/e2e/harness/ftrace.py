"""linux.ftrace in an emulated machine: recordings of its kernel, and whether
two of them saw the same.

	recorder = ftrace.Recorder(case)        # case: a VmCase with a collector
	recording = recorder.start("ours", events=["sched/sched_switch"])
	trace = recording.finish()
"""

import os

from .trace import Trace

TRACEFS = "/sys/kernel/tracing"
OURS = "tributary-probes"
THEIRS = "perfetto.traced_probes"
# The events that Trace Processor makes slices, wakeups and states of.
SCHED = ("sched/sched_switch", "sched/sched_waking", "sched/sched_process_exit",
         "sched/sched_process_free", "task/task_newtask", "task/task_rename")


def folder(instance=None):
    """Of a tracefs or an instance of it."""
    return f"{TRACEFS}/instances/{instance}" if instance else TRACEFS


def config(producer, events, ftrace="", process_stats=None, more=""):
    """A trace config as text.  ftrace: more fields of FtraceConfig;
    process_stats: fields of ProcessStatsConfig, None: without names; more:
    fields of the TraceConfig."""
    filtered = f'producer_name_filter: "{producer}"' if producer else ""
    names = "" if process_stats is None else f"""
        data_sources {{ config {{ name: "linux.process_stats"
            process_stats_config {{ {process_stats} }} }} {filtered} }}"""
    wanted = " ".join(f'ftrace_events: "{event}"' for event in events)
    return f"""
        {more} buffers {{ size_kb: 65536 }}
        data_sources {{ config {{ name: "linux.ftrace"
            ftrace_config {{ {wanted} {ftrace} }} }} {filtered} }}{names}"""


class Recording:
    """`tributary record` in the machine, once all of it has started."""

    def __init__(self, case, name, text):
        self._case, self._vm = case, case.vm
        self._name = name
        self._path = f"/tmp/{name}.pftrace"
        self._vm.put(f"/tmp/{name}.cfg", text)
        # A byte that is 0 comes through the FIFO when all has started.
        self._vm.run(f"rm -f {self._path}* /tmp/{name}.log; "
                     f"mkfifo {self._path}.up")
        self._pid = int(self._vm.run(
            f"tributary record --connect {case.CONSUMERS} --notify-fd 3 "
            f"-c /tmp/{name}.cfg -o {self._path} >/tmp/{name}.log 2>&1 "
            f"3<>{self._path}.up & echo $!"))
        up = self._vm.run(f"head -c 1 {self._path}.up | od -An -tu1")
        case.assertEqual(int(up), 0, self._vm.log(name))

    def so_far(self):
        """Bytes of the trace; of one with write_into_file, while it grows."""
        return self._vm.read(self._path)

    def stop(self, status=0):
        """Ends it, with this status (None: any); what it said."""
        ended, _ = self._vm.output(f"kill -INT {self._pid}; wait {self._pid}")
        said = self._vm.log(self._name)
        if status is not None:
            self._case.assertEqual(ended, status, said)
        return said

    def finish(self, status=0):
        """Ends it; the trace."""
        self.said = self.stop(status)
        path = self._case.path(os.path.basename(self._path))
        with open(path, "wb") as file:
            file.write(self._vm.read(self._path))
        return Trace.from_file(path)


class Misfit(AssertionError):
    """Two recordings do not tell the same."""


def _keys(rows):
    """The kernel reads the state of a thread that ends once for each buffer,
    too: its parent may have taken note of it in between."""
    return [tuple("Z" if part == "X" else part for part in row[1:])
            for row in rows]


def same(ours, theirs):
    """Whether rows (time, ...) of two recordings, each of all that happened on
    one processor between two instants, are the same but for their times; how
    many there are.

    The kernel takes the time of an event once for each buffer that it goes
    into, and does not begin the next before.  So one event, and no more, may
    seem to lie before an instant in one buffer and behind it in the other.
    """
    for head in (-1, 0, 1):
        a, b = ours[max(head, 0):], theirs[max(-head, 0):]
        for tail in {0, len(a) - len(b)} & {-1, 0, 1}:
            mine = a[:len(a) - max(tail, 0)]
            other = b[:len(b) - max(-tail, 0)]
            if _keys(mine) == _keys(other):
                return len(mine)
    _say_where(ours, theirs)
    return 0


def _say_where(ours, theirs):
    """Of the first rows that differ."""
    at = next((n for n, (a, b) in enumerate(zip(ours, theirs))
               if a[1:] != b[1:]), min(len(ours), len(theirs)))
    lines = [f"{len(ours)} rows beside {len(theirs)}; they differ from the "
             f"{at}th on:"]
    for row in zip(ours[max(at - 3, 0):at + 5], theirs[max(at - 3, 0):at + 5]):
        lines.append("  %s   |   %s" % row)
    raise Misfit("\n".join(lines))


PRINTS = ("select extract_arg(arg_set_id, 'buf'), ts from ftrace_event "
          "where name = 'print'")
# Each row: where it is to be the same, its time, and what has to be the same.
# Threads by their numbers: what one is called at last depends on when the
# recording ended.
SLICES = ("select cpu, ts, tid, priority, ifnull(end_state, '') "
          "from sched left join thread using (utid) order by cpu, ts")
WAKEUPS = ("select cpu, ts, extract_arg(arg_set_id, 'pid'), "
           "extract_arg(arg_set_id, 'comm'), extract_arg(arg_set_id, 'prio'), "
           "extract_arg(arg_set_id, 'target_cpu') from ftrace_event "
           "where name = 'sched_waking' order by cpu, ts")
STATES = ("select t.tid, ts, t.name, state, ifnull(w.tid, '') "
          "from thread_state s join thread t using (utid) "
          "left join thread w on w.utid = s.waker_utid "
          "where t.name in ({names}) order by t.tid, ts")


def mark(text):
    """Of Android's form, which Trace Processor understands: an instant."""
    return f"I|1|{text}"


class Seen:
    """Of a recording with marks "begin" and "end": slices and wakeups of each
    processor; states of each of the threads of these names, as (time, ...) in
    lists."""

    def __init__(self, trace, names):
        names = ", ".join(f"'{name}'" for name in names)
        prints, *rows = trace.ask(PRINTS, SLICES, WAKEUPS,
                                  STATES.format(names=names))
        times = {text.strip(): ts for text, ts in prints}
        self.begin, self.end = times[mark("begin")], times[mark("end")]
        self.slices, self.wakeups, self.states = map(_by_first, rows)


def _by_first(rows):
    out = {}
    for first, *rest in rows:
        out.setdefault(first, []).append(tuple(rest))
    return out


def compare(ours, theirs, *names):
    """Of two recordings that both were marked when the load, threads of these
    names, began and ended: the same slices, wakeups and states.  How many of
    each there are."""
    ours, theirs = Seen(ours, names), Seen(theirs, names)
    begin, end = max(ours.begin, theirs.begin), min(ours.end, theirs.end)

    def between(rows):
        return [row for row in rows or () if begin < row[0] < end]
    counts = {}
    for kind in ("slices", "wakeups", "states"):
        mine, other = getattr(ours, kind), getattr(theirs, kind)
        counts[kind] = sum(
            same(between(mine.get(key)), between(other.get(key)))
            for key in mine.keys() | other.keys())
    return counts
