#!/usr/bin/env python3
"""Sessions that are cut while they run: the marks, and what lies between them."""

import os
import sys

from harness import protovm, real, tap
from harness.case import TEST_SOURCE, pb
from harness.consumer import config, source
from harness.device import Device
from harness.imported import causes
from harness.segments import mark
from harness.trace import SERVICE_SEQUENCE, Trace
from test_protovm import Patches, asking, offering
from test_session_commands import Commands

CLEARED, NEEDS = 1, 2  # SequenceFlags
Cut = pb.SegmentCut


class Numbers:
    """A producer with numbered packets, that begins anew when it is asked."""

    def __init__(self, case, name, clears=True, writers=2, **options):
        self.producer = case.producer(name, [
            {"name": TEST_SOURCE, "handles_incremental_state_clear": clears}],
            **options)
        self.producer.wait_started()
        self.writers = [self.producer.writer() for _ in range(writers)]
        self.begun = [-1] * writers  # clears when each began anew last

    def number(self, count):
        for i, writer in enumerate(self.writers):
            if self.begun[i] != self.producer.clears:
                self.begun[i] = self.producer.clears
                writer.number(1, sequence_flags=CLEARED | NEEDS)
                writer.number(count - 1, sequence_flags=NEEDS)
            else:
                writer.number(count, sequence_flags=NEEDS)


class CutCase(Commands):
    def start_collector(self):
        self.address = self.daemon(
            flags=["--enable-relay-endpoint"]).consumer_path

    def read_on(self):
        """What there is now; self.raw has all so far."""
        new = self.consumer.read_raw()
        self.raw += new
        return [pb.TracePacket.FromString(p) for p in new]

    def start(self, **options):
        self.raw = []
        self.consumer = self.session(source(TEST_SOURCE), size_kb=4096,
                                     unique_session_name="s", **options)

    def read_until(self, phase, number):
        found = []

        def there():
            found.extend(self.read_on())
            return any(mark(p) and (mark(p).phase, mark(p).number) ==
                       (phase, number) for p in found)
        self.until(there, f"mark {phase} of segment {number}")
        return found

    def finish_session(self):
        self.consumer.stop()
        self.read_on()
        self.trace = Trace(self.raw)
        return self.trace

    def assert_rules(self, trace, moved):
        """Marks come in pairs and in order; between those of each cut every
        sequence of `moved` begins anew.  Returns the segments, each the packets
        of its file."""
        segments, is_open, anew = [[]], None, set()
        where = {}
        for packet in trace.packets:
            sequence, cut = packet.trusted_packet_sequence_id, mark(packet)
            if cut and cut.phase == Cut.BEGIN:
                self.assertIsNone(is_open)
                self.assertEqual(cut.number, len(segments) + 1)
                self.assertEqual(sequence, SERVICE_SEQUENCE)
                segments.append([])
                is_open, anew = cut.number, set()
            elif cut:
                self.assertEqual(cut.number, is_open)
                self.assertLessEqual(moved, anew)
                is_open = None
                where = {}
            flags = packet.sequence_flags
            if is_open and sequence != SERVICE_SEQUENCE and flags & CLEARED:
                anew.add(sequence)
                where[sequence] = len(segments) - 1
            if packet.HasField("for_testing"):
                at = where.get(sequence, len(segments) - 1 - bool(is_open))
                segments[at].append(packet)
        self.assertIsNone(is_open)
        return segments


