#!/usr/bin/env python3
"""./bench-peers: its arithmetic, its table, and that it measures both."""

import os
import subprocess
import sys
import tempfile
import unittest

import peers
from harness import tap
from harness.daemon import environment
from harness.loop import SCALE

SOURCE = os.environ["SOURCE_ROOT"]
BENCH = os.path.join(SOURCE, "tests/bench/peers")
sys.path.insert(0, BENCH)

import ratios  # noqa: E402


class Ratios(unittest.TestCase):
    def setUp(self):
        self.pairs = ratios.Pairs()

    def test_a_ratio_is_taken_of_each_pair_and_the_median_of_ratios(self):
        for ours, theirs in ((1, 2), (10, 10), (30, 40)):
            self.pairs.add("a", {"time": ours}, {"time": theirs})
        self.assertEqual(self.pairs.median("a", "time"), 0.75)
        self.assertEqual(self.pairs.ratios("a", "time"), [0.5, 0.75, 1])
        self.assertEqual(ratios.table(self.pairs),
                         "|  | time |\n|---|---|\n"
                         "| a | 0.75 (0.50-1.00) |")

    def test_what_one_side_did_not_measure_has_no_ratio(self):
        self.pairs.add("a", {"time": 1, "p50": 1}, {"time": 0, "p99": 1})
        self.assertEqual([self.pairs.median("a", m)
                          for m in ratios.MEASURES], [None] * 5)
        self.assertEqual(ratios.table(self.pairs), "|  |\n|---|\n| a |")

    def test_cases_are_arranged_whatever_came_first(self):
        for case in ("c", "b", "x", "a"):
            self.pairs.add(case, {}, {})
        named, others = self.pairs.split(["a", "b", "c", "d"])
        self.assertEqual(list(named.cases), ["a", "b", "c"])
        self.assertEqual(list(others.cases), ["x"])

    def test_losses_are_shares_of_each_side(self):
        self.pairs.add("a", {"lost": 0}, {"lost": 0.214})
        self.assertIn("| 0 %, 21 % |", ratios.table(self.pairs))

    def test_where_the_other_side_is_ahead_is_said(self):
        self.pairs.add("a", {"time": 1, "p99": 1.04}, {"time": 2, "p99": 1})
        self.assertEqual(ratios.verdict(self.pairs),
                         "Ahead of `tributaryd`: nowhere.")
        self.pairs.add("b", {"processor": 3}, {"processor": 2})
        self.assertIn("* b: processor, 1.50", ratios.verdict(self.pairs))

    def test_only_what_is_between_the_marks_changes(self):
        with open(os.path.join(SOURCE, "docs/performance.md"),
                  encoding="utf-8") as file:
            text = file.read()
        once = ratios.put_between_marks(text, "new")
        self.assertIn(f"{ratios.BEGIN}\nnew\n{ratios.END}", once)
        self.assertEqual(ratios.put_between_marks(once, "new"), once)
        self.assertEqual(once.split(ratios.BEGIN)[0],
                         text.split(ratios.BEGIN)[0])
        self.assertEqual(once.split(ratios.END)[1],
                         text.split(ratios.END)[1])
        with self.assertRaises(ValueError):
            ratios.put_between_marks("no marks", "new")


class Run(unittest.TestCase):
    def run_bench(self, *flags):
        with tempfile.NamedTemporaryFile("w+") as document:
            done = subprocess.run(
                [sys.executable, os.path.join(BENCH, "bench_peers.py"),
                 "--build", os.environ["BUILD_ROOT"], "--document",
                 document.name, *flags], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, timeout=200 * SCALE,
                env=environment(), check=False)
            self.assertEqual(document.read(), "")
        return done

    @unittest.skipUnless(peers.program("traced"), "no traced of Perfetto's")
    def test_both_are_measured_and_a_run_may_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results")
            for count in (1, 2):
                done = self.run_bench(
                    "--quick", "--seconds", "0.2", "--results", results,
                    "file, TCP, 8", "100 producers, shared memory")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"file, TCP, 8 producers "
                                 r"\| [0-9.]+.* \| [0-9.]+.* \| ")
                self.assertIn("50 MB/s of 100 producers", done.stdout)
                with open(results, encoding="utf-8") as file:
                    self.assertEqual(len(file.readlines()), 2 * count)

    def test_an_earlier_build_is_measured_in_place_of_traced(self):
        done = self.run_bench("--quick", "--seconds", "0.2", "--before",
                              os.environ["BUILD_ROOT"], "ring, TCP, 8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("against an earlier build", done.stdout)
        self.assertRegex(done.stdout, r"ring, TCP, 8 producers \| [0-9.]+ \| ")

    @unittest.skipUnless(peers.program("traced"), "no traced of Perfetto's")
    def test_a_case_that_is_not_there_is_named(self):
        done = self.run_bench("nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no case has nonsense in its name", done.stderr)

    def test_without_the_other_it_says_how_to_get_it(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, os.path.join(BENCH, "bench_peers.py"),
                 "--build", os.environ["BUILD_ROOT"], "--document", "x"],
                stderr=subprocess.PIPE, text=True,
                env=environment(TRIBUTARY_PEERS=folder), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("deploy/install-deps peers", done.stderr)


if __name__ == "__main__":
    sys.exit(tap.main())
