#!/usr/bin/env python3
"""The daemon becomes another version of itself without losing a socket
(SIGUSR2); and is back at once after a crash."""

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys

from harness import tap, tls
from harness.case import Case, TEST_SOURCE, config
from harness.certs import Authority
from harness.daemon import Daemon
from harness.device import RelayCase
from harness.fake_ssh import FakeSsh
from harness.faults import Plan
from harness.ipc import Port
from harness.ports import free_address
from harness.trace import Trace
from test_activation import HAND_OVER


# Writes a line for each twenty connections, and for each that is refused.
KNOCK = """
import socket, sys, time
where = sys.argv[1]
if not where.startswith("/"):
    host, port = where.rsplit(":", 1)
    where = host, int(port)
n = 0
while True:
    sock = socket.socket(socket.AF_UNIX if isinstance(where, str)
                         else socket.AF_INET)
    try:
        sock.connect(where)
        n += 1
        if n % 20 == 0:
            print(n, flush=True)
    except OSError as error:
        print(error, flush=True)
    sock.close()
    time.sleep(0.0003)  # leaves the daemon a processor
"""


class Knocker:
    """Connects in a tight loop, from a process of its own."""

    def __init__(self, address, log):
        self._log = log
        with open(log, "w") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", KNOCK, address], stdout=file)

    def lines(self):
        with open(self._log) as file:
            return file.read().splitlines()

    def connected(self):
        return len(self.lines())

    def refused(self):
        return [line for line in self.lines() if not line.isdigit()]

    def end(self):
        self._process.kill()
        self._process.wait()


class Upgradable(Daemon):
    """Started through a link, which a package manager lets show elsewhere."""

    def __init__(self, folder, *, config=None, **options):
        super().__init__(folder, **options)
        self.link = os.path.join(folder, "tributaryd")
        self.config = config
        self.point_to(os.environ["TRIBUTARYD"])

    def command(self):
        argv = super().command()
        argv[len(self._wrap)] = self.link
        if self.config is None:
            return argv
        return [*self._wrap, self.link, "--config", self.config]

    def point_to(self, program):
        if os.path.lexists(self.link):
            os.unlink(self.link)
        os.symlink(program, self.link)

    def script(self, text):
        """The link shows to a shell script."""
        path = os.path.join(self.folder, "script")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
        self.point_to(path)


def crash(daemon):
    """kill -9, and started again as it lies there."""
    daemon.kill()
    assert os.path.exists(daemon.producer_path)
    daemon.start()
    daemon.expected_status = 0


class UpgradeCase(Case):
    def start(self, **options):
        daemon = Upgradable(self.folder, **options)
        self.daemons.append(daemon)
        daemon.start()
        return daemon

    def upgrade(self, *consumers):
        """consumers: whose sessions end with it; they leave then."""
        daemon = self.daemons[0]
        before = daemon.log().count("upgrading")
        starts = daemon.log().count("listening for consumers")
        daemon.signal(signal.SIGUSR2)
        for consumer in consumers:
            consumer.ended()
            consumer.close()
        self.until(lambda: daemon.log().count("upgrading") > before,
                   "the upgrade begins")
        self.until(lambda: daemon.log().count("listening for consumers") >
                   starts, "the next daemon listens")
        self.assertTrue(daemon.running())

    def refused(self, why):
        """An upgrade is, and serving goes on."""
        daemon = self.daemons[0]
        before = daemon.log().count("no upgrade:")
        daemon.signal(signal.SIGUSR2)
        self.until(lambda: daemon.log().count("no upgrade:") > before,
                   "the refusal")
        line = [x for x in daemon.log().splitlines() if "no upgrade:" in x][-1]
        self.assertIn(why, line)

    def settings(self, *lines):
        path = self.path("settings")
        with open(path, "w") as file:
            file.write('log_level: "debug"\n' + "\n".join(lines) + "\n")
        return path

    def listen(self, port, address, more=""):
        return f'listen {{ port: {port} address: "{address}" {more} }}'

    def written(self, producer, consumer, count):
        """So many packets, and that they are in the trace."""
        producer.wait_started()
        producer.writer().number(count)
        producer.sync()
        consumer.stop()
        self.assert_numbers(consumer.read(), [count])
        consumer.close()

    def recorded(self, name, producers):
        """A whole session, and what of it is in the trace."""
        producer = self.producer(name, [name], address=producers)
        consumer = self.consumer(address=self.path("c"))
        consumer.enable(config(name))
        self.written(producer, consumer, 20)
        producer.close()


