#!/usr/bin/env python3
"""ProtoVM: what a ring overwrites lives on in the state that a producer's
program makes of it.  The state and the packets behind it have to come to what
all packets come to, by an interpreter of our own (harness/protovm.py)."""

import os
import random
import sys
import time

from harness import protovm, tap
from harness.bytecode import assemble
from harness.case import Case, config, pb
from harness.consumer import buffers, source
from harness.device import RelayCase
from harness.imported import causes
from harness.producer import TEST_SOURCE
from harness.recording import Recording
from harness.trace import Trace

LAPS = 100
RING_KB = 16


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def asking(name=TEST_SOURCE, memory_kb=64, **fields):
    """A data source of a config that asks for programs."""
    out = source(name, **fields)
    out.config.protovm_config.memory_limit_kb = memory_kb
    return out


def offering(name=TEST_SOURCE, program=None):
    """A data source of a producer that has a program."""
    return {"name": name, "protovm_program": program or protovm.program()}


class Patches:
    """Random patches of a state, each as an encoded packet."""

    def __init__(self, seed, first_id=1):
        self.dice = random.Random(seed)
        self.first_id = first_id

    def id(self):
        return self.first_id + self.dice.randrange(40)

    def message(self, into, number):
        into.id = number
        into.submessage.single_int = self.dice.randrange(1 << 32)

    def next(self, padding=0):
        packet = pb.TracePacket(timestamp=now())
        patch = packet.for_testing.protovm_patch
        dice = self.dice
        if dice.random() < 0.2:
            patch.string_to_merge = "s%d" % dice.randrange(1000)
        if dice.random() < 0.2:
            patch.int_to_merge = dice.randrange(1 << 31)
        if dice.random() < 0.2:
            self.message(patch.single_message, self.id())
        for _ in range(dice.randrange(4)):
            self.message(patch.messages.add(), self.id())
        if dice.random() < 0.2:
            patch.delete_message_ids.append(self.id())
        if dice.random() < 0.1:
            packet = pb.TracePacket(timestamp=now())  # no patch at all
            packet.for_testing.counter = 7
        packet.for_testing.str = "x" * (padding or dice.randrange(600))
        return packet.SerializeToString()


class ProtovmCase(Case):
    def lap(self, writers, patches, laps=LAPS, kb=RING_KB):
        """Writes the same packets to all of the writers."""
        written = 0
        while written < laps * kb * 1024:
            batch = [patches.next() for _ in range(100)]
            if patches.dice.random() < 0.1:
                batch.append(patches.next(padding=5000))  # of several chunks
            written += sum(map(len, batch))
            for writer in writers:
                writer.write(batch)

    def file_session(self, name="all"):
        """Everything, in a file."""
        fd = os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o600)
        consumer = self.session(TEST_SOURCE, fds=[fd], size_kb=4096,
                                write_into_file=True)
        os.close(fd)
        return consumer

    def ring_session(self, *sources, **fields):
        return self.session(*(sources or [asking()]), size_kb=RING_KB,
                            **fields)

    def writers(self, producer, count=2):
        """One into each session's buffer, in the order of the sessions."""
        found = sorted(producer.wait_started(count), key=lambda i: i.buffer)
        return [producer.writer(i) for i in found]

    def assert_lapped(self, trace):
        buffer = trace.stats().buffer_stats[0]
        self.assertGreaterEqual(buffer.write_wrap_count, LAPS)
        self.assertGreater(buffer.chunks_overwritten, 0)

    def assert_same_state(self, ring, whole, program=None):
        program = program or protovm.program()
        self.assertEqual(len(protovm.instances(whole)), 0)
        state = protovm.final_state(whole, program)
        self.assertGreater(len(state["messages"]), 10)
        self.assertEqual(protovm.final_state(ring, program), state)


