#!/usr/bin/env python3
"""tributary archive: the catalogue of a folder of traces, held against what
Trace Processor finds in them, and what becomes of it when it breaks."""

import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

from harness import tap
from harness.archive import Archive
from harness.case import config, pb
from harness.trace import Trace
from test_segments import SegmentCase

RECORDINGS = os.path.join(os.environ["SOURCE_ROOT"], "tests", "conformance",
                          "recordings")


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