class Cuts(CutCase):
    def test_ten_cuts_of_a_stream(self):
        self.start()
        first = Numbers(self, "first")
        second = Numbers(self, "second")
        for number in range(2, 12):
            first.number(20)
            second.number(20)
            self.assertEqual(self.must("rotate", "s"), "rotated session 1 (s)"
                             f": segment {number} begins\n")
            self.read_until(Cut.BEGIN, number)
            for one in first, second:
                one.producer.wait_command("clear_incremental_state", number - 1)
                one.number(20)
            self.read_until(Cut.END, number)
        trace = self.finish_session()
        self.assert_numbers(trace, [400] * 4)
        segments = self.assert_rules(trace, set(trace.numbers()))
        self.assertEqual([len(s) for s in segments], [80] + [160] * 9 + [80])
        for segment in segments:
            begun = set()
            for packet in segment:
                if packet.sequence_flags & CLEARED:
                    begun.add(packet.trusted_packet_sequence_id)
                self.assertIn(packet.trusted_packet_sequence_id, begun)

    def test_what_a_segment_needs_is_repeated(self):
        self.start()
        Numbers(self, "p").number(5)
        self.must("rotate", "s")
        behind = self.read_until(Cut.BEGIN, 2)
        while not mark(behind.pop(0)):
            pass
        kinds = set()
        for packet in behind:
            self.assertTrue(packet.tributary_repeated, packet)
            kinds.add(packet.WhichOneof("data"))
        self.assertLessEqual({"clock_snapshot", "trace_config", "system_info",
                              "trace_provenance", "service_event"}, kinds)
        self.read_until(Cut.END, 2)
        trace = self.finish_session()
        # Each TraceStats tells all so far.
        written = [p.trace_stats.buffer_stats[0].bytes_written
                   for p in trace.of("trace_stats")]
        self.assertEqual(written, sorted(written))
        # What is repeated changes nothing that an importer makes of it.
        ((began, count),) = trace.sql(
            "select min(int_value), count() from metadata "
            "where name = 'tracing_started_ns'")
        started, *_ = [p.timestamp for p in trace.of("service_event")
                       if p.service_event.tracing_started]
        self.assertEqual((began, count), (started, 1))

    @causes("traced_final_flush_failed", "traced_flushes_failed")
    def test_a_producer_that_does_not_answer_is_named(self):
        self.start(flush_timeout_ms=300)
        good, bad = Numbers(self, "good"), Numbers(self, "bad")
        bad.producer.answers_flush = False
        good.number(5)
        bad.number(5)
        self.must("rotate", "s")
        self.read_until(Cut.BEGIN, 2)
        good.producer.wait_command("clear_incremental_state")
        good.number(5)
        bad.number(5)  # its flush is not answered: it is late all the same
        found = self.read_until(Cut.END, 2)
        end, = [mark(p) for p in found if mark(p) and
                mark(p).phase == Cut.END]
        self.assertEqual([u.producer for u in end.unanswered], ["bad"])
        bad.producer.answers_flush = True
        self.assert_numbers(self.finish_session(), [10] * 4)

    def test_two_at_once_are_one_and_one_more_follows(self):
        self.start()
        producer = Numbers(self, "p")
        both = [self.spawn("rotate", "s"), self.spawn("rotate", "s")]
        said = [self.finish(process) for process in both]
        self.assertEqual(said, [(0, "rotated session 1 (s): segment 2 begins\n",
                                 "")] * 2)
        self.read_until(Cut.BEGIN, 2)
        self.assertIn("segment 3 begins", self.must("rotate", "s"))
        self.assertIn("segment 3 begins", self.must("rotate", "s"))
        self.read_until(Cut.BEGIN, 3)
        producer.number(5)
        self.read_until(Cut.END, 3)
        trace = self.finish_session()
        self.assertEqual([mark(p).number for p in trace.packets if mark(p)],
                         [2, 2, 3, 3])

    def test_a_cut_at_the_end_is_dropped_or_ended(self):
        self.start()
        producer = Numbers(self, "p")
        producer.number(5)
        self.must("rotate", "s")
        self.read_until(Cut.BEGIN, 2)
        self.assertIn("segment 3", self.must("rotate", "s"))
        self.consumer.stop()
        self.assertIn("has stopped already", self.must_fail("rotate", "s"))
        self.read_on()
        trace = Trace(self.raw)
        self.assert_rules(trace, set())
        self.assertEqual([mark(p).number for p in trace.packets if mark(p)],
                         [2, 2])
        self.assertEqual(trace.kinds()[-1], "trace_stats")

    def test_a_trigger_and_the_time_cut_a_file(self):
        path = self.path("t")
        consumer = self.consumer()
        fields = pb.SegmentConfig(at_trigger=["drop"], every_ms=1000)
        with open(path, "wb") as file:
            consumer.enable(config(
                TEST_SOURCE, write_into_file=True,
                file_write_period_ms=3_600_000, tributary_segments=fields),
                [file.fileno()])
        producer = Numbers(self, "kiosk")
        producer.number(5)
        producer.producer.activate("other", "drop")

        def cuts(cause):
            return [m for m in map(mark, Trace.so_far(path).packets)
                    if m and m.phase == Cut.END and m.cause == cause]
        self.until(lambda: cuts(Cut.TRIGGER) and len(cuts(Cut.TIME)) > 1,
                   "cuts by time and trigger")
        consumer.stop()
        trace = Trace.from_file(path)
        self.assert_rules(trace, set())
        self.assert_numbers(trace, [5, 5])
        by_trigger, = cuts(Cut.TRIGGER)
        self.assertEqual((by_trigger.trigger, by_trigger.trigger_producer),
                         ("drop", "kiosk"))
        trigger, = trace.of("trigger")
        self.assertEqual(trigger.trigger.trigger_name, "drop")
        first, *_ = cuts(Cut.TIME)
        self.assertLess(first.realtime_ns % 10**9, 9 * 10**8)

    def test_machines_behind_relays_begin_anew_too(self):
        devices = [Device(self.folder, name, self.daemons[0].producer_path)
                   for name in ("kiosk-1", "kiosk-2")]
        self.relays += devices
        self.start(trace_all_machines=True)
        far = [Numbers(self, "far", address=device.start().socket)
               for device in devices]
        for one in far:
            one.number(10)
        self.consumer.flush(60_000)
        self.read_on()
        self.must("rotate", "s")
        behind = self.read_until(Cut.BEGIN, 2)
        while not mark(behind.pop(0)):
            pass
        names = {p.system_info.machine_name for p in behind
                 if p.HasField("system_info") and p.tributary_repeated}
        self.assertLessEqual({"kiosk-1", "kiosk-2"}, names)
        clocks = {p.machine_id for p in behind
                  if p.HasField("remote_clock_sync")}
        self.assertEqual(len(clocks), 2)
        # Twice, as importers may take what is repeated only once.
        for number in 2, 3:
            for one in far:
                one.producer.wait_command("clear_incremental_state",
                                          number - 1)
                one.number(10)
            self.read_until(Cut.END, number)
            if number == 2:
                self.must("rotate", "s")
                self.read_until(Cut.BEGIN, 3)
        trace = self.finish_session()
        self.assert_numbers(trace, [30] * 4)
        segments = self.assert_rules(trace, set(trace.numbers()))
        self.assertEqual([len(s) for s in segments], [40, 40, 40])

    def test_a_segment_has_the_state_of_a_producers_program(self):
        producer = self.producer("vm", [offering()])
        self.raw = []
        self.consumer = self.session(asking(), size_kb=4096,
                                     unique_session_name="s")
        writer, patches = producer.writer(), Patches(1)

        def write():
            for _ in range(20):
                writer.write([patches.next() for _ in range(10)])
        write()
        self.read_on()
        write()
        self.must("rotate", "s")
        self.read_until(Cut.BEGIN, 2)
        write()
        self.read_until(Cut.END, 2)
        write()
        whole = self.finish_session()
        begin, end = [i for i, p in enumerate(whole.packets) if mark(p)]
        # It clears nothing: all of its packets before END are in the first.
        second = Trace([raw for i, (raw, p) in
                        enumerate(zip(whole.raw, whole.packets)) if i > end or
                        i > begin and p.tributary_repeated])
        first, = [i for i, p in enumerate(second.packets)
                  if p.HasField("protovms")]
        self.assertIn("trace_provenance", second.kinds()[:first])
        joined = Trace([raw for raw, p in zip(whole.raw, whole.packets)
                        if not p.tributary_repeated])
        state = protovm.final_state(joined, protovm.program())
        self.assertGreater(len(state["messages"]), 10)
        self.assertEqual(protovm.final_state(second, protovm.program()), state)

    def test_what_cannot_be_cut_says_why(self):
        self.start(deferred_start=True)
        self.assertIn("has not started yet", self.must_fail("rotate", "s"))
        self.assertIn("no session", self.must_fail("rotate", "x"))


