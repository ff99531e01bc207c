#!/usr/bin/env python3
"""Sockets that the service manager opened, for TLS and for nobody known."""

import socket
import sys

from harness import tap, tls
from harness.case import Case, TEST_SOURCE, config
from harness.daemon import Daemon
from harness.pki import OPENSSL, Pki

# Puts a socket where a service manager does, and becomes the daemon.
HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Activated(Case):
    def setUp(self):
        super().setUp()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.socket.close)
        self.at = f"127.0.0.1:{self.socket.getsockname()[1]}"

    def pki(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        return Pki(self.path("pki"))

    def handing_over(self, name):
        """Options of a daemon that is given our socket by this name."""
        fd = self.socket.fileno()
        return {"wrap": [sys.executable, "-c", HAND_OVER, str(fd)],
                "pass_fds": [fd],
                "env": {"LISTEN_FDS": "1", "LISTEN_FDNAMES": name}}

    def test_a_tls_socket_takes_producers_with_certificates(self):
        pki = self.pki()
        self.daemon(flags=["--tls-dir", pki.collector()],
                    **self.handing_over("producer-tls"))
        address = self.daemons[0].address("producers", "tls")
        self.assertEqual(address, "tls://" + self.at)
        producer = self.producer(
            "p", address=tls.Address(address, pki.issue("device")))
        consumer = self.session(trace_all_machines=True)
        producer.wait_started()
        producer.writer().number(5)
        consumer.stop()
        self.assert_numbers(consumer.read(), [5])
        # In the clear nobody gets in.
        raw = self.raw(address=self.at)
        raw.send_raw(b"\x04\0\0\0\x10\x01\x1a\0")
        raw.wait_closed()

    def test_a_tls_socket_takes_consumers_by_their_role(self):
        pki = self.pki()
        self.daemon(flags=["--tls-dir", pki.collector()],
                    **self.handing_over("consumer-tls"))
        address = self.daemons[0].address("consumers", "tls")
        person = pki.issue("person", role="consumer")
        consumer = self.consumer(address=tls.Address(address, person))
        consumer.enable(config(TEST_SOURCE))
        consumer.stop()
        with self.assertRaises(AssertionError):
            self.consumer(address=tls.Address(address, pki.issue("device")))

    def test_a_tls_socket_without_certificates_is_refused(self):
        daemon = Daemon(self.folder, **self.handing_over("producer-tls"))
        with self.assertRaises(AssertionError):
            daemon.start()
        self.assertEqual(daemon.process.returncode, 1)
        self.assertIn("which needs certificates", daemon.log())

    def test_consumers_are_not_served_on_a_plain_socket(self):
        self.daemon(**self.handing_over("consumer"))
        with self.assertRaises(AssertionError):
            self.consumer(address=self.at)


if __name__ == "__main__":
    sys.exit(tap.main())
