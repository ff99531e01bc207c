#!/usr/bin/env python3
"""The soak of a fleet for a moment, each misfortune once (`tests/soak fleet` goes
on for minutes); and that its audit finds what is wrong."""

import os
import shutil
import sys
import tempfile
import unittest

from harness import chance, tap
from harness.haproxy import HAPROXY
from soak.fleet import FleetSoak


class ForAMoment(FleetSoak):
    every_ms = 2000
    pause_s = 0.3

    def say(self, sentence):
        # A comment of TAP: the audit's findings are part of the test.
        print("#", sentence, flush=True)

    def storm(self, seconds):
        for what in (self.add, self.kill_long, self.drain,
                     self.restart_haproxy, self.kill_short):
            self.suffer(what)
            self.rest(self.pause_s)


@unittest.skipIf(HAPROXY is None, "no haproxy (deploy/install-deps test)")
class Fleets(unittest.TestCase):
    def setUp(self):
        # Short, as paths of sockets are.
        folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        print(f"# TRIBUTARY_SEED={chance.SEED}", flush=True)
        self.soak = ForAMoment(folder, chance.SEED, relays=4, producers=3,
                               rate=20000)
        self.addCleanup(self.soak.end)

    def test_each_packet_is_in_exactly_one_segment(self):
        soak = self.soak
        report = soak.run(0)
        print("#", report, flush=True)
        self.assertEqual(soak.faults, [])
        self.assertEqual(report["present"] + report["killed"] +
                         report["told"], report["written"])
        self.assertGreater(report["present"], 1000)
        self.assertGreater(report["moves"], 0)

        # A segment that is not there, or there twice, is found.
        first, second = max((one.segments() for one in soak.collectors),
                            key=len)[:2]
        shutil.copy2(first, first + ".kept")
        shutil.copy2(second, first)
        counts = soak.audit().counts
        self.assertGreater(counts["untold"], 0)
        self.assertGreater(counts["doubled"], 0)
        os.replace(first + ".kept", first)
        soak.faults.clear()
        soak.audit()
        self.assertEqual(soak.faults, [])


if __name__ == "__main__":
    sys.exit(tap.main())