@real.needed
class TheirProbes(CutCase):
    def test_traced_probes_begin_anew(self):
        probes = real.Probes(self.folder, self.daemons[0].producer_path)
        self.daemons.append(probes)
        probes.start()
        self.raw = []
        stats = source("linux.process_stats")
        stats.config.process_stats_config.scan_all_processes_on_start = True
        stats.config.process_stats_config.proc_stats_poll_ms = 100
        self.consumer = self.session(stats, size_kb=16384,
                                     unique_session_name="s")
        self.until(lambda: any(p.HasField("process_stats")
                               for p in self.read_on()), "counters")
        self.must("rotate", "s")
        self.read_until(Cut.BEGIN, 2)
        self.read_until(Cut.END, 2)
        self.until(lambda: any(p.HasField("process_stats")
                               for p in self.read_on()), "counters again")
        trace = self.finish_session()
        # The first packet in the new segment begins anew: behind BEGIN, or as
        # the first behind END.
        begin, end = [i for i, p in enumerate(trace.packets) if mark(p)]
        data = [(i, p) for i, p in enumerate(trace.packets)
                if p.trusted_packet_sequence_id != SERVICE_SEQUENCE]
        at, _ = next((i, p) for i, p in data
                     if i > begin and p.incremental_state_cleared)
        self.assertLessEqual(at, next(i for i, _ in data if i > end))
        # And it says again what the processes are called.
        named = [p for p in trace.packets[at:] if p.HasField("process_tree")]
        self.assertIn(os.getpid(), {q.pid for p in named
                                    for q in p.process_tree.processes})


if __name__ == "__main__":
    sys.exit(tap.main())
