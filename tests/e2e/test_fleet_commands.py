#!/usr/bin/env python3
"""Commands over several collectors at once: --fleet FILE, several --connect."""

import json
import socket
import sys

from harness import tap
from harness.case import TEST_SOURCE, config
from harness.certs import Authority
from harness.recording import RecordCase


class FleetCase(RecordCase):
    """Two collectors c1 and c2, and a file that names them."""

    def setUp(self):
        super().setUp()
        for name in ("c1", "c2"):
            self.daemon(producer=[self.path(f"{name}.p")],
                        consumer=[self.path(f"{name}.c")],
                        flags=["--enable-relay-endpoint"])
        self.fleet = self.write_fleet()

    def write_fleet(self, *more, first=""):
        path = self.path("fleet.pbtx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(first)
            for name in ("c1", "c2"):
                file.write(f'collector {{ name: "{name}" '
                           f'connect: "{self.path(name + ".c")}" '
                           f'producers: "{self.path(name + ".p")}" }}\n')
            file.write("\n".join(more))
        return path

    def over(self, command, *words, fleet=None, **options):
        """A command over the fleet, to its end: (output, errors)."""
        out, errors = self.run_command(
            command, "--fleet", fleet or self.fleet, *words, **options)
        return out.decode(), errors

    def session_at(self, name, **options):
        consumer = self.consumer(address=self.path(f"{name}.c"))
        consumer.enable(config(TEST_SOURCE, **options))
        consumer.stats()  # it is set up when that is answered
        return consumer

    def listed(self, *words, **options):
        return {(s["collector"], s.get("name")) for s in json.loads(
            self.over("sessions", "--json", *words, **options)[0])}


class Lists(FleetCase):
    def test_sessions_of_all_are_told_by_their_collectors(self):
        self.session_at("c1", unique_session_name="robots")
        self.session_at("c2", unique_session_name="robots")
        self.session_at("c2", unique_session_name="cars")
        self.assertEqual(self.listed(), {
            ("c1", "robots"), ("c2", "robots"), ("c2", "cars")})
        self.assertEqual(self.listed("robots"),
                         {("c1", "robots"), ("c2", "robots")})
        self.assertEqual(self.listed("c2/r*"), {("c2", "robots")})
        self.assertEqual(self.listed("cars"), {("c2", "cars")})
        table = self.over("sessions")[0].splitlines()
        self.assertEqual(table[0].split()[:3], ["COLLECTOR", "ID", "NAME"])
        self.assertEqual([line.split()[0] for line in table[1:4]],
                         ["c1", "c2", "c2"])

    def test_several_addresses_are_a_fleet(self):
        self.session_at("c2", unique_session_name="cars")
        out, _ = self.run_command("sessions", "--json", "--connect",
                                  self.path("c1.c"), "--connect",
                                  self.path("c2.c"))
        self.assertEqual([s["collector"] for s in json.loads(out)],
                         [self.path("c2.c")])

    def test_an_id_needs_its_collector(self):
        self.session_at("c1")
        _, errors = self.over("sessions", "1", status=1)
        self.assertIn("c1/1", errors)
        self.assertEqual(self.listed("c1/1"), {("c1", None)})
        _, errors = self.over("sessions", "c1/1", "nobody", status=1)
        self.assertIn("no collector that answered has a session nobody",
                      errors)

    def test_machines_of_all(self):
        for name in ("c1", "c2"):
            relay = self.relay(self.path(f"{name}.p"), label=f"r-{name}",
                               machine=f"kiosk-{name}")
            self.until(lambda r=relay: r.link_state() == "linked", "linked")
        out, _ = self.over("machines", "--json")
        self.assertEqual({(m["collector"], m["name"])
                          for m in json.loads(out)},
                         {("c1", "host"), ("c1", "kiosk-c1"),
                          ("c2", "host"), ("c2", "kiosk-c2")})
        out, _ = self.over("machines", "kiosk-*")
        self.assertEqual([line.split()[:2] for line in out.splitlines()], [
            ["COLLECTOR", "NAME"], ["c1", "kiosk-c1"], ["c2", "kiosk-c2"]])
        _, errors = self.over("machines", "car", status=1)
        self.assertIn('"car"', errors)


class Missing(FleetCase):
    def test_one_that_is_gone_is_an_error_or_named(self):
        self.session_at("c1", unique_session_name="robots")
        self.daemons[1].kill()
        _, errors = self.over("sessions", status=1)
        self.assertIn("tributary sessions: c2: ", errors)
        _, errors = self.over("sessions", "--allow-missing")
        self.assertIn("tributary sessions: c2: ", errors)
        self.assertEqual(self.listed("--allow-missing"), {("c1", "robots")})
        _, errors = self.over("machines", status=1)
        self.assertIn("tributary machines: c2: ", errors)
        _, errors = self.over("trigger", "t", status=1)
        self.assertIn("tributary trigger: c2: ", errors)
        self.over("trigger", "--allow-missing", "t")

    def test_none_is_an_error(self):
        for daemon in self.daemons:
            daemon.kill()
        for command in ("sessions", "machines"):
            self.over(command, "--allow-missing", status=1)
        self.over("trigger", "--allow-missing", "t", status=1)

    def test_one_that_does_not_answer_has_its_own_time_out(self):
        mute = self.path("mute")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(mute)
        listener.listen()
        fleet = self.write_fleet(
            f'collector {{ name: "c3" connect: "{mute}" '
            f'producers: "{mute}" timeout_ms: 100 }}')
        _, errors = self.over("sessions", fleet=fleet, status=1)
        self.assertIn("c3: the collector does not answer", errors)
        _, errors = self.over("trigger", "t", fleet=fleet, status=1)
        self.assertIn("c3: the collector does not answer", errors)


class Top(FleetCase):
    def top(self, *words, **options):
        out, errors = self.over("top", "--plain", "--interval", "0.1", *words,
                                **options)
        return out, errors

    def test_all_are_in_one_screen(self):
        self.session_at("c1", unique_session_name="robots")
        self.session_at("c2", unique_session_name="cars")
        out, _ = self.top("-n", "2")
        blocks = out.strip().split("\n\nc1  ")
        self.assertEqual(len(blocks), 2, out)
        lines = blocks[1].splitlines()
        self.assertTrue(lines[1].startswith("c2  "), out)
        self.assertEqual(lines[3].split()[:2], ["COLLECTOR", "SESSION"])
        self.assertEqual({tuple(line.split()[:3]) for line in lines[4:6]},
                         {("c1", "1", "robots"), ("c2", "1", "cars")})
        self.assertIn(["c2", "host", "connected"],
                      [line.split()[:3] for line in lines])

    def test_one_that_is_gone_is_an_error_or_shown(self):
        self.daemons[1].kill()
        _, errors = self.top("-n", "1", status=1)
        self.assertIn("tributary top: c2: ", errors)
        out, _ = self.top("-n", "1", "--allow-missing")
        self.assertIn("\nc2  ", out)
        self.assertIn("\nc1         host", out)

    def test_one_that_is_slow_holds_up_no_other(self):
        mute = self.path("mute")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(mute)
        listener.listen()
        fleet = self.write_fleet(
            f'collector {{ name: "c3" connect: "{mute}" }}')
        out, _ = self.top("-n", "2", "--allow-missing", fleet=fleet)
        self.assertIn("\nc3  asking ...\n", out)
        self.assertEqual(out.count("\nc1         host"), 2, out)


class Orders(FleetCase):
    def test_stop_by_name_is_for_all(self):
        self.session_at("c1", unique_session_name="robots")
        self.session_at("c2", unique_session_name="robots")
        self.session_at("c2", unique_session_name="cars")
        out, _ = self.over("stop", "robots")
        self.assertEqual(sorted(line.split(";")[0] for line in
                                out.splitlines()), [
            "stopped session 1 (robots) of c1",
            "stopped session 1 (robots) of c2"])
        out, _ = self.over("stop", "c2/cars")
        self.assertIn("of c2", out)
        out, _ = self.over("stop", "--all", "--yes")
        self.assertEqual(out, "no session is there to be stopped\n")

    def test_a_trigger_reaches_all(self):
        consumers = [self.session_at(
            name, trigger_config=dict(
                trigger_mode="START_TRACING", trigger_timeout_ms=60_000,
                triggers=[dict(name="go", stop_delay_ms=1)]))
            for name in ("c1", "c2")]
        _, errors = self.over("trigger", "go")
        self.assertIn('2 collectors took "go"', errors)
        for consumer in consumers:
            self.assertFalse(consumer.ended().error)


class Tls(RecordCase):
    def test_each_has_certificates_of_its_own(self):
        """Two CAs, and a producer's beside a consumer's certificate."""
        text = ""
        for name in ("c1", "c2"):
            ca = Authority(self.path(name))
            daemon = self.daemon(
                producer=["tls://127.0.0.1:0"], consumer=["tls://127.0.0.1:0"],
                flags=["--tls-dir", ca.folder])
            text += f"""collector {{
                name: "{name}"
                connect: "{daemon.address("consumers", "tls")}"
                producers: "{daemon.address("producers", "tls")}"
                tls {{ dir: "{ca.issue("ann", "consumer")}" }}
                producer_tls {{ dir: "{ca.issue("dev")}" }} }}\n"""
        fleet = self.path("fleet.pbtx")
        with open(fleet, "w", encoding="utf-8") as file:
            file.write(text)
        out, _ = self.run_command("machines", "--json", "--fleet", fleet)
        self.assertEqual([m["collector"] for m in json.loads(out)],
                         ["c1", "c2"])
        _, errors = self.run_command("trigger", "--fleet", fleet, "t")
        self.assertIn("2 collectors took", errors)


class Haproxy(RecordCase):
    def test_it_takes_the_file(self):
        path = self.path("fleet.pbtx")
        with open(path, "w", encoding="utf-8") as file:
            file.write('collector { name: "c1" producers: '
                       '"tls://c1.example:7443" }\n'
                       'collector { name: "c2" producers: '
                       '"tls://c2.example:7443" }\n')
        out, _ = self.run_command("fleet", "haproxy", "--fleet", path,
                                  connect="none")
        listed, _ = self.run_command("fleet", "haproxy", "c1.example:7443",
                                     "c2.example:7443", connect="none")
        self.assertEqual(out, listed)
        _, errors = self.run_command("fleet", "haproxy", "--fleet", path,
                                     "c3:1", connect="none", status=1)
        self.assertIn("leave out c3:1", errors)
        with open(path, "a", encoding="utf-8") as file:
            file.write('collector { name: "c3" producers: "/p" }\n')
        _, errors = self.run_command("fleet", "haproxy", "--fleet", path,
                                     connect="none", status=1)
        self.assertIn("c3 has producers", errors)


if __name__ == "__main__":
    sys.exit(tap.main())
