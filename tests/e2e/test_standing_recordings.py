#!/usr/bin/env python3
"""Standing recordings: they begin with the daemon, and again whatever ends
them; SIGHUP changes them; commands start, stop and cut them; flight recorders
write a segment at a trigger."""

import errno
import json
import os
import signal
import subprocess
import sys

from harness import faults, real, tap
from harness.case import Case, pb
from harness.daemon import environment
from harness.trace import Trace

ERRORS = "SELECT name, value FROM stats WHERE severity = 'error' AND value > 0"


def config_of(source, more=""):
    return (f'buffers {{ size_kb: 4096 }} file_write_period_ms: 100 {more} '
            f'data_sources {{ config {{ name: "{source}" }} }}')


def recording(name, more="", source=None):
    return (f'recording {{ name: "{name}" config_file: "{source or name}.pbtx"'
            f' {more} }}\n')


class RecordingCase(Case):
    def setUp(self):
        super().setUp()
        self.archive = self.path("archive")
        os.mkdir(self.archive)
        self.settings = self.path("settings.pbtx")
        for name in "abc":
            self.write(f"{name}.pbtx", config_of(name))

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def say(self, *recordings):
        self.write("settings.pbtx",
                   f'archive_dir: "{self.archive}"\n' + "".join(recordings))

    def begin(self, *recordings, **options):
        self.say(*recordings)
        return self.daemon(flags=["--config", self.settings], **options)

    def run_command(self, *words):
        """While it runs the producers of this test are served."""
        process = subprocess.Popen(
            [os.environ["TRIBUTARY"], "recordings", "--connect",
             self.daemons[-1].consumer_path, *words], env=environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.until(lambda: process.poll() is not None, "the command ends")
        out, err = process.communicate()
        return process.returncode, out.decode(), err.decode()

    def must(self, *words):
        code, out, err = self.run_command(*words)
        self.assertEqual((code, err), (0, ""), out)
        return out

    def look(self, name):
        found = {r["name"]: r for r in json.loads(self.must("--json"))}
        return found.get(name)

    def wait_for(self, name, state):
        self.until(lambda: self.look(name)["state"] == state,
                   f"recording {name} is {state}")
        return self.look(name)

    def files(self, name, end=".pftrace"):
        top = os.path.join(self.archive, name)
        return sorted(os.path.join(path, file)
                      for path, _, names in os.walk(top) for file in names
                      if file.endswith(end))

    def segments(self, name):
        """All, each of which opens by itself without an error."""
        found = []
        for path in self.files(name):
            trace = Trace.from_file(path)
            self.assertEqual(trace.sql(ERRORS), [], path)
            found.append(trace)
        return found

    def head(self, trace):
        return trace.packets[0].tributary_segment

    def numbers(self, traces):
        """Of all sequences of all traces together, sorted."""
        return sorted(p.for_testing.counter
                      for t in traces for p in t.of("for_testing"))


class Recordings(RecordingCase):
    def test_it_begins_with_the_daemon_and_is_cut_on_command(self):
        self.begin(recording("a", "keep { size_mb: 5 hours: 3 }"))
        producer = self.producer("p", ["a"])
        producer.wait_started()
        writer = producer.writer()
        writer.number(100)
        state = self.wait_for("a", "recording")
        self.assertEqual((state["begun"], state["segment"]), (1, 1))
        self.assertEqual((state["keep_bytes"], state["keep_ms"]),
                         (5 << 20, 3 * 3600000))
        self.assertEqual(self.must("rotate", "a"), "cut a\n")
        self.until(lambda: self.files("a"), "a whole segment")
        writer.number(50)
        self.assertEqual(self.must("stop", "a"), "stopped a\n")
        traces = self.segments("a")
        self.assertEqual([self.head(t).number for t in traces], [1, 2])
        self.assertEqual({self.head(t).recording for t in traces}, {"a"})
        self.assertEqual(self.head(traces[1]).begun_by.cause,
                         pb.SegmentCut.REQUEST)
        self.assertEqual(self.numbers(traces), list(range(150)))
        self.assertIn("a  ", self.must())
        self.assertIn("5.0 MiB, 3 h", self.must("--long"))

    def test_what_a_person_stopped_is_started_by_a_person(self):
        self.begin(recording("a"))
        producer = self.producer("p", ["a"])
        producer.wait_started()
        self.must("stop", "a")
        self.assertEqual(self.look("a")["state"], "stopped")
        code, _, err = self.run_command("rotate", "a")
        self.assertEqual(code, 1)
        self.assertIn("does not record", err)
        self.must("start", "a")
        producer.wait_started()
        self.assertEqual(self.look("a")["begun"], 2)
        code, _, err = self.run_command("start", "nix")
        self.assertEqual(code, 1)
        self.assertIn("no recording", err)
        # A new daemon knows nothing of it.
        self.must("stop", "a")
        self.daemons[0].stop()
        self.daemons[0].start()
        self.wait_for("a", "recording")

    def test_a_producer_that_is_killed_ends_no_recording(self):
        self.begin(recording("a"))
        first = self.producer("p", ["a"])
        first.wait_started()
        writer = first.writer()
        writer.number(30)
        first.close()
        second = self.producer("q", ["a"])
        second.wait_started()
        writer = second.writer()
        writer.number(20)
        self.assertEqual(self.look("a")["begun"], 1)
        self.must("stop", "a")
        self.assertEqual(self.numbers(self.segments("a")),
                         sorted([*range(30), *range(20)]))

    def test_other_settings_disturb_no_recording_that_stays(self):
        daemon = self.begin(recording("a"), recording("b"))
        producer = self.producer("p", ["a"])
        other = self.producer("q", ["b", "c"])
        producer.wait_started()
        other.wait_started()
        writer = producer.writer()
        changed = config_of("b", "flush_period_ms: 700")
        for step in range(3):
            writer.number(40)
            self.write("b.pbtx", changed if step % 2 == 0 else config_of("b"))
            self.say(recording("c") if step == 1 else "", recording("a"),
                     recording("b"))
            begun = self.look("b")["begun"]
            daemon.signal(signal.SIGHUP)
            writer.number(40, ask=False)
            self.until(lambda: (self.look("b")["begun"] > begun and
                                self.look("b")["state"] == "recording"),
                       "the changed one begins anew")
            writer.number(40)
        self.until(lambda: self.look("c") is None, "what was removed goes")
        self.assertEqual(self.look("a")["begun"], 1)
        self.assertTrue(self.files("c"))
        self.must("stop", "a")
        traces = self.segments("a")
        self.assertEqual(len(traces), 1)
        self.assertEqual(self.numbers(traces), list(range(360)))
        self.assertEqual(traces[0].losses(), [])

    def test_settings_that_are_wrong_change_nothing(self):
        daemon = self.begin(recording("a"))
        session = self.wait_for("a", "recording")["session"]
        self.write("b.pbtx", "buffers {\n  size: 4\n}\n")
        self.say(recording("b"))
        daemon.signal(signal.SIGHUP)
        self.until(lambda: "recordings stay as they are" in daemon.log(),
                   "the fault is told")
        self.assertIn("b.pbtx:2:3: error: ", daemon.log())
        self.assertEqual(self.look("a")["session"], session)

    def test_a_fault_of_a_config_is_told_with_its_line(self):
        self.write("a.pbtx", "buffers {\n  size: 4\n}\n")
        self.say(recording("a"))
        for flags in (["--check-config"], []):
            done = subprocess.run(
                [os.environ["TRIBUTARYD"], "--config", self.settings, *flags],
                env=environment(), capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("a.pbtx:2:3: error: ", done.stderr)
        self.write("a.pbtx", config_of("a", 'output_path: "x"'))
        done = subprocess.run(
            [os.environ["TRIBUTARYD"], "--config", self.settings,
             "--check-config"], env=environment(), capture_output=True,
            text=True)
        self.assertIn("has no output_path", done.stderr)

    def test_a_killed_daemon_leaves_segments_that_the_next_one_closes(self):
        daemon = self.begin(recording("a"))
        producer = self.producer("p", ["a"])
        producer.wait_started()
        writer = producer.writer()
        writer.number(500)
        self.until(lambda: self.look("a")["bytes"] > 50000,
                   "most is in the file")
        daemon.kill()
        self.assertEqual(len(self.files("a", ".part")), 1)
        self.begin(recording("a"))
        self.wait_for("a", "recording")
        whole = self.files("a")
        self.assertEqual(len(whole), 1)
        trace = Trace.from_file(whole[0])
        numbers = self.numbers([trace])
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreater(len(numbers), 300)
        self.until(lambda: len(self.files("a", ".part")) == 1,
                   "the next segment is being written")

    def test_an_upgrade_completes_the_segments_and_begins_anew(self):
        daemon = self.begin(recording("a"))
        producer = self.producer("p", ["a"])
        producer.wait_started()
        producer.writer().number(70)
        daemon.signal(signal.SIGUSR2)
        self.until(lambda: daemon.log().count("recording a: begins") == 2,
                   "the next daemon's recording begins")
        self.assertNotIn("begins again in", daemon.log())
        first = Trace.from_file(self.files("a")[0])
        self.assertEqual(self.numbers([first]), list(range(70)))
        self.assertTrue(first.packets[-1].tributary_segment.HasField("end"))
        self.assertEqual(self.wait_for("a", "recording")["begun"], 1)

    @real.needed
    def test_perfettos_probes_are_recorded(self):
        self.write("p.pbtx", 'buffers { size_kb: 4096 } file_write_period_ms: '
                   '100 data_sources { config { name: "linux.sys_stats" '
                   'sys_stats_config { meminfo_period_ms: 10 } } }')
        self.begin(recording("p"))
        probes = real.Probes(self.folder, self.daemons[0].producer_path)
        self.daemons.insert(0, probes)
        probes.start()
        for count in (1, 2):
            size = self.look("p")["bytes"]
            self.until(lambda: self.look("p")["bytes"] > size + 2000,
                       "probes write")
            self.must("rotate", "p")
            self.until(lambda: len(self.files("p")) == count,
                       "a whole segment")
        self.must("stop", "p")
        traces = self.segments("p")
        self.assertEqual(len(traces), 3)
        for trace in traces[:2]:
            self.assertTrue(trace.of("sys_stats"))


class Disk(RecordingCase):
    def test_a_full_disk_ends_it_and_it_begins_again(self):
        plan = faults.Plan(self.path("plan"), match="/archive/")
        self.begin(recording("a"), recording("b"), env=plan.env())
        if not plan.loaded:
            self.skipTest("nothing can be preloaded here")
        producer = self.producer("p", ["a"])
        producer.wait_started()
        self.wait_for("a", "recording")
        plan.write_errno = errno.ENOSPC
        producer.writer().number(100)
        state = self.wait_for("a", "waiting")
        self.assertIn("no space left on the disk", state["reason"])
        self.assertIn("no space left on the disk", self.daemons[0].log())
        plan.heal()
        state = self.wait_for("a", "recording")
        self.assertGreater(state["begun"], 1)
        producer.wait_started()
        producer.writer().number(10)
        self.must("stop", "a")
        last = Trace.from_file(self.files("a")[-1])
        self.assertEqual(self.numbers([last]), list(range(10)))


class Flight(RecordingCase):
    def begin_flight(self, after_ms):
        self.begin(recording("f", 'flight { before_ms: 60000 after_ms: '
                             f'{after_ms} at_trigger: "drop" }}', source="a"))
        self.write_to = self.producer("p", ["a"])
        self.write_to.wait_started()
        return self.write_to.writer()

    def written(self, count):
        self.until(lambda: self.look("f")["snapshots"] >= count,
                   f"{count} segments are written")

    def test_a_trigger_has_what_was_before_it_written(self):
        writer = self.begin_flight(after_ms=1)
        self.assertEqual(self.look("f")["state"], "armed")
        writer.number(100)
        self.assertEqual(self.files("f"), [])
        self.write_to.activate("other", "drop")
        self.written(1)
        writer.number(50)
        self.write_to.activate("drop")
        self.written(2)
        first, second = self.segments("f")
        self.assertEqual(self.numbers([first]), list(range(100)))
        self.assertEqual(self.numbers([second]), list(range(150)))
        self.assertNotEqual(self.head(first).recording_uuid,
                            self.head(second).recording_uuid)
        for trace in first, second:
            head = self.head(trace)
            self.assertEqual((head.recording, head.number), ("f", 1))
            self.assertEqual(head.begun_by.cause, pb.SegmentCut.TRIGGER)
            self.assertEqual(head.begun_by.trigger, "drop")
            self.assertEqual(head.begun_by.trigger_producer, "p")
            self.assertTrue(
                trace.packets[-1].tributary_segment.HasField("end"))
        self.assertEqual(self.files("f", ".part"), [])

    def test_a_storm_of_triggers_shares_segments(self):
        writer = self.begin_flight(after_ms=1)
        writer.number(10)
        for _ in range(40):
            self.write_to.activate("drop")
        self.written(2)
        self.until(lambda: self.look("f")["shared"] > 0, "some share one")
        state = self.look("f")
        self.assertLessEqual(state["snapshots"] + state["shared"], 40)
        self.assertEqual(state["snapshots_failed"], 0)
        for trace in self.segments("f"):
            self.assertEqual(self.numbers([trace]), list(range(10)))


if __name__ == "__main__":
    sys.exit(tap.main())
