#!/usr/bin/env python3
"""The soak of the archive for a moment, each misfortune once (`tests/soak
archive` goes on for hours); and that its audit finds what is wrong."""

import os
import shutil
import sys
import tempfile
import unittest

from harness import chance, tap
from soak.archive import ArchiveSoak

SECONDS = 8


class ForAMoment(ArchiveSoak):
    """Misfortunes in their order instead of at random."""

    n_devices = 3
    calm_s = 0
    stop_timeout_ms = 500
    sample = 20
    mortal_share = 10

    def say(self, sentence):
        # A comment of TAP: the audit's findings are part of the test.
        print("#", sentence, flush=True)

    def misfortunes(self):
        for second, what in (
                (0.3, self.trigger_flight), (0.6, self.slow_disk),
                (0.9, self.rotate), (1.2, self.reindex),
                (1.5, self.trigger_cut), (1.6, self.change_one),
                (1.8, self.kill_device), (2.0, self.stop_one),
                (2.2, self.kill_mortal), (2.5, self.kill_collector),
                (3.5, self.freeze_device), (3.8, self.reindex),
                (4.0, self.upgrade), (5.0, self.full_disk),
                (6.0, self.trigger_flight), (6.3, self.rotate),
                (6.6, self.trigger_cut), (7.0, self.stop_one)):
            self.later(second, self.counted(what))
        return []


class Archives(unittest.TestCase):
    def setUp(self):
        # Short, as paths of sockets are.
        folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        print(f"# TRIBUTARY_SEED={chance.SEED}", flush=True)
        self.soak = ForAMoment(folder, chance.SEED)
        self.addCleanup(self.soak.end)
        self.soak.is_warm = True

    def test_each_packet_is_in_exactly_one_segment(self):
        soak = self.soak
        soak.start_collector()
        soak.control = soak.consumer()
        soak.round(SECONDS, SECONDS)
        soak.settle()
        soak.finish()
        soak.audit_all()
        self.assertEqual(soak.faults, [])
        self.assertGreater(soak.totals["present"], 5000)
        for what in (soak.kill_collector, soak.upgrade, soak.full_disk):
            self.assertEqual(soak.done[what.__name__], 1)
        self.assertGreaterEqual(soak.totals["parts_cut_short"], 2 * 9 - 2)

        # A segment that is not there, or there twice, is found.
        rows = [rows for rows in soak.sessions_of("size") if len(rows) > 1][0]
        first, second = [os.path.join(soak.archive.folder, row["path"])
                         for row in rows[:2]]
        shutil.copy(first, first + ".kept")
        shutil.copy(second, first)
        found = soak.audit("size")
        self.assertGreater(found["untold"], 0)
        self.assertGreater(found["doubled"], 0)
        os.replace(first + ".kept", first)
        soak.faults.clear()
        soak.audit("size")
        self.assertEqual(soak.faults, [])


if __name__ == "__main__":
    sys.exit(tap.main())
