#!/usr/bin/env python3
"""`tributary record` over several collectors: one ZIP, read as Perfetto's v58
reads it by its manifest, and by the Trace Processor that there is."""

import glob
import json
import os
import re
import signal
import sys
import time
import zipfile

from harness import faults, imported, pb, tap
from harness.case import TEST_SOURCE
from harness.certs import Authority
from harness.producer import numbered
from harness.recording import RecordCase
from harness.terminal import Terminal
from harness.trace import Trace
from peers import trace_processor

SECOND = 1_000_000_000


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Archive:
    """A ZIP and its manifest, by docs/reference/perfetto-manifest.md of v58."""

    def __init__(self, case, path):
        self.case, self.path = case, path
        with zipfile.ZipFile(path) as file:
            case.assertIsNone(file.testzip())
            members = {n: file.read(n) for n in file.namelist()}
        text = members.pop("perfetto_manifest.json")
        case.assertTrue(text.startswith(b'{"perfetto_manifest"'))
        self.manifest = json.loads(text)["perfetto_manifest"]
        case.assertEqual(self.manifest["version"], 1)
        self.files = {f["path"]: f for f in self.manifest["files"]}
        case.assertEqual(set(self.files), set(members))
        self.traces = {n: Trace.from_bytes(d) for n, d in members.items()}
        for name in self.traces:
            self.check(name)

    def check(self, name):
        """Every machine of a file is declared, as v58 demands."""
        file = self.files[name]
        ids = {p.machine_id for p in self.traces[name].packets}
        if "machine" in file:
            self.case.assertNotIn("machines", file)
            self.case.assertEqual(ids, {0})
        else:
            self.case.assertLessEqual(
                ids, {m["id"] for m in file["machines"]})
        names = list(self.machines(name).values())
        self.case.assertEqual(len(names), len(set(names)))
        if "clocks" in file:
            to = file["clocks"]["sync_to"]
            self.check_clock(name, file["clocks"])
            self.check_clock(to["file"], to)

    def check_clock(self, name, clock):
        """A clock of a file of several machines is one machine's."""
        self.case.assertEqual(clock["clock"], "BOOTTIME")
        if "machines" in self.files[name]:
            self.case.assertEqual(clock["machine"], self.machines(name)[0])
        else:
            self.case.assertNotIn("machine", clock)

    def machines(self, name):
        """{id: name}"""
        file = self.files[name]
        if "machine" in file:
            return {0: file["machine"]["name"]}
        return {m["id"]: m["name"] for m in file["machines"]}

    def offset(self, name):
        """What is added to the file's boot clock to get the merged time."""
        trace_time = self.manifest["trace_time"]
        if trace_time["file"] == name:
            return 0
        clocks = self.files[name]["clocks"]
        self.case.assertEqual(clocks["sync_to"]["file"], trace_time["file"])
        return clocks["offset_ns"]

    def times(self, name):
        """{counter: merged time} of numbered packets of the file's host."""
        return {p.for_testing.counter: p.timestamp + self.offset(name)
                for p in self.traces[name].of("for_testing")
                if p.machine_id == 0}

    def uuids(self):
        return {(p.trace_uuid.msb, p.trace_uuid.lsb)
                for t in self.traces.values() for p in t.of("trace_uuid")}


