#!/usr/bin/env python3
"""Several collectors as one service: devices ask for a server name of their own,
and a real HAProxy leads each to the same collector again."""

import collections
import json
import os
import socket
import ssl
import subprocess
import sys
import threading

from harness import tap
from harness.case import Case
from harness.certs import Authority
from harness.daemon import environment
from harness.haproxy import (DOMAIN, HAPROXY, TOKEN, Haproxy, fleet,
                             health)
from harness.loop import SCALE
from harness.ports import free_port

TRIBUTARY = os.environ["TRIBUTARY"]
PROBES = os.environ["TRIBUTARY_PROBES"]
EXAMPLE = os.path.join(os.environ["SOURCE_ROOT"], "deploy", "haproxy.cfg")
# What deploy/haproxy.cfg was made with.
EXAMPLE_CA = "/etc/haproxy/collectors-ca.pem"
EXAMPLE_WORDS = ["192.0.2.11:7443", "192.0.2.12:7443", "192.0.2.13:7443",
                 "--health-ca", EXAMPLE_CA]


class TlsEnd:
    """A port with a certificate that notes which server names are asked for."""

    def __init__(self, folder):
        self.names = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(os.path.join(folder, "cert.pem"),
                                      os.path.join(folder, "key.pem"))
        self._context.sni_callback = self._note
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _note(self, _sock, name, _context):
        self.names.append(name)

    def _serve(self):
        while True:
            try:
                sock = self._listener.accept()[0]
            except OSError:
                return
            try:
                with self._context.wrap_socket(sock, server_side=True):
                    pass
            except OSError:
                pass

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


