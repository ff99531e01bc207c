#!/usr/bin/env python3
"""Counts single tests in meson's logs; the last line is the sum.

    count_tests.py [--failed-builds N] testlog.json...

A program that says what its cases did (cmocka's lines, TAP) counts as its
cases, any other as one test.  A program that failed although none of its cases
did (it crashed, it leaked, it took too long) is one failure more.
"""

import json
import re
import sys

CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED|ERROR)\s+\] (?!---)(.+)$", re.M)
CMOCKA_SUMMARY = re.compile(r"^\d+ (test|SKIPPED|FAILED)")
TAP = re.compile(r"^(not )?ok\b[^#\n]*(# *SKIP.*)?", re.M | re.I)


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


def count(path):
    total = [0, 0, 0]
    bad = []
    with open(path) as file:
        for line in file:
            test = json.loads(line)
            output = (test.get("stdout") or "") + (test.get("stderr") or "")
            passed, failed, skipped = cases(output)
            result = test["result"]
            if not passed + failed + skipped:
                passed = result in ("OK", "EXPECTEDFAIL")
                skipped = result == "SKIP"
            if result not in ("OK", "EXPECTEDFAIL", "SKIP"):
                failed += not failed
                bad.append(f"{path}: {test['name']}: {result}")
            for n, value in enumerate((passed, failed, skipped)):
                total[n] += value
    return total, bad


def main(arguments):
    failed_builds = 0
    if arguments[:1] == ["--failed-builds"]:
        failed_builds = int(arguments[1])
        arguments = arguments[2:]
    total, bad = [0, failed_builds, 0], []
    for path in arguments:
        try:
            one, names = count(path)
        except OSError as error:
            one, names = [0, 1, 0], [f"{path}: {error.strerror}"]
        print(f"{path}: {one[0]} passed, {one[1]} failed, {one[2]} skipped")
        total = [a + b for a, b in zip(total, one)]
        bad += names
    for name in bad:
        print(f"failed: {name}")
    if failed_builds:
        print(f"failed: {failed_builds} builds")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 0 if total[1] == 0 and total[0] > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
