#!/usr/bin/env python3
"""Sessions: who takes part, when they start and end, what is kept."""

import os
import sys
import time

from harness import abi, tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import buffers, source
from harness.imported import causes
from harness.ipc import Rejected
from harness.loop import SCALE
from harness.producer import numbered
from harness.trace import read_varint
from harness.unhurried import Watch

MARKER = bytes.fromhex("82477a76b28d42ba81dc33326d57a079")
Observable = pb.ObservableEvents


class Lifecycle(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def test_commands_come_in_order_and_the_trace_is_complete(self):
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        writer.number(50)
        consumer.flush(60_000)
        response = consumer.stop()
        self.assertTrue(response.disabled)
        self.assertFalse(response.error)
        self.assertEqual([k for k, _ in producer.commands],
                         ["setup_tracing", "setup_data_source",
                          "start_data_source", "flush", "flush",
                          "stop_data_source"])
        trace = consumer.read()
        self.assert_numbers(trace, [50])
        self.assert_service_packets(trace)

    def assert_service_packets(self, trace):
        """What the service writes itself, and in which order."""
        kinds = trace.kinds()
        first = [k for n, k in enumerate(kinds) if k not in kinds[:n]]
        self.assertEqual(first[0], "clock_snapshot")
        order = [k for k in first if k in (
            "clock_snapshot", "synchronization_marker", "trace_config",
            "trace_uuid", "system_info", "service_event")]
        self.assertEqual(order[:5], [
            "clock_snapshot", "synchronization_marker", "trace_config",
            "trace_uuid", "system_info"])
        self.assertEqual(kinds[-1], "trace_stats")
        for packet in trace.of("clock_snapshot"):
            snapshot = packet.clock_snapshot
            self.assertLessEqual({1, 2, 3, 4, 5, 6},
                                 {c.clock_id for c in snapshot.clocks})
            self.assertEqual(snapshot.primary_trace_clock, 6)
        for packet in trace.of("synchronization_marker"):
            self.assertEqual(packet.synchronization_marker, MARKER)
        events = trace.events()
        for name in ("tracing_started", "all_data_sources_started",
                     "all_data_sources_flushed",
                     "read_tracing_buffers_completed", "tracing_disabled"):
            self.assertIn(name, events)
        for packet in trace.packets:
            if packet.WhichOneof("data") != "for_testing":
                self.assertEqual(packet.trusted_packet_sequence_id, 1)
                self.assertEqual(packet.trusted_uid, os.getuid())
        info = trace.of("system_info")[0].system_info
        self.assertEqual(info.utsname.sysname, os.uname().sysname)
        self.assertEqual(info.num_cpus, os.cpu_count())

    def test_a_packet_carries_who_wrote_it(self):
        producer = self.producer("p")
        consumer = self.session()
        producer.writer().number(1)
        producer.writer().number(1)
        consumer.stop()
        packets = consumer.read().of("for_testing")
        self.assertEqual(len({p.trusted_packet_sequence_id
                              for p in packets}), 2)
        for packet in packets:
            self.assertEqual(packet.trusted_uid, os.getuid())
            self.assertEqual(packet.trusted_pid, os.getpid())
            self.assertGreater(packet.trusted_packet_sequence_id, 1)
            self.assertFalse(packet.HasField("machine_id"))

    def test_every_builtin_packet_can_be_switched_off(self):
        off = pb.TraceConfig.BuiltinDataSource(
            disable_clock_snapshotting=True, disable_trace_config=True,
            disable_system_info=True, disable_service_events=True,
            disable_chunk_usage_histograms=True)
        producer = self.producer("p")
        consumer = self.session(builtin_data_sources=off)
        producer.writer().number(2)
        consumer.stop()
        kinds = set(consumer.read().kinds())
        self.assertFalse(kinds & {"clock_snapshot", "trace_config",
                                  "system_info", "service_event"})
        self.assertIn("for_testing", kinds)

    def test_markers_come_again_at_the_snapshot_period(self):
        """Clock snapshots too, where the clocks have drifted apart."""
        consumer = self.session(
            builtin_data_sources=pb.TraceConfig.BuiltinDataSource(
                snapshot_interval_ms=100))
        seen = []

        def three():
            seen.extend(consumer.read().of("synchronization_marker"))
            return len(seen) >= 3
        self.until(three, "three markers")

    def test_the_config_in_the_trace_is_the_consumers_byte_for_byte(self):
        wanted = config(TEST_SOURCE, trace_uuid_msb=5, trace_uuid_lsb=6)
        wanted.MergeFromString(b"\xfa\x3f\x05later")  # field 1023
        consumer = self.consumer()
        consumer.enable(wanted)
        consumer.stop()
        trace = consumer.read()
        self.assertEqual(trace.of("trace_config")[0].trace_config, wanted)
        uuid = trace.of("trace_uuid")[0].trace_uuid
        self.assertEqual((uuid.msb, uuid.lsb), (5, 6))

    def test_a_duration_ends_the_session(self):
        producer = self.producer("p")
        began = time.monotonic()
        producer.number_at_flush(5)
        consumer = self.session(duration_ms=300)
        consumer.ended()
        self.assertGreaterEqual(time.monotonic() - began, 0.29)
        self.assert_numbers(consumer.read(), [5])
        self.assertEqual(len(producer.saw("stop_data_source")), 1)

    def test_a_deferred_session_waits_for_start_tracing(self):
        producer = self.producer("p")
        consumer = self.session(deferred_start=True, duration_ms=300)
        producer.wait_command("setup_data_source")
        consumer.query()
        self.loop.settle(0.1)
        self.assertFalse(producer.saw("start_data_source"))
        producer.number_at_flush(3)
        consumer.start_tracing()
        consumer.ended()
        self.assert_numbers(consumer.read(), [3])

    def test_starting_what_already_runs_changes_nothing(self):
        producer = self.producer("p")
        consumer = self.session()
        producer.wait_started()
        call = consumer.call("StartTracing")
        self.until(call.ended, "StartTracing")
        producer.sync()
        self.assertEqual(len(producer.saw("start_data_source")), 1)

    def test_freeing_the_buffers_ends_the_session(self):
        producer = self.producer("p")
        consumer = self.session()
        producer.wait_started()
        consumer.free()
        producer.wait_command("stop_data_source")
        self.until(lambda: not consumer.query().tracing_sessions,
                   "the session is gone")
        # The same consumer may begin another one.
        consumer.enable(config(TEST_SOURCE))
        producer.wait_started()

    def test_a_consumer_that_disconnects_takes_its_session_with_it(self):
        producer = self.producer("p")
        consumer = self.session()
        producer.wait_started()
        consumer.close()
        producer.wait_command("stop_data_source")
        other = self.consumer()
        self.until(lambda: not other.query().tracing_sessions,
                   "the session is gone")

    def test_a_detached_session_outlives_its_consumer(self):
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        consumer.detach("key")
        consumer.close()
        writer.number(4)
        other = self.consumer()
        with self.assertRaises(Rejected):
            other.attach("no such key")
        response = other.attach("key")
        self.assertEqual(response.trace_config.data_sources[0].config.name,
                         TEST_SOURCE)
        other.session = other.call("EnableTracing", pb.EnableTracingRequest(
            attach_notification_only=True))
        other.stop()
        self.assert_numbers(other.read(), [4])

    def test_events_tell_when_instances_start_and_stop(self):
        producer = self.producer("p")
        producer.acks_start = False
        consumer = self.consumer()
        events = consumer.observe(Observable.TYPE_DATA_SOURCES_INSTANCES,
                                  Observable.TYPE_ALL_DATA_SOURCES_STARTED)
        consumer.enable(config(TEST_SOURCE))
        instance = producer.wait_started()[0]
        consumer.query()
        self.assertFalse([e for e in events if e.all_data_sources_started])
        producer.notify_started(instance)

        def states():
            return [c.state for e in events for c in e.instance_state_changes]
        self.until(lambda: Observable.DATA_SOURCE_INSTANCE_STATE_STARTED
                   in states(), "the start is told")
        self.until(lambda: any(e.all_data_sources_started for e in events),
                   "all have started")
        consumer.stop()
        self.until(lambda: Observable.DATA_SOURCE_INSTANCE_STATE_STOPPED
                   in states(), "the stop is told")

    def test_observing_again_ends_the_stream_before(self):
        consumer = self.consumer()
        consumer.observe(Observable.TYPE_ALL_DATA_SOURCES_STARTED)
        first = consumer.observer
        consumer.observe(Observable.TYPE_ALL_DATA_SOURCES_STARTED)
        self.until(first.ended, "the first stream ends")
        second = consumer.observer
        consumer.observe()
        self.until(second.ended, "the second stream ends")

    def test_the_version_is_one_wherever_it_is_told(self):
        consumer = self.session()
        told = consumer.query().tracing_service_version
        self.assertRegex(told, r"^Tributary v\d")
        consumer.stop()
        (info,) = consumer.read().of("system_info")
        self.assertEqual(info.system_info.tracing_service_version, told)

    def test_the_service_says_what_it_knows(self):
        producer = self.producer("p", [{"name": "one", "no_flush": True},
                                       "two"])
        consumer = self.session("one", unique_session_name="mine",
                                duration_ms=60000)
        producer.wait_started()
        state = consumer.query()
        self.assertEqual([p.name for p in state.producers], ["p"])
        self.assertEqual(state.producers[0].pid, os.getpid())
        self.assertEqual(state.producers[0].uid, os.getuid())
        self.assertEqual(state.producers[0].sdk_version, "test")
        self.assertEqual(sorted(d.ds_descriptor.name
                                for d in state.data_sources), ["one", "two"])
        self.assertTrue(state.supports_tracing_sessions)
        self.assertTrue(state.tracing_service_version)
        self.assertEqual((state.num_sessions, state.num_sessions_started),
                         (1, 1))
        session = state.tracing_sessions[0]
        self.assertEqual(session.unique_session_name, "mine")
        self.assertEqual(session.state, "STARTED")
        self.assertTrue(session.is_started)
        self.assertEqual(session.num_data_sources, 1)
        self.assertEqual(list(session.buffer_size_kb), [1024])
        self.assertEqual(session.duration_ms, 60000)
        only = consumer.query(sessions_only=True)
        self.assertFalse(only.producers)
        self.assertEqual(len(only.tracing_sessions), 1)
        known = consumer.capabilities()
        self.assertTrue(known.has_query_capabilities)
        self.assertTrue(known.has_clone_session)
        self.assertTrue(known.has_trace_config_output_path)
        self.assertEqual(sorted(known.observable_events), [1, 2, 4])

    def test_incremental_state_is_cleared_at_its_period(self):
        clears = {"name": TEST_SOURCE, "handles_incremental_state_clear": True}
        producer = self.producer("p", [clears])
        plain = self.producer("q", [TEST_SOURCE])
        self.session(
            incremental_state_config=pb.TraceConfig.IncrementalStateConfig(
                clear_period_ms=60))
        self.until(lambda: producer.clears >= 3, "three clears")
        self.assertEqual(plain.clears, 0)


class Matching(Case):
    def setUp(self):
        super().setUp()
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"],
                    flags=["--enable-relay-endpoint"])

    def test_names_and_regular_expressions_choose_producers(self):
        names = ("alpha", "alpine", "beta", "alphabet")
        producers = {n: self.producer(n) for n in names}
        cases = (
            (dict(producer_name_filter=["alpha"]), {"alpha"}),
            (dict(producer_name_filter=["beta", "alpine"]),
             {"beta", "alpine"}),
            (dict(producer_name_regex_filter=["alp.*"]),
             {"alpha", "alpine", "alphabet"}),
            (dict(producer_name_regex_filter=["alp"]), set()),
            (dict(producer_name_regex_filter=["^(beta|alpha)$"]),
             {"beta", "alpha"}),
            (dict(producer_name_filter=["beta"],
                  producer_name_regex_filter=["alpi.*"]),
             {"beta", "alpine"}),
            (dict(), set(names)),
        )
        for fields, expected in cases:
            with self.subTest(fields):
                consumer = self.session(source(TEST_SOURCE, **fields))
                for name in expected:
                    producers[name].wait_started()
                consumer.query()
                self.assertEqual(
                    {n for n, p in producers.items() if p.started()},
                    expected)
                consumer.stop()
                consumer.close()

    def test_one_data_source_in_several_sessions_goes_to_each_buffer(self):
        producer = self.producer("p")
        consumers = [self.session() for _ in range(3)]
        instances = producer.wait_started(3)
        self.assertEqual(len({i.buffer for i in instances}), 3)
        for count, instance in enumerate(instances, 1):
            producer.writer(instance).number(count * 10)
        sizes = set()
        for consumer in consumers:
            consumer.stop()
            (numbers,) = consumer.read().numbers().values()
            self.assertEqual(numbers, list(range(len(numbers))))
            sizes.add(len(numbers))
        self.assertEqual(sizes, {10, 20, 30})

    def test_a_data_source_twice_in_one_config_is_started_twice(self):
        producer = self.producer("p")
        self.session(TEST_SOURCE, TEST_SOURCE)
        self.assertEqual(len(producer.wait_started(2)), 2)

    def test_a_producer_that_comes_late_joins(self):
        consumer = self.session()
        producer = self.producer("late")
        producer.writer().number(3)
        consumer.stop()
        self.assert_numbers(consumer.read(), [3])

    def test_a_data_source_registered_late_joins(self):
        producer = self.producer("p", [])
        consumer = self.session()
        consumer.query()
        self.assertFalse(producer.instances)
        producer.register(TEST_SOURCE)
        producer.wait_started()

    def test_an_unregistered_data_source_stops_and_does_not_come_back(self):
        producer = self.producer("p", [TEST_SOURCE, "other"])
        consumer = self.session()
        producer.writer().number(2)
        producer.unregister(TEST_SOURCE)
        self.until(lambda: [
            d.ds_descriptor.name for d in consumer.query().data_sources] ==
            ["other"], "the data source is gone")
        consumer.stop()
        self.assert_numbers(consumer.read(), [2])
        self.session()
        producer.sync()
        self.assertFalse(producer.started() and
                         len(producer.saw("start_data_source")) > 1)

    def test_what_a_producer_wrote_before_it_crashed_is_kept(self):
        for address in (None, self.daemons[0].address("producers", "tcp")):
            producer = self.producer("mortal", address=address)
            consumer = self.session()
            producer.writer().number(30)
            producer.close()
            self.until(lambda: "mortal" not in [
                p.name for p in consumer.query().producers], "it is gone")
            again = self.producer("mortal", address=address)
            again.writer().number(20)
            consumer.stop()
            self.assert_numbers(consumer.read(), [20, 30])
            again.close()
            consumer.close()

    def test_what_is_left_in_a_dead_producers_memory_is_scraped(self):
        producer = self.producer("mortal", smb_scraping_mode=1)
        consumer = self.session()
        writer = producer.writer()
        producer.shm.put(2, 0, abi.chunk(
            writer.id, 0, [numbered(n, value=1) for n in range(4)]))
        producer.sync()
        producer.close()
        self.until(lambda: not consumer.query().producers, "it is gone")
        consumer.stop()
        self.assert_numbers(consumer.read(), [4])

    def test_the_producer_gets_the_config_whole(self):
        """Every field, known here or not, but for those the service fills."""
        producer = self.producer("p")
        wanted = source(TEST_SOURCE, trace_duration_ms=1, legacy_config="{}")
        wanted.config.track_event_config.enabled_categories.extend(["a", "b"])
        wanted.config.ftrace_config.MergeFromString(b"\xfa\x3f\x01!")
        wanted.config.MergeFromString(
            b"\xfa\x3f\x05later" + b"\xf1\x3f" + b"12345678" +
            b"\xba\x06\x03\x0a\x01z")  # 1023, 1022, 103 { 1 }
        consumer = self.session(
            wanted, duration_ms=50_000, buffers=buffers(64, 64),
            data_source_stop_timeout_ms=4321)
        instance = producer.wait_started()[0]
        got = instance.config
        self.assertEqual(got.trace_duration_ms, 50_000)
        self.assertEqual(got.stop_timeout_ms, 4321)
        self.assertTrue(1 <= got.target_buffer <= 65535)
        self.assertTrue(got.tracing_session_id)
        (command,) = producer.saw("start_data_source")
        self.assertEqual(command.config, got)
        for filled in ("trace_duration_ms", "stop_timeout_ms",
                       "target_buffer", "tracing_session_id",
                       "session_initiator", "enable_extra_guardrails"):
            got.ClearField(filled)
            wanted.config.ClearField(filled)
        # Same fields with the same bytes, in whatever order.
        self.assertEqual(fields_of(got.SerializeToString()),
                         fields_of(wanted.config.SerializeToString()))
        consumer.stop()

    def test_machines_take_part_only_when_the_config_says_so(self):
        tcp = self.daemons[0].address("producers", "tcp")
        remote = self.producer("remote", address=tcp, identity={
            "pid": 42, "uid": 1000, "machine_id_hint": "boot-id-1",
            "machine_name": "device-1"})
        other = self.producer("other", address=tcp, identity={
            "pid": 43, "uid": 1000, "machine_id_hint": "boot-id-2",
            "machine_name": "device-2"})
        local = self.producer("local")
        everyone = {"remote": remote, "other": other, "local": local}
        cases = (
            (source(TEST_SOURCE), {}, {"local"}),
            (source(TEST_SOURCE), {"trace_all_machines": True},
             {"local", "remote", "other"}),
            (source(TEST_SOURCE, machine_name_filter=["device-1"]), {},
             {"remote"}),
            (source(TEST_SOURCE, machine_name_filter=["device-2", "host"]),
             {}, {"other", "local"}),
            (source(TEST_SOURCE, machine_name_filter=["device-1"]),
             {"trace_all_machines": True}, {"remote"}),
        )
        for chosen, fields, expected in cases:
            with self.subTest(expected=expected, fields=fields):
                consumer = self.session(chosen, **fields)
                for name in expected:
                    everyone[name].wait_started()
                consumer.query()
                self.assertEqual({n for n, p in everyone.items()
                                  if p.started()}, expected)
                consumer.stop()
                consumer.close()

    def test_packets_of_another_machine_say_so(self):
        tcp = self.daemons[0].address("producers", "tcp")
        ids = []
        for _ in range(2):  # stable when the machine comes back
            remote = self.producer("remote", address=tcp, identity={
                "pid": 42, "uid": 1000, "machine_id_hint": "boot-id-1",
                "machine_name": "device-1"})
            consumer = self.session(trace_all_machines=True)
            remote.writer().number(2)
            state = consumer.query()
            consumer.stop()
            packets = consumer.read().of("for_testing")
            ids.append({p.machine_id for p in packets})
            self.assertEqual({p.trusted_pid for p in packets}, {42})
            self.assertEqual({p.trusted_uid for p in packets}, {1000})
            self.assertEqual({(p.machine_id, p.machine_name)
                              for p in state.producers},
                             {(packets[0].machine_id, "device-1")})
            remote.close()
            consumer.close()
        self.assertEqual(ids[0], ids[1])
        self.assertNotIn(0, ids[0])

    def test_a_peer_that_nobody_vouches_for_is_not_root(self):
        tcp = self.daemons[0].address("producers", "tcp")
        stranger = self.producer("stranger", address=tcp)
        consumer = self.consumer()
        (found,) = consumer.query().producers
        self.assertNotEqual(found.uid, 0)
        consumer.enable(config(TEST_SOURCE, trace_all_machines=True))
        stranger.writer().number(1)
        consumer.stop()
        for packet in consumer.read().of("for_testing"):
            self.assertNotIn(packet.trusted_uid, (0, os.getuid()))


