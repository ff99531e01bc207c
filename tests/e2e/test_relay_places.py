#!/usr/bin/env python3
"""Relays that know several collectors: each goes where placement by its name
says, stays there, and goes to the next when its collector is gone."""

import hashlib
import signal
import subprocess
import sys

from harness import tap
from harness.certs import Authority
from harness.consumer import config
from harness.daemon import environment
from harness.device import RELAY, Control, RelayCase
from harness.ledger import SOURCE, Audit
from harness.ports import free_port

PACKETS = 2000
GONE = "the collector before was gone for too long"


def order(machine, collectors):
    """As docs/fleet.md says, in another language than ours."""
    def weight(collector):
        name = f"{machine}\0{collector}".encode()
        return hashlib.sha256(name).digest()[:8]
    return sorted(collectors, key=weight, reverse=True)


class Places(RelayCase):
    """Three collectors, of which each can end and begin anew."""

    def setUp(self):
        super().setUp()
        self.fleet = {}  # {address: daemon}
        self.addresses = [self.address_of(n) for n in (1, 2, 3)]
        for address in self.addresses:
            self.start_collector(address)

    def address_of(self, n):
        return self.path(f"collector-{n}")

    def start_collector(self, address, flags=()):
        self.fleet[address] = self.daemon(
            producer=[address],
            consumer=[f"{self.folder}/c.{len(self.daemons)}"],
            flags=["--enable-relay-endpoint", *flags])

    def restart(self, address):
        """kill -9, and another in its place."""
        self.fleet[address].kill()
        self.start_collector(address)

    def place(self, name, **options):
        options.setdefault("settings", "move_after_ms: 300\n")
        return self.device(name, ",".join(self.addresses), **options)

    def connected(self, address):
        """The machines that it is connected to."""
        control = self._add(Control(
            self.loop, self.fleet[address].address("consumers")))
        found = {m.name for m in control.machines().values()
                 if m.state == m.CONNECTED and m.reach != m.HOST}
        control.close()
        return found

    def wait_at(self, device, address):
        def there():
            report = device.report()
            return report.link.peer == address and \
                report.link.state == "linked"
        self.until(there, f"{device.name} is linked to {address}")
        self.until(lambda: device.name in self.connected(address),
                   f"{address} has {device.name}")

    def at_home(self, address, number):
        """Names of machines whose home is that collector."""
        names = (f"kiosk-{n}" for n in range(1000))
        found = (n for n in names if order(n, self.addresses)[0] == address)
        return [next(found) for _ in range(number)]


