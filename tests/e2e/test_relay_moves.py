#!/usr/bin/env python3
"""A link that goes on at another collector: what the first had acknowledged is
its, all the rest is the other's, and nothing is in both."""

import os
import re
import sys

from harness import pb, tap
from harness.consumer import config
from harness.device import Control, RelayCase
from harness.imported import may_cause
from harness.ledger import SOURCE, Audit, ranges
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

    def start_collectors(self, count, settings=""):
        for number in range(count):
            self.collector(settings, producer=[self.path(f"p{number}")],
                           consumer=[self.path(f"c{number}")])

    def collectors(self, count, settings="", **fields):
        self.start_collectors(count, settings)
        for number in range(count):
            self.begin(number, **fields)

    def begin(self, number, *sources, **fields):
        """One recording on all of them."""
        self.files.append(self.path(f"trace{len(self.files)}"))
        fd = os.open(self.files[-1], os.O_CREAT | os.O_RDWR, 0o600)
        consumer = self.consumer(self.daemons[number].address("consumers"))
        options = {"trace_uuid_msb": 1, "trace_uuid_lsb": 2, **fields}
        consumer.enable(config(
            *(sources or [SOURCE]), size_kb=8192, trace_all_machines=True,
            write_into_file=True, file_write_period_ms=100, **options),
            fds=[fd])
        os.close(fd)
        self.recordings.append(consumer)
        return consumer

    def start(self, places=2, sessions=1, **options):
        self.lead_to(0)
        self.a = self.device("a", self.there, spool_kb=65536, **options)
        self.wait_linked()
        self.book = self.ledger([(self.a, places)], rate=RATE)
        self.wait_writing(self.book, 2 * places * sessions)
        self.wait_written(self.book, 50)

    def written(self):
        return {seq: line["written"] for seq, line in self.book.book().items()}

    def more(self, packets=50):
        """Each sequence is written further."""
        before = self.written()
        self.until(lambda: all(now >= before.get(seq, 0) + packets for
                               seq, now in self.written().items()),
                   "more is written", timeout=60)

    def pause(self, *numbers):
        """Nobody writes; the files of the collector's recordings have all that
        was written."""
        self.book.finish()
        self.wait_empty()
        for number in numbers:
            self.recordings[number].flush(20000)
        self.until(lambda: {
            seq: some[-1] + 1 for number in numbers for seq, some in
            self.audit(number).arrived.items()} == self.written(),
            "its file has it all")

    def go_on(self):
        self.book.say(f"rate {RATE}")

    def audit(self, number):
        return Audit(self.book.book(), Trace.from_file(self.files[number]))

    def end(self, *numbers, dead=(), back=False):
        """Of these recordings, in the order in which the device was there:
        {sequence: numbers in all of them}.  dead: whose collectors were
        killed.  back: it was twice at one, which
        has two sequences of each then."""
        self.book.finish()
        self.wait_empty()
        for number in numbers:
            if number not in dead:
                self.recordings[number].flush(20000)
                self.recordings[number].stop()
        all_of_it = {}
        for number in numbers:
            audit = self.audit(number)
            if not back:
                self.assertEqual(audit.faults, [])
            self.assertGreater(audit.packets, 0)
            for seq, some in audit.arrived.items():
                all_of_it.setdefault(seq, []).extend(some)
        return all_of_it

    def assert_each_once(self, found):
        wrong = {}
        for seq, written in self.written().items():
            numbers = found.get(seq, [])
            lost = sorted(set(range(written)) - set(numbers))
            twice = sorted({n for n in numbers if numbers.count(n) > 1})
            if lost or twice or numbers != sorted(numbers):
                wrong[seq] = f"of {written} not there {ranges(lost)}, " \
                    f"twice {ranges(twice)}, or in another order"
        self.assertEqual(wrong, {})
        self.assertEqual(len(found), len(self.written()))

    def linked_anew(self):
        """Lines of the log about links."""
        return re.findall(r"linked to [^:]*: (.*)", self.a.log())

    def wait_moved(self, times=1):
        self.until(lambda: sum("goes on there" in line for line in
                               self.linked_anew()) == times, "it has moved")

    def drain(self, number, **fields):
        control = self._add(Control(self.loop, self.daemons[number].address(
            "consumers")))
        call = control.call("Drain", pb.DrainRequest(**fields))
        control.finish(call)
        return pb.DrainReply.FromString(b"".join(call.replies))

    def test_to_another_when_its_own_is_killed(self):
        self.collectors(2)
        self.start()
        self.pause(0)
        self.daemons[0].kill()
        self.go_on()
        self.more()
        self.lead_to(1)
        self.wait_moved()
        self.more()
        # Nobody on the device was told to stop and to start.
        self.assertEqual(self.book.writing(), 4)
        self.assertEqual(len(self.written()), 4)
        self.assert_each_once(self.end(0, 1, dead=[0]))
        self.assertEqual(self.a.losses(), {})

    # A packet whose begin the dead one had cannot be read at the other, nor
    # can its chunk be patched there.
    @may_cause("traced_buf_trace_writer_packet_loss",
               "traced_buf_patches_failed")
    def test_what_the_dead_one_had_is_its(self):
        """Killed while it takes data: it may have acknowledged more than is in
        its file, never less."""
        self.collectors(2)
        self.start()
        self.daemons[0].kill()
        self.more()
        self.lead_to(1)
        self.wait_moved()
        found = self.end(1)
        first = self.audit(0).arrived
        for seq, written in self.written().items():
            numbers = found.get(seq, [])
            self.assertEqual(numbers, list(range(numbers[0], written)))
            had = first.get(seq, [])
            self.assertEqual(had, list(range(len(had))))
            self.assertLessEqual(len(had), numbers[0])

    def test_from_one_to_the_next_and_back(self):
        """Ids that three collectors gave are in use at once."""
        self.collectors(3)
        self.start()
        way = [0, 1, 2, 0]
        for number in range(3):
            self.lead_to(way[number + 1])
            self.assertEqual(self.drain(way[number], drain=True).error, "")
            self.wait_moved(number + 1)
            self.assertFalse(self.drain(way[number], drain=False).draining)
            self.more()
        found = self.end(0, 1, 2, back=True)
        self.assert_each_once({seq: sorted(numbers) for seq, numbers in
                               found.items()})

    def test_a_producer_that_comes_afterwards(self):
        """Ids of buffers on a link that was moved are more than numbers of
        this collector: of producers, too, that the former never saw."""
        self.collectors(2)
        self.start(places=1)
        self.pause(0)
        self.daemons[0].kill()
        self.go_on()
        self.lead_to(1)
        self.wait_moved()
        late = self.ledger([(self.a, 1)], rate=RATE)
        self.wait_writing(late, 2)
        self.wait_written(late, 50)
        late.finish()
        self.book.finish()
        self.wait_empty()
        self.recordings[1].flush(20000)
        self.recordings[1].stop()
        arrived = {}
        for packet in Trace.from_file(self.files[1]).of("for_testing"):
            if packet.trusted_pid == late.process.pid:
                event = packet.for_testing
                arrived.setdefault(event.seq_value, []).append(event.counter)
        self.assertEqual(arrived, {seq: list(range(line["written"])) for
                                   seq, line in late.book().items()})

    def test_draining_splits_no_packet(self):
        """Packets of several chunks, and a collector that is left while they
        are written: each is whole in one of the traces."""
        self.collectors(2)
        self.lead_to(0)
        self.a = self.device("a", self.there, spool_kb=65536)
        self.wait_linked()
        self.book = self.ledger([(self.a, 3)], rate=2_000_000, size=9000)
        self.wait_writing(self.book, 6)
        self.wait_written(self.book, 50)
        self.lead_to(1)
        reply = self.drain(0, drain=True)
        self.assertTrue(reply.draining)
        self.wait_moved()
        self.until(lambda: self.drain(0).links == 0, "it is left")
        # Its session has lost nothing, and does not wait for the relay.
        self.recordings[0].stop()
        self.more()
        both = self.end(1)
        trace = Trace.from_file(self.files[0])
        audit = Audit(self.book.book(), trace)
        self.assertEqual(audit.faults, [])
        self.assertEqual(audit.told, {})
        for seq, numbers in audit.arrived.items():
            both[seq] = sorted(numbers + both[seq])
        self.assert_each_once(both)

    def test_a_producer_that_ended_meanwhile_is_known_there(self):
        self.collectors(2)
        self.start(places=1)
        self.pause(0)
        self.daemons[0].kill()
        short = self.book
        self.go_on()
        self.more()
        self.book.finish()
        written = self.written()
        book = short.book()
        short.stop()
        self.things.remove(short)
        self.lead_to(1)
        self.wait_moved()
        self.wait_empty()
        self.recordings[1].flush(20000)
        self.recordings[1].stop()
        late = Audit(book, Trace.from_file(self.files[1]))
        early = Audit(book, Trace.from_file(self.files[0]))
        self.assertEqual(late.faults, [])
        self.assertEqual({seq: early.arrived[seq] + late.arrived[seq]
                          for seq in written},
                         {seq: list(range(n)) for seq, n in written.items()})

    # The session of the dead collector has no end.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_what_has_no_session_there_is_told(self):
        """Of two recordings one is not on the other collector."""
        self.start_collectors(2)
        self.begin(0)
        self.begin(1)
        self.begin(0, trace_uuid_msb=7)
        self.start(sessions=2)
        self.pause(0, 2)
        self.daemons[0].kill()
        self.go_on()
        self.more()
        self.lead_to(1)
        self.wait_moved()
        # What nobody wants there is stopped on the device.
        self.until(lambda: self.book.writing() == 4, "half of it ends")
        found = self.end(0, 1, dead=[0])
        known = set(found)
        self.assertEqual(len(known), 4)
        self.assertEqual(found, {seq: list(range(n)) for seq, n in
                                 self.written().items() if seq in known})
        control = self._add(Control(self.loop, self.daemons[1].address(
            "consumers")))
        told = control.machines()["a"].losses
        self.assertEqual([loss.cause for loss in told],
                         [pb.LinkLossCause.Value("LINK_LOSS_COLLECTOR_RESTARTED")])
        lost = sum(n for seq, n in self.written().items()
                   if seq not in known) - self.audit(2).packets
        # Packets in several chunks are counted with each.
        self.assertGreaterEqual(told[0].packets, lost)
        self.assertLess(told[0].packets, 2 * lost)

    def test_a_relay_that_was_killed_meanwhile_begins_anew(self):
        """It does not know what its channels were: what waits is told as lost.
        """
        self.collectors(2)
        self.start()
        self.pause(0)
        self.daemons[0].kill()
        self.go_on()
        self.more()
        before = self.written()
        self.a.kill()
        self.lead_to(1)
        self.a.start()
        self.until(lambda: len(self.written()) == 8 and
                   self.book.writing() == 4, "all come anew")
        self.go_on()
        self.until(lambda: all(self.written()[seq] > 50 for seq in
                               self.written() if seq not in before),
                   "they are written")
        found = self.end(1)
        self.assertEqual(set(found), set(self.written()) - set(before))
        self.assertEqual(list(self.a.losses()), ["collector restarted"])

    # What the killed relay had not copied yet of a packet is lost.
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_a_relay_that_is_killed_stays_with_its_collector(self):
        """Of a list: what waits is for the one that it was linked to, which is
        not its home."""
        self.collectors(2)
        ends = [daemon.address("producers") for daemon in self.daemons]
        self.a = self.device("a", ",".join(ends), spool_kb=65536,
                             flags=["--move-after", "1s"])
        self.wait_linked()
        home = ends.index(re.search("linked to ([^:]*):", self.a.log())[1])
        self.book = self.ledger([(self.a, 2)], rate=RATE)
        self.wait_writing(self.book, 4)
        self.pause(home)
        self.daemons[home].kill()
        self.go_on()
        self.wait_moved()
        self.more()
        self.daemons[home].start()
        self.daemons[home].expected_status = 0
        self.a.kill()
        self.a.start()
        self.wait_linked()
        self.assertEqual(self.linked_anew()[-1], "resumed")
        self.until(lambda: len(self.written()) == 8, "all come anew")
        self.go_on()
        self.more(0)
        found = self.end(home, 1 - home, dead=[home])
        self.assertEqual(self.a.losses(), {})
        # Of what was written when it was killed the last may be missing.
        for seq, line in self.book.book().items():
            numbers = found.get(seq, [])
            self.assertEqual(numbers, sorted(set(numbers)))
            if line["end"] == "stopped":
                self.assertEqual(numbers, list(range(line["written"])))

    def test_the_same_collector_after_a_restart(self):
        """As its standing recordings come back."""
        with open(self.path("r.pbtx"), "w") as file:
            file.write('buffers { size_kb: 8192 } trace_all_machines: true '
                       'file_write_period_ms: 100 data_sources { config { '
                       f'name: "{SOURCE}" }} }}')
        os.mkdir(self.path("archive"))
        self.start_collectors(1, f'archive_dir: "{self.path("archive")}" '
                              'recording { name: "r" config_file: "r.pbtx" }')
        self.start()
        self.book.finish()
        self.wait_empty()
        self.daemons[0].kill()
        self.go_on()
        self.more()
        self.daemons[0].start()
        self.daemons[0].expected_status = 0
        self.wait_moved()
        self.more()
        self.assertEqual(len(self.written()), 4)
        self.assertEqual(self.a.losses(), {})
        self.book.finish()
        self.wait_empty()
        self.daemons[0].stop()
        first, second = sorted((
            Audit(self.book.book(), Trace.from_file(os.path.join(path, name)))
            for path, _, names in os.walk(self.path("archive"))
            for name in names if name.endswith(".pftrace")),
            key=lambda audit: audit.arrived[1][0])
        self.assertEqual(second.faults, [])
        for seq, written in self.written().items():
            numbers = second.arrived[seq]
            self.assertEqual(numbers, list(range(numbers[0], written)))
            self.assertLess(first.arrived[seq][-1], numbers[0])


if __name__ == "__main__":
    sys.exit(tap.main())
