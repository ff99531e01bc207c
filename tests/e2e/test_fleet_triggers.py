#!/usr/bin/env python3
"""`tributary fleet triggers`: a trigger on a device of one collector has the
flight recorders of all write what they have, once."""

import json
import os
import signal
import sys

from harness import tap
from harness.recording import RecordCase, Recording
from harness.trace import Trace

NAMES = ("c1", "c2", "c3")


class FleetTriggers(RecordCase):
    """Three collectors with a flight recorder each, and a producer at each,
    that of c1 behind a relay."""

    def setUp(self):
        super().setUp()
        with open(self.path("a.pbtx"), "w", encoding="ascii") as file:
            file.write('buffers { size_kb: 4096 } '
                       'data_sources { config { name: "a" } } '
                       'trace_all_machines: true')
        for name in NAMES:
            self.start_collector(name)
        self.fleet = self.write_fleet('fleet_triggers: "drop"')
        relay = self.relay(self.path("c1.p"), label="relay", machine="kiosk")
        self.until(lambda: relay.link_state() == "linked", "it is linked")
        self.devices = {
            name: self.producer(f"p-{name}", ["a"], address=(
                relay.producer_path if name == "c1" else
                self.path(f"{name}.p")))
            for name in NAMES}
        for device in self.devices.values():
            device.writer().number(5)

    def start_collector(self, name):
        archive = self.path(f"{name}.archive")
        os.makedirs(archive, exist_ok=True)
        with open(self.path(f"{name}.pbtx"), "w", encoding="ascii") as file:
            file.write(f'archive_dir: "{archive}"\n'
                       f'recording {{ name: "f" '
                       f'config_file: "{self.path("a.pbtx")}" '
                       f'flight {{ before_ms: 60000 after_ms: 1 '
                       f'at_trigger: "drop" }} }}\n')
        self.daemon(producer=[self.path(f"{name}.p")],
                    consumer=[self.path(f"{name}.c")],
                    flags=["--config", self.path(f"{name}.pbtx"),
                           "--enable-relay-endpoint"])

    def write_fleet(self, *more):
        path = self.path("fleet.pbtx")
        with open(path, "w", encoding="ascii") as file:
            for name in NAMES:
                file.write(f'collector {{ name: "{name}" '
                           f'connect: "{self.path(name + ".c")}" '
                           f'producers: "{self.path(name + ".p")}" }}\n')
            file.write("\n".join(more))
        return path

    def program(self):
        return Recording(self, "triggers", "--fleet", self.fleet,
                         command="fleet")

    def passing(self):
        """One that has a session at each collector."""
        program = self.program()
        for name in NAMES:
            program.says(f"{name}: its triggers are passed on")
        return program

    def hits(self, name):
        """Triggers that the flight recorder of a collector has had."""
        out, _ = self.run_command("recordings", "--json", "--connect",
                                  self.path(f"{name}.c"))
        (state,) = json.loads(out)
        return state["snapshots"] + state["shared"]

    def all_have(self, count):
        """Waits for it, and for no more than these."""
        for name in NAMES:
            self.until(lambda n=name: self.hits(n) >= count,
                       lambda n=name: f"{n} has {self.hits(n)} of {count}")
        self.assertEqual([self.hits(n) for n in NAMES], [count] * len(NAMES))

    def test_a_trigger_reaches_all_once(self):
        self.passing()
        for count, name in enumerate(NAMES, 1):
            self.devices[name].activate("other", "drop")
            self.all_have(count)
        # Who pulled it, where it was pulled, and elsewhere.
        producers = {name: self.pulled_by(name) for name in NAMES}
        self.assertEqual(producers, {
            "c1": ["p-c1", "fleet/c2/p-c2", "fleet/c3/p-c3"],
            "c2": ["fleet/c1/p-c1", "p-c2", "fleet/c3/p-c3"],
            "c3": ["fleet/c1/p-c1", "fleet/c2/p-c2", "p-c3"]})

    def pulled_by(self, name):
        found = []
        for where, _, files in os.walk(self.path(f"{name}.archive")):
            for file in files:
                if file.endswith(".pftrace"):
                    path = os.path.join(where, file)
                    found.append((os.stat(path).st_mtime_ns, path))
        heads = [Trace.from_file(path).packets[0].tributary_segment
                 for _, path in sorted(found)]
        return [h.begun_by.trigger_producer for h in heads]

    def test_of_two_programs_one_passes_it_on(self):
        first = self.passing()
        second = self.program()
        for name in NAMES:
            second.says(f"{name}: another program passes its triggers on")
        self.devices["c1"].activate("drop")
        self.all_have(1)
        first.process.send_signal(signal.SIGKILL)
        for name in NAMES:
            second.says(f"{name}: its triggers are passed on")
        self.devices["c2"].activate("drop")
        self.all_have(2)

    def test_one_for_all_is_not_passed_on(self):
        self.passing()
        self.run_command("trigger", "--fleet", self.fleet, "drop")
        self.all_have(1)
        self.devices["c3"].activate("drop")
        self.all_have(2)

    def test_a_collector_may_come_back(self):
        program = self.passing()
        self.daemons[1].kill()
        program.says("c2: ")
        self.devices["c1"].activate("drop")
        program.says('c2 did not get the trigger "drop" of c1: ')
        self.until(lambda: self.hits("c3") == 1, "c3 has it")
        self.start_collector("c2")
        self.until(lambda: program.errors.count(
            "c2: its triggers are passed on") == 2, "c2 is back")
        device = self.producer("again", ["a"], address=self.path("c2.p"))
        device.writer().number(5)
        device.activate("drop")
        for name, count in (("c1", 2), ("c2", 1), ("c3", 2)):
            self.until(lambda n=name, c=count: self.hits(n) == c,
                       f"{name} has {count}")

    def test_it_ends_when_it_is_told(self):
        program = self.passing()
        program.process.terminate()
        program.end(0)

    def test_a_file_without_triggers_is_refused(self):
        self.fleet = self.write_fleet()
        self.assertIn('add fleet_triggers: "NAME"', self.program().end(1))


if __name__ == "__main__":
    sys.exit(tap.main())
