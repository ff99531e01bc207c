"""An archive: `tributary archive` on its folder, and what its catalogue says."""

import glob
import os
import sqlite3
import subprocess

from .daemon import environment

# The tables by what they say, without the numbers of rows.
CONTENTS = (
    "SELECT path, bytes, mtime_ns, hex(sha256), verdict, problem, hex(uuid), "
    "hex(recording_uuid), recording, number, cause, end_cause, is_last, "
    "unanswered, machine, packets, lost, first_ns, last_ns, first_boot_ns, "
    "last_boot_ns, class, pinned, local FROM segments ORDER BY path",
    "SELECT s.path, m.id, m.name, m.packets, m.bytes, m.first_ns, m.last_ns "
    "FROM machines m JOIN segments s ON s.id = segment ORDER BY 1, 2",
    "SELECT s.path, l.position, l.text, l.cause, l.unit, l.place, l.count, "
    "l.bytes, l.buffer, l.machine_id, l.at_least FROM losses l "
    "JOIN segments s ON s.id = segment ORDER BY 1, 2",
    "SELECT s.path, t.position, t.name, t.producer, t.machine_id, t.at_ns, "
    "t.begun_by FROM triggers t JOIN segments s ON s.id = segment "
    "ORDER BY 1, 2",
    "SELECT s.path, d.name FROM data_sources d "
    "JOIN segments s ON s.id = segment ORDER BY 1, 2",
    "SELECT s.path, p.name, p.machine, p.pid, p.segments FROM seen "
    "JOIN processes p ON p.id = process JOIN segments s ON s.id = segment "
    "ORDER BY 1, 2, 3, 4",
    "SELECT t.kind, t.name, t.base, p.class, p.first_ns, s.path "
    "FROM terms t LEFT JOIN postings p ON p.term = t.id "
    "LEFT JOIN segments s ON s.id = p.segment ORDER BY 1, 2, 6",
)


class Archive:
    def __init__(self, folder):
        self.folder = folder

    def command(self, *words):
        return [os.environ["TRIBUTARY"], "archive", *words, "--archive",
                self.folder]

    def run(self, *words, status=0):
        """What it said, on both ways."""
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, env=environment())
        said = done.stdout + done.stderr
        assert done.returncode == status, \
            f"archive {' '.join(words)}: status {done.returncode}: {said}"
        return said

    def sql(self, query):
        path = os.path.join(self.folder, "catalog.db")
        db = sqlite3.connect(f"file:{path}?mode=rw", uri=True)
        try:
            return db.execute(query).fetchall()
        finally:
            db.close()

    def contents(self):
        return [self.sql(query) for query in CONTENTS]

    def forget(self):
        for path in glob.glob(os.path.join(self.folder, "catalog.db*")):
            os.remove(path)

    def files(self, end=".pftrace"):
        return sorted(os.path.join(path, name)
                      for path, _, names in os.walk(self.folder)
                      for name in names if name.endswith(end))
