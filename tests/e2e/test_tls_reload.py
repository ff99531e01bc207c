#!/usr/bin/env python3
"""Certificates that change while the daemon serves."""

import os
import shutil
import signal
import socket
import ssl
import sys

from harness import tap, tls
from harness.case import Case
from harness.daemon import Daemon
from harness.pki import OPENSSL, Pki


class Activated(Daemon):
    """Its first producer socket was opened by a service manager."""

    listening = None

    def command(self):
        self.pass_fds = [self.listening.fileno()]
        return ["/bin/sh", "-c",
                f"exec 3<&{self.listening.fileno()}; LISTEN_PID=$$; "
                "export LISTEN_PID; exec \"$@\"", "sh", *super().command()]


class HalfHandshake:
    """A client that has all it needs to finish, and waits."""

    def __init__(self, address, folder):
        host, port = address.removeprefix("tls://").rsplit(":", 1)
        self._sock = socket.create_connection((host, int(port)))
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.context(folder).wrap_bio(
            self._in, self._out, server_hostname="localhost")
        while not self._step():
            self._sock.sendall(self._out.read())
            self._in.write(self._sock.recv(1 << 16))

    def _step(self):
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True  # what it wrote is the last of the handshake

    def finish(self):
        """All that the service says afterwards."""
        self._sock.sendall(self._out.read())
        said = b""
        while data := self._sock.recv(1 << 16):
            self._in.write(data)
            try:
                while part := self._tls.read(1 << 16):
                    said += part
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                break
        return said

    def close(self):
        self._sock.close()


