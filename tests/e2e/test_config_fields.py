#!/usr/bin/env python3
"""Fields of a TraceConfig, each doing what it says."""

import os
import pwd
import subprocess
import sys
import time

import test_trust
from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import buffers, source
from harness.daemon import environment
from harness.imported import causes
from harness.ipc import Rejected
from harness.trace import Trace

ANN, acting_as = test_trust.ANN, test_trust.acting_as
Builtin = pb.TraceConfig.BuiltinDataSource
Boost = pb.PriorityBoostConfig
Event = pb.ConcurrentSessionEvent
DAY_MS = 24 * 3600 * 1000
# Field 1023, and as field 99 of a message.
LATER, LATER_INSIDE = b"\xfa\x3f\x05later", b"\x98\x06\x01"


class Fields(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def assert_refused(self, bad, *words):
        consumer = self.consumer()
        error = consumer.refused(bad)
        for word in words:
            self.assertIn(str(word), error)
        consumer.enable(config(TEST_SOURCE))
        consumer.query()
        self.assertFalse(consumer.session.ended())
        consumer.close()


class Warnings(Fields):
    """What a config asks for without effect is named, never skipped."""

    def odd_config(self):
        wanted = config(TEST_SOURCE)
        wanted.MergeFromString(LATER)
        wanted.buffers[0].MergeFromString(LATER_INSIDE)
        return wanted

    def test_the_consumer_is_told_at_the_end_and_the_log_at_once(self):
        consumer = self.consumer()
        consumer.enable(self.odd_config())
        self.until(lambda: "field 1023 of the trace config has no effect"
                   in self.daemons[0].log(), "the log names the field")
        response = consumer.stop()
        self.assertFalse(response.error)
        self.assertEqual(
            [w.split(" of the ")[0] for w in response.warnings],
            ["buffers field 99", "field 1023"])
        self.assertIn("does not know it", response.warnings[0])

    def test_one_that_frees_its_buffers_is_told_too(self):
        consumer = self.consumer()
        consumer.enable(self.odd_config())
        consumer.free()
        self.assertEqual(len(consumer.ended().warnings), 2)

    def test_a_value_that_nobody_knows_is_named(self):
        wanted = config(TEST_SOURCE)
        wanted.MergeFromString(b"\xe0\x02\x4d")  # write_flush_mode: 77
        consumer = self.consumer()
        consumer.enable(wanted)
        (warning,) = consumer.stop().warnings
        self.assertIn("write_flush_mode", warning)
        self.assertIn("77", warning)

    @causes("config_write_into_file_discard")
    def test_discard_into_a_file_is_a_contradiction(self):
        consumer = self.consumer()
        with open(self.path("file"), "wb") as file:
            consumer.enable(config(TEST_SOURCE, policy="DISCARD",
                                   write_into_file=True), [file.fileno()])
            (warning,) = consumer.stop().warnings
        self.assertIn("RING_BUFFER goes on", warning)

    def test_a_config_that_is_served_whole_gives_none(self):
        consumer = self.session(unique_session_name="x")
        self.assertEqual(list(consumer.stop().warnings), [])
        self.assertNotIn("has no effect", self.daemons[0].log())


class Kept(Fields):
    """What is not the service's own business reaches who it is for."""

    def test_unknown_fields_are_in_the_trace_and_at_the_producer(self):
        producer = self.producer("p")
        wanted = config(TEST_SOURCE)
        wanted.data_sources[0].config.MergeFromString(LATER)
        wanted.buffers[0].MergeFromString(LATER_INSIDE)
        encoded = wanted.SerializeToString() + LATER
        consumer = self.consumer()
        request = pb.EnableTracingRequest()
        request.MergeFromString(b"\x0a" + varint(len(encoded)) + encoded)
        consumer.session = consumer.call("EnableTracing", request)
        instance = producer.wait_started()[0]
        self.assertIn(LATER, instance.config.SerializeToString())
        consumer.stop()
        (raw,) = [raw for raw in consumer.read().raw
                  if pb.TracePacket.FromString(raw).HasField("trace_config")]
        self.assertIn(varint(len(encoded)) + encoded, raw)

    def test_fields_for_android_are_taken_and_passed_on_in_silence(self):
        wanted = config(
            TEST_SOURCE, notify_traceur=True, allow_user_build_tracing=True,
            statsd_logging="STATSD_LOGGING_ENABLED",
            statsd_metadata=pb.TraceConfig.StatsdMetadata(
                triggering_alert_id=1, triggering_config_uid=2,
                triggering_config_id=3, triggering_subscription_id=4),
            incident_report_config=pb.TraceConfig.IncidentReportConfig(
                destination_package="a", destination_class="b",
                privacy_level=5, skip_incidentd=True, skip_dropbox=True),
            android_report_config=pb.TraceConfig.AndroidReportConfig(
                reporter_service_package="a", reporter_service_class="b",
                skip_report=True, use_pipe_in_framework_for_testing=True),
            guardrail_overrides=pb.TraceConfig.GuardrailOverrides(
                max_upload_per_day_bytes=1))
        consumer = self.consumer()
        consumer.enable(wanted)
        self.assertEqual(list(consumer.stop().warnings), [])
        self.assertEqual(
            consumer.read().of("trace_config")[0].trace_config, wanted)

    def test_fields_for_the_command_change_nothing_here(self):
        producer = self.producer("p")
        consumer = self.session(
            activate_triggers=["t"],
            cmd_trace_start_delay=pb.TraceConfig.CmdTraceStartDelay(
                min_delay_ms=60000, max_delay_ms=60000))
        producer.wait_started()
        self.assertEqual(list(consumer.stop().warnings), [])

    def test_attributes_are_a_packet_of_the_trace(self):
        Attribute = pb.TraceAttributes.Attribute
        wanted = pb.TraceAttributes(attribute=[
            Attribute(key="branch", string_value="main"),
            Attribute(key="build", long_value=-4711)])
        consumer = self.session(
            trace_attributes=wanted,
            builtin_data_sources=Builtin(disable_trace_config=True))
        consumer.stop()
        trace = consumer.read()
        (packet,) = trace.of("trace_attributes")
        self.assertEqual(packet.trace_attributes, wanted)
        self.assertEqual(packet.trusted_packet_sequence_id, 1)
        plain = self.session()
        plain.stop()
        self.assertEqual(plain.read().of("trace_attributes"), [])

    def test_the_uuid_is_the_configs_or_a_new_one(self):
        seen = set()
        for fields in ({"trace_uuid_msb": -5, "trace_uuid_lsb": 6}, {}, {}):
            consumer = self.session(**fields)
            consumer.stop()
            uuid = consumer.read().of("trace_uuid")[0].trace_uuid
            seen.add((uuid.msb, uuid.lsb))
        self.assertEqual(len(seen), 3)
        self.assertIn((-5, 6), seen)

    def test_bug_report_fields_are_shown(self):
        consumer = self.session(bugreport_score=7,
                                bugreport_filename="a-B_1.pftrace")
        (session,) = consumer.query().tracing_sessions
        self.assertEqual(session.bugreport_score, 7)
        self.assertEqual(session.bugreport_filename, "a-B_1.pftrace")
        for bad in ("a/b", "..\\c", "x y", "\u00e9"):
            self.assert_refused(config("x", bugreport_filename=bad),
                                "bugreport_filename")


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


class Buffers(Fields):
    def test_every_buffer_works_as_version_2_does(self):
        producer = self.producer("p")
        two = buffers(64)
        two[0].experimental_mode = \
            pb.TraceConfig.BufferConfig.TRACE_BUFFER_V2
        consumer = self.session(buffers=two)
        writer = producer.writer()
        writer.number(5)
        self.assertEqual(list(consumer.stop().warnings), [])
        self.assert_numbers(consumer.read(), [5])

    def test_sources_go_to_buffers_by_index_and_by_name(self):
        producer = self.producer("p", ["one", "two", "three"])
        three = buffers(64, 64, 64)
        for buffer, name in zip(three, ("a", "b", "c")):
            buffer.name = name
        consumer = self.session(
            source("one", target_buffer=2),
            source("two", target_buffer_name="b"),
            source("three"), buffers=three)
        for instance in producer.wait_started(3):
            producer.writer(instance).number(1)
        ids = {i.config.name: i.buffer for i in producer.started()}
        self.assertEqual(len(set(ids.values())), 3)
        self.assertEqual([b.chunks_written for b in
                          consumer.stats().buffer_stats], [1, 1, 1])


class Files(Fields):
    def test_a_file_may_be_synced_after_each_write(self):
        """What fdatasync does cannot be seen; that it harms nobody can."""
        for mode in ("FFLUSH_ENABLED", "FFLUSH_DISABLED"):
            producer = self.producer("p")
            path = self.path(mode)
            fd = os.open(path, os.O_RDWR | os.O_CREAT)
            consumer = self.consumer()
            consumer.enable(config(
                TEST_SOURCE, write_into_file=True, file_write_period_ms=100,
                fflush_post_write=mode), [fd])
            os.close(fd)
            producer.writer().number(7)
            response = consumer.stop()
            self.assertFalse(response.error)
            self.assertEqual(list(response.warnings), [])
            self.assert_numbers(Trace.from_file(path), [7])
            producer.close()


class Command(Fields):
    def test_record_warns_before_it_starts(self):
        odd = config(TEST_SOURCE, duration_ms=1)
        odd.buffers[0].MergeFromString(LATER_INSIDE)
        lines = self.record(odd)
        self.assertIn("warning: buffers field 99 of the trace config has no "
                      "effect", lines[0])
        # The collector says the same: once is enough.
        self.assertEqual([line for line in lines[1:] if "effect" in line], [])

    def record(self, wanted, daemon=0):
        """What record says on standard error, by line."""
        with open(self.path("config"), "wb") as file:
            file.write(wanted.SerializeToString())
        ran = subprocess.run(
            [os.environ["TRIBUTARY"], "record", "--connect",
             self.daemons[daemon].address("consumers"),
             "-c", self.path("config"), "-o", self.path("trace")],
            env=environment(), timeout=60, stderr=subprocess.PIPE, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stderr.splitlines()

    def test_record_says_what_only_the_collector_knew(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a daemon that leaves root")
        os.chmod(self.folder, 0o711)
        self.daemon(flags=["--user", "nobody"], producer=[self.path("p2")],
                    consumer=[self.path("c2")])
        lines = self.record(config(TEST_SOURCE, duration_ms=1,
                                   priority_boost=Boost(
                                       policy="POLICY_SCHED_FIFO",
                                       priority=5)), daemon=1)
        self.assertTrue(any("the collector warns: priority_boost" in line
                            for line in lines), lines)


class BuiltinSources(Fields):
    def test_the_primary_clock_is_the_one_that_was_asked_for(self):
        consumer = self.session(builtin_data_sources=Builtin(
            primary_trace_clock=3))  # MONOTONIC
        consumer.stop()
        self.assertEqual(
            {p.clock_snapshot.primary_trace_clock
             for p in consumer.read().of("clock_snapshot")}, {3})

    def test_histograms_can_be_left_out(self):
        for off in (False, True):
            with self.subTest(off):
                producer = self.producer("p")
                consumer = self.session(builtin_data_sources=Builtin(
                    disable_chunk_usage_histograms=off))
                producer.writer().number(2)
                consumer.stop()
                stats = consumer.read().stats()
                self.assertEqual(bool(stats.writer_stats), not off)
                producer.close()
                consumer.close()

    def test_there_are_no_extension_descriptors_either_way(self):
        for off in (False, True):
            consumer = self.session(builtin_data_sources=Builtin(
                disable_extension_descriptors=off))
            self.assertEqual(list(consumer.stop().warnings), [])
            self.assertEqual(consumer.read().of("extension_descriptor"), [])

    def clocks_of_timers(self):
        """What the daemon's timerfds count by: 7 is CLOCK_BOOTTIME."""
        folder, out = f"/proc/{self.daemons[0].pid}/fdinfo", []
        for fd in os.listdir(folder):
            try:
                with open(os.path.join(folder, fd)) as file:
                    out += [int(line.split()[1]) for line in file
                            if line.startswith("clockid:")]
            except OSError:
                pass  # closed meanwhile
        return out

    def test_a_duration_may_go_on_while_the_machine_sleeps(self):
        producer = self.producer("p")
        before = self.clocks_of_timers()
        consumer = self.session(duration_ms=600_000,
                                prefer_suspend_clock_for_duration=True)
        (instance,) = producer.wait_started()
        self.assertTrue(instance.config.prefer_suspend_clock_for_duration)
        consumer.query()
        self.assertEqual(sorted(self.clocks_of_timers()),
                         sorted(before + [7]))
        consumer.free()
        self.assertEqual(self.clocks_of_timers(), before)
        began = time.monotonic()
        short = self.session(duration_ms=300,
                             prefer_suspend_clock_for_duration=True)
        self.assertFalse(short.ended().error)
        self.assertGreaterEqual(time.monotonic() - began, 0.29)

    def test_so_may_snapshots(self):
        consumer = self.session(builtin_data_sources=Builtin(
            snapshot_interval_ms=100, prefer_suspend_clock_for_snapshot=True))
        consumer.query()
        self.assertIn(7, self.clocks_of_timers())
        seen = []

        def three():
            seen.extend(consumer.read().of("synchronization_marker"))
            return len(seen) >= 3
        self.until(three, "three markers")


class ConcurrentSessions(Fields):
    def watcher(self, **fields):
        return self.session(builtin_data_sources=Builtin(
            enable_concurrent_session_events=True), **fields)

    def events(self, consumer):
        consumer.stop()
        return [p.concurrent_session_event for p in
                consumer.read().of("concurrent_session_event")]

    def test_what_others_do_is_in_the_trace(self):
        before = self.session(unique_session_name="before")
        watcher = self.watcher(unique_session_name="watcher")
        other = self.consumer()
        other.enable(config("x", "y", unique_session_name="other",
                            deferred_start=True))
        other.start_tracing()
        other.stop()
        before.free()
        events = self.events(watcher)
        told = [(e.session_name, Event.State.Name(e.state)) for e in events]
        self.assertEqual(told, [
            ("before", "STATE_STARTED"),
            ("other", "STATE_CONFIGURED"),
            ("other", "STATE_STARTED"),
            ("other", "STATE_DISABLING_WAITING_STOP_ACKS"),
            ("other", "STATE_DISABLED"),
            ("before", "STATE_DISABLED")])
        mine = [e for e in events if e.session_name == "other"]
        self.assertEqual({e.consumer_uid for e in mine}, {os.getuid()})
        self.assertEqual({e.num_data_sources for e in mine}, {2})
        self.assertEqual(len({e.session_id for e in events}), 2)

    def test_a_clone_is_told_of_too(self):
        self.session(unique_session_name="source")
        watcher = self.watcher()
        self.assertTrue(self.consumer().clone(
            unique_session_name="source").success)
        self.assertIn(Event.STATE_CLONED_READ_ONLY,
                      {e.state for e in self.events(watcher)})

    def test_nothing_is_said_unless_it_was_asked_for(self):
        quiet = self.session()
        self.session(unique_session_name="other").stop()
        self.assertEqual(self.events(quiet), [])


class Guardrails(Fields):
    def guarded(self, *names, **fields):
        return config(*names, enable_extra_guardrails=True, **fields)

    def test_long_traces_are_refused(self):
        trigger = pb.TraceConfig.TriggerConfig
        self.assert_refused(self.guarded("x", duration_ms=DAY_MS + 1),
                            DAY_MS, "enable_extra_guardrails")
        self.assert_refused(self.guarded("x", trigger_config=trigger(
            trigger_mode="STOP_TRACING", trigger_timeout_ms=DAY_MS + 1,
            triggers=[trigger.Trigger(name="t")])), DAY_MS)

    def test_a_deferred_start_is_refused(self):
        self.assert_refused(self.guarded("x", deferred_start=True),
                            "deferred_start")

    def test_odd_and_large_buffers_are_refused(self):
        self.assert_refused(self.guarded("x", size_kb=1021), "multiple of 4")
        large = buffers(65536, 65540)
        self.assert_refused(self.guarded("x", buffers=large), 131076, 131072)
        over = self.consumer()
        over.enable(self.guarded(
            "x", buffers=large,
            guardrail_overrides=pb.TraceConfig.GuardrailOverrides(
                max_tracing_buffer_size_kb=131076)))
        over.query()
        self.assertFalse(over.session.ended())

    def test_two_of_one_name_need_a_pause(self):
        first = self.consumer()
        first.enable(self.guarded("x", unique_session_name="daily"))
        first.stop()
        first.close()
        self.assert_refused(self.guarded("x", unique_session_name="daily"),
                            "daily", "began less than 300 s ago")
        other = self.consumer()
        other.enable(self.guarded("x", unique_session_name="weekly"))
        other.query()
        self.assertFalse(other.session.ended())

    def test_producers_are_told(self):
        producer = self.producer("p")
        consumer = self.consumer()
        consumer.enable(self.guarded(TEST_SOURCE))
        self.assertTrue(
            producer.wait_started()[0].config.enable_extra_guardrails)


class TooMuch(Fields):
    """Bounds that are no settings; others are in test_refusals.py."""

    def test_bytes_that_are_no_config(self):
        consumer = self.consumer()
        consumer.session = consumer.call(
            "EnableTracing", Raw(b"\x0a\x02\x0a\x05"))
        self.assertIn("does not parse", consumer.ended().error)

    def test_a_config_that_would_fill_a_frame(self):
        self.assert_refused(config("x" * 130500), "too large", 130048)

    def test_more_data_sources_than_there_may_be(self):
        self.assert_refused(config(*["x"] * 4097), "4097 > 4096")

    def test_more_patterns_than_there_may_be(self):
        self.assert_refused(config(source(
            "x", producer_name_regex_filter=["p"] * 257)), "257 > 256")

    def test_more_semaphores_than_there_may_be(self):
        self.assert_refused(config("x", session_semaphores=[
            pb.TraceConfig.SessionSemaphore(name="s")] * 65), "65 > 64")

    def test_a_name_that_is_too_long(self):
        self.assert_refused(config("x", unique_session_name="n" * 1025),
                            "limits.max_name_bytes")

    def test_a_path_for_a_file_that_nobody_wants(self):
        self.assert_refused(config("x", output_path="f"),
                            "output_path", "write_into_file")


class Raw:
    """Bytes in the place of a message."""

    def __init__(self, data):
        self.data = data

    def SerializeToString(self):
        return self.data


class Lockdown(test_trust.Trust):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can act as others")
        self.start()

    def set_lockdown(self, operation):
        consumer = self.session("x", lockdown_mode=operation)
        consumer.query()
        self.assertFalse(consumer.session.ended())
        consumer.close()

    def test_it_lets_in_the_services_own_user_alone(self):
        with acting_as(ANN):
            there = self.producer("there")
        there.sync()
        self.set_lockdown("LOCKDOWN_SET")
        self.wait_log("set lockdown_mode")
        own = self.producer("own")
        # It stays set, though its session is gone.
        with acting_as(ANN), self.assertRaises(Rejected):
            self.producer("late")
        self.wait_log("uid 31001", "lockdown_mode is set")
        consumer = self.session()
        own.wait_started()
        there.sync()
        self.assertEqual(there.started(), [])
        consumer.close()
        self.set_lockdown("LOCKDOWN_UNCHANGED")
        self.set_lockdown("LOCKDOWN_CLEAR")
        self.wait_log("cleared lockdown_mode")
        with acting_as(ANN):
            late = self.producer("late")
        self.session()
        there.wait_started()
        late.wait_started()

    def test_only_an_admin_sets_or_clears_it(self):
        with acting_as(ANN):
            ann = self.consumer()
        for operation in ("LOCKDOWN_SET", "LOCKDOWN_CLEAR"):
            self.assertIn("only an admin", ann.refused(
                config("x", lockdown_mode=operation)))
        ann.enable(config("x", lockdown_mode="LOCKDOWN_UNCHANGED"))
        ann.query()
        self.assertFalse(ann.session.ended())


class Priority(Fields):
    def boosted(self, policy, priority):
        consumer = self.consumer()
        consumer.enable(config(TEST_SOURCE, priority_boost=Boost(
            policy=policy, priority=priority)))
        consumer.query()
        self.assertFalse(consumer.session.ended())
        return consumer

    def level(self):
        pid = self.daemons[-1].pid
        policy = os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK
        return (policy, os.sched_getparam(pid).sched_priority,
                os.getpriority(os.PRIO_PROCESS, pid))

    def may_boost(self):
        """Whether this machine lets root do it: containers may not."""
        child = os.fork()
        if child == 0:
            try:
                os.setpriority(os.PRIO_PROCESS, 0, -1)
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
                os._exit(0)
            except OSError:
                os._exit(1)
        return os.waitpid(child, 0)[1] == 0

    def test_the_highest_of_all_sessions_counts_while_it_lasts(self):
        if not self.may_boost():
            self.skipTest("this machine refuses higher priorities")
        before = self.level()
        nicer = self.boosted("POLICY_SCHED_OTHER", 5)
        self.assertEqual(self.level(), (os.SCHED_OTHER, 0, -5))
        fifo = self.boosted("POLICY_SCHED_FIFO", 3)
        self.assertEqual(self.level()[:2], (os.SCHED_FIFO, 3))
        lower = self.boosted("POLICY_SCHED_FIFO", 2)
        self.assertEqual(self.level()[:2], (os.SCHED_FIFO, 3))
        fifo.stop()
        fifo.free()
        self.assertEqual(self.level()[:2], (os.SCHED_FIFO, 2))
        lower.free()
        self.assertEqual(self.level(), (os.SCHED_OTHER, 0, -5))
        self.assertEqual(list(nicer.stop().warnings), [])
        nicer.free()
        self.assertEqual(self.level(), before)

    def test_threads_of_the_service_do_not_inherit_it(self):
        if not self.may_boost():
            self.skipTest("this machine refuses higher priorities")
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        consumer = self.consumer()
        self.boosted("POLICY_SCHED_FIFO", 3)
        consumer.enable(config(TEST_SOURCE, write_into_file=True), [fd])
        os.close(fd)
        pid = self.daemons[0].pid
        tasks = f"/proc/{pid}/task"
        self.until(lambda: len(os.listdir(tasks)) > 1, "a writer thread")
        self.assertEqual(
            {os.sched_getscheduler(int(t)) & ~os.SCHED_RESET_ON_FORK
             for t in os.listdir(tasks) if int(t) != pid}, {os.SCHED_OTHER})

    def test_what_the_system_refuses_is_a_warning_not_a_failure(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a daemon that leaves root")
        os.chmod(self.folder, 0o711)
        daemon = self.daemon(
            flags=["--user", "nobody", "--seccomp"],
            producer=[self.path("p2")], consumer=[self.path("c2")])
        self.assertNotEqual(pwd.getpwnam("nobody").pw_uid, 0)
        before = self.level()
        consumer = self.consumer(daemon.address("consumers"))
        consumer.enable(config(TEST_SOURCE, priority_boost=Boost(
            policy="POLICY_SCHED_FIFO", priority=5)))
        self.until(lambda: "refuses the collector SCHED_FIFO 5"
                   in daemon.log(), "the log says so")
        response = consumer.stop()
        self.assertFalse(response.error)
        (warning,) = response.warnings
        self.assertIn("priority_boost", warning)
        self.assertEqual(self.level(), before)

    def test_boosts_that_make_no_sense_are_refused(self):
        for policy, priority in (("POLICY_UNSPECIFIED", 1),
                                 ("POLICY_SCHED_OTHER", 21),
                                 ("POLICY_SCHED_FIFO", 0),
                                 ("POLICY_SCHED_FIFO", 100)):
            self.assert_refused(
                config("x", priority_boost=Boost(policy=policy,
                                                 priority=priority)),
                "Invalid priority boost config")


class Limits(Case):
    def start(self, limits, *flags):
        with open(self.path("settings"), "w") as file:
            file.write(f"limits {{ {limits} }}\n")
        self.daemon(flags=["--config", self.path("settings"), *flags])

    def test_memory_that_the_machine_has_not(self):
        self.start("min_free_memory_kb: 1000000000000")
        error = self.consumer().refused(config("x"))
        self.assertIn("Buffers of 1024 KiB do not fit into the machine's "
                      "memory", error)
        self.assertIn("limits.min_free_memory_kb", error)

    def test_a_confined_daemon_sees_the_machines_memory_too(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a daemon that leaves root")
        os.chmod(self.folder, 0o711)
        self.start("min_free_memory_kb: 1000000000000", "--user", "nobody",
                   "--seccomp")
        self.assertIn("limits.min_free_memory_kb",
                      self.consumer().refused(config("x")))

    def test_memory_may_be_left_to_the_kernel(self):
        self.start("min_free_memory_kb: 1000000000000 "
                   "ignore_free_memory: true")
        consumer = self.session("x")
        consumer.query()
        self.assertFalse(consumer.session.ended())

    def test_what_others_were_promised_counts(self):
        """Nobody has written a byte yet."""
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) for line in file
                        if line.startswith("MemAvailable:"))
        half = min(free * 6 // 10, 2**32 // 1024 * 1024 - 4096)
        if half != free * 6 // 10:
            self.skipTest("this machine has more memory than a test can ask")
        self.start(f"max_total_buffer_kb: {10 * free}")
        first = self.session("x", size_kb=half)
        first.query()
        self.assertFalse(first.session.ended())
        second = self.consumer()
        self.assertIn("promised to others",
                      second.refused(config("x", size_kb=half)))
        first.free()
        second.enable(config("x", size_kb=half))
        second.query()
        self.assertFalse(second.session.ended())

    def test_buffers_and_the_length_of_traces(self):
        self.start("max_buffers_per_session: 2 max_trace_duration_ms: 99000 "
                   "max_total_buffer_kb: 200")
        consumer = self.consumer()
        self.assertIn("(3 > 2)", consumer.refused(
            config("x", buffers=buffers(4, 4, 4))))
        self.assertIn("99001 ms > 99000 ms", consumer.refused(
            config("x", duration_ms=99_001)))
        self.assertIn("limits.max_total_buffer_kb", consumer.refused(
            config("x", size_kb=201)))
        consumer.enable(config("x", buffers=buffers(100, 100),
                               duration_ms=99_000))
        consumer.query()
        self.assertFalse(consumer.session.ended())
        self.assertIn("200 KiB of 200 KiB are in use", self.consumer()
                      .refused(config("x", size_kb=4)))


if __name__ == "__main__":
    sys.exit(tap.main())
