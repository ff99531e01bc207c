#!/usr/bin/env python3
"""trace_filter: what leaves a session, by a file, by ReadBuffers, by a clone."""

import contextlib
import os
import sys

from harness import tap
from harness.bytecode import assemble, encode, varint
from harness.case import Case, TEST_SOURCE, config, pb
from harness.imported import causes
from harness.producer import numbered
from harness.trace import Trace

Filter = pb.TraceConfig.TraceFilter
OTHER = 31003  # a uid that nobody on a test machine has
TRUSTED = ("trusted_uid", "trusted_packet_sequence_id", "trusted_pid",
           "previous_packet_dropped")


@contextlib.contextmanager
def acting_as(uid):
    """The kernel notes the effective user of whoever connects."""
    if uid is not None:
        os.seteuid(uid)
    try:
        yield
    finally:
        if uid is not None:
            os.seteuid(0)


def number(message, field):
    return message.DESCRIPTOR.fields_by_name[field].number


def bytecode(*more, str_as=None):
    """Lets through the trusted fields, test events without their seq_value,
    statistics and the uuid, and `more` of TracePacket's fields."""
    packet = {number(pb.TracePacket, name): None
              for name in (*TRUSTED, "trace_stats", "trace_uuid", *more)}
    packet[number(pb.TracePacket, "for_testing")] = 2
    event = {number(pb.TestEvent, "counter"): None,
             number(pb.TestEvent, "str"): str_as}
    return assemble({1: 1}, packet, event)


def rules(policy, pattern, **fields):
    return Filter.StringFilterChain(rules=[Filter.StringFilterRule(
        policy=policy, regex_pattern=pattern, **fields)])


