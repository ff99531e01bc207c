#!/usr/bin/env python3
"""`tributary record` beside one recording: sessions that are left behind, come
back to, copied, triggered and asked about; `tributary snapshot`, `trigger`."""

import glob
import os
import sys
import time

from harness import tap
from harness.case import TEST_SOURCE, pb
from harness.consumer import config as built
from harness.recording import RecordCase
from harness.trace import Trace

RING = f"""
    buffers {{ size_kb: 1024 }} unique_session_name: "ring"
    data_sources {{ config {{ name: "{TEST_SOURCE}" }} }} """
FILE = RING + "write_into_file: true file_write_period_ms: 3600000 "


def triggers(mode, timeout=60_000, delay=1):
    return RING + f"""trigger_config {{
        trigger_mode: {mode} trigger_timeout_ms: {timeout}
        triggers {{ name: "one" stop_delay_ms: {delay} }}
        triggers {{ name: "two" stop_delay_ms: {delay} }} }}"""


class Detached(RecordCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("traces"))
        self.daemon(flags=["--trace-dir", self.path("traces")])
        self.p = self.producer("p")

    def detach(self, text=FILE, **options):
        return self.record("--detach=k", "-c", self.config(text), "-o", "t",
                           **options)

    def is_detached(self, status, key="k"):
        return self.record(f"--is_detached={key}").end(status)

    def test_a_session_goes_on_and_can_be_come_back_to(self):
        self.is_detached(2)
        self.assertIn("--attach=k", self.detach().end())
        self.p.wait_started()
        writer = self.p.writer()
        writer.number(10)
        self.assertEqual(self.is_detached(0), "")
        self.is_detached(2, key="other")
        self.is_detached(0)
        attached = self.record("--attach=k")
        asking = self.consumer()
        self.until(lambda: asking.query().num_sessions_started == 1 and
                   self.record("--is_detached=k").process.wait() == 2,
                   "it is attached")
        writer.number(10)
        self.assertIsNone(attached.process.poll())
        attached.interrupt()
        self.assertIn("given with --detach", attached.end())
        self.assert_numbers(self.trace(), [20])
        self.is_detached(2)

    def test_none_goes_on_whose_file_cannot_be_made(self):
        config = self.config(FILE + 'output_path: "x"')
        self.record("--detach=k", "-c", config).end()
        config = self.config(FILE.replace("ring", "other") +
                             'output_path: "x"')
        refused = self.record("--detach=l", "-c", config).end(1)
        self.assertIn("output_path: the file exists already", refused)
        self.is_detached(0)
        self.is_detached(2, key="l")
        self.assertEqual(self.consumer().query().num_sessions, 1)
        self.record("--attach=k", "--stop").end()

    def test_stop_ends_it_with_a_flush(self):
        self.detach().end()
        self.p.wait_started()
        writer = self.p.writer()
        self.p.before_flush = lambda command: writer.number(7, ask=False)
        self.record("--attach=k", "--stop").end()
        self.assertGreaterEqual(len(self.trace().of("for_testing")), 7)
        self.assertEqual(self.consumer().query().num_sessions, 0)

    def test_one_that_ended_meanwhile_is_gone_and_its_file_complete(self):
        self.detach(FILE + "duration_ms: 50").end()
        asking = self.consumer()
        self.until(lambda: asking.query().num_sessions == 0,
                   "it has ended")
        self.is_detached(2)
        self.assertIn("no detached session", self.record("--attach=k").end(2))
        self.trace()

    def test_nothing_to_attach_to_is_2_and_nobody_to_ask_is_1(self):
        self.assertIn("no detached session", self.record("--attach=k").end(2))
        for flag in ("--attach=k", "--is_detached=k"):
            self.assertIn("start tributaryd", self.record(
                flag, connect=self.path("nobody")).end(1))

    def test_nothing_is_left_behind_that_cannot_be(self):
        self.assertIn("write_into_file", self.detach(RING).end(1))
        self.assertIn("the collector says",
                      self.detach(FILE + "buffers { size_kb: 0 }").end(1))
        self.assertFalse(os.path.exists(self.path("t")))
        self.assertEqual(self.consumer().query().num_sessions, 0)

    def test_a_session_without_a_file_is_left_alone(self):
        consumer = self.session()
        consumer.detach("k")
        self.assertIn("tributary snapshot", self.record("--attach=k").end(1))
        self.is_detached(0)


