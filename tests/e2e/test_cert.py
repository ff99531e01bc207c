#!/usr/bin/env python3
"""`tributary cert`: what it makes, as the openssl command sees it."""

import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

from harness import tap
from harness.certs import TRIBUTARY, Authority, cert
from harness.daemon import environment

FILES = ("ca.pem", "ca-key.pem", "cert.pem", "key.pem", "crl.pem",
         "issued.txt")


def openssl(*args, status=0):
    done = subprocess.run(["openssl", *args], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == status, \
        f"openssl {args}: status {done.returncode}: {said}"
    return said


def text_of(path):
    """A certificate's text, spaces pressed together."""
    return " ".join(openssl("x509", "-in", path, "-noout", "-text").split())


def contents(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class CertCase(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.root)

    def authority(self, *args, name="ca"):
        return Authority(os.path.join(self.root, name), *args)

    def verify(self, ca, path, *args, status=0):
        """openssl verify, with the CRL."""
        return openssl("verify", "-x509_strict", "-crl_check", "-CAfile",
                       ca.path("ca.pem"), "-CRLfile", ca.path("crl.pem"),
                       *args, path, status=status)


class WhatOpensslSees(CertCase):
    def test_the_ca_signs_and_no_more(self):
        ca = self.authority("--org", "Acme, Inc.")
        text = text_of(ca.path("ca.pem"))
        self.assertIn("Basic Constraints: critical CA:TRUE, pathlen:0", text)
        self.assertIn("Key Usage: critical Certificate Sign, CRL Sign", text)
        self.assertIn("Subject Key Identifier", text)
        self.assertIn("ecdsa-with-SHA256", text)
        self.assertIn("NIST CURVE: P-256", text)
        self.assertIn('O = "Acme, Inc."', text)

    def test_the_collector_serves_under_its_names(self):
        ca = self.authority("--name", "collector.example.org",
                            "--name", "10.1.2.3")
        path = ca.path("cert.pem")
        text = text_of(path)
        for name in ("DNS:localhost", "IP Address:127.0.0.1",
                     "IP Address:0:0:0:0:0:0:0:1",
                     "DNS:collector.example.org", "IP Address:10.1.2.3",
                     "DNS:" + os.uname().nodename):
            self.assertIn(name, text)
        self.assertIn("TLS Web Server Authentication, "
                      "TLS Web Client Authentication", text)
        self.assertIn("Basic Constraints: critical CA:FALSE", text)
        self.assertIn("Key Usage: critical Digital Signature", text)
        self.assertIn("Authority Key Identifier", text)
        self.verify(ca, path, "-purpose", "sslserver")
        self.verify(ca, path, "-purpose", "sslclient")
        self.verify(ca, path, "-verify_hostname", "collector.example.org")
        self.verify(ca, path, "-verify_ip", "10.1.2.3")
        self.verify(ca, path, "-verify_hostname", "other.example.org",
                    status=2)

    def test_a_device_connects_and_never_serves(self):
        for kind in ("p256", "ed25519"):
            ca = self.authority("--key", kind, name=kind)
            for role in ("producer", "relay", "consumer", "admin"):
                folder = ca.issue(f"its {role}", role, "--key", kind)
                path = os.path.join(folder, "cert.pem")
                self.assertIn(f"URI:urn:tributary:role:{role}", text_of(path))
                self.verify(ca, path, "-purpose", "sslclient")
                self.assertIn("purpose", self.verify(
                    ca, path, "-purpose", "sslserver", status=2))

    def test_a_device_signs_nothing(self):
        """Its certificate is no CA for another one."""
        ca = self.authority()
        folder = ca.issue("device")
        request = os.path.join(self.root, "request.pem")
        forged = os.path.join(self.root, "forged.pem")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                os.path.join(self.root, "k.pem"), "-subj", "/CN=forged",
                "-out", request)
        openssl("x509", "-req", "-in", request, "-out", forged, "-CA",
                os.path.join(folder, "cert.pem"), "-CAkey",
                os.path.join(folder, "key.pem"), "-CAcreateserial")
        openssl("verify", "-CAfile", ca.path("ca.pem"), "-untrusted",
                os.path.join(folder, "cert.pem"), forged, status=2)

    def test_lifetimes(self):
        ca = self.authority()
        day = 24 * 3600
        for path, days in ((ca.path("ca.pem"), 3650),
                           (ca.path("cert.pem"), 825)):
            openssl("x509", "-in", path, "-noout", "-checkend",
                    str((days - 1) * day))
            openssl("x509", "-in", path, "-noout", "-checkend",
                    str((days + 1) * day), status=1)
        folder = ca.issue("short", "producer", "--days", "3")
        openssl("x509", "-in", os.path.join(folder, "cert.pem"), "-noout",
                "-checkend", str(4 * day), status=1)

    def test_the_crl_really_revokes(self):
        ca = self.authority()
        lost = os.path.join(ca.issue("lost"), "cert.pem")
        kept = os.path.join(ca.issue("kept"), "cert.pem")
        self.verify(ca, lost)
        text = openssl("crl", "-in", ca.path("crl.pem"), "-noout", "-text",
                       "-CAfile", ca.path("ca.pem"))
        self.assertIn("No Revoked Certificates", text)
        self.assertIn("verify OK", text)
        ca.revoke("lost", "--reason", "key-compromise")
        self.assertIn("certificate revoked", self.verify(ca, lost, status=2))
        self.verify(ca, kept)
        text = openssl("crl", "-in", ca.path("crl.pem"), "-noout", "-text",
                       "-CAfile", ca.path("ca.pem"))
        serial = openssl("x509", "-in", lost, "-noout", "-serial")
        self.assertIn(serial.strip().removeprefix("serial="), text)
        self.assertIn("Key Compromise", text)
        self.assertIn("verify OK", text)
        self.assertRegex(text, r"CRL Number:\s+2\b")

    def test_a_renewed_ca_vouches_for_all(self):
        ca = self.authority()
        device = os.path.join(ca.issue("device"), "cert.pem")
        before = contents(ca.path("ca.pem"))
        ca.renew("--ca")
        self.assertNotEqual(contents(ca.path("ca.pem")), before)
        self.verify(ca, device, "-purpose", "sslclient")
        self.verify(ca, ca.path("cert.pem"), "-purpose", "sslserver")

    def test_a_renewed_certificate_has_the_same_names(self):
        ca = self.authority()
        path = os.path.join(ca.issue("device", "relay", "--san", "10.9.8.7"),
                            "cert.pem")
        before = openssl("x509", "-in", path, "-noout", "-pubkey")
        ca.renew("device")
        text = text_of(path)
        self.assertIn("URI:urn:tributary:role:relay", text)
        self.assertIn("IP Address:10.9.8.7", text)
        self.assertNotEqual(
            openssl("x509", "-in", path, "-noout", "-pubkey"), before)
        self.verify(ca, path)


class Folder(CertCase):
    def test_files_and_modes(self):
        ca = self.authority()
        folder = ca.issue("device")
        self.assertEqual(stat.S_IMODE(os.stat(ca.folder).st_mode), 0o700)
        for path in (ca.path("ca-key.pem"), ca.path("key.pem"),
                     os.path.join(folder, "key.pem")):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
        self.assertEqual(sorted(os.listdir(folder)),
                         ["ca.pem", "cert.pem", "key.pem"])
        # Nothing is left of how they were written.
        self.assertEqual(sorted(os.listdir(ca.folder)),
                         sorted((*FILES, "issued", "lock")))

    def test_a_ca_is_never_overwritten(self):
        ca = self.authority()
        before = {name: contents(ca.path(name)) for name in FILES}
        said = cert("init", ca.folder, status=1)
        self.assertIn("never overwritten", said)
        self.assertEqual(before,
                         {name: contents(ca.path(name)) for name in FILES})

    def test_keys_are_never_printed(self):
        ca = self.authority()
        said = cert("issue", ca.folder, "device")
        said += cert("renew", ca.folder, "device") + cert("renew", ca.folder)
        said += cert("show", ca.folder) + cert("show", ca.folder, "--json")
        said += cert("show", ca.path("key.pem"), status=1)
        self.assertNotIn("PRIVATE", said)
        for path in (ca.path("key.pem"), ca.path("ca-key.pem"),
                     ca.path("issued", "device", "key.pem")):
            self.assertNotIn(contents(path).splitlines()[1], said)

    def test_what_it_says_to_copy_is_there(self):
        ca = self.authority()
        said = cert("issue", ca.folder, "Ann O'Hara", "--role", "consumer")
        self.assertIn("tributary record --connect tls://", said)
        copied = re.search(r"scp -p (.*) HOST:", said).group(1)
        listed = subprocess.run(["sh", "-c", f"ls {copied}"], check=True,
                                capture_output=True, text=True).stdout
        self.assertEqual(len(listed.splitlines()), 3)

    def test_it_says_what_to_start(self):
        ca = self.authority()
        for role, word in (("relay", "tributary-relay --to tls://"),
                           ("producer", "--producer-socket tls://"),
                           ("consumer", "record --connect tls://")):
            said = cert("issue", ca.folder, f"a {role}", "--role", role)
            self.assertIn(word, said)

    def test_a_full_disk_changes_nothing(self):
        ca = self.authority()
        ca.issue("device")
        before = {name: contents(ca.path(name)) for name in FILES}

        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

        for words in (("issue", ca.folder, "other"), ("renew", ca.folder),
                      ("renew", ca.folder, "--ca"),
                      ("revoke", ca.folder, "device")):
            said = cert(*words, status=1, preexec_fn=no_room,
                        restore_signals=False)
            self.assertIn("File too large", said)
            self.assertEqual(
                before, {name: contents(ca.path(name)) for name in FILES})
        self.assertEqual(sorted(os.listdir(ca.folder)),
                         sorted((*FILES, "issued", "lock")))
        # It goes on as if nothing had been.
        ca.issue("other")

    def test_commands_at_the_same_time_lose_nothing(self):
        ca = self.authority()
        names = [f"device-{i}" for i in range(8)]
        running = [subprocess.Popen(
            [TRIBUTARY, "cert", "issue", ca.folder, name],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment()) for name in names]
        done = []
        for name, process in zip(names, running):
            said = process.communicate()[1]
            if process.returncode == 0:
                done.append(name)
            else:
                self.assertIn("another tributary cert is at work", said)
        self.assertTrue(done)
        listed = {row["name"] for row in
                  json.loads(cert("show", ca.folder, "--json"))
                  if row["role"] == "producer"}
        self.assertEqual(listed, set(done))

    def test_the_index_has_its_documented_form(self):
        ca = self.authority()
        ca.issue("Ann O'Hara", "admin")
        ca.revoke("Ann O'Hara", "--reason", "cessation")
        lines = contents(ca.path("issued.txt")).splitlines()
        self.assertEqual(lines[0], "# tributary certificates 1")
        rows = [line.split("\t") for line in lines[1:]]
        self.assertEqual([len(row) for row in rows], [8, 8])
        self.assertEqual(rows[0][2], "collector")
        self.assertEqual(rows[0][5:], ["valid", "-", "-"])
        self.assertEqual(rows[1][1:3], ["Ann O'Hara", "admin"])
        self.assertEqual(rows[1][5], "revoked")
        self.assertEqual(rows[1][7], "cessation")
        serial = openssl("x509", "-in", ca.path("issued", "Ann O'Hara",
                                                "cert.pem"),
                         "-noout", "-serial").strip()
        self.assertEqual(serial, "serial=" + rows[1][0])


class Answers(CertCase):
    def test_show_as_json(self):
        ca = self.authority()
        ca.issue("device")
        ca.issue("lost")
        ca.revoke("lost")
        rows = {row["name"]: row
                for row in json.loads(cert("show", ca.folder, "--json"))}
        self.assertEqual(rows["device"]["state"], "valid")
        self.assertEqual(rows["device"]["role"], "producer")
        self.assertGreaterEqual(rows["device"]["days_left"], 824)
        self.assertEqual(rows["lost"]["state"], "revoked")
        self.assertTrue(rows["lost"]["listed"])
        one = json.loads(cert("show", ca.path("cert.pem"), "--json"))
        self.assertEqual(one[0]["may"], "serve and connect")

    def test_exit_statuses(self):
        ca = self.authority()
        cert("--help")
        cert(status=2)
        cert("issue", ca.folder, status=2)
        cert("init", self.root + "/x", "--days", "0", status=2)
        cert("issue", os.path.join(self.root, "nothing"), "x", status=1)
        cert("issue", ca.folder, "../x", status=1)
        cert("revoke", ca.folder, "nobody", status=1)

    def test_a_name_in_use_is_refused(self):
        ca = self.authority()
        ca.issue("device")
        said = cert("issue", ca.folder, "device", status=1)
        self.assertIn("renew", said)
        self.assertIn("revoke", said)

    def test_an_openssl_ca_is_none_of_ours_but_is_shown(self):
        """Their own PKI: a file is shown, the folder is not taken over."""
        folder = os.path.join(self.root, "theirs")
        os.mkdir(folder, 0o700)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", "/CN=Their CA", "-keyout",
                os.path.join(folder, "ca-key.pem"), "-out",
                os.path.join(folder, "ca.pem"))
        said = cert("show", os.path.join(folder, "ca.pem"))
        self.assertIn("CN=Their CA", said)
        self.assertIn("sign certificates", said)
        self.assertIn("issued.txt", cert("issue", folder, "x", status=1))
        self.assertIn("never overwritten", cert("init", folder, status=1))


if __name__ == "__main__":
    sys.exit(tap.main())
