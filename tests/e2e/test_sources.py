#!/usr/bin/env python3
"""`tributary sources`."""

import json
import sys

from harness import tap
from harness.case import TEST_SOURCE, pb
from harness.recording import RecordCase


def identity(n):
    return {"pid": 40 + n, "uid": 1000, "machine_id_hint": f"boot-id-{n}",
            "machine_name": f"device-{n}"}


def track_event():
    return {"name": "track_event", "no_flush": True,
            "track_event_descriptor": pb.TrackEventDescriptor(
                available_categories=[
                    pb.TrackEventCategory(name="cc", description="compositor",
                                          tags=["slow", "ui"]),
                    pb.TrackEventCategory(name="evil\x1b[31m")])}


class Sources(RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        tcp = self.daemons[0].address("producers", "tcp")
        self.producer("far", [TEST_SOURCE, track_event()], address=tcp,
                      identity=identity(1))
        self.producer("near", ["linux.one", "linux.two"])

    def lines(self, *words):
        out, errors = self.run_command("sources", *words)
        self.assertEqual(errors, "")
        return out.decode().splitlines()

    def test_the_table_is_sorted_by_machine_and_producer(self):
        head, *lines = self.lines()
        self.assertEqual(head.split("  ")[0], "MACHINE")
        self.assertEqual([line.split()[0] for line in lines],
                         ["host", "host", "device-1", "device-1"])
        self.assertEqual([line.split()[3] for line in lines],
                         ["linux.one", "linux.two", TEST_SOURCE,
                          "track_event"])
        self.assertIn("far (41)", lines[2])
        self.assertTrue(lines[3].endswith(r"cc,evil\x1b[31m"), lines[3])

    def test_names_and_machines_restrict_the_list(self):
        self.assertEqual(len(self.lines("linux.*")), 3)
        self.assertEqual(len(self.lines("--machine", "device-?")), 3)
        self.assertEqual(len(self.lines("--machine", "host", "*.two",
                                        "track_event")), 2)
        _, errors = self.run_command("sources", "nothing", status=1)
        self.assertIn("no producer offers", errors)

    def test_all_that_is_known_is_told_in_full_and_to_programs(self):
        text = "\n".join(self.lines("--long", "track_event"))
        self.assertIn("far on device-1", text)
        self.assertIn("cc [slow, ui]: compositor", text)
        self.assertIn("needs no flush", text)
        self.assertNotIn("\x1b", text)
        out, _ = self.run_command("sources", "--json")
        found = {s["name"]: s for s in json.loads(out)}
        self.assertEqual(len(found), 4)
        self.assertEqual(found["track_event"]["machine"], "device-1")
        self.assertEqual(found["track_event"]["categories"][0],
                         {"name": "cc", "description": "compositor",
                          "tags": ["slow", "ui"]})
        self.assertTrue(found["track_event"]["no_flush"])
        self.assertEqual(found["linux.one"]["producer"], "near")

    def test_nobody_to_ask_is_a_failure(self):
        _, errors = self.run_command("sources", status=1,
                                     connect=self.path("nobody"))
        self.assertIn("start tributaryd", errors)


if __name__ == "__main__":
    sys.exit(tap.main())
