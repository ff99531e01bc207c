#!/usr/bin/env python3
"""What a test knows that it wrote is what Perfetto's Trace Processor finds:
each slice, each value of a counter, by name and time, however the trace came
about."""

import os
import subprocess
import sys
import time
import unittest

from harness import imported, pb, tap
from harness.bytecode import assemble
from harness.case import TEST_SOURCE
from harness.chaos import Proxy
from harness.device import RelayCase
from harness.painting import CATEGORY, Painting, boot_clock
from harness.producer import numbered
from harness.trace import Trace

COMMAND = os.path.join(os.environ["SOURCE_ROOT"], "tests", "peers", "sql")
STROKES = 200
MS = 10**6
REALTIME, BOOTTIME = 1, 6  # of BuiltinClock
Filter = pb.TraceConfig.TraceFilter


def without_categories():
    """A filter that lets through all of a packet but test events and
    categories."""
    def whole(message, *without):
        return {f.number: None for f in message.DESCRIPTOR.fields
                if f.name not in without}
    packet = whole(pb.TracePacket, "for_testing")
    packet[pb.TracePacket.DESCRIPTOR.fields_by_name["track_event"].number] = 2
    return Filter(bytecode_v2=assemble(
        {1: 1}, packet, whole(pb.TrackEvent, "categories")))


@unittest.skipUnless(imported.available(),
                     "no Trace Processor; deploy/install-deps peers")
