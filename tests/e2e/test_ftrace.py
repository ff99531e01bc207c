#!/usr/bin/env python3
"""The kernel's own events: linux.ftrace in a real kernel, an emulated machine's
(harness/vm.py), with the collector and Perfetto's traced_probes in it.

Two recordings of the same time are held against each other by SQL; each has a
buffer of the kernel's to itself, tracefs or an instance of it, as who reads a
buffer takes the events out of it.
"""

import functools
import os
import re
import sys
import unittest

from harness import ftrace, pb, tap, vm
from harness.imported import causes
from test_vm import VmCase

PROGRAMS = ("TRIBUTARYD", "TRIBUTARY", "TRIBUTARY_PROBES", "SWITCHES")
PROCESSORS = 2
# Pairs of threads, and how often each of them sends a byte there and back.
PAIRS, ROUNDS = 4, 500
WHY_NOT = vm.unavailable()
patient = {"timeout": vm.PATIENCE}
# Files of tracefs that a recording may change.
SETTINGS = ("tracing_on", "trace_clock", "buffer_size_kb", "buffer_percent",
            "set_event", "set_event_pid", "tracing_cpumask", "trace_options",
            "current_tracer", "events/raw_syscalls/sys_enter/filter")


@functools.cache
def machine():
    """One boot for all tests of this file."""
    found = vm.Machine([os.environ[name] for name in PROGRAMS],
                       perfetto=vm.has_perfetto(), processors=PROCESSORS)
    print(f"# booted in {found.boot_seconds:.1f} s")
    # The kernel has smaller buffers until they are used first.
    found.run(f"echo 64 >{ftrace.TRACEFS}/buffer_size_kb")
    return found


class FtraceCase(VmCase):
    """With a collector and our probes in the machine."""

    PRODUCERS = "/run/producers"
    CONSUMERS = "/run/consumers"
    machine = staticmethod(machine)

    def setUp(self):
        super().setUp()
        self.there("tributaryd", "--producer-socket", self.PRODUCERS,
                   "--consumer-socket", self.CONSUMERS,
                   said="listening for consumers")

    def offers(self, producer):
        return any(
            "linux.ftrace" in line and producer in line
            for line in self.vm.run(
                f"tributary sources --connect {self.CONSUMERS}").splitlines())

    def our_probes(self, *flags):
        """Their process."""
        self.there("tributary-probes", "--producer-socket", self.PRODUCERS,
                   *flags)
        self.until(lambda: self.offers(ftrace.OURS),
                   "tributary-probes offers linux.ftrace", **patient)
        return self.pids[-1]

    def their_probes(self):
        self.there(f"{vm.PERFETTO}/run", "traced_probes",
                   PERFETTO_PRODUCER_SOCK_NAME=self.PRODUCERS)
        self.until(lambda: self.offers(ftrace.THEIRS),
                   "traced_probes offers linux.ftrace", **patient)
        return self.pids[-1]

    def record(self, name, events, fields="", producer=ftrace.OURS, **options):
        return ftrace.Recording(self, name, ftrace.config(
            producer, events, fields, **options))

    def instance(self, name):
        """An instance of tracefs; the field of FtraceConfig that asks for
        it."""
        path = ftrace.folder(name)
        self.vm.run(f"mkdir {path}")
        self.addCleanup(self.vm.run, f"rmdir {path}")
        return f'instance_name: "{name}" '

    def say(self, text, *instances):
        """Into tracefs and instances of it."""
        self.vm.run("; ".join(
            f"echo '{ftrace.mark(text)}' >{ftrace.folder(i)}/trace_marker"
            for i in (None, *instances)))

    def switches(self, pairs=PAIRS, rounds=ROUNDS):
        """Makes threads switch: the least number of switches there was."""
        self.vm.run(f"switches {pairs} {rounds}")
        return 2 * pairs * rounds

    def settings(self):
        """{file of tracefs: contents}"""
        return {name: self.vm.read(f"{ftrace.TRACEFS}/{name}").decode()
                for name in SETTINGS}

    def wait_settings(self, wanted):
        self.until(lambda: self.settings() == wanted,
                   "tracefs is as it was", **patient)

    def events(self, trace):
        """{name: number} of the kernel's events."""
        return dict(trace.sql(
            "select name, count(*) from ftrace_event group by name"))

    def prints(self, trace):
        """Texts of ftrace/print, in time."""
        return [text.strip().removeprefix(ftrace.mark("")) for text, _ in
                trace.sql(f"{ftrace.PRINTS} order by ts")]


