#!/usr/bin/env python3
"""Peers that are stuck, greedy or enormous: they pay, nobody else does."""

import sys
import time

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import join_slices
from harness.ipc import Gone, Rejected, pack
from harness.loop import SCALE
from harness.producer import numbered
from harness.trace import Trace
from harness.unhurried import Watch

KIB = 1024


class Peers(Case):
    def setUp(self):
        super().setUp()
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"])

    def test_a_consumer_that_stops_reading_stops_only_itself(self):
        producer = self.producer("p")
        consumer = self.consumer(rcvbuf=4096)
        consumer.enable(config(TEST_SOURCE, size_kb=32 * KIB))
        writer = producer.writer()
        writer.write([numbered(n, 3000) for n in range(8000)])
        consumer.stop()
        before = self.daemons[0].memory()
        call = consumer.call("ReadBuffers")
        consumer.pause()
        with self.neighbour():
            self.loop.settle(0.3)
        # It waits for the reader instead of queueing the whole trace, 24 MB.
        # The rest of the ring, 8 MiB, may just have been made ready.
        self.assert_grown_less(before, 12 * KIB)
        consumer.resume()
        self.until(call.ended, "the rest of the trace")
        self.assertTrue(call.done)
        trace = Trace(join_slices(call.replies))
        self.assert_numbers(trace, [8000])

    def test_a_consumer_that_leaves_in_the_middle_of_a_read(self):
        producer = self.producer("p")
        with self.neighbour():
            for _ in range(3):
                consumer = self.consumer(rcvbuf=4096)
                consumer.enable(config(TEST_SOURCE, size_kb=8 * KIB))
                producer.wait_started()
                instance = producer.started()[-1]
                producer.writer(instance).write(
                    [numbered(n, 3000) for n in range(2000)])
                consumer.stop()
                consumer.call("ReadBuffers")
                self.loop.turn(0.1)
                consumer.close()
        other = self.consumer()
        self.until(lambda: not other.query().tracing_sessions,
                   "its session is gone")

    def test_a_producer_that_reads_nothing_is_cut_off_in_the_end(self):
        """Output for a peer is bounded; one that stays over it goes."""
        producer = self.producer("deaf", [
            {"name": "deaf", "handles_incremental_state_clear": True}])
        producer.sync()
        producer.pause()
        with self.neighbour():
            consumer = self.consumer()
            big = config("deaf", size_kb=64)
            big.data_sources[0].config.legacy_config = "x" * 60_000
            before = self.daemons[0].memory()
            deadline = time.monotonic() + 60 * SCALE
            while time.monotonic() < deadline:
                consumer.enable(big, ())
                consumer.free()
                if not consumer.query().producers:
                    break
                if len([p for p in consumer.query().producers
                        if p.name == "deaf"]) == 0:
                    break
            else:
                self.fail("the deaf producer is still served")
            self.assert_grown_less(before, 16 * KIB)
        producer.resume()
        producer.wait_closed()

    def test_a_client_that_never_reads_replies_is_bounded(self):
        before = self.daemons[0].memory()
        with self.neighbour():
            for port in ("producers", "consumers"):
                connection = self.raw(port=port)
                connection.pause()
                frame = pb.IPCFrame(request_id=1)
                frame.msg_bind_service.service_name = "NoSuchPort"
                connection.send_raw(pack(frame.SerializeToString()) * 200_000)
                self.loop.settle(0.5)
                self.assert_grown_less(before, 16 * KIB)
                connection.close()

    def test_40000_data_sources_are_refused_beyond_the_limit(self):
        before = self.daemons[0].memory()
        with self.neighbour():
            producer = self.producer("greedy", [])
            refused = []
            calls = []
            for n in range(40_000):
                request = pb.RegisterDataSourceRequest()
                request.data_source_descriptor.name = f"source.{n}"
                calls.append(producer.call("RegisterDataSource", request))
                if n % 1000 == 999:
                    self.until(lambda: calls[-1].ended(), "the replies")
            for call in calls:
                if call.gone:
                    break
                error = pb.RegisterDataSourceResponse.FromString(
                    call.replies[-1]).error if not call.rejected else "no"
                if error:
                    refused.append(error)
            if not producer.closed:
                self.assertTrue(refused, "40,000 data sources were taken")
                self.assertIn("max_data_sources_per_producer", refused[0])
                registered = len(self.consumer().query().data_sources)
                self.assertLessEqual(registered, 4096 + 1)
                self.assertEqual(len(refused), 40_000 - 4096)
            self.assert_grown_less(before, 32 * KIB)
            watch = Watch(self.daemons[0].pid)
            consumer = self.session("source.4000", "nothing")
            consumer.stop()
            consumer.close()
            producer.close()
            self.consumer().query()
            self.assertLess(watch.seconds(), 3 * SCALE)

    def test_names_of_100_kib_are_refused(self):
        long = "n" * 100_000
        with self.neighbour():
            producer = self.producer(long, start=False)
            producer.bind()
            with self.assertRaises((Rejected, Gone)):
                producer.initialize()
            other = self.producer("fine", [])
            request = pb.RegisterDataSourceRequest()
            request.data_source_descriptor.name = long
            call = other.call("RegisterDataSource", request)
            self.until(call.ended, "an answer")
            if not (call.rejected or call.gone):
                self.assertTrue(pb.RegisterDataSourceResponse.FromString(
                    call.replies[-1]).error)
            other.activate(long, "short")
            other.call("UnregisterDataSource", pb.UnregisterDataSourceRequest(
                data_source_name=long))
            consumer = self.consumer()
            state = consumer.query()
            self.assertFalse([d for d in state.data_sources
                              if len(d.ds_descriptor.name) > 2000])
            error = consumer.refused(config("x", unique_session_name=long))
            self.assertTrue(error)
            self.assertLess(len(error), 4000)
            session = self.session("x")
            self.assertTrue(session.refuses("Detach",
                                            pb.DetachRequest(key=long)))
            session.stop()

    def test_control_characters_in_names_do_not_reach_the_log(self):
        evil = "evil\n\x1b[31mred\r\0"
        self.producer(evil, [evil]).sync()
        consumer = self.session(evil, unique_session_name=evil)
        consumer.stop()
        log = self.daemons[0].log()
        self.assertNotIn("\x1b", log)
        self.assertNotIn("\r", log)
        self.assertNotIn("\nred", log)

    def test_a_thousand_sessions_one_after_the_other_leave_nothing(self):
        producer = self.producer("p")
        consumer = self.consumer()

        def cycle(count):
            for _ in range(count):
                consumer.enable(config(TEST_SOURCE, size_kb=64))
                consumer.stop()
                consumer.free()
        cycle(100)
        before = self.daemons[0].memory()
        fds = self.daemons[0].fds()
        cycle(300)
        self.assert_grown_less(before, 4 * KIB)
        self.assertLessEqual(self.daemons[0].fds(), fds)
        del producer

    def test_short_lived_writers_leave_nothing_behind(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64)
        instance = producer.wait_started()[0]

        def churn(count):
            for n in range(count):
                writer = producer.writer(instance,
                                         writer_id=1 + n % 30_000)
                writer.number(1, ask=n % 100 == 0)
                producer.unregister_writer(writer.id)
            producer.sync()
        churn(2000)
        before = self.daemons[0].memory()
        churn(8000)
        self.assert_grown_less(before, 6 * KIB)
        consumer.stop()

    def test_many_connections_come_and_go(self):
        def cycle(count):
            for _ in range(count):
                producer = self.producer("visitor")
                producer.close()
                self.connections.remove(producer)
        cycle(50)
        before, fds = self.daemons[0].memory(), self.daemons[0].fds()
        with self.neighbour():
            cycle(300)
        consumer = self.consumer()
        self.until(lambda: not consumer.query().producers, "all are gone")
        consumer.close()
        self.until(lambda: self.daemons[0].fds() <= fds, "descriptors")
        self.assert_grown_less(before, 4 * KIB)

    def test_a_flood_of_commits_does_not_starve_a_small_producer(self):
        address = self.daemons[0].address("producers", "tcp")
        flood = self.producer("flood", ["flood"], address=address)
        consumer = self.session("flood", size_kb=KIB, trace_all_machines=True)
        writer = flood.writer()
        for _ in range(40):
            writer.number(1000, ask=False)
        small = self.producer("small", address=address)
        watch = Watch(self.daemons[0].pid)
        small.sync()
        self.assertLess(watch.seconds(), 5 * SCALE)
        consumer.stop()

    def test_a_huge_query_reply_is_split_into_valid_parts(self):
        producer = self.producer("many", [])
        for n in range(300):
            producer.register({"name": f"{n:04d}" + "d" * 900})
        consumer = self.consumer()
        state = consumer.query()
        self.assertEqual(len(state.data_sources), 300)
        self.assertEqual(len(state.producers), 1)
        self.assertLessEqual(consumer.largest, 128 * KIB)

    def test_a_service_state_waits_for_who_reads_it_slowly(self):
        # 3.7 MiB, for eight at a time.
        producer = self.producer("p", [
            f"source.{i}." + "x" * 900 for i in range(4000)])
        producer.sync()
        slow = [self.consumer(rcvbuf=4096) for _ in range(8)]
        before = self.daemons[0].memory()
        for consumer in slow:
            consumer.pause()
            consumer.state = consumer.call(
                "QueryServiceState", pb.QueryServiceStateRequest())
        other = self.consumer()
        self.assertEqual(len(other.query().data_sources), 4000)
        # Each was given what is queued at most, and its parts in progress.
        self.assert_grown_less(before, 8 * 700)
        # Who was there when they asked goes while they read.
        producer.close()
        self.until(lambda: not other.query().producers, "it is gone")
        for consumer in slow:
            consumer.resume()
            self.until(consumer.state.ended, "the whole answer")
            self.assertTrue(consumer.state.done)
            self.assertFalse(consumer.closed)

    def test_a_half_open_connection_costs_next_to_nothing(self):
        before = self.daemons[0].memory()
        with self.neighbour():
            for _ in range(200):
                connection = self.raw()
                connection.send_raw(b"\xff\xff\x01\x00")  # 128 KiB to come
            self.loop.settle(0.2)
            self.assert_grown_less(before, 4 * KIB)


if __name__ == "__main__":
    sys.exit(tap.main())
