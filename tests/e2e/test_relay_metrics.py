#!/usr/bin/env python3
"""tributary-relay --metrics: what it prints is what the relay says to --status."""

import os
import socket
import subprocess
import sys
import threading
import unittest

from harness import pb, tap
from harness.case import TEST_SOURCE, Case, config
from harness.daemon import environment
from harness.loop import SCALE
from harness.prometheus import PROMTOOL, WITHOUT, check_metrics, numbers

BINARY = os.environ["TRIBUTARY_RELAY"]
BACKLOG = 'tributary_relay_backlog_bytes{where="memory"}'
STATE = 'tributary_relay_link_state{state="%s"}'
FULL = '{cause="spool_full"}'


class Metrics(Case):
    def ask(self, state_dir, **options):
        return subprocess.run(
            [BINARY, "--metrics", "--state-dir", state_dir],
            env=environment(), text=True, timeout=60 * SCALE,
            stderr=subprocess.PIPE,
            **{"stdout": subprocess.PIPE, **options})

    def linked(self, **options):
        daemon = self.daemon(flags=["--enable-relay-endpoint"])
        relay = self.relay(daemon, **options)
        self.until(lambda: relay.link_state() == "linked", "it is linked")
        return relay

    def writing(self, relay):
        """A producer behind it whose data source runs."""
        producer = self.producer("far", ["one", TEST_SOURCE],
                                 address=relay.producer_path)
        consumer = self.consumer()
        consumer.enable(config(TEST_SOURCE, trace_all_machines=True))
        producer.wait_started()
        return producer

    def test_numbers_are_those_of_status(self):
        relay = self.linked(machine="device-1")
        self.writing(relay).writer().number(200)
        self.until(lambda: relay.metrics()[
            "tributary_relay_unacknowledged_blocks"] == 0 and
            relay.metrics()[BACKLOG] == 0, "all has arrived")
        lag = "tributary_relay_event_loop_lag_seconds_count"
        self.until(lambda: relay.metrics()[lag] > 0, "a timer has fired")
        report, now = relay.report(), relay.metrics()
        link, store, clock = (report[name] for name in
                              ("link", "store", "clock"))
        self.assertEqual(
            {name: now[STATE % name] for name in
             ("waiting", "connecting", "linked", "classic", "stopped")},
            {"waiting": 0, "connecting": 0, "linked": 1, "classic": 0,
             "stopped": 0})
        for name, value in (
                ("reconnects_total", link["reconnects"]),
                ("data_bytes_total", link["bytes_up"]),
                ("sent_bytes_total", link["bytes_sent"]),
                ("resent_bytes_total", link["bytes_again"]),
                ('backlog_limit_bytes{where="memory"}',
                 store["memory_limit"]),
                ("oldest_data_seconds", store["oldest_ms"] / 1000),
                ("spool_failed", 0),
                ("producers", len(report["producers"])),
                ("data_sources", 2),
                ("process_max_fds", report["process"]["max_fds"]),
                ("process_threads", report["process"]["threads"]),
                ('build_info{version="%s"}' % report["version"], 1)):
            self.assertEqual(now["tributary_relay_" + name], value, name)
        self.assertGreater(link["bytes_up"], 200)
        self.assertAlmostEqual(now["tributary_relay_clock_offset_seconds"],
                               clock["offset_ns"] / 1e9, places=3)
        self.assertGreater(now["tributary_relay_process_cpu_seconds_total"],
                           0)
        # There is no spool.
        self.assertNotIn('tributary_relay_backlog_bytes{where="spool"}', now)
        # Nothing was lost, and that is a number.
        lost = {name: value for name, value in now.items()
                if name.startswith("tributary_relay_lost_")}
        self.assertEqual(len(lost), 3 * 8)
        self.assertEqual(set(lost.values()), {0})

    def test_a_cut_and_a_full_spool_show(self):
        relay = self.linked(flags=["--memory", "1mb"])
        producer = self.writing(relay)
        self.daemons[0].kill()
        self.until(lambda: relay.metrics()[STATE % "linked"] == 0,
                   "it is cut off")
        writer = producer.writer()
        writer.number(400, size=1000)
        now = self.until(
            lambda: [n for n in [relay.metrics()] if n[BACKLOG] > 0],
            "it waits")[0]
        self.assertEqual(now["tributary_relay_lost_packets_total" + FULL], 0)

        def is_full():
            writer.number(400, size=1000)
            return relay.metrics()["tributary_relay_lost_packets_total" +
                                   FULL] > 0
        self.until(is_full, "the oldest is dropped", timeout=60)
        loss, = relay.report()["losses"]
        now = relay.metrics()
        for name in ("packets", "chunks", "bytes"):
            self.assertEqual(now[f"tributary_relay_lost_{name}_total{FULL}"],
                             loss[name])
        self.assertGreater(now["tributary_relay_oldest_data_seconds"], 0)

    @unittest.skipIf(PROMTOOL is None, f"promtool {WITHOUT}")
    def test_promtool_has_nothing_to_say(self):
        relay = self.linked(spool=self.path("spool"))
        self.writing(relay).writer().number(200)
        self.until(lambda: "tributary_relay_clock_error_seconds" in
                   relay.metrics(), "its clock was measured")
        done = self.ask(relay.state_dir)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('tributary_relay_backlog_bytes{where="spool"}',
                      done.stdout)
        check_metrics(self, done.stdout)

    def test_without_a_relay_nothing_is_printed(self):
        done = self.ask(self.path("nowhere"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no relay runs here", done.stderr)

    def test_what_cannot_be_written_is_no_success(self):
        relay = self.linked()
        with open("/dev/full", "w") as full:
            done = self.ask(relay.state_dir, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: No space left", done.stderr)

    # ---- a relay that lies ----

    def lie(self, answer):
        """A relay that answers so, once; the folder to ask in."""
        folder = self.path("liar")
        os.makedirs(folder, mode=0o700)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(folder, "control"))
        listener.listen(1)

        def serve():
            sock, _ = listener.accept()
            with sock:
                sock.sendall(answer)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(listener.close)
        self.addCleanup(thread.join, 60)
        return folder

    def test_a_hostile_report_is_escaped(self):
        report = pb.RelayReport(version='1"} 1\nevil 2\\\x1b[31m')
        report.link.state = 'linked"} 7\nevil 3'
        report.store.memory_bytes = 2 ** 64 - 1
        report.clock.offset_ns = -2 ** 63
        report.losses.add(cause="spool full", packets=5)
        report.losses.add(cause='x"} 1\nevil 4', packets=6)
        report.loop_delays.extend([1] * 5000)
        done = self.ask(self.lie(report.SerializeToString()))
        self.assertEqual(done.returncode, 0, done.stderr)
        now = numbers(done.stdout)
        self.assertEqual([name for name in now if
                          not name.startswith("tributary_relay_")], [])
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn('version="1\\"} 1\\nevil 2\\\\', done.stdout)
        self.assertEqual(now["tributary_relay_clock_offset_seconds"],
                         -2 ** 63 / 1e9)
        self.assertEqual(now["tributary_relay_lost_packets_total" + FULL], 5)
        self.assertEqual(now[STATE % "linked"], 0)
        if PROMTOOL is not None:
            check_metrics(self, done.stdout)

    def test_an_answer_without_sense_is_refused(self):
        done = self.ask(self.lie(b"\xff" * 100))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("makes no sense", done.stderr)


if __name__ == "__main__":
    sys.exit(tap.main())
