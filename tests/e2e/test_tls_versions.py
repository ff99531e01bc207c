#!/usr/bin/env python3
"""Which TLS is spoken: 1.3, 1.2 where a setting says so, and nothing that
either of them has left behind."""

import re
import socket
import ssl
import subprocess
import sys
import unittest

from harness import tap, tls
from harness.case import Case
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki


@unittest.skipIf(OPENSSL is None, "there is no openssl command")
class Versions(Case):
    def setUp(self):
        super().setUp()
        self.pki = Pki(self.path("pki"))
        self.device = self.pki.issue("device-7", role="producer")

    def collector(self, **tls_settings):
        """With a UNIX socket for the neighbours."""
        with open(self.path("settings"), "w") as file:
            file.write("tls { dir: \"%s\" %s }\n" % (
                self.pki.collector(), " ".join(
                    f"{k}: {v}" for k, v in tls_settings.items())))
        daemon = self.daemon(
            producer=["tls://127.0.0.1:0", self.path("p")],
            flags=["--config", self.path("settings")])
        self.port = int(daemon.address("producers", "tls").rsplit(":")[-1])
        return daemon

    def shake(self, version):
        """The handshake of a device that knows but one version."""
        context = tls.context(self.device)
        context.minimum_version = context.maximum_version = version
        plain = socket.create_connection(("127.0.0.1", self.port),
                                         timeout=60 * SCALE)
        with plain, context.wrap_socket(
                plain, server_hostname="localhost") as done:
            return done.version(), done.cipher()[0], done.compression()

    def openssl(self, *flags, said=b""):
        """What `openssl s_client` prints of a connection."""
        return subprocess.run(
            [OPENSSL, "s_client", "-connect", f"127.0.0.1:{self.port}",
             "-CAfile", f"{self.device}/ca.pem", "-cert",
             f"{self.device}/cert.pem", "-key", f"{self.device}/key.pem",
             *flags], input=said, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=60 * SCALE).stdout.decode(
                errors="replace")

    def test_a_device_that_knows_no_13_is_refused_and_told_the_setting(self):
        daemon = self.collector()
        with self.neighbour():
            with self.assertRaisesRegex(ssl.SSLError, "PROTOCOL_VERSION"):
                self.shake(ssl.TLSVersion.TLSv1_2)
            self.until(lambda: "allow_tls_1_2" in daemon.log(),
                       "the log says what would allow it")
            self.assertEqual(self.shake(ssl.TLSVersion.TLSv1_3)[0],
                             "TLSv1.3")

    def test_a_setting_lets_12_in_with_strong_suites_only(self):
        self.collector(allow_tls_1_2="true")
        version, cipher, compression = self.shake(ssl.TLSVersion.TLSv1_2)
        self.assertEqual(version, "TLSv1.2")
        self.assertRegex(cipher, "^ECDHE-ECDSA-.*(GCM|CHACHA20)")
        self.assertIsNone(compression)
        with self.neighbour():
            said = self.openssl("-tls1_2", "-cipher",
                                "ECDHE-ECDSA-AES128-SHA@SECLEVEL=0")
            self.assertIn("handshake failure", said)

    def test_nobody_negotiates_again(self):
        self.collector(allow_tls_1_2="true")
        with self.neighbour():
            # "R" on a line of its own asks for it.
            said = self.openssl("-tls1_2", said=b"R\n")
            self.assertIn("RENEGOTIATING", said)
            self.assertRegex(said, re.compile("no.renegotiation", re.I))

    def test_nothing_is_compressed(self):
        self.collector(allow_tls_1_2="true")
        for version in ("-tls1_2", "-tls1_3"):
            with self.subTest(version):
                said = self.openssl(version, "-comp")
                self.assertRegex(said, "New, TLSv1.[23], Cipher is .*AES")
                self.assertIn("Compression: NONE", said)

    def test_versions_of_old_are_not_spoken(self):
        self.collector(allow_tls_1_2="true")
        with self.neighbour():
            for version in ("-tls1", "-tls1_1"):
                with self.subTest(version):
                    said = self.openssl(version, "-cipher",
                                        "DEFAULT@SECLEVEL=0")
                    self.assertIn("alert protocol version", said)


if __name__ == "__main__":
    sys.exit(tap.main())