class Sockets(UpgradeCase):
    def test_nobody_is_refused_over_several_upgrades(self):
        daemon = self.start(flags=[
            "--enable-relay-endpoint", "--set-socket-permissions",
            "root:0666:root:0660"] if os.geteuid() == 0 else (),
            producer=[self.path("p"), "127.0.0.1:0"])
        host, port = daemon.address("producers", "tcp").rsplit(":", 1)
        pid, before = daemon.pid, os.stat(self.path("c"))
        fds = daemon.fds()
        knockers = [Knocker(self.path("c"), self.path("knocks-c")),
                    Knocker(f"{host}:{port}", self.path("knocks-p"))]
        for knocker in knockers:
            self.addCleanup(knocker.end)
        for number in range(3):
            so_far = [k.connected() for k in knockers]
            self.upgrade()
            self.until(lambda: all(k.connected() > n for k, n in
                       zip(knockers, so_far)), "they connect")
            self.recorded(f"unix{number}", self.path("p"))
            self.recorded(f"tcp{number}", f"{host}:{port}")
        for knocker in knockers:
            knocker.end()
            self.assertEqual(knocker.refused(), [])
        after = os.stat(self.path("c"))
        self.assertEqual((before.st_ino, before.st_mode, before.st_gid),
                         (after.st_ino, after.st_mode, after.st_gid))
        self.assertEqual(os.readlink(f"/proc/{pid}/exe"),
                         os.path.realpath(os.environ["TRIBUTARYD"]))
        self.until(lambda: daemon.fds() <= fds, "no descriptor is left over")
        daemon.stop()
        self.assertFalse(os.path.exists(self.path("p")))
        self.assertFalse(os.path.exists(self.path("c")))

    def test_who_comes_meanwhile_is_served_by_the_next(self):
        self.start()
        # Its data holds the end back until it is read.
        producer = self.producer("p", address=self.path("p"))
        consumer = self.consumer(address=self.path("c"))
        consumer.enable(config(TEST_SOURCE))
        producer.wait_started()
        producer.writer().number(30)
        daemon = self.daemons[0]
        daemon.signal(signal.SIGUSR2)
        self.until(lambda: "upgrading" in daemon.log(), "it begins")
        late = self._add(Port(self.loop, self.path("c"), bind=False))
        consumer.ended()
        self.assert_numbers(consumer.read(), [30])
        self.assertFalse(late.closed)
        consumer.close()
        late.bind("ConsumerPort")
        self.assertTrue(producer.closed)
        self.recorded("after", self.path("p"))

    def test_sockets_follow_the_settings(self):
        keep = [self.listen("PRODUCER", self.path("p")),
                self.listen("CONSUMER", self.path("c"))]
        tcp = free_address()
        self.start(config=self.settings(
            *keep, self.listen("PRODUCER", self.path("old")),
            self.listen("PRODUCER", tcp)))
        inode = os.stat(self.path("p")).st_ino
        self.settings(*keep, self.listen("PRODUCER", self.path("new")),
                      self.listen("CONSUMER", tcp,
                                  "allow_plain_consumer: true"),
                      f'trace_dir: "{self.folder}"')
        self.upgrade()
        # What is not wanted any more goes last.
        self.until(lambda: not os.path.exists(self.path("old")), "it is gone")
        self.assertEqual(os.stat(self.path("p")).st_ino, inode)
        self.recorded("new", self.path("new"))
        # The same socket serves another port.
        consumer = self.consumer(address=tcp)
        self.assertEqual(len(consumer.query().tracing_sessions), 0)

    def test_passed_sockets_are_passed_on(self):
        with socket.socket(socket.AF_UNIX) as passed:
            path = self.path("passed")
            passed.bind(path)
            passed.listen(64)
            fd = passed.fileno()
            self.start(
                producer=["127.0.0.1:0"],
                wrap=[sys.executable, "-c", HAND_OVER, str(fd)],
                pass_fds=[fd],
                env={"LISTEN_FDS": "1", "LISTEN_FDNAMES": "producer"})
        for number in range(2):
            self.upgrade()
            self.recorded(f"p{number}", path)
        self.daemons[0].stop()
        # Not ours to remove.
        self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))

    def test_as_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a daemon that leaves root")
        os.chmod(self.folder, 0o711)
        daemon = self.start(flags=["--user", "nobody"])
        shutil.copy(os.environ["TRIBUTARYD"], self.path("binary"))
        daemon.point_to(self.path("binary"))
        os.chmod(self.path("c"), 0o666)
        self.upgrade()
        self.recorded("p", self.path("p"))
        self.assertEqual(os.stat(f"/proc/{daemon.pid}").st_uid,
                         pwd.getpwnam("nobody").pw_uid)
        # It cannot listen where only root can.
        os.mkdir(self.path("roots"), 0o700)
        daemon.script(f'exec {self.path("binary")} --producer-socket '
                      f'{self.path("roots")}/p "$@"')
        self.refused("ermission")
        self.recorded("again", self.path("p"))


