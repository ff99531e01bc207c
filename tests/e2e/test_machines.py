#!/usr/bin/env python3
"""`tributary machines` and `tributary record --machine`."""

import json
import os
import subprocess
import sys

from harness import tap
from harness.case import Case, TEST_SOURCE, config
from harness.daemon import environment
from harness.device import RelayCase
from harness.inspected import inspect, report
from harness.recording import Recording
from harness.relay import ClassicRelay
from harness.trace import Trace


def identity(n):
    return {"pid": 40 + n, "uid": 1000, "machine_id_hint": f"boot-id-{n}",
            "machine_name": f"device-{n}"}


class Machines(Case):
    def setUp(self):
        super().setUp()
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"],
                    flags=["--enable-relay-endpoint"],
                    env={"PERFETTO_MACHINE_NAME": "rack"})
        self.tcp = self.daemons[0].address("producers", "tcp")

    def command(self, *words):
        return [os.environ["TRIBUTARY"], words[0], "--connect",
                self.daemons[0].consumer_path, *words[1:]]

    def run_command(self, *words):
        """While it runs the producers of this test are served."""
        process = subprocess.Popen(self.command(*words), env=environment(),
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.until(lambda: process.poll() is not None,
                   f"tributary {words[0]} ends")
        out, err = process.communicate()
        return process.returncode, out.decode(), err.decode()

    def machines(self, *words):
        code, out, err = self.run_command("machines", "--json", *words)
        self.assertEqual((code, err), (0, ""))
        return {m["name"]: m for m in json.loads(out)}

    def test_everybody_who_was_seen_is_listed(self):
        far = self.producer("far", address=self.tcp, identity=identity(1))
        self.producer("near")
        found = self.machines()
        self.assertEqual(set(found), {"host", "device-1"})
        self.assertEqual(found["host"]["producers"], 1)
        self.assertEqual(found["device-1"]["producers"], 1)
        self.assertEqual(found["device-1"]["data_sources"], 1)
        self.assertEqual(found["device-1"]["state"], "connected")
        far.close()
        self.until(lambda: self.machines()["device-1"]["state"] == "gone",
                   "it is gone")

    def test_the_table_is_for_people(self):
        self.producer("far", address=self.tcp, identity=identity(1))
        code, out, err = self.run_command("machines", "device-?")
        self.assertEqual((code, err), (0, ""))
        head, line = out.splitlines()
        self.assertTrue(head.startswith("NAME"))
        self.assertIn("device-1", line)
        code, out, err = self.run_command("machines", "--long", "host")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("this collector", out)

    def test_a_name_that_nobody_has_is_an_error(self):
        code, out, err = self.run_command("machines", "bus-*")
        self.assertEqual((code, out), (1, ""))
        self.assertIn('knows no machine called "bus-*"', err)

    def test_a_machine_is_recorded_by_its_name(self):
        first = self.producer("first", address=self.tcp, identity=identity(1))
        other = self.producer("other", address=self.tcp, identity=identity(2))
        near = self.producer("near")
        out = self.path("t")
        process = subprocess.Popen(
            self.command("record", "-o", out, "-t", "0", "--machine",
                         "device-1", TEST_SOURCE),
            env=environment(), stderr=subprocess.PIPE)
        first.wait_started()
        first.writer().number(20)
        consumer = self.consumer()
        consumer.query()
        self.assertFalse(other.started() or near.started())
        process.terminate()
        self.until(lambda: process.poll() is not None, "record ends")
        process.communicate()
        self.assertEqual(process.returncode, 0)
        trace = Trace.from_file(out)
        packets = trace.of("for_testing")
        self.assertEqual(len(packets), 20)
        self.assertNotIn(0, {p.machine_id for p in packets})

    def test_the_collectors_own_has_one_name_and_is_found_by_both(self):
        producer = self.producer("near")
        for word in ("host", "rack", "ra*"):
            out = self.path(f"{word[:2]}{len(word)}")
            process = subprocess.Popen(
                self.command("record", "-o", out, "-t", "0", "--machine",
                             word, TEST_SOURCE),
                env=environment(), stderr=subprocess.PIPE)
            producer.wait_started()
            producer.writer().number(5)
            process.terminate()
            self.until(lambda: process.poll() is not None, "record ends")
            _, err = process.communicate()
            self.assertNotIn(b"no machine", err)
            self.assertEqual(len(Trace.from_file(out).of("for_testing")), 5)
            self.until(lambda: not producer.started(), "it is over")
            (machine,) = report(path=out)["machines"]
            self.assertEqual((machine["name"], machine["own_name"]),
                             ("host", "rack"))
            _, text, _ = inspect(path=out, flags=())
            self.assertIn(b'Machines        host ("rack"), Linux', text)
            for flags in (["--machine", "rack"], ["--machine", "host"]):
                _, text, _ = inspect(path=out, flags=(
                    "--packets", "--type", "for_testing", *flags))
                self.assertEqual(text.count(b", machine host,"), 5)
            (listed,) = self.machines(word).values()
            self.assertEqual((listed["name"], listed["own_name"]),
                             ("host", "rack"))
            code, text, _ = self.run_command("sources", "--machine", word)
            self.assertEqual(code, 0)
            self.assertIn("host", text)

    def recorded(self, name, *producers):
        """Names of those of these producers that a filter starts."""
        before = {p: len(p.instances) for p in producers}
        session = self.consumer()
        wanted = config(TEST_SOURCE, trace_all_machines=True)
        wanted.data_sources[0].machine_name_filter.append(name)
        session.enable(wanted)
        for producer in producers:
            producer.sync()
        return [p.name for p in producers if len(p.instances) > before[p]]

    def test_relays_of_one_kernel_have_a_name_each(self):
        """As in two containers: traced_relay says it for each producer."""
        kernel = {"uid": 1000, "machine_id_hint": "one kernel"}
        boxes = []
        for name in ("box-a", "box-b"):
            claim = kernel | {"pid": 7, "machine_name": name}
            relay = self._add(ClassicRelay(self.loop, self.tcp, claim))
            relay.init(android_build_fingerprint="print")
            boxes.append(self.producer(f"of-{name}", address=self.tcp,
                                       identity=claim | {"pid": 8}))
        # One of box-a comes when box-b has long had the last word.
        claim = kernel | {"pid": 9, "machine_name": "box-a"}
        boxes.append(self.producer("late", address=self.tcp, identity=claim))
        state = self.consumer().query()
        self.assertEqual([(p.name, p.machine_name) for p in state.producers],
                         [("of-box-a", "box-a"), ("of-box-b", "box-b"),
                          ("late", "box-a")])
        self.assertEqual(len({p.machine_id for p in state.producers}), 1)
        self.assertEqual(self.recorded("box-b", *boxes), ["of-box-b"])
        self.assertEqual(self.recorded("box-a", *boxes), ["of-box-a", "late"])
        # What is said of the machine as a whole has its newest relay's.
        self.assertEqual(set(self.machines()), {"host", "box-b"})

    def test_the_name_of_a_classic_relay_reaches_the_trace(self):
        """traced_relay says it in SetPeerIdentity, not in SystemInfo."""
        relay = self._add(ClassicRelay(self.loop, self.tcp, identity(1)))
        relay.init(android_build_fingerprint="print")
        far = self.producer("far", address=self.tcp, identity=identity(1))
        session = self.session(trace_all_machines=True)
        far.writer().number(5)
        session.flush()
        session.stop()
        packets = session.read().packets
        of_machine = {p.machine_id for p in packets if p.HasField(
            "for_testing")}
        told = [p.system_info for p in packets if p.HasField("system_info")
                and p.machine_id in of_machine]
        self.assertEqual([(i.machine_name, i.android_build_fingerprint)
                          for i in told], [("device-1", "print")])

    def test_a_pattern_records_those_that_come_later(self):
        out = self.path("t")
        process = subprocess.Popen(
            self.command("record", "-o", out, "-t", "0", "--machine",
                         "device-*", TEST_SOURCE),
            env=environment(), stderr=subprocess.PIPE)
        consumer = self.consumer()
        self.until(lambda: consumer.query().num_sessions == 1,
                   "the session runs")
        late = self.producer("late", address=self.tcp, identity=identity(7))
        late.wait_started()
        late.writer().number(3)
        process.terminate()
        self.until(lambda: process.poll() is not None, "record ends")
        _, err = process.communicate()
        self.assertIn(b'no machine called "device-*" has a producer', err)
        self.assertEqual(len(Trace.from_file(out).of("for_testing")), 3)

    def test_a_recording_of_nothing_says_which_flag_is_missing(self):
        self.producer("far", address=self.tcp, identity=identity(1))
        code, _, err = self.run_command("record", "-o", self.path("t"), "-t",
                                        "100ms", TEST_SOURCE)
        self.assertEqual(code, 0)
        self.assertIn("say --all-machines or --machine NAME", err)


class Devices(RelayCase):
    def test_one_that_came_late_and_left_is_called_by_its_name(self):
        self.collector()
        query = self.consumer()
        for more in ([], ["-s", "1mb"]):  # read at the end; into the file
            with self.subTest(more=more):
                recording = Recording(self, "-o", "t", "-t", "0",
                                      "--all-machines", *more, TEST_SOURCE)
                self.until(lambda: query.query().num_sessions == 1,
                           "the session runs")
                device = self.device(f"late-{len(self.devices)}")
                producer = self.producer("p", address=device.socket)
                producer.wait_started()
                producer.writer().number(3)
                producer.close()
                self.wait_empty(device)
                device.stop()
                self.until(lambda: not query.query().producers,
                           "the collector has let it go")
                recording.interrupt()
                self.assertRegex(recording.end(), "Producers +.*pid "
                                 rf"\d+ on {device.name}: 3 packets")


if __name__ == "__main__":
    sys.exit(tap.main())
