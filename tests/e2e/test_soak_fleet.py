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
from soak import stored
from soak.fleet import FleetSoak


class ForAMoment(FleetSoak):
    every_ms = 2000
    pause_s = 0.3
    away_s = 2

    def say(self, sentence):
        # A comment of TAP: the audit's findings are part of the test.
        print("#", sentence, flush=True)

    def storm(self, seconds):
        for what in (self.add, self.kill_long, self.drain,
                     self.restart_haproxy, self.kill_short,
                     *([self.bucket_away, self.postgresql_away,
                        self.kill_keeper] if self.stored else ())):
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
                               rate=20000, keep=not stored.MISSING)
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

        if soak.stored:
            # A row that is not there, and an object of something else.
            soak.stored.database.sql(
                "DELETE FROM segments WHERE path = (SELECT min(path) FROM "
                "segments)")
            soak.stored.bucket.signed("DELETE", soak.stored.bucket.keys()[0])
            self.assertEqual(len(list(soak.stored.faults())), 3)

        # A segment that is not there, or there twice, is found; no kill excuses
        # it.
        written = [kill.after for kill in soak.kills]
        for kill in soak.kills:
            kill.after = {}
        pairs = [pair for one in soak.collectors for pair in
                 zip(one.segments(), one.segments()[1:])]
        first, second = max(pairs, key=lambda pair: min(
            os.path.getsize(path) for path in pair))
        shutil.copy2(first, first + ".kept")
        shutil.copy2(second, first)
        counts = soak.audit().counts
        self.assertGreater(counts["untold"], 0)
        self.assertGreater(counts["doubled"], 0)
        os.replace(first + ".kept", first)
        for kill, after in zip(soak.kills, written):
            kill.after = after
        soak.faults.clear()
        soak.audit()
        self.assertEqual(soak.faults, [])


if __name__ == "__main__":
    sys.exit(tap.main())
