#!/usr/bin/env python3
"""One relay, no trouble: everything that local producers write arrives."""

import sys

from harness import tap
from harness.case import Case
from harness.ledger import SOURCE, Audit, Ledger

PACKETS = 5000


class Ledgers(Case):
    """The books' own check, without a relay."""

    def test_everything_arrives_at_a_daemon_itself(self):
        daemon = self.daemon()
        with Ledger(self.path("ledger.log"), [(daemon.producer_path, 3)],
                    packets=PACKETS, writers=2) as ledger:
            ledger.wait_ready()
            consumer = self.session(SOURCE, size_kb=65536)
            self.until(lambda: ledger.writing() == 6, "all write")
            self.until(lambda: all(line["written"] == PACKETS for line in
                                   ledger.book().values()), "all is written")
            consumer.flush(5000)
            consumer.stop()
            audit = Audit(ledger.book(), consumer.read())
        self.assertEqual((audit.missing, audit.faults), ({}, []),
                         audit.describe())
        self.assertEqual(audit.packets, 6 * PACKETS)
        self.assertEqual(audit.dropped, {})


if __name__ == "__main__":
    sys.exit(tap.main())