class Tls(UpgradeCase):
    def shown(self, address):
        """The serial number of the certificate that newcomers are shown."""
        host, port = address.removeprefix("tls://").rsplit(":", 1)
        plain = socket.create_connection((host, int(port)), timeout=30)
        end = tls.Socket(plain, address.folder)
        serial = end.peer_certificate()["serialNumber"]
        end.close()
        return serial

    def upgraded(self, *flags):
        authority = Authority(self.path("ca"))
        device = authority.issue("pump-7")
        operator = authority.issue("ops", "consumer")
        daemon = self.start(
            flags=["--tls-dir", authority.folder, *flags],
            producer=[self.path("p"), "tls://127.0.0.1:0"],
            consumer=[self.path("c"), "tls://127.0.0.1:0"])
        fds = daemon.fds()
        far = tls.Address(daemon.address("producers", "tls"), device)
        reader = tls.Address(daemon.address("consumers", "tls"), operator)
        serial = self.shown(far)
        path = self.path("trace")
        producer = self.producer("far", address=far)
        consumer = self.consumer(address=self.path("c"))
        with open(path, "wb") as file:
            consumer.enable(config(TEST_SOURCE, write_into_file=True,
                                   trace_all_machines=True,
                                   file_write_period_ms=3600000),
                            [file.fileno()])
        producer.wait_started()
        producer.writer().number(200)
        producer.sync()
        host, port = far.removeprefix("tls://").rsplit(":", 1)
        mute = socket.create_connection((host, int(port)), timeout=30)
        authority.renew()
        self.upgrade(consumer)
        # The session is complete, and nobody hangs on the old daemon.
        self.assert_numbers(Trace.from_file(path), [200])
        self.until(lambda: producer.closed, "the device is cut off")
        self.assertEqual(mute.recv(1), b"")
        mute.close()
        # The same ports, and what the folder holds now.
        self.assertNotEqual(self.shown(far), serial)
        self.recorded("far", far)
        consumer = self.consumer(address=reader)
        self.assertEqual(len(consumer.query().tracing_sessions), 0)
        consumer.close()
        self.until(lambda: daemon.fds() <= fds, "no descriptor is left over")
        with open(authority.path("cert.pem"), "w") as file:
            file.write("no certificate")
        self.refused("cert.pem")
        self.recorded("far", far)

    def recorded(self, name, producers):
        producer = self.producer(name, [name], address=producers)
        consumer = self.session(name, trace_all_machines=True)
        self.written(producer, consumer, 20)
        producer.close()

    def test_devices_with_certificates_find_the_next_daemon(self):
        self.upgraded()

    def test_so_they_do_at_threads_for_connections(self):
        self.upgraded("--io-threads", "2")


