#!/usr/bin/env python3
"""The daemon without root and with few system calls: everything still works.

The main scenarios of other files run again, with a daemon that was started by
root, became `nobody` and refuses the system calls it does not need.
"""

import os
import pwd
import signal
import sys

import test_files
import test_many
import test_peers
import test_record
import test_sessions
import test_triggers
from harness import tap, tls
from harness.case import Case
from harness.daemon import Daemon
from harness.pki import OPENSSL, Pki

USER = "nobody"
SANITIZER = "no filter"


def status_of(pid):
    """/proc/PID/status as a dictionary."""
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file
                    if ":\t" in line)


def give_key(folder):
    """As the docs say: a group of the user's, which may read it."""
    key = os.path.join(folder, "key.pem")
    os.chown(key, 0, pwd.getpwnam(USER).pw_gid)
    os.chmod(key, 0o640)


class Confined:
    """Mixed into a Case: its daemons are started by root and confined."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a daemon that leaves root")
        super().setUp()

    def path(self, name):
        # The folder may be entered by all, though not listed.
        os.chmod(self.folder, 0o711)
        return super().path(name)

    def daemon(self, *, flags=(), **options):
        flags = list(flags)
        uid = pwd.getpwnam(USER).pw_uid
        if "--trace-dir" in flags:
            for folder, _, _ in os.walk(flags[flags.index("--trace-dir") + 1]):
                os.chown(folder, uid, -1)
        if "--tls-dir" in flags:
            give_key(flags[flags.index("--tls-dir") + 1])
        daemon = super().daemon(
            flags=flags + ["--user", USER, "--seccomp"], **options)
        status = status_of(daemon.pid)
        self.assertEqual(set(status["Uid"].split()), {str(uid)})
        self.assertEqual(set(status["Gid"].split()),
                         {str(pwd.getpwnam(USER).pw_gid)})
        self.assertEqual(int(status["CapPrm"], 16), 0)
        self.assertEqual(status["NoNewPrivs"], "1")
        if SANITIZER not in daemon.log():
            self.assertEqual(status["Seccomp"], "2")
        return daemon


def confined(base, *left_out):
    """The tests of a class, confined; left_out: what needs root itself."""
    fields = {name: None for name in left_out}
    return type("Confined" + base.__name__, (Confined, base), fields)


Lifecycle = confined(
    test_sessions.Lifecycle,
    # It takes the daemon's user for that of the test.
    "test_commands_come_in_order_and_the_trace_is_complete")
Matching = confined(test_sessions.Matching)
Files = confined(test_files.ByDescriptor)
Paths = confined(test_files.ByPath)
Ends = confined(
    test_files.Ends,
    # Its folder is root's, so that the sockets stay; see below.
    "test_sigterm_ends_sessions_and_completes_their_files",
    # Five seconds in which it waits, as it does with all rights.
    "test_sigterm_does_not_wait_for_silent_producers_forever")
Triggers = confined(test_triggers.Triggers)
Clones = confined(test_triggers.Clones)
Record = confined(test_record.Local)
RecordRemote = confined(test_record.Remote)
Peers = confined(test_peers.Peers)
Many = confined(
    test_many.Many, "test_over_vsock", "test_over_vsock_into_three_sessions")
# What the kernel refuses it refuses the first time.
Many.packets = 600


class Itself(Confined, Case):
    def test_all_its_threads_are_confined(self):
        daemon = self.daemon()
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT, 0o600)
        self.session(fds=[fd], write_into_file=True)
        os.close(fd)
        tasks = f"/proc/{daemon.pid}/task"
        self.until(lambda: len(os.listdir(tasks)) > 1, "a writer thread")
        for task in os.listdir(tasks):
            status = status_of(f"{daemon.pid}/task/{task}")
            self.assertEqual(status["NoNewPrivs"], "1")
            self.assertNotIn("0", status["Uid"].split())
            if SANITIZER not in daemon.log():
                self.assertEqual(status["Seccomp"], "2")

    def test_its_memory_is_closed_to_processes_of_the_same_user(self):
        daemon = self.daemon()
        self.assertEqual(os.stat(f"/proc/{daemon.pid}/mem").st_uid, 0)

    def test_sockets_that_cannot_be_removed_do_no_harm(self):
        first = self.daemon()
        first.stop()
        # The folder is root's, so that the file is still there.
        self.assertTrue(os.path.exists(first.producer_path))
        self.daemons.remove(first)
        self.daemon()
        producer = self.producer("p")
        consumer = self.session()
        producer.writer().number(3)
        consumer.stop()
        self.assert_numbers(consumer.read(), [3])

    def test_files_belong_to_the_user(self):
        traces = self.path("traces")
        os.mkdir(traces)
        self.daemon(flags=["--trace-dir", traces])
        producer = self.producer("p")
        consumer = self.session(write_into_file=True, output_path="one")
        producer.writer().number(3)
        consumer.stop()
        self.assertEqual(os.stat(os.path.join(traces, "one")).st_uid,
                         pwd.getpwnam(USER).pw_uid)


class Certificates(Confined, Case):
    def setUp(self):
        super().setUp()
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        self.pki = Pki(self.path("pki"))
        os.chmod(self.path("pki"), 0o711)
        self.tls_dir = self.pki.collector("first")

    def start(self):
        self.daemon(producer=["tls://127.0.0.1:0"],
                    flags=["--tls-dir", self.tls_dir])

    def record(self):
        address = tls.Address(self.daemons[0].address("producers", "tls"),
                              self.pki.issue("device"))
        producer = self.producer("p", address=address)
        consumer = self.session(trace_all_machines=True)
        producer.wait_started()
        producer.writer().number(50, size=3000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [50])

    def test_a_trace_over_tls(self):
        self.start()
        self.record()

    def test_certificates_are_read_again_without_root(self):
        self.start()
        second = self.pki.collector("second")
        give_key(second)
        for name in "key.pem", "cert.pem":
            os.replace(os.path.join(second, name),
                       os.path.join(self.tls_dir, name))
        self.daemons[0].signal(signal.SIGHUP)
        self.until(lambda: "reloaded: second" in self.daemons[0].log(),
                   "the new certificate")
        self.record()

    def test_a_key_that_could_not_be_read_again_is_refused_at_once(self):
        daemon = Daemon(self.folder, producer=["tls://127.0.0.1:0"],
                        flags=["--tls-dir", self.tls_dir, "--user", USER])
        with self.assertRaises(AssertionError):
            daemon.start()
        self.assertEqual(daemon.process.returncode, 1)
        self.assertRegex(daemon.log(), r"the TLS key \S+/key.pem cannot be "
                         r'read by the user "nobody".*chgrp')


class Refused(Confined, Case):
    """It does not start, and says why."""

    def said(self, *flags):
        daemon = Daemon(self.folder, flags=flags)
        with self.assertRaises(AssertionError):
            daemon.start()
        self.assertEqual(daemon.process.returncode, 1)
        return daemon.log()

    def test_a_user_that_does_not_exist(self):
        self.assertIn('there is no user "nobody-at-all"',
                      self.said("--user", "nobody-at-all"))

    def test_a_trace_folder_that_the_user_cannot_write_to(self):
        os.mkdir(self.path("traces"), 0o755)
        self.assertIn('the user "nobody" can create files',
                      self.said("--user", USER, "--trace-dir",
                                self.path("traces")))


if __name__ == "__main__":
    sys.exit(tap.main())
