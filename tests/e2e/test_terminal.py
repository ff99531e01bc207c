#!/usr/bin/env python3
"""What commands of an archive and of a trace show on a terminal: colours and
progress that files and pipes do not get."""

import os
import re
import shutil
import subprocess
import sys

from harness import tap
from harness.archive import Archive
from harness.daemon import environment
from harness.loop import SCALE
from harness.terminal import Terminal
from test_files import FileCase

TRIBUTARY = os.environ["TRIBUTARY"]
WIDE = "機器人"
COLOUR = re.compile(rb"\x1b\[[0-9]*m")


class InTheTerminal(FileCase):
    def setUp(self):
        super().setUp()
        self.start()
        producer = self.producer(WIDE)
        consumer = self.session(write_into_file=True,
                                output_path=f"{WIDE}.pftrace")
        producer.writer().number(100)
        self.assertFalse(consumer.stop().error)
        self.trace = os.path.join(self.traces, f"{WIDE}.pftrace")
        self.books = Archive(self.traces)

    def command(self, *words):
        return [TRIBUTARY, *words]

    def piped(self, *words, status=0, **more):
        done = subprocess.run(self.command(*words), env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60 * SCALE, check=False, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def shown(self, *words, status=0, **env):
        """What a command that ends shows on a terminal."""
        terminal = Terminal(self, self.command(*words), columns=200, **env)
        terminal.ended(status)
        return terminal.out.replace(b"\r\n", b"\n")

    def assert_colours(self, text, *words, status=0):
        """A terminal has this text, coloured, of what pipes have without."""
        plain = self.piped(*words, status=status)
        shown = self.shown(*words, status=status)
        self.assertIn(text, shown)
        self.assertEqual(COLOUR.sub(b"", shown), plain)
        self.assertNotIn(b"\x1b", plain)
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
            self.assertEqual(self.shown(*words, status=status, **env), plain)
        self.assertEqual(self.shown(*words, status=status, NO_COLOR=""), shown)

    def test_find(self):
        shutil.copy(self.trace, os.path.join(self.traces, "kiosk.pftrace"))
        self.books.run("reindex")
        words = ["find", "--from", "-1h", "--archive", self.traces]
        self.assertEqual(self.piped(*words).count(b"\n"), 3)
        self.books.run("pin", "kiosk.pftrace")
        self.assert_colours(b"kiosk.pftrace\x1b[32m (pinned)\x1b[0m\n",
                            *words)
        self.assertIn(b"\x1b[1mPATH\x1b[0m\n", self.shown(*words))

    def test_verify(self):
        self.books.run("reindex")
        words = ["archive", "verify", "--archive", self.traces]
        self.assert_colours(b"1 segment, \x1b[32m0 problems\x1b[0m\n", *words)
        with open(self.trace, "r+b") as file:
            file.truncate(os.path.getsize(self.trace) - 1)
        self.assert_colours(
            f"{WIDE}.pftrace: \x1b[31mit was changed since".encode(), *words,
            status=2)

    def test_inspect(self):
        self.assert_colours(b"Verdict         \x1b[32mwhole", "inspect",
                            self.trace)
        with open(self.trace, "r+b") as file:
            file.truncate(os.path.getsize(self.trace) - 1)
        self.assert_colours(b"Verdict         \x1b[31m", "inspect", self.trace,
                            status=2)

    def test_a_long_read_shows_how_far_it_is_and_leaves_nothing(self):
        with open(self.trace, "rb") as file:
            data = file.read()
        line = re.compile(rb"read: [0-9.]+ \w+ so far\x1b\[K")
        for env, seen in (({}, True), ({"TERM": "dumb"}, False)):
            there, ours = os.pipe()
            with open(there, "rb") as stdin, open(ours, "wb") as feed:
                terminal = Terminal(self, self.command("inspect", "-"),
                                    stdin=stdin, **env)
                stdin.close()
                def fed():
                    feed.write(data)
                    feed.flush()
                    return line.search(terminal.read())
                if seen:
                    self.until(fed, "the line of progress")
                else:
                    fed()
            terminal.ended(0)
            self.assertEqual(line.search(terminal.out) is not None, seen)
            # It is gone before the report.
            before = terminal.out.split(b"Verdict")[0]
            self.assertTrue(before.endswith(b"\r\x1b[K") if seen else
                            before == b"")


if __name__ == "__main__":
    sys.exit(tap.main())