class Dials(FakeSsh, UpgradeCase):
    """With a stand-in for ssh."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("run"))
        self.env = {"TRIBUTARY_SSH": self.ssh,
                    "RUNTIME_DIRECTORY": self.path("run")}

    def children(self):
        pid = self.daemons[0].pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()

    def test_devices_are_dialled_anew(self):
        keep = [self.listen("PRODUCER", self.path("p")),
                self.listen("CONSUMER", self.path("c"))]
        dial = 'dial { address: "ssh://device-7" max_retry_ms: 200 }'
        daemon = self.start(config=self.settings(*keep, dial), env=self.env)
        producer = self.producer("far", ["far"], address=self.answer())
        fds, first = daemon.fds(), self.children()
        self.assertEqual(len(first), 1)
        self.written(producer, self.session("far", trace_all_machines=True),
                     100)
        self.upgrade()
        self.until(lambda: producer.closed, "the old connection ends")
        # Its ssh has gone, and nobody waits for it in vain.
        producer = self.producer("far", ["far"], address=self.answer())
        self.until(lambda: len(self.children()) == 1, "one child")
        self.assertNotEqual(self.children(), first)
        self.written(producer, self.session("far", trace_all_machines=True),
                     100)
        self.until(lambda: daemon.fds() <= fds, "no descriptor is left over")
        self.settings(*keep)
        self.upgrade()
        self.until(lambda: producer.closed, "the old connection ends")
        self.until(lambda: not self.children(), "no child is left")
        self.assertEqual(os.listdir(self.path("run")), [])


class Sessions(UpgradeCase):
    def test_files_are_complete(self):
        self.start()
        path = self.path("trace")
        producers = [self.producer(f"p{i}", address=self.path("p"))
                     for i in range(3)]
        consumer = self.consumer(address=self.path("c"))
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        consumer.enable(config(TEST_SOURCE, write_into_file=True,
                                    file_write_period_ms=3600000), [fd])
        os.close(fd)
        for producer in producers:
            producer.wait_started()
            producer.writer().number(500)
        self.upgrade(consumer)
        self.assert_numbers(Trace.from_file(path), [500, 500, 500])
        self.recorded("next", self.path("p"))

    def test_what_cannot_follow_is_refused_and_nothing_ends(self):
        keep = [self.listen("PRODUCER", self.path("p")),
                self.listen("CONSUMER", self.path("c"))]
        daemon = self.start(config=self.settings(*keep))
        producer = self.producer("p", address=self.path("p"))
        consumer = self.consumer(address=self.path("c"))
        consumer.enable(config(TEST_SOURCE))
        producer.wait_started()
        writer = producer.writer()
        writer.number(10)
        self.settings(*keep, "no_such_setting: 1")
        self.refused("no_such_setting")
        self.settings(*keep, self.listen("PRODUCER", "0.0.0.0:0"))
        self.refused("--allow-remote 0.0.0.0:0")
        self.settings(*keep, 'trace_dir: "/nonexistent"')
        self.refused("/nonexistent")
        self.settings(*keep, 'tls { dir: "/nonexistent" }',
                      self.listen("PRODUCER", "tls://127.0.0.1:0"))
        self.refused("/nonexistent")
        os.unlink(self.path("settings"))
        self.refused("settings")
        self.settings(*keep)
        os.unlink(daemon.link)
        self.refused("No such file")
        daemon.script("echo OK")
        self.refused("too old")
        daemon.script("echo it is broken >&2; exit 1")
        self.refused("it is broken")
        daemon.script("kill -SEGV $$")
        self.refused("signal 11")
        with open(self.path("text"), "w") as file:
            file.write("no program")
        daemon.point_to(self.path("text"))
        self.refused("ermission denied")
        # Nothing ended, and nobody was cut off.
        writer.number(10)
        consumer.stop()
        self.assert_numbers(consumer.read(), [20])
        consumer.close()
        daemon.point_to(os.environ["TRIBUTARYD"])
        self.upgrade()
        self.recorded("next", self.path("p"))

    def test_a_disk_that_hangs_calls_it_off(self):
        plan = Plan(self.path("plan"), match="/on the disk")
        daemon = self.start(env=plan.env())
        path = self.path("on the disk")
        producer = self.producer("p", address=self.path("p"))
        consumer = self.consumer(address=self.path("c"))
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        consumer.enable(config(TEST_SOURCE, write_into_file=True), [fd])
        os.close(fd)
        producer.wait_started()
        producer.writer().number(50)
        plan.write_delay_us = 3600_000_000
        self.refused("were not done in time")
        # What needs no disk is served, as before.
        self.recorded("meanwhile", self.path("p"))
        plan.heal()
        consumer.close()
        producer.close()
        self.upgrade()
        self.assert_numbers(Trace.from_file(path), [50])
        self.recorded("next", self.path("p"))

    def test_a_daemon_with_few_system_calls_says_what_to_do(self):
        self.start(flags=["--seccomp"])
        self.refused("tributaryd.socket")
        self.recorded("p", self.path("p"))

    def test_a_stop_comes_before_an_upgrade(self):
        daemon = self.start()
        daemon.script(f"touch {self.path('begun')}; read forever")
        daemon.signal(signal.SIGUSR2)
        self.until(lambda: os.path.exists(self.path("begun")), "the trial")
        daemon.signal(signal.SIGUSR2)
        self.until(lambda: "under way already" in daemon.log(), "one at once")
        daemon.stop()


class Relays(RelayCase):
    def restarted(self, again):
        """A relay and its producers before and after again()."""
        daemon = self.collector()
        device = self.device("a", daemon.producer_path)
        self.wait_linked()
        book = self.ledger([(device, 2)], rate=200_000)
        first = self.record()
        self.wait_writing(book, 4)
        self.wait_written(book, 50)
        again(daemon, first)
        self.wait_linked()
        self.until(lambda: book.writing() == 0, "their session is over")
        second = self.record()
        self.wait_writing(book, 4)
        self.wait_written(book, 50)
        audit = self.finish(book, second)
        fresh = [s for s in audit.sequences if s in audit.arrived]
        self.assertEqual(len(fresh), 4)
        self.assertTrue(device.running())

    def test_a_relay_resumes_after_an_upgrade(self):
        def upgrade(daemon, consumer):
            starts = daemon.log().count("listening for consumers")
            daemon.signal(signal.SIGUSR2)
            consumer.ended()
            consumer.close()
            self.until(lambda: daemon.log().count("listening for consumers") >
                       starts, "the next daemon listens")
        self.restarted(upgrade)

    def test_a_relay_resumes_after_a_crash(self):
        def again(daemon, consumer):
            crash(daemon)
        self.restarted(again)


class Crash(UpgradeCase):
    def test_listeners_are_back_at_once(self):
        tcp = free_address()
        daemon = self.start(producer=[self.path("p"), tcp])
        # Connections of both kinds, which the crash cuts from that end.
        for address in (self.path("p"), tcp):
            self.producer("p", address=address)
        self.recorded("before", tcp)
        crash(daemon)
        self.recorded("unix", self.path("p"))
        self.recorded("tcp", tcp)


if __name__ == "__main__":
    sys.exit(tap.main())