class Comparison(unittest.TestCase):
    """What is taken for the same, and what is not."""

    ROWS = [(10 * n, n % 7) for n in range(30)]

    def later(self, rows):
        return [(time + 3, key) for time, key in rows]

    def test_the_same_a_little_later(self):
        self.assertEqual(ftrace.same(self.ROWS, self.later(self.ROWS)), 30)
        self.assertEqual(ftrace.same([], []), 0)

    def test_one_beyond_an_edge(self):
        later = self.later(self.ROWS)
        self.assertEqual(ftrace.same(self.ROWS, later[1:]), 29)
        self.assertEqual(ftrace.same(self.ROWS[1:], later), 29)
        self.assertEqual(ftrace.same(self.ROWS, later[:-1]), 29)
        self.assertEqual(ftrace.same(self.ROWS[1:], later[:-1]), 28)

    def test_what_is_missing(self):
        for rows in (self.ROWS[:10] + self.ROWS[11:], self.ROWS[:-2],
                     self.ROWS[2:], []):
            for pair in ((self.ROWS, rows), (rows, self.ROWS)):
                with self.assertRaises(ftrace.Misfit):
                    ftrace.same(*pair)

    def test_what_is_another(self):
        rows = [*self.ROWS[:-1], (290, 99)]
        with self.assertRaises(ftrace.Misfit):
            ftrace.same(self.ROWS, rows)


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
@unittest.skipUnless(vm.has_perfetto(), "deploy/install-deps peers")
class BesideTheirs(FtraceCase):
    def both(self, ours, theirs, fields=""):
        """Recordings of one load by both, with buffers of the same size, in
        these instances.  Nothing is lost, or the traces would not pass.
        Names are those of the events: what /proc says of a thread is of
        another moment."""
        events = [*ftrace.SCHED, "ftrace/print"]
        fields += "buffer_size_kb: 2048 "
        places = {name: self.instance(name) if name else ""
                  for name in (ours, theirs)}
        mine = self.record("mine", events, fields + places[ours])
        other = self.record("other", events, fields + places[theirs],
                            ftrace.THEIRS)
        self.say("begin", *filter(None, (ours, theirs)))
        least = self.switches()
        self.say("end", *filter(None, (ours, theirs)))
        mine, other = mine.finish(), other.finish()
        counts = ftrace.compare(mine, other, "asks", "answers")
        print(f"# {counts}")
        self.assertGreaterEqual(counts["slices"], least)
        self.assertGreater(counts["wakeups"], 0)
        self.assertGreater(counts["states"], 0)

    def test_the_same_slices_wakeups_and_states(self):
        self.our_probes()
        self.their_probes()
        self.both(None, "theirs")

    def test_the_same_in_an_instance_and_without_columns(self):
        self.our_probes()
        self.their_probes()
        self.both("ours", None, "compact_sched { enabled: false } ")


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Losses(FtraceCase):
    # A buffer of two pages, which nobody reads meanwhile.
    SMALL = "buffer_size_kb: 8 drain_period_ms: 60000 "
    MARKS = 2000

    def lost(self):
        """What the kernel counts, on all processors."""
        said = self.vm.run(f"cat {ftrace.TRACEFS}/per_cpu/cpu*/stats")
        return sum(int(n) for n in re.findall(
            r"^(?:overrun|commit overrun|dropped events): (\d+)$", said, re.M))

    @causes("ftrace_cpu_has_data_loss")
    def test_what_is_lost_is_told_exactly(self):
        """Of so many texts each is in the trace, or counted."""
        self.our_probes()
        recording = self.record("t", ["ftrace/print"], self.SMALL)
        before = self.lost()
        # Where they are written, and so lost, is otherwise the scheduler's
        # choice.
        self.vm.run(f"taskset 2 sh -c 'for n in $(seq {self.MARKS}); do "
                    f"echo \"I|1|$n\"; done >{ftrace.TRACEFS}/trace_marker'")
        lost = self.lost() - before
        self.assertGreater(lost, 0)
        trace = recording.finish()
        told, = trace.sql("select sum(value) from stats "
                          "where name = 'ftrace_cpu_overrun_delta'")
        self.assertEqual(told, (lost,))
        self.assertIn(f"{lost:,} events overwritten unread in the kernel's "
                      "ftrace buffer, on CPU 1", recording.said)
        found = [int(text) for text in self.prints(trace)]
        self.assertEqual(len(found) + lost, self.MARKS)
        self.until(lambda: f"{lost:,} on CPU 1" in self.vm.run(
            f"tributary top -n 1 --plain --connect {self.CONSUMERS}"),
            "top shows what the kernel lost", **patient)
        self.assertEqual(len(set(found)), len(found))

    def test_what_the_kernel_does_not_have(self):
        self.our_probes()
        recording = self.record("t", ["sched/nope", "no*/such", "ftrace/print"])
        self.say("here")
        trace = recording.finish(status=3)
        self.assertEqual(self.prints(trace), ["here"])
        for name in ("sched/nope", "no*/such"):
            self.assertIn(f"{name}: the kernel has no such event",
                          recording.said)
        ((errors,),) = trace.sql("select str_value from metadata "
                                 "where name = 'ftrace_setup_errors'")
        self.assertIn("sched/nope", errors)


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Sessions(FtraceCase):
    def test_each_gets_what_it_asked_for(self):
        """Two that share tracefs, of which one begins and ends within the
        other."""
        self.our_probes()
        one = self.record("one", ["sched/sched_switch", "ftrace/print"])
        self.say("one")
        two = self.record("two", ["irq/softirq_*", "ftrace/print"])
        self.say("both")
        self.switches(2, 50)
        two = two.finish()
        self.say("one again")
        one = one.finish()
        self.assertEqual(set(self.events(one)), {"sched_switch", "print"})
        self.assertEqual(set(self.events(two)) - {
            "softirq_entry", "softirq_exit", "softirq_raise"}, {"print"})
        self.assertEqual(self.prints(one), ["one", "both", "one again"])
        self.assertEqual(self.prints(two), ["both"])

    def test_names_of_processes_and_threads(self):
        """All threads that ran have a name, and those that are there still a
        process with its command line; so they do after incremental state was
        cleared, in the second half of the trace."""
        self.our_probes()
        recording = self.record(
            "t", ["sched/sched_switch"], process_stats="",
            more="incremental_state_config { clear_period_ms: 300 } "
            "write_into_file: true file_write_period_ms: 100 "
            "flush_period_ms: 100 ")
        daemon = f"tributaryd --producer-socket {self.PRODUCERS} " \
            f"--consumer-socket {self.CONSUMERS}"
        # Field 3 of a process is an argument: one that is this alone.
        argument = b"\x1a\x11--consumer-socket"
        self.until(lambda: recording.so_far().count(argument) >= 2,
                   "the daemon is told twice", **patient)
        trace = recording.finish()
        nameless, processless, cmdlines = trace.ask(
            "select distinct tid from sched join thread using (utid) "
            "where name is null",
            "select distinct thread.name from sched join thread using (utid) "
            "where upid is null and tid != 0 "
            "and thread.name in ('tributaryd', 'tributary-probe')",
            "select cmdline from process")
        self.assertEqual(nameless, [])
        self.assertEqual(processless, [])
        self.assertIn((daemon,), cmdlines)
        told = [packet for packet in trace.of("process_tree")
                for process in packet.process_tree.processes
                if " ".join(process.cmdline) == daemon]
        self.assertGreaterEqual(len(told), 2)

    def test_a_second_program_is_refused(self):
        """It would take the other's events."""
        self.our_probes()
        one = self.record("one", ["ftrace/print"])
        self.there("tributary-probes", "--producer-socket", self.PRODUCERS)
        self.until(lambda: self.vm.run(
            f"tributary sources --connect {self.CONSUMERS}").count(
            "linux.ftrace") == 2, "both are there", **patient)
        two = self.record("two", ["ftrace/print"])
        self.say("here")
        # Each session has instances of both: one that records, one that says
        # why it does not.
        for recording in (two, one):
            trace = recording.finish(status=3)
            self.assertIn("Ftrace          nothing is recorded: another "
                          "tributary-probes records ftrace", recording.said)
            self.assertEqual(self.prints(trace), ["here"])


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class PutBack(FtraceCase):
    """Tracefs is as somebody else left it, who traced as well."""

    def setUp(self):
        super().setUp()
        self.vm.run(f"(cd {ftrace.TRACEFS}; echo 0 >tracing_on; "
                    "echo mono >trace_clock; echo 128 >buffer_size_kb; "
                    "echo 1 >events/sched/sched_wakeup/enable)")
        self.addCleanup(self.vm.run, f"(cd {ftrace.TRACEFS}; "
                        "echo 0 >events/enable; echo global >trace_clock; "
                        "echo 64 >buffer_size_kb; echo 1 >tracing_on)")
        self.before = self.settings()

    def begin(self):
        probes = self.our_probes()
        recording = self.record(
            "t", ["sched/*", "irq/softirq_*"], "buffer_size_kb: 512 "
            'tids_to_trace: 1 syscall_events: "sys_read" tracing_cpumask: "1" '
            'tracefs_options { name: "event-fork" state: STATE_ENABLED }')
        self.assertNotEqual(self.settings(), self.before)
        return probes, recording

    def test_at_the_end_of_a_session(self):
        _, recording = self.begin()
        recording.stop(status=None)
        self.wait_settings(self.before)

    def test_at_the_end_of_the_program(self):
        probes, recording = self.begin()
        self.vm.end(probes)
        self.pids.remove(probes)
        self.assertEqual(self.settings(), self.before)
        recording.stop(status=None)

    def test_after_it_was_killed(self):
        """By the next one, which says so."""
        probes, recording = self.begin()
        self.vm.output(f"kill -KILL {probes}; wait {probes}")
        self.pids.remove(probes)
        recording.stop(status=None)
        self.assertNotEqual(self.settings(), self.before)
        self.our_probes()
        self.assertEqual(self.settings(), self.before)
        self.assertRegex(self.vm.log("tributary-probes"),
                         "put back [0-9]+ settings of /sys/kernel/tracing")

    def test_by_hand_after_it_was_killed(self):
        """To what is after a boot: the other's event is gone, too."""
        probes, recording = self.begin()
        self.vm.output(f"kill -KILL {probes}; wait {probes}")
        self.pids.remove(probes)
        recording.stop(status=None)
        self.vm.run("tributary-probes --cleanup-after-crash")
        now = self.settings()
        self.assertEqual((now["set_event"], now["tracing_on"],
                          now["current_tracer"]), ("", "1\n", "nop\n"))
        self.assertEqual(now["set_event_pid"], self.before["set_event_pid"])

    def test_before_it_begins(self):
        self.our_probes("--reset-ftrace")
        now = self.settings()
        self.assertEqual((now["set_event"], now["tracing_on"]), ("", "1\n"))


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Rights(FtraceCase):
    def test_of_a_user_without_rights(self):
        """It offers the rest."""
        self.vm.run(f"chmod 666 {self.PRODUCERS}")
        self.there("su", "nobody", "-s", "/bin/sh", "-c", "'exec "
                   f"tributary-probes --producer-socket {self.PRODUCERS}'",
                   said="no right to use /sys/kernel/tracing")
        self.until(lambda: ftrace.OURS in self.vm.run(
            f"tributary sources --connect {self.CONSUMERS}"),
            "the probes are there", **patient)
        self.assertFalse(self.offers(ftrace.OURS))

    def test_where_tracefs_is_not_mounted(self):
        self.vm.run(f"umount {ftrace.TRACEFS}")
        self.addCleanup(self.vm.run,
                        f"mount -t tracefs none {ftrace.TRACEFS}")
        self.there("tributary-probes", "--producer-socket", self.PRODUCERS,
                   said="mount -t tracefs tracefs /sys/kernel/tracing")


