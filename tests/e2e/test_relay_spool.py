#!/usr/bin/env python3
"""The relay's memory and its spool: what fits in them survives, and what does
not is counted to the packet."""

import os
import subprocess
import sys
import unittest

from harness import tap
from harness.chaos import Proxy
from harness.device import RelayCase
from harness.imported import may_cause

MIB = 1 << 20
FULL = "spool full"
DISK = "disk full or failed"


class Spool(RelayCase):
    def begin(self, *, rate=1_500_000, producers=2, **options):
        self.collector()
        self.proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", self.daemons[0].producer_path))
        self.things.append(self.proxy)
        self.a = self.device("a", self.proxy.addresses[0], **options)
        self.wait_linked()
        self.book = self.ledger([(self.a, producers)], rate=rate)
        self.trace = self.path("trace")
        self.recording = self.record_to_file(self.trace, size_kb=16384)
        self.wait_writing(self.book, 2 * producers)
        self.wait_written(self.book, 20)

    def cut_off(self):
        self.proxy.say("refuse 600000")
        self.proxy.say("cut rst")

    def written(self):
        return sum(line["bytes"] for line in self.book.book().values())

    def write_more(self, size):
        before = self.written()
        self.until(lambda: self.written() > before + size,
                   f"{size} more bytes are written", timeout=60)

    def store(self):
        return self.a.report().store

    def end(self):
        return self.finish(self.book, self.recording, self.trace)

    def losses(self):
        return {cause: packets
                for cause, (_, packets) in self.a.losses().items()}

    def test_it_drains_while_new_data_arrives(self):
        self.begin(spool_kb=65536)
        self.cut_off()
        self.until(lambda: self.store().spool_bytes > 6 * MIB,
                   "the spool fills", timeout=60)
        self.assertLessEqual(self.store().memory_bytes, MIB)
        self.proxy.say("heal")
        # Still writing: it has to come down nevertheless.
        self.until(lambda: self.a.linked() and
                   self.store().spool_bytes == 0, "it is drained", timeout=60)
        audit = self.end()
        self.assert_complete(audit)
        self.assertEqual(audit.dropped, {})

    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_it_survives_its_relay(self):
        self.begin(spool_kb=65536)
        for _ in range(2):
            self.cut_off()
            self.until(lambda: self.store().spool_bytes > 2 * MIB,
                       "the spool fills", timeout=60)
            self.a.kill()
            self.a.start()
            self.wait_producers()
        self.proxy.say("heal")
        audit = self.end()
        self.assert_complete(audit)
        self.assertGreater(audit.packets, 1000)

    def wait_producers(self):
        self.until(lambda: self.book.ready() == self.book.count,
                   "producers are back")

    def check_full(self, drop, within=0):
        """within: by which part the losses told may be too many."""
        self.begin(spool_kb=2048, settings=f"drop: {drop}")
        self.cut_off()
        self.write_more(12 * MIB)
        self.proxy.say("heal")
        self.wait_linked()
        self.write_more(MIB)
        audit = self.end()
        if within == 0:
            self.assert_accounted(audit, "LINK_LOSS_SPOOL_FULL")
        for seq, lost, told in audit.unaccounted():
            self.assertLessEqual(lost, told, f"seq {seq}")
            self.assertLessEqual(told, lost * (1 + within), f"seq {seq}")
        self.assertEqual(audit.causes(), {"LINK_LOSS_SPOOL_FULL"})
        self.assertEqual(audit.gaps_without_mark(), [])
        self.assertEqual(self.losses(), {FULL: sum(audit.told.values())})
        self.assertGreater(audit.lost, 1000)
        return audit

    def gaps(self, audit):
        """(last number before, first behind) of each gap."""
        out = []
        for numbers in audit.arrived.values():
            out += [(a, b) for a, b in zip(numbers, numbers[1:])
                    if b != a + 1]
        return out

    @may_cause("traced_buf_patches_failed")
    def test_full_and_the_oldest_goes(self):
        audit = self.check_full("OLDEST")
        # What was newest when the network came back is there.
        for seq, numbers in audit.arrived.items():
            self.assertEqual(numbers[-1], self.book.book()[seq]["written"] - 1)

    @may_cause("traced_buf_patches_failed")
    def test_full_and_the_newest_goes(self):
        # Few of the gaps at its end are remembered: a packet that lies across
        # two old ones may be counted in both.
        audit = self.check_full("NEWEST", within=0.02)
        self.assertTrue(self.gaps(audit))

    @may_cause("traced_buf_patches_failed")
    def test_memory_alone(self):
        self.begin()
        self.cut_off()
        self.write_more(6 * MIB)
        self.proxy.say("heal")
        self.wait_linked()
        self.write_more(MIB)
        audit = self.end()
        self.assert_accounted(audit, "LINK_LOSS_SPOOL_FULL")
        self.assertEqual(self.losses(), {FULL: audit.lost})
        self.assertGreater(audit.lost, 1000)

    @may_cause("traced_buf_patches_failed")
    @unittest.skipIf(os.geteuid() != 0, "mounting a small disk wants root")
    def test_the_disk_is_full(self):
        disk = self.path("disk")
        os.mkdir(disk)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700",
                               "tmpfs", disk], stderr=subprocess.PIPE)
        if done.returncode != 0:
            self.skipTest(done.stderr.decode())
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.begin(settings=f'spool {{ dir: "{disk}" size_kb: 65536 }}')
        self.cut_off()
        self.write_more(12 * MIB)
        self.proxy.say("heal")
        self.wait_linked()
        self.write_more(MIB)
        audit = self.end()
        self.assertGreater(audit.lost, 1000)
        self.assert_accounted(audit, "LINK_LOSS_DISK")
        self.assertEqual(self.losses(), {DISK: audit.lost})

    def spool_files(self):
        return [os.path.join(self.a.spool, name)
                for name in os.listdir(self.a.spool)
                if os.path.getsize(os.path.join(self.a.spool, name)) > MIB]

    def harm(self, how):
        """Kills the relay in a cut and does this to its spool."""
        self.begin(spool_kb=65536)
        self.cut_off()
        self.until(lambda: self.store().spool_bytes > 4 * MIB,
                   "the spool fills", timeout=60)
        self.a.kill()
        path, = self.spool_files()
        with open(path, "r+b") as file:
            how(file, os.path.getsize(path))
        self.a.start()
        self.wait_producers()
        self.proxy.say("heal")
        self.wait_linked()
        self.wait_writing(self.book, 4)
        audit = self.end()
        self.assertEqual(audit.gaps_without_mark(), [])
        return audit

    @may_cause("traced_buf_patches_failed",
               "traced_buf_trace_writer_packet_loss")
    def test_a_torn_tail(self):
        def tear(file, size):
            # What lies behind its data is zeros that were reserved; within
            # the last record, as between two of them nothing is torn.
            data = file.read()
            file.truncate(len(data.rstrip(b"\0")) - 100)
        audit = self.harm(tear)
        store = self.store()
        self.assertGreater(store.spool_cut_bytes + store.spool_damaged, 0)
        self.assertGreater(audit.lost, 0)

    @may_cause("traced_buf_patches_failed",
               "traced_buf_trace_writer_packet_loss")
    def test_flipped_bytes(self):
        def flip(file, size):
            for at in (size // 3, size // 2):
                file.seek(at)
                data = bytes(b ^ 0x55 for b in file.read(16))
                file.seek(at)
                file.write(data)
        audit = self.harm(flip)
        store = self.store()
        self.assertGreater(store.spool_damaged + store.spool_cut_bytes, 0)
        self.assertGreater(audit.lost, 0)
        # Two wounds, and not all that lies behind them.
        self.assertLess(audit.lost, audit.packets)


if __name__ == "__main__":
    sys.exit(tap.main())
