#!/usr/bin/env python3
"""Triggers and clones."""

import os
import sys
import time

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.trace import Trace

Config = pb.TraceConfig.TriggerConfig


def on(mode, *names, timeout=20_000, delay=0, **fields):
    return Config(trigger_mode=mode, trigger_timeout_ms=timeout, triggers=[
        Config.Trigger(name=n, stop_delay_ms=delay, **fields) for n in names])


class Triggers(Case):
    def setUp(self):
        super().setUp()
        self.daemon()
        self.puller = self.producer("puller", [])

    def test_a_stop_trigger_ends_the_session_after_its_delay(self):
        producer = self.producer("p")
        consumer = self.session(trigger_config=on("STOP_TRACING", "now",
                                                  delay=150))
        writer = producer.writer()
        writer.number(5)
        self.assert_unreadable(consumer)
        self.puller.activate("unknown")
        self.puller.sync()
        self.assertFalse(consumer.session.ended())
        began = time.monotonic()
        self.puller.activate("now")
        consumer.ended()
        self.assertGreaterEqual(time.monotonic() - began, 0.14)
        trace = consumer.read()
        self.assert_numbers(trace, [5])
        (packet,) = trace.of("trigger")
        self.assertEqual(packet.trigger.trigger_name, "now")
        self.assertEqual(packet.trigger.producer_name, "puller")
        self.assertEqual(packet.trigger.trusted_producer_uid, os.getuid())

    def test_a_stop_trigger_that_never_comes_ends_it_without_data(self):
        producer = self.producer("p")
        consumer = self.session(trigger_config=on("STOP_TRACING", "never",
                                                  timeout=200))
        producer.writer().number(5)
        consumer.ended()
        self.assertEqual(consumer.read().numbers(), {})

    def test_a_start_trigger_starts_the_session(self):
        producer = self.producer("p")
        consumer = self.session(trigger_config=on("START_TRACING", "go",
                                                  delay=1500))
        producer.wait_command("setup_data_source")
        self.puller.sync()
        self.assertFalse(producer.saw("start_data_source"))
        self.puller.activate("go")
        producer.wait_started()
        producer.writer().number(3)
        consumer.ended()
        self.assert_numbers(consumer.read(), [3])

    def test_a_trigger_heeds_the_name_of_who_pulled_it(self):
        consumer = self.session(trigger_config=on(
            "STOP_TRACING", "now", producer_name_regex="allowed.*"))
        self.puller.activate("now")
        self.puller.sync()
        self.loop.settle()
        self.assertFalse(consumer.session.ended())
        other = self.producer("allowed.one", [])
        other.activate("now")
        consumer.ended()

    def test_a_clone_trigger_is_told_to_the_consumer(self):
        consumer = self.consumer()
        events = consumer.observe("TYPE_CLONE_TRIGGER_HIT")
        consumer.enable(config(TEST_SOURCE, trigger_config=on(
            "CLONE_SNAPSHOT", "snap")))
        consumer.query()
        self.puller.activate("snap")
        self.until(lambda: events, "the event")
        hit = events[0].clone_trigger_hit
        self.assertEqual(hit.trigger_name, "snap")
        self.assertEqual(hit.producer_name, "puller")
        self.assertTrue(hit.tracing_session_id)
        self.assertFalse(consumer.session.ended())


class Clones(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def test_a_clone_is_a_copy_and_the_source_goes_on(self):
        producer = self.producer("p")
        consumer = self.session(unique_session_name="source")
        writer = producer.writer()
        writer.number(10)
        copier = self.consumer()
        response = copier.clone(unique_session_name="source")
        self.assertTrue(response.success, response.error)
        self.assertTrue(response.uuid_msb or response.uuid_lsb)
        writer.number(10)
        copy = copier.read()
        self.assert_numbers(copy, [10])
        self.assertTrue(copy.of("trace_config"))
        uuid = copy.of("trace_uuid")[0].trace_uuid
        self.assertEqual((uuid.msb, uuid.lsb),
                         (response.uuid_msb, response.uuid_lsb))
        consumer.stop()
        original = consumer.read()
        self.assert_numbers(original, [20])
        other = original.of("trace_uuid")[0].trace_uuid
        self.assertNotEqual((uuid.msb, uuid.lsb), (other.msb, other.lsb))

    def test_a_clone_flushes_its_source_first(self):
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        producer.before_flush = lambda command: writer.number(4, ask=False)
        (session,) = consumer.query().tracing_sessions
        copier = self.consumer()
        self.assertTrue(copier.clone(session_id=session.id).success)
        self.assert_numbers(copier.read(), [4])

    def test_a_buffer_may_be_moved_instead_of_copied(self):
        producer = self.producer("p")
        consumer = self.session(unique_session_name="s", buffers=[
            pb.TraceConfig.BufferConfig(size_kb=256, transfer_on_clone=True)])
        writer = producer.writer()
        writer.number(10)
        copier = self.consumer()
        self.assertTrue(copier.clone(unique_session_name="s").success)
        self.assert_numbers(copier.read(), [10])
        writer.number(5)
        consumer.stop()
        self.assertEqual(list(consumer.read().numbers().values()),
                         [list(range(10, 15))])

    def test_cloning_what_is_not_there_is_an_error(self):
        with self.neighbour():
            copier = self.consumer()
            for selector in ({"session_id": 9999},
                             {"unique_session_name": "none"}, {}):
                response = copier.clone(**selector)
                self.assertFalse(response.success)
                self.assertTrue(response.error)

    def test_a_clone_of_a_file_session_goes_to_the_descriptor(self):
        producer = self.producer("p")
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        consumer = self.session(fds=[fd], write_into_file=True,
                                unique_session_name="s",
                                file_write_period_ms=3_600_000)
        os.close(fd)
        writer = producer.writer()
        writer.number(10)
        fd = os.open(self.path("clone"), os.O_RDWR | os.O_CREAT)
        copier = self.consumer()
        response = copier.clone([fd], unique_session_name="s")
        os.close(fd)
        self.assertTrue(response.success, response.error)
        self.assertTrue(response.was_write_into_file)
        self.until(lambda: Trace.so_far(self.path("clone")).of(
            "trace_stats"), "the clone's file")
        self.assert_numbers(Trace.from_file(self.path("clone")), [10])
        consumer.stop()
        self.assert_numbers(Trace.from_file(self.path("f")), [10])


if __name__ == "__main__":
    sys.exit(tap.main())
