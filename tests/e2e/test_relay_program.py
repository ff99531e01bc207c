#!/usr/bin/env python3
"""tributary-relay as a program: how it starts, serves, tells and ends."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time

from harness import abi, pb, sshd, tap
from harness.case import TEST_SOURCE, Case, config
from harness.daemon import LISTENING, environment
from harness.ipc import listeners
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.producer import numbered
from harness.relay import Relay

BINARY = os.environ["TRIBUTARY_RELAY"]

# Puts a socket where a service manager does, and becomes the relay.
HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Program(Case):
    def run_relay(self, *flags, env=None, timeout=60):
        """For what is expected to end by itself: (status, out, err)."""
        done = subprocess.run(
            [BINARY, *flags], stdin=subprocess.DEVNULL, text=True,
            timeout=timeout * SCALE, capture_output=True,
            env=environment(**(env or {})))
        return done.returncode, done.stdout, done.stderr

    def refuse(self, *flags, words=(), **options):
        """It does not start, and says why in words for people."""
        status, _, said = self.run_relay(*flags, **options)
        self.assertGreater(status, 0, said)
        for word in words:
            self.assertIn(word, said)
        return said

    def collector(self, *flags, **options):
        return self.daemon(flags=["--enable-relay-endpoint", *flags],
                           **options)

    def everywhere(self, *names, **fields):
        return config(*(names or [TEST_SOURCE]), trace_all_machines=True,
                      **fields)

    def wait_state(self, relay, *states):
        self.until(lambda: relay.link_state() in states,
                   f"the relay is {' or '.join(states)}")


class Words(Program):
    def test_help_and_version_need_nothing(self):
        status, out, _ = self.run_relay("--help")
        self.assertEqual(status, 0)
        for flag in ("--to", "--tls-dir", "--stdio", "--status", "--spool-dir",
                     "--background", "--set-socket-permissions"):
            self.assertIn(flag, out)
        status, out, _ = self.run_relay("--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^tributary-relay \d+\.\d+")

    def test_wrong_words_are_refused_with_what_to_do(self):
        self.refuse(words=["--to ADDR"])
        self.refuse("--too", "/s", words=["did you mean --to?"])
        self.refuse("--to", "host:1", "--tls-dir", "/d",
                    words=["tls://host:1"])
        self.refuse("/collector", words=["--to"])
        self.assertEqual(self.run_relay("--nonsense")[0], 2)

    def test_settings_are_checked_without_starting(self):
        path = self.path("relay.conf")
        with open(path, "w") as file:
            file.write('to: "/nowhere"\nmemory_kb: 4096\n')
        status, out, _ = self.run_relay("--check-config", "--config", path)
        self.assertEqual((status, out), (0, "OK\n"))
        with open(path, "w") as file:
            file.write('to: "/nowhere"\nmemroy_kb: 4096\n')
        said = self.refuse("--check-config", "--config", path)
        self.assertIn(f"{path}:2:1: error:", said)
        self.assertIn("memory_kb", said)


class Folder(Program):
    def test_the_state_folder_is_made_for_nobody_else(self):
        relay = self.relay(self.path("nowhere"))
        mode = os.stat(relay.state_dir)
        self.assertEqual(stat.S_IMODE(mode.st_mode), 0o700)
        control = os.stat(os.path.join(relay.state_dir, "control"))
        self.assertEqual(stat.S_IMODE(control.st_mode), 0o600)

    def test_the_spools_folder_is_made_for_nobody_else(self):
        spool = self.path("spool")
        self.relay(self.path("nowhere"), spool=spool)
        self.assertEqual(stat.S_IMODE(os.stat(spool).st_mode), 0o700)
        self.refuse("--to", "/s", "--state-dir", self.path("state2"),
                    "--producer-socket", self.path("p2"),
                    "--spool-dir", self.path("none/spool"),
                    words=["the spool folder", "No such file"])

    def test_a_folder_that_others_may_write_to_is_refused(self):
        path = self.path("open")
        os.mkdir(path)
        os.chmod(path, 0o777)
        self.refuse("--to", "/s", "--state-dir", path,
                    "--producer-socket", self.path("p"),
                    words=["chmod go-w"])

    def test_another_users_link_to_a_folder_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to make a link of another user")
        os.mkdir(self.path("real"), 0o700)
        os.symlink(self.path("real"), self.path("link"))
        os.lchown(self.path("link"), 12345, 12345)
        self.refuse("--to", "/s", "--state-dir", self.path("link"),
                    "--producer-socket", self.path("p"),
                    words=["the state folder", "symbolic link"])

    def test_another_users_folder_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to make a folder of another user")
        os.mkdir(self.path("other"), 0o700)
        os.chown(self.path("other"), 12345, 12345)
        self.refuse("--to", "/s", "--state-dir", self.path("other"),
                    "--producer-socket", self.path("p"), words=["12345"])

    def test_a_second_relay_is_told_of_the_first(self):
        relay = self.relay(self.path("nowhere"))
        self.refuse("--to", "/s", "--state-dir", relay.state_dir,
                    "--producer-socket", self.path("p2"),
                    words=[f"process {relay.pid}", "--status"])


class Life(Program):
    def test_it_ends_on_a_signal_and_leaves_no_sockets(self):
        for signo in (signal.SIGTERM, signal.SIGINT):
            relay = self.relay(self.path("nowhere"), label=f"r{signo}")
            self.assertTrue(os.path.exists(relay.producer_path))
            relay.signal(signo)
            self.assertEqual(relay.wait(), 0)
            self.assertFalse(os.path.exists(relay.producer_path))
            self.assertFalse(os.path.exists(
                os.path.join(relay.state_dir, "control")))

    def test_hangup_does_not_end_it(self):
        relay = self.relay(self.path("nowhere"))
        relay.signal(signal.SIGHUP)
        self.until(lambda: "SIGHUP" in relay.log(), "the signal is told")
        self.assertEqual(relay.link_state(), "waiting")

    def test_it_serves_in_the_background(self):
        status, out, _ = self.run_relay(
            "--background", "--to", self.path("nowhere"), "--state-dir",
            self.path("state"), "--producer-socket", self.path("bg"))
        self.assertEqual(status, 0)
        pid = int(out)
        try:
            self.assertTrue(os.path.exists(self.path("bg")))
            status, out, _ = self.run_relay("--status", "--json",
                                            "--state-dir", self.path("state"))
            self.assertEqual(json.loads(out)["pid"], pid)
        finally:
            os.kill(pid, signal.SIGTERM)
        self.until(lambda: not os.path.exists(f"/proc/{pid}") or
                   open(f"/proc/{pid}/stat").read().split()[2] == "Z",
                   "the relay in the background ends")

    def test_sockets_and_names_come_from_the_environment(self):
        env = {"PERFETTO_RELAY_SOCK_NAME": self.path("nowhere"),
               "PERFETTO_PRODUCER_SOCK_NAME":
               f"{self.path('a')},{self.path('b')}",
               "PERFETTO_MACHINE_NAME": "from-env"}

        class Plain(Relay):
            def command(relay):
                return [BINARY, "--state-dir", relay.state_dir]

        relay = Plain(self.folder, self.path("unused"), env=env)
        self.relays.append(relay)
        relay.start()
        report = relay.report()
        self.assertEqual(report["machine_name"], "from-env")
        self.assertEqual(report["producer_socket"],
                         [self.path("a"), self.path("b")])
        self.assertEqual(report["link"]["peer"], self.path("nowhere"))
        for name in "ab":
            self.producer(address=self.path(name), sources=["x"])
        self.until(lambda: len(relay.report()["producers"]) == 2,
                   "both producers are served")

    def test_sockets_get_the_group_and_mode_that_were_asked_for(self):
        relay = self.relay(self.path("nowhere"), flags=[
            "--set-socket-permissions", "root:0660"])
        found = os.stat(relay.producer_path)
        self.assertEqual(stat.S_IMODE(found.st_mode), 0o660)
        self.assertEqual(found.st_gid, 0)
        self.refuse("--to", "/s", "--state-dir", self.path("s2"),
                    "--producer-socket", self.path("p2"),
                    "--set-socket-permissions", "no-such-group:0660",
                    words=["no-such-group"])

    def test_it_takes_the_sockets_of_the_service_manager(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.path("passed"))
        listener.listen()
        fd = listener.fileno()

        class Passed(Relay):
            def command(relay):
                return [sys.executable, "-c", HAND_OVER, str(fd), BINARY,
                        "--to", self.path("nowhere"), "--state-dir",
                        relay.state_dir]

        relay = Passed(self.folder, pass_fds=[fd], env={
            "LISTEN_FDS": "1", "LISTEN_FDNAMES": "producer"})
        self.relays.append(relay)
        relay.start()
        self.assertEqual(LISTENING.findall(relay.log()),
                         [("producers", self.path("passed"))])
        self.producer(address=self.path("passed")).sync()
        relay.stop()
        self.assertTrue(os.path.exists(self.path("passed")))

    def test_an_address_that_others_can_reach_has_to_be_permitted(self):
        path = self.path("relay.conf")
        flags = ["--to", "/s", "--state-dir", self.path("s"),
                 "--producer-socket", "0.0.0.0:0"]
        self.refuse(*flags, words=["allow_remote_producers"])
        with open(path, "w") as file:
            file.write("allow_remote_producers: true")
        relay = self.relay(self.path("nowhere"), producer="0.0.0.0:0",
                           flags=["--config", path])
        self.assertIn("listening for producers on 0.0.0.0:", relay.log())


class End(Program):
    """Of a relay that is linked."""

    def test_what_producers_wrote_is_sent_before_it_ends(self):
        daemon = self.collector()
        relay = self.relay(daemon)
        self.wait_state(relay, "linked")
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        writer = producer.writer()
        writer.number(10)
        # In shared memory, and nobody is told.
        producer.place(abi.chunk(writer.id, writer.chunk_id(), [
            numbered(n, value=writer.id) for n in range(10, 15)], 0))
        relay.stop()
        self.until(lambda: producer.closed, "the producer is let go")
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [15])

    def test_what_it_cannot_send_is_sent_by_the_next_one(self):
        daemon = self.collector()
        relay = self.relay(daemon)
        self.wait_state(relay, "linked")
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        writer = producer.writer()
        writer.number(10)
        daemon.signal(signal.SIGSTOP)
        try:
            writer.number(10)
            relay.stop()
        finally:
            daemon.signal(signal.SIGCONT)
        again = self.relay(daemon)
        self.wait_state(again, "linked")
        self.until(lambda: again.report()["store"]["memory_bytes"] == 0,
                   "all has arrived")
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [20])

    def test_a_second_signal_ends_it_at_once(self):
        daemon = self.collector()
        relay = self.relay(daemon)
        self.wait_state(relay, "linked")
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        writer = producer.writer()
        daemon.signal(signal.SIGSTOP)
        try:
            writer.number(10)
            relay.signal(signal.SIGTERM)
            self.until(lambda: "stopping" in relay.log(), "it is stopping")
            relay.signal(signal.SIGTERM)
            self.assertEqual(relay.wait(), 1)
            relay.expected_status = 1
        finally:
            daemon.signal(signal.SIGCONT)


class Ways(Program):
    """To the collector, by other ways than a plain socket."""

    def records(self, relay, machine=None):
        self.wait_state(relay, "linked", "classic")
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        producer.writer().number(50)
        consumer.flush(60_000)
        found = [p.machine_name for p in consumer.query().producers
                 if p.name == "test.producer"]
        consumer.stop()
        self.assert_numbers(consumer.read(), [50])
        if machine is not None:
            self.assertEqual(found, [machine])

    def tls_collector(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        self.pki = Pki(self.path("pki"))
        daemon = self.collector("--tls-dir", self.pki.collector(),
                                producer=["tls://127.0.0.1:0"])
        return daemon.address("producers", "tls")

    def test_tls_names_the_machine(self):
        address = self.tls_collector()
        relay = self.relay(address, machine="claimed", flags=[
            "--tls-dir", self.pki.issue("device-7", role="relay")])
        self.records(relay, "device-7")
        self.assertEqual(relay.link_state(), "linked")

    def test_tls_in_perfettos_way(self):
        address = self.tls_collector()
        with open(self.path("classic.conf"), "w") as file:
            file.write("protocol: CLASSIC")
        relay = self.relay(address, flags=[
            "--config", self.path("classic.conf"), "--tls-dir",
            self.pki.issue("device-7", role="relay")])
        self.records(relay, "device-7")
        self.assertEqual(relay.link_state(), "classic")

    def test_what_a_certificate_may_not_is_said(self):
        address = self.tls_collector()
        relay = self.relay(address, flags=[
            "--tls-dir", self.pki.issue("ann", role="consumer")])
        said = self.until(lambda: relay.report()["link"].get("last_error"),
                          "the relay is refused")
        self.assertIn("ann", said)
        self.assertNotIn(relay.link_state(), ("linked", "classic"))

    def test_missing_certificates_are_said(self):
        address = self.tls_collector()
        relay = self.relay(address, flags=["--tls-dir", self.path("none")])
        said = self.until(lambda: relay.report()["link"].get("last_error"),
                          "there is no certificate")
        self.assertIn(self.path("none"), said)
        self.pki.issue("late", role="relay", folder=self.path("none"))
        self.wait_state(relay, "linked")

    def test_ssh_reaches_the_collector(self):
        if (reason := sshd.missing()) is not None:
            self.skipTest(reason)
        self.collector()
        tools = [os.path.dirname(os.environ["TRIBUTARY"]),
                 os.path.dirname(BINARY), os.environ["PATH"]]
        host = sshd.Sshd(self.path("sshd"), env={
            "PATH": ":".join(tools),
            "PERFETTO_PRODUCER_SOCK_NAME": self.path("p")})
        self.addCleanup(host.stop)
        host.start(self.until)
        relay = self.relay(host.address(), env=host.env())
        self.records(relay)
        self.assertEqual(relay.link_state(), "linked")


class Status(Program):
    def test_nobody_is_asked_in_vain(self):
        status, out, said = self.run_relay("--status", "--state-dir",
                                           self.path("state"))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("no relay runs", said)

    def test_the_rest_of_a_killed_relay_is_no_relay(self):
        relay = self.relay(self.path("nowhere"))
        relay.kill()
        self.refuse("--status", "--state-dir", relay.state_dir,
                    words=["no relay runs"])

    def test_people_see_why_there_is_no_link(self):
        relay = self.relay(self.path("nowhere"), machine="device-1")
        self.until(lambda: "last_error" in relay.report()["link"],
                   "the first attempt has failed")
        status, out, _ = self.run_relay("--status", "--state-dir",
                                        relay.state_dir)
        self.assertEqual(status, 0)
        for word in (self.path("nowhere"), "last error", "device-1",
                     "next attempt", "no spool", relay.producer_path,
                     str(relay.pid)):
            self.assertIn(word, out)

    def test_producers_are_shown(self):
        relay = self.relay(self.path("nowhere"))
        producer = self.producer("some.name", ["a", "b"],
                                 address=relay.producer_path)
        shown = self.until(lambda: relay.report()["producers"],
                           "the producer is in the report")
        self.assertEqual(len(shown), 1)
        self.assertEqual(shown[0]["name"], "some.name")
        self.assertEqual(shown[0]["pid"], os.getpid())
        self.assertEqual(shown[0]["uid"], os.getuid())
        self.assertEqual(shown[0]["data_sources"], 2)
        _, out, _ = self.run_relay("--status", "--state-dir", relay.state_dir)
        self.assertIn("some.name (not known to the collector)", out)
        producer.close()
        self.until(lambda: not relay.report()["producers"], "it is gone")

    def test_who_does_not_take_the_answer_holds_up_nobody(self):
        relay = self.relay(self.path("nowhere"))
        producers = [self.producer("n" * 900, [], address=relay.producer_path)
                     for _ in range(300)]
        slow = []
        for _ in range(20):
            s = socket.socket(socket.AF_UNIX)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.connect(os.path.join(relay.state_dir, "control"))
            slow.append(s)
        producers[0].sync()
        self.assertEqual(len(relay.report()["producers"]), 300)
        # They are let go, and what was kept for them, too.
        before = relay.fds()
        self.until(lambda: relay.fds() <= before - 20 or
                   relay.fds() <= 320, "the slow ones are cut off")
        for s in slow:
            s.close()


class Classic(Program):
    """With a collector that does not know the link."""

    def classic(self, collector, **options):
        path = self.path("classic.conf")
        with open(path, "w") as file:
            file.write("protocol: CLASSIC min_retry_ms: 20 max_retry_ms: 100")
        relay = self.relay(collector, flags=["--config", path], **options)
        self.wait_state(relay, "classic")
        return relay

    def collector(self, *flags, **options):
        return super().collector(*flags, producer=["127.0.0.1:0"], **options)

    def address(self, daemon):
        return daemon.address("producers", "tcp")

    def test_packets_reach_the_trace(self):
        daemon = self.collector()
        relay = self.classic(self.address(daemon), machine="device-7")
        producer = self.producer(address=relay.producer_path)
        self.assertTrue(producer.fds or producer.shm is None)
        consumer = self.consumer()
        consumer.enable(self.everywhere(size_kb=8192))
        writer = producer.writer()
        writer.number(500)
        writer.number(500, size=3000)
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        self.assert_numbers(trace, [1000])
        machines = {p.machine_id for p in trace.of("for_testing")}
        self.assertEqual(len(machines), 1)
        self.assertNotEqual(machines, {0})
        self.assertEqual({p.trusted_pid for p in trace.of("for_testing")},
                         {os.getpid()})
        self.assertTrue(trace.of("remote_clock_sync"))

    def test_the_end_of_the_collector_ends_its_sessions_on_the_device(self):
        daemon = self.collector()
        address = self.address(daemon)
        relay = self.classic(address)
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        producer.wait_started()
        consumer.close()
        daemon.kill()
        producer.wait_command("stop_data_source")
        self.assertFalse(producer.closed)

        again = self.daemon(flags=["--enable-relay-endpoint"],
                            producer=[address], consumer=[self.path("c2")])
        consumer = self.consumer(again.address("consumers"))
        self.wait_state(relay, "classic")
        consumer.enable(self.everywhere())
        self.until(lambda: producer.started(), "it is started anew")
        writer = producer.writer(producer.started()[0])
        writer.number(20)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [20])

    def test_each_producer_has_a_connection_that_ends_with_it(self):
        daemon = self.collector()
        before = daemon.fds() + 1
        relay = self.classic(self.address(daemon))
        self.until(lambda: daemon.fds() == before,
                   "the connection for its clocks")
        producers = [self.producer(f"n{i}", [TEST_SOURCE],
                                   address=relay.producer_path)
                     for i in range(5)]
        self.until(lambda: daemon.fds() == before + 5, "five connections")
        for producer in producers:
            producer.close()
        self.until(lambda: daemon.fds() == before, "no connection is left")

    def test_much_data_waits_and_arrives(self):
        daemon = self.collector()
        relay = self.classic(self.address(daemon))
        producers = [self.producer(f"n{i}", [TEST_SOURCE],
                                   address=relay.producer_path)
                     for i in range(3)]
        consumer = self.consumer()
        consumer.enable(self.everywhere(size_kb=32768))
        writers = [p.writer() for p in producers]
        for _ in range(20):
            for writer in writers:
                writer.number(100, size=2000)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [2000] * 3)

    def fill(self, producer, writer):
        """Writes until nobody takes anything any more."""
        for _ in range(10000):
            data = abi.chunk(writer.id, writer.chunk_id(),
                             [numbered(0, size=3000)], 0)
            move = producer.place(data)
            if move is None:
                self.loop.settle(0.1)
                move = producer.place(data)
            if move is None:
                return
            move.target_buffer = writer.buffer
            producer.commit([move], ask=False)
        self.fail("it is taken for ever")

    def test_what_is_lost_with_a_connection_is_counted(self):
        daemon = self.collector()
        relay = self.classic(self.address(daemon))
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        writer = producer.writer()
        writer.number(10)
        self.until(lambda: relay.report()["producers"][0]["chunks"] > 0,
                   "the relay has taken it")
        self.assertEqual(relay.report()["losses"], [])
        daemon.signal(signal.SIGSTOP)
        self.fill(producer, writer)
        consumer.close()
        daemon.kill()
        losses = self.until(lambda: relay.report()["losses"],
                            "the loss is in the report")
        self.assertGreater(losses[0]["chunks"], 0)
        self.assertGreater(losses[0]["bytes"], 0)

    def test_a_trigger_passes(self):
        daemon = self.collector()
        relay = self.classic(self.address(daemon))
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        traced = self.everywhere()
        traced.trigger_config.trigger_mode = \
            pb.TraceConfig.TriggerConfig.START_TRACING
        traced.trigger_config.trigger_timeout_ms = 60000
        trigger = traced.trigger_config.triggers.add()
        trigger.name = "go"
        trigger.stop_delay_ms = 600000
        consumer.enable(traced)
        producer.wait_command("setup_data_source")
        self.assertEqual(producer.started(), [])
        producer.activate("go")
        producer.wait_started()

    def test_what_the_collector_refuses_is_tried_again(self):
        with open(self.path("conf"), "w") as file:
            file.write("limits { max_producers: 1 }")
        daemon = self.collector("--config", self.path("conf"))
        relay = self.classic(self.address(daemon))
        first = self.producer("first", ["a"], address=relay.producer_path)
        self.until(lambda: "producer 1 is first" in daemon.log(),
                   "the first is served")
        second = self.producer("second", [TEST_SOURCE],
                               address=relay.producer_path)
        second.sync()
        first.close()
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        writer = second.writer()
        writer.number(5)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [5])

    def test_a_collector_without_relay_port_is_served_all_the_same(self):
        daemon = self.daemon(producer=["127.0.0.1:0"])
        relay = self.classic(self.address(daemon))
        self.until(lambda: "--enable-relay-endpoint" in relay.log(),
                   "it is said what is missing")
        producer = self.producer(address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        producer.writer().number(10)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [10])


# Stands for ssh: runs the command, which is its last word, here.
LOCAL_SSH = """#!/bin/sh
for word; do command=$word; done
echo "$$ $command" >>{folder}/calls
exec env RUNTIME_DIRECTORY={folder}/device XDG_RUNTIME_DIR= \\
    PERFETTO_PRODUCER_SOCK_NAME={folder}/dp PATH={path}:$PATH \\
    sh -c "$command"