@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Fields(FtraceCase):
    """Of FtraceConfig: each does what it says."""

    def setUp(self):
        super().setUp()
        self.our_probes()

    def test_filters(self):
        """Texts, threads and system calls, each in a session of its own at
        the same time; what one leaves out another has."""
        shell = int(self.vm.run("echo $$"))
        prints = self.record("prints", ["ftrace/print"], """print_filter {
            rules { atrace_msg { type: "C" prefix: "keep" } allow: true }
            rules { prefix: "I|1|keep" allow: true }
            rules { prefix: "" allow: false } }""")
        calls = self.record("calls", [], 'syscall_events: "sys_chdir"')
        for text in ("C|1|keep|1", "C|1|drop|1", "I|1|keep", "I|1|drop"):
            self.vm.run(f"echo '{text}' >{ftrace.TRACEFS}/trace_marker")
        self.vm.run("cd /tmp; cd /run")
        calls, prints = calls.finish(), prints.finish()
        self.assertEqual([text.strip() for text, _ in
                          prints.sql(f"{ftrace.PRINTS} order by ts")],
                         ["C|1|keep|1", "I|1|keep"])
        self.assertEqual(set(self.events(calls)), {"sys_enter", "sys_exit"})
        rows = calls.sql(
            "select slice.name, count(*) from slice join thread_track t "
            "on t.id = track_id join thread using (utid) "
            f"where tid = {shell} group by slice.name")
        self.assertEqual(rows, [("sys_chdir", 2)])

    def test_threads(self):
        shell = int(self.vm.run("echo $$"))
        recording = self.record("t", ["raw_syscalls/sys_enter"],
                                f"tids_to_trace: {shell} ")
        self.vm.run("cd /tmp")
        rows = recording.finish().sql(
            "select distinct tid from ftrace_event join thread using (utid)")
        self.assertEqual(rows, [(shell,)])

    def test_events_without_a_message_of_their_own(self):
        for fields in ("", "denser_generic_event_encoding: true"):
            with self.subTest(fields=fields):
                recording = self.record(
                    "t", ["syscalls/sys_enter_chdir"], fields)
                self.vm.run("cd /tmp")
                names = self.events(recording.finish())
                self.assertGreaterEqual(names["sys_enter_chdir"], 1)
        recording = self.record("t", ["syscalls/sys_enter_chdir",
                                      "ftrace/print"],
                                "disable_generic_events: true")
        self.vm.run("cd /tmp")
        self.say("here")
        self.assertEqual(set(self.events(recording.finish(status=3))),
                         {"print"})
        self.assertIn("syscalls/sys_enter_chdir: it could not be switched on",
                      recording.said)

    def test_names_of_functions(self):
        recording = self.record("t", ["workqueue/workqueue_execute_start"],
                                "symbolize_ksyms: true")
        self.until(lambda: re.search(r"^read events: [1-9]", self.vm.run(
            f"cat {ftrace.TRACEFS}/per_cpu/cpu*/stats"), re.M), "work is done",
            **patient)
        known = set(self.vm.run("cut -d' ' -f3 /proc/kallsyms").split())
        rows = recording.finish().sql(
            "select distinct extract_arg(arg_set_id, 'function') "
            "from ftrace_event where name = 'workqueue_execute_start'")
        self.assertTrue(rows)
        self.assertLessEqual({name for name, in rows}, known)

    def uptime(self):
        """Nanoseconds; what is there has hundredths of seconds."""
        return int(float(self.vm.read("/proc/uptime").split()[0]) * 1e9)

    def test_another_clock(self):
        """Times are placed on the boot clock."""
        recording = self.record("t", ["ftrace/print"],
                                "use_monotonic_raw_clock: true")
        before = self.uptime()
        self.say("here")
        after = self.uptime() + 10 ** 7
        self.assertIn("[mono_raw]", self.settings()["trace_clock"])
        ((_, ts),) = recording.finish().sql(ftrace.PRINTS)
        # Ticks of both clocks are not the same length.
        self.assertGreaterEqual(ts, before - 10 ** 8)
        self.assertLessEqual(ts, after + 10 ** 8)

    def test_events_of_before(self):
        for keep in ("true", "false"):
            with self.subTest(keep=keep):
                self.vm.run(f"echo boot >{ftrace.TRACEFS}/trace_clock; "
                            f"echo >{ftrace.TRACEFS}/trace")
                self.say("before")
                recording = self.record("t", ["ftrace/print"],
                                        f"preserve_ftrace_buffer: {keep}")
                self.say("within")
                texts = self.prints(recording.finish())
                self.assertEqual(texts, ["before", "within"] if keep == "true"
                                 else ["within"])


