#!/usr/bin/env python3
"""What ./check makes of meson's logs: the sum, the names, the exit status."""
import contextlib
import io
import json
import os
import tempfile
import unittest

import count_tests

CMOCKA = """\
[==========] Running 3 test(s).
[ RUN      ] one
[       OK ] one
[  FAILED  ] two
[  SKIPPED ] three
[==========] 3 test(s) run.
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] two
"""


def entry(name="a", result="OK", output="", command=("a",)):
    return {"name": f"tributary:e2e+long / {name}", "result": result,
            "stdout": output, "command": list(command)}


class Counting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def log(self, *entries, name="log.json"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            for one in entries:
                file.write(json.dumps(one) + "\n")
        return path

    def judge(self, logs, again=(), failed=()):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = count_tests.judge(logs, again, list(failed))
        lines = said.getvalue().splitlines()
        return status, lines[-1], lines

    def to_repeat(self, log):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            count_tests.print_names_to_repeat([log])
        return said.getvalue().splitlines()

    def test_cases_of_cmocka_and_tap_count_singly(self):
        log = self.log(entry("c", "FAIL", CMOCKA),
                       entry("t", "OK", "1..2\nok 1 - x\nok 2 - y # SKIP none\n"))
        self.assertEqual(self.judge([log])[:2], (1, "2 passed, 1 failed, 2 skipped"))

    def test_a_crash_after_the_last_case_is_one_failure_more(self):
        log = self.log(entry("c", "FAIL", "ok 1 - x\nok 2 - y\n"))
        self.assertEqual(self.judge([log])[:2], (1, "2 passed, 1 failed, 0 skipped"))

    def test_a_part_that_failed_fails_the_whole_and_is_named(self):
        status, last, lines = self.judge([self.log(entry())], failed=["the fuzzers"])
        self.assertEqual((status, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("failed: the fuzzers", lines)

    def test_no_test_and_no_log_are_failures(self):
        self.assertEqual(self.judge([])[0], 1)
        self.assertEqual(self.judge([self.log(entry()), "/nowhere"])[:2],
                         (1, "1 passed, 1 failed, 0 skipped"))

    def test_one_that_passes_alone_is_named_with_its_first_output(self):
        first = self.log(entry(), entry("b", "TIMEOUT", "why it failed\n"))
        again = self.log(entry("b"), name="again.json")
        status, last, lines = self.judge([first], [again])
        self.assertEqual((status, last), (0, "2 passed, 0 failed, 0 skipped; "
                                          "passed only when run again: 1"))
        self.assertIn("why it failed", lines)
        self.assertTrue(lines[-2].startswith(
            "failed at first, passed alone: tributary:e2e+long / b"), lines)

    def test_one_that_fails_again_fails(self):
        first = self.log(entry("b", "FAIL", "the first time\n"))
        again = self.log(entry("b", "FAIL", "the second time\n"), name="again.json")
        status, last, lines = self.judge([first], [again])
        self.assertEqual((status, last), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertIn("the first time", lines)

    def test_three_may_pass_alone_and_not_four(self):
        for n, expected in (3, 0), (4, 1):
            names = [f"t{i}" for i in range(n)]
            first = self.log(*(entry(name, "FAIL") for name in names))
            again = self.log(*(entry(name) for name in names), name="again.json")
            self.assertEqual(self.judge([first], [again])[0], expected)

    def test_a_second_run_is_only_of_its_build_and_its_command(self):
        first = self.log(entry("b", "FAIL"), name="plain/log.json")
        for again in (self.log(entry("b"), name="asan/again.json"),
                      self.log(entry("b", command=("other",)),
                               name="plain/again.json")):
            self.assertEqual(self.judge([first], [again])[0], 1)

    def test_what_failed_is_to_be_repeated_under_its_own_name(self):
        log = self.log(entry(), entry("b", "FAIL"), entry("c", "TIMEOUT"),
                       entry("d", "SKIP"), entry("b", "FAIL", command=("x",)))
        self.assertEqual(self.to_repeat(log), ["b", "c"])

    def test_where_no_test_failed_there_is_no_name(self):
        self.assertEqual(self.to_repeat(self.log(entry())), [])

    def test_more_than_three_are_not_worth_it(self):
        log = self.log(*(entry(f"t{i}", "FAIL") for i in range(4)))
        self.assertEqual(self.to_repeat(log), [])


if __name__ == "__main__":
    unittest.main()
