#!/usr/bin/env python3
"""A program with libtributary that records itself: through tributaryd, and
through Perfetto's traced."""

import os
import subprocess
import sys

from harness import real, tap, tracing
from harness.consumer import config
from harness.daemon import environment
from harness.loop import SCALE
from harness.trace import Trace


class Program:
    def __init__(self, case, producers, consumers):
        self.case = case
        self.process = subprocess.Popen(
            [os.environ["OWN_SESSIONS"], producers, consumers],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=environment())
        os.set_blocking(self.process.stdout.fileno(), False)
        case.addCleanup(self.stop)

    def hear(self, what):
        said = b""

        def answered():
            nonlocal said
            said += self.process.stdout.read() or b""
            return said.endswith(b"\n") or self.process.poll() is not None

        self.case.until(answered, what)
        return said.decode().strip()

    def say(self, line):
        """The program's answer."""
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()
        return self.hear(f"the program has done {line!r}")

    def do(self, *lines):
        for line in lines:
            self.case.assertEqual(self.say(line), "ok", line)

    def fails(self, line):
        said = self.say(line)
        self.case.assertTrue(said.startswith("failed: "), said)
        return said.removeprefix("failed: ")

    def end(self):
        self.process.stdin.close()
        self.case.assertEqual(self.process.wait(60 * SCALE), 0)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@tracing.needed
class OverTcp(tracing.TracingCase):
    """A consumer port over TCP."""

    def address(self):
        return self.daemon(consumer=["127.0.0.1:0"]).producer_path

    def consumers(self):
        return self.daemons[0].address("consumers", "tcp")

    def start(self):
        producers = self.address()
        program = Program(self, producers, self.consumers())
        self.assertEqual(program.hear("it is connected"), "ok")
        program.do("connect")
        return program

    def assert_events(self, name, count):
        """Numbered ones in the file, and none of the other category, as the
        Trace Processor reads it."""
        self.assertEqual(Trace.from_file(self.path(name)).sql(
            "select s.name, a.int_value from slice s left join args a on "
            "s.arg_set_id = a.arg_set_id and a.flat_key = 'debug.n' "
            "order by s.ts"), [("event", n) for n in range(count)])

    def test_what_a_program_writes_while_it_records_itself(self):
        program = self.start()
        # No wait between the two: the sources have started.
        program.do("start", "write 5000", "stop",
                   f"save {self.path('t')}")
        program.end()
        self.assert_events("t", 5000)

    def test_a_service_that_dies_in_the_middle(self):
        program = self.start()
        program.do("start", "write 1000", "flush", f"save {self.path('t')}")
        self.daemons[0].kill()
        said = program.fails("stop")
        self.assertIn("service closed the connection", said)
        # Nothing more can be had, for the same reason.
        self.assertEqual(program.fails(f"save {self.path('later')}"), said)
        self.assertIn(self.consumers(), program.fails("connect"))
        program.end()
        self.assert_events("t", 1000)
        self.assertEqual(os.path.getsize(self.path("later")), 0)


class OwnSessions(OverTcp):
    """Over UNIX sockets."""

    def address(self):
        return self.daemon().producer_path

    def consumers(self):
        return self.daemons[0].consumer_path

    def test_reading_in_parts_while_the_session_runs(self):
        program = self.start()
        program.do("start", "write 3000", "flush", f"save {self.path('a')}",
                   "write 2000", "stop", f"save {self.path('b')}")
        program.end()
        second = os.path.getsize(self.path("b"))
        with open(self.path("t"), "wb") as whole:
            for part in "ab":
                with open(self.path(part), "rb") as file:
                    whole.write(file.read())
                os.unlink(self.path(part))  # no trace by itself
        self.assert_events("t", 5000)
        self.assertLess(second, os.path.getsize(self.path("t")) / 2)

    def test_a_clone_by_name_of_a_session_that_goes_on(self):
        program = self.start()
        program.do("start flight", "write 1000", "flush",
                   f"clone flight {self.path('clone')}", "write 1000", "stop",
                   f"save {self.path('t')}")
        self.assertNotEqual(program.fails("clone nothing /dev/null"), "")
        program.end()
        self.assert_events("clone", 1000)
        self.assert_events("t", 2000)

    def test_a_deferred_start(self):
        made = config(tracing.track_event(enabled_categories=["own"],
                                          disabled_categories=["*"]),
                      size_kb=4096, deferred_start=True)
        with open(self.path("config"), "wb") as file:
            file.write(made.SerializeToString())
        program = self.start()
        program.do(f"start_deferred {self.path('config')}", "begin",
                   "write 100", "stop", f"save {self.path('t')}")
        program.end()
        self.assert_events("t", 100)

    def test_detached_and_attached(self):
        program = self.start()
        program.do("start", "write 100", "detach key", "write 100",
                   "attach key", "write 100", "stop",
                   f"save {self.path('t')}")
        self.assertIn("key", program.fails("attach other"))
        program.end()
        self.assert_events("t", 300)

    def test_questions_and_a_reading_that_is_ended(self):
        program = self.start()
        program.do("start", "ask", "write 5000", "stop", "read_three", "ask")
        program.end()

    def test_a_refused_session_and_words_in_a_wrong_order(self):
        made = config(tracing.track_event(), size_kb=4096)
        made.data_sources[0].config.target_buffer = 7
        with open(self.path("config"), "wb") as file:
            file.write(made.SerializeToString())
        program = self.start()
        self.assertIn("no session", program.fails("stop"))
        self.assertIn("no session", program.fails("wait"))
        said = program.fails(f"start_deferred {self.path('config')}")
        self.assertNotIn("in time", said)
        program.do("connect", "start")
        self.assertIn("already", program.fails("start"))
        program.end()


@real.needed
class WithTraced(tracing.WithTraced, OwnSessions):
    """Perfetto's service."""


if __name__ == "__main__":
    sys.exit(tap.main())