class Remote(RecordCase):
    def test_a_file_that_cannot_travel_is_told(self):
        self.daemon(consumer=["127.0.0.1:0"])
        errors = self.record("--detach=k", "-c", self.config(FILE), "-o",
                             "t").end(1)
        self.assertIn("output_path", errors)

    def test_a_snapshot_is_read_where_a_file_cannot_travel(self):
        self.daemon(consumer=[self.path("c"), "127.0.0.1:0"])
        producer = self.producer("p")
        # Nobody vouches for whoever comes over TCP.
        self.session(unique_session_name="ring", bugreport_score=1)
        producer.writer().number(2000)
        self.run_command("snapshot", "ring", "-o", "t", "--connect",
                         self.daemons[0].address("consumers", "tcp"))
        self.assert_numbers(self.trace(), [2000])


    def test_a_trigger_may_come_from_afar(self):
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        self.producer("p")
        recording = self.record("-c", self.config(triggers("STOP_TRACING")),
                                "-o", "t")
        asking = self.consumer()
        self.until(lambda: asking.query().num_sessions_started == 1,
                   "it records")
        self.run_command("trigger", "one", "--connect",
                         self.daemons[0].address("producers", "tcp"))
        recording.end()
        (packet,) = self.trace().of("trigger")
        self.assertEqual(packet.trigger.trusted_producer_uid,
                         os.getuid() or 65534)  # nobody may claim root
        _, errors = self.run_command("trigger", "one", "--connect",
                                     self.daemons[0].address("consumers"),
                                     status=1)
        self.assertIn("ProducerPort", errors)


