"""tributary-archiver as a program, and the catalogue that it keeps."""

import json
import os
import sqlite3
import subprocess

from .archive import CONTENTS, Archive
from .daemon import Program, environment

KILL_SHIM = os.environ.get("KILL_SHIM")


class Archiver(Program):
    """Keeps the archive in `archive`; settings: lines of an ArchiveSettings
    message, which may be changed with set()."""

    name = "tributary-archiver"
    variable = "TRIBUTARY_ARCHIVER"
    notify_variable = "TRIBUTARY_ARCHIVER_NOTIFY_FD"

    def __init__(self, folder, archive, settings="", **options):
        super().__init__(folder, **options)
        self.archive = archive
        self.settings_path = self.log_path + ".conf"
        self.set(settings)

    def set(self, settings):
        with open(self.settings_path, "w") as file:
            file.write(f'archive_dir: "{self.archive}"\n{settings}\n')

    def command(self):
        return [*self._wrap, os.environ[self.variable], "--log-level", "debug",
                "--config", self.settings_path, *self._flags]

    def status_text(self):
        """What --status prints; None: nobody answers."""
        done = subprocess.run(
            [os.environ[self.variable], "--status", "--archive", self.archive],
            env=environment(), capture_output=True, text=True, timeout=60)
        return done.stdout if done.returncode == 0 else None

    def report(self):
        """What --status --json says; None: nobody answers."""
        done = subprocess.run(
            [os.environ[self.variable], "--status", "--json", "--archive",
             self.archive],
            env=environment(), capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None


def files(archive):
    """The traces in the folder, by their paths below it."""
    found = set()
    for folder, _, names in os.walk(archive):
        found |= {os.path.relpath(os.path.join(folder, name), archive)
                  for name in names if name.endswith(".pftrace")}
    return found


def ask(archive, query, *values):
    """Rows of the catalogue; none where there is no catalogue."""
    path = os.path.join(archive, "catalog.db")
    if not os.path.exists(path):
        return []
    catalog = sqlite3.connect(path, timeout=30)
    try:
        return catalog.execute(query, values).fetchall()
    finally:
        catalog.close()


def rows(archive):
    """Paths that the catalogue has, and that are to be in the folder."""
    try:
        return {path for path, in ask(
            archive, "SELECT path FROM segments WHERE local")}
    except sqlite3.OperationalError:  # its tables are being made
        return set()


def wrong_times(archive):
    """Paths of rows that have another time than their file."""
    return [path for path, ns in ask(
        archive, "SELECT path, mtime_ns FROM segments WHERE local")
        if os.stat(os.path.join(archive, path)).st_mtime_ns != ns]


def contents(archive):
    """All that the catalogue says, but for the times of files, which may have
    been made anew."""
    one = Archive(archive)
    return [one.sql(query.replace("mtime_ns, ", "")) for query in CONTENTS]
