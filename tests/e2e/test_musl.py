#!/usr/bin/env python3
"""libtributary with another C library: built with musl, statically, below the
programs of the other tests.

    test_musl.py SOURCE... [CASE...]   the library's sources
"""

import atexit
import concurrent.futures
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import tap, tracing
from harness.consumer import source

SOURCES = [a for a in sys.argv[1:] if a.endswith(".c")]
sys.argv[1:] = [a for a in sys.argv[1:] if not a.endswith(".c")]
TOP = pathlib.Path(__file__).resolve().parents[2]
# The kernel's headers, and <sys/queue.h>, are not musl's own.
COMPILER = ("musl-gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra",
            "-Wno-unused-parameter", "-Werror", "-D_GNU_SOURCE",
            '-DTRIBUTARY_VERSION="musl"', f"-I{TOP}",
            f"-I{TOP}/client/tracing/include", f"-I{os.environ['BUILD']}",
            "-idirafter", "/usr/include",
            "-idirafter", "/usr/include/x86_64-linux-gnu")


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"


@functools.cache
def library():
    """The archive, in a temporary folder."""
    folder = tempfile.mkdtemp(prefix="trib")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    objects = [os.path.join(folder, f"{i}.o") for i in range(len(SOURCES))]

    def compile_one(pair):
        output(*COMPILER, "-c", "-o", *pair)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, zip(objects, SOURCES)))
    archive = os.path.join(folder, "libtributary.a")
    output("ar", "rcs", archive, *objects)
    return archive


@functools.cache
def program(name):
    path = os.path.join(os.path.dirname(library()), name)
    output(*COMPILER, "-static", "-o", path,
           str(TOP / "tests" / "e2e" / "tracing" / f"{name}.c"), library(),
           "-pthread")
    return path


@unittest.skipUnless(shutil.which("musl-gcc"),
                     "no musl-gcc; deploy/install-deps test")
@tracing.needed
class Musl(tracing.TracingCase):
    """Through memory that is shared with tributaryd."""

    program_variable = "MUSL_PROGRAM"

    def use(self, name):
        os.environ[self.program_variable] = program(name)

    def test_events_of_all_kinds(self):
        self.use("track_events")
        trace = self.traced("slices", "arguments", "flows", "tracks",
                            "threads", "messages", "many 8 500")
        self.assertEqual(trace.sql(
            "select name, count(*) from slice where name in ('even', 'odd') "
            "and dur >= 0 group by 1 order by 1"),
            [("even", 8 * 468), ("odd", 8 * 32)])
        self.assertEqual(trace.sql(
            "select p.name, p.pid from slice s join thread_track k on "
            "s.track_id = k.id join thread t using (utid) "
            "join process p using (upid) where s.name = 'outer'"),
            [("track_events", self.pid)])
        self.assertEqual(trace.sql(
            "select a.display_value from slice s join args a using "
            "(arg_set_id) where a.key = 'debug.dict.deeper.b'"), [("two",)])

    def hardships(self, *lines, extra=()):
        self.use("hardships")
        self.at = self.address()
        running = self.program("32768", self.path("progress"))
        self.wait_offered()
        self.consumer_ = self.session(
            tracing.track_event(), *extra, size_kb=65536,
            trace_all_machines=self.all_machines)
        running.do("enabled")
        said = [running.do(line) for line in lines][-1]
        return self.finish(running), said

    def test_thousands_of_threads_and_forks(self):
        trace, said = self.hardships("lives 20", "forks 40")
        self.assertEqual(said, ["0"])
        self.assert_whole(trace)
        self.assertGreaterEqual(len([
            p for p in trace.of("track_event")]), 20 * 64)

    def test_packets_of_a_data_source(self):
        trace, _ = self.hardships("waiting", "crowd 3 50",
                                  extra=[source("test.waiting")])
        self.assert_whole(trace)
        self.assertEqual(sum(p.for_testing.str != "callback"
                             for p in trace.of("for_testing")), 64 * 50 + 3)


class OverTcp(tracing.OverTcp, Musl):
    """Without shared memory: the library sends its chunks."""


if __name__ == "__main__":
    sys.exit(tap.main())