class Copies(RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon()
        self.p = self.producer("p")

    def test_a_copy_by_name_and_number_while_the_session_goes_on(self):
        consumer = self.session(unique_session_name="ring")
        writer = self.p.writer()
        writer.number(10)
        (session,) = consumer.query().tracing_sessions
        self.record("--clone-by-name", "ring", "-o", "a").end()
        self.record("--clone", str(session.id), "-o", "b").end()
        out, errors = self.run_command("record", "--clone-by-name", "ring",
                                       "--clone-for-bugreport", "-o", "-")
        writer.number(5)
        consumer.stop()
        for copy in self.trace("a"), self.trace("b"), Trace.from_bytes(out):
            self.assert_numbers(copy, [10])
            self.assertTrue(copy.of("trace_config"))
        self.assertIn("p, pid", errors)
        self.assert_numbers(consumer.read(), [15])
        self.assertEqual(os.stat(self.path("a")).st_mode & 0o777, 0o600)

    def test_the_collector_writes_the_copy_of_a_session_with_a_file(self):
        self.record("--detach=k", "-c", self.config(FILE), "-o", "t").end()
        self.p.wait_started()
        self.p.writer().number(10)
        self.run_command("snapshot", "ring", "-o", "copy")
        self.assert_numbers(self.trace("copy"), [10])
        self.record("--attach=k", "--stop").end()
        self.assert_numbers(self.trace(), [10])

    def test_what_is_not_there_cannot_be_copied(self):
        for words in (["--clone", "99"], ["--clone-by-name", "none"]):
            self.assertIn("the collector says",
                          self.record(*words, "-o", "t").end(1))
            self.assertFalse(os.path.exists(self.path("t")))
        _, errors = self.run_command("snapshot", "none", status=1)
        self.assertIn("the collector says", errors)
        self.assertEqual(glob.glob(self.path("*.pftrace")), [])

    def test_a_snapshot_nobody_named_is_called_after_its_session(self):
        consumer = self.session(unique_session_name="a b/c")
        (session,) = consumer.query().tracing_sessions
        self.p.writer().number(3)
        for _ in range(2):
            self.run_command("snapshot", "a b/c")
        self.run_command("snapshot", str(session.id))
        names = sorted(map(os.path.basename,
                           glob.glob(self.path("*.pftrace"))))
        self.assertEqual(len(names), 3)
        self.assertTrue(names[0].startswith("a_b_c-20"), names)
        self.assertTrue(names[2].startswith(f"session-{session.id}-20"), names)
        for name in names:
            self.assert_numbers(self.trace(name), [3])

    def test_no_clobber_keeps_what_is_there(self):
        self.session(unique_session_name="ring")
        with open(self.path("t"), "w", encoding="utf-8") as file:
            file.write("precious")
        _, errors = self.run_command("snapshot", "ring", "-o", "t",
                                     "--no-clobber", status=1)
        self.assertIn("--no-clobber", errors)
        self.assertEqual(os.path.getsize(self.path("t")), 8)


class Triggered(RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon()
        self.p = self.producer("p")

    def test_each_trigger_saves_a_snapshot(self):
        recording = self.record("-c", self.config(triggers("CLONE_SNAPSHOT")),
                                "-o", "t")
        self.p.wait_started()
        writer = self.p.writer()
        for n, name in enumerate(["one", "two", "one"]):
            writer.number(5)
            self.run_command("trigger", name)
            recording.says(f"in t.{n}")
        recording.interrupt()
        recording.end()
        for n, name in enumerate(["one", "two", "one"]):
            copy = self.trace(f"t.{n}")
            self.assert_numbers(copy, [5 * n + 5])
            (packet,) = copy.of("clone_snapshot_trigger")
            self.assertEqual(packet.clone_snapshot_trigger.trigger_name, name)
            self.assertEqual(packet.clone_snapshot_trigger.producer_name,
                             "perfetto_cmd_producer")
        self.assertFalse(os.path.exists(self.path("t")))
        self.assertFalse(os.path.exists(self.path("t.3")))

    def test_files_of_an_earlier_run_may_be_kept(self):
        for name in ("t.0", "t.2"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("precious")
        recording = self.record("-c", self.config(triggers("CLONE_SNAPSHOT")),
                                "-o", "t", "--no-clobber", "-q")
        self.p.wait_started()
        self.p.writer().number(5)
        for name in ("t.1", "t.3"):
            self.run_command("trigger", "one")
            self.until(lambda: os.path.exists(self.path(name)), name)
        recording.interrupt()
        self.assertEqual(recording.end(), "")
        for name in ("t.1", "t.3"):
            self.assert_numbers(self.trace(name), [5])
        for name in ("t.0", "t.2"):
            self.assertEqual(os.path.getsize(self.path(name)), 8)

    def test_a_snapshot_that_fails_is_told_and_the_session_goes_on(self):
        os.mkdir(self.path("t.0"))
        recording = self.record("-c", self.config(triggers("CLONE_SNAPSHOT")),
                                "-o", "t")
        self.p.wait_started()
        self.run_command("trigger", "one")
        recording.says("cannot write to t.0")
        self.run_command("trigger", "one")
        recording.says("in t.1")
        recording.interrupt()
        self.assertIn("not every snapshot", recording.end(1))

    def test_snapshots_need_a_name_and_no_trigger_is_told(self):
        text = self.config(triggers("CLONE_SNAPSHOT", timeout=100))
        self.assertIn("FILE.0", self.record("-c", text, "-o", "-").end(1))
        self.assertIn("no trigger came",
                      self.record("-c", text, "-o", "t").end())
        self.assertFalse(os.path.exists(self.path("t")))

    def test_a_stop_trigger_saves_snapshots_where_they_are_to_be_had(self):
        text = triggers("STOP_TRACING").replace(
            "trigger_mode", "use_clone_snapshot_if_available: true "
            "trigger_mode")
        recording = self.record("-c", self.config(text), "-o", "t")
        self.p.wait_started()
        self.p.writer().number(5)
        self.run_command("trigger", "one")
        recording.says("in t.0")
        recording.interrupt()
        recording.end()
        self.assert_numbers(self.trace("t.0"), [5])
        self.assertFalse(os.path.exists(self.path("t")))

    def test_a_trigger_starts_and_ends_a_recording(self):
        recording = self.record("-c", self.config(
            triggers("START_TRACING", delay=300)), "-o", "t")
        self.p.wait_command("setup_data_source")
        self.assertFalse(self.p.saw("start_data_source"))
        self.p.number_at_flush(5)
        self.run_command("trigger", "two")
        recording.end()
        self.assert_numbers(self.trace(), [5])
        self.assertEqual(self.trace().of("trigger")[0].trigger.trigger_name,
                         "two")

    def test_a_trigger_that_never_comes_leaves_an_empty_trace(self):
        errors = self.record("-c", self.config(
            triggers("STOP_TRACING", timeout=100)), "-o", "t").end()
        self.assertIn("no trigger came", errors)
        self.assertEqual(os.path.getsize(self.path("t")), 0)

    def test_a_config_of_triggers_only_activates_them(self):
        recording = self.record("-c", self.config(
            triggers("STOP_TRACING")), "-o", "t")
        self.p.wait_started()
        self.p.writer().number(5)
        text = self.config('activate_triggers: "none" '
                           'activate_triggers: "one"')
        self.assertIn('"none" and "one"', self.record("-c", text).end())
        recording.end()
        self.assert_numbers(self.trace(), [5])
        self.daemons[0].stop()
        self.record("-c", text, "-q").end(1)
        self.run_command("trigger", "one", status=1)


class Asked(RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon()

    def test_the_state_comes_as_bytes_and_as_text(self):
        self.producer("p")
        self.session(unique_session_name="ring")
        out, errors = self.run_command("record", "--query-raw")
        state = pb.TracingServiceState.FromString(out)
        self.assertEqual([p.name for p in state.producers], ["p"])
        self.assertEqual([s.ds_descriptor.name for s in state.data_sources],
                         [TEST_SOURCE])
        self.assertEqual(state.tracing_sessions[0].unique_session_name,
                         "ring")
        self.assertEqual(errors, "")
        out, _ = self.run_command("record", "--query")
        for word in (b"p (1)", TEST_SOURCE.encode(), b"ring", b"STARTED"):
            self.assertIn(word, out)

    def test_attributes_are_in_the_trace(self):
        text = self.config(RING + """duration_ms: 50 trace_attributes {
            attribute { key: "a" string_value: "old" }
            attribute { key: "kept" long_value: 3 } }""")
        self.record("-c", text, "-o", "t", "--add-attribute", "a=b=c",
                    "--add-attribute", "build=-17", "--add-attribute",
                    "name=007", "--add-attribute", "flag",
                    "--config-uid", "4").end()
        (packet,) = self.trace().of("trace_config")
        found = {a.key: a.long_value if a.HasField("long_value")
                 else a.string_value
                 for a in packet.trace_config.trace_attributes.attribute}
        self.assertEqual(found, {"kept": 3, "a": "b=c", "build": -17,
                                 "name": "007", "flag": ""})
        self.assertEqual(packet.trace_config.statsd_metadata.
                         triggering_config_uid, 4)

    def test_a_delay_comes_before_the_session(self):
        began = time.monotonic()
        self.record("-c", self.config(
            RING + "duration_ms: 10 cmd_trace_start_delay "
            "{ min_delay_ms: 200 max_delay_ms: 210 }"), "-o", "t").end()
        self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_half_a_delay_is_an_error(self):
        self.assertIn("both", self.record("-c", self.config(
            RING + "cmd_trace_start_delay { min_delay_ms: 1 }"),
            "-o", "t").end(1))

    def test_a_binary_config_is_passed_on_as_it_is(self):
        producer = self.producer("p")
        config = built(TEST_SOURCE, duration_ms=100)
        raw = config.SerializeToString() + b"\xfa\x7f\x03odd"  # field 2047
        with open(self.path("config.pb"), "wb") as file:
            file.write(raw)
        self.record("-c", "config.pb", "-o", "t").end()
        self.assertTrue(producer.saw("start_data_source"))
        (packet,) = self.trace().of("trace_config")
        self.assertIn(b"\xfa\x7f\x03odd",
                      packet.trace_config.SerializeToString())


if __name__ == "__main__":
    sys.exit(tap.main())
