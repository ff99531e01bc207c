#!/usr/bin/env python3
"""What a program with libtributary may meet: signals in the middle of all,
forks, threads by the thousand, its death at any instant, a daemon that starts
ten times.  Nothing crashes, and what was complete is there."""

import os
import random
import struct
import sys
import unittest

from harness import imported, inspected, real, tap, tracing
from harness.consumer import source
from harness.loop import SCALE

OWN = "test.hardships"
# Events of each thread of each process, which number them.
NUMBERS = """
    select p.pid, w.int_value, count(*), min(i.int_value), max(i.int_value)
    from slice s
    join args i on s.arg_set_id = i.arg_set_id and i.key = 'debug.i'
    join args w on s.arg_set_id = w.arg_set_id and w.key = 'debug.thread'
    join thread_track k on s.track_id = k.id
    join thread t using (utid) join process p using (upid)
    where s.name = 'number' group by 1, 2"""


THREADS = 16


class HardshipsCase(tracing.TracingCase):
    program_variable = "HARDSHIPS"

    def program(self, *arguments):
        return super().program(*(arguments or ["32768"]),
                               self.path("progress"))

    def counts(self, threads):
        """Events of each thread whose calls have returned."""
        with open(self.path("progress"), "rb") as file:
            return struct.unpack(f"{threads}Q", file.read(8 * threads))

    def wait_counts(self, threads, least):
        self.until(lambda: min(self.counts(threads)) >= least,
                   f"{threads} threads have written {least} events")

    def ask(self, *queries):
        """What SQL says of the session's trace, and what is wrong with it."""
        raw = inspected.framed(self.consumer_.read_raw())
        return imported.ask(raw, imported.WRONG, *queries)

    def assert_numbers(self, counts, *queries):
        """counts: of the threads of each process, by its pid.  Returns the
        answers to further queries: a trace can be read once."""
        wrong, rows, *answers = self.ask(NUMBERS, *queries)
        self.assertEqual(wrong, [])
        self.assertEqual(
            sorted((pid, thread) for pid, thread, *_ in rows),
            sorted((pid, thread) for pid in counts
                   for thread in range(len(counts[pid]))))
        for (pid, thread, n, least, greatest) in rows:
            self.assertEqual((least, greatest), (0, n - 1), f"{rows}")
            # The last call had not returned.
            self.assertIn(n - counts[pid][thread], (0, 1), f"{counts} {rows}")
        return answers


