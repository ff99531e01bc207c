#!/usr/bin/env python3
"""tests/run: a single case of a single file, in C and in Python."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import tap
from harness.loop import SCALE

RUN = os.path.join(os.environ["SOURCE_ROOT"], "tests", "run")
C_FILE = "tests/unit/transport/base/test_heap_rest.c"
C_CASE = "a_crowd_that_shakes_hands_is_over_first"
PYTHON_CASE = "IoThreads.test_without_the_setting_there_are_none"


class Single(unittest.TestCase):
    def run_it(self, *arguments, status=0, after=None):
        """What it says; after: called with its process while it runs.

        Nothing is built: other tests run from that folder meanwhile.
        """
        process = subprocess.Popen(
            [RUN, "--no-build", *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=os.environ["SOURCE_ROOT"],
            env={**os.environ, "BUILD": os.environ["BUILD_ROOT"]})
        said = after(process) if after else ""
        said += process.communicate(timeout=120 * SCALE)[0]
        self.assertEqual(process.returncode, status, said)
        return said

    def refused(self, *arguments):
        return self.run_it(*arguments, status=2)

    def test_a_case_in_c_and_its_line_for_gdb(self):
        said = self.run_it("heap_rest", "a_crowd")
        self.assertEqual(re.findall(r"\[ RUN +\] (\w+)", said), [C_CASE])
        line, = re.findall(r"^  (.*gdb --args .*)$", said, re.M)
        again = subprocess.run(
            line.replace("gdb --args", ""), shell=True, capture_output=True,
            text=True, timeout=60 * SCALE)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(
            re.findall(r"\[ RUN +\] (\w+)", again.stdout + again.stderr),
            [C_CASE])

    def test_a_file_in_c_by_its_path(self):
        said = self.run_it(C_FILE)
        self.assertIn(C_CASE, said)
        self.assertGreater(len(re.findall(r"\[ RUN", said)), 3)

    def test_a_case_in_python_that_keeps_its_folder(self):
        said = self.run_it("test_io_threads.py", "without", "--keep")
        self.assertEqual(re.findall(r"^ok \d+ - (\S+)", said, re.M),
                         [PYTHON_CASE])
        folder, = re.findall(r"# kept: (\S+)", said)
        self.addCleanup(shutil.rmtree, folder)
        self.assertTrue(
            [f for f in os.listdir(folder) if f.startswith("tributaryd-")])

    def test_a_case_is_found_by_a_part_of_its_name(self):
        said = self.run_it("without_the_setting_there")
        self.assertIn(f"ok 1 - {PYTHON_CASE}", said)

    def test_daemons_under_a_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            note = os.path.join(folder, "note")
            tool = os.path.join(folder, "tool")
            with open(tool, "w") as file:
                file.write(f'#!/bin/sh\necho "$1" >>{note}\nexec "$@"\n')
            os.chmod(tool, 0o755)
            self.run_it("io_threads", "without", "--under", tool)
            with open(note) as file:
                self.assertEqual(file.read().split(),
                                 [os.environ["TRIBUTARYD"]])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_a_daemon_waits_for_a_debugger(self):
        def attach(process):
            said = ""
            while "waiting: " not in said:
                line = process.stdout.readline()
                self.assertTrue(line, said)
                said += line
            pid, = re.findall(r"gdb -p (\d+)", said)
            gdb = subprocess.run(
                ["gdb", "-p", pid, "-nx", "-batch", "-ex", "catch exec",
                 "-ex", "continue", "-ex", "info inferiors"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=120 * SCALE)
            self.assertIn(os.environ["TRIBUTARYD"], gdb.stdout, gdb.stderr)
            return said
        said = self.run_it("io_threads", "without", "--attach", "tributaryd",
                           after=attach)
        self.assertIn(f"ok 1 - {PYTHON_CASE}", said)

    def test_several_are_listed(self):
        self.assertEqual(self.refused("clocks").splitlines()[-3:-1], [
            "tests/run tests/e2e/test_clocks.py",
            "tests/run tests/unit/relay/clocks/test_clocks.c"])

    def test_a_list_runs_nothing(self):
        said = self.run_it("--list", "io_threads")
        self.assertIn(
            f"tests/run tests/e2e/test_io_threads.py {PYTHON_CASE}\n", said)
        self.assertNotIn("ok 1", said)

    def test_what_is_not_there_has_near_ones(self):
        self.assertIn("near: file_give_up", self.refused("file_giv_up"))
        self.assertIn("near: chunker", self.refused("chunkers"))
        said = self.refused("io_threads", "witout_the_seting")
        self.assertIn("has no case with 'witout_the_seting'", said)
        self.assertIn(PYTHON_CASE, said)


if __name__ == "__main__":
    sys.exit(tap.main())
