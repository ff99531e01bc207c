#!/usr/bin/env python3
"""Events that a program with libtributary writes before a service's session
asks for them: the first session has them, once; or they are lost and counted."""

import sys

from harness import imported, inspected, real, tap, tracing
from harness.consumer import source

OWN = "test.startup"


@tracing.needed
class Startup(tracing.TracingCase):
    """Through memory that is shared with tributaryd."""

    program_variable = "STARTUP"
    keeps_marks = True

    def begin_alone(self, memory_kb=1024, timeout_ms=600_000):
        """A program that has not called tributary_start()."""
        self.at = self.address()
        return self.program(str(memory_kb), str(timeout_ms))

    def record(self, *sources):
        self.consumer_ = self.session(
            *(sources or [tracing.track_event()]), size_kb=65536,
            trace_all_machines=self.all_machines)

    def test_a_session_has_what_was_written_before_it(self):
        program = self.begin_alone()
        program.do("record net")
        program.do("events before")
        program.do("begin")
        program.do("start")
        self.wait_offered()
        program.do("events connected")
        self.record()
        self.assertEqual(program.do("ended"), ["1", "1", "0"])
        program.do("end")
        program.do("events after")
        trace = self.finish(program)
        self.assert_whole(trace)
        self.assertEqual(trace.sql(
            "select s.name, a.string_value from slice s join args a using "
            "(arg_set_id) where a.key = 'debug.when' order by s.ts, s.name"),
            [("of net", "before"), ("of net", "connected"),
             ("of net", "after"), ("of disk", "after")])
        # It has begun for the recording, and ended for the session.
        self.assertEqual(trace.sql(
            "select dur > 0 from slice where name = 'open'"), [(1,)])
        self.assertEqual(trace.sql(
            "select distinct t.name, p.name, p.pid from slice s join "
            "thread_track k on s.track_id = k.id join thread t using (utid) "
            "join process p using (upid)"),
            [("startup", "startup", program.pid)])

    def test_threads_that_write_while_the_session_takes_over(self):
        program = self.begin_alone(memory_kb=8192)
        program.do("record")
        program.do("numbers")
        program.do("written 500")
        program.do("start")
        self.wait_offered()
        self.record()
        self.assertEqual(program.do("ended"), ["1", "1", "0"])
        # Each of the threads has written to the session, too.
        program.do("written 20000")
        counts = list(map(int, program.do("end_numbers")))
        self.finish_session(program)
        wrong, rows = imported.ask(
            inspected.framed(self.consumer_.read_raw()), imported.WRONG,
            "select t.int_value, count(*), min(i.int_value), "
            "max(i.int_value), sum(s.dur >= 0) from slice s "
            "join args i on s.arg_set_id = i.arg_set_id and "
            "i.key = 'debug.i' join args t on s.arg_set_id = t.arg_set_id "
            "and t.key = 'debug.thread' group by 1 order by 1")
        self.assertEqual(wrong, [])
        self.assertEqual(rows, [(i, n, 0, n - 1, n)
                                for i, n in enumerate(counts)])

    def test_packets_of_a_source_of_ones_own(self):
        program = self.begin_alone()
        program.do("record_source")
        program.do("packets 200")
        program.do("start")
        self.wait_offered()
        self.record(source(OWN))
        self.assertEqual(program.do("ended"), ["1", "1", "0"])
        trace = self.finish(program)
        self.assert_whole(trace)
        self.assertEqual([p.for_testing.counter
                          for p in trace.of("for_testing")],
                         list(range(200)))

    @imported.may_cause("traced_buf_sequence_packet_loss")
    def test_more_than_the_memory_holds_is_counted(self):
        program = self.begin_alone(memory_kb=32)
        program.do("record_source")
        program.do("packets 5000")
        program.do("start")
        self.wait_offered()
        self.record(source(OWN))
        ends, adopted, lost = map(int, program.do("ended"))
        self.assertEqual((ends, adopted), (1, 1))
        program.do("packets 1")
        trace = self.finish(program)
        numbers = [p.for_testing.counter for p in trace.of("for_testing")]
        self.assertEqual(len(numbers) + lost, 5000 + 1)
        self.assertGreater(lost, 1000)
        self.assertGreater(len(numbers), 20)
        # The one that follows says that there was a loss.
        losses = [p.for_testing.counter for p in trace.losses()
                  if p.previous_packet_dropped > 1]
        self.assertEqual(losses[-1:], [0] if self.keeps_marks else [])

    def test_a_session_that_does_not_come_in_time(self):
        program = self.begin_alone(timeout_ms=100)
        program.do("record_source")
        program.do("packets 50")
        program.do("start")
        self.assertEqual(program.do("ended"), ["1", "0", "50"])
        program.do("packets 1")
        self.wait_offered()
        self.record(source(OWN), tracing.track_event())
        # What is written for it is the session's alone.
        program.do("flush")
        self.settle()
        trace = self.finish(program)
        self.assertEqual(list(trace.of("for_testing")), [])

    def test_a_recording_that_is_stopped(self):
        program = self.begin_alone()
        program.do("record_source")
        program.do("packets 50")
        program.do("start")
        program.do("stop")
        self.assertEqual(program.do("ended"), ["1", "0", "50"])
        program.end()

    def test_no_second_recording_beside_the_first(self):
        program = self.begin_alone()
        program.do("record")
        program.say("record")
        self.until(lambda: program.process.stdout.read() == b"bad\n",
                   "it is refused")
        program.end()


class OverTcp(tracing.OverTcp, Startup):
    """Without shared memory: the library sends its chunks."""


class ByRelay(tracing.ByRelay, Startup):
    """By tributary-relay and its link."""


@real.needed
class WithTraced(tracing.WithTraced, Startup):
    """Perfetto's service."""

    # It says so of each sequence's first packet, in a way of its own.
    keeps_marks = False


if __name__ == "__main__":
    sys.exit(tap.main())