@tap.slow
@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
@unittest.skipUnless(vm.has_perfetto(), "deploy/install-deps peers")
class Figures(FtraceCase):
    PAIRS, ROUNDS = 2, 6000

    def processor_ns(self, pid):
        """What all its threads have used."""
        said = self.vm.run(f"cat /proc/{pid}/task/*/schedstat")
        return sum(int(line.split()[0]) for line in said.splitlines())

    def count(self, trace):
        """Without Trace Processor, for a run with all else stopped."""
        bundles = [pb.FtraceEventBundle.FromString(packet.ftrace_events)
                   for packet in trace.of("ftrace_events")]
        return sum(len(b.event) + len(b.compact_sched.switch_timestamp) +
                   len(b.compact_sched.waking_timestamp) for b in bundles)

    def test_processor_time_for_each_event(self):
        """Of both while both record the same, once set up, to the end of the
        session; each is once in tracefs and once in an instance."""
        probes = {ftrace.OURS: self.our_probes(),
                  ftrace.THEIRS: self.their_probes()}
        for fields, kind in (("", "columns"),
                             ("compact_sched { enabled: false } ", "events")):
            spent = dict.fromkeys(probes, 0)
            events = dict.fromkeys(probes, 0)
            for within in probes:
                place = self.instance(f"i{kind}{probes[within]}")
                recordings = {name: self.record(
                    name, ["sched/sched_switch", "sched/sched_waking"],
                    fields + "buffer_size_kb: 8192 " +
                    (place if name == within else ""), name)
                    for name in probes}
                began = {name: self.processor_ns(pid)
                         for name, pid in probes.items()}
                self.switches(self.PAIRS, self.ROUNDS)
                traces = {name: recording.finish()
                          for name, recording in recordings.items()}
                for name, pid in probes.items():
                    spent[name] += self.processor_ns(pid) - began[name]
                    events[name] += self.count(traces[name])
            for name in probes:
                print(f"# {kind}: {name}: {spent[name] / events[name]:.0f} ns "
                      f"of processor for each of {events[name]} events")


if __name__ == "__main__":
    sys.exit(tap.main())