"""


class Dialled(Program):
    """A collector that dials, with a stand-in for ssh."""

    def setUp(self):
        super().setUp()
        self.ssh = self.path("ssh")
        with open(self.ssh, "w") as file:
            file.write(LOCAL_SSH.format(folder=self.folder,
                                        path=os.path.dirname(BINARY)))
        os.chmod(self.ssh, 0o755)
        self.state_dir = self.path("device")

    def _end(self):
        # Ones that --stdio started belong to nobody else.
        super()._end()
        pid = self.resident()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            self.wait_gone(pid)

    def resident(self):
        """The process id of the relay of the "device"; None: there is none."""
        report = self.status()
        return report and report["pid"]

    def status(self):
        status, out, _ = self.run_relay("--status", "--json", "--state-dir",
                                        self.state_dir)
        return json.loads(out) if status == 0 else None

    def wait_gone(self, pid):
        deadline = time.monotonic() + 20 * SCALE
        while os.path.exists(f"/proc/{pid}") and \
                time.monotonic() < deadline:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def dialling(self, more=""):
        with open(self.path("conf"), "w") as file:
            file.write('dial { address: "ssh://device-7" max_retry_ms: 200 '
                       f'{more} }}\n')
        return self.daemon(flags=["--config", self.path("conf")],
                           env={"TRIBUTARY_SSH": self.ssh})

    def calls(self):
        try:
            with open(self.path("calls")) as file:
                return [line.split(" ", 1) for line in file
                        if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def wait_linked(self):
        def linked():
            report = self.status()
            return report and report["link"]["state"] == "linked"
        self.until(linked, "the device's relay is linked")

    def numbers(self, count, producer=None):
        producer = producer or self.producer(address=self.path("dp"))
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        producer.writer().number(count)
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        self.assert_numbers(trace, [count])
        return trace

    def test_a_relay_is_started_where_there_is_none(self):
        self.dialling()
        self.wait_linked()
        (_, command), = self.calls()
        self.assertEqual(command, "tributary-relay --stdio\n")
        self.numbers(100)
        self.assertEqual(self.status()["link"]["reconnects"], 0)

    def test_it_outlives_the_connection_with_what_it_carries(self):
        self.dialling()
        self.wait_linked()
        pid = self.resident()
        producer = self.producer(address=self.path("dp"))
        consumer = self.consumer()
        consumer.enable(self.everywhere())
        writer = producer.writer()
        writer.number(50)
        os.kill(int(self.calls()[0][0]), signal.SIGKILL)
        writer.number(50)
        self.until(lambda: len(self.calls()) > 1, "it is dialled again")
        self.wait_linked()
        self.assertEqual(self.resident(), pid)
        writer.number(50)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [150])
        self.assertFalse(producer.closed)

    def test_one_that_runs_already_is_used(self):
        relay = self.relay(label="own", env={})
        os.symlink(relay.state_dir, self.state_dir)
        self.dialling()
        self.wait_state(relay, "linked")
        self.assertEqual(self.resident(), relay.pid)
        os.unlink(self.state_dir)
        self.numbers(10, self.producer(address=relay.producer_path))

    def test_a_relay_that_connects_by_itself_is_not_dialled(self):
        relay = self.relay(self.path("nowhere"), label="own")
        os.symlink(relay.state_dir, self.state_dir)
        daemon = self.dialling()
        self.until(lambda: "start it with --dialled" in daemon.log(),
                   "the log says what is wrong")
        os.unlink(self.state_dir)

    def test_one_that_was_started_ends_when_nobody_dials_any_more(self):
        with open(self.path("relay.conf"), "w") as file:
            file.write("dialled_idle_ms: 300")
        daemon = self.dialling(
            f'command: "tributary-relay --stdio '
            f'--config {self.path("relay.conf")}"')
        self.wait_linked()
        pid = self.resident()
        self.loop.settle(0.5)
        self.assertEqual(self.resident(), pid)
        daemon.stop()
        self.wait_gone(pid)

    def test_connect_accept_still_carries_one_producer(self):
        tributary = os.environ["TRIBUTARY"]
        self.dialling(f'command: "{tributary} connect --accept"')
        self.until(lambda: listeners(self.path("dp")),
                   "it listens on the device")
        producer = self.producer(address=self.path("dp"))
        self.numbers(30, producer)

    def test_terminals_and_missing_streams_are_refused(self):
        done = subprocess.run([BINARY, "--stdio", "--state-dir",
                               self.path("none")], stdin=subprocess.PIPE,
                              capture_output=True, text=True, timeout=60,
                              env=environment(), preexec_fn=lambda:
                              (os.close(0), os.close(1)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard input and output", done.stderr)
        self.assertFalse(os.path.exists(self.path("none")))


if __name__ == "__main__":
    sys.exit(tap.main())
