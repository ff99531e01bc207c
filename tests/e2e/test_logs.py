#!/usr/bin/env python3
"""What hostile peers leave in the log: no control byte, few lines, no secret.

Every name that a peer may choose is a line feed, a terminal's escape sequence
and a forged line; every message that a peer can cause is caused a few hundred
times.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from harness import pb, tap, tls
from harness.case import Case, TEST_SOURCE
from harness.consumer import buffers, config
from harness.daemon import environment
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.relay import ClassicRelay

FORGED = "2026-01-01 00:00:00.000 tributaryd error all is lost"
EVIL = f"evil\n{FORGED}\r\x1b[2J\x1b]0;title\x07\x9b31m\u009b\x7f\"'\\\0"
LINE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} tributaryd "
                  rb"(error|warn |info |debug) [\x20-\x7e]*")
# A bucket of log_limited(): ten lines at once, one more a second.
BURST = 10
FLOOD = 200


class LogCase(Case):
    def start(self, *flags, level="debug", **options):
        return self.daemon(flags=["--log-level", level, *flags], **options)

    def raw_lines(self):
        with open(self.daemons[0].log_path, "rb") as file:
            return file.read().split(b"\n")[:-1]

    def lines(self, *words):
        return [line.decode("ascii") for line in self.raw_lines()
                if all(word.encode() in line for word in words)]

    def assert_harmless(self):
        """Each line is one that the daemon wrote, in printable ASCII."""
        for line in self.raw_lines():
            self.assertRegex(line, b"^(?:" + LINE.pattern + b")$")
            self.assertFalse(line.endswith(b" error all is lost"), line)


class Escaped(LogCase):
    """What they call themselves."""

    def test_names_of_producers_and_data_sources(self):
        self.start()
        self.producer(EVIL, [EVIL, {"name": EVIL}]).sync()
        consumer = self.session(EVIL)
        consumer.stop()
        self.assert_harmless()
        self.assertTrue(self.lines("producer 1 is evil\\x0a2026-01-01"))

    def test_a_producer_that_is_refused_under_its_name(self):
        self.start()
        with self.assertRaises(AssertionError):
            self.producer(EVIL[:-1] * 40)
        self.assert_harmless()
        self.assertTrue(self.lines("producer evil\\x0a", "refused"))

    def test_names_of_machines(self):
        self.start("--enable-relay-endpoint", producer=["127.0.0.1:0"])
        at = self.daemons[0].address("producers", "tcp")
        identity = {"machine_name": EVIL, "machine_id_hint": EVIL,
                    "pid": 1, "uid": 1}
        self.producer(EVIL, identity=identity, address=at).sync()
        relay = self._add(ClassicRelay(self.loop, at, identity))
        relay.init(tracing_service_version=EVIL)
        self.assert_harmless()
        self.assertTrue(self.lines("machine ", '"evil\\x0a2026-01-01'))

    def test_services_and_methods_that_do_not_exist(self):
        self.start()
        for port in "producers", "consumers":
            raw = self.raw(port=port)
            frame = pb.IPCFrame(request_id=1)
            frame.msg_bind_service.service_name = EVIL
            raw.send_frame(frame)
            raw.wait_frame()
            frame = pb.IPCFrame(request_id=2)
            frame.msg_invoke_method.service_id = 9
            frame.msg_invoke_method.method_id = 9
            frame.msg_invoke_method.args_proto = EVIL.encode()
            raw.send_frame(frame)
            raw.wait_frame()
        self.assert_harmless()
        self.assertTrue(self.lines("not offered here", "evil\\x0a2026-01-01"))

    def refused_configs(self):
        """Configs with names that a refusal repeats."""
        sound = lambda **more: config(TEST_SOURCE, **more)
        buffer_names = sound(buffers=buffers(64, 64))
        for one in buffer_names.buffers:
            one.name = EVIL
        unknown_buffer = sound()
        unknown_buffer.data_sources[0].config.name = EVIL
        unknown_buffer.data_sources[0].config.target_buffer_name = EVIL
        no_buffer = sound()
        no_buffer.data_sources[0].config.name = EVIL
        no_buffer.data_sources[0].config.target_buffer = 7
        triggers = sound()
        triggers.trigger_config.trigger_mode = 2
        triggers.trigger_config.trigger_timeout_ms = 1000
        for _ in range(2):
            triggers.trigger_config.triggers.add(name=EVIL)
        pattern = sound()
        pattern.data_sources[0].producer_name_regex_filter.append("(" + EVIL)
        unique = sound(unique_session_name=EVIL)
        path = sound(write_into_file=True, output_path="../" + EVIL)
        return {"Duplicate buffer": buffer_names,
                "target_buffer_name": unknown_buffer,
                "does not exist (": no_buffer,
                "Duplicate trigger": triggers,
                "pattern": pattern,
                "unique session name": unique,
                "output_path": path}

    def test_configs_that_are_refused(self):
        os.mkdir(self.path("traces"))
        self.start("--trace-dir", self.path("traces"))
        self.session(unique_session_name=EVIL)
        for words, wrong in self.refused_configs().items():
            with self.subTest(words):
                consumer = self.consumer()
                error = consumer.refused(wrong)
                self.assertIn(words, error)
                self.assertTrue(self.lines(words))
                consumer.close()
        self.assert_harmless()

    def test_triggers_keys_and_names_of_sessions(self):
        self.start()
        wanted = config(TEST_SOURCE, unique_session_name=EVIL)
        wanted.trigger_config.trigger_mode = 2
        wanted.trigger_config.trigger_timeout_ms = 60000
        wanted.trigger_config.triggers.add(name=EVIL, stop_delay_ms=1)
        consumer = self.consumer()
        consumer.enable(wanted)
        producer = self.producer(EVIL)
        producer.wait_started()
        producer.invoke("ActivateTriggers", pb.ActivateTriggersRequest(
            trigger_names=[EVIL]))
        consumer.ended()
        self.session().detach(EVIL)
        self.consumer().refuses("Attach", pb.AttachRequest(key=EVIL + "?"))
        self.assert_harmless()

    def test_certificates(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        pki = Pki(self.path("pki"))
        other = Pki(self.path("other"), name='"other" \\\\CA')
        folders = {
            "control character in it": pki.issue(
                "ev\x1b[2Jil", folder=self.path("control")),
            'the certificate "ev\\x22il\\x22" of ': other.issue(
                'ev"il"', folder=self.path("quotes")),
            '(issued by "\\x22other\\x22 \\x5cCA") is not': other.issue(
                "plain", folder=self.path("plain"))}
        self.start("--tls-dir", pki.collector(),
                   producer=["tls://127.0.0.1:0"])
        at = self.daemons[0].address("producers", "tls")
        for words, folder in folders.items():
            # It believes the collector, which does not believe it.
            shutil.copy(pki.ca, os.path.join(folder, "ca.pem"))
            with self.assertRaises((AssertionError, OSError)):
                self.producer("p", address=tls.Address(at, folder)).sync()
            self.until(lambda: self.lines(words), f"{words} in the log")
        good = pki.issue('a "good" one', folder=self.path("good"))
        self.producer(EVIL, address=tls.Address(at, good)).sync()
        self.assert_harmless()
        self.assertTrue(self.lines(
            "a \\x22good\\x22 one at 127.0.0.1:", "producer 1 is evil"))


class Echoed(Case):
    """What the programs quote of their command lines, on a terminal."""
    WORD = b"no\xe2\x80\xae\x1b[31m\xff\xc2\x9b"
    SHOWN = b"no\\xe2\\x80\\xae\\x1b[31m\\xff\\xc2\\x9b"

    def said(self, program, *words):
        done = subprocess.run([os.environ[program], *words], timeout=60 * SCALE,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              env=environment())
        self.assertNotEqual(done.returncode, 0)
        return done.stdout + done.stderr

    def assert_shown(self, said):
        self.assertIn(self.SHOWN, said)
        self.assertRegex(said, rb"\A[\n\x20-\x7e]*\Z")

    def test_commands_flags_and_arguments(self):
        for program in ("TRIBUTARY", "TRIBUTARYD", "TRIBUTARY_RELAY",
                        "TRIBUTARY_PROBES"):
            for word in self.WORD, b"--" + self.WORD:
                with self.subTest(program=program, word=word):
                    self.assert_shown(self.said(program, word))

    def test_values_and_files_of_commands(self):
        for words in (["inspect", self.WORD], ["inspect", "--packets",
                                               self.WORD],
                      ["record", "-c", self.WORD],
                      ["sessions", "--connect", b"/" + self.WORD],
                      ["machines", self.WORD, "--connect", b"/" + self.WORD],
                      ["cert", self.WORD], ["connect", self.WORD]):
            with self.subTest(words=words):
                self.assert_shown(self.said("TRIBUTARY", *words))

    def test_files_and_addresses_of_the_daemons(self):
        for program, *words in (
                ("TRIBUTARYD", "--config", self.WORD),
                ("TRIBUTARYD", "--producer-socket", b"/no/" + self.WORD),
                ("TRIBUTARY_RELAY", "--config", self.WORD),
                ("TRIBUTARY_RELAY", "--status", "--state-dir", b"/" +
                 self.WORD)):
            with self.subTest(program=program, words=words):
                self.assert_shown(self.said(program, *words))


class Bounded(LogCase):
    """How often they can say it."""

    def flood(self, *words, times=FLOOD, at_least=1):
        """A body that causes lines with these words; few of them are there."""
        case = self

        class Flood:
            def __enter__(self):
                self.began = time.monotonic()
                self.before = len(case.lines(*words))

            def __exit__(self, kind, *_):
                if kind is not None:
                    return
                seconds = time.monotonic() - self.began
                n = len(case.lines(*words)) - self.before
                case.assertGreaterEqual(n, at_least, words)
                case.assertLessEqual(n, BURST + seconds + 1, words)
                case.assertLess(BURST + seconds + 1, times,
                                "it took too long to tell")
        return Flood()

    def test_services_that_do_not_exist(self):
        self.start(level="info")
        raw = self.raw()
        with self.flood("not offered here"):
            for i in range(FLOOD):
                frame = pb.IPCFrame(request_id=i + 1)
                frame.msg_bind_service.service_name = EVIL
                raw.send_frame(frame)
                raw.wait_frame()

    def test_frames_that_cannot_be_parsed(self):
        self.start(level="info")
        with self.neighbour(), self.flood("closed: "):
            for _ in range(FLOOD):
                raw = self.raw()
                raw.send_raw(b"\xff\xff\xff\x7f")
                raw.wait_closed()
                raw.close()

    def test_arguments_that_cannot_be_parsed(self):
        self.start(level="info")
        producer = self.producer("p")
        with self.flood("cannot be parsed"):
            for _ in range(FLOOD):
                frame = pb.IPCFrame(request_id=producer.new_id())
                frame.msg_invoke_method.service_id = producer.service_id
                frame.msg_invoke_method.method_id = \
                    producer.methods["CommitData"]
                frame.msg_invoke_method.args_proto = b"\xff"
                producer.send_frame(frame)
            producer.sync()

    def test_connections_over_the_limit(self):
        settings = self.path("settings")
        with open(settings, "w") as file:
            file.write("limits { max_connections: 3 }")
        self.start("--config", settings, level="info")
        held = [self.raw() for _ in range(3)]
        self.until(lambda: all(c.sent() for c in held), "three are in")
        with self.flood("connection refused"):
            for _ in range(FLOOD):
                raw = self.raw()
                raw.wait_closed()
                raw.close()

    def test_configs_that_are_refused(self):
        self.start(level="info")
        consumer = self.consumer()
        wrong = config(TEST_SOURCE)
        wrong.data_sources[0].config.target_buffer = 9
        with self.flood("EnableTracing refused"):
            for _ in range(FLOOD):
                self.assertTrue(consumer.refused(wrong))

    def test_producers_that_are_refused(self):
        self.start(level="info")
        with self.flood("refused"):
            for _ in range(FLOOD):
                producer = self.producer("n" * 5000, start=False)
                producer.bind()
                with self.assertRaises(AssertionError):
                    producer.initialize()
                producer.close()

    def test_sessions_that_come_and_go(self):
        self.start(level="info")
        with self.flood("session "):
            for _ in range(FLOOD):
                consumer = self.consumer()
                consumer.enable(config(TEST_SOURCE))
                consumer.stop()
                self.connections.pop().close()

    def test_flushes_that_nobody_answers(self):
        self.start(level="info")
        producer = self.producer("p")
        producer.answers_flush = False
        consumer = self.session()
        producer.wait_started()
        with self.flood("have not answered"):
            calls = [consumer.call("Flush", pb.FlushRequest(timeout_ms=1))
                     for _ in range(FLOOD)]
            self.until(lambda: all(c.ended() for c in calls), "the time-outs")

    def test_relays_that_come_and_go(self):
        self.start("--enable-relay-endpoint", producer=["127.0.0.1:0"],
                   level="info")
        at = self.daemons[0].address("producers", "tcp")
        with self.flood("relay "):
            for _ in range(FLOOD):
                relay = ClassicRelay(self.loop, at, {"machine_name": "m", "pid": 1})
                relay.close()
        with self.flood("relay ", at_least=0):
            for _ in range(FLOOD):
                ClassicRelay(self.loop, at, {"machine_name": "m"}).close()

    def test_handshakes_that_are_none(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        pki = Pki(self.path("pki"))
        self.start("--tls-dir", pki.collector(),
                   producer=["tls://127.0.0.1:0"], level="info")
        at = self.daemons[0].address("producers", "tls")
        with self.flood("127.0.0.1:", ": "):
            for _ in range(FLOOD):
                raw = self.raw(address="tcp:" + at.removeprefix("tls://"))
                raw.send_raw(b"GET / HTTP/1.1\r\n\r\n" + bytes(range(64, 128)))
                raw.wait_closed()
                raw.close()
        self.assert_harmless()


class Secret(LogCase):
    """What must not be there at all, at any level."""

    def test_neither_keys_nor_traces_nor_configs(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        pki = Pki(self.path("pki"))
        collector, device = pki.collector(), pki.issue("device")
        self.start("--tls-dir", collector,
                   producer=["tls://127.0.0.1:0"])
        at = self.daemons[0].address("producers", "tls")
        producer = self.producer("p", address=tls.Address(at, device))
        consumer = self.session(unique_session_name="s3cret-name",
                                trace_all_machines=True)
        producer.wait_started()
        packet = pb.TracePacket(timestamp=1)
        packet.for_testing.str = "s3cret-content"
        producer.writer().write([packet.SerializeToString()])
        consumer.stop()
        self.assertIn(b"s3cret-content", b"".join(consumer.read_raw()))
        log = b"\n".join(self.raw_lines())
        self.assertNotIn(b"s3cret", log)
        for folder in collector, device:
            for name in "key.pem", "cert.pem":
                with open(os.path.join(folder, name), "rb") as file:
                    for line in file.read().splitlines():
                        self.assertNotIn(line, log)


if __name__ == "__main__":
    sys.exit(tap.main())
