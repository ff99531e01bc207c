#!/usr/bin/env python3
"""Each method of ConsumerPort: what it gives, and when it says no."""

import os
import sys

from harness import abi, tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import buffers, join_slices
from harness.imported import causes
from harness.producer import numbered
from harness.trace import Trace

Observable = pb.ObservableEvents
STARTED = Observable.DATA_SOURCE_INSTANCE_STATE_STARTED
STOPPED = Observable.DATA_SOURCE_INSTANCE_STATE_STOPPED
BUGREPORT_ID = 2**64 - 1
UNSTARTED = ("DisableTracing", "FreeBuffers")


def on(mode, *names, **fields):
    kind = pb.TraceConfig.TriggerConfig
    return kind(trigger_mode=mode, trigger_timeout_ms=60_000,
                triggers=[kind.Trigger(name=n) for n in names], **fields)


class Methods(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def session_of(self, consumer, name):
        """What QueryServiceState says of a session; None: it is not there."""
        for session in consumer.query(sessions_only=True).tracing_sessions:
            if session.unique_session_name == name:
                return session
        return None


class Sessions(Methods):
    def test_without_a_session_most_calls_are_refused(self):
        consumer = self.consumer()
        for method in ("StartTracing", "ChangeTraceConfig", "Flush",
                       "ReadBuffers", "Detach", "Attach", "GetTraceStats"):
            self.assertTrue(consumer.refuses(method), method)
        self.assertTrue(consumer.refuses(
            "EnableTracing",
            pb.EnableTracingRequest(attach_notification_only=True)))
        # To end what is not there is no mistake.
        for method in UNSTARTED:
            consumer.invoke(method)

    def test_a_second_session_of_one_consumer_is_refused(self):
        consumer = self.session("x")
        first = consumer.session
        self.assertIn("FreeBuffers", consumer.refused(config("x")))
        self.assertFalse(first.ended())
        consumer.session = first
        consumer.stop()
        # Also when the first has ended, until it is freed.
        self.assertIn("FreeBuffers", consumer.refused(config("x")))
        consumer.free()
        consumer.enable(config("x"))
        consumer.stop()

    def test_the_end_is_told_to_whoever_asked_last(self):
        consumer = self.session("x")
        request = pb.EnableTracingRequest(attach_notification_only=True)
        again = consumer.call("EnableTracing", request)
        self.until(consumer.session.ended, "the first waits no longer")
        self.assertTrue(consumer.session.rejected)
        consumer.session = again
        self.assertTrue(consumer.stop().disabled)
        # And at once, when it is over already.
        consumer.session = consumer.call("EnableTracing", request)
        self.assertTrue(consumer.ended().disabled)

    def test_only_what_waits_is_started(self):
        consumer = self.session("x", deferred_start=True,
                                unique_session_name="s")
        self.assertEqual(self.session_of(consumer, "s").state, "CONFIGURED")
        consumer.start_tracing()
        self.assertEqual(self.session_of(consumer, "s").state, "STARTED")
        self.assertTrue(consumer.refuses("StartTracing"))
        consumer.stop()
        self.assertEqual(self.session_of(consumer, "s").state, "DISABLED")
        self.assertTrue(consumer.refuses("StartTracing"))

    def test_a_session_that_waits_for_its_trigger_may_be_started(self):
        producer = self.producer("p")
        consumer = self.session(trigger_config=on("START_TRACING", "go"))
        self.assert_unreadable(consumer)
        consumer.start_tracing()
        producer.writer().number(3)
        producer.activate("go")
        producer.sync()
        consumer.stop()
        self.assert_numbers(consumer.read(), [3])

    def test_one_that_ends_before_it_began_is_empty(self):
        producer = self.producer("p")
        consumer = self.session(deferred_start=True)
        self.assertTrue(consumer.stop().disabled)
        self.assertEqual(consumer.read().numbers(), {})
        self.assertFalse(producer.saw("start_data_source"))

    def test_the_config_of_what_has_ended_is_not_changed(self):
        consumer = self.session("x")
        request = pb.ChangeTraceConfigRequest(trace_config=config("x"))
        self.assertFalse(consumer.refuses("ChangeTraceConfig", request))
        consumer.stop()
        self.assertTrue(consumer.refuses("ChangeTraceConfig", request))

    def test_ending_twice_and_freeing_twice_is_fine(self):
        consumer = self.session("x")
        consumer.disable()
        consumer.disable()
        consumer.ended()
        consumer.free()
        consumer.free()
        self.assertTrue(consumer.refuses("ReadBuffers"))

    def test_freeing_a_running_session_tells_its_end(self):
        consumer = self.session("x")
        consumer.free()
        self.assertTrue(consumer.ended().disabled)

    def test_trigger_configs_that_make_no_sense_are_refused(self):
        consumer = self.consumer()
        self.assertIn("use_clone_snapshot_if_available", consumer.refused(
            config("x", trigger_config=on(
                "START_TRACING", "t", use_clone_snapshot_if_available=True))))
        bad = on("STOP_TRACING", "t")
        bad.triggers[0].producer_name_regex = "("
        self.assertTrue(consumer.refused(config("x", trigger_config=bad)))
        self.assertIn("at least one", consumer.refused(
            config("x", trigger_config=on("STOP_TRACING"))))
        self.assertIn("no name", consumer.refused(
            config("x", trigger_config=on("STOP_TRACING", ""))))

    def test_save_trace_for_bugreport_says_what_to_do_instead(self):
        consumer = self.consumer()
        response = consumer.invoke("SaveTraceForBugreport", None,
                                   pb.SaveTraceForBugreportResponse)
        self.assertFalse(response.success)
        self.assertIn("CloneSession", response.msg)


class Flushes(Methods):
    def test_flags_are_passed_on_and_nobody_speaks_for_the_service(self):
        producer = self.producer("p")
        consumer = self.session()
        producer.wait_started()
        for flags in (0, 0x24, 0x34, 0xfff, 0x11):
            consumer.flush(5000, flags)
        self.assertEqual([c.flags for c in producer.saw("flush")],
                         [0, 0x24, 0x34, 0xfff, 0x01])

    def test_without_a_time_out_the_one_of_the_config_holds(self):
        producer = self.producer("p")
        producer.answers_flush = False
        consumer = self.session(flush_timeout_ms=50)
        producer.wait_started()
        self.assertTrue(consumer.refuses("Flush"))

    def test_what_does_not_run_is_not_flushed(self):
        consumer = self.session("x", deferred_start=True)
        self.assertTrue(consumer.refuses("Flush"))
        consumer.start_tracing()
        consumer.flush(60_000)
        consumer.stop()
        self.assertTrue(consumer.refuses("Flush"))

    def test_flushes_under_way_are_bounded_and_end_with_the_session(self):
        producer = self.producer("p")
        producer.answers_flush = False
        consumer = self.session()
        producer.wait_started()
        request = pb.FlushRequest(timeout_ms=600_000)
        calls = [consumer.call("Flush", request) for _ in range(20)]
        self.until(calls[-1].ended, "the last one is refused")
        waiting = [c for c in calls if not c.ended()]
        self.assertEqual(len(waiting), 16)
        consumer.free()
        self.until(lambda: all(c.ended() for c in waiting), "their end")
        self.assertTrue(all(c.rejected for c in waiting))


class Reading(Methods):
    def test_a_session_that_writes_into_a_file_is_not_read(self):
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        consumer = self.session("x", fds=[fd], write_into_file=True)
        os.close(fd)
        self.assertTrue(consumer.refuses("ReadBuffers"))
        consumer.stop()
        self.assertTrue(consumer.refuses("ReadBuffers"))
        self.assertTrue(Trace.from_file(self.path("f")).of("trace_config"))

    def test_a_session_for_snapshots_is_read_by_nobody(self):
        producer = self.producer("p")
        consumer = self.session(trigger_config=on("CLONE_SNAPSHOT", "snap"))
        producer.writer().number(3)
        producer.activate("snap")
        producer.sync()
        self.assert_unreadable(consumer)
        consumer.stop()
        self.assert_unreadable(consumer)

    def test_one_read_at_a_time(self):
        producer = self.producer("p")
        consumer = self.session(size_kb=16 * 1024)
        writer = producer.writer()
        writer.number(6000, size=1000)
        consumer.stop()
        # It reads nothing, so the first is still under way at the second.
        consumer.pause()
        first = consumer.call("ReadBuffers")
        second = consumer.call("ReadBuffers")
        other = self.consumer()
        self.until(lambda: consumer.sent() and other.query(), "both are there")
        consumer.resume()
        self.until(first.ended, "the first read")
        self.until(second.ended, "the second read")
        self.assertTrue(second.rejected)
        self.assert_numbers(Trace(join_slices(first.replies)), [6000])


class Travels(Methods):
    def test_keys_are_not_empty_and_not_in_use(self):
        first, second = self.session("x"), self.session("x")
        for key in ("", "k" * 100_000):
            self.assertTrue(first.refuses("Detach",
                                          pb.DetachRequest(key=key)))
        first.detach("key")
        self.assertTrue(second.refuses("Detach", pb.DetachRequest(key="key")))
        self.assertTrue(second.refuses("Attach", pb.AttachRequest(key="key")))
        # Who let go has none any more, and may take it back.
        self.assertTrue(first.refuses("Detach", pb.DetachRequest(key="k")))
        for key in ("", "other"):
            self.assertTrue(first.refuses("Attach",
                                          pb.AttachRequest(key=key)))
        self.assertEqual(
            first.attach("key").trace_config.data_sources[0].config.name, "x")
        self.assertTrue(second.refuses("Attach", pb.AttachRequest(key="key")))
        second.detach("key")

    def test_a_detached_session_ends_and_keeps_its_trace(self):
        producer = self.producer("p")
        producer.number_at_flush(4)
        consumer = self.session(unique_session_name="s", duration_ms=1500)
        consumer.detach("key")
        self.until(lambda: self.session_of(consumer, "s").state == "DISABLED",
                   "its end")
        consumer.attach("key")
        self.assert_numbers(consumer.read(), [4])

    def test_a_detached_session_is_gone_when_its_file_is_complete(self):
        producer = self.producer("p")
        producer.number_at_flush(4)
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        consumer = self.session(unique_session_name="s", duration_ms=1500,
                                fds=[fd], write_into_file=True)
        os.close(fd)
        consumer.detach("key")
        self.until(lambda: self.session_of(consumer, "s") is None, "its end")
        self.assertTrue(consumer.refuses("Attach",
                                         pb.AttachRequest(key="key")))
        self.assert_numbers(Trace.from_file(self.path("f")), [4])


class Statistics(Methods):
    def test_writers_are_told_of_when_they_are_gone(self):
        stays = self.producer("stays")
        consumer = self.session()
        stays.writer().number(1)
        goes = self.producer("goes")
        goes.writer().number(2)
        goes.close()
        self.until(lambda: len(consumer.query().producers) == 1, "it is gone")
        self.assert_numbers(consumer.read(), [1, 2])
        self.assertEqual(consumer.read().numbers(), {})  # and swept
        for stats in (consumer.stats(), self.final(consumer)):
            self.assertEqual(len(stats.writer_stats), 2)
            for writer in stats.writer_stats:
                self.assertEqual(
                    sum(writer.chunk_payload_histogram_counts), 1)

    def final(self, consumer):
        consumer.stop()
        return consumer.read().stats()


class Events(Methods):
    def changes(self, events):
        return [(c.producer_name, c.data_source_name, c.state)
                for e in events for c in e.instance_state_changes]

    def test_states_are_replayed_when_somebody_asks(self):
        producer = self.producer("p", ["a", "b"])
        slow = self.producer("slow", ["a"])
        slow.acks_start = False
        consumer = self.session("a", "b", deferred_start=True)
        # Not started yet is as good as stopped.
        events = consumer.observe(Observable.TYPE_DATA_SOURCES_INSTANCES)
        self.until(lambda: len(self.changes(events)) == 3, "three states")
        self.assertEqual(sorted(self.changes(events)), [
            ("p", "a", STOPPED), ("p", "b", STOPPED), ("slow", "a", STOPPED)])
        consumer.start_tracing()
        producer.wait_started(2)
        (instance,) = slow.wait_started()
        self.until(lambda: len(self.changes(events)) == 5, "two starts")
        # One that is on its way is told of when it is there.
        events = consumer.observe(Observable.TYPE_DATA_SOURCES_INSTANCES,
                                  Observable.TYPE_ALL_DATA_SOURCES_STARTED)
        self.until(lambda: self.changes(events), "the states")
        self.assertEqual(sorted(self.changes(events)), [
            ("p", "a", STARTED), ("p", "b", STARTED)])
        slow.notify_started(instance)
        self.until(lambda: any(e.all_data_sources_started for e in events),
                   "all have started")
        self.assertIn(("slow", "a", STARTED), self.changes(events))
        # Who asks late hears it as well.
        late = consumer.observe(Observable.TYPE_ALL_DATA_SOURCES_STARTED)
        self.until(lambda: late, "all have started")
        self.assertTrue(late[0].all_data_sources_started)

    def test_each_hit_is_told_by_itself(self):
        producer = self.producer("p")
        consumer = self.consumer()
        events = consumer.observe(Observable.TYPE_CLONE_TRIGGER_HIT)
        consumer.enable(config("x", trigger_config=on(
            "CLONE_SNAPSHOT", "one", "two")))
        consumer.query()
        producer.activate("one", "two", "one", "none")
        self.until(lambda: len(events) == 3, "three hits")
        self.assertEqual(
            [e.clone_trigger_hit.trigger_name for e in events].count("one"),
            2)

    def test_a_consumer_that_does_not_read_its_events_harms_nobody(self):
        with self.neighbour():
            producer = self.producer("p", ["s" * 200] * 4)
            deaf = self.consumer(rcvbuf=4096)
            deaf.observe(1, 2)
            deaf.enable(config(*["s" * 200] * 16))
            producer.wait_started(16)
            deaf.pause()
            for _ in range(30):
                producer.unregister("s" * 200)
                producer.register("s" * 200)
            producer.sync()
        deaf.resume()
        # All that happened, in the end.
        other = self.consumer()
        self.until(lambda: other.query().num_sessions, "it is served")


class Queries(Methods):
    def test_a_long_answer_comes_in_parts_that_are_each_valid(self):
        for number in range(40):
            self.talkative(f"p{number}", [f"s{number}.{n}" for n in range(3)])
        consumer = self.session("none", unique_session_name="mine")
        call = consumer.call("QueryServiceState")
        consumer.finish(call)
        self.assertGreater(len(call.replies), 2)
        whole = pb.QueryServiceStateResponse()
        names = []
        for part in call.replies:
            message = pb.QueryServiceStateResponse.FromString(part)
            whole.MergeFrom(message)
            names += [d.ds_descriptor.name
                      for d in message.service_state.data_sources]
        joined = pb.QueryServiceStateResponse.FromString(
            b"".join(call.replies))
        self.assertEqual(joined, whole)
        self.assertEqual(len(whole.service_state.producers), 40)
        self.assertEqual(sorted(names), sorted(
            f"s{p}.{n}" for p in range(40) for n in range(3)))
        for source in whole.service_state.data_sources:
            self.assertGreater(source.ds_descriptor.ByteSize(), 5000)
        (session,) = whole.service_state.tracing_sessions
        self.assertEqual(session.unique_session_name, "mine")
        # The sessions alone are a small answer.
        call = consumer.call("QueryServiceState",
                             pb.QueryServiceStateRequest(sessions_only=True))
        consumer.finish(call)
        self.assertEqual(len(call.replies), 1)
        self.assertLess(len(call.replies[0]), 1000)

    def test_descriptors_that_fill_a_frame_each_arrive(self):
        producer = self.producer("long", [])
        filler = b"x" * (128 * 1024 - 64 - 16)
        for number in range(5):
            request = pb.RegisterDataSourceRequest()
            descriptor = request.data_source_descriptor
            descriptor.name = f"long.{number}"
            descriptor.MergeFromString(
                b"\xfa\x3f" + abi.varint(len(filler)) + filler)
            producer.invoke("RegisterDataSource", request)
        consumer = self.consumer()
        call = consumer.call("QueryServiceState")
        consumer.finish(call)
        joined = pb.QueryServiceStateResponse.FromString(
            b"".join(call.replies))
        self.assertEqual(
            [(d.ds_descriptor.name, d.ds_descriptor.ByteSize() > len(filler))
             for d in joined.service_state.data_sources],
            [(f"long.{number}", True) for number in range(5)])

    def talkative(self, name, sources):
        """A producer with sources that have much to say of themselves."""
        producer = self.producer(name, [])
        for source in sources:
            request = pb.RegisterDataSourceRequest()
            descriptor = request.data_source_descriptor
            descriptor.name = source
            # Field 1023, which nobody knows: kept as it is.
            descriptor.MergeFromString(b"\xfa\x3f\x88\x27" + b"x" * 5000)
            producer.invoke("RegisterDataSource", request)

    def test_two_answers_at_a_time_are_one_too_many(self):
        for number in range(100):
            self.talkative(f"p{number}", ["a", "b"])
        consumer = self.consumer(rcvbuf=4096)
        consumer.pause()
        first = consumer.call("QueryServiceState")
        second = consumer.call("QueryServiceState")
        other = self.consumer()
        self.until(lambda: consumer.sent() and other.query(), "both are there")
        consumer.resume()
        self.until(first.ended, "the first answer")
        self.until(second.ended, "the second answer")
        self.assertFalse(first.rejected)
        self.assertTrue(second.rejected)

    def test_every_field_of_a_session_is_told(self):
        consumer = self.session(
            "x", unique_session_name="s", buffers=buffers(64, 128),
            bugreport_score=7, bugreport_filename="b.pftrace",
            duration_ms=60_000)
        session = self.session_of(consumer, "s")
        self.assertEqual(session.consumer_uid, os.getuid())
        self.assertEqual(list(session.buffer_size_kb), [64, 128])
        self.assertEqual(session.bugreport_score, 7)
        self.assertEqual(session.bugreport_filename, "b.pftrace")
        self.assertEqual(session.duration_ms, 60_000)
        self.assertGreater(session.start_realtime_ns, 1e18)
        copier = self.consumer()
        self.assertTrue(copier.clone(session_id=session.id).success)
        states = {s.state: s for s in copier.query().tracing_sessions}
        self.assertEqual(set(states), {"STARTED", "CLONED_READ_ONLY"})
        clone = states["CLONED_READ_ONLY"]
        self.assertFalse(clone.is_started)
        self.assertEqual(list(clone.buffer_size_kb), [64, 128])
        self.assertEqual(clone.start_realtime_ns, session.start_realtime_ns)


class Clones(Methods):
    def clone(self, **selector):
        copier = self.consumer()
        response = copier.clone(**selector)
        self.assertTrue(response.success, response.error)
        return copier, response

    def refused(self, copier, **selector):
        response = copier.clone(**selector)
        self.assertFalse(response.success)
        return response.error

    def test_a_bug_report_takes_the_best_session_or_the_one_it_names(self):
        producer = self.producer("p", ["low", "high", "none"])
        low = self.session("low", bugreport_score=1,
                           unique_session_name="low")
        self.session("high", bugreport_score=9)
        self.session("none", unique_session_name="none")
        producer.wait_started(3)
        by_name = {i.config.name: i for i in producer.started()}
        for count, name in enumerate(("low", "high", "none"), 1):
            producer.writer(by_name[name]).number(count)
        for selector, count in (
                ({"for_bugreport": True}, 2),
                ({"session_id": BUGREPORT_ID}, 2),
                ({"for_bugreport": True, "unique_session_name": "low"}, 1),
                ({"for_bugreport": True, "unique_session_name": "none"}, 3),
                ({"unique_session_name": "none"}, 3)):
            before = len(producer.saw("flush"))
            copier, _ = self.clone(**selector)
            self.assert_numbers(copier.read(), [count])
            self.assertEqual(
                [c.flags for c in producer.saw("flush")[before:]],
                [0x13 if selector == {"unique_session_name": "none"}
                 else 0x113])
        low.stop()

    def test_without_a_score_there_is_nothing_for_a_bug_report(self):
        self.session("x", unique_session_name="s")
        self.session("x", bugreport_score=-1)
        ended = self.session("x", bugreport_score=5)
        ended.stop()
        copier = self.consumer()
        for selector in ({"for_bugreport": True},
                         {"session_id": BUGREPORT_ID},
                         {"unique_session_name": ""}, {}):
            self.assertRegex(self.refused(copier, **selector),
                             "not found|No tracing sessions eligible")

    def test_a_consumer_with_a_session_clones_no_other(self):
        consumer = self.session("x", unique_session_name="s")
        self.assertIn("already", self.refused(consumer,
                                              unique_session_name="s"))
        copier, _ = self.clone(unique_session_name="s")
        self.assertIn("already", self.refused(copier,
                                              unique_session_name="s"))
        # A clone is no source either.
        (clone,) = [s for s in consumer.query().tracing_sessions
                    if s.state == "CLONED_READ_ONLY"]
        self.refused(self.consumer(), session_id=clone.id)
        copier.free()
        self.assertTrue(copier.clone(unique_session_name="s").success)

    def test_while_it_waits_for_one_it_begins_nothing_else(self):
        producer = self.producer("p")
        producer.answers_flush = False
        self.session(unique_session_name="s", flush_timeout_ms=600_000)
        producer.wait_started()
        copier = self.consumer()
        first = copier.call("CloneSession", pb.CloneSessionRequest(
            unique_session_name="s"))
        self.assertIn("waits", self.refused(copier, unique_session_name="s"))
        self.assertIn("CloneSession", copier.refused(config("x")))
        flush = producer.wait_command("flush")
        producer.commit(flush_request_id=flush.request_id)
        response = copier.finish(first, pb.CloneSessionResponse)
        self.assertTrue(response.success, response.error)

    def test_a_source_that_ends_meanwhile_is_an_error(self):
        producer = self.producer("p")
        producer.answers_flush = False
        consumer = self.session(unique_session_name="s",
                                flush_timeout_ms=600_000)
        producer.wait_started()
        copier = self.consumer()
        call = copier.call("CloneSession", pb.CloneSessionRequest(
            unique_session_name="s"))
        producer.wait_command("flush")
        consumer.free()
        response = copier.finish(call, pb.CloneSessionResponse)
        self.assertFalse(response.success)
        self.assertIn("ended", response.error)

    def test_what_has_ended_can_be_cloned_until_it_is_freed(self):
        producer = self.producer("p")
        consumer = self.session(unique_session_name="s")
        producer.writer().number(5)
        consumer.stop()
        copier, _ = self.clone(unique_session_name="s")
        self.assert_numbers(copier.read(), [5])
        self.assert_numbers(consumer.read(), [5])

    def test_a_buffer_may_be_cleared_before_it_is_flushed(self):
        producer = self.producer("p", ["keep", "clear"])
        bufs = buffers(256, 256)
        bufs[1].clear_before_clone = True
        wanted = config("keep", "clear", buffers=bufs,
                        unique_session_name="s")
        wanted.data_sources[1].config.target_buffer = 1
        self.consumer().enable(wanted)
        producer.wait_started(2)
        by_name = {i.config.name: i for i in producer.started()}
        keep = producer.writer(by_name["keep"])
        clear = producer.writer(by_name["clear"])
        keep.number(5)
        clear.number(7)
        producer.before_flush = lambda command: clear.number(2, ask=False)
        copier, _ = self.clone(unique_session_name="s")
        self.assertEqual(sorted(copier.read().numbers().values()),
                         [[0, 1, 2, 3, 4], [7, 8]])

    def test_half_of_the_uuid_is_new(self):
        consumer = self.session("x", unique_session_name="s",
                                trace_uuid_msb=11, trace_uuid_lsb=22)
        first, a = self.clone(unique_session_name="s")
        _, b = self.clone(unique_session_name="s")
        self.assertEqual((a.uuid_lsb, b.uuid_lsb), (22, 22))
        self.assertEqual(len({11, a.uuid_msb, b.uuid_msb}), 3)
        uuid = first.read().of("trace_uuid")[0].trace_uuid
        self.assertEqual((uuid.msb, uuid.lsb), (a.uuid_msb, 22))
        consumer.stop()

    def test_the_trigger_is_in_the_clone_and_only_there(self):
        producer = self.producer("puller")
        consumer = self.consumer()
        events = consumer.observe(Observable.TYPE_CLONE_TRIGGER_HIT)
        consumer.enable(config(
            TEST_SOURCE, unique_session_name="s",
            trigger_config=on("CLONE_SNAPSHOT", "snap")))
        producer.writer().number(3)
        producer.activate("snap")
        self.until(lambda: events, "the hit")
        hit = events[0].clone_trigger_hit
        copier, _ = self.clone(
            session_id=hit.tracing_session_id,
            clone_trigger_name=hit.trigger_name,
            clone_trigger_producer_name=hit.producer_name,
            clone_trigger_trusted_producer_uid=hit.producer_uid,
            clone_trigger_boot_time_ns=hit.boot_time_ns,
            clone_trigger_delay_ms=hit.trigger_delay_ms)
        trace = copier.read()
        self.assert_numbers(trace, [3])
        (packet,) = trace.of("clone_snapshot_trigger")
        trigger = packet.clone_snapshot_trigger
        self.assertEqual(
            (trigger.trigger_name, trigger.producer_name,
             trigger.trusted_producer_uid, packet.timestamp),
            ("snap", "puller", os.getuid(), hit.boot_time_ns))
        self.assertEqual([p.trigger.trigger_name for p in trace.of("trigger")],
                         ["snap"])
        # The next one has those that came after.
        copier, _ = self.clone(unique_session_name="s")
        trace = copier.read()
        self.assertFalse(trace.of("clone_snapshot_trigger"))
        self.assertFalse(trace.of("trigger"))

    def test_a_clone_of_a_file_session_may_also_be_read(self):
        producer = self.producer("p")
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        self.session(fds=[fd], write_into_file=True, unique_session_name="s",
                     file_write_period_ms=3_600_000)
        os.close(fd)
        producer.writer().number(10)
        copier, response = self.clone(unique_session_name="s")
        self.assertFalse(response.was_write_into_file)
        self.assert_numbers(copier.read(), [10])

    def test_a_clone_of_a_file_session_has_what_the_file_has_got(self):
        producer = self.producer("p")
        path = self.path("f")
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self.session(fds=[fd], write_into_file=True, unique_session_name="s",
                     file_write_period_ms=100)
        os.close(fd)
        producer.writer().number(11)
        self.until(lambda: len(Trace.so_far(path).of("for_testing")) == 11,
                   "the file has them")
        copier, _ = self.clone(unique_session_name="s")
        self.assert_numbers(copier.read(), [11])

    @causes("traced_buf_sequence_packet_loss")
    def test_a_packet_that_is_not_patched_hides_no_other_in_a_clone(self):
        producer = self.producer("p")
        consumer = self.session(unique_session_name="s")
        writer = producer.writer()
        writer.number(3)
        packet = numbered(100, size=600)
        moves = []
        for data, flags in ((packet[:300], abi.CONTINUED | abi.NEEDS_PATCHING),
                            (packet[300:], abi.CONTINUES)):
            moves.append(producer.place(abi.chunk(
                writer.id, writer.chunk_id(), [data], flags)))
            moves[-1].target_buffer = writer.buffer
        producer.commit(moves)
        writer.number(20)
        copier, _ = self.clone(unique_session_name="s")
        packets = copier.read().of("for_testing")
        self.assertEqual([p.for_testing.counter for p in packets],
                         list(range(23)))
        self.assertEqual([i for i, p in enumerate(packets)
                          if p.previous_packet_dropped], [3])
        consumer.stop()

    @causes("traced_buf_sequence_packet_loss",
            "traced_final_flush_failed",
            "traced_flushes_failed")
    def test_a_clone_has_what_a_hanging_producer_left_in_its_memory(self):
        producer = self.producer("p")
        self.session(unique_session_name="s", flush_timeout_ms=200)
        producer.answers_flush = False
        writer = producer.writer()
        page = producer.shm.free_page()
        producer.shm.put(page, 0, abi.chunk(
            writer.id, writer.chunk_id(), [numbered(0), numbered(1)]),
            state=abi.BEING_WRITTEN)
        producer.shm.put(page + 1, 0, abi.chunk(
            writer.id, writer.chunk_id(), [numbered(10), numbered(11)]),
            state=abi.COMPLETE)
        copier, _ = self.clone(unique_session_name="s")
        packets = copier.read().of("for_testing")
        # Its writer may still be at the last one of the chunk it has open.
        self.assertEqual([p.for_testing.counter for p in packets],
                         [0, 10, 11])
        self.assertTrue(packets[1].previous_packet_dropped)


if __name__ == "__main__":
    sys.exit(tap.main())