class FilterCase(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def assert_filtered(self, trace, count):
        """Test events are there, without what the filter does not name; and
        so is nothing else but empty packets, of the service's own."""
        self.assert_numbers(trace, [count])
        self.assertEqual(set(trace.kinds()), {
            None, "for_testing", "trace_stats", "trace_uuid"})
        for packet in trace.packets:
            self.assertFalse(packet.HasField("timestamp"))
            self.assertTrue(packet.HasField("trusted_packet_sequence_id"))
        for packet in trace.of("for_testing"):
            self.assertTrue(packet.for_testing.str)
            self.assertFalse(packet.for_testing.HasField("seq_value"))
            self.assertEqual(packet.trusted_pid, os.getpid())
            self.assertEqual(packet.trusted_uid, os.getuid())
        # Those that were made before the last statistics.
        stats = trace.stats().filter_stats
        self.assertEqual(stats.input_packets, len(trace) - 1)
        self.assertEqual(stats.errors, 0)
        self.assertEqual(stats.output_bytes,
                         sum(len(raw) for raw in trace.raw[:-1]))
        self.assertGreater(stats.input_bytes, stats.output_bytes)
        self.assertGreater(stats.time_taken_ns, 0)
        self.assertEqual(len(stats.bytes_discarded_per_buffer), 1)
        # A time stamp (of nine bytes at most) and a seq_value each, at least.
        self.assertGreaterEqual(stats.bytes_discarded_per_buffer[0],
                                8 * count)

    def filtered(self, fds=(), **fields):
        """A session with this filter, and a writer for it."""
        producer = self.producer("p")
        fields.setdefault("trace_filter", Filter(bytecode_v2=bytecode()))
        consumer = self.session(fds=fds, **fields)
        return consumer, producer.writer()


class Filters(FilterCase):
    def test_what_is_read_is_filtered(self):
        consumer, writer = self.filtered()
        writer.number(300)
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        self.assert_filtered(trace, 300)
        stats = consumer.stats().filter_stats
        self.assertEqual(stats.input_packets, len(trace))

    def test_a_file_is_filtered(self):
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT, 0o600)
        consumer, writer = self.filtered([fd], write_into_file=True,
                                         file_write_period_ms=100)
        os.close(fd)
        writer.number(300)
        consumer.stop()
        self.assert_filtered(Trace.from_file(self.path("f")), 300)

    def test_a_packet_in_many_pieces_is_filtered_as_one(self):
        consumer, writer = self.filtered(size_kb=4096)
        writer.write([numbered(0, size=500000, value=7)])
        consumer.stop()
        trace = consumer.read()
        self.assert_filtered(trace, 1)
        self.assertGreater(len(trace.of("for_testing")[0].for_testing.str),
                           490000)

    def test_strings_are_redacted_by_the_rules_of_both_chains(self):
        consumer, writer = self.filtered(trace_filter=Filter(
            bytecode_v2=bytecode(str_as="string"),
            string_filter_chain=rules("SFP_MATCH_REDACT_GROUPS", "(x*)",
                                      name="all"),
            string_filter_chain_v54=rules(
                "SFP_ATRACE_REPEATED_SEARCH_REDACT_GROUPS", "id=(\\d+)",
                atrace_payload_starts_with="job")))
        packets = []
        for text in ("xxxxxxxxxxxxxx", "B|12|job id=7 id=12345", "B|12|id=7"):
            packet = pb.TracePacket(timestamp=1)
            packet.for_testing.str = text
            packets.append(packet.SerializeToString())
        writer.write(packets)
        consumer.stop()
        self.assertEqual(
            [p.for_testing.str for p in consumer.read().of("for_testing")],
            ["P60REDACTED---", "B|12|job id=P id=P60RE", "B|12|id=7"])

    def test_an_overlay_adds_fields(self):
        field = number(pb.TestEvent, "seq_value")
        overlay = encode([2, field << 3 | 1, 0])
        consumer, writer = self.filtered(trace_filter=Filter(
            bytecode_v2=bytecode(), bytecode_overlay_v54=overlay))
        writer.number(5)
        consumer.stop()
        self.assertEqual({p.for_testing.seq_value for p in
                          consumer.read().of("for_testing")}, {writer.id})

    @causes("filter_errors")
    def test_a_packet_that_is_broken_inside_is_emptied_and_counted(self):
        consumer, writer = self.filtered()
        field = number(pb.TracePacket, "for_testing")
        broken = varint(field << 3 | 2) + b"\x02\x0a\x7f"
        writer.write([broken])
        writer.number(3)
        consumer.stop()
        trace = consumer.read()
        self.assert_numbers(trace, [3])
        self.assertEqual(trace.stats().filter_stats.errors, 1)

    def test_a_filter_that_does_not_load_refuses_the_session(self):
        good = bytecode()
        string = rules("SFP_MATCH_BREAK", "x")
        cases = (
            (Filter(), "bytecode: it is empty"),
            (Filter(bytecode_v2=good[:-1]), "bytecode_v2"),
            (Filter(bytecode=bytes([good[0] ^ 1]) + good[1:]), "checksum"),
            (Filter(bytecode_v2=encode([1 << 3 | 1, 0])), "not Trace"),
            (Filter(bytecode_v2=encode([1 << 3 | 3, 4, 0])),
             "there is no message 4"),
            (Filter(bytecode_v2=encode([1 << 3 | 6, 0])), "opcode 6"),
            (Filter(bytecode_v2=encode([0] * 5000)), "4096 messages"),
            (Filter(bytecode_v2=good, bytecode_overlay_v54=encode([1])),
             "bytecode_overlay_v54"),
            (Filter(bytecode_v2=good, string_filter_chain=rules(
                "SFP_MATCH_BREAK", "(")), '"(" it cannot be used'),
            (Filter(bytecode_v2=good, string_filter_chain_v54=rules(
                "SFP_UNSPECIFIED", "x")), "policy"),
            # Cut at the zero it would let through what it was to find.
            (Filter(bytecode_v2=good, string_filter_chain_v54=rules(
                "SFP_MATCH_REDACT_GROUPS", "secret(\0.*)")), "zero byte"),
            (Filter(bytecode_v2=good,
                    string_filter_chain=Filter.StringFilterChain(
                        rules=list(string.rules) * 257)), "more than 256"),
        )
        for bad, words in cases:
            with self.subTest(words=words):
                consumer = self.consumer()
                error = consumer.refused(config(TEST_SOURCE,
                                                trace_filter=bad))
                self.assertIn("race filter", error)
                self.assertIn(words, error)
                self.assertLess(len(error), 1000)
                consumer.close()
        state = self.consumer().query()
        self.assertEqual(state.num_sessions, 0)

    def test_the_filter_of_one_session_is_not_another_ones(self):
        consumer, writer = self.filtered()
        with self.neighbour():
            writer.number(20)
        consumer.stop()
        self.assert_filtered(consumer.read(), 20)

    def test_a_clone_into_a_descriptor_has_the_filter(self):
        paths = [self.path("f"), self.path("clone")]
        fds = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in paths]
        source, writer = self.filtered(fds[:1], write_into_file=True,
                                       file_write_period_ms=3_600_000,
                                       unique_session_name="file")
        writer.number(10)
        copier = self.consumer()
        response = copier.clone(fds[1:], unique_session_name="file")
        self.assertTrue(response.was_write_into_file, response.error)
        source.stop()
        for path, fd in zip(paths, fds):
            os.close(fd)
            self.assert_filtered(Trace.from_file(path), 10)


class Clones(FilterCase):
    def setUp(self):
        super().setUp()
        self.source, self.writer = self.filtered(
            unique_session_name="source", bugreport_score=5)
        self.writer.number(30)

    def clone(self, uid=None, **fields):
        """What a clone of it has, made by root or by this user."""
        with acting_as(uid):
            copier = self.consumer()
        response = copier.clone(unique_session_name="source", **fields)
        self.assertTrue(response.success, response.error)
        return copier.read()

    def assert_whole(self, trace):
        self.assert_numbers(trace, [30])
        self.assertIn("trace_config", trace.kinds())
        self.assertEqual({p.for_testing.seq_value for p in
                          trace.of("for_testing")}, {self.writer.id})
        self.assertFalse(trace.stats().HasField("filter_stats"))

    def test_a_clone_has_the_filter(self):
        self.assert_filtered(self.clone(), 30)

    def test_the_owner_may_skip_it_and_the_source_keeps_it(self):
        self.assert_whole(self.clone(skip_trace_filter=True))
        self.source.stop()
        self.assert_filtered(self.source.read(), 30)

    def test_somebody_else_may_not(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be somebody else")
        os.chmod(self.folder, 0o755)
        os.chmod(self.daemons[0].consumer_path, 0o666)
        self.assert_filtered(self.clone(OTHER, skip_trace_filter=True), 30)


if __name__ == "__main__":
    sys.exit(tap.main())
