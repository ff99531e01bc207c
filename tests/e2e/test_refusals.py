#!/usr/bin/env python3
"""Configs that are refused, each with a sentence, and nothing else hurt."""

import os
import sys

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import buffers, source

WEEK_MS = 7 * 24 * 3600 * 1000
Trigger = pb.TraceConfig.TriggerConfig


def triggers(mode, *names, timeout=1000, **fields):
    return Trigger(
        trigger_mode=mode, trigger_timeout_ms=timeout,
        triggers=[Trigger.Trigger(name=n) for n in names], **fields)


class Refusals(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def assert_refused(self, bad, *words, fds=()):
        """One error that names what is wrong; the consumer may try again."""
        consumer = self.consumer()
        error = consumer.refused(bad, fds)
        self.assertTrue(error, f"no sentence for {bad}")
        self.assertGreater(len(error.split()), 3, error)
        for word in words:
            self.assertIn(str(word), error)
        self.assertFalse(consumer.closed)
        self.assertEqual(
            [s for s in consumer.query().tracing_sessions
             if s.state not in ("", "DISABLED") and s.num_data_sources == 77],
            [])
        consumer.enable(config(TEST_SOURCE, size_kb=64))
        consumer.stop()
        consumer.close()

    def with_source(self, **fields):
        return config(source("some.source", **fields))

    def test_longer_than_seven_days(self):
        with self.neighbour():
            self.assert_refused(config("x", duration_ms=WEEK_MS + 1),
                                WEEK_MS + 1)

    def test_more_than_128_buffers(self):
        with self.neighbour():
            self.assert_refused(config("x", buffers=buffers(*[64] * 129)), 128)

    def test_128_buffers_are_fine(self):
        consumer = self.session(
            "x", buffers=buffers(*[64] * 128), deferred_start=True)
        consumer.query()
        self.assertFalse(consumer.session.ended())

    def test_a_buffer_of_size_zero(self):
        with self.neighbour():
            self.assert_refused(config("x", buffers=buffers(64, 0)))

    def test_a_buffer_over_the_limit(self):
        with self.neighbour():
            self.assert_refused(config("x", buffers=buffers(2**32 - 1)))
            self.assert_refused(config(
                "x", buffers=buffers(*[2**31] * 100)))

    def test_a_target_buffer_that_does_not_exist(self):
        with self.neighbour():
            self.assert_refused(self.with_source(target_buffer=1),
                                "some.source", 1)
            self.assert_refused(self.with_source(target_buffer=2**32 - 1),
                                "some.source")
            self.assert_refused(config("x", buffers=[]), "x")

    def named(self, *names, **fields):
        bufs = buffers(*[64] * len(names))
        for buffer, name in zip(bufs, names):
            buffer.name = name
        return config(source("some.source", **fields), buffers=bufs)

    def test_a_target_buffer_name_that_does_not_exist(self):
        with self.neighbour():
            self.assert_refused(
                self.named("one", "two", target_buffer_name="three"), "three")

    def test_a_target_buffer_name_that_disagrees_with_the_index(self):
        with self.neighbour():
            self.assert_refused(self.named(
                "one", "two", target_buffer=0, target_buffer_name="two"))

    def test_a_target_buffer_by_name_alone_is_fine(self):
        producer = self.producer("p", ["some.source"])
        consumer = self.consumer()
        consumer.enable(self.named("one", "two", target_buffer_name="two"))
        producer.writer().number(3)
        stats = consumer.stats()
        self.assertEqual([b.chunks_written for b in stats.buffer_stats],
                         [0, 1])

    def test_two_buffers_of_one_name(self):
        with self.neighbour():
            self.assert_refused(self.named("same", "same"), "same")

    def test_two_triggers_of_one_name(self):
        with self.neighbour():
            self.assert_refused(config("x", trigger_config=triggers(
                "STOP_TRACING", "same", "same")), "same")

    def test_a_duration_together_with_triggers(self):
        with self.neighbour():
            for mode in ("START_TRACING", "STOP_TRACING", "CLONE_SNAPSHOT"):
                self.assert_refused(config(
                    "x", duration_ms=1000,
                    trigger_config=triggers(mode, "t")), "duration_ms")

    def test_no_or_a_too_long_trigger_timeout(self):
        with self.neighbour():
            for mode in ("START_TRACING", "STOP_TRACING", "CLONE_SNAPSHOT"):
                for timeout in (0, WEEK_MS + 1):
                    self.assert_refused(config("x", trigger_config=triggers(
                        mode, "t", timeout=timeout)), "trigger_timeout_ms")

    def test_stop_and_clone_triggers_with_write_into_file(self):
        with self.neighbour():
            for mode in ("STOP_TRACING", "CLONE_SNAPSHOT"):
                fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
                self.assert_refused(config(
                    "x", write_into_file=True,
                    trigger_config=triggers(mode, "t")),
                    "write_into_file", fds=[fd])
                self.assertEqual(os.fstat(fd).st_size, 0)
                os.close(fd)

    def test_a_unique_session_name_in_use(self):
        with self.neighbour():
            holder = self.session("x", unique_session_name="only")
            self.assert_refused(config("x", unique_session_name="only"),
                                "only")
            holder.stop()
            holder.close()
            again = self.consumer()
            # The name is free once its session is gone.
            self.until(lambda: "only" not in [
                s.unique_session_name
                for s in again.query().tracing_sessions], "the name is free")
            again.enable(config("x", unique_session_name="only"))
            again.query()
            self.assertFalse(again.session.ended())

    def semaphore(self, limit):
        return config("x", session_semaphores=[
            pb.TraceConfig.SessionSemaphore(
                name="few", max_other_session_count=limit)])

    def test_a_full_session_semaphore(self):
        with self.neighbour():
            first, second = self.consumer(), self.consumer()
            first.enable(self.semaphore(1))
            second.enable(self.semaphore(5))
            second.query()
            self.assertFalse(second.session.ended())
            third = self.consumer()
            self.assertIn("few", third.refused(self.semaphore(5)))
            first.stop()
            third.enable(self.semaphore(1))
            third.query()
            self.assertFalse(third.session.ended())

    def test_an_exclusive_session_of_equal_or_higher_priority(self):
        holder = self.session("x", exclusive_prio=5)
        other = self.consumer()
        for priority in (0, 3, 5):
            self.assertTrue(other.refused(
                config("x", exclusive_prio=priority)))
        self.assertFalse(holder.session.ended())
        other.enable(config("x", exclusive_prio=6))
        self.assertTrue(holder.ended().error)
        self.assertFalse(other.session.ended())

    def test_too_many_sessions(self):
        with open(self.path("settings"), "w") as file:
            file.write("limits { max_sessions: 3 max_sessions_per_uid: 3 }\n")
        daemon = self.daemon(flags=["--config", self.path("settings")],
                             producer=[self.path("p2")],
                             consumer=[self.path("c2")])
        where = daemon.address("consumers")
        holders = [self.consumer(where) for _ in range(3)]
        for holder in holders:
            holder.enable(config("x"))
        one_more = self.consumer(where)
        self.assertIn("3", one_more.refused(config("x")))
        self.assertEqual([h.session.ended() for h in holders], [False] * 3)
        holders[0].stop()
        holders[0].free()
        one_more.enable(config("x"))
        one_more.query()
        self.assertFalse(one_more.session.ended())

    def test_a_regex_that_does_not_compile_or_takes_too_long(self):
        with self.neighbour():
            for bad in ("(", "[", "a{99999}", "(?P<n", "\\"):
                self.assert_refused(config(source(
                    "x", producer_name_regex_filter=[bad])))
            # One that would take until the end of time simply does not match.
            producer = self.producer("a" * 60 + "!", ["slow"])
            consumer = self.consumer()
            consumer.enable(config(source(
                "slow", producer_name_regex_filter=["(a+)+$"])))
            consumer.query()
            self.assertFalse(producer.instances)

    def test_a_file_period_or_file_that_makes_no_sense(self):
        with self.neighbour():
            self.assert_refused(config("x", write_into_file=True))
            self.assert_refused(config(
                "x", write_into_file=True, output_path="some"))

    def test_both_a_descriptor_and_an_output_path(self):
        folder = self.path("out")
        os.mkdir(folder)
        daemon = self.daemon(flags=["--trace-dir", folder],
                             producer=[self.path("p2")],
                             consumer=[self.path("c2")])
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        consumer = self.consumer(daemon.address("consumers"))
        self.assertTrue(consumer.refused(config(
            "x", write_into_file=True, output_path="some"), [fd]))
        self.assertEqual(os.listdir(folder), [])
        os.close(fd)

    def test_changing_more_than_the_producer_filters(self):
        producer = self.producer("late", ["x"])
        consumer = self.session(source("x", producer_name_filter=["other"]))
        bad = config(source("x", producer_name_filter=["other"]))
        bad.buffers[0].size_kb = 4096
        consumer.call("ChangeTraceConfig", pb.ChangeTraceConfigRequest(
            trace_config=bad))
        consumer.query()
        self.assertFalse(producer.instances)
        consumer.change(config(source(
            "x", producer_name_filter=["other", "late"])))
        producer.wait_started()


if __name__ == "__main__":
    sys.exit(tap.main())
