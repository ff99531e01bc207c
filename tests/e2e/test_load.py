#!/usr/bin/env python3
"""The load generator writes what its ledger says, and its verifier finds
whatever is wrong with a trace."""

import json
import os
import subprocess
import sys
import unittest

from harness import pb, pki, sshd, tap
from harness.case import Case
from harness.daemon import environment
from harness.imported import may_cause
from harness.load import load, program, verify
from harness.trace import split_file

DAEMON = ("--daemon", os.environ["TRIBUTARYD"])


def framed(packets):
    out = bytearray()
    for packet in packets:
        out += b"\x0a"
        size = len(packet)
        while size >= 0x80:
            out.append(size & 0x7F | 0x80)
            size >>= 7
        out.append(size)
        out += packet
    return bytes(out)


class Load(Case):
    def run_load(self, *args):
        """Its report, and what the verifier says."""
        report = load(*DAEMON, "--session", self.path("trace"), "--ledger",
                      self.path("ledger"), *args)
        return report, *verify([self.path("trace")], [self.path("ledger")])

    def run_enough(self, option, amount, enough, *args):
        """As run_load(), with three times as much as often as a busy machine
        has not made enough of it, a few times."""
        for factor in (1, 3, 9, 27):
            report, status, found = self.run_load(*args, option,
                                                  amount * factor)
            self.assert_accounted(status, found)
            if enough(report, found):
                break
        self.assertTrue(enough(report, found), (report, found))
        return report, found

    def assert_accounted(self, status, found):
        self.assertEqual(status, 0, found)
        self.assertTrue(found["accounted"])

    # Producers are cut off, some of them between a chunk and its patch.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_churn_over_all_transports_is_accounted_for(self):
        report, found = self.run_enough(
            "--duration", 2, lambda report, found:
            report["ended_clean"] > 10 and report["ended_cut"] > 10 and
            found["sequences"] >= 200 + 20 and found["present"] > 1000 and
            report["round_trip_us"]["count"] > 100 and
            report["control"]["query_us"]["count"] > 3,
            "--connect", "unix", "--connect", "tcp", "--connect", "tls",
            "--producers", 200, "--rate", "20K", "--big", "3:9000",
            "--patches", "--churn", "60:mixed", "--control",
            "--reply-every", 2)
        self.assertEqual(report["connected"], 200)
        self.assertEqual(report["errors"], {})
        self.assertGreater(report["collector"]["rss_peak_kb"], 1000)

    def test_hostile_and_slow_peers_take_nothing_from_the_others(self):
        report, found = self.run_enough(
            "--packets", 300, lambda report, found:
            report["hostile"]["garbage"]["thrown_out"] > 0 and
            report["session"]["invalid_packets"] > 0,
            "--connect", "tcp", "--producers", 20, "--rate", "30K", "--slow", "answers:2,reads:2",
            "--slow-by", "200ms", "--hostile",
            "mute:2,half:2,garbage:2,too-big:2,flood:1,wrong-ids:2,forged:2,"
            "registrations:1")
        self.assertEqual(found["present"], report["packets"]["total"])
        self.assertGreaterEqual(found["present"], 20 * 300)
        self.assertEqual(found["missing_unsure"], 0)

    # A relay that is cut last may owe a patch.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_relays_of_both_kinds_are_accounted_for(self):
        settings = self.path("settings")
        with open(settings, "w") as file:
            # A relay that was cut last does not come again.
            file.write("enable_relay_endpoint: true\n"
                       "link { end_wait_ms: 200 }\n")
        for kind in ([], ["--classic"]):
            with self.subTest(kind):
                report, found = self.run_enough(
                    "--duration", 1, lambda report, found:
                    report["ended_cut"] > 3 and found["present"] > 500 and
                    report["round_trip_us"]["count"] > 3,
                    "--daemon-config", settings, "--connect", "tcp",
                    "--connect", "unix", "--relays", 12, "--producers", 3,
                    "--rate", "40K", "--big", "3:9000", "--patches",
                    "--churn", "20:mixed", *kind)
                self.assertEqual(report["connected"], 36)

    @unittest.skipUnless(pki.OPENSSL, "no openssl command")
    def test_each_device_may_have_a_certificate(self):
        made = pki.Pki(self.path("pki"))
        devices = self.path("devices")
        for name in ("one", "two", "three"):
            made.issue(name, role="producer",
                       folder=os.path.join(devices, name))
        daemon = self.daemon(producer=["tls://127.0.0.1:0"],
                             flags=["--tls-dir", made.collector()])
        report = load("--connect", daemon.address("producers", "tls"),
                      "--tls-certs", devices, "--producers", 6, "--packets",
                      20, "--session", self.path("trace"), "--consumer",
                      daemon.address("consumers"), "--rate", "50K",
                      "--ledger", self.path("ledger"), "--pid", daemon.pid)
        self.assertEqual(report["connected"], 6)
        self.assertIn("collector", report)
        self.assert_accounted(*verify([self.path("trace")],
                                      [self.path("ledger")]))
        log = daemon.log()
        for name in ("one", "two", "three"):
            self.assertIn(name, log)

    def test_devices_may_come_through_ssh(self):
        if (reason := sshd.missing()) is not None:
            self.skipTest(reason)
        daemon = self.daemon()
        host = sshd.Sshd(self.path("sshd"))
        self.addCleanup(host.stop)
        host.start(self.until)
        report = load("--connect", host.address(self.path("p")),
                      "--producers", 3, "--packets", 50, "--rate", "50K",
                      "--session", self.path("trace"), "--consumer",
                      daemon.address("consumers"), "--ledger",
                      self.path("ledger"), env=host.env())
        self.assertEqual(report["connected"], 3)
        status, found = verify([self.path("trace")], [self.path("ledger")])
        self.assert_accounted(status, found)
        self.assertEqual(found["present"], 150)

    def test_a_bare_sink_takes_what_devices_write(self):
        sink = subprocess.Popen(
            [program(), "sink", "--listen", self.path("s")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment())
        try:
            self.until(lambda: os.path.exists(self.path("s")), "the sink")
            report = load("--connect", self.path("s"), "--producers", 3,
                          "--packets", 500, "--rate", "max")
        finally:
            sink.terminate()
            said = json.loads(sink.communicate()[0])
        self.assertEqual(sink.returncode, 0)
        self.assertEqual(said["connections"], 3)
        self.assertGreater(said["bytes"], report["bytes"]["total"])

    def test_what_a_ring_overwrote_is_told(self):
        report, status, found = self.run_load(
            "--connect", "unix", "--no-shm", "--producers", 5, "--packets",
            3000, "--rate", "max", "--buffer", 512, "--stream")
        self.assert_accounted(status, found)
        self.assertEqual(found["present"] + found["told"], 15000)
        self.assertEqual(found["missing_unsure"], 0)
        if report["session"]["chunks_overwritten"] > 0:
            self.assertGreater(found["told"], 0)

    # It may be killed between a chunk and its patch.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_a_killed_generator_leaves_a_ledger_that_holds(self):
        daemon = self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        session = self.session("tributary.load")
        generator = subprocess.Popen(
            [program(), "--quiet", "--connect", daemon.address("producers"),
             "--connect", daemon.address("producers", "tcp"), "--producers",
             "6", "--rate", "200K", "--big", "5:9000", "--patches",
             "--ledger", self.path("ledger")], env=environment())
        try:
            self.until(lambda: sum(b.bytes_written for b in
                                   session.stats().buffer_stats) > 300000,
                       "packets in the buffer")
        finally:
            generator.kill()
            generator.wait()
        self.until(lambda: not session.query().producers,
                   "the end of the producers")
        session.flush(60_000)
        session.stop()
        with open(self.path("trace"), "wb") as file:
            file.write(framed(session.read().stored))
        status, found = verify([self.path("trace")], [self.path("ledger")])
        self.assert_accounted(status, found)
        self.assertEqual(found["sequences"], 6)
        self.assertGreater(found["present"], 300)

    def test_the_verifier_finds_what_is_wrong(self):
        _, status, found = self.run_load(
            "--connect", "tcp", "--producers", 3, "--packets", 40, "--rate",
            "100K")
        self.assert_accounted(status, found)
        with open(self.path("trace"), "rb") as file:
            packets = split_file(file.read())
        events = [i for i, raw in enumerate(packets) if
                  pb.TracePacket.FromString(raw).WhichOneof("data") ==
                  "for_testing"]
        first, second = [i for i in events if pb.TracePacket.FromString(
            packets[i]).for_testing.seq_value == 2][10:12]
        altered = bytearray(packets[first])
        altered[-20] ^= 1
        without = packets[:first] + packets[first + 1:]
        doubled = packets[:first] + packets[first:first + 1] + packets[first:]
        swapped = list(packets)
        swapped[first], swapped[second] = packets[second], packets[first]
        changed = list(packets)
        changed[first] = bytes(altered)
        for name, wrong, field in (("removed", without, "untold"),
                                   ("doubled", doubled, "doubled"),
                                   ("swapped", swapped, "disordered"),
                                   ("altered", changed, None)):
            with self.subTest(name):
                path = self.path(name)
                with open(path, "wb") as file:
                    file.write(framed(wrong))
                status, found = verify([path], [self.path("ledger")])
                self.assertEqual(status, 1)
                self.assertFalse(found["accounted"])
                if field:
                    self.assertEqual(found[field], 1, found)
        cut = self.path("cut")
        with open(cut, "wb") as file:
            file.write(framed(packets)[:-3])
        self.assertEqual(verify([cut], [self.path("ledger")])[0], 1)

    def test_files_in_pieces_and_compressed_ones_are_read(self):
        config = self.path("config")
        with open(config, "w") as file:
            file.write("""
                buffers { size_kb: 8192 }
                data_sources { config { name: "tributary.load"
                    for_testing { seed: 77 } } }
                write_into_file: true
                file_write_period_ms: 100
                compression_type: COMPRESSION_TYPE_DEFLATE
            """)
        report, status, found = self.run_load(
            "--connect", "unix", "--producers", 4, "--packets", 500, "--rate",
            "200K", "--config", config)
        self.assert_accounted(status, found)
        self.assertEqual(found["present"], 2000)
        self.assertLess(report["session"]["file_bytes"],
                        report["bytes"]["total"])
        with open(self.path("trace"), "rb") as file:
            packets = split_file(file.read())
        half = len(packets) // 2
        pieces = [self.path("piece1"), self.path("piece2")]
        for path, part in zip(pieces, (packets[:half], packets[half:])):
            with open(path, "wb") as file:
                file.write(framed(part))
        self.assert_accounted(*verify(pieces, [self.path("ledger")],
                                      "--session", 77))
        status, found = verify(pieces[:1], [self.path("ledger")],
                               "--session", 77)
        self.assertEqual(status, 1)
        self.assertEqual(found["untold"] + found["present"], 2000)


if __name__ == "__main__":
    sys.exit(tap.main())