class Sql(RelayCase):
    def paint(self, writer, painting, count=STROKES):
        writer.write(painting.strokes(count))

    def assert_found(self, trace, *paintings, off=0):
        """Those, and no other slice or value; off: by how many ns times of
        another machine may be."""
        for painting in paintings:
            slices, values = painting.found(trace)
            self.assertEqual([(name, dur) for name, _, dur in slices],
                             [(name, dur) for name, _, dur in painting.slices])
            self.assertEqual([value for _, value in values],
                             [value for _, value in painting.values])
            times = zip([ts for _, ts, _ in slices] + [ts for ts, _ in values],
                        [ts for _, ts, _ in painting.slices] +
                        [ts for ts, _ in painting.values])
            worst = max((abs(found - written) for found, written in times),
                        default=0)
            self.assertLessEqual(worst, off, "ns from where it was written")
        total = sum(len(painting.slices) for painting in paintings)
        self.assertEqual(trace.sql(
            "select (select count(*) from slice join thread_track k on "
            "track_id = k.id), (select count(*) from counter)"),
            [(total, total)])

    def painted(self, fds=(), painting=None, **fields):
        """(trace or None for files, painting) of a session of one producer."""
        if not self.daemons:
            self.daemon()
        painting = painting or Painting()
        producer = self.producer("p")
        consumer = self.session(fds=fds, **fields)
        self.paint(producer.writer(), painting)
        consumer.flush(60_000)
        consumer.stop()
        producer.close()
        return None if fds else consumer.read(), painting

    def into_file(self, name, **fields):
        with open(self.path(name), "wb") as file:
            _, painting = self.painted([file.fileno()], write_into_file=True,
                                       file_write_period_ms=100, **fields)
        return Trace.from_file(self.path(name)), painting

    def test_read_from_the_buffers(self):
        self.assert_found(*self.painted())

    def test_a_file(self):
        self.assert_found(*self.into_file("t"))

    def test_compressed(self):
        for kind, fields in (("compressed_packets", {"deflate": {}}),
                             ("zstd_compressed_packets", {"zstd": {}})):
            for trace, painting in (self.painted(compression=fields),
                                    self.into_file(kind, compression=fields)):
                self.assertIn(kind, trace.stored_kinds())
                self.assert_found(trace, painting)

    def test_filtered(self):
        plain, _ = self.painted()
        trace, painting = self.painted(trace_filter=without_categories())
        self.assert_found(trace, painting)
        query = f"select count(*) from slice where category = '{CATEGORY}'"
        self.assertEqual(plain.sql(query), [(STROKES,)])
        self.assertEqual(trace.sql(query), [(0,)])

    def test_a_clone_has_what_was_written_before_it(self):
        self.daemon()
        before, behind = Painting(), Painting(40001, "later")
        producer = self.producer("p")
        consumer = self.session(unique_session_name="source")
        self.paint(producer.writer(), before)
        copier = self.consumer()
        self.assertTrue(copier.clone(unique_session_name="source").success)
        self.paint(producer.writer(), behind)
        self.assert_found(copier.read(), before)
        consumer.stop()
        self.assert_found(consumer.read(), before, behind)

    def triggered(self, mode, stop_delay_ms=1):
        """(consumer, producer, puller) of a session that waits for it."""
        self.daemon()
        return (self.session(trigger_config={
            "trigger_mode": mode, "trigger_timeout_ms": 60_000,
            "triggers": [{"name": "now", "stop_delay_ms": stop_delay_ms}]}),
            self.producer("p"), self.producer("puller", []))

    def assert_triggered(self, trace, painting, kind="trigger"):
        self.assert_found(trace, painting)
        self.assertEqual([getattr(p, kind).trigger_name
                          for p in trace.of(kind)], ["now"])
        # A slice as well, of no thread.
        self.assertEqual(trace.sql(
            "select distinct name from slice where track_id not in "
            "(select id from thread_track)"), [("now",)])

    def test_started_by_a_trigger(self):
        consumer, producer, puller = self.triggered("START_TRACING", 60_000)
        producer.wait_command("setup_data_source")
        puller.activate("now")
        painting = Painting()
        self.paint(producer.writer(), painting)
        consumer.stop()
        self.assert_triggered(consumer.read(), painting)

    def test_stopped_by_a_trigger(self):
        consumer, producer, puller = self.triggered("STOP_TRACING")
        painting = Painting()
        self.paint(producer.writer(), painting)
        puller.activate("now")
        consumer.ended()
        self.assert_triggered(consumer.read(), painting)

    def test_cloned_by_a_trigger(self):
        consumer, producer, puller = self.triggered("CLONE_SNAPSHOT")
        events = consumer.observe("TYPE_CLONE_TRIGGER_HIT")
        painting = Painting()
        self.paint(producer.writer(), painting)
        puller.activate("now")
        self.until(lambda: events, "the trigger")
        hit = events[0].clone_trigger_hit
        copier = self.consumer()
        self.assertTrue(copier.clone(
            session_id=hit.tracing_session_id,
            clone_trigger_name=hit.trigger_name).success)
        self.assert_triggered(copier.read(), painting,
                              "clone_snapshot_trigger")

    def test_of_a_collector_that_was_killed(self):
        daemon = self.daemon()
        producer, painting = self.producer("p"), Painting()
        with open(self.path("t"), "wb") as file:
            consumer = self.session(fds=[file.fileno()], write_into_file=True,
                                    file_write_period_ms=100)
        self.paint(producer.writer(), painting)
        self.until(lambda: len(Trace.so_far(self.path("t")).of(
            "track_event")) == 3 * STROKES, "all is in the file")
        daemon.kill()
        consumer.wait_closed()
        self.assert_found(Trace.so_far(self.path("t")), painting)

    def test_what_was_overwritten_is_missing_and_counted(self):
        self.daemon()
        old, new = Painting(), Painting(40001, "later")
        producer = self.producer("p")
        consumer = self.session(size_kb=64)
        self.paint(producer.writer(), old)
        writer = producer.writer()
        while consumer.stats().buffer_stats[0].chunks_overwritten < 20:
            writer.number(100)
        self.paint(producer.writer(), new)
        consumer.stop()
        trace = consumer.read()
        self.assert_found(trace, new)
        stats = trace.stats().buffer_stats[0]
        for name in ("chunks_overwritten", "bytes_overwritten",
                     "chunks_written", "write_wrap_count"):
            self.assertEqual(trace.sql(
                "select value from stats where name = "
                f"'traced_buf_{name}' and idx = 0"),
                [(getattr(stats, name),)], name)

    def test_times_of_the_wall_clock(self):
        """They are shown on the boot clock."""
        def wall_clock():
            return time.clock_gettime_ns(time.CLOCK_REALTIME)
        ahead = wall_clock() - boot_clock()
        trace, painting = self.painted(painting=Painting(
            clock=wall_clock, clock_id=REALTIME,
            to_boot=lambda ns: ns - ahead))
        self.assert_found(trace, painting, off=10 * MS)

    def test_times_of_a_clock_of_the_producers(self):
        """One that its sequence alone knows, and told of once: exact."""
        begin = boot_clock()
        painting = Painting(clock=lambda: boot_clock() - begin, clock_id=64,
                            to_boot=lambda ns: ns + begin)
        self.daemon()
        producer = self.producer("p")
        consumer = self.session()
        writer = producer.writer()
        snapshot = pb.TracePacket()
        for clock, ns in ((BOOTTIME, begin), (64, 0)):
            snapshot.clock_snapshot.clocks.add(clock_id=clock, timestamp=ns)
        writer.write([snapshot.SerializeToString()])
        self.paint(writer, painting)
        consumer.stop()
        self.assert_found(consumer.read(), painting)

    def machines(self, trace, painting):
        """Ids of the machines that its process is on."""
        return trace.sql("select m.raw_id from process p join machine m on "
                         f"p.machine_id = m.id where p.pid = {painting.pid}")

    def test_machines(self):
        """A process of one number on each of three."""
        self.collector()
        places = [self.daemons[0].producer_path] + \
            [self.device(name).socket for name in "ab"]
        self.wait_linked()
        consumer = self.record(TEST_SOURCE)
        paintings = [Painting(name=f"painter {n}") for n in range(3)]
        for n, place in enumerate(places):
            producer = self.producer(f"p{n}", address=place)
            self.paint(producer.writer(), paintings[n])
        self.wait_empty()
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        self.assert_found(trace, *paintings, off=10 * MS)
        written = {p.machine_id for p in trace.of("track_event")}
        self.assertEqual(len(written), 3)
        found = [raw_id for raw_id, in self.machines(trace, paintings[0])]
        self.assertEqual(sorted(found), sorted(written))

    def test_spooled_through_a_cut(self):
        self.collector()
        proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", self.daemons[0].producer_path))
        self.things.append(proxy)
        device = self.device("a", proxy.addresses[0], spool_kb=4096)
        self.wait_linked()
        consumer = self.record(TEST_SOURCE)
        before, meanwhile = Painting(), Painting(40001, "later")
        producer = self.producer("p", address=device.socket)
        self.paint(producer.writer(), before)
        self.wait_empty()
        proxy.say("refuse 600000")
        proxy.say("cut rst")
        self.until(lambda: not device.linked(), "the link is cut")
        writer = producer.writer()
        self.paint(writer, meanwhile)
        # The spool takes what memory has no room for.
        noise = producer.writer()
        while not device.report().store.spool_bytes:
            noise.write([numbered(n, 3000) for n in range(50)])
        self.assertGreater(device.report().store.spool_bytes, 0)
        proxy.say("heal")
        self.wait_empty()
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        self.assert_found(trace, before, meanwhile, off=10 * MS)
        (machine,) = {p.machine_id for p in trace.of("track_event")}
        for painting in before, meanwhile:
            self.assertEqual(self.machines(trace, painting), [(machine,)])

    def ask(self, *words, status=0, **env):
        """tests/peers/sql, in the test's folder: (output, errors)."""
        done = subprocess.run(
            [sys.executable, COMMAND, *words], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, **env}, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def test_the_command_for_people(self):
        _, painting = self.into_file("t")
        out, said = self.ask("t", "select name, dur from slice limit 2",
                             "select null as n")
        self.assertEqual(out.splitlines(), [
            "name\tdur", *(f"{name}\t{dur}" for name, _, dur in
                           painting.slices[:2]), "n", "[NULL]"])
        self.assertEqual(said, "")
        _, said = self.ask("t", "selec 1", status=1)
        self.assertIn("bad SQL", said)
        self.assertIn("selec", said)
        _, said = self.ask("none", "select 1", status=1)
        self.assertIn("cannot read none: No such file", said)
        with open(self.path("page"), "w") as file:
            file.write("hello world, this is no trace at all")
        _, said = self.ask("page", "select 1", status=1)
        self.assertIn("sql: page: ", said)
        _, said = self.ask("t", status=2)
        self.assertIn("TRACE", said)
        _, said = self.ask("t", "select 1", status=2,
                           TRIBUTARY_PEERS=self.path("nowhere"))
        self.assertIn("deploy/install-deps peers", said)

    def test_the_command_tells_of_what_is_passed_over(self):
        self.into_file("t", compression={"zstd": {}})
        out, said = self.ask("t", "select count(*) as n from slice")
        self.assertEqual(out, "n\n0\n")
        self.assertIn("packed with zstd", said)


if __name__ == "__main__":
    sys.exit(tap.main())