class Fleet(Places):
    def test_they_spread_move_and_stay(self):
        names = [name for address in self.addresses
                 for name in self.at_home(address, 4)]
        for name in names:
            self.place(name)
        ranks = {name: order(name, self.addresses) for name in names}
        for device in self.devices:
            self.wait_at(device, ranks[device.name][0])
            link = device.report().link
            self.assertEqual((link.collectors, link.choice, link.moves),
                             (3, 1, 0))
            self.assertEqual(link.home, link.peer)
            self.assertFalse(link.HasField("why"))

        dead = self.addresses[1]
        self.fleet[dead].kill()
        for device in self.devices:
            moves = ranks[device.name][0] == dead
            self.wait_at(device, ranks[device.name][int(moves)])
            link = device.report().link
            self.assertEqual(link.moves, int(moves), device.name)
            self.assertEqual(link.reconnects, int(moves), device.name)
            if moves:
                self.assertEqual((link.choice, link.why, link.home),
                                 (2, GONE, dead))
                self.assertIn("without a collector for", device.log())

        # It is there again: those whose home it is go there when they start,
        # and nobody else.
        self.start_collector(dead)
        newcomer = self.place(self.at_home(dead, 20)[-1])
        self.wait_at(newcomer, dead)
        for device in self.devices[:len(names)]:
            moved = ranks[device.name][0] == dead
            self.wait_at(device, ranks[device.name][int(moved)])
            self.assertEqual(device.report().link.moves, int(moved))
        self.assertEqual(self.connected(dead), {newcomer.name})

    def test_who_finds_home_dead_at_the_start_goes_on_at_once(self):
        dead = self.addresses[0]
        self.fleet[dead].kill()
        name, = self.at_home(dead, 1)
        device = self.place(name, settings="")
        self.wait_at(device, order(name, self.addresses)[1])
        link = device.report().link
        self.assertEqual((link.choice, link.moves), (2, 0))
        self.assertEqual(link.why, "home did not answer at the start")

    def test_one_that_starts_anew_keeps_its_own(self):
        name, = self.at_home(self.addresses[1], 1)
        device = self.place(name, settings="move_after_ms: 600000\n")
        self.wait_at(device, self.addresses[1])
        self.restart(self.addresses[1])
        self.wait_at(device, self.addresses[1])
        self.assertEqual(device.report().link.moves, 0)

    def test_a_relay_goes_home_when_it_connects_again(self):
        home = self.addresses[2]
        self.fleet[home].kill()
        name, = self.at_home(home, 1)
        device = self.place(name, settings="move_after_ms: 600000\n")
        second = order(name, self.addresses)[1]
        self.wait_at(device, second)
        self.start_collector(home)
        # SIGHUP is for relays that wait; its link is good.
        device.signal(signal.SIGHUP)
        self.until(lambda: "trying the collector now" in device.log(),
                   "it has the signal")
        self.wait_at(device, second)
        self.restart(second)
        self.wait_at(device, home)
        link = device.report().link
        self.assertEqual((link.choice, link.moves), (1, 1))
        self.assertEqual(link.why, "it answers again, and is nearer to home")
        self.assertEqual(device.losses(), {})

    def test_what_is_recorded_after_a_move_is_whole(self):
        home = self.addresses[0]
        name, = self.at_home(home, 1)
        # Room for whatever is written faster than it is sent.
        device = self.place(name, memory_kb=65536)
        self.wait_at(device, home)
        ledger = self.ledger([(device, 2)], packets=PACKETS)
        self.fleet[home].kill()
        second = order(name, self.addresses)[1]
        self.wait_at(device, second)
        consumer = self.consumer(self.fleet[second].address("consumers"))
        consumer.enable(config(SOURCE, size_kb=65536, trace_all_machines=True))
        self.wait_writing(ledger, 4)
        self.wait_written(ledger, PACKETS)
        ledger.finish()
        self.wait_empty(device)
        consumer.flush(20_000)
        consumer.stop()
        audit = Audit(ledger.book(), consumer.read())
        self.assertEqual(audit.faults, [], audit.describe())
        self.assert_complete(audit)
        self.assertEqual(audit.packets, 4 * PACKETS)

    def test_perfettos_own_way_has_a_choice_too(self):
        home = self.addresses[0]
        name, = self.at_home(home, 1)
        device = self.place(name, settings="move_after_ms: 300\n"
                            "protocol: CLASSIC\n")

        said = f"{home} is choice 1 of 3 of this machine\n"
        self.until(lambda: said in device.log(), "it is at home")
        self.fleet[home].kill()
        self.until(lambda: device.report().link.moves == 1, "it has moved")
        link = device.report().link
        self.assertEqual((link.peer, link.state, link.why),
                         (order(name, self.addresses)[1], "classic", GONE))

    def test_status_shows_the_choice(self):
        home = self.addresses[0]
        name, = self.at_home(home, 1)
        device = self.place(name)
        self.wait_at(device, home)

        def status(flag="--status"):
            return subprocess.run(
                [RELAY, flag, "--state-dir", device.state], check=True,
                capture_output=True, text=True, env=environment()).stdout
        self.assertIn("this machine's home, of 3 collectors", status())
        self.fleet[home].kill()
        second = order(name, self.addresses)[1]
        self.wait_at(device, second)
        shown = status()
        for part in (second, "choice 2 of 3 for this machine, whose home is "
                     f"{home}\n", f"because {GONE}\n", "1 move, the last "):
            self.assertIn(part, shown)
        shown = status("--metrics")
        self.assertIn("\ntributary_relay_choice 2\n", shown)
        self.assertIn("\ntributary_relay_moves_total 1\n", shown)
        self.assertIn(f"{second} is choice 2 of 3 of this machine: {GONE}",
                      device.log())


class OverTls(Places):
    def setUp(self):
        self.port = free_port()
        self.ca = None
        super().setUp()

    def address_of(self, n):
        return f"tls://127.0.0.{n}:{self.port}"

    def start_collector(self, address, flags=()):
        """The certificate is not for the third's address."""
        if self.ca is None:
            self.ca = Authority(self.path("ca"), "--name", "127.0.0.2")
        super().start_collector(address, ["--tls-dir", self.ca.folder])

    def test_each_address_has_a_name_of_its_own(self):
        homes = [self.at_home(address, 1)[0] for address in self.addresses]
        for name in homes:
            self.place(name, flags=["--tls-dir",
                                    self.ca.issue(name, "relay")])
        first, second, third = self.addresses
        self.wait_at(self.devices[0], first)
        self.wait_at(self.devices[1], second)
        # Who is not what it is called is as good as gone.
        self.wait_at(self.devices[2], order(homes[2], self.addresses)[1])
        self.assertIn("127.0.0.3", self.devices[2].log())
        self.assertEqual(self.connected(third), set())


class Refusals(RelayCase):
    def refused(self, *argv):
        done = subprocess.run([RELAY, *argv, "--check-config"], check=False,
                              capture_output=True, text=True,
                              env=environment())
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def test_lists_that_cannot_be(self):
        self.assertIn("/a is named twice", self.refused("--to", "/a,/b,/a"))
        self.assertIn("more than the 256 collectors", self.refused(
            "--to", ",".join(f"/{n}" for n in range(257))))
        self.assertIn("leave one of them out",
                      self.refused("--to", "/a,/b", "--dialled"))
        path = self.path("settings")
        with open(path, "w", encoding="ascii") as file:
            file.write('to: "tls://a:1"\nto: "/b"\ntls { dir: "/d" }\n')
        self.assertIn("--tls-dir is for tls:// addresses, and /b is none",
                      self.refused("--config", path))


if __name__ == "__main__":
    sys.exit(tap.main())