class Buffers(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def test_a_ring_keeps_the_newest_and_says_what_went(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64)
        producer.writer().number(3000)
        consumer.stop()
        trace = consumer.read()
        (numbers,) = trace.numbers().values()
        self.assertEqual(numbers, list(range(3000 - len(numbers), 3000)))
        self.assertGreater(len(numbers), 300)
        self.assertTrue(trace.of("for_testing")[0].previous_packet_dropped)
        self.assertEqual(len(trace.losses()), 1)
        stats = trace.stats().buffer_stats[0]
        self.assertGreater(stats.chunks_overwritten, 0)
        self.assertGreater(stats.write_wrap_count, 0)
        self.assertEqual(stats.chunks_written,
                         stats.chunks_overwritten + stats.chunks_read)

    def test_discard_keeps_the_oldest_and_stops_for_good(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=64, policy="DISCARD")
        writer = producer.writer()
        writer.number(3000)
        (first,) = consumer.read().numbers().values()
        self.assertEqual(first, list(range(len(first))))
        self.assertLess(len(first), 700)
        writer.number(10)
        consumer.stop()
        trace = consumer.read()
        self.assertEqual(trace.numbers(), {})
        self.assertGreater(trace.stats().buffer_stats[0].chunks_discarded, 0)

    def test_statistics_add_up(self):
        producer = self.producer("p")
        consumer = self.session()
        for _ in range(3):
            producer.writer().number(100)
        consumer.flush(60_000)
        stats = consumer.stats()
        consumer.stop()
        trace = consumer.read()
        self.assert_numbers(trace, [100] * 3)
        self.assert_clean_stats(stats)
        self.assertEqual(stats.producers_connected, 1)
        self.assertEqual(stats.data_sources_registered, 1)
        self.assertEqual(stats.tracing_sessions, 1)
        self.assertEqual(stats.total_buffers, 1)
        self.assertEqual((stats.flushes_requested, stats.flushes_succeeded),
                         (1, 1))
        final = trace.stats()
        buffer = final.buffer_stats[0]
        self.assertEqual(buffer.buffer_size, 1024 * 1024)
        self.assertEqual(buffer.chunks_written, buffer.chunks_read)
        self.assertEqual(buffer.bytes_written, buffer.bytes_read)
        payload = sum(len(abi.fragment(r)) for r, p in zip(
            trace.raw, trace.packets) if p.WhichOneof("data") ==
            "for_testing")
        self.assertLess(abs(payload - buffer.bytes_written), payload / 2)
        self.assertEqual(final.final_flush_outcome,
                         pb.TraceStats.FINAL_FLUSH_SUCCEEDED)
        self.assertEqual(len(final.writer_stats), 3)
        for writer in final.writer_stats:
            self.assertEqual(sum(writer.chunk_payload_histogram_counts), 3)

    def test_reading_while_tracing_takes_what_is_there_once(self):
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        numbers = []
        for _ in range(10):
            writer.number(25)
            trace = consumer.read()
            self.assertEqual(trace.losses(), [])
            for part in trace.numbers().values():
                numbers += part
        consumer.stop()
        self.assertEqual(consumer.read().numbers(), {})
        self.assertEqual(numbers, list(range(250)))

    def test_frames_of_a_large_read_fit_into_a_clients_buffer(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=16 * 1024)
        writer = producer.writer()
        packets = [numbered(n, 300_000 if n % 20 == 7 else 900)
                   for n in range(400)]
        writer.write(packets)
        consumer.stop()
        trace = consumer.read()
        self.assert_numbers(trace, [400])
        self.assertLessEqual(consumer.largest, 128 * 1024)
        self.assertGreater(consumer.largest, 64 * 1024)

    def test_each_session_reads_only_its_own_buffers(self):
        producer = self.producer("p", ["a", "b"])
        first, second = self.session("a"), self.session("b")
        by_name = {i.config.name: i for i in producer.wait_started(2)}
        producer.writer(by_name["a"]).number(7)
        producer.writer(by_name["b"]).number(9)
        for consumer, count in ((first, 7), (second, 9)):
            consumer.stop()
            self.assert_numbers(consumer.read(), [count])


class Acknowledgements(Case):
    """Nobody waits for a dead or slow peer longer than its time-outs."""

    def setUp(self):
        super().setUp()
        self.daemon()

    def silent(self, **options):
        producer = self.producer("silent", ["silent"], **options)
        producer.acks_start = False
        producer.acks_stop = False
        producer.answers_flush = False
        return producer

    def test_a_flush_that_nobody_answers_fails_after_its_timeout(self):
        with self.neighbour():
            producer = self.silent()
            consumer = self.session("silent")
            producer.writer().number(5)
            began = time.monotonic()
            watch = Watch(self.daemons[0].pid)
            with self.assertRaises(Rejected):
                consumer.flush(200)
            self.assertGreaterEqual(time.monotonic() - began, 0.19)
            self.assertLess(watch.seconds(), 2 * SCALE)
            stats = consumer.stats()
            self.assertEqual((stats.flushes_requested, stats.flushes_failed),
                             (1, 1))

    def test_a_flush_answered_by_all_succeeds_at_once(self):
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        producer.before_flush = lambda command: writer.number(1, ask=False)
        consumer.flush(60_000)
        self.assert_numbers(consumer.read(), [1])

    def test_a_flush_ends_when_its_producer_dies(self):
        producer = self.silent()
        consumer = self.session("silent")
        producer.wait_started()
        call = consumer.call("Flush", pb.FlushRequest(timeout_ms=60_000))
        producer.wait_command("flush")
        producer.close()
        self.until(call.ended, "the flush ends")

    def test_sources_that_ask_for_no_flush_are_not_flushed(self):
        producer = self.producer("p", [{"name": "quiet", "no_flush": True}])
        consumer = self.session("quiet")
        producer.wait_started()
        consumer.flush(60_000)
        consumer.stop()
        self.assertFalse(producer.saw("flush"))

    @causes("traced_final_flush_failed", "traced_flushes_failed")
    def test_a_stop_that_nobody_acknowledges_ends_after_its_timeout(self):
        with self.neighbour():
            producer = self.silent()
            consumer = self.session("silent", flush_timeout_ms=200,
                                    data_source_stop_timeout_ms=300)
            producer.writer().number(5)
            began = time.monotonic()
            watch = Watch(self.daemons[0].pid)
            consumer.stop()
            self.assertGreaterEqual(time.monotonic() - began, 0.29)
            self.assertLess(watch.seconds(), 3 * SCALE)
            trace = consumer.read()
            self.assert_numbers(trace, [5])
            self.assertEqual(trace.stats().final_flush_outcome,
                             pb.TraceStats.FINAL_FLUSH_FAILED)

    def test_packets_written_while_stopping_are_kept(self):
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        producer.before_stop = lambda instance: writer.number(8, ask=False)
        consumer.stop()
        self.assert_numbers(consumer.read(), [8])

    def test_a_periodic_flush_asks_again_and_again(self):
        producer = self.producer("p")
        self.session(flush_period_ms=60)
        producer.wait_command("flush", 3)

    def test_a_duration_ends_even_with_a_silent_producer(self):
        self.silent()
        consumer = self.session("silent", duration_ms=100,
                                flush_timeout_ms=100,
                                data_source_stop_timeout_ms=100)
        consumer.ended()

    def test_a_session_of_no_producers_starts_and_stops_at_once(self):
        consumer = self.session("nobody.has.this")
        consumer.flush(60_000)
        consumer.stop()
        self.assertEqual(consumer.read().numbers(), {})


def fields_of(data):
    """The top-level fields of a message, as a sorted list of byte strings."""
    out, at = [], 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            _, at = read_varint(data, at)
        elif wire == 1:
            at += 8
        elif wire == 2:
            length, at = read_varint(data, at)
            at += length
        elif wire == 5:
            at += 4
        out.append(data[start:at])
    return sorted(out)


if __name__ == "__main__":
    sys.exit(tap.main())