class Rings(ProtovmCase):
    def lapped_a_hundred_times(self, producer):
        """The state of two sequences, which keep to their own elements."""
        whole, ring = self.file_session(), self.ring_session()
        writers = self.writers(producer)
        more = self.writers(producer)
        self.lap(writers, Patches(1), LAPS // 2)
        self.lap(more, Patches(2, first_id=1000), LAPS // 2)
        self.lap(writers, Patches(3), LAPS // 2)
        ring.flush(60_000)
        self.assertEqual(list(ring.stop().warnings), [])
        whole.stop()
        trace = ring.read()
        self.assert_lapped(trace)
        (instance,) = protovm.instances(trace)
        self.assertEqual(instance.program, protovm.program())
        self.assertEqual(instance.memory_limit_kb, 64)
        self.assertEqual(len(set(protovm.sequences_of(trace).values())), 1)
        self.assertEqual(set(instance.producer_id),
                         set(protovm.sequences_of(trace).values()))
        kinds = trace.kinds()
        self.assertLess(kinds.index("trace_provenance"),
                        kinds.index("protovms"))
        self.assertLess(kinds.index("protovms"), kinds.index("for_testing"))
        self.assert_same_state(trace, Trace.from_file(self.path("all")))

    def test_a_ring_that_lapped_a_hundred_times_has_the_whole_state(self):
        self.daemon()
        self.lapped_a_hundred_times(self.producer(sources=[offering()]))

    def test_over_tcp(self):
        daemon = self.daemon(producer=["127.0.0.1:0"])
        self.lapped_a_hundred_times(self.producer(
            sources=[offering()],
            address=daemon.address("producers", "tcp")))

    def test_each_read_of_a_ring_begins_with_the_state_of_what_it_lost(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        whole, ring = self.file_session(), self.ring_session()
        writers = self.writers(producer)
        patches = Patches(4)
        packets = []
        for laps in (5, 5, 0, 5):
            self.lap(writers, patches, laps)
            ring.flush(60_000)
            part = ring.read_raw()
            packets += part
            # Nothing was lost between the second read and the third.
            self.assertEqual(
                [k for k in Trace(part).kinds() if k == "protovms"],
                ["protovms"] * (laps > 0))
        ring.stop()
        whole.stop()
        packets += ring.read_raw()
        self.assert_same_state(Trace(packets),
                               Trace.from_file(self.path("all")))

    def test_a_session_without_protovm_config_has_none(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        ring = self.ring_session(TEST_SOURCE)
        self.lap([producer.writer()], Patches(5), 3)
        self.assertEqual(list(ring.stop().warnings), [])
        self.assertEqual(protovm.instances(ring.read()), [])

    def test_two_users_of_a_program_share_its_state(self):
        self.daemon()
        both = [self.producer(f"p{n}", [offering()]) for n in range(2)]
        # The first one's half of a smaller ring may leave no gap as long as
        # a chunk of the second.
        ring = self.session(asking(), size_kb=4 * RING_KB)
        for n, producer in enumerate(both):
            self.lap([producer.writer()], Patches(n, first_id=1000 * n + 1),
                     5, kb=4 * RING_KB)
        ring.stop()
        (instance,) = protovm.instances(ring.read())
        self.assertEqual(len(instance.producer_id), 2)
        ids = {m.id // 1000 for m in instance.state.for_testing.
               protovm_incremental_state.messages}
        self.assertEqual(ids, {0, 1})

    def test_another_program_has_another_state(self):
        self.daemon()
        other = protovm.program(version=1)
        self.producer("a", [offering()])
        writer = self.connections[-1]
        second = self.producer("b", [offering(program=other)])
        ring = self.ring_session()
        self.lap([writer.writer()], Patches(1), 3)
        self.lap([second.writer()], Patches(2, first_id=1000), 3)
        ring.stop()
        found = protovm.instances(ring.read())
        self.assertEqual([i.program for i in found],
                         [protovm.program(), other])
        self.assertEqual([len(i.producer_id) for i in found], [1, 1])


class Files(ProtovmCase):
    def test_a_file_loses_nothing_and_has_the_program(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT, 0o600)
        consumer = self.session(asking(), fds=[fd], size_kb=64,
                                write_into_file=True)
        os.close(fd)
        whole = self.file_session()
        self.lap(self.writers(producer), Patches(6), 20)
        consumer.stop()
        whole.stop()
        trace = Trace.from_file(self.path("f"))
        self.assertEqual(trace.losses(), [])
        # Nothing is before the first packets: the state is empty.
        instance = protovm.instances(trace)[0]
        self.assertEqual(instance.program, protovm.program())
        self.assert_same_state(trace, Trace.from_file(self.path("all")))


class Clones(ProtovmCase):
    def test_clones_have_the_state_of_their_time(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        whole = self.session(TEST_SOURCE, size_kb=4096,
                             unique_session_name="whole")
        ring = self.ring_session(unique_session_name="ring")
        writers = self.writers(producer)
        patches = Patches(7)
        for _ in range(2):  # a clone, and a later one
            self.lap(writers, patches, 5)
            clones = self.consumer(), self.consumer()
            clones[0].clone(unique_session_name="ring")
            clones[1].clone(unique_session_name="whole")
            self.assert_same_state(*(c.read() for c in clones))
        ring.stop()
        whole.stop()
        self.assert_same_state(ring.read(), whole.read())

    def test_a_clone_of_what_was_read_has_the_state_of_it(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        whole = self.file_session()
        ring = self.ring_session(unique_session_name="flight recorder")
        writers = self.writers(producer)
        patches = Patches(8)
        self.lap(writers, patches, 5)
        ring.flush(60_000)
        ring.read()
        self.lap(writers, patches, 1, kb=4)
        clone = self.consumer()
        clone.clone(unique_session_name="flight recorder")
        ring.stop()
        whole.stop()
        self.assert_same_state(clone.read(),
                               Trace.from_file(self.path("all")))

    def test_a_buffer_that_is_cleared_begins_anew(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        rings = buffers(RING_KB)
        rings[0].clear_before_clone = True
        self.session(asking(), buffers=rings,
                     unique_session_name="flight recorder")
        writer = producer.writer()
        self.lap([writer], Patches(9), 5)
        last = pb.TracePacket(timestamp=now())
        last.for_testing.protovm_patch.int_to_merge = 4711
        producer.before_flush = lambda _: writer.write(
            [last.SerializeToString()], ask=False)
        clone = self.consumer()
        clone.clone(unique_session_name="flight recorder")
        trace = clone.read()
        (instance,) = protovm.instances(trace)
        self.assertEqual(instance.state.ByteSize(), 0)
        self.assertEqual(protovm.final_state(trace, protovm.program()), {
            "string": "", "int": 4711, "single": (0, 0), "messages": {}})

    def test_a_buffer_that_is_handed_over_takes_its_state_along(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        rings = buffers(RING_KB)
        rings[0].transfer_on_clone = True
        whole = self.file_session()
        ring = self.session(asking(), buffers=rings,
                            unique_session_name="flight recorder")
        writers = self.writers(producer)
        self.lap(writers, Patches(10), 5)
        clone = self.consumer()
        clone.clone(unique_session_name="flight recorder")
        whole.stop()
        self.assert_same_state(clone.read(),
                               Trace.from_file(self.path("all")))
        ring.stop()
        (instance,) = protovm.instances(ring.read())
        self.assertEqual(instance.state.ByteSize(), 0)


class Filters(ProtovmCase):
    def filtered(self, *more):
        """What remains where a filter names these of TracePacket's fields."""
        self.daemon()
        producer = self.producer(sources=[offering()])
        names = ("trusted_packet_sequence_id", "trace_stats", *more)
        packet = {pb.TracePacket.DESCRIPTOR.fields_by_name[n].number: None
                  for n in names}
        ring = self.ring_session(trace_filter=pb.TraceConfig.TraceFilter(
            bytecode_v2=assemble({1: 1}, packet)))
        self.lap([producer.writer()], Patches(11), 5)
        ring.stop()
        return ring.read()

    def test_a_filter_that_does_not_name_it_takes_it_away(self):
        self.assertEqual(protovm.instances(self.filtered()), [])

    def test_a_filter_that_names_it_leaves_it(self):
        (instance,) = protovm.instances(self.filtered("protovms", "trace_provenance"))
        self.assertGreater(instance.state.ByteSize(), 100)


class Refusals(ProtovmCase):
    def warned(self, *sources, name=TEST_SOURCE, producers=1, **fields):
        """What a consumer is told whose producers offer these."""
        self.daemon()
        for n in range(producers):
            self.producer(f"p{n}", list(sources))
        consumer = self.ring_session(asking(name), **fields)
        for p in self.connections:
            if hasattr(p, "writer"):
                p.wait_started()
                self.lap([p.writer()], Patches(12), 3)
        return consumer, list(consumer.stop().warnings)

    def test_a_source_without_a_program(self):
        consumer, (warning,) = self.warned(TEST_SOURCE)
        self.assertIn(f'"{TEST_SOURCE}" had no effect: no producer of it '
                      "offered a program", warning)
        self.assertEqual(protovm.instances(consumer.read()), [])

    def test_a_source_without_a_producer(self):
        self.daemon()
        consumer = self.ring_session(asking("nobody.has.it"))
        (warning,) = consumer.stop().warnings
        self.assertIn("no producer", warning)

    def test_tributary_record_says_it(self):
        self.daemon()
        self.producer(sources=[TEST_SOURCE])
        with open(self.path("config"), "wb") as file:
            file.write(config(asking(), duration_ms=1).SerializeToString())
        errors = Recording(self, "-c", "config", "-o", "trace").end()
        self.assertIn("no producer of it offered a program", errors)

    def test_an_unknown_version_is_told_once(self):
        program = protovm.program(version=4711)
        with_neighbour = offering(program=program)
        consumer, (warning,) = self.warned(with_neighbour, producers=3)
        self.assertIn("is not run", warning)
        self.assertIn("version", warning)
        self.assertEqual(protovm.instances(consumer.read()), [])

    @causes("protovm_abort")  # its state has no more memory there
    def test_a_state_beyond_its_memory_is_told(self):
        self.daemon()
        producer = self.producer(sources=[offering()])
        ring = self.ring_session(asking(memory_kb=1))
        self.lap([producer.writer()], Patches(13, first_id=1), 5)
        (warning,) = ring.stop().warnings
        self.assertIn("could not apply", warning)
        (instance,) = protovm.instances(ring.read())
        self.assertEqual(instance.memory_limit_kb, 1)
        self.assertLess(instance.state.ByteSize(), 1024)

    def test_states_count_as_memory_of_the_session(self):
        with open(self.path("settings"), "w") as file:
            file.write("limits { max_buffer_kb_per_consumer: 1000 }\n")
        self.daemon(flags=["--config", self.path("settings")])
        producer = self.producer(sources=[offering()])
        ring = self.ring_session(asking(memory_kb=985))
        producer.wait_started()
        (warning,) = ring.stop().warnings
        self.assertIn("max_buffer_kb_per_consumer", warning)
        ring.free()
        ring = self.ring_session(asking(memory_kb=984))
        self.assertEqual(list(ring.stop().warnings), [])


class Hostile(ProtovmCase):
    """Producers whose programs or packets are as bad as can be."""

    def setUp(self):
        super().setUp()
        self.daemon()

    def flood(self, instructions, packets):
        """What the consumer is told, with a session beside it unharmed."""
        with self.neighbour():
            producer = self.producer(sources=[offering(
                program=protovm.program(instructions))])
            ring = self.ring_session(asking(memory_kb=1024))
            writer = producer.writer()
            for _ in range(8):
                writer.write(packets)
            warnings = list(ring.stop().warnings)
            trace = ring.read()
            ring.close()
            producer.close()
        self.assertEqual(len(warnings), 1, warnings)
        return trace, warnings[0]

    def test_a_program_that_burns_its_steps_is_switched_off(self):
        burner = [protovm.select(protovm.SRC, [protovm.field(n)])
                  for n in range(1000, 2800)]
        small = pb.TracePacket(timestamp=7).SerializeToString()
        trace, warning = self.flood(burner, [small] * 1000)
        self.assertIn("steps", warning)
        self.assertIn("is switched off", warning)
        (instance,) = protovm.instances(trace)
        self.assertEqual(instance.state.ByteSize(), 0)

    def test_loops_in_loops_end(self):
        """A thousand elements of a packet with a thousand of the state."""
        event, each = protovm.field(protovm.EVENT), protovm.field(
            1, is_repeated=True)
        loops = [
            protovm.select(protovm.SRC, [event], protovm.select(
                protovm.DST, [event], {"merge": {}}, create=True)),
            protovm.select(protovm.SRC, [event, each], protovm.select(
                protovm.DST, [event, each], {"set": {}}))]
        elements = b"\x0a\x00" * 1000
        packet = protovm.varint(protovm.EVENT << 3 | protovm.BYTES) + \
            protovm.varint(len(elements)) + elements
        _, warning = self.flood(loops, [packet] * 10)
        self.assertIn("is switched off", warning)

    def test_a_program_that_is_too_much_is_refused(self):
        deep = {"del": {}}
        for _ in range(300):
            deep = protovm.select(protovm.DST, [protovm.field(1)], deep)
        for bad in ([deep], [{"del": {}}] * 5000, [{}]):
            with self.subTest(instructions=len(bad)):
                _, warning = self.flood(bad, Patches(1).next().split(b"?"))
                self.assertIn("is not run", warning)


class Relays(RelayCase, ProtovmCase):
    def test_the_program_and_its_packets_come_through_a_relay(self):
        self.collector()
        device = self.device("a", memory_kb=65536)
        self.wait_linked(device)
        producer = self.producer(sources=[offering()], address=device.socket)
        fd = os.open(self.path("all"), os.O_RDWR | os.O_CREAT, 0o600)
        whole = self.session(TEST_SOURCE, fds=[fd], size_kb=4096,
                             write_into_file=True, trace_all_machines=True)
        os.close(fd)
        ring = self.ring_session(trace_all_machines=True)
        self.lap(self.writers(producer), Patches(14), LAPS + 1)
        ring.flush(60_000)
        self.assertEqual(list(ring.stop().warnings), [])
        whole.stop()
        trace = ring.read()
        self.assert_lapped(trace)
        self.assert_same_state(trace, Trace.from_file(self.path("all")))


if __name__ == "__main__":
    sys.exit(tap.main())
