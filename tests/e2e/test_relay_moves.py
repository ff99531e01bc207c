#!/usr/bin/env python3
"""A link that goes on at another collector: what the first had acknowledged is
its, all the rest is the other's, and nothing is in both."""

import os
import signal
import sys

from harness import tap
from harness.consumer import config
from harness.device import RelayCase
from harness.ledger import SOURCE, Audit
from harness.trace import Trace

RATE = 200_000


class Moves(RelayCase):
    """The device's collector is where a symbolic link leads."""

    def setUp(self):
        super().setUp()
        self.there = self.path("collector")
        self.recordings = []
        self.files = []

    def lead_to(self, number):
        path = self.path("next")
        os.symlink(self.daemons[number].address("producers"), path)
        os.rename(path, self.there)

    def collectors(self, count, settings="", **fields):
        for number in range(count):
            self.collector(settings, producer=[self.path(f"p{number}")],
                           consumer=[self.path(f"c{number}")])
            self.begin(number, **fields)

    def begin(self, number, *sources, **fields):
        """The same recording on each."""
        self.files.append(self.path(f"trace{len(self.files)}"))
        fd = os.open(self.files[-1], os.O_CREAT | os.O_RDWR, 0o600)
        consumer = self.consumer(self.daemons[number].address("consumers"))
        consumer.enable(config(
            *(sources or [SOURCE]), size_kb=8192, trace_all_machines=True,
            write_into_file=True, file_write_period_ms=100,
            trace_uuid_msb=1, trace_uuid_lsb=2, **fields),
            fds=[fd])
        os.close(fd)
        self.recordings.append(consumer)

    def pause(self, book, number):
        """Nobody writes; the collector's file has all that was written."""
        book.finish()
        self.wait_empty()
        self.recordings[number].flush(20000)
        written = {seq: line["written"] for seq, line in book.book().items()}
        self.until(lambda: {
            seq: numbers[-1] + 1 for seq, numbers in
            Audit(book.book(), Trace.from_file(self.files[number])).arrived
            .items()} == written, "its file has it all")
        return written

    def test_to_another_when_its_own_is_killed(self):
        self.collectors(2)
        self.lead_to(0)
        device = self.device("a", self.there, spool_kb=65536)
        self.wait_linked()
        book = self.ledger([(device, 2)], rate=RATE)
        self.wait_writing(book, 4)
        self.wait_written(book, 50)
        before = self.pause(book, 0)
        self.daemons[0].kill()
        book.say(f"rate {RATE}")
        self.wait_written(book, max(before.values()) + 50)
        self.lead_to(1)
        self.wait_linked()
        self.wait_written(book, max(before.values()) + 100)
        # Nobody was told to stop and to start: the sequences go on.
        self.assertEqual(book.writing(), 4)
        self.assertEqual(len(book.book()), 4)
        book.finish()
        self.wait_empty()
        self.recordings[1].flush(20000)
        self.recordings[1].stop()
        print(device.losses(), file=sys.stderr)
        for n in range(2):
            t = Trace.from_file(self.files[n])
            audit = Audit(book.book(), t)
            print(n, {k: (v[0], v[-1], len(v)) for k, v in audit.arrived.items()}, audit.faults, audit.told, file=sys.stderr)
        print(book.book(), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(tap.main())
