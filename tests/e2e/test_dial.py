#!/usr/bin/env python3
"""A collector that connects to its devices."""

import json
import os
import signal
import sys

from harness import sshd, tap
from harness.case import Case
from harness.fake_ssh import FakeSsh

DENIED = "root@device-7: Permission denied (publickey).\n"
UNKNOWN = "Host key verification failed.\n"


class Dialling(Case):
    def start(self, *dials, **env):
        with open(self.path("conf"), "w") as file:
            for dial in dials:
                file.write(f"dial {{ {dial} max_retry_ms: 200 }}\n")
        os.mkdir(self.path("run"))
        return self.daemon(flags=["--config", self.path("conf")], env={
            "TRIBUTARY_SSH": self.ssh, "RUNTIME_DIRECTORY": self.path("run"),
            **env})

    def lines(self, *words):
        return [line for line in self.daemons[0].log().splitlines()
                if all(word in line for word in words)]

    def wait_lines(self, *words):
        return self.until(lambda: self.lines(*words), f"{words} in the log")

    def machine_of(self, name):
        found, = [p for p in self.consumer().query().producers
                  if p.name == name]
        return found.machine_name


class Dial(FakeSsh, Dialling):
    """With a stand-in for ssh."""

    def says(self, text):
        """What ssh says instead of connecting; None: nothing, it connects."""
        if text is None:
            os.unlink(self.path("says"))
            return
        with open(self.path("says.new"), "w") as file:
            file.write(text)
        os.replace(self.path("says.new"), self.path("says"))

    def calls(self):
        """[process id, arguments] of every ssh that was started."""
        try:
            with open(self.path("calls")) as file:
                return [json.loads(line) for line in file
                        if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def wait_calls(self, count):
        self.until(lambda: len(self.calls()) >= count, f"{count} calls")

    # ---- being served ----

    def test_a_device_that_is_dialled_is_served_like_one_that_connects(self):
        self.start('address: "ssh://device-7"')
        with self.neighbour():
            producer = self.producer("far", ["far"], address=self.answer())
            consumer = self.session("far", trace_all_machines=True)
            writer = producer.writer()
            writer.number(1000)
            consumer.stop()
            trace = consumer.read()
            self.assert_numbers(trace, [1000])
            self.wait_lines("dial ssh://device-7: connected")
        (_, argv), = self.calls()
        self.assertIn("device-7", argv)
        self.assertIn("BatchMode=yes", " ".join(argv))
        self.assertEqual(argv[-1], "tributary-relay --stdio")

    def test_its_machine_is_what_the_settings_call_it(self):
        self.start('address: "ssh://device-7" machine_name: "the pump"')
        self.producer("far", address=self.answer(),
                      identity={"machine_name": "forged"}).sync()
        self.assertEqual(self.machine_of("far"), "the pump")

    def test_its_machine_is_its_host_else(self):
        self.start('address: "ssh://root@device-7:2222"')
        self.producer("far", address=self.answer()).sync()
        self.assertEqual(self.machine_of("far"), "device-7")

    def test_its_command_is_what_the_settings_name(self):
        self.start('address: "ssh://root@device-7:2222" '
                   'command: "relay --stdio"')
        self.producer("far", address=self.answer()).sync()
        (_, argv), = self.calls()
        self.assertEqual(argv[-1], "relay --stdio")
        self.assertIn("2222", argv)

    def test_it_reaches_no_consumer_port(self):
        self.start('address: "ssh://device-7"')
        with self.assertRaises(AssertionError):
            self.consumer(self.answer())
        self.wait_lines("ConsumerPort", "ssh://device-7")

    def test_it_is_called_again_when_it_goes(self):
        self.start('address: "ssh://device-7"')
        with self.neighbour():
            for _ in range(3):
                producer = self.producer("far", address=self.answer())
                producer.sync()
                producer.close()
        self.wait_calls(4)

    # ---- not being reached ----

    def test_a_reason_is_told_once(self):
        self.says(DENIED)
        self.start('address: "ssh://device-7"')
        with self.neighbour():
            self.wait_calls(5)
            line, = self.lines("dial ssh://device-7:")
            self.assertIn("ermission denied", line)
            self.says(UNKNOWN)
            self.wait_lines("dial ssh://device-7:", "host key")
            self.wait_calls(len(self.calls()) + 3)
            self.assertEqual(len(self.lines("dial ssh://device-7:")), 2)
            self.says(None)
            self.producer("far", address=self.answer()).sync()
            self.wait_lines("dial ssh://device-7: connected")

    def test_one_that_cannot_be_reached_does_not_hold_another(self):
        self.says(DENIED)
        self.start('address: "ssh://device-7"', 'address: "ssh://device-8"')
        self.wait_lines("dial ssh://device-7:")
        self.wait_lines("dial ssh://device-8:")

    def test_a_missing_ssh_is_told(self):
        os.unlink(self.ssh)
        self.start('address: "ssh://device-7"')
        with self.neighbour():
            line, = self.wait_lines("dial ssh://device-7:")
            self.assertIn(self.ssh, line)

    # ---- the end ----

    def is_running(self, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    def test_nothing_is_left_behind(self):
        daemon = self.start('address: "ssh://device-7"',
                            'address: "ssh://device-8/run/socket"')
        self.producer("far", address=self.answer()).sync()
        self.wait_calls(2)
        folder, = os.listdir(self.path("run"))
        folder = os.path.join(self.path("run"), folder)
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
        self.assertEqual(len(os.listdir(folder)), 1)
        daemon.stop()
        self.assertEqual(os.listdir(self.path("run")), [])
        for pid, _ in self.calls():
            self.assertFalse(self.is_running(pid))

    def test_a_killed_collector_takes_its_children_along(self):
        daemon = self.start('address: "ssh://device-7"')
        self.producer("far", address=self.answer()).sync()
        (pid, _), = self.calls()
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        daemon.expected_status = daemon.status
        self.until(lambda: not self.is_running(pid), "the child ends")


class RealSshd(Dialling):
    """With a real ssh and sshd."""

    def setUp(self):
        super().setUp()
        if (reason := sshd.missing()) is not None:
            self.skipTest(reason)
        self.socket = self.path("device")

    def sshd(self, **options):
        self.host = sshd.Sshd(self.path("sshd"), **options)
        self.addCleanup(self.host.stop)
        self.host.start(self.until)
        self.ssh = self.host.wrapper

    def dial_program(self):
        """tributary connect, there."""
        return (f'address: "{self.host.address()}" command: '
                f'"{os.environ["TRIBUTARY"]} connect --accept={self.socket}"')

    def dial_socket(self):
        """A socket that sshd listens on, there."""
        return f'address: "{self.host.address(self.socket)}"'

    def device(self, name="far"):
        """A producer of the device."""
        def connect():
            try:
                return self.producer(name, [name], address=self.socket)
            except (OSError, AssertionError):
                return None  # not there yet, or not any more
        return self.until(connect, "somebody listens on the device")

    def check_recorded(self, *names):
        devices = [self.device(name) for name in names]
        consumer = self.session(*names, trace_all_machines=True,
                                size_kb=16 * 1024)
        for device in devices:
            device.writer().number(2000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [2000] * len(names))
        for name in names:
            self.assertEqual(self.machine_of(name), "127.0.0.1")
        return devices

    def test_a_program_there_carries_a_producer(self):
        self.sshd()
        self.start(self.dial_program())
        with self.neighbour():
            for _ in range(2):  # one after the other
                device, = self.check_recorded("far")
                device.close()
        self.wait_lines("connected")

    def test_a_socket_there_carries_many(self):
        self.sshd()
        self.start(self.dial_socket())
        with self.neighbour():
            self.check_recorded("far.1", "far.2", "far.3")

    def test_what_comes_through_the_socket_is_not_the_local_user(self):
        self.sshd()
        self.start(self.dial_socket())
        self.device().sync()
        self.assertFalse(self.lines("unix pid", "producer 1 is far"))
        self.wait_lines("ssh://127.0.0.1: producer 1 is far")

    def test_a_link_that_breaks_is_made_again(self):
        self.sshd()
        self.start(self.dial_socket())
        with self.neighbour():
            device = self.device()
            self.host.kill_connections()
            self.until(lambda: device.closed, "the link breaks")
            self.wait_lines("will go on trying")
            self.check_recorded("far")

    # ---- refusals ----

    def check_told(self, *words):
        """Told, and told once, while it goes on trying."""
        with self.neighbour():
            line, = self.wait_lines(f"dial {self.host.address()}")
            for word in words:
                self.assertIn(word, line)
            self.until(lambda: self.host.log().count("Connection from") > 2,
                       "it goes on trying")
            self.assertEqual(len(self.lines("will go on trying")), 1)

    def test_an_unknown_host_key(self):
        self.sshd()
        os.unlink(self.host.known_hosts)
        self.start(self.dial_socket())
        self.check_told("the host key of 127.0.0.1 is not known")
        self.host.know()
        self.device().sync()

    def test_a_key_that_is_not_let_in(self):
        self.sshd()
        self.host.authorize(public=sshd.make_key(self.path("other")))
        self.start(self.dial_program())
        self.check_told("127.0.0.1 does not let us in", "Permission denied")
        self.host.authorize()
        self.device().sync()

    def test_a_forwarding_that_is_forbidden(self):
        self.sshd(settings=["AllowStreamLocalForwarding no"])
        self.start(self.dial_socket())
        self.check_told("127.0.0.1", "AllowStreamLocalForwarding")

    def test_a_program_that_is_not_there(self):
        self.sshd()
        self.start(f'address: "{self.host.address()}" '
                   'command: "/nonexistent/tributary connect --accept"')
        self.check_told("install tributary on 127.0.0.1")

    def test_nothing_is_left_behind(self):
        self.sshd()
        daemon = self.start(self.dial_socket())
        self.device().sync()
        daemon.stop()
        self.assertEqual(os.listdir(self.path("run")), [])
        self.until(lambda: "Disconnected" in self.host.log() or
                   "Connection closed" in self.host.log() or
                   "disconnected by user" in self.host.log(),
                   "ssh is gone")


if __name__ == "__main__":
    sys.exit(tap.main())
