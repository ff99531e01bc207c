#!/usr/bin/env python3
"""tributary archive: the catalogue of a folder of traces, held against what
Trace Processor finds in them, and what becomes of it when it breaks."""

import fcntl
import filecmp
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

from harness import faults, tap
from harness.archive import Archive
from harness.archiver import KILL_SHIM
from harness.case import config, pb
from harness.trace import Trace
from test_segments import SegmentCase

RECORDINGS = os.path.join(os.environ["SOURCE_ROOT"], "tests", "conformance",
                          "recordings")
SMALL_DISK = 1 << 20


class ArchiveCase(SegmentCase):
    def setUp(self):
        super().setUp()
        self.books = Archive(self.traces)
        self.archive = self.books.run
        self.sql = self.books.sql
        self.contents = self.books.contents
        self.forget = self.books.forget

    def fill(self):
        """Traces of Perfetto's own service, compressed ones among them."""
        paths = sorted(path for path in glob.glob(os.path.join(
            RECORDINGS, "**", "*"), recursive=True)
            if path.endswith((".pftrace", ".perfetto-trace")))
        self.assertTrue(paths)
        for path in paths:
            shutil.copy(path, self.traces)
        return [os.path.basename(path) for path in paths]


class OfSegments(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.start()
        producer = self.producer("p")
        consumer = self.record()
        writers = [producer.writer() for _ in range(2)]
        for cuts in range(2):
            for writer in writers:
                writer.number(50)
            self.cut(producer, cuts + 1)
        writers[0].number(7)
        self.assertFalse(consumer.stop().error)

    def test_the_catalogue_says_what_trace_processor_finds(self):
        self.assertIn("3 segments read", self.archive("reindex"))
        rows = self.sql("SELECT path, first_boot_ns, last_boot_ns, number, "
                        "recording, cause, is_last, verdict FROM segments "
                        "ORDER BY number")
        self.assertEqual([row[3] for row in rows], [1, 2, 3])
        self.assertEqual([row[5] for row in rows], [None] + ["trigger"] * 2)
        self.assertEqual([row[6] for row in rows], [0, 0, 1])
        for path, first, last, _, recording, _, _, verdict in rows:
            trace = Trace.from_file(os.path.join(self.traces, path))
            times = [p.timestamp for p in trace.of("for_testing")]
            self.assertEqual((recording, verdict), ("r", "whole"))
            self.assertLessEqual(first, min(times))
            self.assertGreaterEqual(last, max(times))
            packets = self.sql("SELECT m.packets FROM machines m JOIN "
                               "segments s ON s.id = segment WHERE "
                               f"s.path = '{path}' AND m.packets > 0")
            self.assertEqual(packets, [(len(times),)])
        self.assertEqual(
            self.sql("SELECT s.number, t.name FROM triggers t JOIN segments "
                     "s ON s.id = segment WHERE begun_by ORDER BY 1"),
            [(2, "cut"), (3, "cut")])

    def test_a_pinned_segment_is_not_deleted(self):
        self.archive("reindex")
        path = self.sql("SELECT path FROM segments WHERE number = 1")[0][0]
        self.archive("pin", path)
        self.assertIn("is pinned", self.archive("rm", "--recording", "r",
                                                status=1))
        self.assertEqual(self.sql("SELECT path, pinned FROM segments"),
                         [(path, 1)])
        self.forget()
        self.archive("reindex")
        self.assertEqual(self.sql("SELECT path, pinned FROM segments"),
                         [(path, 1)])
        self.archive("unpin", path)
        self.archive("rm", path)
        self.assertEqual(self.files(), [])
        self.assertEqual(self.sql("SELECT * FROM segments"), [])

    def test_a_catalogue_does_not_lead_out_of_the_archive(self):
        self.archive("reindex")
        mine = self.path("mine.pftrace")
        with open(mine, "wb") as file:
            file.write(b"mine")
        forged = [os.path.relpath(mine, self.traces), mine]
        catalog = sqlite3.connect(os.path.join(self.traces, "catalog.db"))
        with catalog:
            catalog.executemany("UPDATE segments SET path = ? WHERE number = ?",
                                zip(forged, (1, 2)))
        catalog.close()
        out = self.path("copies")
        for order in (["rm", "--recording", "r"], ["pin", "--recording", "r"],
                      ["verify"],
                      ["export", "--recording", "r", "--out", out]):
            said = self.archive(*order, status=1)
            self.assertRegex(said, f"({'|'.join(map(re.escape, forged))}) "
                             "is no path of a segment")
        fetched = subprocess.run(
            [os.environ["TRIBUTARY"], "fetch", "--archive", self.traces,
             "--recording", "r", "-o", self.path("x.pftrace")],
            capture_output=True, text=True, check=False)
        self.assertEqual(fetched.returncode, 2, fetched.stderr)
        self.assertIn("is no path of a segment", fetched.stderr)
        self.assertTrue(os.path.exists(mine))
        self.assertFalse(os.path.exists(f"{mine}.pinned"))
        self.archive("reindex", "--full")
        self.assertEqual(len(self.sql("SELECT * FROM segments")), 3)


class OfAnyTraces(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.names = self.fill()

    def test_a_catalogue_made_anew_is_the_old_one(self):
        self.archive("reindex")
        before = self.contents()
        self.assertEqual(len(before[0]), len(self.names))
        self.archive("reindex")
        self.assertEqual(self.contents(), before)
        self.archive("reindex", "--full")
        self.assertEqual(self.contents(), before)
        self.forget()
        self.archive("reindex")
        self.assertEqual(self.contents(), before)

    def test_processes_are_those_that_trace_processor_names(self):
        self.archive("reindex")
        for name in self.names:
            found = Trace.from_file(os.path.join(self.traces, name)).sql(
                "SELECT DISTINCT pid FROM process WHERE pid > 0")
            pids = {int(row["pid"]) if isinstance(row, dict) else int(row[0])
                    for row in found}
            mine = {pid for (pid,) in self.sql(
                "SELECT pid FROM processes p JOIN seen ON process = p.id JOIN "
                f"segments s ON s.id = segment WHERE s.path = '{name}'")}
            self.assertLessEqual(mine, pids, name)

    def test_reindex_survives_a_kill_and_a_second_one(self):
        self.archive("reindex")
        before = self.contents()
        for copies in range(40):
            for name in self.names:
                shutil.copy(os.path.join(self.traces, name), os.path.join(
                    self.traces, f"{copies}-{name}"))
        self.forget()
        command = self.books.command("reindex")
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)

        def begun():
            try:
                return self.sql("SELECT count(*) FROM segments")[0][0] > 2
            except sqlite3.OperationalError:
                return False
        self.until(begun, "rows in the catalogue")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        self.assertEqual(self.sql("PRAGMA integrity_check"), [("ok",)])
        both = [subprocess.Popen(command, stdout=subprocess.DEVNULL)
                for _ in range(2)]
        self.assertEqual([one.wait() for one in both], [0, 0])
        after = self.contents()
        self.assertEqual(len(after[0]), 41 * len(self.names))
        self.assertEqual(
            [row[3] for row in after[0] if row[0] in self.names],
            [row[3] for row in before[0]])
        self.archive("verify")

    def test_verify_names_each_problem(self):
        self.archive("reindex")
        self.assertIn("0 problems", self.archive("verify"))
        changed = os.path.join(self.traces, self.names[0])
        status = os.stat(changed)
        with open(changed, "r+b") as file:
            file.seek(status.st_size // 2)
            byte = file.read(1)
            file.seek(status.st_size // 2)
            file.write(bytes([byte[0] ^ 1]))
        os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
        shutil.copy(changed, os.path.join(self.traces, "new.pftrace"))
        said = self.archive("verify", status=2)
        self.assertIn(f"{self.names[0]}: its bytes are not those", said)
        self.assertIn("new.pftrace: it is not in the catalogue", said)
        os.remove(changed)
        self.assertIn("the file is gone", self.archive("verify", status=2))

    def export(self, *words, status=0):
        """Of all that are local, into out/."""
        return self.archive("export", "--out", self.path("out"), *words,
                            "--from", "1980-01-01", status=status)

    def exported(self):
        """Names in out/, without the catalogue's."""
        return {name for name in os.listdir(self.path("out"))
                if not name.startswith(("catalog.db", ".catalog.db"))}

    def assert_exported_whole(self):
        """out/ has all segments that have a time, to the byte, is an archive
        that verifies, and its catalogue has the rows of ours."""
        dated = [row for row in self.contents()[0] if row[17] is not None]
        names = {row[0] for row in dated}
        self.assertEqual(
            {n for n in self.exported() if not n.endswith(".pinned")}, names)
        for name in names:
            self.assertTrue(filecmp.cmp(
                os.path.join(self.traces, name),
                os.path.join(self.path("out"), name), shallow=False), name)
        out = Archive(self.path("out"))
        self.assertIn("0 problems", out.run("verify"))
        self.assertEqual(out.contents()[0], dated)
        return names

    def test_an_export_is_an_archive_with_the_same_rows(self):
        os.makedirs(os.path.join(self.traces, "sub", "day"))
        shutil.move(os.path.join(self.traces, self.names[0]),
                    os.path.join(self.traces, "sub", "day"))
        self.archive("reindex")
        path = self.sql("SELECT path FROM segments WHERE first_ns NOT NULL "
                        "AND path NOT LIKE 'sub%'")[0][0]
        self.archive("pin", path)
        said = self.archive("export", "--out", self.path("out"), path,
                            os.path.join("sub", "day", self.names[0]))
        self.assertIn("2 segments copied to ", said)
        self.assertEqual(self.exported(), {path, path + ".pinned", "sub"})
        out = Archive(self.path("out"))
        self.assertIn("0 problems", out.run("verify"))
        self.assertEqual(out.sql("SELECT pinned FROM segments "
                                 f"WHERE path = '{path}'"), [(1,)])

    def test_what_is_exported_already_is_not_copied_again_nor_replaced(self):
        self.archive("reindex")
        self.export()
        names = self.assert_exported_whole()
        one, other = sorted(names)[:2]
        os.remove(os.path.join(self.path("out"), one))
        with open(os.path.join(self.path("out"), other), "wb") as file:
            file.write(b"mine")
        said = self.export(status=1)
        self.assertIn(f"{other} is another file, and stays", said)
        self.assertIn("1 segment copied", said)
        self.assertIn(f"{len(names) - 2} there already", said)
        with open(os.path.join(self.path("out"), other), "rb") as file:
            self.assertEqual(file.read(), b"mine")
        os.remove(os.path.join(self.path("out"), other))
        self.export()
        self.assert_exported_whole()

    def test_one_export_writes_into_a_folder(self):
        self.archive("reindex")
        os.mkdir(self.path("out"))
        with open(os.path.join(self.path("out"), ".export"), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertIn("another export writes into",
                          self.export(status=1))
        self.export()
        self.assert_exported_whole()
        self.assertIn("is the archive itself", self.archive(
            "export", "--out", self.traces, *self.names[:1], status=1))

    def test_a_damaged_segment_is_not_exported(self):
        self.archive("reindex")
        self.export()
        names = self.assert_exported_whole()
        shutil.rmtree(self.path("out"))
        damaged = sorted(names)[0]
        with open(os.path.join(self.traces, damaged), "r+b") as file:
            byte = file.read(1)
            file.seek(0)
            file.write(bytes([byte[0] ^ 1]))
        said = self.export(status=1)
        self.assertIn(f"{damaged} is not as the catalogue has it", said)
        self.assertEqual(self.exported(), names - {damaged})

    def test_an_export_to_a_full_disk_says_so_and_goes_on_later(self):
        big = os.path.join(self.traces, "big.pftrace")
        with open(os.path.join(self.traces, self.names[0]), "rb") as file:
            data = file.read()
        more = pb.Trace()
        more.packet.add().for_testing.str = "x" * (2 * SMALL_DISK)
        with open(big, "wb") as file:
            file.write(data + more.SerializeToString())
        self.archive("reindex")
        faults.small_disk(self, "out", str(SMALL_DISK))
        said = self.export(status=1)
        self.assertIn("big.pftrace: No space left on device", said)
        self.assertIn("make room, and export again", said)
        self.assertNotIn("big.pftrace", self.exported())
        for name in self.exported():
            self.assertTrue(filecmp.cmp(
                os.path.join(self.traces, name),
                os.path.join(self.path("out"), name), shallow=False), name)
        subprocess.run(["mount", "-o", "remount,size=64m", self.path("out")],
                       check=True)
        self.export()
        self.assert_exported_whole()

    def test_an_export_that_is_killed_leaves_no_half_file(self):
        if not KILL_SHIM:
            self.skipTest("no shim")
        for name in self.names[1:]:
            os.remove(os.path.join(self.traces, name))
        self.archive("reindex")
        command = self.books.command("export", "--out", self.path("out"),
                                     self.names[0])
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1")
        change, killed = 0, True
        while killed:
            change += 1
            shutil.rmtree(self.path("out"), ignore_errors=True)
            done = subprocess.run(command, capture_output=True, env={
                **os.environ, "LD_PRELOAD": KILL_SHIM, "KILL_AT": str(change),
                "ASAN_OPTIONS": options + ":verify_asan_link_order=0"})
            killed = done.returncode == -signal.SIGKILL
            self.assertIn(done.returncode, (0, -signal.SIGKILL), done.stderr)
            for name in glob.glob(os.path.join(self.path("out"), "*.pftrace")):
                self.assertTrue(filecmp.cmp(name, os.path.join(
                    self.traces, os.path.basename(name)), shallow=False))
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(self.exported(), {self.names[0]})
            self.assertIn("0 problems",
                          Archive(self.path("out")).run("verify"))
        self.assertGreater(change, 10)

    def test_a_broken_catalogue_is_named_and_made_anew(self):
        self.archive("reindex")
        before = self.contents()
        path = os.path.join(self.traces, "catalog.db")
        self.forget()
        with open(path, "wb") as file:
            file.write(b"x" * 10000)
        self.assertIn("reindex --full", self.archive("reindex", status=1))
        self.archive("reindex", "--full")
        self.assertEqual(self.contents(), before)
        usage = json.loads(self.archive("du", "--json"))
        self.assertEqual(usage["all"][0]["segments"], len(self.names))


if __name__ == "__main__":
    tap.main()
