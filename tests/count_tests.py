#!/usr/bin/env python3
"""Counts single tests in meson's logs; the last line is the sum.

    count_tests.py [--failed PART]... [--again LOG]... LOG...
    count_tests.py --to-repeat LOG...

A program that prints its cases (cmocka's lines, TAP) counts as its cases, any
other as one test.  A program that failed although none of its cases did (it
crashed, it leaked, it took too long) is one failure more.  PART is something
else that failed, like a build.

--again names the log of a second run of tests that failed.  There the second
result counts; a test that passed only then is named above the sum, with the
output of its first run, and more than MOST_AGAIN of those are a failure.
--to-repeat prints the names to run again, for meson: none where more than
MOST_AGAIN failed, as nothing can be saved by it.
"""

import argparse
import json
import os
import re
import sys

CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED|ERROR)\s+\] (?!---)(.+)$", re.M)
CMOCKA_SUMMARY = re.compile(r"^\d+ (test|SKIPPED|FAILED)")
TAP = re.compile(r"^(not )?ok\b[^#\n]*(# *SKIP.*)?", re.M | re.I)
GOOD = ("OK", "EXPECTEDFAIL", "SKIP")
MOST_AGAIN = 3
LINES_SHOWN = 60


def cases(output):
    """(passed, failed, skipped) that a program tells of itself."""
    passed = failed = skipped = 0
    names = set()
    for state, name in CMOCKA.findall(output):
        if CMOCKA_SUMMARY.match(name):
            continue
        # A failed case is named again in the summary.
        if (state, name) in names:
            continue
        names.add((state, name))
        passed += state == "OK"
        skipped += state == "SKIPPED"
        failed += state in ("FAILED", "ERROR")
    for match in TAP.finditer(output):
        if match[1]:
            failed += 1
        elif match[2]:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


class Test:
    """A test program's run, as a line of meson's log has it."""

    def __init__(self, path, line):
        entry = json.loads(line)
        self.path = path
        self.full_name = entry["name"]
        self.result = entry["result"]
        self.output = (entry.get("stdout") or "") + (entry.get("stderr") or "")
        # Some names are of several tests.
        self.key = os.path.dirname(path), self.full_name, tuple(entry["command"])

    @property
    def name(self):
        """As meson's arguments have it: without its suites."""
        return self.full_name.split(" / ")[-1]

    @property
    def is_good(self):
        return self.result in GOOD

    def counts(self):
        passed, failed, skipped = cases(self.output)
        if not passed + failed + skipped:
            passed = self.result in ("OK", "EXPECTEDFAIL")
            skipped = self.result == "SKIP"
        if not self.is_good:
            failed += not failed
        return passed, failed, skipped

    def show(self, heading):
        lines = self.output.splitlines()
        print(f"\n== {heading}: {self.full_name}: {self.result}\n== in {self.path}")
        if len(lines) > LINES_SHOWN:
            print(f"== the last {LINES_SHOWN} of {len(lines)} lines")
        print("\n".join(lines[-LINES_SHOWN:]))


def read(path):
    with open(path, encoding="utf-8") as file:
        return [Test(path, line) for line in file]


def read_all(paths, failed):
    """The tests of each log that can be read; the others are added to failed."""
    logs = {}
    for path in paths:
        try:
            logs[path] = read(path)
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
    return logs


def print_names_to_repeat(paths):
    bad = [t for tests in read_all(paths, []).values() for t in tests
           if not t.is_good]
    if len(bad) <= MOST_AGAIN:
        for name in sorted({t.name for t in bad}):
            print(name)


def judge(paths, again_paths, failed):
    """Prints all that a reader has to know; the exit status."""
    logs = read_all(paths, failed)
    again = {t.key: t for tests in read_all(again_paths, failed).values()
             for t in tests}
    total = [0, 0, 0]
    bad, late, sums = [], [], []
    for path, tests in logs.items():
        one = [0, 0, 0]
        for first in tests:
            last = again.get(first.key, first)
            one = [a + b for a, b in zip(one, last.counts())]
            if not last.is_good:
                bad.append(first)
            elif not first.is_good:
                late.append(first)
        sums.append(f"{path}: {one[0]} passed, {one[1]} failed, {one[2]} skipped")
        total = [a + b for a, b in zip(total, one)]
    total[1] += len(failed)
    for test in late:
        test.show("failed at first")
    for test in bad:
        test.show("failed")
    print("", *sums, sep="\n")
    for test in late:
        print(f"failed at first, passed alone: {test.full_name} ({test.path})")
    if len(late) > MOST_AGAIN:
        print(f"failed: {len(late)} tests passed only alone; "
              f"{MOST_AGAIN} may")
        total[1] += 1
    for test in bad:
        print(f"failed: {test.full_name}: {test.result} ({test.path})")
    for part in failed:
        print(f"failed: {part}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped" +
          (f"; passed only when run again: {len(late)}" if late else ""))
    return 0 if total[1] == 0 and total[0] > 0 else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed", action="append", default=[], metavar="PART")
    parser.add_argument("--again", action="append", default=[], metavar="LOG")
    parser.add_argument("--to-repeat", action="store_true")
    parser.add_argument("logs", nargs="*", metavar="LOG")
    given = parser.parse_args()
    if given.to_repeat:
        print_names_to_repeat(given.logs)
        return 0
    return judge(given.logs, given.again, given.failed)


if __name__ == "__main__":
    sys.exit(main())