@tracing.needed
class Hardships(HardshipsCase):
    """Through memory that is shared with tributaryd."""

    # Signals.

    @imported.may_cause("traced_buf_sequence_packet_loss")
    def test_events_in_handlers_of_signals_that_come_at_any_instant(self):
        program = self.begin(extra=[source(OWN)])
        program.do("source")
        handled, outside, dropped = map(int, program.do("signals 8000"))
        self.finish_session(program)
        trace = self.consumer_.read()
        texts = [p.for_testing.str for p in trace.of("for_testing")]
        self.assertEqual(len(texts) + dropped, handled + outside)
        inside = sum(text != "outside" for text in texts)
        self.assertGreater(inside, handled // 4)
        self.assertGreater(sum(text.startswith("lll") for text in texts), 0)
        (names,) = [dict(trace.sql(
            "select name, count(*) from slice where name in "
            "('in a handler', 'of a short life') group by 1"))]
        self.assertGreater(names["in a handler"], handled // 4)
        self.assertGreater(names["of a short life"], 0)

    # Memory that is full.

    def test_writers_that_wait_and_others_that_sleep_on_their_chunks(self):
        self.at = self.address()
        program = self.program("4")
        self.wait_offered()
        self.consumer_ = self.session(
            source("test.waiting"), size_kb=65536,
            trace_all_machines=self.all_machines)
        program.do("waiting")
        program.do("crowd 20 100")
        program.do("flush")
        self.settle()
        # A callback waits, too, for chunks that only its own thread tells of.
        flushes = 2
        for _ in range(flushes):
            self.consumer_.flush(60_000)
        self.consumer_.stop()
        program.end()
        trace = self.consumer_.read()
        self.assert_whole(trace)
        texts = [p.for_testing.str for p in trace.of("for_testing")]
        # One more flush comes at the stop, from some services.
        self.assertIn(texts.count("callback") // 200, (flushes, flushes + 1))
        self.assertEqual(sum(text != "callback" for text in texts),
                         64 * 100 + 20)

    # Forks, threads, ends.

    # A child of ASan's may wait for ever for a lock of its malloc(), which
    # another thread of its parent held.
    @unittest.skipIf(SCALE != 1, "a sanitizer's malloc() is not safe to fork()")
    def test_forks_and_execs_beside_threads_that_write(self):
        program = self.begin()
        self.assertEqual(program.do("forks 200"), ["0"])
        self.finish_session(program)
        self.assert_numbers({program.pid: self.counts(4)})

    def test_thousands_of_threads(self):
        program = self.begin()
        program.do("lives 40")
        self.finish_session(program)
        wrong, rows = self.ask(
            "select count(*) from slice where name = 'of a short life'")
        self.assertEqual(wrong, [])
        self.assertEqual(rows, [(40 * 64,)])

    def test_plugins_that_come_and_go(self):
        """Names of one are where the names of the other have been."""
        program = self.begin()
        (same,) = map(int, program.do(
            f"plugins 200 {os.environ['PLUGINS']}"))
        self.assertGreater(same, 0)
        self.finish_session(program)
        rows, numbers, lines = self.assert_numbers(
            {program.pid: self.counts(4)},
            "select name, category, count(*) from slice "
            "where category glob 'plugin.*' group by 1, 2",
            "select s.name, a.key, sum(a.int_value) from slice s "
            "join args a using (arg_set_id) where a.key glob "
            "'debug.number of *' group by 1, 2",
            "select count(*) from slice join args using (arg_set_id) "
            "where key = 'source.function_name' "
            "and string_value = 'plugin_run'")
        self.assertEqual(sorted(rows), [
            ("instant of one", "plugin.one", 200),
            ("instant of two", "plugin.two", 200),
            ("slice of one", "plugin.one", 100),
            ("slice of two", "plugin.two", 100)])
        self.assertEqual(sorted(numbers), [
            ("slice of one", "debug.number of one", 9900),
            ("slice of two", "debug.number of two", 10000)])
        self.assertEqual(lines, [(200,)])

    def end_in_the_middle(self, how, times=1):
        """how: ends a program whose threads write; says when it should."""
        program = self.begin()
        counts = {}
        for i in range(times):
            if i > 0:
                program = self.program()
                program.do("enabled")
            program.do(f"numbers {THREADS}")
            how(program)
            self.wait_offered(0)
            counts[program.pid] = self.counts(THREADS)
            os.unlink(self.path("progress"))
        self.settle()
        self.consumer_.stop()
        self.assert_numbers(counts)

    def exit_by(self, line):
        def how(program):
            self.wait_counts(THREADS, 1000)
            program.say(line)
            self.assertEqual(program.wait(), 0)
        self.end_in_the_middle(how)

    def test_exit_by_a_thread_while_others_write(self):
        self.exit_by("exit")

    def test_exit_by_the_main_thread_while_others_write(self):
        self.exit_by("return")

    def test_kill_at_random_instants(self):
        def how(program):
            self.wait_counts(THREADS, random.randrange(1000, 3000))
            program.process.kill()
            program.wait()
        self.end_in_the_middle(how, times=5)


@tracing.needed
class Restarts(HardshipsCase):
    """A daemon that starts ten times, below a program that always writes."""

    def test_a_daemon_that_restarts_ten_times(self):
        program = self.begin()
        program.do("numbers 4")
        for i in range(10):
            if i > 0:
                self.consumer_ = self.session(
                    tracing.track_event(), size_kb=65536)
            self.wait_events()
            self.consumer_.flush(60_000)
            self.consumer_.stop()
            wrong, rows = self.ask(NUMBERS)
            self.assertEqual(wrong, [])
            self.assertEqual([(pid, thread) for pid, thread, *_ in rows],
                             [(program.pid, thread) for thread in range(4)])
            for (_, _, n, least, greatest) in rows:
                self.assertEqual(greatest - least, n - 1)
            self.restart(kill=i % 2 == 0)
        program.do("end 4")
        program.end()

    def wait_events(self):
        self.until(lambda: self.consumer_.stats().buffer_stats[0].
                   chunks_written > 4, "the session has events")

    def restart(self, kill):
        (daemon,) = self.daemons
        if kill:
            daemon.kill()
        else:
            daemon.stop()
        daemon.expected_status = 0
        daemon.start()
        self.wait_offered()


class OverTcp(tracing.OverTcp, Hardships):
    """Without shared memory: the library sends its chunks."""

    # Of a connection that has ended there is no more than what came.
    test_kill_at_random_instants = None
    test_exit_by_a_thread_while_others_write = None
    test_exit_by_the_main_thread_while_others_write = None


class ByRelay(tracing.ByRelay, Hardships):
    """By tributary-relay and its link."""


@real.needed
class WithTraced(tracing.WithTraced, Hardships):
    """Perfetto's service."""


if __name__ == "__main__":
    sys.exit(tap.main())