class FleetRecording(RecordCase):
    def collectors(self, *names, **options):
        text = ""
        for name in names:
            self.daemon(producer=[self.path(f"{name}.p")],
                        consumer=[self.path(f"{name}.c")],
                        flags=["--enable-relay-endpoint"],
                        **options.get(name, {}))
            text += (f'collector {{ name: "{name}" '
                     f'connect: "{self.path(name + ".c")}" }}\n')
        return self.fleet(text)

    def fleet(self, text):
        path = self.path("fleet.pbtx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def over(self, fleet, *words):
        return self.record("--fleet", fleet, "-o", "t.zip", *words)

    def archive(self):
        self.assertEqual(glob.glob(self.path("*.parts*")), [])
        return Archive(self, self.path("t.zip"))

    def sql(self, query):
        if not imported.available():
            self.skipTest("no Trace Processor; deploy/install-deps peers")
        ((_, rows),) = trace_processor.ask_file(self.path("t.zip"), query)
        return rows


class Together(FleetRecording):
    def test_one_zip_with_the_machines_of_all(self):
        fleet = self.collectors("c1", "c2")
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        for name in ("c1", "c2"):
            relay = self.relay(self.path(f"{name}.p"), label=f"r-{name}",
                               machine=f"kiosk-{name}")
            self.until(lambda r=relay: r.link_state() == "linked", "linked")
            producers.append(self.producer(name, address=relay.producer_path))
        recording = self.over(fleet, "--all-machines", "-t", "0", TEST_SOURCE)
        for producer in producers:
            producer.writer().number(20)
        recording.interrupt()
        said = recording.end()
        archive = self.archive()
        self.assertEqual(set(archive.machines("c1.pftrace").values()),
                         {"c1", "kiosk-c1"})
        self.assertEqual(set(archive.machines("c2.pftrace").values()),
                         {"c2", "kiosk-c2"})
        for trace in archive.traces.values():
            self.assert_numbers(trace, [20, 20])
        self.assertEqual(len(archive.uuids()), 1)
        (uuid,) = archive.uuids()
        self.assertEqual(
            archive.manifest["attributes"]["tributary.trace_uuid"],
            "".join(f"{n & (1 << 64) - 1:016x}" for n in uuid))
        self.assertIn("Collector       c1: ", said)
        self.assertIn("with kiosk-c2", said)
        self.assertIn("2 of 2 collectors whole, nothing lost", said)
        # v55 puts the machines of both together, and takes the manifest for
        # an empty trace: it opens, and has all of it.
        self.assertEqual(self.sql(
            "select count(*) from stats where severity in "
            "('error', 'data_loss') and value > 0"), [(0,)])
        self.assertEqual({name for (name,) in self.sql(
            "select name from __intrinsic_trace_file where name not null")},
            {"perfetto_manifest.json", *archive.traces})

    def test_trace_processor_has_the_same_moment_at_one_time(self):
        """Of collectors that share their clocks, as v55 assumes of all."""
        fleet = self.collectors("c1", "c2")
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        recording = self.over(fleet, "-t", "0", TEST_SOURCE)
        writers = [p.writer() for p in producers]
        now = boottime()
        for uuid, writer in enumerate(writers, 1):
            track = pb.TracePacket(timestamp=now)
            track.track_descriptor.uuid = uuid
            track.track_descriptor.name = f"c{uuid}"
            event = pb.TracePacket(timestamp=now)
            event.track_event.type = pb.TrackEvent.TYPE_INSTANT
            event.track_event.track_uuid = uuid
            event.track_event.name = "moment"
            writer.write([track.SerializeToString(),
                          event.SerializeToString()])
        recording.interrupt()
        recording.end()
        self.archive()
        self.assertEqual(self.sql(
            "select track.name, ts from slice join track on "
            "track.id = track_id where slice.name = 'moment' order by 1"),
            [("c1", now), ("c2", now)])

    def test_none_starts_before_all_are_armed(self):
        fleet = self.collectors("c1", "c2")
        first = self.producer("c1", address=self.path("c1.p"))
        second = self.producer("c2", address=self.path("c2.p"))
        self.daemons[1].process.send_signal(signal.SIGSTOP)
        recording = self.over(fleet, "-t", "0", TEST_SOURCE)
        self.until(lambda: first.instances, "the first is set up")
        out, _ = self.run_command("sessions", "--json", "--connect",
                                  self.path("c1.c"))
        self.daemons[1].process.send_signal(signal.SIGCONT)
        self.assertEqual([s["state"] for s in json.loads(out)],
                         ["waits for start"])
        for producer in (first, second):
            producer.writer().number(1)
        recording.interrupt()
        recording.end()
        for trace in self.archive().traces.values():
            self.assert_numbers(trace, [1])

    @imported.may_cause("traced_buf_chunks_overwritten")
    def test_losses_of_all_are_summed(self):
        fleet = self.collectors("c1", "c2")
        recording = self.over(fleet, "-t", "0", "-b", "64kb", TEST_SOURCE)
        for name, count in (("c1", 10), ("c2", 3000)):
            self.producer(name, address=self.path(f"{name}.p")
                          ).writer().number(count)
        recording.interrupt()
        said = recording.end()
        first, second = said.split("Collector       c2: ")
        self.assertIn("Lost            nothing\n", first)
        lost = re.search(r"Lost +([\d,]+) chunks", second)
        self.assertIn(f"2 of 2 collectors whole, {lost[1]} lost", second)

    def test_one_live_line_for_all(self):
        fleet = self.collectors("c1", "c2")
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        terminal = Terminal(self, [
            os.environ["TRIBUTARY"], "record", "--fleet", fleet, "-o",
            self.path("t.zip"), "-t", "0", TEST_SOURCE])
        for producer in producers:
            producer.writer().number(100)
        self.until(lambda: b"  200 packets  2 producers  nothing lost" in
                   terminal.read(), lambda: f"the line: {terminal.out}")
        terminal.process.send_signal(signal.SIGINT)
        self.until(lambda: terminal.read() and
                   terminal.process.poll() is not None, "it ends")
        self.assertEqual(terminal.process.returncode, 0, terminal.out)

    def test_it_ends_by_itself(self):
        fleet = self.collectors("c1", "c2")
        for name in ("c1", "c2"):
            self.producer(name, address=self.path(f"{name}.p")
                          ).number_at_flush(5)
        self.over(fleet, "-t", "300ms", TEST_SOURCE).end()
        for trace in self.archive().traces.values():
            self.assert_numbers(trace, [5])

    def test_over_tls_to_standard_output(self):
        text = ""
        for name in ("c1", "c2"):
            ca = Authority(self.path(name))
            daemon = self.daemon(
                producer=[self.path(f"{name}.p")],
                consumer=["tls://127.0.0.1:0"],
                flags=["--tls-dir", ca.folder])
            text += (f'collector {{ name: "{name}" connect: '
                     f'"{daemon.address("consumers", "tls")}" tls {{ dir: '
                     f'"{ca.issue("ann", "consumer")}" }} }}\n')
        fleet = self.fleet(text)
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        with open(self.path("t.zip"), "wb") as out:
            recording = self.record(
                "--fleet", fleet, "-o", "-", "-t", "0", "-s", "10mb",
                TEST_SOURCE, stdout=out)
            for producer in producers:
                producer.writer().number(10)
            recording.interrupt()
            recording.end()
        for trace in self.archive().traces.values():
            self.assert_numbers(trace, [10])


class Clocks(FleetRecording):
    """c2's clocks are ahead: both that since boot and that on the wall."""

    AHEAD_NS = 5000 * SECOND

    def merged(self, wall_ns):
        plan = faults.Plan(self.path("plan"))
        plan.boottime_ns = self.AHEAD_NS
        plan.realtime_ns = wall_ns
        fleet = self.collectors("c1", "c2", c2={"env": plan.env()})
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        recording = self.over(fleet, "-t", "0", TEST_SOURCE)
        writers = [p.writer() for p in producers]
        # The same moments, by the clocks of both.
        for n in range(10):
            now = boottime()
            for writer, ahead in zip(writers, (0, self.AHEAD_NS)):
                writer.write([numbered(n, timestamp=now + ahead)])
        recording.interrupt()
        recording.end()
        archive = self.archive()
        first, second = (archive.times(f"{n}.pftrace") for n in ("c1", "c2"))
        self.assertEqual(set(first), set(range(10)))
        self.assertEqual(set(second), set(first))
        return [second[n] - first[n] for n in first]

    @imported.may_cause("trace_sorter_negative_timestamp_dropped")
    def test_wall_clocks_that_agree_are_believed(self):
        # Clocks of a snapshot are read one after the other.
        for off in self.merged(0):
            self.assertLess(abs(off), SECOND // 100)

    @imported.may_cause("trace_sorter_negative_timestamp_dropped")
    def test_one_that_is_wrong_is_measured(self):
        # As exact as the shortest of eight round trips.
        for off in self.merged(7200 * SECOND):
            self.assertLess(abs(off), SECOND)


class Missing(FleetRecording):
    def test_one_that_is_not_there_is_an_error(self):
        fleet = self.collectors("c1", "c2")
        self.daemons[1].kill()
        said = self.over(fleet, "-t", "0", TEST_SOURCE).end(1)
        self.assertIn("tributary: c2: ", said)
        self.assertIn("nothing was recorded", said)
        self.assertIn("--allow-missing", said)
        self.assertEqual(glob.glob(self.path("t.zip*")), [])
        # c1 was told nothing that goes on.
        out, _ = self.run_command("sessions", "--json", "--connect",
                                  self.path("c1.c"))
        self.assertEqual(json.loads(out), [])

    def test_or_is_named(self):
        fleet = self.collectors("c1", "c2", "c3")
        self.daemons[1].kill()
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c3")]
        recording = self.over(fleet, "-t", "0", "--allow-missing",
                              TEST_SOURCE)
        for producer in producers:
            producer.writer().number(10)
        recording.interrupt()
        said = recording.end()
        self.assertIn("Collector       c2 is missing: ", said)
        self.assertIn("2 of 3 collectors whole, nothing that is known", said)
        self.assertEqual(set(self.archive().files),
                         {"c1.pftrace", "c3.pftrace"})

    def test_one_that_does_not_answer_in_time_is_missing(self):
        fleet = self.collectors("c1", "c2")
        self.daemons[1].process.send_signal(signal.SIGSTOP)
        with open(fleet, "a", encoding="utf-8") as file:
            file.write("timeout_ms: 500\n")
        said = self.over(fleet, "-t", "0", TEST_SOURCE).end(1)
        self.daemons[1].process.send_signal(signal.SIGCONT)
        self.assertIn("c2: the collector does not answer", said)

    def test_one_that_dies_loses_its_own_data_only(self):
        fleet = self.collectors("c1", "c2")
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        recording = self.over(fleet, "-t", "0", TEST_SOURCE)
        writers = [p.writer() for p in producers]
        for writer in writers:
            writer.number(10)
        self.daemons[1].kill()
        recording.says("c2: the connection to the collector was lost")
        writers[0].number(10)
        recording.interrupt()
        said = recording.end(1)
        self.assertIn("not whole: the connection to the collector was lost",
                      said)
        self.assertIn("1 of 2 collectors whole", said)
        archive = self.archive()
        self.assertEqual(set(archive.files), {"c1.pftrace"})
        self.assert_numbers(archive.traces["c1.pftrace"], [20])

    def test_what_it_had_written_is_kept(self):
        """With write_into_file (-s) each collector writes all the time."""
        fleet = self.collectors("c1", "c2")
        producers = [self.producer(n, address=self.path(f"{n}.p"))
                     for n in ("c1", "c2")]
        recording = self.over(fleet, "-c", self.config(f"""
            buffers {{ size_kb: 1024 }} write_into_file: true
            file_write_period_ms: 100
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}"""))
        for producer in producers:
            producer.writer().number(10)

        def written():
            (path,) = glob.glob(self.path("t.zip.parts.*/c2.pftrace"))
            return len(Trace.so_far(path).of("for_testing")) == 10
        self.until(written, "c2 has written them")
        self.daemons[1].kill()
        recording.says("c2: the connection to the collector was lost")
        recording.interrupt()
        recording.end(1)
        archive = self.archive()
        self.assertEqual(set(archive.files), {"c1.pftrace", "c2.pftrace"})
        self.assertEqual(
            len(archive.traces["c2.pftrace"].of("for_testing")), 10)


class Refused(FleetRecording):
    def test_what_does_not_go_with_several(self):
        fleet = self.collectors("c1", "c2")
        for words, why in (
                (("-d",), "stays in front"),
                (("--detach=k",), "starts and stays with"),
                (("--rotate-every", "1min"), "segments"),
                (("--connect", "x"), "leave one of them out")):
            said = self.over(fleet, *words, "-t", "1s", TEST_SOURCE).end(1)
            self.assertIn(why, said)
        self.assertIn("say where the trace goes", self.record(
            "--fleet", fleet, TEST_SOURCE).end(1))
        self.assertEqual(glob.glob(self.path("t.zip*")), [])

    def test_a_zip_that_cannot_be_written_leaves_the_parts(self):
        fleet = self.collectors("c1", "c2")
        os.mkdir(self.path("t.zip"))
        said = self.over(fleet, "-t", "1ms", TEST_SOURCE).end(1)
        self.assertIn("each collector's trace is in t.zip.parts.", said)
        self.assertEqual(
            {os.path.basename(p) for p in
             glob.glob(self.path("t.zip.parts.*/*"))},
            {"c1.pftrace", "c2.pftrace"})


if __name__ == "__main__":
    sys.exit(tap.main())
