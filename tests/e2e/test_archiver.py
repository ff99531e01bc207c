#!/usr/bin/env python3
"""tributary-archiver: the catalogue follows the folder, and the oldest segments
go by the limits of the settings.  Traces are the real daemon's.

	meson test -C build archiver
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import unittest

from harness import archiver, faults, pb, tap
from harness.archiver import Archiver
from harness.case import Case, TEST_SOURCE
from harness.daemon import environment
from harness.loop import SCALE

DAY = 86400
KIB = 1024
MIB = 1 << 20
# The file is a whole disk of its own.
SMALL_DISK = 8 * MIB


class ArchiverCase(Case):
    def setUp(self):
        super().setUp()
        self.archive = self.path("archive")
        os.mkdir(self.archive)
        self.maker = None

    def archiver(self, settings="", **options):
        one = Archiver(self.folder, self.archive, settings, **options)
        self.daemons.append(one)
        one.start()
        return one

    def make_trace(self, name, size, age, recording):
        """A real trace of about `size` bytes in made/name, of a session of
        `age` seconds ago."""
        if self.maker is None:
            os.mkdir(self.path("made"))
            self.plan = faults.Plan(self.path("plan"), match="nothing")
            self.maker = self.daemon(flags=["--trace-dir", self.path("made")],
                                     env=self.plan.env())
            self.daemons.remove(self.maker)
            self.daemons.insert(0, self.maker)
        if age != 0 and not self.plan.loaded:
            self.skipTest("nothing can be preloaded here")
        self.plan.realtime_ns = -age * 10 ** 9
        producer = self.producer()
        consumer = self.session(TEST_SOURCE, write_into_file=True,
                                output_path=name, size_kb=4096,
                                unique_session_name=recording)
        if size:
            producer.writer().number(size // 1000 + 1, size=1000)
        self.assertFalse(consumer.stop().error)
        producer.close()
        consumer.close()
        return os.path.join(self.path("made"), name)

    def put(self, path, size=0, age=0, recording="always", machine=None):
        """A trace in the archive at `path`, renamed as those who write segments
        do; machine: it is that machine's alone."""
        made = self.make_trace(f"{len(os.listdir(self.folder))}-"
                               + os.path.basename(path), size, age, recording)
        target = os.path.join(self.archive, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(made, "rb") as file:
            data = file.read()
        if machine is not None:
            data = of_machine(recording, machine) + data
        with open(target + ".part", "wb") as file:
            file.write(data)
        os.rename(target + ".part", target)

    def rows(self):
        return archiver.rows(self.archive)

    def until_rows(self, *paths):
        self.until(lambda: self.rows() == set(paths),
                   f"the catalogue has {paths}")
        self.assertEqual(archiver.files(self.archive), set(paths))

    def until_log(self, one, text):
        self.until(lambda: text in one.log(), f"the log says {text!r}")

    def command(self, *args):
        """tributary archive, of this archive."""
        done = subprocess.run(
            [os.environ["TRIBUTARY"], "archive", *args, "--archive",
             self.archive], env=environment(), capture_output=True, text=True,
            timeout=60 * SCALE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def change(self, query, *values):
        """A change of the catalogue by another program."""
        catalog = sqlite3.connect(os.path.join(self.archive, "catalog.db"),
                                  timeout=30)
        with catalog:
            catalog.execute(query, values)
        catalog.close()


def of_machine(recording, machine):
    """The packet that begins a machine's own segment."""
    trace = pb.Trace()
    segment = trace.packet.add().tributary_segment
    segment.recording = recording
    segment.number = 1
    segment.machine = machine
    segment.machine_id = 7
    segment.split = pb.SegmentConfig.BY_MACHINE
    return trace.SerializeToString()


class Following(ArchiverCase):
    def test_the_catalogue_follows_the_folder(self):
        self.archiver()
        self.put("kiosk/2026-11-23/a.pftrace")
        self.until_rows("kiosk/2026-11-23/a.pftrace")
        self.put("kiosk/2026-11-23/b.pftrace")
        self.put("c.pftrace")
        self.until_rows("kiosk/2026-11-23/a.pftrace",
                        "kiosk/2026-11-23/b.pftrace", "c.pftrace")
        self.assertEqual(archiver.ask(
            self.archive, "SELECT DISTINCT recording, verdict FROM segments"),
            [("always", "whole")])
        # Elsewhere, gone, and written in place.
        os.rename(os.path.join(self.archive, "kiosk"), self.path("kiosk"))
        self.until_rows("c.pftrace")
        os.rename(self.path("kiosk"), os.path.join(self.archive, "again"))
        self.until_rows("again/2026-11-23/a.pftrace",
                        "again/2026-11-23/b.pftrace", "c.pftrace")
        os.unlink(os.path.join(self.archive, "c.pftrace"))
        shutil.copy(os.path.join(self.archive, "again/2026-11-23/a.pftrace"),
                    os.path.join(self.archive, "d.pftrace"))
        self.until_rows("again/2026-11-23/a.pftrace",
                        "again/2026-11-23/b.pftrace", "d.pftrace")

    def test_it_finds_what_happened_while_it_did_not_run(self):
        one = self.archiver()
        self.put("a.pftrace")
        self.put("b.pftrace")
        self.until_rows("a.pftrace", "b.pftrace")
        one.stop()
        os.unlink(os.path.join(self.archive, "a.pftrace"))
        self.put("x/c.pftrace")
        self.archiver()
        self.until_rows("b.pftrace", "x/c.pftrace")

    def test_other_files_are_left_alone(self):
        self.archiver()
        self.put("a.pftrace")
        for name in ("b.pftrace.json", ".hidden.pftrace", "notes.txt"):
            shutil.copy(os.path.join(self.archive, "a.pftrace"),
                        os.path.join(self.archive, name))
        os.symlink("a.pftrace", os.path.join(self.archive, "link.pftrace"))
        self.put("z.pftrace")
        self.until(lambda: "z.pftrace" in self.rows(), "the last file is there")
        self.assertEqual(self.rows(), {"a.pftrace", "z.pftrace"})

    def test_a_part_that_a_crash_left_becomes_a_segment(self):
        made = self.make_trace("t", 20000, 0, "always")
        with open(made, "rb") as file:
            data = file.read()
        with open(os.path.join(self.archive, "t.pftrace.part"), "wb") as file:
            file.write(data[:len(data) // 2])
        one = self.archiver()
        self.until_rows("t.pftrace")
        self.until_log(one, "t.pftrace was left by a crash")
        self.assertEqual(one.report()["recovered"], 1)
        self.assertIn("1 closed after a crash", one.status_text())

    def test_one_archiver_has_a_folder(self):
        one = self.archiver()
        second = subprocess.run(
            [os.environ["TRIBUTARY_ARCHIVER"], "--archive", self.archive],
            env=environment(), capture_output=True, text=True,
            timeout=60 * SCALE)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"an archiver has the archive {self.archive} already "
                      f"(process {one.pid})", second.stderr)
        one.stop()
        self.assertIsNone(one.report())
        self.archiver()

    def test_the_status_says_how_things_are(self):
        one = self.archiver("min_free_mb: 1")
        self.put("a.pftrace", size=10000)
        self.until(lambda: one.report()["segments"] == 1, "a segment")
        report = one.report()
        self.assertEqual(report["pid"], one.pid)
        self.assertEqual(report["archive_dir"], self.archive)
        self.assertEqual(report["bytes"], os.path.getsize(
            os.path.join(self.archive, "a.pftrace")))
        self.assertEqual(report["min_free_bytes"], MIB)
        self.assertEqual((report["catalogued"], report["failures"]), (1, 0))
        text = one.status_text()
        self.assertIn(f"archive   {self.archive} (process {one.pid}", text)
        self.assertIn("segments  1, ", text)


class Limits(ArchiverCase):
    def test_the_oldest_go_beyond_the_size(self):
        one = self.archiver("keep { size_mb: 1 }")
        for name in ("a", "b", "c", "d"):
            self.put(f"{name}.pftrace", size=400 * KIB)
            self.until(lambda: f"{name}.pftrace" in self.rows(), name)
        self.until_rows("c.pftrace", "d.pftrace")
        self.assertRegex(one.log(), r"deleted a\.pftrace \(4..\.. KiB\): the "
                         r"archive has 1\.. MiB of segments, and keeps 1\.0 MiB")
        self.until(lambda: one.report()["segments"] == 2, "two segments")
        deleted = one.report()["deleted"]
        self.assertEqual([(d["cause"], d["segments"]) for d in deleted],
                         [("size", 2)])
        self.assertIn("deleted   2 segments (", one.status_text())

    def test_the_oldest_go_beyond_the_age(self):
        one = self.archiver("keep { hours: 336 }")
        self.put("old.pftrace", age=15 * DAY)
        self.put("young.pftrace", age=13 * DAY)
        self.until_log(one, "deleted old.pftrace")
        self.until_rows("young.pftrace")
        self.assertIn("it is 15.0 days old, and the archive keeps 14.0 days",
                      one.log())

    def test_each_machine_has_its_own(self):
        one = self.archiver("each_machine { size_mb: 1 }")
        self.put("1/a.pftrace", size=700 * KIB, machine="kiosk-1")
        self.put("2/a.pftrace", size=700 * KIB, machine="kiosk-2")
        self.put("1/b.pftrace", size=700 * KIB, machine="kiosk-1")
        self.until_log(one, "machine kiosk-1 has 1.4 MiB of segments, and "
                            "keeps 1.0 MiB")
        self.until_rows("2/a.pftrace", "1/b.pftrace")

    def test_each_recording_has_its_own(self):
        one = self.archiver('recording { name: "f*" keep { hours: 1 } }\n'
                            'recording { name: "*" keep { hours: 100 } }')
        self.put("a.pftrace", age=2 * DAY, recording="always")
        self.put("f.pftrace", age=2 * DAY, recording="flight")
        self.put("g.pftrace", recording="flight")
        self.until_log(one, "deleted f.pftrace")
        self.until_rows("a.pftrace", "g.pftrace")

    def test_the_collectors_settings_say_what_is_kept_of_a_recording(self):
        collector = self.path("tributaryd.conf")
        with open(collector, "w") as file:
            file.write('recording { name: "always" config_file: "x" '
                       'keep { hours: 24 } }\n'
                       'recording { name: "flight" config_file: "x" }\n')
        one = self.archiver(f'collector_config: "{collector}"')
        self.put("a.pftrace", age=2 * DAY, recording="always")
        self.put("b.pftrace", age=2 * DAY, recording="flight")
        self.put("c.pftrace", recording="always")
        self.until_log(one, "deleted a.pftrace")
        self.until_rows("b.pftrace", "c.pftrace")

    def test_pinned_segments_stay_and_are_named(self):
        one = self.archiver()
        self.put("a.pftrace", age=15 * DAY)
        self.put("b.pftrace", age=15 * DAY)
        self.until_rows("a.pftrace", "b.pftrace")
        self.command("pin", "a.pftrace")
        one.set("keep { hours: 336 }")
        one.signal(signal.SIGHUP)
        self.until_rows("a.pftrace")
        self.until_log(one, "a limit cannot be kept: the archive keeps 14.0 "
                            "days, but the oldest segment is 15.0 days old; 1 "
                            "pinned segment")
        self.until(lambda: one.report()["not_kept"], "it is in the status")
        self.assertIn("not kept  the archive keeps 14.0 days",
                      one.status_text())
        # Unpinned, it goes.
        self.command("unpin", "a.pftrace")
        self.until_rows()
        self.until(lambda: not one.report()["not_kept"], "all is kept")

    def test_one_that_cannot_be_deleted_stops_no_other(self):
        one = self.archiver()
        self.put("a.pftrace", age=16 * DAY)
        self.put("b.pftrace", age=15 * DAY)
        self.until_rows("a.pftrace", "b.pftrace")
        path = os.path.join(self.archive, "a.pftrace")
        if subprocess.run(["mount", "--bind", path, path]).returncode != 0:
            self.skipTest("nothing can be mounted")
        self.addCleanup(subprocess.run, ["umount", "-l", path],
                        stderr=subprocess.DEVNULL)
        one.set("keep { hours: 336 }")
        one.signal(signal.SIGHUP)
        self.until_log(one, "cannot delete a.pftrace: Device or resource busy")
        self.until_rows("a.pftrace")
        self.until(lambda: one.report()["failures"] == 1, "it is told once")
        self.assertIn("failures  1, the last: cannot delete a.pftrace",
                      one.status_text())
        subprocess.run(["umount", path], check=True)
        one.signal(signal.SIGHUP)
        self.until_rows()

    def test_segments_wait_for_their_upload(self):
        one = self.archiver("keep { hours: 336 }\nupload_required: true")
        self.put("a.pftrace", age=15 * DAY)
        self.until_log(one, "1 not yet uploaded segment")
        self.until_rows("a.pftrace")
        self.change("UPDATE segments SET stored_state = 'stored'")
        self.until_rows()
        # The store has it still, so its row stays.
        self.assertEqual(archiver.ask(
            self.archive, "SELECT path, local FROM segments"),
            [("a.pftrace", 0)])

    def test_other_settings_count_from_now_on(self):
        one = self.archiver("keep { hours: 1000 }")
        self.put("a.pftrace", age=15 * DAY)
        self.until_rows("a.pftrace")
        one.set("keep { hours: many }")
        one.signal(signal.SIGHUP)
        self.until_log(one, "the settings stay as they were")
        one.set("keep { hours: 336 }")
        one.signal(signal.SIGHUP)
        self.until_rows()


class SmallDisk(ArchiverCase):
    def setUp(self):
        super().setUp()
        os.rmdir(self.archive)
        faults.small_disk(self, "archive", str(SMALL_DISK))

    def test_the_oldest_go_for_room_and_are_announced(self):
        one = self.archiver("min_free_mb: 4")
        kept = []
        for i in range(12):
            kept.append(f"{i:02}.pftrace")
            self.put(kept[-1], size=600 * KIB)
            self.until(lambda: kept[-1] in self.rows(), kept[-1])
            self.until(lambda: free(self.archive) >= 4 * MIB, "room")
        def gone():
            return re.findall(r"deleted (\S+) \(.*: the disk has \S+ MiB free, "
                              r"and is to have 4\.0 MiB", one.log())
        # A file is gone before the log says so.
        self.until(lambda: archiver.files(self.archive) ==
                   set(kept[len(gone()):]), "all that went is in the log")
        gone = gone()
        log = one.log()
        announced = log.index("below that the oldest segments are deleted, at "
                              "first 00.pftrace")
        self.assertLess(announced, log.index("deleted 00.pftrace"))
        self.assertEqual(gone, kept[:len(gone)])
        self.assertGreater(len(gone), 3)
        self.until_rows(*kept[len(gone):])
        self.until(lambda: one.report()["next"][:1] == [kept[len(gone)]],
                   "the next one is named")
        self.assertIn("next to go ", one.status_text())


def free(folder):
    st = os.statvfs(folder)
    return st.f_bavail * st.f_frsize


class Crashes(ArchiverCase):
    """Killed at each change of files, it leaves what the next start puts
    right."""

    def setUp(self):
        super().setUp()
        if not archiver.KILL_SHIM:
            self.skipTest("no shim")
        # Of each case: known and to go, known and to stay, new, half-written.
        for name in ("go", "stay", "gone"):
            self.put(f"{name}.pftrace", age=15 * DAY if name == "go" else 0,
                     size=3000)
        one = self.archiver()
        self.until_rows("go.pftrace", "stay.pftrace", "gone.pftrace")
        one.stop()
        self.daemons.remove(one)
        os.unlink(os.path.join(self.archive, "gone.pftrace"))
        self.put("day/new.pftrace", size=3000)
        self.put("day/part.pftrace", size=3000)
        part = os.path.join(self.archive, "day/part.pftrace")
        with open(part, "rb") as file:
            data = file.read()
        with open(part + ".part", "wb") as file:
            file.write(data[:-10])
        os.unlink(part)
        self.before = self.path("before")
        os.rename(self.archive, self.before)
        self.wanted = ("stay.pftrace", "day/new.pftrace", "day/part.pftrace")
        self.settings = "keep { hours: 336 }"

    def killed_at(self, change):
        """Whether it was killed; else it has done it all."""
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1")
        one = Archiver(self.folder, self.archive, self.settings, env={
            "LD_PRELOAD": archiver.KILL_SHIM, "KILL_AT": str(change),
            "ASAN_OPTIONS": options + ":verify_asan_link_order=0"})
        try:
            one.start()
        except AssertionError:
            if one.process.wait() == -signal.SIGKILL:
                return True
            raise
        self.until(lambda: not one.running() or self.is_done(),
                   f"an end, or all is done ({change})")
        if not one.running():
            self.assertEqual(one.process.returncode, -signal.SIGKILL)
            return True
        one.kill()
        return False

    def is_done(self):
        return self.rows() == set(self.wanted) == archiver.files(self.archive)

    def test_each_start_puts_it_right(self):
        whole = None
        change = 0
        while True:
            change += 1
            shutil.rmtree(self.archive, ignore_errors=True)
            shutil.copytree(self.before, self.archive)
            killed = self.killed_at(change)
            # Nothing half-done is shown as whole meanwhile.
            self.assertLessEqual(archiver.files(self.archive) - {"go.pftrace"},
                                 set(self.wanted))
            one = self.archiver(self.settings)
            self.until_rows(*self.wanted)
            one.stop()
            self.daemons.remove(one)
            now = archiver.contents(self.archive)
            whole = whole or now
            self.assertEqual(now, whole, f"killed at change {change}")
            self.assertEqual(archiver.wrong_times(self.archive), [])
            if not killed:
                self.assert_reindex_agrees(now)
                break
            if change % 10 == 1:
                self.assert_reindex_agrees(now)
        self.assertGreater(change, 10)

    def assert_reindex_agrees(self, now):
        """The catalogue made anew from the folder says the same."""
        os.unlink(os.path.join(self.archive, "catalog.db"))
        self.command("reindex")
        self.assertEqual(archiver.contents(self.archive), now)


if __name__ == "__main__":
    sys.exit(tap.main())