class Reload(Case):
    def setUp(self):
        super().setUp()
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        self.pki = Pki(self.path("pki"))
        self.tls_dir = self.pki.collector("first")
        self.device = self.pki.issue("device")
        self.start()

    def start(self):
        self.daemon(producer=[self.path("p"), "tls://127.0.0.1:0"],
                    flags=["--tls-dir", self.tls_dir])
        self.at = self.daemons[0].address("producers", "tls")

    def connect(self, folder=None):
        producer = self.producer(
            "device", address=tls.Address(self.at, folder or self.device))
        producer.sync()
        return producer

    def shown(self):
        """The name in the certificate that a newcomer is shown."""
        producer = self.connect()
        subject = producer.sock.peer_certificate()["subject"]
        producer.close()
        return dict(part[0] for part in subject)["commonName"]

    def replace(self, source, *names):
        """As `mv` does it: each file is whole at any time."""
        for name in names:
            new = os.path.join(self.tls_dir, name + ".new")
            shutil.copy(os.path.join(source, name), new)
            os.replace(new, os.path.join(self.tls_dir, name))

    def write(self, name, text):
        new = os.path.join(self.tls_dir, name + ".new")
        with open(new, "w") as file:
            file.write(text)
        os.replace(new, os.path.join(self.tls_dir, name))

    def lines(self, *words):
        return [line for line in self.daemons[0].log().splitlines()
                if all(word in line for word in words)]

    def wait_lines(self, *words, count=1):
        return self.until(lambda: len(self.lines(*words)) >= count and
                          self.lines(*words), f"{words} in the log")

    # ---- what is said ----

    def test_the_log_names_the_certificate(self):
        line, = self.lines("listening for producers on tls://")
        self.assertRegex(line, r"\(certificate first until "
                               r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)$")

    def test_one_that_ends_soon_is_warned_of(self):
        self.assertFalse(self.lines("renew it"))
        soon = self.pki.collector("soon", end=5.5)
        self.replace(soon, "key.pem", "cert.pem")
        self.daemons[0].signal(signal.SIGHUP)
        line = self.wait_lines("renew it")[0]
        self.assertIn('the certificate "soon" ends in 5 days', line)

    def test_a_socket_that_was_passed_in_speaks_tls_where_it_is_named_so(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            at = "tls://127.0.0.1:%d" % listening.getsockname()[1]
            os.mkdir(self.path("two"))
            daemon = Activated(
                self.path("two"), producer=[at],
                flags=["--tls-dir", self.tls_dir],
                env={"LISTEN_FDS": "1", "LISTEN_FDNAMES": "producer"})
            daemon.listening = listening
            self.daemons.append(daemon)
            daemon.start()
        self.assertEqual(daemon.addresses("producers"), [at])
        self.assertIn("certificate first", daemon.log())
        self.producer("p", address=tls.Address(at, self.device)).sync()

    # ---- a reload ----

    def check_renewed(self, tell):
        held = self.connect()
        with self.neighbour():
            self.assertEqual(self.shown(), "first")
            second = self.pki.collector("second", end=20)
            self.replace(second, "key.pem", "cert.pem")
            tell()
            line = self.wait_lines("certificates reloaded")[0]
            self.assertRegex(line, r"reloaded: second, valid until \d{4}-")
            self.assertEqual(self.shown(), "second")
            # Who was inside has not noticed.
            held.sync()

    def test_sighup_reads_them_again(self):
        self.check_renewed(lambda: self.daemons[0].signal(signal.SIGHUP))

    def test_a_change_on_disk_is_seen(self):
        self.check_renewed(lambda: None)

    def test_sighup_without_certificates_ends_nothing(self):
        self.daemons[0].stop()
        self.daemons.clear()
        os.mkdir(self.path("plain"))
        daemon = self.daemon(producer=[self.path("plain/p")])
        daemon.signal(signal.SIGHUP)
        self.wait_lines("nothing to reload")
        self.producer("p").sync()

    # ---- broken files ----

    def check_kept(self, *words):
        """They are told of, once, and the old ones serve on."""
        line = self.wait_lines("kept the old ones")[0]
        for word in words:
            self.assertIn(word, line)
        self.assertEqual(self.shown(), "first")

    def test_a_broken_certificate_changes_nothing(self):
        held = self.connect()
        with self.neighbour():
            self.write("cert.pem", "no certificate\n")
            self.daemons[0].signal(signal.SIGHUP)
            self.check_kept("cert.pem")
            held.sync()

    def test_a_broken_certificate_that_is_found_changes_nothing(self):
        held = self.connect()
        with self.neighbour():
            self.write("cert.pem", "no certificate\n")
            self.check_kept("cert.pem")
            held.sync()
        # Back to what it was: that is a change, too.
        self.replace(self.pki.collector("third"), "key.pem", "cert.pem")
        self.wait_lines("certificates reloaded: third")
        self.assertEqual(len(self.lines("kept the old ones")), 1)
        self.assertEqual(self.shown(), "third")

    def test_a_key_of_another_certificate_changes_nothing(self):
        self.replace(self.pki.collector("other"), "key.pem")
        self.daemons[0].signal(signal.SIGHUP)
        self.check_kept("key.pem")

    def test_a_missing_key_changes_nothing(self):
        os.unlink(os.path.join(self.tls_dir, "key.pem"))
        self.daemons[0].signal(signal.SIGHUP)
        self.check_kept("key.pem", "No such file")

    # ---- revocation ----

    def test_who_is_revoked_goes_and_does_not_come_back(self):
        good = self.connect()
        stolen = self.pki.issue("stolen")
        bad = self.connect(stolen)
        resumes = self.connect(stolen)
        with self.neighbour():
            self.pki.revoke(stolen)
            self.pki.write_crl(self.tls_dir)
            self.until(lambda: bad.closed and resumes.closed,
                       "the revoked are closed")
            self.wait_lines("stolen at 127.0.0.1", "certificate is revoked",
                            count=2)
            good.sync()
            with self.assertRaises((OSError, AssertionError)):
                self.connect(stolen)
            self.wait_lines("stolen", "revoked", count=3)
            self.connect()

    def test_who_is_revoked_while_shaking_hands_is_told(self):
        """Its certificate is verified under the list of before."""
        stolen = self.pki.issue("stolen")
        half = HalfHandshake(self.at, stolen)
        self.addCleanup(half.close)
        self.pki.revoke(stolen)
        self.pki.write_crl(self.tls_dir)
        self.daemons[0].signal(signal.SIGHUP)
        self.wait_lines("certificates reloaded")
        self.assertIn(b"its certificate is revoked", half.finish())

    def test_a_new_ca_lets_others_in(self):
        other = Pki(self.path("other"), "other CA")
        stranger = other.issue("stranger")
        mixed = self.path("mixed")
        shutil.copytree(stranger, mixed)
        shutil.copy(self.pki.ca, os.path.join(mixed, "ca.pem"))
        with self.assertRaises((OSError, AssertionError)):
            self.connect(mixed)
        with open(other.ca) as file:
            theirs = file.read()
        with open(self.pki.ca) as file:
            self.write("ca.pem", file.read() + theirs)
        self.wait_lines("certificates reloaded")
        self.connect(mixed)
        self.connect()


if __name__ == "__main__":
    sys.exit(tap.main())