class ServerNames(Case):
    def setUp(self):
        super().setUp()
        self.ca = Authority(self.path("ca"), "--name", f"*.{DOMAIN}")

    def start_program(self, *argv, **env):
        """It runs until the test ends; what it says is in the file returned."""
        path = self.path(f"said.{len(os.listdir(self.folder))}")
        with open(path, "wb") as said:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                cwd=self.folder, env=environment(HOME=self.folder, **env))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return path

    def test_each_program_asks_for_the_machines_name(self):
        end = TlsEnd(self.ca.folder)
        self.addCleanup(end.close)
        there = f"tls://127.0.0.1:{end.port}"
        how = ["--tls-dir", self.ca.issue("any"), "--tls-name", DOMAIN,
               "--sni-machine"]
        self.start_program(PROBES, "--producer-socket", there, *how,
                           "--machine-name", "probes-1")
        self.start_program(TRIBUTARY, "record", "--connect", there, *how,
                           "-o", "t", "-t", "1s", "x",
                           PERFETTO_MACHINE_NAME="record-1")
        self.start_program(TRIBUTARY, "trigger", "--connect", there, *how,
                           "t", PERFETTO_MACHINE_NAME="trigger-1")
        local = self.path("local")
        self.start_program(TRIBUTARY, "forward", "--to", there, "--listen",
                           local, *how, "--machine-name", "forward-1")
        self.until(lambda: os.path.exists(local), "it listens")
        self.raw(address=local)
        self.relay(there, machine="relay-1", flags=how)
        expected = {f"{name}-1.{DOMAIN}" for name in
                    ("probes", "record", "trigger", "forward", "relay")}
        self.until(lambda: set(end.names) >= expected,
                   lambda: f"all have asked: {end.names}")
        self.assertEqual(set(end.names), expected)

    def test_a_name_in_the_address_is_asked_for_as_it_is(self):
        """Without --sni-machine: tls://kiosk-7.collectors.example:7443."""
        end = TlsEnd(self.ca.folder)
        self.addCleanup(end.close)
        self.relay(f"tls://localhost:{end.port}", machine="kiosk-7",
                   flags=["--tls-dir", self.ca.issue("kiosk-7", "relay")])
        self.until(lambda: end.names, "it has asked")
        self.assertEqual(set(end.names), {"localhost"})

    def test_a_wildcard_certificate_is_for_every_machine(self):
        daemon = self.daemon(producer=["tls://127.0.0.1:0"],
                             flags=["--tls-dir", self.ca.folder,
                                    "--enable-relay-endpoint"])
        there = daemon.address("producers", "tls")
        how = ["--sni-machine", "--tls-dir", self.ca.issue("kiosk", "relay"),
               "--tls-name"]
        good = self.relay(there, machine="kiosk-7", label="good",
                          flags=[*how, DOMAIN])
        self.until(lambda: good.link_state() == "linked", "it is linked")
        # One that is for others is refused, by the name that was asked for.
        bad = self.relay(there, machine="kiosk-7", label="bad",
                         flags=[*how, "elsewhere.example"])
        said = self.until(lambda: bad.report()["link"].get("last_error"),
                          "it is refused")
        self.assertIn("kiosk-7.elsewhere.example", said)

    def test_a_machine_whose_name_is_no_label_is_told(self):
        done = subprocess.run(
            [os.environ["TRIBUTARY_RELAY"], "--to", f"tls://{DOMAIN}:7443",
             "--sni-machine", "--machine-name", "kiosk 7"], check=False,
            env=environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn('"kiosk 7" cannot stand there', done.stderr)
        self.assertIn("--machine-name", done.stderr)


class Example(Case):
    def test_it_is_what_the_command_prints(self):
        with open(EXAMPLE, encoding="ascii") as file:
            self.assertEqual(file.read(), fleet(*EXAMPLE_WORDS))

    def test_haproxy_takes_it(self):
        if HAPROXY is None:
            self.skipTest("no haproxy (deploy/install-deps test)")
        ca = Authority(self.path("ca"))
        with open(EXAMPLE, encoding="ascii") as file:
            text = file.read()
        path = self.path("haproxy.cfg")
        with open(path, "w", encoding="ascii") as file:
            file.write(text.replace(EXAMPLE_CA, ca.path("ca.pem")))
        done = subprocess.run([HAPROXY, "-c", "-f", path], check=False,
                              capture_output=True, text=True,
                              env=environment(TRIBUTARY_WEB_TOKEN=TOKEN))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("WARN", (done.stdout + done.stderr).upper())


class BehindHaproxy(Case):
    """Three collectors on addresses of their own, each with a tributary-web."""

    def setUp(self):
        super().setUp()
        if HAPROXY is None:
            self.skipTest("no haproxy (deploy/install-deps test)")
        self.ca = Authority(self.path("ca"), "--name", f"*.{DOMAIN}")
        self.port, self.web_port = free_port(), free_port()
        self.fleet = {}  # {HOST:PORT: daemon}
        for n in (1, 2, 3):
            self.start_collector(n)
        self.words = ["--health-port", str(self.web_port), "--health-ca",
                      self.ca.path("ca.pem")]
        device = self.ca.issue("device", "relay")
        self.relay_dir = device
        self.context = ssl.create_default_context(
            cafile=self.ca.path("ca.pem"))
        self.context.load_cert_chain(os.path.join(device, "cert.pem"),
                                     os.path.join(device, "key.pem"))
        self.machines = [f"kiosk-{n}" for n in range(30)]

    def start_collector(self, n):
        host = f"127.0.0.{n}"
        name = f"{host}:{self.port}"
        again = name in self.fleet
        self.fleet[name] = self.daemon(
            producer=[f"tls://{name}"], consumer=[self.path(f"c{n}")],
            flags=["--tls-dir", self.ca.folder, "--enable-relay-endpoint"])
        if again:
            return
        self.daemons.append(health(self.folder, self.ca, self.path(f"c{n}"),
                                   f"{host}:{self.web_port}"))

    def haproxy(self, *words):
        made = Haproxy(self.folder, self.until, *words, *self.words).start()
        self.addCleanup(made.stop)
        return made

    def places(self, haproxy):
        return {m: haproxy.leads(self.context, m) for m in self.machines}

    def test_each_machine_has_its_collector(self):
        haproxy = self.haproxy(*self.fleet)
        before = self.places(haproxy)
        # By chance one of 1700 sets of names would miss one of the three.
        self.assertEqual(set(before.values()), set(self.fleet))
        self.assertEqual(self.places(haproxy), before)
        # The same by another HAProxy, told in another order.
        other = self.haproxy(*reversed(self.fleet))
        self.assertEqual(self.places(other), before)

    def test_only_machines_of_a_collector_that_ends_move(self):
        haproxy = self.haproxy(*self.fleet)
        before = self.places(haproxy)
        second = list(self.fleet)[1]
        self.fleet[second].kill()
        haproxy.says(second, "DOWN")
        during = self.places(haproxy)
        for machine, collector in before.items():
            if collector != second:
                self.assertEqual(during[machine], collector, machine)
        moved = collections.Counter(
            during[m] for m, c in before.items() if c == second)
        self.assertNotIn(second, moved)
        self.assertEqual(len(moved), 2, moved)
        # It comes back, and so do they, when they connect again.
        self.start_collector(2)
        haproxy.says(second, "UP")
        self.assertEqual(self.places(haproxy), before)

    def test_only_machines_of_a_collector_that_is_left_out_move(self):
        before = self.places(self.haproxy(*self.fleet))
        first, *others = self.fleet
        after = self.places(self.haproxy(*others))
        for machine, collector in before.items():
            if collector != first:
                self.assertEqual(after[machine], collector, machine)
            else:
                self.assertIn(after[machine], others)

    def test_a_device_without_a_name_of_its_own_is_refused(self):
        haproxy = self.haproxy(*self.fleet)
        self.context.check_hostname = False
        with self.assertRaises(OSError):
            haproxy.leads(self.context, None)

    def machines_of(self, n):
        done = subprocess.run(
            [TRIBUTARY, "machines", "--json", "--connect",
             self.path(f"c{n}")], check=True, capture_output=True, text=True,
            env=environment(), timeout=60 * SCALE)
        return [m["name"] for m in json.loads(done.stdout)
                if m["state"] == "connected"]

    def test_a_relay_goes_to_the_next_and_stays_there(self):
        haproxy = self.haproxy(*self.fleet)
        names = list(self.fleet)
        at = names.index(haproxy.leads(self.context, "kiosk-7")) + 1
        relay = self.relay(
            f"tls://127.0.0.1:{haproxy.port}", machine="kiosk-7",
            flags=["--tls-dir", self.relay_dir, "--tls-name", DOMAIN,
                   "--sni-machine"])
        self.until(lambda: "device" in self.machines_of(at),
                   "it is linked to its collector")
        self.fleet[names[at - 1]].kill()
        haproxy.says(names[at - 1], "DOWN")
        left = [n for n in (1, 2, 3) if n != at]
        found = self.until(lambda: [n for n in left
                                    if "device" in self.machines_of(n)],
                           "it is linked to another")
        self.start_collector(at)
        haproxy.says(names[at - 1], "UP")
        # Its link was not cut by that.
        self.assertEqual(relay.report()["link"]["reconnects"], 1)
        self.assertEqual([n for n in (1, 2, 3)
                          if "device" in self.machines_of(n)], found)

    def drain(self, n, *words, status=0):
        """What `tributary fleet drain` says."""
        process = subprocess.Popen(
            [TRIBUTARY, "fleet", "drain", "--connect", self.path(f"c{n}"),
             *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=environment())
        self.until(lambda: process.poll() is not None, "it is drained")
        said = process.stdout.read().decode()
        process.stdout.close()
        self.assertEqual(process.returncode, status, said)
        return said

    def test_a_drained_collector_is_left_and_can_end(self):
        haproxy = self.haproxy(*self.fleet)
        relay = self.relay(f"tls://127.0.0.1:{haproxy.port}", machine="kiosk-1",
                           flags=["--tls-dir", self.relay_dir, "--tls-name",
                                  DOMAIN, "--sni-machine"])
        def places():
            return [n for n in (1, 2, 3)
                    if "device" in self.machines_of(n)]
        self.until(lambda: len(places()) == 1, "it is linked")
        first, = places()
        self.assertRegex(
            self.drain(first, "--after", "2s"),
            r"^the collector drains: 1 relay is to leave\nall have left\n$")
        self.until(lambda: set(places()) - {first}, "it is at another")
        self.assertEqual(relay.log().count("leaving for"), 1, relay.log())
        # None is led there, though it lives.
        name = sorted(self.fleet)[first - 1]
        self.assertNotIn(name, self.places(haproxy).values())
        self.assertEqual(self.drain(first, "--undo"),
                         "the collector takes relays again\n")
        self.until(lambda: name in self.places(haproxy).values(),
                   "it is led there again")


if __name__ == "__main__":
    sys.exit(tap.main())
