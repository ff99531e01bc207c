#!/usr/bin/env python3
"""`tributary sessions`, stats, stop, flush and start."""

import contextlib
import json
import os
import pty
import socket
import subprocess
import sys

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.consumer import source
from harness.daemon import environment
from harness.ipc import Connection
from harness.trace import Trace

ANN, BOB = 31001, 31002  # uids that nobody on a test machine has


@contextlib.contextmanager
def acting_as(uid):
    """The kernel notes the effective user of whoever connects."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Commands(Case):
    def setUp(self):
        super().setUp()
        self.start_collector()

    def start_collector(self):
        self.address = self.daemon(
            flags=["--trace-dir", self.folder]).consumer_path

    def spawn(self, *words, uid=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            [os.environ["TRIBUTARY"], words[0], "--connect", self.address,
             *words[1:]],
            env=environment(), user=uid, **options)

    def finish(self, process):
        """While it runs the producers of this test are served."""
        self.until(lambda: process.poll() is not None, "the command ends")
        out, err = process.communicate()
        return (process.returncode, (out or b"").decode(),
                (err or b"").decode())

    def run_command(self, *words, **options):
        return self.finish(self.spawn(*words, **options))

    def must(self, *words, **options):
        code, out, err = self.run_command(*words, **options)
        self.assertEqual((code, err), (0, ""), out)
        return out

    def must_fail(self, *words, **options):
        code, out, err = self.run_command(*words, **options)
        self.assertEqual((code, out), (1, ""), err)
        return err

    def sessions(self, *words, **options):
        return json.loads(self.must("sessions", "--json", *words, **options))

    def only(self, *words):
        found = self.sessions(*words)
        self.assertEqual(len(found), 1, found)
        return found[0]


class Lists(Commands):
    def test_a_session_is_shown_from_its_start_to_its_end(self):
        producer = self.producer("probes")
        consumer = self.consumer()
        consumer.enable(config(TEST_SOURCE, unique_session_name="robots",
                               deferred_start=True, duration_ms=600000))
        self.assertEqual(self.only("robots")["state"], "waits for start")
        self.assertIn("started session", self.must("start", "robots"))
        producer.wait_started()
        session = self.only("rob*")
        self.assertEqual(session["state"], "started")
        self.assertEqual(session["machines"], ["host"])
        self.assertEqual((session["producers"], session["data_sources"]),
                         (1, 1))
        self.assertLess(session["remaining_ms"], 600000)
        self.assertIn("runs already", self.must_fail("start", "robots"))
        producer.writer().number(20)
        producer.sync()
        session = self.only()
        self.assertEqual(session["packets"], 20)
        self.assertEqual(session["sequences"], 1)
        self.assertGreater(session["buffers"][0]["used"], 1900)
        self.must("stop", str(session["id"]))
        self.assertIsNone(consumer.ended().error or None)
        self.assertEqual(self.only()["state"], "stopped")
        self.assert_numbers(consumer.read(), [20])
        consumer.free()
        self.assertEqual(self.sessions(), [])

    def test_the_table_is_for_people(self):
        self.session(unique_session_name="robots")
        head, line, totals = self.must("sessions").splitlines()
        self.assertTrue(head.startswith("ID  NAME    STATE    OWNER"))
        self.assertIn("robots  started  uid ", line)
        self.assertIn(" 1 of at most 64 sessions", totals)
        self.assertIn("keeps the newest", self.must("sessions", "--long"))

    def test_what_is_not_there_is_told_with_what_is_near(self):
        self.assertIn("nor any other", self.must_fail("sessions", "robotz"))
        self.session(unique_session_name="robots")
        for command in ("sessions", "stats", "stop", "flush", "start"):
            self.assertEqual(
                self.must_fail(command, "robotz"),
                f'tributary {command}: there is no session "robotz"; did you '
                "mean robots?\n")
        self.assertIn("which session?", self.must_fail("stop"))
        self.assertIn("no flag --nix; see tributary stop --help",
                      self.must_fail("stop", "--nix"))

    def test_a_config_that_asks_in_vain_is_warned_of(self):
        wanted = config(TEST_SOURCE)
        wanted.MergeFromString(b"\xe0\x02\x4d")  # write_flush_mode: 77
        self.consumer().enable(wanted)
        (warning,) = self.only()["warnings"]
        self.assertIn("write_flush_mode", warning)
        self.assertIn(warning, self.must("sessions", "--long"))


class Rights(Commands):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can act as others")
        super().setUp()
        os.chmod(self.folder, 0o755)
        os.chmod(self.address, 0o666)

    def test_everybody_has_their_own_and_root_has_all(self):
        with acting_as(ANN):
            anns = self.consumer()
        anns.enable(config(TEST_SOURCE, unique_session_name="anns",
                           bugreport_score=1))
        self.session(unique_session_name="roots")
        self.assertEqual([s["name"] for s in self.sessions(uid=ANN)],
                         ["anns"])
        self.assertEqual(self.sessions(uid=BOB), [])
        self.assertEqual([s["name"] for s in self.sessions()],
                         ["anns", "roots"])
        for command in ("stats", "stop", "flush", "start"):
            self.assertIn("nor any other that you may see",
                          self.must_fail(command, "anns", uid=BOB))
        self.assertEqual(self.must("stop", "--all", "--yes", uid=BOB),
                         "no session is there to be stopped\n")
        self.assertFalse(anns.session.ended())
        self.must("flush", "anns", uid=ANN)
        self.must("stop", "anns")
        anns.ended()
        self.assertEqual(self.only("roots")["state"], "started")


class Stops(Commands):
    def test_a_stop_waits_for_the_file(self):
        producer = self.producer("probes")
        self.session(TEST_SOURCE, unique_session_name="filed",
                     write_into_file=True, output_path="trace",
                     file_write_period_ms=600000)
        producer.wait_started()
        producer.writer().number(500)
        producer.sync()
        path = self.path("trace")
        self.assertEqual(self.only("filed")["file"]["path"], path)
        out = self.must("stop", "filed")
        self.assertIn(f"stopped session 1 (filed); its trace is in {path}",
                      out)
        self.assert_numbers(Trace.from_file(path), [500])
        session = self.only("filed")
        self.assertEqual(session["state"], "stopped")
        self.assertEqual(session["file"]["bytes"], os.path.getsize(path))

    def test_the_path_of_a_file_that_was_handed_over_is_shown(self):
        with open(self.path("mine"), "w+b") as file:
            consumer = self.consumer()
            consumer.enable(config(TEST_SOURCE, write_into_file=True),
                            [file.fileno()])
        self.assertEqual(self.only()["file"]["path"], self.path("mine"))

    def test_a_detached_session_is_stopped_read_and_discarded(self):
        producer = self.producer("probes")
        consumer = self.session(TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(10)
        producer.sync()
        consumer.detach("key")
        consumer.close()
        session = self.only()
        self.assertEqual(session["detach_key"], "key")
        self.assertFalse(session["has_consumer"])
        self.assertIn("tributary record --attach=key",
                      self.must("stop", str(session["id"])))
        again = self.consumer()
        again.attach("key")
        self.assert_numbers(again.read(), [10])
        again.detach("key")
        self.must("stop", "--discard", str(session["id"]))
        self.assertEqual(self.sessions(), [])
        self.assertTrue(again.refuses("Attach", pb.AttachRequest(key="key")))

    def test_whoever_reads_a_discarded_session_gets_an_end(self):
        consumer = self.session(TEST_SOURCE)
        with self.neighbour():
            self.must("stop", "--discard", str(self.sessions()[0]["id"]))
            consumer.ended()
            self.assertEqual(consumer.read_raw(), [])

    def test_all_asks_first(self):
        self.assertEqual(self.must("stop", "--all"),
                         "no session is there to be stopped\n")
        consumers = [self.session(TEST_SOURCE) for _ in range(2)]
        self.assertIn("--all wants --yes",
                      self.must_fail("stop", "--all"))
        self.assertIn("exclude", self.must_fail("stop", "--all", "1"))
        code, out, asked = self.answer("n")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("Stop these 2 sessions? [y/N]", asked)
        self.assertIn("Nothing was stopped", asked)
        self.assertFalse(consumers[0].session.ended())
        code, out, _ = self.answer("y")
        self.assertEqual((code, out.count("stopped session")), (0, 2))
        for consumer in consumers:
            consumer.ended()

    def answer(self, word):
        """What somebody at a terminal answers to stop --all."""
        master, slave = pty.openpty()
        try:
            process = self.spawn("stop", "--all", stdin=slave)
            os.write(master, word.encode() + b"\n")
            return self.finish(process)
        finally:
            os.close(master)
            os.close(slave)

    def test_all_with_yes_does_not_ask(self):
        consumer = self.session(TEST_SOURCE)
        self.assertIn("stopped", self.must("stop", "--all", "--yes"))
        consumer.ended()
        self.assertEqual(self.must("stop", "--all", "--yes"),
                         "no session is there to be stopped\n")
        self.must("stop", "--all", "--yes", "--discard")
        self.assertEqual(self.sessions(), [])


class Many(Commands):
    def start_collector(self):
        settings = self.path("settings")
        with open(settings, "w") as file:
            file.write("limits { max_sessions: 99 max_sessions_per_uid: 99 }")
        self.address = self.daemon(
            flags=["--config", settings]).consumer_path

    def test_all_may_be_more_than_may_wait_at_once(self):
        producer = self.producer("probes")
        producer.acks_stop = False
        for _ in range(70):
            self.session(TEST_SOURCE, data_source_stop_timeout_ms=200)
        producer.wait_started(70)
        out = self.must("stop", "--all", "--yes")
        self.assertEqual(out.count("stopped session"), 70)


class Reads(Commands):
    def test_a_flush_says_who_does_not_answer(self):
        producer = self.producer("probes")
        self.session(TEST_SOURCE, unique_session_name="s")
        producer.wait_started()
        self.assertEqual(self.must("flush", "s"), "flushed session 1 (s)\n")
        producer.answers_flush = False
        self.assertIn("did not answer within 50 ms",
                      self.must_fail("flush", "--timeout", "50ms", "s"))
        self.assertIn("unit of time",
                      self.must_fail("flush", "--timeout", "5", "s"))
        producer.answers_flush = True

    def test_statistics_say_what_is_gone_and_who_wrote(self):
        producer = self.producer("probes")
        self.session(
            source(TEST_SOURCE), unique_session_name="s",
            buffers=[pb.TraceConfig.BufferConfig(size_kb=16, name="small"),
                     pb.TraceConfig.BufferConfig(size_kb=64)])
        producer.wait_started()
        producer.writer().number(1000)
        producer.sync()
        text = self.must("stats", "s")
        self.assertRegex(text, r'buffer 0 "small" wrapped \d+ times: about the '
                               r"first .* gone; \d+ KiB would have held it\.")
        self.assertIn("buffer 1 is empty", text)
        self.assertRegex(text, r"probes, pid \d+: .* of buffer 0 ")
        read = json.loads(self.must("stats", "--json", "s"))[0]
        small = read["buffers"][0]
        self.assertEqual(small["verdict"], "cut")
        self.assertTrue(small["sentences"][0]["loss"])
        # What it says would have held it does hold it.
        self.assertGreaterEqual(small["enough_bytes"],
                                small["stats"]["bytes_written"])
        self.assertEqual(read["writers"][0]["producer"], "probes")
        self.assertEqual(self.only("s")["buffers"][0]["bytes_lost"],
                         small["stats"]["bytes_overwritten"])


class Foreign(Commands):
    """Perfetto's traced, as far as these commands see of it."""

    def start_collector(self):
        self.address = self.path("traced")
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.address)
        self.listener.listen()
        self.listener.setblocking(False)
        self.loop.watch(self.listener, self.accept)
        self.state = pb.TracingServiceState(
            supports_tracing_sessions=True, num_sessions=1,
            tracing_sessions=[pb.TracingServiceState.TracingSession(
                id=5, consumer_uid=1000, state="STARTED",
                unique_session_name="theirs", buffer_size_kb=[32768],
                duration_ms=10000)])

    def accept(self, can_read, can_write):
        self._add(Traced(self.loop, self.listener.accept()[0], self.state))

    def test_sessions_are_shown_as_far_as_it_tells(self):
        code, out, err = self.run_command("sessions")
        self.assertEqual(code, 0)
        self.assertIn("not a tributaryd", err)
        self.assertIn("5   theirs  started  uid 1000", out)
        code, out, _ = self.run_command("sessions", "--json", "theirs")
        self.assertEqual(json.loads(out)[0]["buffers"],
                         [{"size": 32 << 20}])

    def test_an_old_one_that_does_not_tell_is_called_so(self):
        self.state.supports_tracing_sessions = False
        del self.state.tracing_sessions[:]
        self.assertIn("too old", self.must_fail("sessions"))

    def test_other_commands_say_what_to_do_instead(self):
        for command, advice in (("stop", "interrupt the program"),
                                ("flush", "flush_period_ms"),
                                ("start", "trigger"),
                                ("rotate", "start another"),
                                ("stats", "tributary inspect")):
            err = self.must_fail(command, "theirs")
            self.assertIn("not a tributaryd", err)
            self.assertIn(advice, err)


class Traced(Connection):
    """Offers ConsumerPort alone, and of it QueryServiceState alone."""

    def __init__(self, loop, sock, state):
        super().__init__(loop, sock)
        self.state = state

    def on_closed(self):
        pass

    def on_frame(self, frame):
        reply = pb.IPCFrame(request_id=frame.request_id)
        if frame.HasField("msg_bind_service"):
            bound = reply.msg_bind_service_reply
            bound.success = (frame.msg_bind_service.service_name ==
                             "ConsumerPort")
            if bound.success:
                bound.service_id = 1
                bound.methods.add(id=1, name="QueryServiceState")
        elif frame.HasField("msg_invoke_method"):
            answer = pb.QueryServiceStateResponse(service_state=self.state)
            reply.msg_invoke_method_reply.success = True
            reply.msg_invoke_method_reply.reply_proto = \
                answer.SerializeToString()
        else:
            return
        self.send_frame(reply)


if __name__ == "__main__":
    sys.exit(tap.main())
