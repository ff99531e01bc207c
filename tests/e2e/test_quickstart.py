#!/usr/bin/env python3
"""./quickstart with the programs of this build: what a new user sees."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import tap
from harness.daemon import environment
from harness.loop import SCALE
from harness.trace import Trace

COMMAND = [os.path.join(os.environ["SOURCE_ROOT"], "quickstart"),
           "--no-install"]


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace = os.path.join(self.folder,
                                  "tributary-quickstart.pftrace")

    def start(self, *flags):
        process = subprocess.Popen(
            COMMAND + list(flags), cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            env=environment(QUICKSTART_BUILD=os.environ["BUILD_ROOT"],
                            TMPDIR=self.folder))
        self.addCleanup(process.stdout.close)
        return process

    def finish(self, process, status=0):
        said, _ = process.communicate(timeout=60 * SCALE)
        self.assertEqual(process.returncode, status, said)
        return said

    def left(self):
        """Folders that are still there; each would hold live sockets."""
        return glob.glob(os.path.join(self.folder, "tributary.*"))

    def assert_machine(self, said):
        trace = Trace.from_file(self.trace)
        self.assertGreater(len(trace.of("sys_stats")), 0)
        self.assertGreater(len(trace.of("process_tree")), 0)
        self.assertIn(self.trace, said)
        self.assertIn("ui.perfetto.dev", said)
        self.assertRegex(said, r"Producers +tributary-probes, pid \d+: ")
        self.assertIn("linux.process_stats, linux.sys_stats", said)
        self.assertIn("Lost            nothing", said)

    def test_it_records_this_machine_and_leaves_only_the_trace(self):
        self.assert_machine(self.finish(self.start()))
        self.assertEqual(os.listdir(self.folder),
                         ["tributary-quickstart.pftrace"])

    def test_ctrl_c_ends_the_recording_sooner_and_keeps_it(self):
        process = self.start()
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("== Recording"):
                break
        while not (os.path.exists(self.trace) and self.recording()):
            self.assertIsNone(process.poll(), said)
        os.killpg(process.pid, signal.SIGINT)
        self.assertIn("ui.perfetto.dev", self.finish(process))
        Trace.from_file(self.trace)
        self.assertEqual(self.left(), [])

    def recording(self):
        """Whether the daemon's log tells of a session."""
        for log in glob.glob(os.path.join(self.folder, "tributary.*",
                                          "tributaryd.log")):
            with open(log, encoding="utf-8") as file:
                if "session 1: started" in file.read():
                    return True
        return False

    def test_keep_leaves_a_daemon_and_says_how_to_use_and_stop_it(self):
        said = self.finish(self.start("--keep"))
        pids = [int(pid) for pid in
                re.search(r"kill ([\d ]+); rm -r", said)[1].split()]
        self.addCleanup(self.end, pids)
        self.assert_machine(said)
        for variable in ("PRODUCER", "CONSUMER"):
            self.assertRegex(said, rf"export PERFETTO_{variable}_SOCK_NAME=")
        socket = re.search(r"CONSUMER_SOCK_NAME=(\S+)", said)[1]
        more = subprocess.run(
            [os.environ["TRIBUTARY"], "record", "-t", "100ms", "-o",
             os.path.join(self.folder, "more"), "linux.sys_stats"],
            check=True, stderr=subprocess.PIPE, timeout=60 * SCALE,
            env=environment(PERFETTO_CONSUMER_SOCK_NAME=socket))
        self.assertNotIn(b"no producer offers", more.stderr)

    @classmethod
    def end(cls, pids):
        """Returns when they are gone: they remove files of their own."""
        for pid in pids:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        end = time.monotonic() + 20 * SCALE
        while not all(map(cls.is_over, pids)):
            assert time.monotonic() < end, f"{pids} go on"
            time.sleep(0.01)

    @staticmethod
    def is_over(pid):
        """Also where nobody collects it: they are not our children."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def test_an_unknown_flag_is_refused_with_the_help(self):
        said = self.finish(self.start("--kep"), 1)
        self.assertIn("there is no flag --kep", said)
        self.assertIn("--keep", said)


if __name__ == "__main__":
    sys.exit(tap.main())
